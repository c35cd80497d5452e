/* tests/check/kernels.h - what the parts of check_kernels share.
 * Owns: the count of checks, the case now running, the tolerances.  Called by
 * check_*.c only. */
#ifndef TESTS_CHECK_KERNELS_H
#define TESTS_CHECK_KERNELS_H

#include "kernels/kernels.h"

/* All tolerances are in units of 2^-24, one rounding; the table and its
 * reasons are in check/report.c. */
enum tol_kernel { TOL_DENSE, TOL_QUANT, TOL_QUANT_16, TOL_OFFSET,
    TOL_OFFSET_16, TOL_RMS, TOL_GATE, TOL_ROPE, TOL_ATTN, TOL_CAP,
    TOL_TANH };

/* (fixed + per_k * k) roundings of of_what. */
double tolerance(enum tol_kernel t, double k, double of_what);

/* Name the case now running: printed before what fails in it. */
void begin(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Count ok; print the message if it is not. */
void check(int ok, const char *fmt, ...) PRINTF_LIKE(2, 3);
void check_bytes(const void *got, const void *want, size_t nbytes,
    const char *what);
/* got, want, eps (n). */
void check_close(const float *got, const double *want, const double *eps,
    size_t n, const char *what);

/* Faults name the case. */
void report_faults(void);
/* The last line; the exit status. */
int report_end(void);

/* A table's matrix kernel, against the reference (ref) and definitions; one
 * that done (NULL = nothing) has by the same name, and that only reads memory in
 * another way, against that. */
void check_mat(const struct kernels *ref, const struct kernels *table,
    const struct kernels *done, uint32_t type);

/* All others of a table, but for those that are the same in done (NULL =
 * none are). */
void check_rows(const struct kernels *ref, const struct kernels *k,
    const struct kernels *done);
void check_attentions(const struct kernels *ref, const struct kernels *k);

/* Speeds of all kernels of ntables tables, each once; of one type (its name,
 * any case) or of "rows" when type is not NULL.  1 if there is no such
 * kernel. */
int bench(const struct kernels *tables, uint32_t ntables, const char *type);

/* check/speed.c's, for its parts: this thread's CPU time; the read bandwidth
 * of one core over a buffer of bench_bytes. */
extern const uint64_t bench_bytes;
double now_s(void);
double bench_read_gbs(const void *buf);
void bench_attn(const struct kernels *k, void *data);
void bench_rows(const struct kernels *k);

#endif
