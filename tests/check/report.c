/* tests/check/report.c - tolerances of check_kernels with their reasons; counts and
 * prints results. */
#include "kernels.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Tolerances, in units of U = 2^-24, one rounding ---- */

#define U	0x1p-24

static const struct {
	double fixed, per_k;	/* roundings: fixed + per_k * k */
	const char *magnitude;
	const char *reason;
} tol[] = {
	[TOL_DENSE] = { 2, 1, "sum |w x|",
	    "any order of k fused or separate sums: Higham's gamma(k)" },
	[TOL_QUANT] = { 4, 1 / 32.0, "sum |w x|",
	    "dots of 32 are exact integers; one product of scales and one sum "
	    "per block" },
	[TOL_QUANT_16] = { 4, 1 / 16.0, "sum |w x|",
	    "the same with groups of 16" },
	[TOL_OFFSET] = { 6, 2 / 32.0, "sum |scale q x| + |offset x|",
	    "one more product and sum for the offset, which may cancel the "
	    "other part" },
	[TOL_OFFSET_16] = { 6, 2 / 16.0, "sum |scale q x| + |offset x|",
	    "the same with groups of 16" },
	[TOL_RMS] = { 5, 0, "|y|",
	    "the sum is in double; scale, x * scale and * w are rounded once "
	    "each" },
	[TOL_GATE] = { 10, 6, "|y|",
	    "exp within 2 ulp (4 U), then a sum, a quotient and up to two "
	    "products; k = |z| of exp(z): roundings of z (6 for gelu) become "
	    "a relative error of the result" },
	[TOL_ROPE] = { 3, 0, "|a cos| + |b sin|",
	    "two products and a sum" },
	[TOL_ATTN] = { 24, 2, "max |v|",
	    "a score's error, k * U * sum |q k| scale, becomes a relative "
	    "error of its weight; then exp and the sums over the keys" },
	[TOL_CAP] = { 48, 0, "softcap",
	    "tanh computed from exp has an error of some ulp of 1, not of its "
	    "value" },
	[TOL_TANH] = { 10, 0, "|y|",
	    "tanh within 4 ulp (8 U) of a quotient, whose rounding error it "
	    "does not amplify, then a product" }
};

double
tolerance(enum tol_kernel t, double k, double magnitude)
{
	/* Numbers below the smallest normal one have less precision. */
	return (tol[t].fixed + tol[t].per_k * k) * U * magnitude + 0x1p-126;
}

/* ---- Counting and reporting ---- */

static unsigned npassed, nfailed;
static char current_case[256];

void
begin_case(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(current_case, sizeof(current_case), fmt, ap);
	va_end(ap);
}

void
check(int ok, const char *fmt, ...)
{
	va_list ap;

	if (ok) {
		npassed++;
		return;
	}
	if (nfailed++ > 40)	/* enough to show a pattern */
		return;
	printf("FAIL %s: ", current_case);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static void
on_segv(int sig)
{
	static const char text[] = "\naccess out of bounds in: ";

	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0 ||
	    write(STDOUT_FILENO, current_case, strlen(current_case)) < 0 ||
	    write(STDOUT_FILENO, "\n", 1) < 0)
		_exit(2);
	signal(sig, SIG_DFL);
	raise(sig);
}

void
check_bytes(const void *got, const void *want, size_t nbytes, const char *name)
{
	check(memcmp(got, want, nbytes) == 0, "%s: the bits differ", name);
}

void
check_close(const float *got, const double *want, const double *eps, size_t n,
    const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) <= eps[i]))
			break;
	check(i == n, "%s[%zu]: got %.9g, want %.9g +- %.3g", name, i,
	    i < n ? got[i] : 0.0, i < n ? want[i] : 0.0, i < n ? eps[i] : 0.0);
}

void
report_faults(void)
{
	signal(SIGSEGV, on_segv);
	signal(SIGBUS, on_segv);
}

int
report_end(void)
{
	printf("%u passed, %u failed\n", npassed, nfailed);
	return nfailed ? EXIT_FAILURE : EXIT_SUCCESS;
}
