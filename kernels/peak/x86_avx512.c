/* kernels/peak/x86_avx512.c - peaks of AVX-512 with VNNI. */
#include <immintrin.h>

#define PEAK_VEC	64
#include "read.h"

static double
int8_avx512(uint64_t rounds, uint32_t seed)
{
	__m512i a = _mm512_set1_epi8((char)(seed & 15));
	__m512i b = _mm512_set1_epi8(3);
	int32_t x[16];
	double sum = 0;
	unsigned k;
#define BEGIN(i)	__m512i s##i = _mm512_set1_epi32(i);
#define STEP(i)		s##i = _mm512_dpbusd_epi32(s##i, a, b);		\
	PEAK_OPAQUE(s##i);
#define END(i)		s0 = _mm512_add_epi32(_mm512_slli_epi32(s0, 1), s##i);
	PEAK_EACH16(BEGIN)

	for (; rounds > 0; rounds--) {
		PEAK_OPAQUE(a);
		PEAK_OPAQUE(b);
		PEAK_EACH16(STEP)
	}
	PEAK_EACH16(END)
	/* Signed 32-bit addition in C must not overflow: add doubles. */
	_mm512_storeu_si512(x, s0);
	for (k = 0; k < 16; k++)
		sum += x[k];
	return sum;
#undef BEGIN
#undef STEP
#undef END
}

static double
f32_avx512(uint64_t rounds, uint32_t seed)
{
	__m512 a = _mm512_set1_ps((float)(seed & 1)), b = _mm512_set1_ps(.25f);
#define BEGIN(i)	__m512 s##i = _mm512_set1_ps(i);
#define STEP(i)		s##i = _mm512_fmadd_ps(a, b, s##i);		\
	PEAK_OPAQUE(s##i);
#define END(i)		s0 = _mm512_fmadd_ps(s0, b, s##i);
	PEAK_EACH16(BEGIN)

	for (; rounds > 0; rounds--) {
		PEAK_OPAQUE(a);
		PEAK_OPAQUE(b);
		PEAK_EACH16(STEP)
	}
	PEAK_EACH16(END)
	return (double)_mm512_reduce_add_ps(s0);
#undef BEGIN
#undef STEP
#undef END
}

void
peaks_init_avx512(struct peaks *p)
{
	p->loop[PEAK_INT8] = (struct peak_loop){ "vpdpbusd zmm", int8_avx512,
	    16 * 64 * 2 };
	p->loop[PEAK_F32] = (struct peak_loop){ "vfmadd zmm", f32_avx512,
	    16 * 16 * 2 };
	peak_read_init(p, "64-byte loads");
}
