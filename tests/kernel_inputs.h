/* tests/kernel_inputs.h - numbers and rows of weights to try kernels on, in
 * buffers that end at a page which may not be touched.
 * Owns: the random state.  Included by check_kernels.c only. */
#ifndef TESTS_KERNEL_INPUTS_H
#define TESTS_KERNEL_INPUTS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../kernels/quant.h"

static uint64_t rand_state;

static inline uint64_t
rand_u64(void)		/* xorshift64* (Vigna 2016) */
{
	rand_state ^= rand_state >> 12;
	rand_state ^= rand_state << 25;
	rand_state ^= rand_state >> 27;
	return rand_state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline uint32_t
rand_below(uint32_t n)
{
	return (rand_u64() >> 32) % n;
}

static inline float
rand_float(float max)
{
	return max * ((float)(int32_t)(rand_u64() >> 32) * 0x1p-31f);
}

/* n bytes that end at a forbidden page, so at the alignment of n. */
static inline void *
guard_alloc(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = ALIGN_UP(n, page);
	uint8_t *p = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + size, page, PROT_NONE) < 0) {
		perror("mmap");
		exit(2);
	}
	return p + size - n;
}

static inline void
guard_free(void *p, size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = ALIGN_UP(n, page);

	munmap((uint8_t *)p + n - size, size + page);
}

enum input { IN_RANDOM, IN_EXTREME, IN_PINNED, IN_ZERO, IN_N };
static const char *const input_name[] = { "random", "extreme", "pinned",
    "zero" };

/* max is what an extreme element may be: products of two and their sums must
 * stay finite. */
static inline float
input_float(enum input in, float max)
{
	switch (in) {
	case IN_RANDOM:
		return rand_float(1);
	case IN_EXTREME:
		return rand_below(2) ? max : -max;
	case IN_PINNED:
		return -max;
	default:
		return 0;
	}
}

/* Where the half-precision scales of a block lie; the rest may be any byte. */
static const struct {
	uint32_t type, nscales, scale_off[2];
} blocks[] = {
	{ QUANT_Q8_0, 1, { 0 } },
	{ QUANT_Q4_0, 1, { 0 } }
};

static inline void
fill_block(uint8_t *p, size_t i, enum input in)
{
	const struct quant_info *t = quant_info(blocks[i].type);
	static const uint8_t extremes[] = { 0x80, 0x7f, 0x00, 0xff, 0x81 };
	uint32_t j;
	uint16_t h;

	for (j = 0; j < t->bytes; j++)
		p[j] = in == IN_RANDOM ? rand_below(256) :
		    in == IN_PINNED ? 0x80 :
		    extremes[rand_below(NITEMS(extremes))];
	for (j = 0; j < blocks[i].nscales; j++) {
		h = float_to_half(input_float(in, 65504));
		memcpy(p + blocks[i].scale_off[j], &h, sizeof(h));
	}
}

/* n rows as they lie in a file. */
static inline void
fill_rows(uint8_t *p, uint32_t type, uint64_t nbytes, enum input in)
{
	const uint8_t *end = p + nbytes;
	uint16_t h;
	size_t i;
	float f;

	for (i = 0; i < NITEMS(blocks) && blocks[i].type != type; i++)
		;
	while (p < end && i < NITEMS(blocks)) {
		fill_block(p, i, in);
		p += quant_info(type)->bytes;
	}
	for (; p < end; p += quant_info(type)->bytes) {
		f = input_float(in, type == QUANT_F16 ? 65504 : 1e15f);
		h = type == QUANT_F16 ? float_to_half(f) : float_to_bf16(f);
		if (type == QUANT_F32)
			memcpy(p, &f, sizeof(f));
		else
			memcpy(p, &h, sizeof(h));
	}
}

/* Rows differ in magnitude, as activations do. */
static inline void
fill_floats(float *x, uint32_t n, enum input in)
{
	float scale = in == IN_RANDOM ? exp2f(rand_float(6)) : 1;
	uint32_t i;

	for (i = 0; i < n; i++)
		x[i] = input_float(in, 1e15f) * scale;
}

#endif
