/* tests/check/kernels.h - shared by the parts of check_kernels and check_hexagon.
 * Owns the count of checks, the current case and the tolerances.  Only the files of
 * tests/check call it. */
#ifndef TESTS_CHECK_KERNELS_H
#define TESTS_CHECK_KERNELS_H

#include "kernels/kernels.h"

/* Tolerances are in units of 2^-24, one rounding; check/report.c has the table and
 * the reasons. */
enum tol_kernel { TOL_DENSE, TOL_QUANT, TOL_QUANT_16, TOL_OFFSET,
    TOL_OFFSET_16, TOL_RMS, TOL_GATE, TOL_ROPE, TOL_ATTN, TOL_CAP,
    TOL_TANH };

/* (fixed + per_k * k) roundings of a number of this magnitude. */
double tolerance(enum tol_kernel t, double k, double magnitude);

/* Name the current case, which is printed before each failure. */
void begin_case(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Count a check; print the message unless ok. */
void check(int ok, const char *fmt, ...) PRINTF_LIKE(2, 3);
void check_bytes(const void *got, const void *want, size_t nbytes,
    const char *name);
/* got, want, eps (n). */
void check_close(const float *got, const double *want, const double *eps,
    size_t n, const char *what);

/* Faults name the case. */
void report_faults(void);
/* Print the sums; returns the exit status. */
int report_end(void);

/* Check a table's matrix kernel of a weight type against definitions and the
 * reference (ref).  If done (a table that was checked before; NULL = none) has a
 * kernel of the same name, which differs in its prefetch policy only, compare with
 * that one instead. */
void check_mat(const struct kernels *ref, const struct kernels *table,
    const struct kernels *done, uint32_t type);

/* Check the other kernels of a table, except those that are the same in done (NULL =
 * no table). */
void check_rows(const struct kernels *ref, const struct kernels *k,
    const struct kernels *done);
void check_attentions(const struct kernels *ref, const struct kernels *k);

/* Print the speed of each kernel of ntables tables once; with a type, only those of
 * that weight type (any case), of "rows" or of "attn".  1 = there is no such kernel. */
int bench(const struct kernels *tables, uint32_t ntables, const char *type);

/* Parts of the benchmarks (check/speed*.c): the thread's CPU time in seconds; the
 * read bandwidth of one core over a buffer of bench_bytes. */
extern const uint64_t bench_bytes;
double now_s(void);
double bench_read_gbs(const void *buf);
void bench_attn(const struct kernels *k, void *data);
void bench_rows(const struct kernels *k);

#endif
