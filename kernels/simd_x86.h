/* kernels/simd_x86.h - what simd_avx2.h and simd_avx512.h share: words about 32
 * bytes. */
#ifndef KERNELS_SIMD_X86_H
#define KERNELS_SIMD_X86_H

#include "impl.h"

#if defined(__AVX2__)
#include <immintrin.h>

SIMD void
act_signed(int8_t *dst, const int8_t *q, int32_t sum[2])
{
	__m256i v = _mm256_loadu_si256((const void *)q);
	__m256i s = _mm256_sad_epu8(v, _mm256_setzero_si256());
	__m128i low = _mm256_castsi256_si128(s);
	__m128i high = _mm256_extracti128_si256(s, 1);

	_mm256_storeu_si256((void *)dst,
	    _mm256_xor_si256(v, _mm256_set1_epi8(-128)));
	low = _mm_add_epi64(_mm_unpacklo_epi64(low, high),
	    _mm_unpackhi_epi64(low, high));
	sum[0] = _mm_cvtsi128_si32(low) - 16 * 128;
	sum[1] = _mm_extract_epi32(low, 2) - 16 * 128;
}

#endif
#endif
