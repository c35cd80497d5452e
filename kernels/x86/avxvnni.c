/* kernels/x86/avxvnni.c - quantized weights for x86-64 cores with VNNI in
 * 32-byte vectors; x86/avx2.c has the rest.
 *
 * 16 registers: a panel of 16 rows by 3 rows of activations. */
enum { PANEL_NV = 2, TILE_NT = 3 };
#define EACH_TILE_NT(m, a, b) \
	m(a, b, 2) m(a, b, 3)
#define KERNEL_SUFFIX	"_avxvnni"
#define DOT_HEADER		"kernels/matmul/dot_vnni.h"

#include "kernels/matmul/matmul.h"

void
kernels_init_avxvnni(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "avxvnni";
	matmul_init(k, cpu_flags);
}
