/* kernels/simd/simd.h - vectors of floats and 32-bit integers, by whichever
 * instruction set the file that includes this is compiled for.
 * Owns: the words; each simd_<isa>.h says them in its intrinsics.  Included by
 * the templates (rows.h, attn.h, matmul/matmul.h), which say each algorithm once; a
 * variant is a file that includes simd.h and the templates, with its own -m
 * flags, under its own names.
 *
 *	SIMD_VL			floats in a vector, vf, and integers, vi; not
 *				defined where there are no vectors: then the
 *				templates are empty
 *	SIMD_NREGS		vectors that the machine has registers for
 *	SIMD_ACT_BIAS		what dot products want added to the bytes of
 *				activations: 0 or 128 (kernels.act_bias)
 *	vf_load_n vf_store_n	the first n lanes (all for n >= SIMD_VL); others
 *				are read as 0, not written, and not touched
 *	vf_first_n		lanes from n on become `other`
 *	vf_fma(a, b, c)		a * b + c rounded once; vf_fnma: c - a * b
 *	vf_max vf_min		of NaN, the second operand (x86; on Arm NaN)
 *	vf_if_lt(a, b, y, n)	lanes of y where a < b, else (NaN too) of n
 *	vf_even vf_odd		every other lane of two vectors; vf_zip_lo and
 *				vf_zip_hi are the way back
 *	vf_bits vi_bits		the same bits as the other kind
 *	vi_sub8			bytes; vi_mul16: the low halves of products of 16
 *				bits; vi_madd16: sums of two products of 16 bits
 *				(x86)
 *	vi_times(v, f)		v * f, integers of 16 bits each, f such as
 *				vi_factor() makes of one; vi_factor_twice: that
 *				in both halves, for products of 16 bits
 *	vi_byte(v, i)		byte i of each integer
 *	vi_lookup(t, i)		table of 16 bytes, an index in each byte
 *	vf_ldexp(x, n)		x * 2^n, n whole; both are normal numbers (or
 *				NaN both)
 *	vf_fract		x - floor(x)
 *	vf_mul_pow2(x, n)	x * 2^floor(n), 0 for n < -126; x is of [1, 2]
 *				and n < 127 (or both NaN)
 *	vf_from_half ...	SIMD_VL elements at p, widened; vf_set_half:
 *				one, everywhere
 *	vf_dot_bf16(s, a, b)	s + both products of bfloat16 in each lane, the
 *				upper one first; denormal numbers are 0.  This
 *				and vf_to_bf16 where the file's -m flags allow
 *	vi_store_q8		the lanes of 4 vectors as 8 bits, and the sum
 *				of each 16 of them (if sum is not NULL); of
 *				64 lanes n = 32 or 64 are stored
 *	vf_by_power(v, e)	v * 2^e, e whole (AVX-512 alone)
 *	act_signed(d, q, start, from, by, both)
 *				32 bytes of activations without SIMD_ACT_BIAS;
 *				from - by * the sums of its halves, or (both)
 *				of all and of the upper half; 0 <= by <= 128
 *	vf_hsum_each, vi_hmax_each
 *				lane i across v[i], in one fixed order;
 *				vf_hmax: across one */
#ifndef KERNELS_SIMD_SIMD_H
#define KERNELS_SIMD_SIMD_H

#if defined(__AVX512BW__)
#include "avx512.h"
#elif defined(__AVX2__)
#include "avx2.h"
#elif defined(__aarch64__)
#include "neon.h"
#endif

#ifdef SIMD_VL

#ifdef __x86_64__
SIMD vi vi_factor(vi v) { return vi_and(v, vi_set(0xffff)); }
SIMD vi vi_factor_twice(vi f) { return vi_or(f, vi_shl(f, 16)); }
SIMD vi vi_times(vi v, vi f) { return vi_madd16(v, f); }
#endif

/* v, in a register: not what each instruction that wants it may load again.  With
 * fewer registers those are the shorter supply. */
SIMD vi
vi_loaded(vi v)
{
#if SIMD_VL == 16
	__asm__("" : "+v"(v));
#endif
	return v;
}

SIMD void
prefetch(const void *p)
{
	__builtin_prefetch(p);
}
SIMD void
prefetch_write(const void *p)
{
	__builtin_prefetch(p, 1);
}
/* What is read once, and kept in no cache behind the first. */
SIMD void
prefetch_once(const void *p)
{
	__builtin_prefetch(p, 0, 0);
}
/* What is wanted later than the first cache would keep it. */
SIMD void
prefetch_l2(const void *p)
{
	__builtin_prefetch(p, 0, 2);
}

/* Where pages are of 4 KiB, or the host's behind huge ones are, a core that
 * asks ahead still waits wherever a page begins, until it has found where that
 * lies (one time in eight in memory: so many entries of a table are a line).
 * Where a line of it was asked for some pages sooner, it need not.  In a guest
 * whose huge pages are 4 KiB to the TLB (as many pages of either kind as that
 * has entries, 4096, are quick to reach, and twice as many are not), one core
 * of Zen 5 reads one stream of weights at 41.2 instead of 36.9 GB/s; 43.0 are
 * the best of bare loops. */
SIMD void
prefetch_page(const void *p)
{
	prefetch_l2(p);
}

/* Nothing below makes denormal numbers on the way to a result that is none:
 * each would cost as much as tens of vectors.  So e^x ends where it would not
 * be a normal number. */
enum { EXP_MIN = -86, EXP_MAX = 88 };

/* e^x within 2 ulp, x between those; polynomial of Cephes' expf. */
SIMD vf
exp_within(vf x)
{
	const float c[] = { 1.3981999507e-3f, 8.3334519073e-3f,
	    4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f };
	vf n = vf_round(vf_mul(x, vf_set(1.44269504088896341f)));
	vf r = vf_fnma(n, vf_set(0.693359375f), x);
	vf p = vf_set(1.9875691500e-4f);
	unsigned j;

	r = vf_fnma(n, vf_set(-2.12194440e-4f), r);
	UNROLL
	for (j = 0; j < NITEMS(c); j++)
		p = vf_fma(p, r, vf_set(c[j]));
	p = vf_fma(p, vf_mul(r, r), r);
	return vf_ldexp(vf_add(p, vf_set(1)), n);
}

/* NaN stays: of it, vf_min and vf_max return the second. */
SIMD vf
vf_clamp(vf x, float min, float max)
{
	return vf_min(vf_set(max), vf_max(vf_set(min), x));
}

/* e^x; 0 below EXP_MIN, and no more than e^EXP_MAX. */
SIMD vf
vf_exp(vf x)
{
	return vf_if_lt(x, vf_set(EXP_MIN), vf_zero(),
	    exp_within(vf_clamp(x, EXP_MIN, EXP_MAX)));
}

/* 2^x within 2 ulp, 0 below -126; x < 127.  Minimax in the relative error, 1.4
 * roundings, of polynomials with p(0) = 1: powers of 2 are exact. */
SIMD vf
vf_exp2(vf x)
{
	const float c[] = { 9.0170307085e-03f, 5.5799912661e-02f,
	    2.4016444385e-01f, 6.9315129519e-01f, 1 };
	vf r = vf_fract(x), p = vf_set(1.8671300495e-03f);
	unsigned j;

	UNROLL
	for (j = 0; j < NITEMS(c); j++)
		p = vf_fma(p, r, vf_set(c[j]));
	return vf_mul_pow2(p, x);
}

/* Lane i is the largest lane of v[i]; v is overwritten. */
SIMD vf
vf_hmax_each(vf v[SIMD_VL])
{
	unsigned n, i;

	UNROLL
	for (n = SIMD_VL / 2; n > 0; n /= 2)
		UNROLL
		for (i = 0; i < n; i++)
			v[i] = vf_max(vf_even(v[2 * i], v[2 * i + 1]),
			    vf_odd(v[2 * i], v[2 * i + 1]));
	return v[0];
}

/* The same of sums: neighbours first, then pairs, and so on. */
SIMD vf
vf_hsum_each(vf v[SIMD_VL])
{
	unsigned n, i;

	UNROLL
	for (n = SIMD_VL / 2; n > 0; n /= 2)
		UNROLL
		for (i = 0; i < n; i++)
			v[i] = vf_add(vf_even(v[2 * i], v[2 * i + 1]),
			    vf_odd(v[2 * i], v[2 * i + 1]));
	return v[0];
}

/* x * sigmoid(z), where x and z have the same sign: 0 for z below EXP_MIN. */
SIMD vf
vf_gate(vf x, vf z)
{
	vf e = exp_within(vf_clamp(vf_sub(vf_zero(), z), EXP_MIN, EXP_MAX));

	return vf_if_lt(z, vf_set(EXP_MIN), vf_mul(x, vf_zero()),
	    vf_div_above1(x, vf_add(vf_set(1), e)));
}

/* Within 4 ulp: near 0, where 1 - 2 / (e^2x + 1) would cancel, the polynomial
 * of Cephes' tanhf. */
SIMD vf
vf_tanh(vf x)
{
	const float c[] = { 2.06390887954e-2f, -5.37397155531e-2f,
	    1.33314422036e-1f, -3.33332819422e-1f };
	vf e = exp_within(vf_clamp(vf_add(x, x), -40, 40));
	vf x2 = vf_mul(x, x), p = vf_set(-5.70498872745e-3f);
	unsigned j;

	e = vf_sub(vf_set(1), vf_div(vf_set(2), vf_add(e, vf_set(1))));
	UNROLL
	for (j = 0; j < NITEMS(c); j++)
		p = vf_fma(p, x2, vf_set(c[j]));
	p = vf_fma(vf_mul(p, x2), x, x);
	return vf_if_lt(x2, vf_set(0.625f * 0.625f), p, e);
}

#endif
#endif
