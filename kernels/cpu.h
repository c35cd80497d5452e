/* kernels/cpu.h - CPU features and core types.
 * Owns: the flags and their names.  Called when a table of kernels is chosen,
 * and by programs that print what they run on.  Does not depend on any kernel.
 */
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
	/* AVX-512's vscalefps does not compete with multiplications for issue
	 * slots. */
	CPU_FAST_SCALEF = 1u << 14,
	/* vdpbf16ps has the throughput of vfmadd, not half of it. */
	CPU_FAST_BF16 = 1u << 15,
	/* Core types: select how weights are prefetched when a batch has few
	 * rows (matmul/policy.h).  AMD only; at most one is set. */
	CPU_ZEN3 = 1u << 16,	/* and every AMD core before it */
	CPU_ZEN4 = 1u << 17,
	CPU_ZEN5 = 1u << 18,	/* and every AMD core after it */
	/* Set by the worker, never detected: its session has one thread. */
	CPU_SINGLE_THREAD = 1u << 19
};

/* Flags of this machine, from CPUID and XCR0 or from AT_HWCAP, restricted to
 * the names in the environment variable STRADDLE_CPU_MASK when it is set: names
 * joined by '+' ("avx2+avx512_vnni").  An unknown name, such as "0", allows
 * nothing, which leaves the reference kernels. */
uint32_t cpu_flags(void);

/* Writes the flags' names into buf (len bytes), cut to fit: "avx2+avx512_vnni",
 * or "none".  Returns buf. */
char *cpu_flags_format(uint32_t flags, char *buf, size_t len);

#endif
