/* kernels/cpu.c - detects CPU features that both the core and the OS support. */
#include "cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static const struct {
	uint32_t flag;
	const char *name;
} names[] = {
	{ CPU_AVX2, "avx2" },
	{ CPU_AVX_VNNI, "avx_vnni" },
	{ CPU_AVX512_VNNI, "avx512_vnni" },
	{ CPU_AVX512_BF16, "avx512_bf16" },
	{ CPU_NEON, "neon" },
	{ CPU_DOTPROD, "dotprod" },
	{ CPU_I8MM, "i8mm" },
	{ CPU_ARM_BF16, "bf16" },
	{ CPU_FAST_SCALEF, "fast_scalef" },
	{ CPU_FAST_BF16, "fast_bf16" },
	{ CPU_ZEN3, "zen3" },
	{ CPU_ZEN4, "zen4" },
	{ CPU_ZEN5, "zen5" },
	{ CPU_SINGLE_THREAD, "single_thread" }
};

#if defined(__x86_64__)
/* Register state that the OS saves.  Bits 1-2 are SSE and AVX, 5-7 AVX-512. */
static uint32_t
xcr0(void)
{
	uint32_t lo, hi;

	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return lo;
}

/* Properties of AMD cores that no feature bit reports.  Zen 5 is family 1Ah or
 * later: the base family in bits 8 to 11 plus the extended one in bits 20 to 27.
 * Zen 4 is the first core with AVX-512, and has AVX512_BF16 with it; an Intel
 * core's vdpbf16ps has half the throughput of its vfmadd. */
static uint32_t
core_flags(int has512)
{
	uint32_t a, b, c, d, zen5;

	if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx ||
	    c != signature_AMD_ecx || d != signature_AMD_edx)
		return 0;
	__get_cpuid(1, &a, &b, &c, &d);
	zen5 = (a >> 8 & 15) + (a >> 20 & 255) >= 0x1a;
	return (has512 ? CPU_FAST_BF16 : 0) |
	    (has512 && zen5 ? CPU_FAST_SCALEF : 0) |
	    (zen5 ? CPU_ZEN5 : has512 ? CPU_ZEN4 : CPU_ZEN3);
}

static uint32_t
detect(void)
{
	const uint32_t need1 = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C;
	const uint32_t need512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW |
	    bit_AVX512VL;
	const uint32_t avx_vnni = 1u << 4;	/* not named by GCC 12 */
	uint32_t a, b, c, d, a1 = 0, b1, c1, d1, flags;
	int has512;

	if (!__get_cpuid(1, &a, &b, &c, &d) || (c & need1) != need1 ||
	    (xcr0() & 0x06) != 0x06 ||
	    !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2))
		return 0;
	has512 = (b & need512) == need512;
	flags = CPU_AVX2 | core_flags(has512);
	if (a < 1 || !__get_cpuid_count(7, 1, &a1, &b1, &c1, &d1))
		a1 = 0;
	if (a1 & avx_vnni)
		flags |= CPU_AVX_VNNI;
	if (!has512 || (xcr0() & 0xe6) != 0xe6)
		return flags;
	if (c & bit_AVX512VNNI)
		flags |= CPU_AVX512_VNNI;
	if (a1 & bit_AVX512BF16)
		flags |= CPU_AVX512_BF16;
	return flags;
}
#elif defined(__aarch64__)
static uint32_t
detect(void)
{
	unsigned long cap = getauxval(AT_HWCAP), cap2 = getauxval(AT_HWCAP2);
	uint32_t flags = 0;

	if (cap & HWCAP_ASIMD)
		flags |= CPU_NEON;
	if (cap & HWCAP_ASIMDDP)
		flags |= CPU_DOTPROD;
	if (cap2 & HWCAP2_I8MM)
		flags |= CPU_I8MM;
	if (cap2 & HWCAP2_BF16)
		flags |= CPU_ARM_BF16;
	return flags;
}
#else
static uint32_t
detect(void)
{
	return 0;
}
#endif

/* Unknown names are ignored: they allow nothing. */
static uint32_t
parse_mask(const char *s)
{
	uint32_t mask = 0;
	size_t len, i;

	for (; *s != '\0'; s += len + (s[len] == '+')) {
		len = strcspn(s, "+");
		for (i = 0; i < NITEMS(names); i++)
			if (strlen(names[i].name) == len &&
			    memcmp(names[i].name, s, len) == 0)
				mask |= names[i].flag;
	}
	return mask;
}

uint32_t
cpu_flags(void)
{
	const char *mask = secure_getenv("STRADDLE_CPU_MASK");

	return mask == NULL ? detect() : detect() & parse_mask(mask);
}

char *
cpu_flags_format(uint32_t flags, char *buf, size_t len)
{
	size_t i, used = 0;

	buf[0] = '\0';
	for (i = 0; i < NITEMS(names); i++)
		if (flags & names[i].flag)
			used += snprintf(buf + MIN(used, len - 1),
			    len - MIN(used, len - 1), "%s%s",
			    used > 0 ? "+" : "", names[i].name);
	if (used == 0)
		snprintf(buf, len, "none");
	return buf;
}
