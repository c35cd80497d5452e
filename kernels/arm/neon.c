/* kernels/arm/neon.c - kernels for every aarch64 core: Advanced SIMD.
 *
 * 32 registers: a panel of 8 rows by 4 rows of activations for quantized
 * weights, 16 by 6 for floats. */
enum { MAT_NR = 2, MAT_NT = 4 };
#define MAT_EACH_NT(m, a, b) \
	m(a, b, 2) m(a, b, 3) m(a, b, 4)
enum { DENSE_NR = 4, DENSE_NT = 6 };
#define DENSE_EACH_NT(m, a, b) \
	m(a, b, 1) MAT_EACH_NT(m, a, b) m(a, b, 5) m(a, b, 6)
#define MAT_SUFFIX	"_neon"
#define MAT_ISA		"kernels/matmul/dot_neon.h"

#include "kernels/attn/attn.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/gemm_float.h"
#include "kernels/rows/rows.h"

void
kernels_init_neon(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "neon";
	mat_init(k, cpu_flags);
	dense_init(k, cpu_flags);
	rows_init(k);
	attn_init(k);
}
