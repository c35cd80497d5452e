/* kernels/x86/avxvnni.c - matrix kernels for x86-64 cores that have VNNI in
 * 32-byte vectors; the rest is AVX2's.
 *
 * 16 registers: a panel of 16 rows by 3 rows of activations. */
enum { MAT_NR = 2, MAT_NT = 3 };
#define MAT_EACH_NT(m, a, b) \
	m(a, b, 2) m(a, b, 3)
#define MAT_SUFFIX	"_avxvnni"
#define MAT_ISA		"kernels/matmul/dot_vnni.h"

#include "kernels/matmul/matmul.h"

void
kernels_init_avxvnni(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "avxvnni";
	mat_init(k, cpu_flags);
}
