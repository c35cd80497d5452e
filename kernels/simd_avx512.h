/* kernels/simd_avx512.h - the vocabulary of simd.h for AVX-512 (F, BW, DQ,
 * VL): 16 floats in a vector. */
#ifndef KERNELS_SIMD_AVX512_H
#define KERNELS_SIMD_AVX512_H

#include "impl.h"

#if defined(__AVX512BW__)
#include <immintrin.h>

#define SIMD_VL	16
#define SIMD_NREGS	32
typedef __m512 vf;
typedef __m512i vi;

SIMD vf vf_zero(void) { return _mm512_setzero_ps(); }
SIMD vf vf_set(float x) { return _mm512_set1_ps(x); }
SIMD vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
SIMD void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }

SIMD __mmask16
simd_mask(uint32_t n)
{
	return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1);
}
SIMD vf
vf_load_n(const float *p, uint32_t n)
{
	return _mm512_maskz_loadu_ps(simd_mask(n), p);
}
SIMD void
vf_store_n(float *p, uint32_t n, vf v)
{
	_mm512_mask_storeu_ps(p, simd_mask(n), v);
}
SIMD vf
vf_first_n(vf v, uint32_t n, float other)
{
	return _mm512_mask_blend_ps(simd_mask(n), _mm512_set1_ps(other), v);
}

SIMD vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
SIMD vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
SIMD vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
SIMD vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
SIMD vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
SIMD vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
SIMD vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
SIMD vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
SIMD vf
vf_round(vf v)
{
	return _mm512_roundscale_ps(v,
	    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

SIMD vi vi_set(int32_t x) { return _mm512_set1_epi32(x); }
SIMD vi vi_load(const void *p) { return _mm512_loadu_si512(p); }
SIMD void vi_store(void *p, vi v) { _mm512_storeu_si512(p, v); }
SIMD vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
SIMD vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
SIMD vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
SIMD vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
SIMD vi vi_shl(vi v, unsigned n) { return _mm512_slli_epi32(v, n); }
SIMD vi vi_shr(vi v, unsigned n) { return _mm512_srli_epi32(v, n); }
SIMD vi vi_sar(vi v, unsigned n) { return _mm512_srai_epi32(v, n); }
SIMD vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
SIMD vf vf_bits(vi v) { return _mm512_castsi512_ps(v); }
SIMD vi vi_bits(vf v) { return _mm512_castps_si512(v); }
SIMD vi vi_from_vf(vf v) { return _mm512_cvtps_epi32(v); }
SIMD vf vf_from_vi(vi v) { return _mm512_cvtepi32_ps(v); }

SIMD vf
vf_from_half(const uint16_t *p)
{
	return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}
SIMD vf
vf_set_half(uint16_t h)
{
	return _mm512_cvtph_ps(_mm256_set1_epi16((int16_t)h));
}
SIMD void
vf_to_half(uint16_t *p, vf v)
{
	_mm256_storeu_si256((void *)p,
	    _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
SIMD vf
vf_from_bf16(const uint16_t *p)
{
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(
	    _mm256_loadu_si256((const void *)p)), 16));
}
SIMD vf
vf_from_i8(const int8_t *p)
{
	return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
	    _mm_loadu_si128((const void *)p)));
}
SIMD void
vi_to_i8(int8_t *p, vi v)
{
	_mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8(v));
}

SIMD float vf_hsum(vf v) { return _mm512_reduce_add_ps(v); }
SIMD float vf_hmax(vf v) { return _mm512_reduce_max_ps(v); }
SIMD int32_t vi_hsum(vi v) { return _mm512_reduce_add_epi32(v); }
SIMD int32_t vi_hmax(vi v) { return _mm512_reduce_max_epi32(v); }

/* Doubles: what v holds, in two vectors. */
typedef struct { __m512d lo, hi; } vd2;
SIMD vd2
vd2_zero(void)
{
	return (vd2){ _mm512_setzero_pd(), _mm512_setzero_pd() };
}
SIMD vd2
vd2_add_square(vd2 s, vf v)
{
	__m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
	__m512d b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));

	s.lo = _mm512_fmadd_pd(a, a, s.lo);
	s.hi = _mm512_fmadd_pd(b, b, s.hi);
	return s;
}
SIMD double
vd2_hsum(vd2 s)
{
	return _mm512_reduce_add_pd(_mm512_add_pd(s.lo, s.hi));
}

#endif
#endif
