/* kernels/peak/arm_neon.c - peaks that every 64-bit ARM core has.  Reading is
 * peak/ref.c's: its vectors of 16 bytes are NEON's. */
#include <arm_neon.h>

#include "peak.h"

/* Products of 8 bits onto sums of 16.  That those are widened now and then
 * costs a kernel something, and is no bound: how often is for the weights to
 * say, and many cores do it beside the products. */
static double
int8_neon(uint64_t rounds, uint32_t seed)
{
	int8x16_t a = vdupq_n_s8((int8_t)(seed & 15)), b = vdupq_n_s8(3);
#define BEGIN(i)	int16x8_t s##i = vdupq_n_s16(i);
#define STEP(i)		PEAK_OPAQUE(b);					\
	s##i = vmlal_high_s8(vmlal_s8(s##i,				\
	    vget_low_s8(a), vget_low_s8(b)), a, b);			\
	PEAK_OPAQUE(s##i);
#define END(i)		s0 = vaddq_s16(vshlq_n_s16(s0, 1), s##i);
	PEAK_EACH16(BEGIN)

	for (; rounds > 0; rounds--) {
		PEAK_OPAQUE(a);
		PEAK_EACH16(STEP)
	}
	PEAK_EACH16(END)
	return vaddvq_s16(s0);
#undef BEGIN
#undef STEP
#undef END
}

static double
f32_neon(uint64_t rounds, uint32_t seed)
{
	float32x4_t a = vdupq_n_f32((float)(seed & 1)), b = vdupq_n_f32(.25f);
#define BEGIN(i)	float32x4_t s##i = vdupq_n_f32(i);
#define STEP(i)		s##i = vfmaq_f32(s##i, a, b);			\
	PEAK_OPAQUE(s##i);
#define END(i)		s0 = vfmaq_f32(s##i, s0, b);
	PEAK_EACH16(BEGIN)

	for (; rounds > 0; rounds--) {
		PEAK_OPAQUE(a);
		PEAK_OPAQUE(b);
		PEAK_EACH16(STEP)
	}
	PEAK_EACH16(END)
	return (double)vaddvq_f32(s0);
#undef BEGIN
#undef STEP
#undef END
}

void
peaks_init_neon(struct peaks *p)
{
	p->loop[PEAK_INT8] = (struct peak_loop){ "smlal + smlal2",
	    int8_neon, 16 * 16 * 2 };
	p->loop[PEAK_F32] = (struct peak_loop){ "fmla", f32_neon,
	    16 * 4 * 2 };
}
