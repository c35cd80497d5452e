/* kernels/matmul/gemm_float.h - template: F32, F16 and BF16 weights times
 * activations in floats, or BF16 in pairs.  Owns: the order of summation.
 * Included by a variant's file, which defines KERNEL_SUFFIX, FLOAT_NV and
 * FLOAT_NT (vectors of rows in a panel, most rows of activations in a tile),
 * and EACH_FLOAT_NT.
 *
 * A panel holds FLOAT_PANEL rows, interleaved: for each k, one element of each
 * row.  An element of y is one lane of one accumulator, a fused sum over
 * ascending k, whatever else is computed in the same call.  Few rows read
 * weights from memory; for many rows a chunk of a panel is widened to floats in
 * L1 first.
 *
 * With BF16_PAIRS the file's only type is BF16, times activations in BF16: two
 * neighbours of a row make a word of 32 bits (odd k is padded with a zero).
 * Words are treated as floats, except that vf_dot_bf16 multiplies them: within
 * a pair the upper neighbour comes first, and denormal numbers are 0. */
#ifndef KERNELS_MATMUL_GEMM_FLOAT_H
#define KERNELS_MATMUL_GEMM_FLOAT_H

#include <string.h>

#include "prefetch.h"
#include "kernels/simd/simd.h"

#if defined(SIMD_VL) && defined(KERNEL_SUFFIX)

enum {
	FLOAT_PANEL = FLOAT_NV * SIMD_VL,
	FLOAT_CHUNK = 128,	/* columns */
	FLOAT_GROUP_ROWS = 128,	/* most rows in a group, and least */
	FLOAT_GROUP_MIN_ROWS = 32,	/* activations stay in L2 */
	FLOAT_L2_BYTES = 1280 * 1024,
	FLOAT_STEP = 8		/* columns between two prefetches of the next
				 * chunk by a tile */
};

/* How weights lie in a panel.  Words have the format of the activations;
 * widened ones are words in L1, which need no prefetch. */
enum float_kind { FLOAT_WIDENED, FLOAT_WORDS, FLOAT_F16, FLOAT_BF16 };

#ifdef BF16_PAIRS
#define FLOAT_ACT	ACT_BF16
enum { WORD_COLS = 2 };	/* columns */

SIMD enum float_kind
float_kind(enum quant_type type)
{
	(void)type;
	return FLOAT_WORDS;
}

SIMD vf
float_add(vf w, vf x, vf sum)
{
	return vf_dot_bf16(sum, w, x);
}
#else
#define FLOAT_ACT	ACT_F32
enum { WORD_COLS = 1 };

SIMD enum float_kind
float_kind(enum quant_type type)
{
	return type == QUANT_F16 ? FLOAT_F16 :
	    type == QUANT_BF16 ? FLOAT_BF16 : FLOAT_WORDS;
}

SIMD vf
float_add(vf w, vf x, vf sum)
{
	return vf_fma(w, x, sum);
}
#endif

/* Arguments for one panel; columns are words. */
struct float_call {
	const struct prefetch *prefetch;	/* for few rows */
	float *y;		/* first row, the panel's first column */
	uint64_t ldy;
	const float *x;		/* first row */
	uint64_t ldx;		/* words */
	const uint8_t *w;	/* the panel */
	const float *bias;	/* (FLOAT_PANEL) or NULL */
	uint32_t k;
	struct next_chunk next_chunk;	/* weights to prefetch with each step */
};

SIMD vf
float_load(enum float_kind kind, const uint8_t *p)
{
	switch (kind) {
	case FLOAT_F16:
		return vf_from_half((const void *)p);
	case FLOAT_BF16:
		return vf_from_bf16((const void *)p);
	default:
		return vf_load((const void *)p);
	}
}

SIMD uint32_t
float_size(enum float_kind kind)
{
	return kind <= FLOAT_WORDS ? 4 : 2;
}

/* Bytes of a row in a panel. */
SIMD uint64_t
float_row_bytes(enum quant_type type, uint32_t k)
{
	return (uint64_t)DIV_UP(k, WORD_COLS) * float_size(float_kind(type));
}

/* Offset of element i of row r in a panel; size of an element in the file. */
SIMD uint64_t
float_offset(uint32_t r, uint32_t i, uint32_t size)
{
	return (((uint64_t)i / WORD_COLS * FLOAT_PANEL + r) * WORD_COLS +
	    i % WORD_COLS) * size;
}

/* Multiply column i of a panel, at w, by nt rows of x. */
SIMD void
float_column(enum float_kind kind, unsigned nt, vf acc[][FLOAT_NV],
    const uint8_t *w, const float *x, uint64_t ldx, uint32_t i)
{
	vf wi[FLOAT_NV];
	unsigned t, r;

	UNROLL
	for (r = 0; r < FLOAT_NV; r++)
		wi[r] = float_load(kind, w + r * SIMD_VL * float_size(kind));
	UNROLL
	for (t = 0; t < nt; t++) {
		vf xt = vf_set(x[t * ldx + i]);

		UNROLL
		for (r = 0; r < FLOAT_NV; r++)
			acc[t][r] = float_add(wi[r], xt, acc[t][r]);
	}
}

/* Add ncols columns of w times nt rows of x to acc. */
SIMD void
float_columns(enum float_kind kind, unsigned nt, vf acc[FLOAT_NT][FLOAT_NV],
    const uint8_t *w, const struct float_call *c, const float *x,
    uint32_t ncols)
{
	const uint32_t size = float_size(kind);
	const uint32_t nbytes = MAX(FLOAT_PANEL * size, CACHELINE);
	const struct prefetch pf = *c->prefetch;
	const uint64_t ldx = c->ldx;
	uint32_t i;

	for (i = 0; i < ncols; i++, w += FLOAT_PANEL * size) {
		if (kind == FLOAT_WIDENED && i % FLOAT_STEP == 0)
			prefetch_next_chunk(c->next_chunk, i / FLOAT_STEP);
		/* A column of half a line: one row is left to the hardware
		 * prefetcher. */
		if (kind != FLOAT_WIDENED && i % (nbytes / (FLOAT_PANEL *
		    size)) == 0 && (nt > 1 || nbytes == FLOAT_PANEL * size))
			prefetch_weights(&pf, w + pf.near_bytes,
			    w + pf.far_bytes, nbytes);
		float_column(kind, nt, acc, w, x, ldx, i);
	}
}

/* Multiply columns [col, col + ncols), w at the first of them, by nt rows.
 * sums (nt x FLOAT_PANEL) holds y between chunks; the bias is added last. */
SIMD void
float_tile(enum float_kind kind, unsigned nt, const uint8_t *w,
    const struct float_call *c, float *sums, uint32_t col, uint32_t ncols)
{
	const int last = col + ncols == c->k;
	float *y = last ? c->y : sums;
	uint64_t ldy = last ? c->ldy : FLOAT_PANEL;
	vf acc[FLOAT_NT][FLOAT_NV];
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < FLOAT_NV; r++)
			acc[t][r] = col == 0 ? vf_zero() :
			    vf_load(sums + t * FLOAT_PANEL + r * SIMD_VL);
	float_columns(kind, nt, acc, w, c, c->x + col, ncols);
	if (last && c->bias != NULL)
		UNROLL
		for (t = 0; t < nt; t++)
			UNROLL
			for (r = 0; r < FLOAT_NV; r++)
				acc[t][r] = vf_add(acc[t][r],
				    vf_load(c->bias + r * SIMD_VL));
	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < FLOAT_NV; r++)
			vf_store(y + t * ldy + r * SIMD_VL, acc[t][r]);
}

/* Multiply one row by MAX_STREAMS panels side by side, so that a sum waits
 * less for its own additions. */
SIMD void
float_row(enum float_kind kind, const struct float_call *c)
{
	const uint32_t column = FLOAT_PANEL * float_size(kind);
	const uint32_t each = MAX(CACHELINE / column, 1);
	const uint64_t panel = (uint64_t)c->k * column;
	const struct prefetch pf = *c->prefetch;
	const uint8_t *w = c->w;
	vf acc[MAX_STREAMS][1][FLOAT_NV];
	unsigned p, r;
	uint32_t i;

	UNROLL
	for (p = 0; p < MAX_STREAMS; p++)
		UNROLL
		for (r = 0; r < FLOAT_NV; r++)
			acc[p][0][r] = vf_zero();
	for (i = 0; i < c->k; i++, w += column) {
		if (i % each == 0)
			UNROLL
			for (p = 0; p < MAX_STREAMS; p++)
				prefetch_weights(&pf,
				    w + p * panel + pf.near_bytes,
				    w + p * panel + pf.far_bytes,
				    each * column);
		UNROLL
		for (p = 0; p < MAX_STREAMS; p++)
			float_column(kind, 1, acc[p], w + p * panel, c->x, 0,
			    i);
	}
	UNROLL
	for (p = 0; p < MAX_STREAMS; p++)
		UNROLL
		for (r = 0; r < FLOAT_NV; r++) {
			const uint32_t at = p * FLOAT_PANEL + r * SIMD_VL;

			vf_store(c->y + at, c->bias == NULL ? acc[p][0][r] :
			    vf_add(acc[p][0][r], vf_load(c->bias + at)));
		}
}

typedef void float_tile_fn(const uint8_t *w, const struct float_call *c,
    float *sums, uint32_t col, uint32_t ncols);
#define FLOAT_TILE(kind, t, nt)						\
static void								\
float_##t##_##nt(const uint8_t *w, const struct float_call *c,		\
    float *sums, uint32_t col, uint32_t ncols)				\
{									\
	float_tile(kind, nt, w, c, sums, col, ncols);			\
}
#define FLOAT_TILE_ENTRY(kind, t, nt) [nt] = float_##t##_##nt,

typedef void float_row_fn(const struct float_call *c);
#define FLOAT_ROW(kind, t)						\
static void								\
float_row_##t(const struct float_call *c)				\
{									\
	float_row(kind, c);						\
}

#define FLOAT_TILES(kind, t)						\
EACH_FLOAT_NT(FLOAT_TILE, kind, t)					\
static float_tile_fn *const float_##t[FLOAT_NT + 1] = {			\
	EACH_FLOAT_NT(FLOAT_TILE_ENTRY, kind, t)			\
};

FLOAT_TILES(FLOAT_WIDENED, wide)
FLOAT_TILES(FLOAT_WORDS, words)
FLOAT_ROW(FLOAT_WORDS, words)
#ifndef BF16_PAIRS
FLOAT_TILES(FLOAT_F16, f16)
FLOAT_TILES(FLOAT_BF16, bf16)
FLOAT_ROW(FLOAT_F16, f16)
FLOAT_ROW(FLOAT_BF16, bf16)
#endif

static float_tile_fn *const *const float_tiles[] = {
	[FLOAT_WIDENED] = float_wide,
	[FLOAT_WORDS] = float_words,
#ifndef BF16_PAIRS
	[FLOAT_F16] = float_f16,
	[FLOAT_BF16] = float_bf16
#endif
};

static float_row_fn *const float_rows[] = {
	[FLOAT_WORDS] = float_row_words,
#ifndef BF16_PAIRS
	[FLOAT_F16] = float_row_f16,
	[FLOAT_BF16] = float_row_bf16
#endif
};

/* Widen n elements to floats, n a multiple of SIMD_VL; words stay where they
 * are. */
static const uint8_t *
float_widen(enum float_kind kind, float *out, const uint8_t *w, uint32_t n)
{
	uint32_t i;

	switch (kind) {
	case FLOAT_F16:
		for (i = 0; i < n; i += SIMD_VL)
			vf_store(out + i, float_load(FLOAT_F16, w + i * 2));
		break;
	case FLOAT_BF16:
		for (i = 0; i < n; i += SIMD_VL)
			vf_store(out + i, float_load(FLOAT_BF16, w + i * 2));
		break;
	default:
		return w;
	}
	return (const uint8_t *)out;
}

/* Multiply columns [col, col + ncols), w at the first of them, by m rows: tile
 * after tile, each of which prefetches a share of the next chunk. */
static void
float_chunk(enum float_kind kind, const struct float_call *c, uint32_t m,
    const uint8_t *w, float sums[][FLOAT_PANEL], uint32_t col, uint32_t ncols,
    struct next_chunk next_chunk)
{
	struct float_call part = *c;
	uint32_t i, row, nt, ntiles = DIV_UP(m, FLOAT_NT);

	for (row = 0, i = 0; i < ntiles; i++, row += nt) {
		nt = even_part(m, ntiles, i);
		part.x = c->x + row * c->ldx;
		part.y = c->y + row * c->ldy;
		part.next_chunk = next_chunk_share(&next_chunk,
		    DIV_UP(ncols, FLOAT_STEP), ntiles - i);
		float_tiles[kind][nt](w, &part, sums[row], col, ncols);
	}
}

/* Most rows that read weights without widening a chunk first: widening halves
 * twice costs as much as storing and loading them. */
SIMD uint32_t
float_direct_rows(enum float_kind kind)
{
	return kind == FLOAT_WORDS ? FLOAT_NT : 2 * FLOAT_NT;
}

/* Multiply a panel by up to FLOAT_GROUP_ROWS rows.  While a chunk is
 * multiplied, the next one is prefetched, and where pages are to be
 * prefetched, a line of each page of the one after that. */
static void
float_group(enum float_kind kind, const struct float_call *c, uint32_t m)
{
	_Alignas(64) float sums[FLOAT_GROUP_ROWS][FLOAT_PANEL];
	_Alignas(64) float wide[FLOAT_CHUNK * FLOAT_PANEL];
	const uint32_t column = FLOAT_PANEL * float_size(kind);
	struct next_chunk next_chunk = { 0 };
	uint32_t col, ncols, o;
	const uint8_t *w;

	if (m <= float_direct_rows(kind)) {
		float_chunk(kind, c, m, c->w, sums, 0, c->k, next_chunk);
		return;
	}
	for (col = 0; col < c->k; col += ncols) {
		ncols = MIN(c->k - col, FLOAT_CHUNK);
		w = c->w + (uint64_t)col * column;
		next_chunk.p = w + ncols * column;
		next_chunk.lines = ncols * column / CACHELINE;
		for (o = 0; c->prefetch->page_bytes > 0 && o < ncols * column;
		    o += SMALL_PAGE)
			prefetch_page(next_chunk.p + ncols * column + o);
		float_chunk(FLOAT_WIDENED, c, m, float_widen(kind, wide, w,
		    ncols * FLOAT_PANEL), sums, col, ncols, next_chunk);
	}
}

/* Multiply m rows by the last panel when it has fewer columns, through a
 * temporary buffer. */
static void
float_partial(enum float_kind kind, const struct float_call *c, uint32_t m,
    uint32_t ncols)
{
	_Alignas(64) float y[FLOAT_NT][FLOAT_PANEL], bias[FLOAT_PANEL] = { 0 };
	struct float_call part = *c;
	uint32_t row, t, nt;

	part.y = y[0];
	part.ldy = FLOAT_PANEL;
	if (c->bias != NULL)
		part.bias = memcpy(bias, c->bias, ncols * sizeof(*bias));
	for (row = 0; row < m; row += nt) {
		nt = MIN(m - row, FLOAT_NT);
		part.x = c->x + row * c->ldx;
		float_group(kind, &part, nt);
		for (t = 0; t < nt; t++)
			memcpy(c->y + (row + t) * c->ldy, y[t],
			    ncols * sizeof(y[0][0]));
	}
}

/* Panels that m rows take together when n columns of y are left. */
static inline uint32_t
float_panels_at_once(const struct float_call *c, uint32_t m, uint32_t n)
{
	return m == 1 && c->prefetch->streams == MAX_STREAMS &&
	    n >= MAX_STREAMS * FLOAT_PANEL ? MAX_STREAMS : 1;
}

static void
matmul_float_by(enum core_type core, float *y, uint64_t ldy, const void *x,
    const struct mat *w, const float *bias, uint32_t m, uint32_t n0,
    uint32_t n1)
{
	const enum float_kind kind = float_kind(w->type);
	struct float_call c = { .ldy = ldy, .x = x,
	    .prefetch = prefetch_for_float(core, kind == FLOAT_WORDS, m),
	    .k = DIV_UP(w->k, WORD_COLS) };
	const uint64_t row_bytes = act_row_bytes(FLOAT_ACT, w->k);
	uint32_t i, j, npanels, rows, ngroups = DIV_UP(m,
	    (uint32_t)MAX(MIN(FLOAT_L2_BYTES / row_bytes, FLOAT_GROUP_ROWS),
	    FLOAT_GROUP_MIN_ROWS));

	c.ldx = row_bytes / sizeof(float);
	for (i = 0; i < ngroups; i++) {
		rows = even_part(m, ngroups, i);
		for (j = n0; j < n1; j += npanels * FLOAT_PANEL) {
			npanels = float_panels_at_once(&c, rows, n1 - j);
			c.y = y + j;
			c.w = (const uint8_t *)w->data +
			    j * float_row_bytes(w->type, w->k);
			c.bias = bias ? bias + j : NULL;
			if (npanels > 1)
				float_rows[kind](&c);
			else if (n1 - j < FLOAT_PANEL)
				float_partial(kind, &c, rows, n1 - j);
			else
				float_group(kind, &c, rows);
		}
		c.x += rows * c.ldx;
		y += rows * ldy;
	}
}

#define MATMUL_FLOAT_INSTANCE(core)					\
static void								\
matmul_float_##core(float *y, uint64_t ldy, const void *x,		\
    struct mat_ready *ready, const struct mat *w, const float *bias,	\
    uint32_t m, uint32_t n0, uint32_t n1)				\
{									\
	(void)ready;							\
	matmul_float_by(core, y, ldy, x, w, bias, m, n0, n1);		\
}
#define MATMUL_FLOAT_ENTRY(core) [core] = matmul_float_##core,
EACH_CORE_TYPE(MATMUL_FLOAT_INSTANCE)
static matmul_fn *const float_matmuls[] = {
	EACH_CORE_TYPE(MATMUL_FLOAT_ENTRY)
};

/* Pack word by word, in pieces of k that keep the panel's part in L1. */
SIMD void
pack_float(enum quant_type type, uint8_t *dst, const uint8_t *src,
    uint32_t row0, uint32_t nrows, uint32_t k)
{
	const uint32_t size = type == QUANT_F32 ? 4 : 2;
	const uint32_t word = size * WORD_COLS, n = k / WORD_COLS;
	const uint64_t row_bytes = (uint64_t)k * size;
	const uint64_t packed_bytes = float_row_bytes(type, k);
	uint32_t j, r, i, i0, have;

	for (j = 0; j < nrows; j += FLOAT_PANEL) {
		uint8_t *panel = dst + (row0 + j) * packed_bytes;
		const uint8_t *rows = src + j * row_bytes;

		have = MIN(nrows - j, FLOAT_PANEL);
		if (have < FLOAT_PANEL || packed_bytes > row_bytes)
			memset(panel, 0, FLOAT_PANEL * packed_bytes);
		for (i0 = 0; i0 < n; i0 += 64)
			for (r = 0; r < have; r++)
				for (i = i0; i < MIN(i0 + 64, n); i++)
					memcpy(panel + ((uint64_t)i *
					    FLOAT_PANEL + r) * word, rows +
					    r * row_bytes + (uint64_t)i * word,
					    word);
		for (r = 0; r < have && n * WORD_COLS < k; r++)
			memcpy(panel + float_offset(r, k - 1, size), rows +
			    (r + 1) * row_bytes - size, size);
	}
}

static void
unpack_row_float(float *out, const struct mat *w, uint32_t row)
{
	const uint32_t r = row % FLOAT_PANEL;
	const uint8_t *panel = (const uint8_t *)w->data +
	    (row - r) * float_row_bytes(w->type, w->k);
	uint16_t h;
	uint32_t i;

	for (i = 0; i < w->k; i++) {
		if (w->type == QUANT_F32) {
			memcpy(out + i, panel + float_offset(r, i, 4), 4);
			continue;
		}
		memcpy(&h, panel + float_offset(r, i, 2), sizeof(h));
		out[i] = w->type == QUANT_F16 ? half_to_float(h) :
		    bf16_to_float(h);
	}
}

#define FLOAT_TYPE(T, t)						\
static uint64_t								\
packed_bytes_##t(uint32_t n, uint32_t k)				\
{									\
	return ALIGN_UP(ALIGN_UP(n, FLOAT_PANEL) * float_row_bytes(T, k), \
	    64);							\
}									\
static void								\
pack_##t(void *dst, const void *src, uint32_t row0, uint32_t nrows,	\
    uint32_t n, uint32_t k)						\
{									\
	(void)n;							\
	pack_float(T, dst, src, row0, nrows, k);			\
}

FLOAT_TYPE(QUANT_BF16, bf16)
#ifndef BF16_PAIRS
FLOAT_TYPE(QUANT_F32, f32)
FLOAT_TYPE(QUANT_F16, f16)
#endif

#define FLOAT_KERNEL(T, t)						\
	k->mat[T] = (struct mat_kernel){ #t KERNEL_SUFFIX, FLOAT_ACT,	\
	    FLOAT_PANEL, packed_bytes_##t, pack_##t, unpack_row_float,	\
	    matmul, 0, 0 }

static void
gemm_float_init(struct kernels *k, uint32_t cpu_flags)
{
	matmul_fn *matmul = float_matmuls[core_type_of(cpu_flags)];

	FLOAT_KERNEL(QUANT_BF16, bf16);
#ifndef BF16_PAIRS
	FLOAT_KERNEL(QUANT_F32, f32);
	FLOAT_KERNEL(QUANT_F16, f16);
#endif
}

#endif
#endif
