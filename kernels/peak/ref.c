/* kernels/peak/ref.c - peaks in portable C, and the choice among all.  Vectors
 * of 16 bytes exist on every supported core. */
#include "kernels/cpu.h"
#include "read.h"

typedef uint16_t u16x8 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));

/* Products and sums in 16 bits: portable C has no narrower products, and wider
 * ones are slower. */
static double
int8_ref(uint64_t rounds, uint32_t seed)
{
	u16x8 a = { (uint16_t)seed, 2, 3, 5, 7, 11, 13, 17 }, b = a + 3;
	double sum = 0;
	unsigned k;
#define BEGIN(i)	u16x8 s##i = { i, i, 1, 2, 3, 4, 5, i };
#define STEP(i)		PEAK_OPAQUE(b); s##i += a * b; PEAK_OPAQUE(s##i);
#define END(i)		s0 += s##i * (i + 1);
	PEAK_EACH12(BEGIN)

	for (; rounds > 0; rounds--) {
		PEAK_EACH12(STEP)
	}
	PEAK_EACH12(END)
	for (k = 0; k < 8; k++)
		sum += s0[k];
	return sum;
#undef BEGIN
#undef STEP
#undef END
}

/* The sums converge, so that none becomes denormal or infinite. */
static double
f32_ref(uint64_t rounds, uint32_t seed)
{
	f32x4 a = { 1, 2, 3, (float)(seed & 1) }, b = { .5f, .25f, .5f, .25f };
	double sum = 0;
	unsigned k;
#define BEGIN(i)	f32x4 s##i = { i, i, 1, 2 };
#define STEP(i)		s##i = s##i * b + a; PEAK_OPAQUE(s##i);
#define END(i)		s0 += s##i * (i + 1);
	PEAK_EACH12(BEGIN)

	PEAK_OPAQUE(a);
	PEAK_OPAQUE(b);
	for (; rounds > 0; rounds--) {
		PEAK_EACH12(STEP)
	}
	PEAK_EACH12(END)
	for (k = 0; k < 4; k++)
		sum += (double)s0[k];
	return sum;
#undef BEGIN
#undef STEP
#undef END
}

uint64_t
peak_chain(uint64_t n)
{
	uint64_t x = n, y = 3, i;

	/* Add a register: compilers, and some cores while renaming, fold
	 * additions of constants into each other. */
#define STEP(i)		x += y; __asm__("" : "+r"(x), "+r"(y));
	for (i = 0; i < n; i += 16) {
		PEAK_EACH16(STEP)
	}
#undef STEP
	return x;
}

void
peaks_init_ref(struct peaks *p)
{
	*p = (struct peaks){ .loop = {
		[PEAK_INT8] = { "portable C", int8_ref, 12 * 8 * 2 },
		[PEAK_F32] = { "portable C", f32_ref, 12 * 4 * 2 },
	} };
	peak_read_init(p, "16-byte loads");
}

/* Oldest first, under the conditions of kernels_init(). */
void
peaks_init(struct peaks *p, uint32_t cpu_flags)
{
	static const struct {
		uint32_t flags;		/* all are required */
		void (*init)(struct peaks *p);
	} variants[] = {
#if defined(__x86_64__)
		{ CPU_AVX2, peaks_init_avx2 },
		{ CPU_AVX_VNNI, peaks_init_avxvnni },
		{ CPU_AVX512_VNNI, peaks_init_avx512 },
		{ CPU_AVX512_VNNI | CPU_AVX512_BF16,
		    peaks_init_avx512_bf16 },
#elif defined(__aarch64__)
		{ CPU_NEON, peaks_init_neon },
		{ CPU_DOTPROD, peaks_init_dotprod },
		{ CPU_DOTPROD | CPU_I8MM, peaks_init_i8mm },
		{ CPU_ARM_BF16, peaks_init_arm_bf16 },
#endif
		{ 0, NULL }
	};
	unsigned i;

	peaks_init_ref(p);
	for (i = 0; variants[i].init != NULL; i++)
		if ((cpu_flags & variants[i].flags) == variants[i].flags)
			variants[i].init(p);
}
