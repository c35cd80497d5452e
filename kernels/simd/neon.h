/* kernels/simd/neon.h - the operations of simd/simd.h in Arm's Advanced SIMD,
 * which every aarch64 core has: 4 floats per vector. */
#ifndef KERNELS_SIMD_NEON_H
#define KERNELS_SIMD_NEON_H

#include "kernels/impl.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <string.h>

#define SIMD_VL	4
#define SIMD_ACT_BIAS	0	/* dot products take signed activations */
#define SIMD_NREGS	32
typedef float32x4_t vf;
typedef int32x4_t vi;

SIMD vf vf_zero(void) { return vdupq_n_f32(0); }
SIMD vf vf_set(float x) { return vdupq_n_f32(x); }
SIMD vf vf_load(const float *p) { return vld1q_f32(p); }
SIMD void vf_store(float *p, vf v) { vst1q_f32(p, v); }

SIMD void
act_signed(int8_t *dst, const int8_t *q, int32_t start[2], int32_t from,
    int32_t by, int both)
{
	int8x16_t low = vld1q_s8(q), high = vld1q_s8(q + 16);
	int32_t sum = vaddlvq_s8(high);

	vst1q_s8(dst, low);
	vst1q_s8(dst + 16, high);
	start[0] = from - by * (vaddlvq_s8(low) + (both ? sum : 0));
	start[1] = from - by * sum;
}

/* There are no masked loads: load lane by lane. */
SIMD vf
vf_load_n(const float *p, uint32_t n)
{
	vf v = vf_zero();

	if (n >= 4)
		return vld1q_f32(p);
	if (n >= 2)
		v = vcombine_f32(vld1_f32(p), vdup_n_f32(0));
	if (n == 1)
		v = vld1q_lane_f32(p, v, 0);
	if (n == 3)
		v = vld1q_lane_f32(p + 2, v, 2);
	return v;
}
SIMD void
vf_store_n(float *p, uint32_t n, vf v)
{
	if (n >= 4)
		vst1q_f32(p, v);
	else if (n >= 2)
		vst1_f32(p, vget_low_f32(v));
	if (n == 1)
		vst1q_lane_f32(p, v, 0);
	if (n == 3)
		vst1q_lane_f32(p + 2, v, 2);
}
SIMD vf
vf_first_n(vf v, uint32_t n, float other)
{
	static const uint32_t lane[4] = { 0, 1, 2, 3 };

	return vbslq_f32(vcltq_u32(vld1q_u32(lane), vdupq_n_u32(n)), v,
	    vdupq_n_f32(other));
}

SIMD vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
SIMD vf vf_sub(vf a, vf b) { return vsubq_f32(a, b); }
SIMD vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
SIMD vf vf_div(vf a, vf b) { return vdivq_f32(a, b); }
SIMD vf vf_div_above1(vf a, vf b) { return vf_div(a, b); }
SIMD vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
SIMD vf vf_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }
SIMD vf vf_max(vf a, vf b) { return vmaxq_f32(a, b); }
SIMD vf vf_min(vf a, vf b) { return vminq_f32(a, b); }
SIMD vf vf_round(vf v) { return vrndnq_f32(v); }
SIMD vf
vf_if_lt(vf a, vf b, vf yes, vf no)
{
	return vbslq_f32(vcltq_f32(a, b), yes, no);
}
SIMD vf vf_even(vf a, vf b) { return vuzp1q_f32(a, b); }
SIMD vf vf_odd(vf a, vf b) { return vuzp2q_f32(a, b); }
SIMD vf vf_zip_lo(vf a, vf b) { return vzip1q_f32(a, b); }
SIMD vf vf_zip_hi(vf a, vf b) { return vzip2q_f32(a, b); }

SIMD vi vi_set(int32_t x) { return vdupq_n_s32(x); }
SIMD vi vi_load(const void *p) { return vld1q_s32(p); }
SIMD vi vi_add(vi a, vi b) { return vaddq_s32(a, b); }
SIMD vi vi_sub(vi a, vi b) { return vsubq_s32(a, b); }
SIMD vi vi_and(vi a, vi b) { return vandq_s32(a, b); }
SIMD vi vi_or(vi a, vi b) { return vorrq_s32(a, b); }
SIMD vi vi_xor(vi a, vi b) { return veorq_s32(a, b); }
SIMD vi vi_max(vi a, vi b) { return vmaxq_s32(a, b); }
SIMD vi
vi_sub8(vi a, vi b)
{
	return vreinterpretq_s32_s8(vsubq_s8(vreinterpretq_s8_s32(a),
	    vreinterpretq_s8_s32(b)));
}
SIMD vi
vi_mul16(vi a, vi b)
{
	return vreinterpretq_s32_s16(vmulq_s16(vreinterpretq_s16_s32(a),
	    vreinterpretq_s16_s32(b)));
}
SIMD vi vi_factor(vi v) { return v; }
SIMD vi vi_factor_twice(vi f) { return vsliq_n_s32(f, f, 16); }
SIMD vi vi_times(vi v, vi f) { return vmulq_s32(v, f); }
SIMD vi
vi_lookup(const int8_t table[16], vi index)
{
	return vreinterpretq_s32_s8(vqtbl1q_s8(vld1q_s8(table),
	    vreinterpretq_u8_s32(index)));
}
SIMD vi
vi_byte(vi v, unsigned i)
{
	return vreinterpretq_s32_s8(vqtbl1q_s8(vreinterpretq_s8_s32(v),
	    vld1q_u8((const void *)byte_of_each[i])));
}
/* Load four bytes.  Zeros in the upper half are free; duplicating the bytes
 * would cost a copy. */
SIMD int32x2_t
four_bytes(const void *p)
{
	int32_t four;

	memcpy(&four, p, sizeof(four));
	return vset_lane_s32(four, vdup_n_s32(0), 0);
}
SIMD vi
vi_from_u8(const uint8_t *p)
{
	return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(
	    vreinterpret_u8_s32(four_bytes(p))))));
}
SIMD vi
vi_from_u16(const uint16_t *p)
{
	return vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p)));
}
SIMD vf vf_bits(vi v) { return vreinterpretq_f32_s32(v); }
SIMD vi vi_bits(vf v) { return vreinterpretq_s32_f32(v); }
/* Operators, because the intrinsics shift by a vector even if the count is a
 * constant, and have no right shift by a variable. */
SIMD vi vi_shl(vi v, unsigned n) { return v << (int)n; }
SIMD vi vi_sar(vi v, unsigned n) { return v >> (int)n; }
SIMD vi
vi_shr(vi v, unsigned n)
{
	return vreinterpretq_s32_u32(vreinterpretq_u32_s32(v) >> n);
}
SIMD vi vi_from_vf(vf v) { return vcvtnq_s32_f32(v); }
SIMD vf vf_from_vi(vi v) { return vcvtq_f32_s32(v); }
SIMD vf
vf_ldexp(vf x, vf n)
{
	return vf_bits(vi_add(vi_bits(x), vi_shl(vi_from_vf(n), 23)));
}
SIMD vf vf_fract(vf x) { return vf_sub(x, vrndmq_f32(x)); }
SIMD vf
vf_mul_pow2(vf x, vf n)
{
	return vf_if_lt(n, vf_set(-126), vf_zero(), vf_ldexp(x, vrndmq_f32(n)));
}

SIMD vf
vf_from_half(const uint16_t *p)
{
	return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
SIMD vf
vf_set_half(uint16_t h)
{
	return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h)));
}
SIMD void
vf_to_half(uint16_t *p, vf v)
{
	vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v)));
}
SIMD vf
vf_from_bf16(const uint16_t *p)
{
	return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}
SIMD vf
vf_from_i8(const int8_t *p)
{
	return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(
	    vreinterpret_s8_s32(four_bytes(p))))));
}
SIMD void
vi_store_q8(int8_t *q, int16_t *sum, const vi v[4], uint32_t n)
{
	int8x16_t p = vcombine_s8(
	    vmovn_s16(vcombine_s16(vmovn_s32(v[0]), vmovn_s32(v[1]))),
	    vmovn_s16(vcombine_s16(vmovn_s32(v[2]), vmovn_s32(v[3]))));

	(void)n;		/* a chunk is always half a block */
	vst1q_s8(q, p);
	if (sum != NULL)
		*sum = vaddlvq_s8(p);
}

SIMD float vf_hmax(vf v) { return vmaxvq_f32(v); }
SIMD vi
vi_hmax_each(const vi v[4])
{
	return vpmaxq_s32(vpmaxq_s32(v[0], v[1]), vpmaxq_s32(v[2], v[3]));
}

/* A vector of floats as doubles, in two vectors. */
typedef struct { float64x2_t lo, hi; } vd2;
SIMD vd2
vd2_zero(void)
{
	return (vd2){ vdupq_n_f64(0), vdupq_n_f64(0) };
}
SIMD vd2
vd2_add_square(vd2 s, vf v)
{
	float64x2_t a = vcvt_f64_f32(vget_low_f32(v));
	float64x2_t b = vcvt_high_f64_f32(v);

	return (vd2){ vfmaq_f64(s.lo, a, a), vfmaq_f64(s.hi, b, b) };
}
SIMD vd2
vd2_add(vd2 a, vd2 b)
{
	return (vd2){ vaddq_f64(a.lo, b.lo), vaddq_f64(a.hi, b.hi) };
}
SIMD double vd2_hsum(vd2 s) { return vaddvq_f64(vaddq_f64(s.lo, s.hi)); }

#endif
#endif
