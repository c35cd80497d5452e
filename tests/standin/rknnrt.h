/* tests/standin/rknnrt.h - the parts of the stand-in for librknnrt.so.
 * Owns: what librknnrt.c and rknnrt_run.c (contexts), rknnrt_conf.c (switches,
 * faults, counters), rknnrt_mem.c (memory, domains, caches) and
 * rknnrt_product.c (chips, layouts, arithmetic) share.  The tables and formulas
 * are written a second time, apart from those of worker/rknpu. */
#ifndef TESTS_STANDIN_RKNNRT_H
#define TESTS_STANDIN_RKNNRT_H

#include <pthread.h>

#include "config/base.h"
#include "worker/rknpu/api.h"
#include "rknnrt_counts.h"

#define EXPORT	__attribute__((visibility("default")))

#define RELEASE(major, minor, patch) \
	(((major) * 100 + (minor)) * 100 + (patch))

/* --- switches --- */

enum query { QUERY_NONE, QUERY_VERSION, QUERY_ALL };

struct list {				/* of numbers; n = 0: none */
	unsigned n;
	int v[16];
	int all;
};

struct chip {
	const char *name;
	int ncores;
	uint32_t types;			/* bit t: product t */
	/* By bits of an element: 4, 8, 16.  0 = no such type. */
	int a_group[3], b_cols[3], b_rows[3];
	int segment_k;
};

struct switches {
	const struct chip *chip;
	int release;			/* RELEASE() */
	char version[64], driver[32];
	int coherent;
	struct list types, abort_k, zero, wrong;
	int has_types, has_abort_k;	/* else the chip's, the usual */
	int abort_9, segments, max_k;
	uint64_t domain_bytes, largest_bytes;
	uint64_t internal_bytes;	/* UINT64_MAX = by the shape */
	unsigned fds;
	enum query query;
	unsigned time;			/* scale of the model; 0 = none */
	unsigned switch_us;
};

/* Read once. */
const struct switches *switches(void);
int list_has(const struct list *l, int v);

/* --- faults and counters (rknnrt_conf.c) --- */

/* One lock for all tables; not held while a product is computed. */
extern pthread_mutex_t rknn_lock;
extern struct rknn_standin_counts rknn_counts;

/* Is a fault injected into this call?  Returns its code, or 0; may hang or
 * abort.  Called without the lock. */
int injected(const char *call);

/* The library's own way to complain: a line on stderr. */
PRINTF_LIKE(1, 2) void complain(const char *fmt, ...);
/* Complain and end the process, as the library does. */
PRINTF_LIKE(1, 2) NORETURN void fatal_error(const char *fmt, ...);
/* Count a misuse.  Called with the lock. */
PRINTF_LIKE(1, 2) void misused(const char *fmt, ...);

/* Other processes with an NPU must not be there when a domain but 0 is used:
 * the kernel panics. */
void check_alone(int domain);

/* --- memory (rknnrt_mem.c) --- */

struct buffer;				/* an allocation */

struct view {				/* behind a struct rknn_tensor_mem */
	struct buffer *buf;
	uint64_t offset, nbytes, serial;
};

/* Find the view behind mem; 0 = none, a misuse.  With the lock. */
int find_view(const struct rknn_tensor_mem *mem, struct view *ret);
int view_is_alive(const struct view *v);
int view_domain(const struct view *v);
void *view_device(const struct view *v);	/* the NPU's copy */

/* Charge a domain; 0 = full.  With the lock. */
int charge_domain(int domain, uint64_t nbytes);
void release_domain(int domain, uint64_t nbytes);
uint64_t page_up(uint64_t nbytes);

/* Attach a domain to the NPU for a job, waiting for those of another; -1 =
 * timeout.  Called without the lock. */
int attach_domain(int domain);
void detach_domain(void);

int do_mem_sync(uint64_t ctx, struct rknn_tensor_mem *mem, int mode);
struct rknn_tensor_mem *do_create_mem2(uint64_t ctx, uint64_t nbytes,
    uint64_t flags);

/* --- products (rknnrt_product.c) --- */

const struct chip *find_chip(const char *name);

struct product {			/* of one shape of a context */
	int type, m, k, n;
	int ta, tb, tc;			/* tensor types */
	int b_layout, ac_layout;
	float scale[3];			/* of A, B, C; product 3 */
};

/* Check type, alignment and layouts; fill types.  Returns a code. */
int check_product(const struct switches *sw,
    const struct rknn_matmul_info *info, struct product *ret);
void fill_attr(const struct product *p, char matrix,
    struct rknn_matmul_tensor_attr *ret);
uint64_t tensor_bytes(const struct product *p, char matrix);

/* Compute c; -1 = no memory. */
int multiply(const struct product *p, const void *a, const void *b, void *c);

/* B of another layout to native. */
void convert_b(const struct product *p, const void *in, int bytes_of_int4,
    void *out);

/* Time of a run by the model. */
uint64_t model_ns(const struct product *p);

/* --- contexts (librknnrt.c, rknnrt_run.c) --- */

enum { A, B, C };
#define MATRIX_NAME(m)	("ABC"[m])
enum { MAX_SHAPES = 32 };

struct context {
	uint64_t id;			/* 0 = free */
	int domain, quant_b, mask;
	struct product shape[MAX_SHAPES];
	int nshapes, current;
	struct view bound[3];		/* buf NULL = not yet */
	uint8_t *converted;		/* B, native, if it was not */
	uint64_t internal_bytes;
	int running, has_scales;
};

/* NULL = no such context; must_find() counts a misuse.  With the lock. */
struct context *find_context(uint64_t id);
struct context *must_find(const char *call, uint64_t id);

/* The domain of a context, -1 = no such context.  With the lock. */
int context_domain(uint64_t ctx);

#endif
