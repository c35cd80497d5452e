/* kernels/types/pack.c - the file's blocks to interleaved words (pack.h).  It works
 * on four bytes at a time, because every byte of a model goes through here at
 * load. */
#include "pack.h"

#include <string.h>

/* One row's part of a panel's block, in the order of pack.h. */
struct row_block {
	uint8_t byte;
	uint16_t half[2];
	uint32_t word[64];
};

/* The low n bits of each byte. */
static inline uint32_t
low_bits(unsigned n)
{
	return ((1u << n) - 1) * UINT32_C(0x01010101);
}

/* Bytes 4 i to 4 i + 3 as a word; all machines are little-endian. */
static inline uint32_t
word_at(const uint8_t *p, unsigned i)
{
	uint32_t v;

	memcpy(&v, p + 4 * i, sizeof(v));
	return v;
}

static inline uint16_t
half_at(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* 16 bytes whose low nibbles are the first 16 elements: already in order. */
static inline void
nibbles_as_is(uint32_t *word, const uint8_t *q)
{
	memcpy(word, q, 16);
}

/* The low (shift 0) or high (4) nibbles of 32 bytes are the 32 elements. */
static inline void
nibbles_of_32(uint32_t *word, const uint8_t *q, unsigned shift)
{
	unsigned i;

	for (i = 0; i < 4; i++)
		word[i] = (word_at(q, i) >> shift & low_bits(4)) |
		    (word_at(q, i + 4) >> shift & low_bits(4)) << 4;
}

/* The bit pairs at shift of 32 bytes are the 32 elements. */
static inline void
pairs_of_32(uint32_t *word, const uint8_t *q, unsigned shift)
{
	unsigned i, j;

	for (i = 0; i < 2; i++) {
		word[i] = 0;
		for (j = 0; j < 4; j++)
			word[i] |= (word_at(q, 4 * i + j) >> shift &
			    low_bits(2)) << 2 * j;
	}
}

/* 32 elements in two parts, as 8 groups of four bytes: n bits at `at` of each of 32
 * bytes q, and above them n2 bits at `at2` of each of 32 bytes q2. */
static inline void
groups_of_32(uint32_t g[8], const uint8_t *q, unsigned at, unsigned n,
    const uint8_t *q2, unsigned at2, unsigned n2)
{
	unsigned i;

	for (i = 0; i < 8; i++)
		g[i] = (word_at(q, i) >> at & low_bits(n)) |
		    (word_at(q2, i) >> at2 & low_bits(n2)) << n;
}

/* Groups of elements of 3, 5 or 6 bits to words. */
static inline void
words_of_3(uint32_t word[3], const uint32_t g[8])
{
	unsigned i;

	for (i = 0; i < 3; i++)
		word[i] = g[i] | g[i + 4] << 3;
	word[0] |= (g[3] & low_bits(2)) << 6;
	word[1] |= (g[3] >> 2 & low_bits(1)) << 6 |
	    (g[7] >> 2 & low_bits(1)) << 7;
	word[2] |= (g[7] & low_bits(2)) << 6;
}

static inline void
words_of_5(uint32_t word[5], const uint32_t g[8])
{
	unsigned i;

	word[0] = 0;
	for (i = 0; i < 4; i++) {
		word[0] |= (g[i + 4] & low_bits(2)) << 2 * i;
		word[1 + i] = g[i] | (g[i + 4] >> 2 & low_bits(3)) << 5;
	}
}

static inline void
words_of_6(uint32_t word[6], const uint32_t g[8])
{
	unsigned i, h;

	for (h = 0; h < 2; h++)
		for (i = 0; i < 3; i++)
			word[3 * h + i] = g[4 * h + i] |
			    (g[4 * h + 3] >> 2 * i & low_bits(2)) << 6;
}

/* The bits of 4 bytes qh are the fifth bits of 32 elements, the nibbles of 16 bytes
 * q their other bits. */
static inline void
fives_of_32(uint32_t word[5], const uint8_t *qh, const uint8_t *q)
{
	uint32_t bits = word_at(qh, 0), g[8];
	unsigned j;

	/* The product puts one of four bits into each byte, without a carry. */
	for (j = 0; j < 8; j++)
		g[j] = (word_at(q, j % 4) >> j / 4 * 4 & low_bits(4)) |
		    ((bits >> 4 * j & 15) * UINT32_C(0x00204081) &
		    low_bits(1)) << 4;
	words_of_5(word, g);
}

/* Adds the 6-bit numbers a and b of sub-block s to the words of "sixes". */
static inline void
add_sixes(uint32_t word[3], unsigned s, unsigned a, unsigned b)
{
	const unsigned at = s % 4 * 8;
	unsigned i;

	if (s < 4) {
		word[0] |= a << at;
		word[1] |= b << at;
		return;
	}
	word[2] |= a << at;
	for (i = 0; i < 3; i++)
		word[i] |= (b >> 2 * i & 3) << (at + 6);
}

/* The 12 bytes of scales and mins of Q4_K and Q5_K as sixes. */
static void
sixes_of_k4(uint32_t word[3], const uint8_t *packed)
{
	uint8_t scale[8], min[8];
	unsigned s;

	q4_k_scales(packed, scale, min);
	memset(word, 0, 3 * sizeof(*word));
	for (s = 0; s < 8; s++)
		add_sixes(word, s, scale[s], min[s]);
}

static void
split_q8_0(struct row_block *r, const uint8_t *src)
{
	r->half[0] = half_at(src);
	memcpy(r->word, src + 2, 32);
}

static void
split_q4_0(struct row_block *r, const uint8_t *src)
{
	r->half[0] = half_at(src);
	nibbles_as_is(r->word, src + 2);
}

static void
split_q4_1(struct row_block *r, const uint8_t *src)
{
	r->half[0] = half_at(src);
	r->half[1] = half_at(src + 2);
	nibbles_as_is(r->word, src + 4);
}

static void
split_q5_0(struct row_block *r, const uint8_t *src)
{
	r->half[0] = half_at(src);
	fives_of_32(r->word, src + 2, src + 6);
}

static void
split_q5_1(struct row_block *r, const uint8_t *src)
{
	r->half[0] = half_at(src);
	r->half[1] = half_at(src + 2);
	fives_of_32(r->word, src + 4, src + 8);
}

static void
split_mxfp4(struct row_block *r, const uint8_t *src)
{
	r->byte = src[0];
	nibbles_as_is(r->word, src + 1);
}

/* scales[16], qs[64], d, dmin */
static void
split_q2_k(struct row_block *r, const uint8_t *src)
{
	unsigned s, i;

	r->half[0] = half_at(src + 80);
	r->half[1] = half_at(src + 82);
	memset(r->word, 0, 4 * sizeof(*r->word));
	for (s = 0; s < 8; s++) {
		for (i = 0; i < 2; i++) {
			r->word[i] |= (src[2 * s + i] & 15u) << 4 * s;
			r->word[2 + i] |= (uint32_t)src[2 * s + i] >> 4 <<
			    4 * s;
		}
		pairs_of_32(r->word + 4 + 2 * s, src + 16 + s / 4 * 32,
		    s % 4 * 2);
	}
}

/* hmask[32], qs[64], scales[12], d */
static void
split_q3_k(struct row_block *r, const uint8_t *src)
{
	int8_t scale[16];
	uint32_t g[8];
	unsigned s;

	r->half[0] = half_at(src + 108);
	q3_k_scales(src + 96, scale);
	memset(r->word, 0, 3 * sizeof(*r->word));
	for (s = 0; s < 8; s++) {
		add_sixes(r->word, s, (unsigned)(scale[2 * s] + 32),
		    (unsigned)(scale[2 * s + 1] + 32));
		groups_of_32(g, src + 32 + s / 4 * 32, s % 4 * 2, 2, src, s,
		    1);
		words_of_3(r->word + 3 + 3 * s, g);
	}
}

/* d, dmin, scales[12], qs[128] */
static void
split_q4_k(struct row_block *r, const uint8_t *src)
{
	unsigned s;

	r->half[0] = half_at(src);
	r->half[1] = half_at(src + 2);
	sixes_of_k4(r->word, src + 4);
	for (s = 0; s < 8; s++)
		nibbles_of_32(r->word + 3 + 4 * s, src + 16 + s / 2 * 32,
		    s % 2 * 4);
}

/* d, dmin, scales[12], qh[32], qs[128] */
static void
split_q5_k(struct row_block *r, const uint8_t *src)
{
	uint32_t g[8];
	unsigned s;

	r->half[0] = half_at(src);
	r->half[1] = half_at(src + 2);
	sixes_of_k4(r->word, src + 4);
	for (s = 0; s < 8; s++) {
		groups_of_32(g, src + 48 + s / 2 * 32, s % 2 * 4, 4, src + 16,
		    s, 1);
		words_of_5(r->word + 3 + 5 * s, g);
	}
}

/* ql[128], qh[64], scales[16], d; halves of 128 columns: sub-blocks 0 and 1 in
 * the low nibbles of ql[32 ..], 2 and 3 in the high ones. */
static void
split_q6_k(struct row_block *r, const uint8_t *src)
{
	const uint8_t *scales = src + 192;
	unsigned s, i;
	uint32_t g[8];

	r->half[0] = half_at(src + 208);
	memset(r->word, 0, 4 * sizeof(*r->word));
	for (s = 0; s < 8; s++) {
		for (i = 0; i < 2; i++)
			r->word[2 * i + s / 4] |=
			    (uint32_t)scales[2 * s + i] << s % 4 * 8;
		groups_of_32(g, src + s / 4 * 64 + s % 2 * 32, s % 4 / 2 * 4,
		    4, src + 128 + s / 4 * 32, s % 4 * 2, 2);
		words_of_6(r->word + 4 + 6 * s, g);
	}
}

/* d, scales_h, scales_l[4], qs[128] */
static void
split_iq4_xs(struct row_block *r, const uint8_t *src)
{
	r->half[0] = half_at(src);
	r->half[1] = half_at(src + 2);
	memcpy(r->word, src + 4, 4 + 128);
}

typedef void split_fn(struct row_block *r, const uint8_t *src);
#define SPLIT(NAME, name, number, block, bytes, packed, split, ...)	\
	[QUANT_##NAME] = split,
static split_fn *const split[QUANT_NTYPES] = { QUANT_BLOCKS(SPLIT) };

/* A packed block has exactly the bytes of the file's blocks. */
#define SAME_BYTES(NAME, name, number, block, bytes, packed, ...)	\
	_Static_assert(PACKED_BYTES(block, QUANT_FIELDS packed) == bytes, #NAME);
#define PACKED_BYTES(...)	PACKED_BYTES_OF(__VA_ARGS__)
#define PACKED_BYTES_OF(block, nbytes, nhalfs, nscales, nwords)		\
	(nbytes + 2 * nhalfs + 4 * (nscales + block / 32 * nwords))
QUANT_BLOCKS(SAME_BYTES)

/* Stores row r of a panel's block at p. */
static void
store_row(uint8_t *p, uint32_t panel_rows, uint32_t r, struct pack_geometry g,
    const struct row_block *b)
{
	uint32_t i, nwords = g.nscales + g.block / 32 * g.nwords;

	if (g.nbytes > 0)
		p[r] = b->byte;
	p += (uint64_t)g.nbytes * panel_rows;
	for (i = 0; i < g.nhalfs; i++, p += 2 * (uint64_t)panel_rows)
		memcpy(p + 2 * r, &b->half[i], 2);
	for (i = 0; i < nwords; i++, p += 4 * (uint64_t)panel_rows)
		memcpy(p + 4 * r, &b->word[i], 4);
}

void
pack_rows(enum quant_type type, uint32_t panel_rows, void *dst,
    const void *src, uint32_t row0, uint32_t nrows, uint32_t k)
{
	struct pack_geometry g = pack_geometry(type);
	uint64_t row_bytes = quant_row_bytes(type, k);
	uint32_t size = pack_block_bytes(g), j, b, r, have;
	struct row_block block;

	for (j = 0; j < nrows; j += panel_rows) {
		uint8_t *p = (uint8_t *)dst + (row0 + j) * row_bytes;
		const uint8_t *rows = (const uint8_t *)src + j * row_bytes;

		have = MIN(nrows - j, panel_rows);
		if (have < panel_rows)
			memset(p, 0, panel_rows * row_bytes);
		for (b = 0; b < k / g.block; b++) {
			for (r = 0; r < have; r++) {
				split[type](&block, rows + r * row_bytes +
				    (uint64_t)b * size);
				store_row(p, panel_rows, r, g, &block);
			}
			p += (uint64_t)panel_rows * size;
		}
	}
}
