/* kernels/peak/arm_dotprod.c - sdot: 8-bit dot products. */
#include <arm_neon.h>

#include "peak.h"

static double
int8_dotprod(uint64_t rounds, uint32_t seed)
{
	int8x16_t a = vdupq_n_s8((int8_t)(seed & 15)), b = vdupq_n_s8(3);
#define BEGIN(i)	int32x4_t s##i = vdupq_n_s32(i);
#define STEP(i)		s##i = vdotq_s32(s##i, a, b);			\
	PEAK_OPAQUE(s##i);
#define END(i)		s0 = vaddq_s32(vshlq_n_s32(s0, 1), s##i);
	PEAK_EACH16(BEGIN)

	for (; rounds > 0; rounds--) {
		PEAK_OPAQUE(a);
		PEAK_OPAQUE(b);
		PEAK_EACH16(STEP)
	}
	PEAK_EACH16(END)
	return vaddvq_s32(s0);
}

void
peaks_init_dotprod(struct peaks *p)
{
	p->loop[PEAK_INT8] = (struct peak_loop){ "sdot", int8_dotprod,
	    16 * 16 * 2 };
}
