/* kernels/x86/avx2.c - kernels for x86-64 cores with AVX2, FMA and F16C.
 *
 * 16 registers: two panels of 16 rows by a row of activations for quantized
 * weights, sums and what they have in 16 bits meanwhile; a panel by 6 rows for
 * floats. */
enum { MAT_NR = 2, MAT_NT = 1 };
#define MAT_EACH_NT(m, a, b) \
	m(a, b, 1)
#define MAT_PANELS	2
enum { DENSE_NR = 2, DENSE_NT = 6 };
#define DENSE_EACH_NT(m, a, b) \
	m(a, b, 1) m(a, b, 2) m(a, b, 3) m(a, b, 4) m(a, b, 5) m(a, b, 6)
#define MAT_SPLIT	8
#define MAT_BY
#define MAT_SUFFIX	"_avx2"
#define MAT_ISA		"kernels/matmul/dot_avx2.h"

#include "kernels/attn/attn.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/gemm_float.h"
#include "kernels/rows/rows.h"

void
kernels_init_avx2(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "avx2";
	mat_init(k, cpu_flags);
	dense_init(k, cpu_flags);
	rows_init(k);
	attn_init(k);
}
