/* kernels/arm/dotprod.c - matrix kernels for aarch64 cores with dot products
 * of bytes (Armv8.2 DotProd).
 *
 * A panel of 8 rows by 6 rows of activations. */
enum { MAT_NR = 2, MAT_NT = 6 };
#define MAT_EACH_NT(m, a, b) \
	m(a, b, 3) m(a, b, 4) m(a, b, 5) m(a, b, 6)
#define MAT_SUFFIX	"_dotprod"
#define MAT_ISA		"kernels/matmul/dot_sdot.h"

#include "kernels/matmul/matmul.h"

void
kernels_init_dotprod(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "dotprod";
	mat_init(k, cpu_flags);
}
