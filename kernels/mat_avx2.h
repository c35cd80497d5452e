/* kernels/mat_avx2.h - dot products for mat.h in AVX2; no guard: a part of it.
 *
 * maddubs: unsigned by signed bytes, pairs summed in 16 bits, saturating.
 * Activations are the unsigned ones, up to 255: |q| <= 64 never saturates, and
 * smaller ones leave room for several pairs before the sums are widened. */
#ifdef MAT_SUFFIX

/* Four activations, for all rows of a vector. */
SIMD vi
act_group(const struct acts *a, unsigned t, unsigned g)
{
	int32_t v;

	memcpy(&v, act_of(a, t)->q + g * 4, sizeof(v));
	return vi_set(v);
}

/* Groups of products that fit into 16 bits: 255 * |q| * 2 each. */
SIMD unsigned
groups_in_16(enum dot_kind kind)
{
	return kind == DOT_15 ? 4 : kind == DOT_31 ? 2 : 1;
}

/* Signed bytes, halved: low + high, neither beyond 64. */
SIMD void
halve(vi q, vi *low, vi *high)
{
	const vi sign = vi_set((int32_t)0x80808080);

	*low = vi_xor(_mm256_avg_epu8(vi_xor(q, sign), vi_set(0x7f7f7f7f)),
	    sign);
	*high = vi_sub8(q, *low);
}

SIMD vi
widen_add(vi dot, vi pairs)
{
	return vi_add(dot, vi_madd16(pairs, vi_set(0x00010001)));
}

SIMD void
mat_dot(enum dot_kind kind, unsigned nt, vi dot[][MAT_NR],
    const vi q[][MAT_NR], const struct acts *a, unsigned g0, unsigned n)
{
	const unsigned in16 = groups_in_16(kind);
	unsigned t, r, g, i;

	UNROLL
	for (r = 0; r < MAT_NR; r++) {
		UNROLL
		for (g = 0; g < n; g += in16) {
			vi low = q[g][r], high = vi_set(0);

			if (kind == DOT_128)
				halve(q[g][r], &low, &high);
			UNROLL
			for (t = 0; t < nt; t++) {
				vi x = act_group(a, t, g0 + g);
				vi s = _mm256_maddubs_epi16(x, low);

				UNROLL
				for (i = 1; i < in16; i++)
					s = _mm256_add_epi16(s,
					    _mm256_maddubs_epi16(act_group(a,
					    t, g0 + g + i), q[g + i][r]));
				dot[t][r] = widen_add(dot[t][r], s);
				if (kind == DOT_128)
					dot[t][r] = widen_add(dot[t][r],
					    _mm256_maddubs_epi16(x, high));
			}
		}
	}
}

#define ONE_FLIP	0
#define FEW_MOST	4

/* q is the unsigned side here, |x| <= 127: 127 * q * 2 for each group. */
SIMD unsigned
one_groups_in_16(enum dot_kind kind)
{
	return kind == DOT_15 ? 8 : kind == DOT_31 ? 4 : kind == DOT_63 ? 2 :
	    1;
}

/* Of signed q the magnitude, and the sign goes to x. */
SIMD vi
one_pairs(enum dot_kind kind, vi q, vi x)
{
	return kind == DOT_128 ? _mm256_maddubs_epi16(_mm256_abs_epi8(q),
	    _mm256_sign_epi8(x, q)) : _mm256_maddubs_epi16(q, x);
}

SIMD void
mat_dot_one(enum dot_kind kind, vi dot[][MAT_NR], const vi q[][MAT_NR],
    const struct acts *a, unsigned g0, unsigned n)
{
	const unsigned in16 = MIN(one_groups_in_16(kind), n);
	unsigned r, g, i;
	vi s;

	UNROLL
	for (r = 0; r < MAT_NR; r++) {
		UNROLL
		for (g = 0; g < n; g += in16) {
			s = one_pairs(kind, q[g][r], act_group(a, 0, g0 + g));
			UNROLL
			for (i = 1; i < in16; i++)
				s = _mm256_add_epi16(s, one_pairs(kind,
				    q[g + i][r], act_group(a, 0, g0 + g + i)));
			dot[0][r] = widen_add(dot[0][r], s);
		}
	}
}

#endif
