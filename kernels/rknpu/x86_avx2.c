/* kernels/rknpu/x86_avx2.c - sums with AVX2: weights widened to 16 bits, times the
 * row's integers. */
#include <immintrin.h>

#include "sums.h"

SIMD __m256i
load_16(const int8_t *w)
{
	return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)w));
}

/* Sums of the four vectors' words: of a in word 0 of each half, of b in word 1,
 * and so on. */
SIMD __m256i
add_across(const __m256i v[4])
{
	return _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]),
	    _mm256_hadd_epi32(v[2], v[3]));
}

SIMD __m128i
add_halves(__m256i v)
{
	return _mm_add_epi32(_mm256_castsi256_si128(v),
	    _mm256_extracti128_si256(v, 1));
}

SIMD void
dot_avx2(int32_t sum[static SUMS_COLS], const int8_t *w, uint64_t step,
    const struct x_part *x, uint32_t ntiles, uintptr_t ahead)
{
	__m256i acc[SUMS_COLS];
	const int16_t *at = x->x;
	uint32_t t;
	unsigned c, i;

	UNROLL
	for (c = 0; c < SUMS_COLS; c++)
		acc[c] = _mm256_setzero_si256();
	for (t = 0; t < ntiles; t++, w += step, at += 32) {
		if (ahead != 0)
			prefetch_tile(ahead + t * 256);
		UNROLL
		for (i = 0; i < 32; i += 16) {
			__m256i v = _mm256_load_si256((const void *)(at + i));

			UNROLL
			for (c = 0; c < SUMS_COLS; c++)
				acc[c] = _mm256_add_epi32(acc[c],
				    _mm256_madd_epi16(load_16(w + c * 32 + i),
				    v));
		}
	}
	_mm_storeu_si128((void *)sum, add_halves(add_across(acc)));
	_mm_storeu_si128((void *)(sum + 4), add_halves(add_across(acc + 4)));
}

NPU_SUMS(avx2, dot_avx2, 1)
