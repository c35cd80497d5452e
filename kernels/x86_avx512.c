/* kernels/x86_avx512.c - kernels for x86-64 cores with AVX-512 (F, BW, DQ, VL)
 * and VNNI. */
#include "simd.h"

void
kernels_init_avx512(struct kernels *k)
{
	k->name = "avx512";
}
