/* kernels/x86/avx2.c - kernels for x86-64 cores with AVX2, FMA and F16C.
 *
 * 16 registers.  Quantized weights: tiles of two panels of 16 rows by one row
 * of activations, for the sums and the sums in 16 bits before them.  Floats: a
 * panel by 6 rows. */
enum { PANEL_NV = 2, TILE_NT = 1 };
#define EACH_TILE_NT(m, a, b) \
	m(a, b, 1)
#define STRIP_PANELS	2
enum { FLOAT_NV = 2, FLOAT_NT = 6 };
#define EACH_FLOAT_NT(m, a, b) \
	m(a, b, 1) m(a, b, 2) m(a, b, 3) m(a, b, 4) m(a, b, 5) m(a, b, 6)
#define SPLIT_HIGH	8
#define TILE_FACTORS
#define KERNEL_SUFFIX	"_avx2"
#define DOT_HEADER		"kernels/matmul/dot_avx2.h"

#include "kernels/attn/attn.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/gemm_float.h"
#include "kernels/rows/rows.h"

void
kernels_init_avx2(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "avx2";
	matmul_init(k, cpu_flags);
	gemm_float_init(k, cpu_flags);
	rows_init(k);
	attn_init(k);
}
