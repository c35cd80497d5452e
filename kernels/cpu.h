/* kernels/cpu.h - which instruction sets this core has, and how it reads memory
 * best, under a test mask. */
#ifndef KERNELS_CPU_H
#define KERNELS_CPU_H

#include "config/base.h"

enum cpu_flag {
	CPU_AVX2 = 1u << 0,	/* with FMA and F16C */
	CPU_AVX_VNNI = 1u << 1,	/* in 32-byte vectors, without AVX-512 */
	CPU_AVX512_VNNI = 1u << 2,
	CPU_AVX512_BF16 = 1u << 3,
	CPU_NEON = 1u << 8,
	CPU_DOTPROD = 1u << 9,
	CPU_I8MM = 1u << 10,
	CPU_ARM_BF16 = 1u << 11,
	CPU_QUICK_SCALEF = 1u << 14,	/* AVX-512's products with powers of
					 * two take no other product's place */
	CPU_QUICK_BF16 = 1u << 15,	/* AVX512_BF16's dot products begin as
					 * often as products of floats */
	/* How few rows' weights are asked for (matmul/prefetch.h), AMD's cores: */
	CPU_ASK_ONCE = 1u << 16,	/* before Zen 4: as on Zen 3 */
	CPU_FOLLOWS = 1u << 17,		/* Zen 4 */
	CPU_ONE_STREAM = 1u << 18,	/* from Zen 5 on */
	/* And not of the core, but of whoever calls the kernels: only one
	 * thread of a session does. */
	CPU_ALONE = 1u << 19
};

/* Flags of this machine (CPUID with the OS's XCR0, or AT_HWCAP), and'ed with
 * the mask in the environment variable STRADDLE_CPU_MASK when that is set
 * ("0" = reference kernels only; names joined by '+': "avx2"). */
uint32_t cpu_flags(void);

/* "avx2+avx512_vnni" or "none".  Returns buf. */
char *cpu_flags_format(uint32_t flags, char *buf, size_t len);

#endif
