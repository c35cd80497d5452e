/* tests/support/kernel_inputs.c - see kernel_inputs.h. */
#include "kernel_inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/matmul/traits.h"
#include "kernels/types/pack.h"

static uint64_t rand_state;

void
rand_seed(uint64_t seed)
{
	rand_state = seed | 1;
}

uint64_t
rand_u64(void)		/* xorshift64* (Vigna 2016) */
{
	rand_state ^= rand_state >> 12;
	rand_state ^= rand_state << 25;
	rand_state ^= rand_state >> 27;
	return rand_state * UINT64_C(0x2545f4914f6cdd1d);
}

uint32_t
rand_below(uint32_t n)
{
	return (rand_u64() >> 32) % n;
}

float
rand_float(float max)
{
	return max * ((float)(int32_t)(rand_u64() >> 32) * 0x1p-31f);
}

/* Free lists by number of pages (without the guard page); each area begins with
 * the address of the next.  Mapping anew each time would double the run time of
 * check/kernels. */
static void *spare[257];

static size_t
guard_pages(size_t n)
{
	return DIV_UP(n, (size_t)sysconf(_SC_PAGESIZE));
}

void *
guard_alloc(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), npages = guard_pages(n);
	uint8_t *p;

	if (npages < NITEMS(spare) && spare[npages] != NULL) {
		p = spare[npages];
		memcpy(&spare[npages], p, sizeof(void *));
	} else {
		p = mmap(NULL, (npages + 1) * page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED ||
		    mprotect(p + npages * page, page, PROT_NONE) < 0) {
			perror("mmap");
			exit(2);
		}
	}
	return p + npages * page - n;
}

void
guard_free(void *p, size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), npages = guard_pages(n);
	uint8_t *base = (uint8_t *)p + n - npages * page;

	if (npages == 0 || npages >= NITEMS(spare)) {
		munmap(base, (npages + 1) * page);
		return;
	}
	memcpy(base, &spare[npages], sizeof(void *));
	spare[npages] = base;
}

const char *const input_name[] = { "random", "extreme", "pinned", "zero",
    "any", "tiny" };

float
input_float(enum input in, float max)
{
	switch (in) {
	case IN_RANDOM:
	case IN_ANY:
		return rand_float(1);
	case IN_EXTREME:
		return rand_below(2) ? max : -max;
	case IN_PINNED:
		return -max;
	case IN_TINY:
		return rand_float(0x1p-6f);
	default:
		return 0;
	}
}

/* Layout of a block: its half-precision scales (the exponent of MXFP4 is not
 * one of them), the byte that gives all elements the largest magnitude of one
 * sign, and a range of bytes that needs another value for that. */
struct block_form {
	uint32_t type, nscales, scale_off[2];
	uint8_t pin, pin_other;
	uint32_t other_off, other_len;
};

/* The rule: scales come first; the largest magnitude is all bits clear if an
 * offset is subtracted from the elements, else all bits set.  The table has the
 * types that differ.  Half of the pinned Q8_0 blocks repeat a random byte
 * instead: a variant that splits bytes in two parts has its largest sums at
 * other values. */
static struct block_form
form_of(uint32_t type)
{
	static const struct block_form differ[] = {
		{ QUANT_Q8_0, 1, { 0 }, 0x80, 0, 0, 0 },
		{ QUANT_IQ4_NL, 1, { 0 }, 0x00, 0, 0, 0 },
		{ QUANT_MXFP4, 0, { 0 }, 0x77, 0, 0, 0 },
		{ QUANT_Q2_K, 2, { 80, 82 }, 0xff, 0, 0, 0 },
		{ QUANT_Q3_K, 1, { 108 }, 0x00, 0, 0, 0 },
		{ QUANT_Q6_K, 1, { 208 }, 0x00, 0x80, 192, 16 },
		{ QUANT_IQ4_XS, 1, { 0 }, 0x00, 0, 0, 0 }
	};
	size_t i;

	for (i = 0; i < NITEMS(differ); i++)
		if (differ[i].type == type)
			return differ[i];
	return (struct block_form){ type, pack_geometry(type).nhalfs, { 0, 2 },
	    weight_traits(type).offset > 0 ? 0x00 : 0xff, 0, 0, 0 };
}

/* Exponents of MXFP4.  Most give scales around 1.  The first three extremes
 * have subnormal weights; 184 is 2^57, which keeps sums of products with
 * activations of 1e15 finite. */
static uint8_t
input_exponent(enum input in)
{
	static const uint8_t extremes[] = { 0, 1, 2, 184 };

	if (in == IN_PINNED)
		return 184;
	if (in == IN_RANDOM && rand_below(8) > 0)
		return (uint8_t)(112 + rand_below(32));
	return extremes[rand_below(in == IN_RANDOM || in == IN_TINY ? 3 : 4)];
}

static void
fill_bytes(uint8_t *p, size_t n, const struct block_form *f, enum input in)
{
	static const uint8_t extremes[] = { 0x80, 0x7f, 0x00, 0xff, 0x81 };
	static const uint8_t zeros[] = { 0x00, 0x80, 0x08, 0x88 };
	/* uniform 0: all bits clear; 1: all set. */
	uint32_t j, uniform = rand_below(4);
	const uint32_t any = rand_below(512);

	for (j = 0; j < n; j++)
		if (in == IN_RANDOM || in == IN_ANY || in == IN_TINY)
			p[j] = (uint8_t)rand_below(256);
		else if (in == IN_PINNED)
			p[j] = f->type == QUANT_Q8_0 && any < 256 ?
			    (uint8_t)any : f->pin;
		else if (in == IN_ZERO && f->type == QUANT_MXFP4)
			p[j] = zeros[rand_below(NITEMS(zeros))];
		else if (uniform < 2)
			p[j] = uniform ? 0xff : 0x00;
		else
			p[j] = extremes[rand_below(NITEMS(extremes))];
	if (in == IN_PINNED)
		memset(p + f->other_off, f->pin_other, f->other_len);
}

static void
fill_block(uint8_t *p, const struct block_form *f, enum input in)
{
	uint32_t j;
	uint16_t h;

	fill_bytes(p, quant_info(f->type)->bytes, f, in);
	if (in == IN_ANY)
		return;
	for (j = 0; j < f->nscales; j++) {
		h = float_to_half(input_float(in, 65504));
		memcpy(p + f->scale_off[j], &h, sizeof(h));
	}
	if (f->type == QUANT_MXFP4)
		p[0] = input_exponent(in);
}

void
fill_rows(uint8_t *p, uint32_t type, uint64_t nbytes, enum input in)
{
	const struct block_form form = form_of(type);
	const int dense = quant_info(type)->block == 1;
	const uint8_t *end = p + nbytes;
	uint16_t h;
	float f;

	for (; p < end && !dense; p += quant_info(type)->bytes)
		fill_block(p, &form, in);
	for (; p < end; p += quant_info(type)->bytes) {
		f = input_float(in, type == QUANT_F16 ? 65504 : 1e15f);
		if (in == IN_ANY && rand_below(64) == 0)
			f = rand_below(2) ? NAN : -INFINITY;
		h = type == QUANT_F16 ? float_to_half(f) : float_to_bf16(f);
		if (type == QUANT_F32)
			memcpy(p, &f, sizeof(f));
		else
			memcpy(p, &h, sizeof(h));
	}
}

void
fill_floats(float *x, uint32_t n, enum input in)
{
	float scale = in == IN_RANDOM || in == IN_ANY ?
	    exp2f(rand_float(6)) : 1;
	uint32_t i;

	for (i = 0; i < n; i++)
		x[i] = input_float(in, 1e15f) * scale;
}
