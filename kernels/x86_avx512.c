/* kernels/x86_avx512.c - kernels for x86-64 cores with AVX-512 (F, BW, DQ, VL)
 * and VNNI. */
#include "attn.h"

void
kernels_init_avx512(struct kernels *k)
{
	k->name = "avx512";
	attn_init(k);
}
