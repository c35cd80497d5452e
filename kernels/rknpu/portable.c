/* kernels/rknpu/portable.c - sums in portable C: the definition, and for cores that
 * have no file of their own. */
#include <string.h>

#include "sums.h"

SIMD void
dot_portable(int32_t sum[static SUMS_COLS], const int8_t *w, uint64_t step,
    const struct x_part *x, uint32_t ntiles, uintptr_t ahead UNUSED)
{
	uint32_t c, t, i;

	memset(sum, 0, SUMS_COLS * sizeof(*sum));
	for (t = 0; t < ntiles; t++, w += step)
		for (c = 0; c < SUMS_COLS; c++)
			for (i = 0; i < NPU_ALIGN; i++)
				sum[c] += w[c * NPU_ALIGN + i] *
				    x->x[t * NPU_ALIGN + i];
}

NPU_SUMS(portable, dot_portable, 1)
