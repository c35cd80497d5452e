/* kernels/simd/simd.h - vectors of floats and of 32-bit integers, in the
 * instruction set that the including file is compiled for.  Owns: the
 * operations; simd/<isa>.h implements them by intrinsics.  Included by the
 * templates (rows/rows.h, attn/attn.h, matmul/matmul.h), which define each
 * algorithm once.  A variant is a file with its own -m flags that includes the
 * templates; its functions are static.
 *
 *	SIMD_VL			floats in a vector vf, integers in a vi;
 *				undefined where there are no vectors: then the
 *				templates are empty
 *	SIMD_NREGS		vector registers of the machine
 *	SIMD_ACT_BIAS		added to the bytes of activations for dot
 *				products: 0 or 128 (kernels.act_bias)
 *	vf_load_n vf_store_n	the first n lanes (all if n >= SIMD_VL); other
 *				lanes are loaded as 0, and their memory is
 *				neither read nor written
 *	vf_first_n		lanes from n on become `other`
 *	vf_fma(a, b, c)		a * b + c rounded once; vf_fnma: c - a * b
 *	vf_max vf_min		for NaN, the second operand (x86); NaN (Arm)
 *	vf_if_lt(a, b, y, n)	y in lanes where a < b, else (also for NaN) n
 *	vf_even vf_odd		every other lane of two vectors; vf_zip_lo and
 *				vf_zip_hi are the inverse
 *	vf_bits vi_bits		reinterpret as the other type
 *	vi_sub8			subtract bytes; vi_mul16: low halves of 16-bit
 *				products; vi_madd16: sums of two 16-bit products
 *				(x86)
 *	vi_times(v, f)		v * f, 16-bit integers; f from vi_factor().
 *				vi_factor_twice(): f in both halves, for 16-bit
 *				products
 *	vi_byte(v, i)		byte i of each integer
 *	vi_lookup(t, i)		16-byte table, an index in each byte
 *	vf_ldexp(x, n)		x * 2^n, n whole; x and the result are normal
 *				(or both NaN)
 *	vf_fract		x - floor(x)
 *	vf_mul_pow2(x, n)	x * 2^floor(n), 0 for n < -126; x in [1, 2] and
 *				n < 127 (or both NaN)
 *	vf_from_half ...	widen SIMD_VL elements at p; vf_set_half: one,
 *				to all lanes
 *	vf_dot_bf16(s, a, b)	s + both bfloat16 products of each lane, the
 *				upper one first; denormal numbers are 0.  This
 *				and vf_to_bf16 only if the -m flags allow
 *	vi_store_q8		lanes of 4 vectors as 8 bits, and the sum of
 *				each 16 (if sum is not NULL); n = 32 or 64 of
 *				64 lanes are stored
 *	vf_by_power(v, e)	v * 2^e, e whole (AVX-512 only)
 *	act_signed(d, q, start, from, by, both)
 *				32 bytes of activations without SIMD_ACT_BIAS;
 *				start = from - by * the sums of the halves, or
 *				(both) of all and of the upper half;
 *				0 <= by <= 128
 *	vf_hsum_each vi_hmax_each
 *				lane i is across v[i], in one fixed order;
 *				vf_hmax: across one vector */
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

/* Keep v in a register, instead of loading it again for each instruction.  Not
 * where registers are scarcer than loads. */
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
/* Data that is read once: kept in L1 only. */
SIMD void
prefetch_once(const void *p)
{
	__builtin_prefetch(p, 0, 0);
}
/* Data that is needed later than L1 would keep it. */
SIMD void
prefetch_l2(const void *p)
{
	__builtin_prefetch(p, 0, 2);
}

/* Prefetch a line for the TLB's sake.  With pages of 4 KiB, in a guest or in
 * its host, a core that prefetches still waits for the page walk at the
 * beginning of each page, and sometimes for memory, because eight entries share
 * a line of the page table.  A line of that page, prefetched some pages
 * earlier, avoids that. */
SIMD void
prefetch_page(const void *p)
{
	prefetch_l2(p);
}

/* No intermediate value below is denormal unless the result is: each costs as
 * much as tens of vectors.  So e^x is 0 where it would be denormal. */
enum { EXP_MIN = -86, EXP_MAX = 88 };

/* e^x within 2 ulp, EXP_MIN <= x <= EXP_MAX; polynomial of Cephes' expf. */
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

/* NaN stays NaN: vf_min and vf_max return the second operand then. */
SIMD vf
vf_clamp(vf x, float min, float max)
{
	return vf_min(vf_set(max), vf_max(vf_set(min), x));
}

/* e^x; 0 below EXP_MIN, at most e^EXP_MAX. */
SIMD vf
vf_exp(vf x)
{
	return vf_if_lt(x, vf_set(EXP_MIN), vf_zero(),
	    exp_within(vf_clamp(x, EXP_MIN, EXP_MAX)));
}

/* 2^x within 2 ulp, 0 below -126; x < 127.  The polynomial is minimax in the
 * relative error (1.4 roundings) with p(0) = 1, so that powers of 2 are exact.
 */
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

/* Lane i is the maximum of v[i]; overwrites v. */
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

/* Lane i is the sum of v[i]: neighbours first, then pairs, and so on.
 * Overwrites v. */
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

/* x * sigmoid(z), for x and z of the same sign; 0 for z below EXP_MIN. */
SIMD vf
vf_gate(vf x, vf z)
{
	vf e = exp_within(vf_clamp(vf_sub(vf_zero(), z), EXP_MIN, EXP_MAX));

	return vf_if_lt(z, vf_set(EXP_MIN), vf_mul(x, vf_zero()),
	    vf_div_above1(x, vf_add(vf_set(1), e)));
}

/* tanh within 4 ulp.  Near 0, where 1 - 2 / (e^2x + 1) would cancel, it is the
 * polynomial of Cephes' tanhf. */
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
