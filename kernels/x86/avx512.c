/* kernels/x86/avx512.c - kernels for x86-64 cores with AVX-512 (F, BW, DQ, VL)
 * and VNNI.
 *
 * 32 registers: a panel of 32 rows by 7 rows of activations takes 14
 * accumulators of integers, 14 of floats, two weights and one activation.
 * Other shapes that fit (2 x 6, 4 x 3, 1 x 12) are slower. */
enum { PANEL_NV = 2, TILE_NT = 7 };
#define EACH_TILE_NT(m, a, b) \
	m(a, b, 2) m(a, b, 3) m(a, b, 4) m(a, b, 5) m(a, b, 6) \
	m(a, b, 7)
enum { FLOAT_NV = 2, FLOAT_NT = 8 };
#define EACH_FLOAT_NT(m, a, b) \
	m(a, b, 1) EACH_TILE_NT(m, a, b) m(a, b, 8)
#define KERNEL_SUFFIX	"_avx512"
#define DOT_HEADER		"kernels/matmul/dot_vnni.h"

#include "kernels/attn/attn.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/gemm_float.h"
#include "kernels/rows/rows.h"

void
kernels_init_avx512(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "avx512";
	matmul_init(k, cpu_flags);
	gemm_float_init(k, cpu_flags);
	rows_init(k);
	attn_init(k);
}
