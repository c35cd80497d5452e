/* kernels/matmul/gemm_float.h - template: F32, F16 and BF16 weights times activations
 * that are floats, or BF16 in pairs.  Owns: the order of sums.  Included by a
 * variant's file, which has said DENSE_NR and DENSE_NT: vectors of rows in a
 * panel and most rows of activations in a tile.
 *
 * A panel holds DENSE_PANEL rows, interleaved: for each k, one element of each.
 * An element of y is one lane of one accumulator, a fused sum over ascending
 * k, whatever else is computed beside it.  Few rows take weights as they come
 * from memory, for many a chunk of a panel is widened to floats in L1 first.
 *
 * With DENSE_PAIRS the file's only type is BF16, times activations in BF16: of
 * each row two neighbours are a word of 32 bits (k is padded with a zero), and
 * words go the way of floats, but that vf_dot_bf16 multiplies them: within a
 * pair the upper neighbour comes first, and denormal numbers are 0. */
#ifndef KERNELS_MATMUL_GEMM_FLOAT_H
#define KERNELS_MATMUL_GEMM_FLOAT_H

#include <string.h>

#include "prefetch.h"
#include "kernels/simd/simd.h"

#if defined(SIMD_VL) && defined(MAT_SUFFIX)

enum {
	DENSE_PANEL = DENSE_NR * SIMD_VL,
	DENSE_CHUNK = 128,	/* columns */
	DENSE_ROWS = 128,	/* in a group at most, and at least: its */
	DENSE_ROWS_LEAST = 32,	/* activations stay in L2 */
	DENSE_L2 = 1280 * 1024,
	DENSE_STEP = 8		/* columns, for each of which a tile asks for
				 * some of the next chunk */
};

/* Weights as they lie in a panel: words are what activations are.  Wide ones are
 * words that need not be asked for. */
enum dense_kind { DENSE_WIDE, DENSE_WORDS, DENSE_F16, DENSE_BF16 };

#ifdef DENSE_PAIRS
#define DENSE_ACT	ACT_BF16
enum { DENSE_WORD = 2 };	/* columns */

SIMD enum dense_kind
dense_kind(enum quant_type type)
{
	(void)type;
	return DENSE_WORDS;
}

SIMD vf
dense_add(vf w, vf x, vf sum)
{
	return vf_dot_bf16(sum, w, x);
}
#else
#define DENSE_ACT	ACT_F32
enum { DENSE_WORD = 1 };

SIMD enum dense_kind
dense_kind(enum quant_type type)
{
	return type == QUANT_F16 ? DENSE_F16 :
	    type == QUANT_BF16 ? DENSE_BF16 : DENSE_WORDS;
}

SIMD vf
dense_add(vf w, vf x, vf sum)
{
	return vf_fma(w, x, sum);
}
#endif

/* Of one panel; columns are words. */
struct dense_call {
	const struct reading *reading;	/* of few rows */
	float *y;		/* first row, the panel's first column */
	uint64_t ldy;
	const float *x;		/* first row */
	uint64_t ldx;		/* words */
	const uint8_t *w;	/* the panel */
	const float *bias;	/* (DENSE_PANEL) or NULL */
	uint32_t k;
	struct ahead ahead;	/* weights to be asked for with each step */
};

SIMD vf
dense_load(enum dense_kind kind, const uint8_t *p)
{
	switch (kind) {
	case DENSE_F16:
		return vf_from_half((const void *)p);
	case DENSE_BF16:
		return vf_from_bf16((const void *)p);
	default:
		return vf_load((const void *)p);
	}
}

SIMD uint32_t
dense_size(enum dense_kind kind)
{
	return kind <= DENSE_WORDS ? 4 : 2;
}

/* Bytes of one row in a panel. */
SIMD uint64_t
dense_row_bytes(enum quant_type type, uint32_t k)
{
	return (uint64_t)DIV_UP(k, DENSE_WORD) * dense_size(dense_kind(type));
}

/* Row r's element i of a panel; size: of one in the file. */
SIMD uint64_t
dense_at(uint32_t r, uint32_t i, uint32_t size)
{
	return (((uint64_t)i / DENSE_WORD * DENSE_PANEL + r) * DENSE_WORD +
	    i % DENSE_WORD) * size;
}

/* Column i of a panel, at w, times nt rows of x. */
SIMD void
dense_column(enum dense_kind kind, unsigned nt, vf acc[][DENSE_NR],
    const uint8_t *w, const float *x, uint64_t ldx, uint32_t i)
{
	vf wi[DENSE_NR];
	unsigned t, r;

	UNROLL
	for (r = 0; r < DENSE_NR; r++)
		wi[r] = dense_load(kind, w + r * SIMD_VL * dense_size(kind));
	UNROLL
	for (t = 0; t < nt; t++) {
		vf xt = vf_set(x[t * ldx + i]);

		UNROLL
		for (r = 0; r < DENSE_NR; r++)
			acc[t][r] = dense_add(wi[r], xt, acc[t][r]);
	}
}

/* ncols columns of w times nt rows of x, onto acc. */
SIMD void
dense_step(enum dense_kind kind, unsigned nt, vf acc[DENSE_NT][DENSE_NR],
    const uint8_t *w, const struct dense_call *c, const float *x,
    uint32_t ncols)
{
	const uint32_t size = dense_size(kind);
	const uint32_t nbytes = MAX(DENSE_PANEL * size, CACHELINE);
	const struct reading rd = *c->reading;
	const uint64_t ldx = c->ldx;
	uint32_t i;

	for (i = 0; i < ncols; i++, w += DENSE_PANEL * size) {
		if (kind == DENSE_WIDE && i % DENSE_STEP == 0)
			ahead_ask(c->ahead, i / DENSE_STEP);
		/* Half a line a column: one row is left to the core. */
		if (kind != DENSE_WIDE && i % (nbytes / (DENSE_PANEL *
		    size)) == 0 && (nt > 1 || nbytes == DENSE_PANEL * size))
			reading_ask(&rd, w + rd.near, w + rd.far, nbytes);
		dense_column(kind, nt, acc, w, x, ldx, i);
	}
}

/* Columns [col, col + ncols), w at the first of them; sums (nt x DENSE_PANEL)
 * holds y between chunks; the bias comes last. */
SIMD void
dense_tile(enum dense_kind kind, unsigned nt, const uint8_t *w,
    const struct dense_call *c, float *sums, uint32_t col, uint32_t ncols)
{
	const int last = col + ncols == c->k;
	float *y = last ? c->y : sums;
	uint64_t ldy = last ? c->ldy : DENSE_PANEL;
	vf acc[DENSE_NT][DENSE_NR];
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < DENSE_NR; r++)
			acc[t][r] = col == 0 ? vf_zero() :
			    vf_load(sums + t * DENSE_PANEL + r * SIMD_VL);
	dense_step(kind, nt, acc, w, c, c->x + col, ncols);
	if (last && c->bias != NULL)
		UNROLL
		for (t = 0; t < nt; t++)
			UNROLL
			for (r = 0; r < DENSE_NR; r++)
				acc[t][r] = vf_add(acc[t][r],
				    vf_load(c->bias + r * SIMD_VL));
	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < DENSE_NR; r++)
			vf_store(y + t * ldy + r * SIMD_VL, acc[t][r]);
}

/* One row times FEW_STREAMS panels side by side: the sums of one do not wait for
 * themselves so long. */
SIMD void
dense_row(enum dense_kind kind, const struct dense_call *c)
{
	const uint32_t column = DENSE_PANEL * dense_size(kind);
	const uint32_t each = MAX(CACHELINE / column, 1);
	const uint64_t panel = (uint64_t)c->k * column;
	const struct reading rd = *c->reading;
	const uint8_t *w = c->w;
	vf acc[FEW_STREAMS][1][DENSE_NR];
	unsigned p, r;
	uint32_t i;

	UNROLL
	for (p = 0; p < FEW_STREAMS; p++)
		UNROLL
		for (r = 0; r < DENSE_NR; r++)
			acc[p][0][r] = vf_zero();
	for (i = 0; i < c->k; i++, w += column) {
		if (i % each == 0)
			UNROLL
			for (p = 0; p < FEW_STREAMS; p++)
				reading_ask(&rd, w + p * panel + rd.near,
				    w + p * panel + rd.far, each * column);
		UNROLL
		for (p = 0; p < FEW_STREAMS; p++)
			dense_column(kind, 1, acc[p], w + p * panel, c->x, 0,
			    i);
	}
	UNROLL
	for (p = 0; p < FEW_STREAMS; p++)
		UNROLL
		for (r = 0; r < DENSE_NR; r++) {
			const uint32_t at = p * DENSE_PANEL + r * SIMD_VL;

			vf_store(c->y + at, c->bias == NULL ? acc[p][0][r] :
			    vf_add(acc[p][0][r], vf_load(c->bias + at)));
		}
}

typedef void dense_tile_fn(const uint8_t *w, const struct dense_call *c,
    float *sums, uint32_t col, uint32_t ncols);
#define DENSE_TILE(kind, t, nt)						\
static void								\
dense_##t##_##nt(const uint8_t *w, const struct dense_call *c,		\
    float *sums, uint32_t col, uint32_t ncols)				\
{									\
	dense_tile(kind, nt, w, c, sums, col, ncols);			\
}
#define DENSE_ENTRY(kind, t, nt) [nt] = dense_##t##_##nt,

typedef void dense_row_fn(const struct dense_call *c);
#define DENSE_ROW(kind, t)						\
static void								\
dense_row_##t(const struct dense_call *c)				\
{									\
	dense_row(kind, c);						\
}

#define DENSE_TILES(kind, t)						\
DENSE_EACH_NT(DENSE_TILE, kind, t)					\
static dense_tile_fn *const dense_##t[DENSE_NT + 1] = {			\
	DENSE_EACH_NT(DENSE_ENTRY, kind, t)				\
};

DENSE_TILES(DENSE_WIDE, wide)
DENSE_TILES(DENSE_WORDS, words)
DENSE_ROW(DENSE_WORDS, words)
#ifndef DENSE_PAIRS
DENSE_TILES(DENSE_F16, f16)
DENSE_TILES(DENSE_BF16, bf16)
DENSE_ROW(DENSE_F16, f16)
DENSE_ROW(DENSE_BF16, bf16)
#endif

static dense_tile_fn *const *const dense_tiles[] = {
	[DENSE_WIDE] = dense_wide,
	[DENSE_WORDS] = dense_words,
#ifndef DENSE_PAIRS
	[DENSE_F16] = dense_f16,
	[DENSE_BF16] = dense_bf16
#endif
};

static dense_row_fn *const dense_rows[] = {
	[DENSE_WORDS] = dense_row_words,
#ifndef DENSE_PAIRS
	[DENSE_F16] = dense_row_f16,
	[DENSE_BF16] = dense_row_bf16
#endif
};

/* n elements as floats, n a multiple of SIMD_VL; words stay where they are. */
static const uint8_t *
dense_widen(enum dense_kind kind, float *out, const uint8_t *w, uint32_t n)
{
	uint32_t i;

	switch (kind) {
	case DENSE_F16:
		for (i = 0; i < n; i += SIMD_VL)
			vf_store(out + i, dense_load(DENSE_F16, w + i * 2));
		break;
	case DENSE_BF16:
		for (i = 0; i < n; i += SIMD_VL)
			vf_store(out + i, dense_load(DENSE_BF16, w + i * 2));
		break;
	default:
		return w;
	}
	return (const uint8_t *)out;
}

/* Columns [col, col + ncols), w at the first of them, times m rows: a tile after
 * the other, which ask for what lies ahead. */
static void
dense_columns(enum dense_kind kind, const struct dense_call *c, uint32_t m,
    const uint8_t *w, float sums[][DENSE_PANEL], uint32_t col, uint32_t ncols,
    struct ahead ahead)
{
	struct dense_call part = *c;
	uint32_t i, row, nt, ntiles = DIV_UP(m, DENSE_NT);

	for (row = 0, i = 0; i < ntiles; i++, row += nt) {
		nt = even_part(m, ntiles, i);
		part.x = c->x + row * c->ldx;
		part.y = c->y + row * c->ldy;
		part.ahead = ahead_part(&ahead, DIV_UP(ncols, DENSE_STEP),
		    ntiles - i);
		dense_tiles[kind][nt](w, &part, sums[row], col, ncols);
	}
}

/* More rows than these are better off with chunks: halves are widened twice in
 * the time that it takes to store and load them again. */
SIMD uint32_t
dense_few(enum dense_kind kind)
{
	return kind == DENSE_WORDS ? DENSE_NT : 2 * DENSE_NT;
}

/* A panel times up to DENSE_ROWS rows.  While a chunk is multiplied, the next one
 * comes from memory; of the one after that, where pages are to be asked for, a
 * line of each that it lies in. */
static void
dense_group(enum dense_kind kind, const struct dense_call *c, uint32_t m)
{
	_Alignas(64) float sums[DENSE_ROWS][DENSE_PANEL];
	_Alignas(64) float wide[DENSE_CHUNK * DENSE_PANEL];
	const uint32_t column = DENSE_PANEL * dense_size(kind);
	struct ahead ahead = { 0 };
	uint32_t col, ncols, o;
	const uint8_t *w;

	if (m <= dense_few(kind)) {
		dense_columns(kind, c, m, c->w, sums, 0, c->k, ahead);
		return;
	}
	for (col = 0; col < c->k; col += ncols) {
		ncols = MIN(c->k - col, DENSE_CHUNK);
		w = c->w + (uint64_t)col * column;
		ahead.p = w + ncols * column;
		ahead.lines = ncols * column / CACHELINE;
		for (o = 0; c->reading->page > 0 && o < ncols * column;
		    o += SMALL_PAGE)
			prefetch_page(ahead.p + ncols * column + o);
		dense_columns(DENSE_WIDE, c, m, dense_widen(kind, wide, w,
		    ncols * DENSE_PANEL), sums, col, ncols, ahead);
	}
}

/* The last panel when it has fewer columns: beside y. */
static void
dense_partial(enum dense_kind kind, const struct dense_call *c, uint32_t m,
    uint32_t ncols)
{
	_Alignas(64) float y[DENSE_NT][DENSE_PANEL], bias[DENSE_PANEL] = { 0 };
	struct dense_call part = *c;
	uint32_t row, t, nt;

	part.y = y[0];
	part.ldy = DENSE_PANEL;
	if (c->bias != NULL)
		part.bias = memcpy(bias, c->bias, ncols * sizeof(*bias));
	for (row = 0; row < m; row += nt) {
		nt = MIN(m - row, DENSE_NT);
		part.x = c->x + row * c->ldx;
		dense_group(kind, &part, nt);
		for (t = 0; t < nt; t++)
			memcpy(c->y + (row + t) * c->ldy, y[t],
			    ncols * sizeof(y[0][0]));
	}
}

/* Panels that m rows go through together, of n columns of y. */
static inline uint32_t
dense_together(const struct dense_call *c, uint32_t m, uint32_t n)
{
	return m == 1 && c->reading->streams == FEW_STREAMS &&
	    n >= FEW_STREAMS * DENSE_PANEL ? FEW_STREAMS : 1;
}

static void
matmul_dense_by(enum reader core, float *y, uint64_t ldy, const void *x,
    const struct mat *w, const float *bias, uint32_t m, uint32_t n0,
    uint32_t n1)
{
	const enum dense_kind kind = dense_kind(w->type);
	struct dense_call c = { .ldy = ldy, .x = x,
	    .reading = reading_dense(core, kind == DENSE_WORDS, m),
	    .k = DIV_UP(w->k, DENSE_WORD) };
	const uint64_t row_bytes = act_row_bytes(DENSE_ACT, w->k);
	uint32_t i, j, npanels, rows, ngroups = DIV_UP(m,
	    (uint32_t)MAX(MIN(DENSE_L2 / row_bytes, DENSE_ROWS),
	    DENSE_ROWS_LEAST));

	c.ldx = row_bytes / sizeof(float);
	for (i = 0; i < ngroups; i++) {
		rows = even_part(m, ngroups, i);
		for (j = n0; j < n1; j += npanels * DENSE_PANEL) {
			npanels = dense_together(&c, rows, n1 - j);
			c.y = y + j;
			c.w = (const uint8_t *)w->data +
			    j * dense_row_bytes(w->type, w->k);
			c.bias = bias ? bias + j : NULL;
			if (npanels > 1)
				dense_rows[kind](&c);
			else if (n1 - j < DENSE_PANEL)
				dense_partial(kind, &c, rows, n1 - j);
			else
				dense_group(kind, &c, rows);
		}
		c.x += rows * c.ldx;
		y += rows * ldy;
	}
}

#define DENSE_MATMUL_OF(core)						\
static void								\
matmul_dense_##core(float *y, uint64_t ldy, const void *x,		\
    struct mat_ready *ready, const struct mat *w, const float *bias,	\
    uint32_t m, uint32_t n0, uint32_t n1)				\
{									\
	(void)ready;							\
	matmul_dense_by(core, y, ldy, x, w, bias, m, n0, n1);		\
}
#define DENSE_MATMUL_ENTRY(core) [core] = matmul_dense_##core,
EACH_READER(DENSE_MATMUL_OF)
static matmul_fn *const dense_matmuls[] = { EACH_READER(DENSE_MATMUL_ENTRY) };

/* Word by word; in pieces of k that keep the panel's part in L1. */
SIMD void
pack_dense(enum quant_type type, uint8_t *dst, const uint8_t *src,
    uint32_t row0, uint32_t nrows, uint32_t k)
{
	const uint32_t size = type == QUANT_F32 ? 4 : 2;
	const uint32_t word = size * DENSE_WORD, n = k / DENSE_WORD;
	const uint64_t row_bytes = (uint64_t)k * size;
	const uint64_t packed_bytes = dense_row_bytes(type, k);
	uint32_t j, r, i, i0, have;

	for (j = 0; j < nrows; j += DENSE_PANEL) {
		uint8_t *panel = dst + (row0 + j) * packed_bytes;
		const uint8_t *rows = src + j * row_bytes;

		have = MIN(nrows - j, DENSE_PANEL);
		if (have < DENSE_PANEL || packed_bytes > row_bytes)
			memset(panel, 0, DENSE_PANEL * packed_bytes);
		for (i0 = 0; i0 < n; i0 += 64)
			for (r = 0; r < have; r++)
				for (i = i0; i < MIN(i0 + 64, n); i++)
					memcpy(panel + ((uint64_t)i *
					    DENSE_PANEL + r) * word, rows +
					    r * row_bytes + (uint64_t)i * word,
					    word);
		for (r = 0; r < have && n * DENSE_WORD < k; r++)
			memcpy(panel + dense_at(r, k - 1, size), rows +
			    (r + 1) * row_bytes - size, size);
	}
}

static void
unpack_row_dense(float *out, const struct mat *w, uint32_t row)
{
	const uint32_t r = row % DENSE_PANEL;
	const uint8_t *panel = (const uint8_t *)w->data +
	    (row - r) * dense_row_bytes(w->type, w->k);
	uint16_t h;
	uint32_t i;

	for (i = 0; i < w->k; i++) {
		if (w->type == QUANT_F32) {
			memcpy(out + i, panel + dense_at(r, i, 4), 4);
			continue;
		}
		memcpy(&h, panel + dense_at(r, i, 2), sizeof(h));
		out[i] = w->type == QUANT_F16 ? half_to_float(h) :
		    bf16_to_float(h);
	}
}

#define DENSE_TYPE(T, t)						\
static uint64_t								\
packed_bytes_##t(uint32_t n, uint32_t k)				\
{									\
	return ALIGN_UP(ALIGN_UP(n, DENSE_PANEL) * dense_row_bytes(T, k), \
	    64);							\
}									\
static void								\
pack_##t(void *dst, const void *src, uint32_t row0, uint32_t nrows,	\
    uint32_t n, uint32_t k)						\
{									\
	(void)n;							\
	pack_dense(T, dst, src, row0, nrows, k);			\
}

DENSE_TYPE(QUANT_BF16, bf16)
#ifndef DENSE_PAIRS
DENSE_TYPE(QUANT_F32, f32)
DENSE_TYPE(QUANT_F16, f16)
#endif

#define DENSE_KERNEL(T, t)						\
	k->mat[T] = (struct mat_kernel){ #t MAT_SUFFIX, DENSE_ACT,	\
	    DENSE_PANEL, packed_bytes_##t, pack_##t, unpack_row_dense,	\
	    matmul, 0, 0 }

static void
dense_init(struct kernels *k, uint32_t cpu_flags)
{
	matmul_fn *matmul = dense_matmuls[reader_of(cpu_flags)];

	DENSE_KERNEL(QUANT_BF16, bf16);
#ifndef DENSE_PAIRS
	DENSE_KERNEL(QUANT_F32, f32);
	DENSE_KERNEL(QUANT_F16, f16);
#endif
}

#endif
#endif
