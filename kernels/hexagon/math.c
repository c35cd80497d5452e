/* kernels/hexagon/math.c - math functions in scalar floats; a domain has no libm. */
#include "domain.h"

#define FMA(a, b, c)	__builtin_fmaf(a, b, c)

/* 2^n * e^r, n = round(x / ln 2); e^r, |r| < 0.35, by a Taylor polynomial of degree
 * 7: a relative error of 4e-8 and one or two roundings.  No fused operations: the
 * emulator takes 100 ns for each. */
float
hx_exp(float x)
{
	float n, r, p;

	if (x != x)
		return x;
	if (x < -87)
		return 0;
	x = x > 88 ? 88 : x;
	n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
	r = x - n * 0.693145752f;	/* 16 bits: the product is exact */
	r = r - n * 1.42860677e-6f;
	p = 1.98412698e-4f;
	p = p * r + 1.38888889e-3f;
	p = p * r + 8.33333333e-3f;
	p = p * r + 4.16666667e-2f;
	p = p * r + 1.66666667e-1f;
	p = p * r + 0.5f;
	p = p * r + 1.0f;
	p = p * r + 1.0f;
	return p * hx_float((uint32_t)((int32_t)n + 127) << 23);
}

/* With b = m * 2^e, m in [1, 2): 1 / m by Newton's method, which doubles the bits in
 * each step; then one correction by the exact remainder of the quotient. */
float
hx_div(float a, float b)
{
	uint32_t u = hx_bits(b);
	float m = hx_float((u & 0x7fffff) | 0x3f800000), r, q;
	float scale = hx_float((254u - (u >> 23 & 0xff)) << 23);

	r = hx_float(0x7ef311c7 - hx_bits(m));
	r = r * (2 - m * r);
	r = r * (2 - m * r);
	r = r * (2 - m * r);
	q = a * r;
	q = FMA(FMA(-m, q, a), r, q);
	q *= scale;
	return u >> 31 ? -q : q;
}

float
hx_rsqrt(double x)
{
	union { double d; uint64_t u; } v = { .d = x };
	double r;
	int i;

	v.u = UINT64_C(0x5fe6eb50c7b537a9) - (v.u >> 1);
	r = v.d;
	for (i = 0; i < 5; i++)
		r = r * (1.5 - 0.5 * x * r * r);
	return (float)r;
}

/* (1 - E) / (1 + E), E = exp(-2 |x|) */
float
hx_tanh(float x)
{
	float a = hx_float(hx_bits(x) & 0x7fffffff), e = hx_exp(-2 * a);

	if (x != x)
		return x;
	/* Near 0 the difference cancels: use x - x^3 / 3 + 2 x^5 / 15. */
	if (a < 0.02f)
		return x - x * x * x * (0.333333333f - x * x * 0.133333333f);
	e = hx_div(1 - e, 1 + e);
	return x < 0 ? -e : e;
}

uint16_t
hx_to_half(float x)
{
	uint32_t u = hx_bits(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;

	if (a > 0x7f800000)
		return (uint16_t)(sign | 0x7e00);
	if (a >= 0x477ff000)		/* rounds beyond 65504 */
		return (uint16_t)(sign | 0x7c00);
	if (a < 0x38800000)		/* denormal: units of 2^-24 */
		return (uint16_t)(sign | (hx_bits(hx_float(a) + 0.5f) -
		    hx_bits(0.5f)));
	a += 0xfff + (a >> 13 & 1);
	return (uint16_t)(sign | (a - (112u << 23)) >> 13);
}
