/* kernels/simd/x86.h - operations on 32 bytes that simd/avx2.h and
 * simd/avx512.h share. */
#ifndef KERNELS_SIMD_X86_H
#define KERNELS_SIMD_X86_H

#include "kernels/impl.h"

#if defined(__AVX2__)
#include <immintrin.h>

SIMD void
act_signed(int8_t *dst, const int8_t *q, int32_t start[2], int32_t from,
    int32_t by, int both)
{
	const int32_t bias = 16 * 128 * by;	/* for 16 bytes */
	__m256i v = _mm256_loadu_si256((const void *)q);
	__m256i s = _mm256_sad_epu8(v, _mm256_setzero_si256());
	__m128i low = _mm256_castsi256_si128(s);
	__m128i high = _mm256_extracti128_si256(s, 1), sum;

	_mm256_storeu_si256((void *)dst,
	    _mm256_xor_si256(v, _mm256_set1_epi8(-128)));
	/* Sums of the halves: two non-negative words. */
	sum = _mm_shuffle_epi32(_mm_add_epi32(_mm_unpacklo_epi64(low, high),
	    _mm_unpackhi_epi64(low, high)), _MM_SHUFFLE(3, 1, 2, 0));
	sum = _mm_add_epi32(sum, _mm_and_si128(_mm_srli_si128(sum, 4),
	    _mm_cvtsi32_si128(both ? -1 : 0)));
	sum = _mm_madd_epi16(sum, _mm_set1_epi32(by));
	_mm_storel_epi64((void *)start, _mm_sub_epi32(_mm_set_epi32(0, 0,
	    from + bias, from + (both ? 2 : 1) * bias), sum));
}

#endif
#endif
