/* kernels/arm/neon.c - kernels for every aarch64 core: Advanced SIMD.
 *
 * 32 registers: a panel of 8 rows by 4 rows of activations for quantized
 * weights, 16 by 6 for floats. */
enum { PANEL_NV = 2, TILE_NT = 4 };
#define EACH_TILE_NT(m, a, b) \
	m(a, b, 2) m(a, b, 3) m(a, b, 4)
enum { FLOAT_NV = 4, FLOAT_NT = 6 };
#define EACH_FLOAT_NT(m, a, b) \
	m(a, b, 1) EACH_TILE_NT(m, a, b) m(a, b, 5) m(a, b, 6)
#define KERNEL_SUFFIX	"_neon"
#define DOT_HEADER		"kernels/matmul/dot_neon.h"

#include "kernels/attn/attn.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/gemm_float.h"
#include "kernels/rows/rows.h"

void
kernels_init_neon(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "neon";
	matmul_init(k, cpu_flags);
	gemm_float_init(k, cpu_flags);
	rows_init(k);
	attn_init(k);
}
