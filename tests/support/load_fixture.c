/* tests/support/load_fixture.c - see load_fixture.h. */
#include "load_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

const enum load_path load_paths[] = { LOAD_URING, LOAD_URING_PLAIN,
	LOAD_PREAD };

static uint8_t
byte_at(uint32_t file, uint64_t offset)
{
	return (uint8_t)(((offset + file * 7919) *
	    UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

int
uring_is_allowed(void)
{
	struct io_uring ring;

	if (io_uring_queue_init(2, &ring, 0) < 0)
		return 0;
	io_uring_queue_exit(&ring);
	return 1;
}

/* Is locked memory limited?  Not for root, except in a container.  The limit is
 * shared by all processes of a user, and the kernel returns a ring's memory
 * only some time after its end. */
static int
locked_memory_is_limited(void)
{
	struct iovec iov = { .iov_base = NULL };
	struct rlimit lim;
	struct io_uring ring;
	int rc;

	if (getrlimit(RLIMIT_MEMLOCK, &lim) < 0 || lim.rlim_cur > GIB)
		return 0;
	if (io_uring_queue_init(2, &ring, 0) < 0)
		return 1;
	iov.iov_len = (size_t)lim.rlim_cur + PAGE;
	iov.iov_base = mmap(NULL, iov.iov_len, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(iov.iov_base, MAP_FAILED);
	rc = io_uring_register_buffers(&ring, &iov, 1);
	io_uring_queue_exit(&ring);
	munmap(iov.iov_base, iov.iov_len);
	return rc < 0;
}

/* Print a limit of this machine; repeats are dropped. */
static void
print_note(const char *text)
{
	static const char *last;

	if (text != last)
		printf("note: %s\n", text);
	last = text;
}

void
fixture_check_path(enum load_path asked, const struct load_stats *st)
{
	enum load_path want = asked;

	if (asked != LOAD_PREAD && st->path == LOAD_PREAD &&
	    !uring_is_allowed()) {
		print_note("no io_uring here: pread takes its place");
		want = LOAD_PREAD;
	} else if (st->path > asked && locked_memory_is_limited()) {
		print_note("too little lockable memory for all of io_uring");
		want = st->path;
	}
	ck_assert_int_eq(st->path, want);
	ck_assert_int_eq(st->registered, want == LOAD_URING);
}

struct load_item *
fixture_add(struct load_fixture *fx, uint32_t file, uint64_t offset,
    uint32_t nrows, uint32_t row_bytes, uint32_t row_step)
{
	struct load_item *it = &fx->item[fx->nitems];

	ck_assert_uint_lt(fx->nitems, MAX_ITEMS);
	*it = (struct load_item){ .ext = { .offset = offset, .file = file,
		.nbytes = (uint64_t)nrows * row_bytes, .ncols = row_bytes,
		.nrows = nrows }, .row_step = row_step };
	snprintf(it->ext.name, sizeof(it->ext.name), "blk.%u.weight",
	    fx->nitems++);
	return it;
}

void
fixture_make_file(struct load_fixture *fx, uint32_t file, uint64_t nbytes)
{
	struct load_file *f = &fx->file[file];
	char path[128];
	uint32_t i;
	int fd;

	snprintf(path, sizeof(path), "%s/%u.gguf", t_tmpdir(), file);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)nbytes), 0);
	for (i = 0; i < fx->nitems; i++) {
		const struct extent *x = &fx->item[i].ext;
		uint8_t *buf;
		uint64_t k;

		if (x->file != file)
			continue;
		ck_assert_ptr_nonnull(buf = malloc(x->nbytes));
		for (k = 0; k < x->nbytes; k++)
			buf[k] = byte_at(file, x->offset + k);
		ck_assert_int_eq(pwrite(fd, buf, x->nbytes, (off_t)x->offset),
		    (ssize_t)x->nbytes);
		free(buf);
	}
	ck_assert_int_eq(fdatasync(fd), 0);
	*f = (struct load_file){ .fd = fd,
		.direct_fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC),
		.mem_align = 512, .off_align = 512 };
	snprintf(f->name, sizeof(f->name), "%u.gguf", file);
	ck_assert_int_eq(load_identify(f), 0);
	if (f->direct_fd < 0)
		print_note("no direct reads in the temporary folder");
	fx->nfiles = MAX(fx->nfiles, file + 1);
}

void
load_fixture_close(struct load_fixture *fx)
{
	uint32_t i;

	load_set_read_hook(NULL, NULL);
	for (i = 0; i < fx->nfiles; i++) {
		close(fx->file[i].fd);
		if (fx->file[i].direct_fd >= 0)
			close(fx->file[i].direct_fd);
	}
}

void
fixture_disable_direct(struct load_fixture *fx)
{
	uint32_t i;

	for (i = 0; i < fx->nfiles; i++) {
		if (fx->file[i].direct_fd >= 0)
			close(fx->file[i].direct_fd);
		fx->file[i].direct_fd = -1;
	}
}

static void
swap_items(struct load_item *a, struct load_item *b)
{
	struct load_item t = *a;

	*a = *b;
	*b = t;
}

void
load_fixture_open_random(struct load_fixture *fx)
{
	uint32_t nfiles = 1 + (uint32_t)t_rand_below(MAX_FILES), f, i, n;
	uint64_t end[MAX_FILES];

	memset(fx, 0, sizeof(*fx));
	for (f = 0; f < nfiles; f++) {
		uint64_t at = t_rand_below(2) ? 0 : t_rand_below(9000);

		for (n = 1 + (uint32_t)t_rand_below(20); n > 0; n--) {
			uint64_t gap = t_rand_below(10);
			const struct load_item *it;

			at += gap < 4 ? 0 : gap < 8 ? t_rand_below(64) :
			    t_rand_below(20000);
			it = fixture_add(fx, f, at, 1 + (uint32_t)t_rand_below(
			    t_rand_below(3) ? 60 : 2), 1 + (uint32_t)
			    t_rand_below(3000), 1 + (uint32_t)t_rand_below(16));
			if (t_rand_below(10) == 0)	/* tied: used twice */
				fixture_add(fx, f, at, 1 + (uint32_t)
				    t_rand_below(it->ext.nrows),
				    it->ext.ncols, 3);
			at += it->ext.nbytes;
		}
		end[f] = at + (t_rand_below(2) ? 0 : t_rand_below(10000));
	}
	for (i = fx->nitems; i > 1; i--)
		swap_items(&fx->item[i - 1], &fx->item[t_rand_below(i)]);
	for (f = 0; f < nfiles; f++)
		fixture_make_file(fx, f, end[f]);
}

void
load_fixture_open_plain(struct load_fixture *fx, uint32_t n)
{
	memset(fx, 0, sizeof(*fx));
	fixture_add(fx, 0, 4096 + 32, n, 1024, 8);
	fixture_make_file(fx, 0, 4096 + 32 + n * (uint64_t)1024);
}

void
forbid_uring(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_enter, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO |
		    ((uint32_t)error & SECCOMP_RET_DATA)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = NITEMS(code), .filter = code };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		print_note("no seccomp here: io_uring stays allowed");
}

void
fixture_touch(const struct load_fixture *fx)
{
	const struct load_file *f = &fx->file[0];
	uint8_t b = byte_at(0, f->nbytes - 1);

	ck_assert_int_eq(pwrite(f->fd, &b, 1, (off_t)f->nbytes - 1), 1);
}

uint64_t
fixture_resident_pages(const struct load_file *f)
{
	uint64_t npages = DIV_UP(f->nbytes, PAGE), n = 0, i;
	unsigned char *vec = malloc(npages);
	void *map = mmap(NULL, f->nbytes, PROT_READ, MAP_SHARED, f->fd, 0);

	ck_assert_ptr_nonnull(vec);
	ck_assert_ptr_ne(map, MAP_FAILED);
	ck_assert_int_eq(mincore(map, f->nbytes, vec), 0);
	for (i = 0; i < npages; i++)
		n += vec[i] & 1;
	munmap(map, f->nbytes);
	free(vec);
	return n;
}

int
fixture_sink(void *arg, uint32_t item, uint32_t row0, uint32_t nrows,
    const void *src, struct err *reterr)
{
	struct load_fixture *fx = arg;
	const struct load_item *it = &fx->item[item];
	const uint8_t *p = src;
	uint64_t row_bytes = it->ext.nbytes / it->ext.nrows, k;

	ck_assert_uint_lt(item, fx->nitems);
	ck_assert_uint_eq(row0, fx->next_row[item]);
	ck_assert_uint_gt(nrows, 0);
	ck_assert_uint_le(nrows, it->ext.nrows - row0);
	if (row0 + nrows != it->ext.nrows)
		ck_assert_uint_eq(nrows % it->row_step, 0);
	for (k = 0; k < nrows * row_bytes; k++)
		if (p[k] != byte_at(it->ext.file, it->ext.offset +
		    row0 * row_bytes + k))
			ck_abort_msg("item %u row %u byte %" PRIu64, item,
			    row0, k);
	fx->next_row[item] += nrows;
	fx->sunk_bytes += nrows * row_bytes;
	if (fx->nsunk++ == 0 && fx->truncate_to != 0)
		ck_assert_int_eq(ftruncate(fx->file[0].fd,
		    (off_t)fx->truncate_to), 0);
	if (fx->nsunk == 1 && fx->forbid_errno != 0)
		forbid_uring(fx->forbid_errno);
	if (fx->touch)
		fixture_touch(fx);
	if (fx->count_resident && fx->nsunk > 1)
		fx->most_resident = MAX(fx->most_resident,
		    fixture_resident_pages(&fx->file[0]));
	if (fx->sink_rc != 0)
		return err_set(reterr, ERR_FIT, fx->sink_rc,
		    "the sink is full");
	return 0;
}

static void
check_progress(void *arg, uint64_t done_bytes)
{
	struct load_fixture *fx = arg;

	ck_assert_uint_gt(done_bytes, fx->progress_bytes);
	ck_assert_uint_eq(done_bytes, fx->sunk_bytes);
	fx->progress_bytes = done_bytes;
	fx->nprogress++;
}

static unsigned
count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

void *
guarded_pages(uint64_t nbytes)
{
	uint8_t *p = mmap(NULL, nbytes + PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(mprotect(p + nbytes, PAGE, PROT_NONE), 0);
	return p;
}

/* Nothing may write to the staging area after load_run() has returned. */
static void
check_no_late_write(uint8_t *staging, uint64_t nbytes)
{
	uint64_t k;

	memset(staging, 0xa5, nbytes);
	usleep(20000);
	for (k = 0; k < nbytes; k++)
		if (staging[k] != 0xa5)
			ck_abort_msg("written after the load: byte %" PRIu64,
			    k);
}

int
fixture_load(struct load_fixture *fx, const struct load_conf *lc,
    struct err *reterr)
{
	uint64_t nbytes = load_staging_bytes(lc, fx->item, fx->nitems);
	unsigned nfds = count_fds();
	void *staging = guarded_pages(nbytes);
	int rc;

	memset(fx->next_row, 0, sizeof(fx->next_row));
	fx->sunk_bytes = fx->progress_bytes = 0;
	fx->nsunk = fx->nprogress = 0;
	memset(reterr, 0, sizeof(*reterr));
	rc = load_run(lc, fx->file, fx->nfiles, fx->item, fx->nitems, staging,
	    nbytes, fixture_sink, fx, check_progress, fx, &fx->stats, reterr);
	ck_assert_uint_eq(count_fds(), nfds);
	if (rc < 0)
		check_no_late_write(staging, nbytes);
	munmap(staging, nbytes + PAGE);
	return rc;
}

void
fixture_check_complete(const struct load_fixture *fx)
{
	uint64_t total = 0;
	uint32_t i;

	for (i = 0; i < fx->nitems; i++) {
		ck_assert_uint_eq(fx->next_row[i], fx->item[i].ext.nrows);
		total += fx->item[i].ext.nbytes;
	}
	ck_assert_uint_eq(fx->progress_bytes, total);
	ck_assert_uint_eq(fx->stats.file_bytes, total);
}

struct load_conf
random_load_conf(enum load_path path)
{
	return (struct load_conf){ .depth = 1 + (uint32_t)t_rand_below(8),
		.block_bytes = PAGE << t_rand_below(6), .path = path };
}

int64_t
read_with_faults(void *arg, int fd, void *buf, uint64_t nbytes, uint64_t offset)
{
	struct read_faults *t = arg;
	int direct = fd == t->fx->file[0].direct_fd;
	ssize_t n;

	if (direct) {
		ck_assert_uint_eq((uintptr_t)buf % 512, 0);
		ck_assert_uint_eq(nbytes % 512, 0);
		ck_assert_uint_eq(offset % 512, 0);
	}
	if (++t->nreads == t->fail_at) {
		t->offset = offset;
		t->nbytes = nbytes;
		return t->fail_res;
	}
	if (direct && t->direct_res < 0)
		return t->direct_res;
	if (t->random && t_rand_below(4) == 0)
		return t_rand_below(2) ? -EAGAIN : -EINTR;
	if ((n = pread(fd, buf, nbytes, (off_t)offset)) < 0)
		return -errno;
	if (t->random && n > 0 && t_rand_below(2) == 0) {
		size_t keep = 1 + t_rand_below((uint64_t)n);

		memset((uint8_t *)buf + keep, 0xee, (size_t)n - keep);
		n = (ssize_t)keep;
	}
	return n;
}
