/* kernels/simd/avx512.h - the operations of simd/simd.h in AVX-512 (F, BW, DQ,
 * VL): 16 floats per vector. */
#ifndef KERNELS_SIMD_AVX512_H
#define KERNELS_SIMD_AVX512_H

#include "x86.h"

#if defined(__AVX512BW__)
#define SIMD_VL	16
#define SIMD_ACT_BIAS	128	/* dot products need unsigned activations */
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

/* a / b within 1.5 ulp, 1 <= b < 2^126; faster than vf_div. */
SIMD vf
vf_div_above1(vf a, vf b)
{
	vf r = _mm512_rcp14_ps(b);

	return _mm512_mul_ps(a, _mm512_fmadd_ps(_mm512_fnmadd_ps(b, r,
	    _mm512_set1_ps(1)), r, r));
}
SIMD vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
SIMD vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
SIMD vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
SIMD vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
SIMD vf vf_by_power(vf v, vf e) { return _mm512_scalef_ps(v, e); }
SIMD vf
vf_round(vf v)
{
	return _mm512_roundscale_ps(v,
	    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
SIMD vf
vf_if_lt(vf a, vf b, vf yes, vf no)
{
	return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no,
	    yes);
}

SIMD vf
vf_even(vf a, vf b)
{
	return _mm512_permutex2var_ps(a, _mm512_setr_epi32(0, 2, 4, 6, 8, 10,
	    12, 14, 16, 18, 20, 22, 24, 26, 28, 30), b);
}
SIMD vf
vf_odd(vf a, vf b)
{
	return _mm512_permutex2var_ps(a, _mm512_setr_epi32(1, 3, 5, 7, 9, 11,
	    13, 15, 17, 19, 21, 23, 25, 27, 29, 31), b);
}
SIMD vf
vf_zip_lo(vf a, vf b)
{
	return _mm512_permutex2var_ps(a, _mm512_setr_epi32(0, 16, 1, 17, 2, 18,
	    3, 19, 4, 20, 5, 21, 6, 22, 7, 23), b);
}
SIMD vf
vf_zip_hi(vf a, vf b)
{
	return _mm512_permutex2var_ps(a, _mm512_setr_epi32(8, 24, 9, 25, 10,
	    26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), b);
}

SIMD vi vi_set(int32_t x) { return _mm512_set1_epi32(x); }
SIMD vi vi_load(const void *p) { return _mm512_loadu_si512(p); }
SIMD vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
SIMD vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
SIMD vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
SIMD vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
SIMD vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
SIMD vi vi_shl(vi v, unsigned n) { return _mm512_slli_epi32(v, n); }
SIMD vi vi_shr(vi v, unsigned n) { return _mm512_srli_epi32(v, n); }
SIMD vi
vi_byte(vi v, unsigned i)
{
	return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(
	    _mm_load_si128((const void *)byte_of_each[i])));
}
SIMD vi vi_sar(vi v, unsigned n) { return _mm512_srai_epi32(v, n); }
SIMD vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
SIMD vi vi_sub8(vi a, vi b) { return _mm512_sub_epi8(a, b); }
SIMD vi vi_mul16(vi a, vi b) { return _mm512_mullo_epi16(a, b); }
SIMD vi vi_madd16(vi a, vi b) { return _mm512_madd_epi16(a, b); }
SIMD vi
vi_lookup(const int8_t table[16], vi index)
{
	return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(
	    _mm_loadu_si128((const void *)table)), index);
}
SIMD vi
vi_from_u8(const uint8_t *p)
{
	return _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
}
SIMD vi
vi_from_u16(const uint16_t *p)
{
	return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
}
SIMD vf vf_bits(vi v) { return _mm512_castsi512_ps(v); }
SIMD vi vi_bits(vf v) { return _mm512_castps_si512(v); }
SIMD vi vi_from_vf(vf v) { return _mm512_cvtps_epi32(v); }
SIMD vf vf_from_vi(vi v) { return _mm512_cvtepi32_ps(v); }
SIMD vf vf_ldexp(vf x, vf n) { return _mm512_scalef_ps(x, n); }
SIMD vf vf_fract(vf x) { return _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF); }
SIMD vf
vf_mul_pow2(vf x, vf n)
{
	return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(n,
	    _mm512_set1_ps(-126), _CMP_NLT_UQ), x, n);
}

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
#ifdef __AVX512BF16__
SIMD void
vf_to_bf16(uint16_t *p, vf v)
{
	_mm256_storeu_si256((void *)p, (__m256i)_mm512_cvtneps_pbh(v));
}
SIMD vf
vf_dot_bf16(vf s, vf a, vf b)
{
	return _mm512_dpbf16_ps(s, (__m512bh)a, (__m512bh)b);
}
#endif
SIMD vf
vf_from_i8(const int8_t *p)
{
	return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
	    _mm_loadu_si128((const void *)p)));
}
SIMD void
vi_store_q8(int8_t *q, int16_t *sum, const vi v[4], uint32_t n)
{
	/* Packing works within 128-bit lanes: reorder the fours. */
	__m512i p = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1,
	    5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), _mm512_packs_epi16(
	    _mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3])));
	__m128i s;

	if (n == 64)
		_mm512_storeu_si512(q, p);
	else
		_mm256_storeu_si256((void *)q, _mm512_castsi512_si256(p));
	if (sum == NULL)
		return;
	/* Sums of 8, then of 16, of q + 128, less 16 * 128. */
	p = _mm512_sad_epu8(_mm512_xor_si512(p, _mm512_set1_epi8(-128)),
	    _mm512_setzero_si512());
	p = _mm512_add_epi64(p, _mm512_shuffle_epi32(p, 0x4e));
	s = _mm_sub_epi16(_mm512_cvtepi64_epi16(p), _mm_set1_epi16(16 * 128));
	s = _mm_shuffle_epi8(s, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1,
	    -1, -1, -1, -1, -1, -1));
	if (n == 64)
		_mm_storel_epi64((void *)sum, s);
	else
		_mm_storeu_si32(sum, s);
}

SIMD float vf_hmax(vf v) { return _mm512_reduce_max_ps(v); }
SIMD vi
vi_hmax_each(const vi v[16])
{
	vi a[8], b[4], c[2];
	unsigned i;

	UNROLL
	for (i = 0; i < 8; i++)
		a[i] = vi_max(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
		    _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
	UNROLL
	for (i = 0; i < 4; i++)
		b[i] = vi_max(_mm512_unpacklo_epi64(a[2 * i], a[2 * i + 1]),
		    _mm512_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
	UNROLL
	for (i = 0; i < 2; i++)		/* even and odd 128-bit lanes */
		c[i] = vi_max(
		    _mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0x88),
		    _mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0xdd));
	return vi_max(_mm512_shuffle_i32x4(c[0], c[1], 0x88),
	    _mm512_shuffle_i32x4(c[0], c[1], 0xdd));
}

/* A vector of floats as doubles, in two vectors. */
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
SIMD vd2
vd2_add(vd2 a, vd2 b)
{
	return (vd2){ _mm512_add_pd(a.lo, b.lo), _mm512_add_pd(a.hi, b.hi) };
}
SIMD double
vd2_hsum(vd2 s)
{
	return _mm512_reduce_add_pd(_mm512_add_pd(s.lo, s.hi));
}

#endif
#endif
