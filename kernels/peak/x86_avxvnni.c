/* kernels/peak/x86_avxvnni.c - 8-bit dot products of cores that have VNNI in
 * 32-byte vectors only. */
#include <immintrin.h>

#include "peak.h"

static double
int8_avxvnni(uint64_t rounds, uint32_t seed)
{
	__m256i a = _mm256_set1_epi8((char)(seed & 15));
	__m256i b = _mm256_set1_epi8(3);
	int32_t x[8];
	double sum = 0;
	unsigned k;
#define BEGIN(i)	__m256i s##i = _mm256_set1_epi32(i);
#define STEP(i)		s##i = _mm256_dpbusd_avx_epi32(s##i, a, b);	\
	PEAK_OPAQUE(s##i);
#define END(i)		s0 = _mm256_add_epi32(_mm256_slli_epi32(s0, 1), s##i);
	PEAK_EACH12(BEGIN)

	for (; rounds > 0; rounds--) {
		PEAK_OPAQUE(a);
		PEAK_OPAQUE(b);
		PEAK_EACH12(STEP)
	}
	PEAK_EACH12(END)
	_mm256_storeu_si256((__m256i *)(void *)x, s0);
	for (k = 0; k < 8; k++)
		sum += x[k];
	return sum;
}

void
peaks_init_avxvnni(struct peaks *p)
{
	p->loop[PEAK_INT8] = (struct peak_loop){ "vpdpbusd ymm", int8_avxvnni,
	    12 * 32 * 2 };
}
