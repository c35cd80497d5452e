/* kernels/x86_avx2.c - kernels for x86-64 cores with AVX2, FMA and F16C.
 * Matrices, then rows; attention is attn.h.
 *
 * Weights are interleaved so that a vector holds one column of k for 8 rows:
 * each output element is one lane of one accumulator, summed over k in
 * ascending order, whatever the number of rows and columns in the call.
 *
 *	F32 F16 BF16  panel of 32 rows: for each k, 32 elements
 *	Q8_0 Q4_0     panel of 8 rows: for each block of 32, 8 scales (half),
 *	              then for each 4 bytes of the file's block, 8 rows of them
 *
 * The kernels of rows handle tails with masked loads in the same vector code,
 * so that an element's value does not depend on where it lies. */
#include <immintrin.h>
#include <string.h>

#include "attn.h"

#define INLINE	static inline __attribute__((always_inline))

enum {
	DENSE_TILE = 32, DENSE_ROWS = 3,	/* 3 x 4 accumulators */
	QUANT_TILE = 8, QUANT_ROWS = 4
};

/* The first n lanes; all of them for n >= 8. */
INLINE __m256i
mask_n(uint32_t n)
{
	return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)MIN(n, 8)),
	    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE __m256
load_n(const float *p, uint32_t n)
{
	return _mm256_maskload_ps(p, mask_n(n));
}

INLINE void
store_n(float *p, uint32_t n, __m256 v)
{
	_mm256_maskstore_ps(p, mask_n(n), v);
}

INLINE __m256i
load_bytes(const void *p)
{
	return _mm256_loadu_si256(p);
}

INLINE __m256
load_halfs(const void *p)
{
	return _mm256_cvtph_ps(_mm_loadu_si128(p));
}

/* e^x within 2 ulp; polynomial of Cephes' expf.  2^n is applied in two halves
 * so that n = 128 and denormal results come out right.  A NaN stays one: the
 * clamps return their second operand. */
INLINE __m256
exp8(__m256 x)
{
	const __m256 log2e = _mm256_set1_ps(1.44269504088896341f);
	const __m256 ln2_hi = _mm256_set1_ps(0.693359375f);
	const __m256 ln2_lo = _mm256_set1_ps(-2.12194440e-4f);
	const float c[] = { 1.3981999507e-3f, 8.3334519073e-3f,
	    4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f };
	__m256 n, r, p;
	__m256i i, half;
	unsigned j;

	x = _mm256_max_ps(_mm256_set1_ps(-105), x);
	x = _mm256_min_ps(_mm256_set1_ps(90), x);
	n = _mm256_round_ps(_mm256_mul_ps(x, log2e),
	    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
	r = _mm256_fnmadd_ps(n, ln2_lo, _mm256_fnmadd_ps(n, ln2_hi, x));
	p = _mm256_set1_ps(1.9875691500e-4f);
	UNROLL
	for (j = 0; j < NITEMS(c); j++)
		p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c[j]));
	p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
	p = _mm256_add_ps(p, _mm256_set1_ps(1));

	i = _mm256_cvtps_epi32(n);
	half = _mm256_srai_epi32(i, 1);
	i = _mm256_sub_epi32(i, half);
	i = _mm256_slli_epi32(_mm256_add_epi32(i, _mm256_set1_epi32(127)), 23);
	half = _mm256_slli_epi32(_mm256_add_epi32(half,
	    _mm256_set1_epi32(127)), 23);
	return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(i)),
	    _mm256_castsi256_ps(half));
}

/* ---- Matrices ---- */

/* One panel times some rows of activations. */
struct tile {
	float *y;		/* first row, the panel's first column */
	uint64_t ldy;
	const uint8_t *x;	/* first row; stride act_row_bytes */
	uint64_t ldx_bytes;
	const uint8_t *w;	/* the panel */
	const float *bias;	/* of the panel's first column, or NULL */
	uint32_t k, ncols;	/* columns that exist */
};

/* 8 columns, the panel's from j on, of row r. */
INLINE void
store_tile(const struct tile *t, unsigned r, uint32_t j, __m256 v)
{
	uint32_t n = t->ncols > j ? t->ncols - j : 0;

	if (t->bias != NULL)
		v = _mm256_add_ps(v, load_n(t->bias + j, n));
	store_n(t->y + r * t->ldy + j, n, v);
}

/* Ask for the weights a page ahead: the hardware's own prefetch stops at the
 * page's end.  Decoding gains a third by it; past the end it does nothing. */
INLINE void
prefetch_panel(const uint8_t *w, uint32_t nbytes)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < nbytes; i += CACHELINE)
		_mm_prefetch((const char *)w + 4096 + i, _MM_HINT_T0);
}

INLINE __m256
load_dense(enum quant_type type, const uint8_t *w, unsigned j)
{
	switch (type) {
	case QUANT_F16:
		return load_halfs(w + j * 16);
	case QUANT_BF16:
		return _mm256_castsi256_ps(_mm256_slli_epi32(
		    _mm256_cvtepu16_epi32(_mm_loadu_si128(
		    (const void *)(w + j * 16))), 16));
	default:
		return _mm256_loadu_ps((const void *)(w + j * 32));
	}
}

INLINE void
dense_rows(enum quant_type type, unsigned rows, const struct tile *t)
{
	const uint32_t step = DENSE_TILE * (type == QUANT_F32 ? 4 : 2);
	const uint64_t ldx = t->ldx_bytes / sizeof(float);
	const float *x = (const void *)t->x;
	const uint8_t *w = t->w;
	__m256 acc[DENSE_ROWS][4];
	unsigned r, j;
	uint32_t i;

	UNROLL
	for (r = 0; r < rows; r++)
		UNROLL
		for (j = 0; j < 4; j++)
			acc[r][j] = _mm256_setzero_ps();
	for (i = 0; i < t->k; i++, w += step) {
		prefetch_panel(w, step);
		UNROLL
		for (j = 0; j < 4; j++) {
			__m256 wj = load_dense(type, w, j);

			UNROLL
			for (r = 0; r < rows; r++)
				acc[r][j] = _mm256_fmadd_ps(wj,
				    _mm256_broadcast_ss(x + r * ldx + i),
				    acc[r][j]);
		}
	}
	UNROLL
	for (r = 0; r < rows; r++)
		UNROLL
		for (j = 0; j < 4; j++)
			store_tile(t, r, j * 8, acc[r][j]);
}

/* Four activations of 8 bits, for all 8 rows of weights. */
INLINE __m256i
broadcast4(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return _mm256_set1_epi32(v);
}

/* w . x of one block for 8 rows of weights.  maddubs wants one side unsigned:
 * |w| <= 128 and |x| <= 127 give pairs of at most 32512, which fit. */
INLINE void
dot_q8_0(unsigned rows, __m256i *dot, const uint8_t *w, const uint8_t *x,
    uint64_t ldx)
{
	const __m256i ones = _mm256_set1_epi16(1);
	unsigned r, g;

	UNROLL
	for (r = 0; r < rows; r++)
		dot[r] = _mm256_setzero_si256();
	for (g = 0; g < 8; g++) {	/* gcc spills if this is unrolled */
		__m256i v = load_bytes(w + g * 32), mag = _mm256_abs_epi8(v);

		UNROLL
		for (r = 0; r < rows; r++) {
			__m256i s = _mm256_sign_epi8(
			    broadcast4(x + r * ldx + g * 4), v);

			dot[r] = _mm256_add_epi32(dot[r], _mm256_madd_epi16(
			    _mm256_maddubs_epi16(mag, s), ones));
		}
	}
}

/* The same with the nibbles as they are, 0..15: eight pairs add up to at most
 * 8 * 2 * 15 * 127 = 30480 in 16 bits.  The offset of 8 comes off by the two
 * sums of x. */
INLINE void
dot_q4_0(unsigned rows, __m256i *dot, const uint8_t *w, const uint8_t *x,
    uint64_t ldx, const uint8_t *sum)
{
	const __m256i low = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
	unsigned r, g;

	UNROLL
	for (r = 0; r < rows; r++)
		dot[r] = _mm256_setzero_si256();
	for (g = 0; g < 4; g++) {	/* not unrolled: as above */
		__m256i v = load_bytes(w + g * 32);
		__m256i lo = _mm256_and_si256(v, low);
		__m256i hi = _mm256_and_si256(_mm256_srli_epi16(v, 4), low);

		UNROLL
		for (r = 0; r < rows; r++) {
			const uint8_t *xr = x + r * ldx + g * 4;

			dot[r] = _mm256_add_epi16(dot[r],
			    _mm256_maddubs_epi16(lo, broadcast4(xr)));
			dot[r] = _mm256_add_epi16(dot[r],
			    _mm256_maddubs_epi16(hi, broadcast4(xr + 16)));
		}
	}
	UNROLL
	for (r = 0; r < rows; r++)
		dot[r] = _mm256_sub_epi32(_mm256_madd_epi16(dot[r], ones),
		    _mm256_madd_epi16(broadcast4(sum + r * ldx),
		    _mm256_set1_epi16(8)));
}

INLINE void
quant_rows(enum quant_type type, unsigned rows, const struct tile *t)
{
	const uint32_t step = QUANT_TILE * (type == QUANT_Q8_0 ?
	    sizeof(struct block_q8_0) : sizeof(struct block_q4_0));
	const uint64_t ldx = t->ldx_bytes;
	const uint8_t *w = t->w, *xd = t->x;
	const uint8_t *xsum = xd + act_q8_sum_off(t->k);
	const uint8_t *xq = xd + act_q8_q_off(t->k);
	__m256 acc[QUANT_ROWS];
	__m256i dot[QUANT_ROWS];
	unsigned r;
	uint32_t b;

	UNROLL
	for (r = 0; r < rows; r++)
		acc[r] = _mm256_setzero_ps();
	for (b = 0; b < t->k / 32; b++) {
		__m256 d = load_halfs(w);

		prefetch_panel(w, step);
		if (type == QUANT_Q8_0)
			dot_q8_0(rows, dot, w + 16, xq, ldx);
		else
			dot_q4_0(rows, dot, w + 16, xq, ldx, xsum);
		UNROLL
		for (r = 0; r < rows; r++)
			acc[r] = _mm256_fmadd_ps(_mm256_mul_ps(d,
			    _mm256_broadcast_ss((const void *)(xd + r * ldx))),
			    _mm256_cvtepi32_ps(dot[r]), acc[r]);
		w += step;
		xd += sizeof(float);
		xsum += sizeof(int32_t);
		xq += 32;
	}
	UNROLL
	for (r = 0; r < rows; r++)
		store_tile(t, r, 0, acc[r]);
}

/* Panel after panel, each read from memory once for all rows. */
INLINE void
matmul(enum quant_type type, int dense, float *y, uint64_t ldy, const void *x,
    const struct mat *w, const float *bias, uint32_t m, uint32_t n0,
    uint32_t n1)
{
	const uint32_t tile = dense ? DENSE_TILE : QUANT_TILE;
	const uint32_t rows = dense ? DENSE_ROWS : QUANT_ROWS;
	const uint64_t row_bytes = quant_row_bytes(type, w->k);
	struct tile t = { .ldy = ldy, .k = w->k };
	uint32_t i, j;

	t.ldx_bytes = act_row_bytes(dense ? ACT_F32 : ACT_Q8, w->k);
	for (j = n0; j < n1; j += tile) {
		t.w = (const uint8_t *)w->data + j * row_bytes;
		t.bias = bias ? bias + j : NULL;
		t.ncols = n1 - j;
		for (i = 0; i < m; i += rows) {
			t.y = y + i * ldy + j;
			t.x = (const uint8_t *)x + i * t.ldx_bytes;
			switch (MIN(m - i, rows)) {
			case 1:
				dense ? dense_rows(type, 1, &t) :
				    quant_rows(type, 1, &t);
				break;
			case 2:
				dense ? dense_rows(type, 2, &t) :
				    quant_rows(type, 2, &t);
				break;
			case 3:
				dense ? dense_rows(type, 3, &t) :
				    quant_rows(type, 3, &t);
				break;
			default:
				quant_rows(type, 4, &t);
			}
		}
	}
}

/* Element by element; in pieces of k that keep the panel's part in L1. */
INLINE void
pack_dense(size_t size, uint8_t *dst, const uint8_t *src, uint32_t row0,
    uint32_t nrows, uint32_t k)
{
	uint64_t row_bytes = k * size;
	uint32_t j, r, i, i0, have;

	for (j = 0; j < nrows; j += DENSE_TILE) {
		uint8_t *panel = dst + (row0 + j) * row_bytes;
		const uint8_t *rows = src + j * row_bytes;

		have = MIN(nrows - j, DENSE_TILE);
		if (have < DENSE_TILE)
			memset(panel, 0, DENSE_TILE * row_bytes);
		for (i0 = 0; i0 < k; i0 += 64)
			for (r = 0; r < have; r++)
				for (i = i0; i < MIN(i0 + 64, k); i++)
					memcpy(panel + ((uint64_t)i * DENSE_TILE
					    + r) * size, rows + r * row_bytes +
					    i * size, size);
	}
}

/* A block is a half and then block_bytes - 2 of quants. */
INLINE void
pack_quant(size_t block_bytes, uint8_t *dst, const uint8_t *src, uint32_t row0,
    uint32_t nrows, uint32_t k)
{
	uint64_t row_bytes = k / 32 * block_bytes;
	uint32_t j, b, r, have;
	size_t g;

	for (j = 0; j < nrows; j += QUANT_TILE) {
		uint8_t *p = dst + (row0 + j) * row_bytes;
		const uint8_t *rows = src + j * row_bytes;

		have = MIN(nrows - j, QUANT_TILE);
		if (have < QUANT_TILE)
			memset(p, 0, QUANT_TILE * row_bytes);
		for (b = 0; b < k / 32; b++) {
			for (r = 0; r < have; r++) {
				const uint8_t *s = rows + r * row_bytes +
				    b * block_bytes;

				memcpy(p + r * 2, s, 2);
				for (g = 0; g < block_bytes / 4; g++)
					memcpy(p + 16 + g * 32 + r * 4,
					    s + 2 + g * 4, 4);
			}
			p += QUANT_TILE * block_bytes;
		}
	}
}

/* The element of column 0 and row `row` of the packed matrix. */
INLINE const uint8_t *
dense_at(const struct mat *w, size_t size, uint32_t row)
{
	return (const uint8_t *)w->data +
	    (uint64_t)(row - row % DENSE_TILE) * w->k * size +
	    row % DENSE_TILE * size;
}

static void
unpack_row_f32(float *out, const struct mat *w, uint32_t row)
{
	const float *p = (const void *)dense_at(w, 4, row);
	uint32_t i;

	for (i = 0; i < w->k; i++, p += DENSE_TILE)
		out[i] = *p;
}

static void
unpack_row_f16(float *out, const struct mat *w, uint32_t row)
{
	const uint16_t *p = (const void *)dense_at(w, 2, row);
	uint32_t i;

	for (i = 0; i < w->k; i++, p += DENSE_TILE)
		out[i] = _cvtsh_ss(*p);
}

static void
unpack_row_bf16(float *out, const struct mat *w, uint32_t row)
{
	const uint16_t *p = (const void *)dense_at(w, 2, row);
	uint32_t i;

	for (i = 0; i < w->k; i++, p += DENSE_TILE)
		out[i] = bf16_to_float(*p);
}

/* Blocks of 8 rows from the panel that holds `row` on. */
INLINE const uint8_t *
quant_at(const struct mat *w, size_t block_bytes, uint32_t row)
{
	return (const uint8_t *)w->data + (uint64_t)(row - row % QUANT_TILE) *
	    (w->k / 32 * block_bytes);
}

static void
unpack_row_q8_0(float *out, const struct mat *w, uint32_t row)
{
	const uint8_t *p = quant_at(w, sizeof(struct block_q8_0), row);
	uint32_t b, i, r = row % QUANT_TILE;

	for (b = 0; b < w->k / 32; b++, out += 32) {
		float d = _cvtsh_ss(((const uint16_t *)(const void *)p)[r]);
		const int8_t *q = (const int8_t *)p + 16 + r * 4;

		for (i = 0; i < 32; i++)
			out[i] = d * q[i / 4 * 32 + i % 4];
		p += QUANT_TILE * sizeof(struct block_q8_0);
	}
}

static void
unpack_row_q4_0(float *out, const struct mat *w, uint32_t row)
{
	const uint8_t *p = quant_at(w, sizeof(struct block_q4_0), row);
	uint32_t b, i, r = row % QUANT_TILE;

	for (b = 0; b < w->k / 32; b++, out += 32) {
		float d = _cvtsh_ss(((const uint16_t *)(const void *)p)[r]);
		const uint8_t *q = p + 16 + r * 4;

		for (i = 0; i < 16; i++) {
			uint8_t v = q[i / 4 * 32 + i % 4];

			out[i] = d * ((v & 15) - 8);
			out[i + 16] = d * ((v >> 4) - 8);
		}
		p += QUANT_TILE * sizeof(struct block_q4_0);
	}
}

/* One instance of everything above for a type. */
#define MAT_KERNEL(T, t, dense, tile, pack_rows, size)			\
static uint64_t								\
packed_bytes_##t(uint32_t n, uint32_t k)				\
{									\
	return ALIGN_UP(ALIGN_UP(n, tile) * quant_row_bytes(T, k), 64);	\
}									\
									\
static void								\
pack_##t(void *dst, const void *src, uint32_t row0, uint32_t nrows,	\
    uint32_t n, uint32_t k)						\
{									\
	(void)n;							\
	pack_rows(size, dst, src, row0, nrows, k);			\
}									\
									\
static void								\
matmul_##t(float *y, uint64_t ldy, const void *x, const struct mat *w,	\
    const float *bias, uint32_t m, uint32_t n0, uint32_t n1)		\
{									\
	matmul(T, dense, y, ldy, x, w, bias, m, n0, n1);		\
}									\
									\
static const struct mat_kernel kernel_##t = {				\
	#t "_avx2", dense ? ACT_F32 : ACT_Q8, tile, packed_bytes_##t,	\
	pack_##t, unpack_row_##t, matmul_##t				\
};

MAT_KERNEL(QUANT_F32, f32, 1, DENSE_TILE, pack_dense, 4)
MAT_KERNEL(QUANT_F16, f16, 1, DENSE_TILE, pack_dense, 2)
MAT_KERNEL(QUANT_BF16, bf16, 1, DENSE_TILE, pack_dense, 2)
MAT_KERNEL(QUANT_Q8_0, q8_0, 0, QUANT_TILE, pack_quant,
    sizeof(struct block_q8_0))
MAT_KERNEL(QUANT_Q4_0, q4_0, 0, QUANT_TILE, pack_quant,
    sizeof(struct block_q4_0))

/* ---- Rows: add and rope are as fast in the reference ---- */

/* See impl.h: the largest magnitude of 32 floats, as bits. */
INLINE uint32_t
amax32_bits(const float *x)
{
	const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
	__m256i m = _mm256_setzero_si256();
	__m128i s;
	unsigned i;

	UNROLL
	for (i = 0; i < 32; i += 8)
		m = _mm256_max_epi32(m, _mm256_and_si256(magnitude,
		    load_bytes(x + i)));
	s = _mm_max_epi32(_mm256_castsi256_si128(m),
	    _mm256_extracti128_si256(m, 1));
	s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0x4e));
	s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(s);
}

/* q = x / d to nearest even, or 0; returns the sums of each four of q. */
INLINE __m256i
round32(int8_t *q, const float *x, float d)
{
	const __m256i ones = _mm256_set1_epi16(1);
	__m256i v[4];
	unsigned i;

	if (!(d > 0)) {
		memset(q, 0, 32);
		return _mm256_setzero_si256();
	}
	UNROLL
	for (i = 0; i < 4; i++)
		v[i] = _mm256_cvtps_epi32(_mm256_max_ps(_mm256_set1_ps(-127),
		    _mm256_min_ps(_mm256_set1_ps(127), _mm256_div_ps(
		    _mm256_loadu_ps(x + i * 8), _mm256_set1_ps(d)))));

	/* The packs work within 128-bit lanes: put the fours in order. */
	v[0] = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(
	    _mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3])),
	    _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
	_mm256_storeu_si256((void *)q, v[0]);
	/* 32 bytes -> 16 pairs -> 8 fours */
	return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1),
	    v[0]), ones);
}

/* Two sums of 16 from the eight of round32. */
INLINE void
store_sums(int16_t sum[2], __m256i fours)
{
	__m256i s = _mm256_add_epi32(fours, _mm256_shuffle_epi32(fours, 0x4e));

	s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0xb1));
	sum[0] = (int16_t)_mm256_extract_epi32(s, 0);
	sum[1] = (int16_t)_mm256_extract_epi32(s, 4);
}

static void
quantize_q8(void *dst, const float *x, uint32_t k)
{
	float *d = dst;
	int16_t *sum = (void *)((uint8_t *)dst + act_q8_sum_off(k));
	int8_t *q = (int8_t *)dst + act_q8_q_off(k);
	uint32_t b;

	for (b = 0; b < k / 32; b++) {
		d[b] = act_q8_scale(amax32_bits(x + b * 32));
		store_sums(sum + 2 * b, round32(q + b * 32, x + b * 32, d[b]));
	}
}

/* The sum in double: squares of 1e20 do not fit a float. */
static void
rms_norm(float *y, const float *x, const float *w, uint32_t k, float eps)
{
	__m256d lo = _mm256_setzero_pd(), hi = _mm256_setzero_pd();
	__m256 scale;
	double sum[4];
	uint32_t i;

	for (i = 0; i < k; i += 8) {
		__m256 v = load_n(x + i, k - i);
		__m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
		__m256d b = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));

		lo = _mm256_fmadd_pd(a, a, lo);
		hi = _mm256_fmadd_pd(b, b, hi);
	}
	_mm256_storeu_pd(sum, _mm256_add_pd(lo, hi));
	scale = _mm256_set1_ps(rms_scale((sum[0] + sum[1]) +
	    (sum[2] + sum[3]), k, eps));
	for (i = 0; i < k; i += 8)
		store_n(y + i, k - i, _mm256_mul_ps(_mm256_mul_ps(
		    load_n(x + i, k - i), scale), load_n(w + i, k - i)));
}

static void
swiglu(float *y, const float *g, const float *u, uint32_t k)
{
	const __m256 one = _mm256_set1_ps(1);
	uint32_t i;

	for (i = 0; i < k; i += 8) {
		__m256 v = load_n(g + i, k - i);
		__m256 e = exp8(_mm256_sub_ps(_mm256_setzero_ps(), v));

		v = _mm256_div_ps(v, _mm256_add_ps(one, e));
		store_n(y + i, k - i,
		    _mm256_mul_ps(v, load_n(u + i, k - i)));
	}
}

static void
kv_store(void *dst, enum kv_fmt f, const float *x, uint32_t head_dim)
{
	struct block_q8_0 *b = dst;
	uint16_t *h = dst;
	uint32_t i;

	switch (f) {
	case KV_FMT_F16:
		for (i = 0; i + 8 <= head_dim; i += 8)
			_mm_storeu_si128((void *)(h + i), _mm256_cvtps_ph(
			    _mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
		for (; i < head_dim; i++)
			h[i] = float_to_half(x[i]);
		break;
	case KV_FMT_Q8_0:
		for (i = 0; i < head_dim; i += 32, b++) {
			b->d = kv_q8_scale(amax32_bits(x + i));
			round32(b->q, x + i, half_to_float(b->d));
		}
		break;
	default:
		memcpy(dst, x, head_dim * sizeof(*x));
	}
}

void
kernels_init_avx2(struct kernels *k)
{
	k->name = "avx2";
	k->mat[QUANT_F32] = kernel_f32;
	k->mat[QUANT_F16] = kernel_f16;
	k->mat[QUANT_BF16] = kernel_bf16;
	k->mat[QUANT_Q8_0] = kernel_q8_0;
	k->mat[QUANT_Q4_0] = kernel_q4_0;
	k->quantize_q8 = quantize_q8;
	k->rms_norm = rms_norm;
	k->swiglu = swiglu;
	k->kv_store = kv_store;
	attn_init(k);
}
