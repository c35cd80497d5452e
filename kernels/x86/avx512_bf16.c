/* kernels/x86/avx512_bf16.c - BF16 weights for x86-64 cores whose dot products
 * of bfloat16 have the throughput of float multiplications: twice the
 * products.
 *
 * Any tile from 2 x 6 to 3 x 8 reaches the peak. */
enum { FLOAT_NV = 2, FLOAT_NT = 8 };
#define EACH_FLOAT_NT(m, a, b) \
	m(a, b, 1) m(a, b, 2) m(a, b, 3) m(a, b, 4) m(a, b, 5) m(a, b, 6) \
	m(a, b, 7) m(a, b, 8)
#define BF16_PAIRS
#define KERNEL_SUFFIX	"_avx512_bf16"

#include "kernels/matmul/gemm_float.h"

static void
round_bf16(uint16_t *dst, const float *x, uint32_t k)
{
	uint16_t tail[SIMD_VL];
	uint32_t i;

	for (i = 0; i + SIMD_VL <= k; i += SIMD_VL)
		vf_to_bf16(dst + i, vf_load(x + i));
	if (i == k)
		return;
	vf_to_bf16(tail, vf_load_n(x + i, k - i));
	memcpy(dst + i, tail, act_bytes(ACT_BF16, k - i));
}

void
kernels_init_avx512_bf16(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "avx512_bf16";
	k->round_bf16 = round_bf16;
	gemm_float_init(k, cpu_flags);
}
