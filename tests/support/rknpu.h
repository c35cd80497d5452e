/* tests/support/rknpu.h - products through the stand-in for librknnrt.so
 * (tests/standin/librknnrt.c), one process for each setting of its switches. */
#ifndef TESTS_SUPPORT_RKNPU_H
#define TESTS_SUPPORT_RKNPU_H

#include "t.h"
#include "worker/rknpu/layout.h"
#include "worker/rknpu/lib.h"
#include "tests/standin/rknnrt_counts.h"

/* Run fn in a child process whose stand-in has these switches.  Returns the
 * status of waitpid(). */
int rk_child(const char *switches, void (*fn)(void));

/* Run fn in a child process: it must end by itself, with no misuse counted and
 * nothing left. */
#define rk_run(switches, fn) \
	ck_assert_msg(rk_child(switches, fn) == 0, "with %s", switches)

/* Set the switches and load the stand-in, so that dlopen("librknnrt.so") finds
 * it.  Once in a process. */
void rk_load_standin(const char *switches);

/* The library, loaded; the counters of the stand-in. */
const struct rknn_lib *rk_lib(void);
struct rknn_standin_counts rk_counts(void);

const struct rknpu_soc *rk_soc(const char *name);

/* A product with memory, bound and ready to run. */
struct rk_product {
	const struct rknpu_soc *soc;
	struct rknn_matmul_info info;
	struct rknn_matmul_io_attr attr;
	struct rknpu_layout layout[3];
	struct rknn_tensor_mem *mem[3];
	uint64_t ctx;
	int8_t *a, *b;			/* row-major: integers, also of floats */
	double *sum;			/* [M][N] the exact result */
};

/* Create a context; returns its code.  On success also memory, and random A and
 * B in the program's memory. */
int rk_open(struct rk_product *p, const char *soc,
    const struct rknn_matmul_info *info);
/* Put matrix RKNPU_A or RKNPU_B into its memory. */
void rk_put(struct rk_product *p, enum rknpu_matrix matrix);
void rk_sync(struct rk_product *p, enum rknpu_matrix matrix, int mode);
int rk_bind(struct rk_product *p, enum rknpu_matrix matrix);
/* Compare C, as the program sees it, with the exact result. */
int rk_is_right(const struct rk_product *p);
/* Put, sync and bind everything; run; sync C. */
int rk_multiply(struct rk_product *p);
void rk_close(struct rk_product *p);

/* --- tests of the stand-in --- */

/* A product of int8 with native matrices, in a domain; one of 2 x k x 64 with
 * native B.  Both are ready to run. */
void rk_open_native(struct rk_product *p, int domain);
void rk_open_type(struct rk_product *p, int type, uint32_t k);
/* Create a context and destroy it; returns the first one's code. */
int rk_create(int type, int m, int k, int n, int b_layout);
/* Run, and sync C. */
int rk_run_again(struct rk_product *p);
/* Change A, and the exact result with it. */
void rk_double_a(struct rk_product *p);

/* Run fn in a child process, which must end by abort(). */
void rk_expect_abort(const char *switches, void (*fn)(void));

/* Expect these misuses, and end without check_clean(). */
#define RK_MISUSED(n, text) do {					\
	struct rknn_standin_counts c_ = rk_counts();			\
	ck_assert_msg(c_.misuses == (n) && strstr(c_.first_misuse,	\
	    (text)) != NULL, "%u misuses: %s", c_.misuses,		\
	    c_.first_misuse);						\
	_exit(0);							\
} while (0)

#endif
