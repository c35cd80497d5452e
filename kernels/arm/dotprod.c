/* kernels/arm/dotprod.c - quantized weights for aarch64 cores with dot
 * products of bytes (Armv8.2 DotProd).
 *
 * A panel of 8 rows by 6 rows of activations. */
enum { PANEL_NV = 2, TILE_NT = 6 };
#define EACH_TILE_NT(m, a, b) \
	m(a, b, 3) m(a, b, 4) m(a, b, 5) m(a, b, 6)
#define KERNEL_SUFFIX	"_dotprod"
#define DOT_HEADER		"kernels/matmul/dot_sdot.h"

#include "kernels/matmul/matmul.h"

void
kernels_init_dotprod(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "dotprod";
	matmul_init(k, cpu_flags);
}
