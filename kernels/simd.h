/* kernels/simd.h - vectors of floats and 32-bit integers, by whichever
 * instruction set the file that includes this is compiled for.
 * Owns: the words; each simd_<isa>.h says them in its intrinsics.  Included by
 * the templates (rows.h, attn.h, mat.h), which say each algorithm once; a
 * variant is a file that includes simd.h and the templates, with its own -m
 * flags, under its own names.
 *
 *	SIMD_VL			floats in a vector, vf, and integers, vi; not
 *				defined where there are no vectors: then the
 *				templates are empty
 *	SIMD_NREGS		vectors that the machine has registers for
 *	vf_load_n vf_store_n	the first n lanes (all for n >= SIMD_VL); others
 *				are read as 0, not written, and not touched
 *	vf_first_n		lanes from n on become `other`
 *	vf_fma(a, b, c)		a * b + c rounded once; vf_fnma: c - a * b
 *	vf_max vf_min		of NaN, the second operand (x86; on Arm NaN)
 *	vf_bits vi_bits		the same bits as the other kind
 *	vf_from_half ...	SIMD_VL elements at p, widened; vi_to_i8: lanes
 *				that fit, narrowed; vf_set_half: one, everywhere
 *	vf_hsum ...		across lanes, in one fixed order */
#ifndef KERNELS_SIMD_H
#define KERNELS_SIMD_H

#if defined(__AVX512BW__)
#include "simd_avx512.h"
#elif defined(__AVX2__)
#include "simd_avx2.h"
#endif

#ifdef SIMD_VL

SIMD void
prefetch(const void *p)
{
	__builtin_prefetch(p);
}

/* e^x within 2 ulp; polynomial of Cephes' expf.  2^n is applied in two halves
 * so that n = 128 and denormal results come out right.  A NaN stays one. */
SIMD vf
vf_exp(vf x)
{
	const float c[] = { 1.3981999507e-3f, 8.3334519073e-3f,
	    4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f };
	vf n, r, p;
	vi i, half;
	unsigned j;

	x = vf_max(vf_set(-105), x);
	x = vf_min(vf_set(90), x);
	n = vf_round(vf_mul(x, vf_set(1.44269504088896341f)));
	r = vf_fnma(n, vf_set(0.693359375f), x);
	r = vf_fnma(n, vf_set(-2.12194440e-4f), r);
	p = vf_set(1.9875691500e-4f);
	UNROLL
	for (j = 0; j < NITEMS(c); j++)
		p = vf_fma(p, r, vf_set(c[j]));
	p = vf_fma(p, vf_mul(r, r), r);
	p = vf_add(p, vf_set(1));

	i = vi_from_vf(n);
	half = vi_sar(i, 1);
	i = vi_shl(vi_add(vi_sub(i, half), vi_set(127)), 23);
	half = vi_shl(vi_add(half, vi_set(127)), 23);
	return vf_mul(vf_mul(p, vf_bits(i)), vf_bits(half));
}

#endif
#endif
