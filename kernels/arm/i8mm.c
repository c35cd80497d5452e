/* kernels/arm/i8mm.c - quantized weights for aarch64 cores with matrix
 * products of bytes (Armv8.6 I8MM) and dot products.
 *
 * A panel of 8 rows by 6 rows of activations. */
enum { PANEL_NV = 2, TILE_NT = 6 };
#define EACH_TILE_NT(m, a, b) \
	m(a, b, 3) m(a, b, 4) m(a, b, 5) m(a, b, 6)
#define KERNEL_SUFFIX	"_i8mm"
#define GEMM_2X2
#define DOT_HEADER		"kernels/matmul/dot_smmla.h"

#include "kernels/matmul/matmul.h"

void
kernels_init_i8mm(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "i8mm";
	matmul_init(k, cpu_flags);
}
