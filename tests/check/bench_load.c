/* tests/check/bench_load.c - loading speed by path, queue depth and block size.
 *
 *	build/tests/check/bench_load FILE [ROUNDS]
 *
 * Loads FILE as if it were one tensor, through each path, with a sink that copies
 * instead of repacking.  Every round also measures the bound: direct sequential reads
 * of the same bytes without a sink.  Prints the median of the rounds in GB/s and in %
 * of the bound.  FILE should be much larger than the storage device's cache and hold
 * real data.  LOAD_CONF_DEFAULT was chosen from this table. */
#include <err.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/base.h"
#include "config/err.h"
#include "shm/event.h"
#include "worker/load/load.h"

enum { MAX_ROUNDS = 15, RAW_BYTES = 1 << 20, RAW_DEPTH = 4, ROW_BYTES = 2304 };

static const uint32_t depths[] = { 1, 2, 3, 4, 6, 8, 16 };
static const uint32_t block_kib[] = { 256, 512, 1024, 2048, 4096 };
static const struct {
	const char *name;
	enum load_path path;
	int buffered;
} ways[] = {
	{ "io_uring, registered buffers", LOAD_URING, 0 },
	{ "io_uring", LOAD_URING_PLAIN, 0 },
	{ "pread", LOAD_PREAD, 0 },
	{ "io_uring, buffered", LOAD_URING_PLAIN, 1 },
	{ "pread, buffered", LOAD_PREAD, 1 }
};
enum { NDEPTHS = NITEMS(depths), NBLOCKS = NITEMS(block_kib) };

static struct load_file file = { .direct_fd = -1, .fd = -1,
	.mem_align = 4096, .off_align = 4096 };
static uint8_t *staging;

static void *
map_pages(uint64_t nbytes)
{
	void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		err(ERR_RUN, "mmap");
	return p;
}

static int
copy_rows(void *arg, uint32_t item, uint32_t row0, uint32_t nrows,
    const void *src, struct err *reterr)
{
	static uint8_t packed[64 * ROW_BYTES];
	uint32_t r;

	(void)arg;
	(void)item;
	(void)row0;
	(void)reterr;
	for (r = 0; r < nrows; r += 64)
		memcpy(packed, (const uint8_t *)src + (uint64_t)r * ROW_BYTES,
		    MIN(nrows - r, 64) * ROW_BYTES);
	__asm__ volatile("" :: "r"(packed) : "memory");
	return 0;
}

/* GB/s of one load of one tensor, at an offset as in GGUF files; 0 = the path is not
 * available here. */
static double
measure_load_gbs(enum load_path path, int buffered, uint32_t depth,
    uint32_t block_bytes)
{
	struct load_conf lc = { .depth = depth, .block_bytes = block_bytes,
		.path = path };
	struct load_item item = { .ext = { .name = "bench", .offset = 32,
		.ncols = ROW_BYTES }, .row_step = 8 };
	struct load_file f = file;
	struct load_stats stats;
	struct err e;

	item.ext.nrows = (uint32_t)((file.nbytes - 32) / ROW_BYTES);
	item.ext.nbytes = (uint64_t)item.ext.nrows * ROW_BYTES;
	if (buffered)
		f.direct_fd = -1;
	if (load_run(&lc, &f, 1, &item, 1, staging,
	    load_staging_bytes(&lc, &item, 1), copy_rows, NULL, NULL, NULL,
	    &stats, &e) < 0)
		errx(ERR_RUN, "%s", e.msg);
	if (stats.path != path || stats.direct == buffered)
		return 0;
	return (double)stats.file_bytes / (double)stats.ns;
}

/* GB/s of the bound: direct reads of the whole file, RAW_DEPTH in flight. */
static double
measure_bound_gbs(void)
{
	uint64_t t0 = event_now_ns(), at = 0, nbytes = 0;
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	if (io_uring_queue_init(RAW_DEPTH, &ring, 0) < 0)
		errx(ERR_RUN, "io_uring is needed to measure the bound");
	while (nbytes < file.nbytes) {
		while (at < file.nbytes &&
		    (sqe = io_uring_get_sqe(&ring)) != NULL) {
			io_uring_prep_read(sqe, file.direct_fd, staging +
			    at / RAW_BYTES % RAW_DEPTH * RAW_BYTES, RAW_BYTES,
			    at);
			at += RAW_BYTES;
			io_uring_submit(&ring);
		}
		if (io_uring_wait_cqe(&ring, &cqe) < 0 || cqe->res <= 0)
			errx(ERR_RUN, "the direct read failed");
		nbytes += (uint64_t)cqe->res;
		io_uring_cqe_seen(&ring, cqe);
	}
	io_uring_queue_exit(&ring);
	return (double)nbytes / (double)(event_now_ns() - t0);
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double v[MAX_ROUNDS], int n)
{
	qsort(v, (size_t)n, sizeof(v[0]), compare_doubles);
	return v[n / 2];
}

/* Each round measures the whole table, so that a slow moment of the storage device
 * affects one round of many cells rather than all rounds of one cell. */
static void
bench_path(unsigned way, int rounds)
{
	static double gbs[NDEPTHS][NBLOCKS][MAX_ROUNDS], raw[MAX_ROUNDS];
	double bound, m;
	unsigned d, b, ndepths;
	int r;

	ndepths = ways[way].path == LOAD_PREAD ? 1 : NDEPTHS;
	for (r = 0; r < rounds; r++) {
		raw[r] = measure_bound_gbs();
		for (d = 0; d < ndepths; d++)
			for (b = 0; b < NBLOCKS; b++)
				gbs[d][b][r] = measure_load_gbs(ways[way].path,
				    ways[way].buffered, depths[d],
				    block_kib[b] * 1024);
	}
	bound = median(raw, rounds);
	printf("\n%s: GB/s (%% of the bound, %.2f)\ndepth", ways[way].name,
	    bound);
	for (b = 0; b < NBLOCKS; b++)
		printf("  %6u KiB ", block_kib[b]);
	for (d = 0; d < ndepths; d++) {
		printf("\n%5u", depths[d]);
		for (b = 0; b < NBLOCKS; b++) {
			m = median(gbs[d][b], rounds);
			printf("  %5.2f %3.0f%% ", m, m / bound * 100);
		}
	}
	printf("\n");
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 3;
	unsigned i;

	if (argc < 2 || rounds < 1 || rounds > MAX_ROUNDS)
		errx(ERR_USAGE, "usage: bench_load FILE [1..%d]", MAX_ROUNDS);
	file.fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	file.direct_fd = open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (file.fd < 0 || file.direct_fd < 0 || load_identify(&file) < 0)
		err(ERR_RUN, "%s", argv[1]);
	staging = map_pages(16 * 4 * MIB);	/* largest depth x block */
	for (i = 0; i < NITEMS(ways); i++)
		bench_path(i, rounds);
	return 0;
}
