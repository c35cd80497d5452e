/* coordinator/bench/roofline.h - what the machine itself can do, measured.
 * Owns: the buffer that is read, the loops chosen, every slice's numbers.
 * Called by bench, in slices between its runs: shared machines drift.
 *
 * Rates are of cores while they are ours (crew.h): a machine that is busy with
 * something else lowers the speed of a run, never the bound it is held
 * against.  roofline_share() says how busy it was. */
#ifndef COORDINATOR_BENCH_ROOFLINE_H
#define COORDINATOR_BENCH_ROOFLINE_H

#include "config/units.h"
#include "kernels/peak/peak.h"
#include "series.h"

/* What a test can be bound by.  The first are peaks of computing, in
 * operations a second (a multiply-add is two); the others bytes a second. */
enum roof {
	ROOF_INT8 = PEAK_INT8, ROOF_BF16 = PEAK_BF16, ROOF_F32 = PEAK_F32,
	ROOF_READ = PEAK_NKINDS, ROOF_DISK, ROOF_NKINDS
};
const char *roof_name(enum roof r);	/* "int8", ... as in the JSON */

/* One slice's bounds with all cores; 0 = not to be had or not measured. */
struct bounds {
	double per_s[ROOF_NKINDS];
	double share;		/* of the time, that the cores were ours */
};

/* A way to read: 2^way streams, so many bytes asked for ahead. */
struct read_shape {
	unsigned way;
	uint64_t ahead;
};

struct roofline;

/* For these cores: the buffer made, of a quarter of free_bytes at most (0 =
 * unknown), the shapes of reading compared, and every number of cores measured
 * once. */
int roofline_open(const struct cpuset *cpus, uint64_t free_bytes,
    uint64_t slice_ns, struct roofline **ret, struct err *reterr);
void roofline_close(struct roofline *r);

/* Before the first slice after a while in which much else was allocated.  The
 * buffer's pages may have been unmapped in the meantime, by a hypervisor's page
 * tables or a kernel that balances its nodes, and each would then be read once,
 * with a fault: a tenth of what memory gives was seen. */
int roofline_touch(struct roofline *r, struct err *reterr);

/* One slice of these kinds (bit n: enum roof n): all cores for ret, and one
 * smaller number of them in turn. */
int roofline_slice(struct roofline *r, unsigned kinds, struct bounds *ret,
    struct err *reterr);

/* roofline_disk.c: read these files directly, in order, and throw them away:
 * bytes a second.  *ret_direct 0: the file system cannot, and they came through
 * the page cache, dropped before.  A signal ends it. */
struct gguf;
int roofline_disk(const struct gguf *g, double *ret_bytes_s, int *ret_direct,
    struct err *reterr);

/* Over all slices so far: the median with n cores, 1 <= n <= ncores. */
unsigned roofline_ncores(const struct roofline *r);
double roofline_at(const struct roofline *r, enum roof kind, unsigned n);
/* "vpdpbusd zmm"; NULL = this machine has none. */
const char *roofline_how(const struct roofline *r, enum roof kind);
double roofline_clock_hz(const struct roofline *r);	/* the highest seen */
double roofline_share(const struct roofline *r);	/* CPU time / time */
uint64_t roofline_buffer_bytes(const struct roofline *r);
/* 0 = unknown. */
uint64_t roofline_cache_bytes(const struct roofline *r);
/* What reads best with all cores. */
struct read_shape roofline_shape(const struct roofline *r);

/* The bytes to read from: four times the last caches and 1 GiB at least, but
 * no more than a quarter of what is free (0 = unknown); for each core whole
 * steps of READ_STEP. */
#define READ_STEP	(2 * MIB)
uint64_t roofline_read_bytes(uint64_t cache_bytes, uint64_t free_bytes,
    unsigned ncores);

/* roofline_read.c, called by roofline.c. */
struct read_area;
int read_area_open(const struct peaks *p, const unsigned *cpu,
    unsigned ncores, uint64_t nbytes, struct read_area **ret,
    struct err *reterr);
void read_area_close(struct read_area *a);
int read_area_touch(struct read_area *a, struct err *reterr);
struct crew_time;
int read_area_slice(struct read_area *a, unsigned n, struct read_shape shape,
    uint64_t slice_ns, struct crew_time *ret, struct err *reterr);

#endif
