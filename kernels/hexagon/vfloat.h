/* kernels/hexagon/vfloat.h - floats in HVX vectors, by integer instructions.
 * Owns: IEEE products and sums of 32 floats, to nearest even; fixed point to
 * floats and back; 2^-t, sigmoid and tanh.  Called by the domain's row and
 * attention kernels.  Does not depend on operations.
 *
 * HVX of v66 and v67 has no floats.  Operands must be finite: callers check with
 * vf_top().  Denormals become zero, overflow becomes Inf.  An operation takes 25 to
 * 30 vector instructions, up to four in a packet, for 32 floats; the scalar unit
 * needs three or four packets for one. */
#ifndef KERNELS_HEXAGON_VFLOAT_H
#define KERNELS_HEXAGON_VFLOAT_H

#include <hexagon_types.h>
#include <hvx_hexagon_protos.h>

#include "domain.h"

#define INLINE	static inline __attribute__((always_inline))
#define SPLAT(x)	Q6_V_vsplat_R((int32_t)(x))
#define ADD(a, b)	Q6_Vw_vadd_VwVw(a, b)
#define SUB(a, b)	Q6_Vw_vsub_VwVw(a, b)
#define AND(a, b)	Q6_V_vand_VV(a, b)
#define OR(a, b)	Q6_V_vor_VV(a, b)
#define MUX(q, a, b)	Q6_V_vmux_QVV(q, a, b)
#define GT(a, b)	Q6_Q_vcmp_gt_VwVw(a, b)
#define EQ(a, b)	Q6_Q_vcmp_eq_VwVw(a, b)
#define SHL(a, n)	Q6_Vw_vasl_VwR(a, n)
#define SHR(a, n)	Q6_Vuw_vlsr_VuwR(a, n)

enum { VF_ALL = HX_LANES };

INLINE HVX_Vector
vf_load(const float *x)
{
	return *(const HVX_UVector *)(const void *)x;
}

INLINE void
vf_store(float *y, HVX_Vector v)
{
	*(HVX_UVector *)(void *)y = v;
}

INLINE HVX_Vector
vf_splat(float f)
{
	return SPLAT(hx_bits(f));
}

INLINE HVX_Vector
vf_abs(HVX_Vector a)
{
	return AND(a, SPLAT(0x7fffffff));
}

INLINE HVX_Vector
vf_exponent(HVX_Vector a)
{
	return SHR(SHL(a, 1), 24);
}

/* 24 bits with the leading one, which a denormal gets too. */
INLINE HVX_Vector
vf_mantissa(HVX_Vector a)
{
	return OR(AND(a, SPLAT(0x7fffff)), SPLAT(0x800000));
}

/* round(a * b / 2^31), ties up; |a * b| below 2^62. */
INLINE HVX_Vector
vf_mulhi(HVX_Vector a, HVX_Vector b)
{
	return Q6_Vw_vmpyoacc_VwVwVh_s1_rnd_sat_shift(
	    Q6_Vw_vmpye_VwVuh(a, b), a, b);
}

/* v * 2^up as a float; v has 32 bits without a sign, and its lowest bit is sticky.
 * Zero below the normal numbers. */
INLINE HVX_Vector
vf_round(HVX_Vector v, HVX_Vector up, HVX_Vector sign)
{
	const HVX_Vector zero = Q6_V_vzero(), one = SPLAT(1);
	HVX_Vector lz = Q6_Vuw_vcl0_Vuw(v), n = Q6_Vw_vasl_VwVw(v, lz);
	HVX_Vector h = SHR(n, 8), e, y, low;

	low = ADD(AND(n, SPLAT(0xff)), SPLAT(0x7f));
	h = ADD(h, SHR(ADD(low, AND(h, one)), 8));
	e = SUB(ADD(up, SPLAT(31 + 127)), lz);
	y = ADD(h, SHL(SUB(e, one), 23));
	y = MUX(GT(e, SPLAT(254)), SPLAT(0x7f800000), y);
	y = MUX(GT(one, e), zero, y);
	y = MUX(EQ(v, zero), zero, y);
	return OR(y, sign);
}

INLINE HVX_Vector
vf_sign(HVX_Vector a)
{
	return AND(a, SPLAT(1u << 31));
}

/* a * b */
INLINE HVX_Vector
vf_mul(HVX_Vector a, HVX_Vector b)
{
	const HVX_Vector zero = Q6_V_vzero();
	HVX_Vector ea = vf_exponent(a), eb = vf_exponent(b), v;
	HVX_Vector mb = SHL(vf_mantissa(b), 7), ma = SHL(vf_mantissa(a), 7);
	HVX_VectorPair p = Q6_W_vmpyoacc_WVwVh(Q6_W_vmpye_VwVuh(ma, mb), ma,
	    mb);

	/* 62 bits: the lower half becomes the sticky bit. */
	v = OR(Q6_V_hi_W(p), MUX(EQ(Q6_V_lo_W(p), zero), zero, SPLAT(1)));
	v = MUX(EQ(ea, zero), zero, v);
	v = MUX(EQ(eb, zero), zero, v);
	return vf_round(v, SUB(ADD(ea, eb), SPLAT(254 + 28)),
	    vf_sign(Q6_V_vxor_VV(a, b)));
}

/* a + b */
INLINE HVX_Vector
vf_add(HVX_Vector a, HVX_Vector b)
{
	const HVX_Vector zero = Q6_V_vzero();
	HVX_VectorPred swap = GT(vf_abs(b), vf_abs(a));
	HVX_Vector x = MUX(swap, b, a), y = MUX(swap, a, b);
	HVX_Vector ex = vf_exponent(x), ey = vf_exponent(y);
	HVX_Vector mx = SHL(vf_mantissa(x), 6), my = SHL(vf_mantissa(y), 6);
	HVX_Vector d = Q6_Vw_vmin_VwVw(SUB(ex, ey), SPLAT(31)), low;

	mx = MUX(EQ(ex, zero), zero, mx);
	my = MUX(EQ(ey, zero), zero, my);
	low = Q6_Vw_vlsr_VwVw(my, d);
	my = OR(low, MUX(EQ(Q6_Vw_vasl_VwVw(low, d), my), zero, SPLAT(1)));
	my = MUX(GT(zero, Q6_V_vxor_VV(x, y)), SUB(zero, my), my);
	return vf_round(ADD(mx, my), SUB(ex, SPLAT(127 + 29)), vf_sign(x));
}

/* The largest lane, in all lanes.  Lanes are nonnegative words. */
INLINE HVX_Vector
vf_max_all(HVX_Vector v)
{
	int32_t n;

	for (n = 64; n >= 4; n /= 2)
		v = Q6_Vw_vmax_VwVw(v, Q6_V_vror_VR(v, n));
	return v;
}

INLINE HVX_Vector
vf_sum_all(HVX_Vector v)
{
	int32_t n;

	for (n = 64; n >= 4; n /= 2)
		v = ADD(v, Q6_V_vror_VR(v, n));
	return v;
}

INLINE int32_t
vf_lane0(HVX_Vector v)
{
	return Q6_R_vextract_VR(v, 0);
}

/* Bits of the largest magnitude of n floats; >= 0x7f800000 when not all of them
 * are finite. */
INLINE uint32_t
vf_top(const float *x, uint32_t n)
{
	HVX_Vector m = Q6_V_vzero();
	uint32_t i, top, u;

	for (i = 0; i + VF_ALL <= n; i += VF_ALL)
		m = Q6_Vw_vmax_VwVw(m, vf_abs(vf_load(x + i)));
	top = i > 0 ? (uint32_t)vf_lane0(vf_max_all(m)) : 0;
	for (; i < n; i++) {
		u = hx_bits(x[i]) & 0x7fffffff;
		top = MAX(top, u);
	}
	return top;
}

INLINE int
vf_finite(const float *x, uint32_t n)
{
	return vf_top(x, n) < 0x7f800000;
}

/* hx_fixed() of 32 floats; top is the largest exponent. */
INLINE HVX_Vector
vf_fixed(HVX_Vector a, int32_t top)
{
	HVX_Vector e = vf_exponent(a), zero = Q6_V_vzero(), m;

	m = Q6_Vw_vlsr_VwVw(SHL(vf_mantissa(a), 7),
	    Q6_Vw_vmin_VwVw(SUB(SPLAT(top), e), SPLAT(31)));
	m = MUX(EQ(e, zero), zero, m);
	return MUX(GT(zero, a), SUB(zero, m), m);
}

/* 2^-f in units of 2^-30, for f in [0, 1) in 23 bits, by the polynomial through
 * Chebyshev's nodes; relative error 3e-9. */
INLINE HVX_Vector
vf_exp2_part(HVX_Vector f)
{
	static const int32_t c[7] = { 1073741823, -744260973, 257938912,
	    -59582935, 10286296, -1369601, 117391 };
	HVX_Vector x = SHL(f, 8), y = SPLAT(c[6]);
	int i;

	for (i = 5; i >= 0; i--)
		y = ADD(vf_mulhi(y, x), SPLAT(c[i]));
	return y;
}

/* |z| * log2 e in units of 2^-23, at most 255.99. */
INLINE HVX_Vector
vf_log2_units(HVX_Vector z)
{
	HVX_Vector e = vf_exponent(z), t;

	t = vf_mulhi(SHL(vf_mantissa(z), 7), SPLAT(0x5c551d95));
	t = Q6_Vw_vlsr_VwVw(t, Q6_Vw_vmin_VwVw(SUB(SPLAT(133), e),
	    SPLAT(31)));
	return MUX(GT(e, SPLAT(133)), SPLAT(0x7fffffff), t);
}

/* 1 / (1 + 2^-t) = half * 2^-30 for t in units of 2^-23, and 2^-t = part *
 * 2^(-30 - whole). */
struct vf_logistic {
	HVX_Vector half, part, whole;
};

INLINE struct vf_logistic
vf_logistic(HVX_Vector t)
{
	struct vf_logistic l;
	HVX_Vector d, x, e;
	int i;

	l.whole = SHR(t, 23);
	l.part = vf_exp2_part(AND(t, SPLAT(0x7fffff)));
	/* d = (1 + 2^-t) / 2, units of 2^-30. */
	d = ADD(SHR(Q6_Vw_vlsr_VwVw(l.part, Q6_Vw_vmin_VwVw(l.whole,
	    SPLAT(31))), 1), SPLAT(1 << 29));
	/* 1 / d, units of 2^-29, by Newton from 48/17 - 32/17 d. */
	x = SUB(SPLAT(0x5a5a5a5a), vf_mulhi(d, SPLAT(0x78787878)));
	for (i = 0; i < 3; i++) {
		e = SUB(SPLAT(1 << 28), vf_mulhi(d, x));
		x = ADD(x, vf_mulhi(x, SHL(e, 3)));
	}
	l.half = x;
	return l;
}

/* 1 / (1 + exp(-z)) */
INLINE HVX_Vector
vf_sigmoid(HVX_Vector z)
{
	struct vf_logistic l = vf_logistic(vf_log2_units(z));
	HVX_VectorPred minus = GT(Q6_V_vzero(), z);

	return vf_round(MUX(minus, vf_mulhi(l.part, l.half), l.half),
	    MUX(minus, SUB(SPLAT(-29), l.whole), SPLAT(-30)), Q6_V_vzero());
}

/* tanh(z) = (1 - E) / (1 + E), E = exp(-2 |z|) */
INLINE HVX_Vector
vf_tanh(HVX_Vector z)
{
	/* Twice z, by its exponent. */
	struct vf_logistic l = vf_logistic(vf_log2_units(ADD(z,
	    SPLAT(1 << 23))));
	HVX_Vector d;

	d = SUB(SPLAT(1 << 30), Q6_Vw_vlsr_VwVw(l.part,
	    Q6_Vw_vmin_VwVw(l.whole, SPLAT(31))));
	return vf_round(MUX(EQ(vf_exponent(z), Q6_V_vzero()), Q6_V_vzero(),
	    vf_mulhi(d, l.half)), SPLAT(-29), vf_sign(z));
}

/* Maps floats to words of the same order; its own inverse. */
INLINE HVX_Vector
vf_ordered(HVX_Vector a)
{
	return Q6_V_vxor_VV(a, SHR(Q6_Vw_vasr_VwR(a, 31), 1));
}

/* a clamped to [lo, hi]. */
INLINE HVX_Vector
vf_clamp(HVX_Vector a, float lo, float hi)
{
	a = Q6_Vw_vmin_VwVw(vf_ordered(a), vf_ordered(vf_splat(hi)));
	return vf_ordered(Q6_Vw_vmax_VwVw(a, vf_ordered(vf_splat(lo))));
}

#endif
