/* kernels/arm/i8mm.c - matrix kernels for aarch64 cores with matrix products
 * of bytes (Armv8.6 I8MM), and with dot products.
 *
 * A panel of 8 rows by 6 rows of activations. */
enum { MAT_NR = 2, MAT_NT = 6 };
#define MAT_EACH_NT(m, a, b) \
	m(a, b, 3) m(a, b, 4) m(a, b, 5) m(a, b, 6)
#define MAT_SUFFIX	"_i8mm"
#define MAT_SQUARE
#define MAT_ISA		"kernels/matmul/dot_smmla.h"

#include "kernels/matmul/matmul.h"

void
kernels_init_i8mm(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "i8mm";
	mat_init(k, cpu_flags);
}
