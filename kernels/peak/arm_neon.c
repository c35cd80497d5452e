/* kernels/peak/arm_neon.c - peaks of every aarch64 core.  The read loops are
 * those of peak/ref.c: its 16-byte vectors are NEON's. */
#include <arm_neon.h>

#include "peak.h"

/* 8-bit products added in 16 bits.  A kernel also widens sums now and then,
 * which is no part of this bound: how often depends on the weights, and many
 * cores do it in parallel. */
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
