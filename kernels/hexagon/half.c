/* kernels/hexagon/half.c - rows of halves to floats, by integers in vectors. */
#include <hexagon_types.h>
#include <hvx_hexagon_protos.h>

#include "domain.h"

/* Bits of floats from 32 halves in words.  A denormal is an integer of up to
 * 10 bits times 2^-24: its leading bit gives the exponent. */
static inline __attribute__((always_inline)) HVX_Vector
words_to_floats(HVX_Vector w)
{
	HVX_Vector a = Q6_V_vand_VV(w, Q6_V_vsplat_R(0x7fff));
	HVX_Vector sign = Q6_Vw_vasl_VwR(Q6_Vw_vsub_VwVw(w, a), 16);
	HVX_Vector up = Q6_Vw_vasl_VwR(a, 13);
	HVX_Vector lz = Q6_Vuw_vcl0_Vuw(a), y, small;

	y = Q6_Vw_vadd_VwVw(up, Q6_V_vsplat_R(112 << 23));
	small = Q6_Vw_vadd_VwVw(Q6_Vw_vasl_VwVw(a, Q6_Vw_vsub_VwVw(lz,
	    Q6_V_vsplat_R(8))), Q6_Vw_vasl_VwR(Q6_Vw_vsub_VwVw(
	    Q6_V_vsplat_R(133), lz), 23));
	y = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(0x400), a), small,
	    y);
	y = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(a, Q6_V_vsplat_R(0x7bff)),
	    Q6_V_vor_VV(up, Q6_V_vsplat_R(0x7f800000)), y);
	y = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(a, Q6_V_vzero()), Q6_V_vzero(),
	    y);
	return Q6_V_vor_VV(y, sign);
}

void
hx_floats(float *y, const uint16_t *x, uint32_t n)
{
	uint32_t i;

	for (i = 0; i + 64 <= n; i += 64) {
		HVX_VectorPair w = Q6_Wuw_vunpack_Vuh(
		    *(const HVX_UVector *)(const void *)(x + i));

		*(HVX_UVector *)(void *)(y + i) =
		    words_to_floats(Q6_V_lo_W(w));
		*(HVX_UVector *)(void *)(y + i + 32) =
		    words_to_floats(Q6_V_hi_W(w));
	}
	for (; i < n; i++)
		y[i] = hx_from_half(x[i]);
}
