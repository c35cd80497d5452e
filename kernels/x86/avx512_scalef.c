/* kernels/x86/avx512_scalef.c - MXFP4 for x86-64 cores that scale by powers of
 * two where they add, beside two products in each cycle: a block of 32 costs an
 * element nine of those instead of ten.  The tile of x86/avx512.c. */
enum { MAT_NR = 2, MAT_NT = 7 };
#define MAT_EACH_NT(m, a, b) \
	m(a, b, 2) m(a, b, 3) m(a, b, 4) m(a, b, 5) m(a, b, 6) \
	m(a, b, 7)
#define MAT_POWERS
#define MAT_SUFFIX	"_avx512_scalef"
#define MAT_ISA		"kernels/matmul/dot_vnni.h"

#include "kernels/matmul/matmul.h"

void
kernels_init_avx512_scalef(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "avx512_scalef";
	mat_init(k, cpu_flags);
}
