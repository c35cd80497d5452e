/* kernels/arm_neon.c - kernels for every aarch64 core: Advanced SIMD. */
#include "attn.h"
#include "rows.h"

void
kernels_init_neon(struct kernels *k)
{
	k->name = "neon";
	rows_init(k);
	attn_init(k);
}
