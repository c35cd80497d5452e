/* kernels/peak/x86_avx2.c - peaks of AVX2 and FMA. */
#include <immintrin.h>

#define PEAK_VEC	32
#include "read.h"

static double
sum_epi32(__m256i v)
{
	int32_t x[8];
	double sum = 0;
	unsigned k;

	_mm256_storeu_si256((__m256i *)(void *)x, v);
	for (k = 0; k < 8; k++)
		sum += x[k];
	return sum;
}

/* 8-bit products: the instruction adds pairs, 16 bits hold eight of those with
 * 4-bit weights, then they are widened to 32 bits.  8-bit weights take two
 * products each (matmul/dot_avx2.h): half of this is their bound. */
static double
int8_avx2(uint64_t rounds, uint32_t seed)
{
	__m256i a = _mm256_set1_epi8((char)(seed & 15));
	__m256i b = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
	__m256i wide = _mm256_setzero_si256();
	unsigned k;
#define BEGIN(i)	__m256i s##i = _mm256_set1_epi32(i);
#define STEP(i)		PEAK_OPAQUE(b); s##i = _mm256_add_epi16(s##i,	\
	_mm256_maddubs_epi16(a, b));					\
	PEAK_OPAQUE(s##i);
#define WIDEN(i)	s##i = _mm256_madd_epi16(s##i, ones);		\
	wide = _mm256_add_epi32(wide, s##i);				\
	PEAK_OPAQUE(s##i);
	PEAK_EACH8(BEGIN)

	PEAK_OPAQUE(a);
	PEAK_OPAQUE(ones);
	for (; rounds > 0; rounds--) {
		for (k = 0; k < 8; k++) {
			PEAK_EACH8(STEP)
		}
		PEAK_EACH8(WIDEN)
	}
	return sum_epi32(wide);
#undef BEGIN
#undef STEP
#undef WIDEN
}

static double
f32_avx2(uint64_t rounds, uint32_t seed)
{
	__m256 a = _mm256_set1_ps((float)(seed & 1)), b = _mm256_set1_ps(.25f);
	double sum = 0;
	float x[8];
	unsigned k;
#define BEGIN(i)	__m256 s##i = _mm256_set1_ps(i);
#define STEP(i)		s##i = _mm256_fmadd_ps(a, b, s##i);		\
	PEAK_OPAQUE(s##i);
#define END(i)		s0 = _mm256_fmadd_ps(s0, b, s##i);
	PEAK_EACH12(BEGIN)

	PEAK_OPAQUE(a);
	PEAK_OPAQUE(b);
	for (; rounds > 0; rounds--) {
		PEAK_EACH12(STEP)
	}
	PEAK_EACH12(END)
	_mm256_storeu_ps(x, s0);
	for (k = 0; k < 8; k++)
		sum += (double)x[k];
	return sum;
#undef BEGIN
#undef STEP
#undef END
}

void
peaks_init_avx2(struct peaks *p)
{
	p->loop[PEAK_INT8] = (struct peak_loop){ "vpmaddubsw + vpaddw "
	    "ymm", int8_avx2, 8 * 8 * 32 * 2 };
	p->loop[PEAK_F32] = (struct peak_loop){ "vfmadd ymm", f32_avx2,
	    12 * 8 * 2 };
	peak_read_init(p, "32-byte loads");
}
