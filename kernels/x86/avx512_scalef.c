/* kernels/x86/avx512_scalef.c - MXFP4 for x86-64 cores whose vscalefps issues
 * on the ports of additions, in addition to two products per cycle: a block of
 * 32 takes nine of those slots per element instead of ten.  Tiles as in
 * x86/avx512.c. */
enum { PANEL_NV = 2, TILE_NT = 7 };
#define EACH_TILE_NT(m, a, b) \
	m(a, b, 2) m(a, b, 3) m(a, b, 4) m(a, b, 5) m(a, b, 6) \
	m(a, b, 7)
#define POWER_SCALES
#define KERNEL_SUFFIX	"_avx512_scalef"
#define DOT_HEADER		"kernels/matmul/dot_vnni.h"

#include "kernels/matmul/matmul.h"

void
kernels_init_avx512_scalef(struct kernels *k, uint32_t cpu_flags)
{
	k->name = "avx512_scalef";
	matmul_init(k, cpu_flags);
}
