/* kernels/simd/avx2.h - the operations of simd/simd.h in AVX2, FMA and F16C: 8
 * floats per vector. */
#ifndef KERNELS_SIMD_AVX2_H
#define KERNELS_SIMD_AVX2_H

#include "x86.h"

#if defined(__AVX2__)
#define SIMD_VL	8
#define SIMD_ACT_BIAS	128	/* dot products need unsigned activations */
#define SIMD_NREGS	16
typedef __m256 vf;
typedef __m256i vi;

SIMD vf vf_zero(void) { return _mm256_setzero_ps(); }
SIMD vf vf_set(float x) { return _mm256_set1_ps(x); }
SIMD vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
SIMD void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }

SIMD __m256i
simd_mask(uint32_t n)
{
	return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)MIN(n, 8)),
	    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
SIMD vf
vf_load_n(const float *p, uint32_t n)
{
	return _mm256_maskload_ps(p, simd_mask(n));
}
SIMD void
vf_store_n(float *p, uint32_t n, vf v)
{
	_mm256_maskstore_ps(p, simd_mask(n), v);
}
SIMD vf
vf_first_n(vf v, uint32_t n, float other)
{
	return _mm256_blendv_ps(_mm256_set1_ps(other), v,
	    _mm256_castsi256_ps(simd_mask(n)));
}

SIMD vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
SIMD vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
SIMD vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
SIMD vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
SIMD vf vf_div_above1(vf a, vf b) { return vf_div(a, b); }
SIMD vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
SIMD vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
SIMD vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
SIMD vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
SIMD vf
vf_round(vf v)
{
	return _mm256_round_ps(v,
	    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
SIMD vf
vf_if_lt(vf a, vf b, vf yes, vf no)
{
	return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

/* The shuffle works within 128-bit lanes: reorder 64-bit quarters afterwards.
 */
SIMD vf
vf_even(vf a, vf b)
{
	return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(
	    _mm256_shuffle_ps(a, b, 0x88)), 0xd8));
}
SIMD vf
vf_odd(vf a, vf b)
{
	return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(
	    _mm256_shuffle_ps(a, b, 0xdd)), 0xd8));
}
SIMD vf
vf_zip_lo(vf a, vf b)
{
	return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b),
	    _mm256_unpackhi_ps(a, b), 0x20);
}
SIMD vf
vf_zip_hi(vf a, vf b)
{
	return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b),
	    _mm256_unpackhi_ps(a, b), 0x31);
}

SIMD vi vi_set(int32_t x) { return _mm256_set1_epi32(x); }
SIMD vi vi_load(const void *p) { return _mm256_loadu_si256(p); }
SIMD vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
SIMD vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
SIMD vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
SIMD vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
SIMD vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
SIMD vi vi_shl(vi v, unsigned n) { return _mm256_slli_epi32(v, (int)n); }
SIMD vi vi_shr(vi v, unsigned n) { return _mm256_srli_epi32(v, (int)n); }
SIMD vi
vi_byte(vi v, unsigned i)
{
	return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(
	    _mm_load_si128((const void *)byte_of_each[i])));
}
SIMD vi vi_sar(vi v, unsigned n) { return _mm256_srai_epi32(v, (int)n); }
SIMD vi vi_max(vi a, vi b) { return _mm256_max_epi32(a, b); }
SIMD vi vi_sub8(vi a, vi b) { return _mm256_sub_epi8(a, b); }
SIMD vi vi_mul16(vi a, vi b) { return _mm256_mullo_epi16(a, b); }
SIMD vi vi_madd16(vi a, vi b) { return _mm256_madd_epi16(a, b); }
SIMD vi
vi_lookup(const int8_t table[16], vi index)
{
	return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(
	    _mm_loadu_si128((const void *)table)), index);
}
SIMD vi
vi_from_u8(const uint8_t *p)
{
	return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
}
SIMD vi
vi_from_u16(const uint16_t *p)
{
	return _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
}
SIMD vf vf_bits(vi v) { return _mm256_castsi256_ps(v); }
SIMD vi vi_bits(vf v) { return _mm256_castps_si256(v); }
SIMD vi vi_from_vf(vf v) { return _mm256_cvtps_epi32(v); }
SIMD vf vf_from_vi(vi v) { return _mm256_cvtepi32_ps(v); }
SIMD vf
vf_ldexp(vf x, vf n)
{
	return vf_bits(vi_add(vi_bits(x), vi_shl(vi_from_vf(n), 23)));
}
SIMD vf vf_fract(vf x) { return _mm256_sub_ps(x, _mm256_floor_ps(x)); }
SIMD vf
vf_mul_pow2(vf x, vf n)
{
	return vf_if_lt(n, vf_set(-126), vf_zero(),
	    vf_ldexp(x, _mm256_floor_ps(n)));
}

SIMD vf
vf_from_half(const uint16_t *p)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
}
SIMD vf
vf_set_half(uint16_t h)
{
	return _mm256_cvtph_ps(_mm_set1_epi16((int16_t)h));
}
SIMD void
vf_to_half(uint16_t *p, vf v)
{
	_mm_storeu_si128((void *)p,
	    _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
SIMD vf
vf_from_bf16(const uint16_t *p)
{
	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(
	    _mm_loadu_si128((const void *)p)), 16));
}
SIMD vf
vf_from_i8(const int8_t *p)
{
	return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(
	    _mm_loadl_epi64((const void *)p)));
}
SIMD void
vi_store_q8(int8_t *q, int16_t *sum, const vi v[4], uint32_t n)
{
	/* Packing works within 128-bit lanes: reorder the fours. */
	__m256i p = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(
	    _mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3])),
	    _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));

	(void)n;		/* a chunk is always a whole block */
	_mm256_storeu_si256((void *)q, p);
	if (sum == NULL)
		return;
	/* Sums of 8, then of 16, of q + 128, less 16 * 128. */
	p = _mm256_sad_epu8(_mm256_xor_si256(p, _mm256_set1_epi8(-128)),
	    _mm256_setzero_si256());
	p = _mm256_sub_epi16(_mm256_add_epi64(p, _mm256_shuffle_epi32(p, 0x4e)),
	    _mm256_set1_epi16(16 * 128));
	_mm_storeu_si32(sum, _mm_unpacklo_epi16(_mm256_castsi256_si128(p),
	    _mm256_extracti128_si256(p, 1)));
}

SIMD float
vf_hmax(vf v)
{
	__m128 s = _mm_max_ps(_mm256_castps256_ps128(v),
	    _mm256_extractf128_ps(v, 1));

	s = _mm_max_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
SIMD vi
vi_hmax_each(const vi v[8])
{
	vi a[4], b[2];
	unsigned i;

	UNROLL
	for (i = 0; i < 4; i++)
		a[i] = vi_max(_mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
		    _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
	UNROLL
	for (i = 0; i < 2; i++)
		b[i] = vi_max(_mm256_unpacklo_epi64(a[2 * i], a[2 * i + 1]),
		    _mm256_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
	return vi_max(_mm256_permute2x128_si256(b[0], b[1], 0x20),
	    _mm256_permute2x128_si256(b[0], b[1], 0x31));
}

/* A vector of floats as doubles, in two vectors. */
typedef struct { __m256d lo, hi; } vd2;
SIMD vd2
vd2_zero(void)
{
	return (vd2){ _mm256_setzero_pd(), _mm256_setzero_pd() };
}
SIMD vd2
vd2_add_square(vd2 s, vf v)
{
	__m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
	__m256d b = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));

	s.lo = _mm256_fmadd_pd(a, a, s.lo);
	s.hi = _mm256_fmadd_pd(b, b, s.hi);
	return s;
}
SIMD vd2
vd2_add(vd2 a, vd2 b)
{
	return (vd2){ _mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi) };
}
SIMD double
vd2_hsum(vd2 s)
{
	double d[4];

	_mm256_storeu_pd(d, _mm256_add_pd(s.lo, s.hi));
	return (d[0] + d[1]) + (d[2] + d[3]);
}

#endif
#endif
