/* kernels/arm_neon_peak.c - peaks that every 64-bit ARM core has.  Reading is
 * peak_ref.c's: its vectors of 16 bytes are NEON's. */
#include <arm_neon.h>

#include "peak.h"

/* 8-bit products into sums of 32 bits: products of 16, pairs of them added. */
static double
int8_neon(uint64_t rounds, uint32_t seed)
{
	int8x16_t a = vdupq_n_s8((int8_t)(seed & 15)), b = vdupq_n_s8(3);
#define BEGIN(i)	int32x4_t s##i = vdupq_n_s32(i);
#define STEP(i)		PEAK_OPAQUE(b);					\
	s##i = vpadalq_s16(s##i, vmlal_high_s8(vmull_s8(		\
	    vget_low_s8(a), vget_low_s8(b)), a, b));			\
	PEAK_OPAQUE(s##i);
#define END(i)		s0 = vaddq_s32(vshlq_n_s32(s0, 1), s##i);
	PEAK_EACH12(BEGIN)

	PEAK_OPAQUE(a);
	for (; rounds > 0; rounds--) {
		PEAK_EACH12(STEP)
	}
	PEAK_EACH12(END)
	return vaddvq_s32(s0);
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
	p->loop[PEAK_INT8] = (struct peak_loop){ "smull + smlal2 + sadalp",
	    int8_neon, 12 * 16 * 2 };
	p->loop[PEAK_F32] = (struct peak_loop){ "fmla", f32_neon,
	    16 * 4 * 2 };
}
