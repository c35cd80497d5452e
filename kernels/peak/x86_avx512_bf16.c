/* kernels/peak/x86_avx512_bf16.c - vdpbf16ps: dot products of bfloat16. */
#include <immintrin.h>

#include "peak.h"

static double
bf16_avx512(uint64_t rounds, uint32_t seed)
{
	__m512 f = _mm512_set1_ps((float)(seed & 1));
	__m512bh a = _mm512_cvtne2ps_pbh(f, f);
	__m512 g = _mm512_set1_ps(.25f);
	__m512bh b = _mm512_cvtne2ps_pbh(g, g);
#define BEGIN(i)	__m512 s##i = _mm512_set1_ps(i);
#define STEP(i)		s##i = _mm512_dpbf16_ps(s##i, a, b);		\
	PEAK_OPAQUE(s##i);
#define END(i)		s0 = _mm512_fmadd_ps(s0, g, s##i);
	PEAK_EACH16(BEGIN)

	for (; rounds > 0; rounds--) {
		PEAK_OPAQUE(a);
		PEAK_OPAQUE(b);
		PEAK_EACH16(STEP)
	}
	PEAK_EACH16(END)
	return (double)_mm512_reduce_add_ps(s0);
}

void
peaks_init_avx512_bf16(struct peaks *p)
{
	p->loop[PEAK_BF16] = (struct peak_loop){ "vdpbf16ps zmm", bf16_avx512,
	    16 * 32 * 2 };
}
