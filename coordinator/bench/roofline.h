/* coordinator/bench/roofline.h - measures the machine's peak rates.
 * Owns: the read buffer, the chosen loops, the results of all slices.  Called
 * by cmd/bench.c and run.c, which measures a slice between runs, because the
 * speed of shared machines drifts.
 *
 * Rates are per CPU time (team.h), so other load on the machine lowers the
 * speed of a run but not its bound.  roofline_share() reports the other
 * load. */
#ifndef COORDINATOR_BENCH_ROOFLINE_H
#define COORDINATOR_BENCH_ROOFLINE_H

#include "config/units.h"
#include "kernels/peak/peak.h"
#include "series.h"

/* The bounds of a test.  The first are peaks of computing, in operations per
 * second (a multiply-add is two); the others are bytes per second. */
enum roof {
	ROOF_INT8 = PEAK_INT8, ROOF_BF16 = PEAK_BF16, ROOF_F32 = PEAK_F32,
	ROOF_READ = PEAK_NKINDS, ROOF_DISK, ROOF_NKINDS
};
const char *roof_name(enum roof r);	/* as in the JSON: "int8", ... */

/* One slice's bounds with all cores; 0 = not supported or not measured. */
struct bounds {
	double per_s[ROOF_NKINDS];
	double share;		/* CPU time / time: 1 = no other load */
};

/* How memory is read: in 2^way streams, prefetching `ahead` bytes ahead (with
 * flags PEAK_READ_*). */
struct read_shape {
	unsigned way;
	uint64_t ahead;
};

struct roofline;

/* Allocate the buffer (at most a quarter of free_bytes; 0 = unknown), choose
 * the fastest read shapes, and measure once with each number of these cores. */
int roofline_open(const struct cpuset *cpus, uint64_t free_bytes,
    uint64_t slice_ns, struct roofline **ret, struct err *reterr);
void roofline_close(struct roofline *r);

/* Touch every page of the buffer.  Call it before the first slice after other
 * large allocations: a hypervisor or NUMA balancing may have unmapped the
 * buffer, and page faults would then make reads look ten times slower. */
int roofline_touch(struct roofline *r, struct err *reterr);

/* Measure one slice of these kinds (bit n: enum roof n), with all cores for ret
 * and with a smaller number of cores, a different one in each call. */
int roofline_slice(struct roofline *r, unsigned kinds, struct bounds *ret,
    struct err *reterr);

/* roofline_disk.c: read the model's files with O_DIRECT, in order, and discard
 * them.  *ret_direct 0: the file system has no O_DIRECT, and they were read
 * through the page cache, which was dropped before.  -EINTR: a signal came. */
struct gguf;
int roofline_disk(const struct gguf *g, double *ret_bytes_s, int *ret_direct,
    struct err *reterr);

/* Best of all slices so far with n cores, 1 <= n <= ncores: other load, and a
 * host that lends its cores to others, only make a slice slower. */
unsigned roofline_ncores(const struct roofline *r);
double roofline_at(const struct roofline *r, enum roof kind, unsigned n);
/* The bounds with all cores; that of the disk is 0. */
struct bounds roofline_best(const struct roofline *r);
/* The instruction used, such as "vpdpbusd zmm"; NULL = not supported. */
const char *roofline_how(const struct roofline *r, enum roof kind);
double roofline_clock_hz(const struct roofline *r);	/* highest seen */
double roofline_share(const struct roofline *r);	/* CPU time / time */
uint64_t roofline_buffer_bytes(const struct roofline *r);
/* 0 = unknown. */
uint64_t roofline_cache_bytes(const struct roofline *r);
/* The fastest read shape with all cores. */
struct read_shape roofline_shape(const struct roofline *r);

/* Size of the read buffer: four times the last-level caches, at least 1 GiB,
 * but at most a quarter of the free memory (0 = unknown).  Each core gets a
 * whole number of READ_STEP. */
#define READ_STEP	(2 * MIB)
uint64_t roofline_read_bytes(uint64_t cache_bytes, uint64_t free_bytes,
    unsigned ncores);

/* roofline_read.c: the read buffer, for roofline.c only.  read_area_slice()
 * measures n cores that read with this shape. */
struct read_area;
int read_area_open(const struct peaks *p, const unsigned *cpu,
    unsigned ncores, uint64_t nbytes, struct read_area **ret,
    struct err *reterr);
void read_area_close(struct read_area *a);
int read_area_touch(struct read_area *a, struct err *reterr);
struct team_time;
int read_area_slice(struct read_area *a, unsigned n, struct read_shape shape,
    uint64_t slice_ns, struct team_time *ret, struct err *reterr);

#endif
