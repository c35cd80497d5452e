/* kernels/peak/arm_bf16.c - bfmmla: products of (2 x 4) by (4 x 2) bfloat16,
 * twice the throughput of bfdot. */
#include <arm_neon.h>

#include "peak.h"

static double
bf16_arm(uint64_t rounds, uint32_t seed)
{
	uint16_t one = seed & 1 ? 0x3f80 : 0, quarter = 0x3e80;
	bfloat16x8_t a = vreinterpretq_bf16_u16(vdupq_n_u16(one)), b;
#define BEGIN(i)	float32x4_t s##i = vdupq_n_f32(i);
#define STEP(i)		s##i = vbfmmlaq_f32(s##i, a, b);		\
	PEAK_OPAQUE(s##i);
#define END(i)		s0 = vaddq_f32(vmulq_n_f32(s0, .25f), s##i);
	PEAK_EACH16(BEGIN)

	/* The compiler would build a constant by an instruction of another
	 * extension. */
	__asm__("" : "+r"(quarter));
	b = vreinterpretq_bf16_u16(vdupq_n_u16(quarter));
	for (; rounds > 0; rounds--) {
		PEAK_OPAQUE(a);
		PEAK_OPAQUE(b);
		PEAK_EACH16(STEP)
	}
	PEAK_EACH16(END)
	return (double)vaddvq_f32(s0);
}

void
peaks_init_arm_bf16(struct peaks *p)
{
	p->loop[PEAK_BF16] = (struct peak_loop){ "bfmmla", bf16_arm,
	    16 * 16 * 2 };
}
