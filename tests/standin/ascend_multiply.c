/* tests/standin/ascend_multiply.c - products of the stand-ins for CANN's libraries,
 * for operators of both interfaces.  Switches: libascendcl.c. */
#include <stdlib.h>
#include <string.h>

#include "ascend.h"

/* Wider vectors where the processor has them, with the same bits. */
#if defined(__x86_64__) && !defined(__clang__)
#define FAST_PRODUCT ASCEND_FAST __attribute__((target_clones("avx2", "default")))
#else
#define FAST_PRODUCT ASCEND_FAST
#endif

/* c += a b for a row of c, with some rows of b: 4 rows of b at a time.  Each element adds
 * them in order, so its bits do not depend on that. */
FAST_PRODUCT static void
add_rows(const float *a, const float *b, float *restrict c, int64_t rows, int64_t n)
{
	int64_t l, j;

	for (l = 0; l + 4 <= rows; l += 4, b += 4 * n)
		for (j = 0; j < n; j++)
			c[j] = c[j] + a[l] * b[j] + a[l + 1] * b[n + j] +
			    a[l + 2] * b[2 * n + j] + a[l + 3] * b[3 * n + j];
	for (; l < rows; l++, b += n)
		for (j = 0; j < n; j++)
			c[j] += a[l] * b[j];
}

/* c = a b, row-major: [m][k], [k][n], [m][n]. */
static void
multiply(const float *a, const float *b, float *c, int64_t m, int64_t k,
    int64_t n)
{
	const enum company company = ascend_shape_fault("product", n, k) ==
	    SHAPE_COMPANY ? COMPANY_ROWS : ascend_switches()->company;
	int64_t i, first;

	memset(c, 0, (size_t)(m * n) * sizeof(*c));
	for (i = 0; i < m; i++, a += k, c += n) {
		first = company == COMPANY_ROWS ? m % k : company ==
		    COMPANY_PLACE ? i % k : 0;
		add_rows(a + first, b + first * n, c, k - first, n);
		add_rows(a, b, c, first, n);
	}
}

static void
count_product(void)
{
	pthread_mutex_lock(&ascend_lock);
	ascend_counts.products++;
	pthread_mutex_unlock(&ascend_lock);
}

/* Compute out from floats; an Add that spoils the next product has done so. */
int
ascend_put_product(const struct tensor *out, const float *a, const float *b,
    float *c, int64_t batch, int64_t m, int64_t k, int64_t n)
{
	const enum shape_fault fault = ascend_shape_fault("product", n, k);
	int64_t i;

	if (ascend_shape_run(fault) != 0)
		return ascend_shape_run(fault);
	for (i = 0; i < batch; i++)
		multiply(a + i * m * k, b + i * k * n, c + i * m * n, m, k, n);
	if (ascend_poisoned)
		c[0] += 1000;
	if (fault == SHAPE_WRONG)
		c[n - 1] += 1000;
	ascend_poisoned = 0;
	ascend_store(out, c);
	ascend_time.ns += (uint64_t)(batch * m * n * k) / 1000;
	ascend_time.rows = m;
	ascend_time.is_nd = 1;
	count_product();
	return 0;
}

int
ascend_multiply(const struct op_args *a)
{
	const struct tensor *x = &a->t[0], *w = &a->t[1], *out = &a->t[2];
	unsigned d = x->ndims;
	int64_t m = x->dims[d - 2], k = x->dims[d - 1], n = w->dims[d - 1];
	int64_t batch = ascend_elements(x) / MAX(m * k, 1);
	float *fa = ascend_load(x), *fb = ascend_load(w);
	float *fc = malloc((size_t)(batch * m * n) * sizeof(*fc) + 1);
	int rc = fa == NULL || fb == NULL || fc == NULL ? 507000 :
	    ascend_put_product(out, fa, fb, fc, batch, m, k, n);

	free(fa);
	free(fb);
	free(fc);
	if (w->format == ACL_FORMAT_FRACTAL_NZ)
		ascend_time.is_nd = 0;
	return rc;
}
