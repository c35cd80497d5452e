/* kernels/hexagon/builtins.c - functions that the compiler calls by name. */
#include "rt.h"

void *
memcpy(void *dst, const void *src, size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	if (((uintptr_t)d | (uintptr_t)s) % 8 == 0)
		for (; n >= 8; n -= 8, d += 8, s += 8)
			*(uint64_t *)(void *)d = *(const uint64_t *)
			    (const void *)s;
	while (n-- > 0)
		*d++ = *s++;
	return dst;
}

void *
memset(void *dst, int c, size_t n)
{
	volatile uint8_t *d = dst;	/* or the loop would call memset() */

	while (n-- > 0)
		*d++ = (uint8_t)c;
	return dst;
}

void *
__hexagon_memcpy_likely_aligned_min32bytes_mult8bytes(void *dst,
    const void *src, size_t n)
{
	return memcpy(dst, src, n);
}

/* Bit by bit, slow: no loop of a kernel divides. */
uint32_t
__hexagon_udivsi3(uint32_t a, uint32_t b)
{
	uint32_t quotient = 0, at;

	if (b == 0)
		return 0;
	for (at = (uint32_t)__builtin_clz(b) + 1; at-- > 0;) {
		quotient <<= 1;
		if (a >> at >= b) {
			a -= b << at;
			quotient |= 1;
		}
	}
	return quotient;
}

uint32_t
__hexagon_umodsi3(uint32_t a, uint32_t b)
{
	return a - __hexagon_udivsi3(a, b) * b;
}
