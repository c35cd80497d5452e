/* kernels/kernels.h - the arithmetic of a stage, as a table of functions.
 * Owns: function types with shapes.  Called by worker/stage/ops_*.c and the
 * tests.  Does not depend on models or threads: the functions allocate nothing,
 * do no I/O and have no global state.
 *
 * Batch invariance: an output element depends on its own row of
 * activations and its own weights only, and is accumulated in one fixed order
 * over blocks of K.  The number of rows in a call, the range of columns in a
 * call, and alignment must never change a bit of the result: within one
 * table, matmul of m rows equals m matmuls of one row. */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include "config/kv_type.h"
#include "kernels/types/quant.h"

/* Format of a row of activations; each matmul has the one it takes. */
enum act_type {
	ACT_F32,		/* float x[k] */
	ACT_Q8,			/* struct act_q8 blocks: see below */
	ACT_BF16,		/* uint16_t x[k], and a zero if k is odd */
	ACT_NTYPES
};

/* 32 activations in 8 bits: x[i] ~ d * q[i].  A row of k activations, a multiple of
 * 32, has k / 32 blocks.  q is rounded to nearest even; all zeros have d = 0 and
 * q = 0.  d has at most 22 significant bits, so that ACT_MAGIC * d is exact: the
 * matrix kernels use it to turn integers into floats (matmul/matmul.h).  The sums
 * are for weight types with an addend. */
#define ACT_MAGIC	12582912.0f	/* 3 * 2^22 */

/* The largest magnitude is 127 steps.  quantize_q8_fine chooses 126 where that has
 * the smaller error: the sum of squared distances from whole steps, in 1/256 of a
 * step.  These are integers, with sums of 32 below 2^24: exact in any order, so that
 * every variant makes the same choice.  ACT_FINE_WIDER scales the error of the wider
 * step. */
#define ACT_FINE_PARTS	256.0f
#define ACT_FINE_WIDER	(127.0f / 126 * (127.0f / 126))

struct act_q8 {
	float d;		/* largest magnitude / 127 or / 126 */
	float d0;		/* -ACT_MAGIC * d */
	float sum;		/* d * sum of q, rounded once */
	float sum_high;		/* d * sum of q[16..31], rounded once */
	int8_t q[32];		/* + kernels.act_bias, modulo 256 */
};
_Static_assert(sizeof(struct act_q8) == 48, "act_q8");

/* Bytes of k activations, and the stride of rows of k: a multiple of 64. */
uint64_t act_bytes(enum act_type t, uint64_t k);
uint64_t act_row_bytes(enum act_type t, uint64_t k);

/* A matrix of weights W (n rows x k columns) for y = x W^T, packed in its kernel's
 * own layout, `tile` rows at a time; the last tile is padded. */
struct mat {
	const void *data;	/* mat_kernel.packed_bytes(n, k), 64-aligned */
	uint32_t n, k;
	uint32_t type;		/* enum quant_type of the file */
};

/* Activations rearranged by a matmul, kept for the thread's next calls with the same
 * rows.  matmul notices another address, number or length of rows and another type
 * of weights.  It cannot notice new contents at the same address: the caller then
 * sets made to 0. */
struct mat_ready {
	void *room;		/* mat_ready_bytes(kern, m, k), 64-aligned */
	int made;
	/* If made, the rows and the type it is made for. */
	const void *x;
	uint32_t type, m, k;
};

/* y (m x n, row stride ldy floats) columns [n0, n1) = x (m rows, stride
 * act_row_bytes) . W rows [n0, n1), + bias[n] when bias != NULL.  n0 is a
 * multiple of tile, n1 too or equal to n.  m >= 1.  ready = NULL: no room for
 * rearranged rows; calls with more than ready_rows use it where ready_part > 0. */
typedef void matmul_fn(float *y, uint64_t ldy, const void *x,
    struct mat_ready *ready, const struct mat *w, const float *bias, uint32_t m,
    uint32_t n0, uint32_t n1);

/* Packs file rows [row0, row0 + nrows) of an (n x k) matrix from src (rows of the
 * file, at any alignment) into dst, the start of the whole packed matrix.  row0 is
 * a multiple of tile; nrows too, unless they are the last.  Padding rows are
 * written as zeros. */
typedef void pack_fn(void *dst, const void *src, uint32_t row0,
    uint32_t nrows, uint32_t n, uint32_t k);

/* Converts one row of the packed matrix to floats out (k): the exact weights. */
typedef void unpack_row_fn(float *out, const struct mat *w, uint32_t row);

typedef uint64_t packed_bytes_fn(uint32_t n, uint32_t k);

struct mat_kernel {
	const char *name;	/* "q4_0_avx2"; NULL = no kernel for this type */
	enum act_type act;
	uint32_t tile;		/* rows that are packed and multiplied together */
	packed_bytes_fn *packed_bytes;
	pack_fn *pack;
	unpack_row_fn *unpack_row;
	matmul_fn *matmul;
	uint32_t ready_rows;	/* up to this many rows use struct mat_ready
				 * whole; 0 = none */
	uint32_t ready_part;	/* limit in bytes for more rows, or for part of
				 * their columns; 0 = they do not use it */
};

/* Bytes of struct mat_ready's room for 32 columns of a row: of few rows, and at most
 * of more rows. */
enum { READY_BYTES = 56, READY_PART_BYTES = 80 };

/* Bytes of room for calls with up to m rows. */
static inline uint64_t
mat_ready_bytes(const struct mat_kernel *kern, uint32_t m, uint32_t k)
{
	const uint64_t few = (uint64_t)MIN(m, kern->ready_rows) * (k / 32) *
	    READY_BYTES;
	const uint64_t more = (uint64_t)m * (k / 32) * READY_PART_BYTES;

	return m <= kern->ready_rows ? few :
	    MAX(few, MIN(more, kern->ready_part));
}

/* K and V of a layer, for each sequence and KV head:
 *
 *	V	rows of v_dim elements by position
 *	K	blocks of KEY_LANES positions: [head_dim][KEY_LANES] elements,
 *		so that a vector holds one element of several keys: attention
 *		sums each score in one order, element after element, for one
 *		row of a batch and for many.  Q8_0: the block's scales
 *		[head_dim / 32][KEY_LANES] (half) first, then the bytes.
 *
 * KEY_LANES positions of K take as many bytes as rows would. */
enum { KEY_LANES = 16 };

/* Bytes of one KV row of head_dim elements; 0 when the type cannot hold it
 * (Q8_0 needs a multiple of 32). */
uint64_t kv_row_bytes(enum kv_type f, uint32_t head_dim);

/* Attention processes keys in blocks and chunks of this many absolute positions: the
 * blocks of a chunk in ascending order, then the results of the chunks in ascending
 * order, whichever threads run them. */
enum { ATTN_BLOCK = 64, ATTN_CHUNK = 512 };

/* Limit of (row, query head) pairs in a call with more than one row: they share the
 * work on a block of keys. */
enum { ATTN_QUERIES = 128 };

/* Rows of one sequence at positions pos, pos + 1, ..., and the n_rep query heads that
 * share one KV head.  Row i sees the keys up to its own position; with window > 0
 * only the last `window` of them. */
struct attn_arg {
	const float *q;		/* (n_rep x head_dim) of row r at q + r * ldq */
	float *out;		/* (n_rep x v_dim) of row r at out + r * ldo */
	uint64_t ldq, ldo;	/* floats */
	const uint32_t *row;	/* (nrows) index r of each row */
	uint32_t nrows, pos, window;
	const void *k, *v;	/* at place 0 */
	uint32_t ring;		/* position p is at place p % ring, a multiple
				 * of ATTN_BLOCK; 0 = at place p */
	enum kv_type kfmt, vfmt;
	uint32_t n_rep;
	uint32_t head_dim, v_dim;
	float scale;
	float softcap;		/* 0 = none */
	const float *sink;	/* n_rep sink logits, or NULL */
	float *scratch;		/* attn_scratch_floats() */
	/* The next call's argument, with the same formats and sizes, or NULL.
	 * Its first keys are prefetched with the last keys of this call.  early:
	 * prefetch each of its blocks with a block of this call, and no block of
	 * this call, because the call before has done so; blocks beyond those
	 * wait for memory. */
	const struct attn_arg *next;
	int early;
};
/* Scratch for one call of at most MAX(n_rep, ATTN_QUERIES) queries: floats. */
uint64_t attn_scratch_floats(uint32_t n_rep, uint32_t head_dim,
    uint32_t v_dim);
/* Floats that attn_chunk passes to attn_merge for nqueries: a multiple of 16. */
uint64_t attn_part_floats(uint32_t nqueries, uint32_t v_dim);

static inline uint32_t
attn_place(const struct attn_arg *a, uint32_t pos)
{
	return a->ring > 0 ? pos % a->ring : pos;
}

/* Row i sees keys [*ret_first, end).  Returns end. */
static inline uint32_t
attn_keys(const struct attn_arg *a, uint32_t i, uint32_t *ret_first)
{
	uint32_t end = a->pos + i + 1;

	*ret_first = a->window > 0 && end > a->window ? end - a->window : 0;
	return end;
}

/* Some row sees keys [*ret_first, end).  Returns end. */
static inline uint32_t
attn_span(const struct attn_arg *a, uint32_t *ret_first)
{
	attn_keys(a, 0, ret_first);
	return a->pos + a->nrows;
}

/* The same within a chunk, which must have such keys. */
static inline uint32_t
attn_chunk_keys(const struct attn_arg *a, uint32_t chunk, uint32_t *ret_first)
{
	uint32_t end = attn_span(a, ret_first);

	*ret_first = MAX(*ret_first, chunk * ATTN_CHUNK);
	return MIN(end, (chunk + 1) * ATTN_CHUNK);
}

/* Chunks [*ret_first, end) have keys that some row sees.  Returns end. */
static inline uint32_t
attn_chunks(const struct attn_arg *a, uint32_t *ret_first)
{
	uint32_t end = attn_span(a, ret_first);

	*ret_first /= ATTN_CHUNK;
	return (end - 1) / ATTN_CHUNK + 1;
}

struct kernels {
	const char *name;			/* "ref", "avx2" */
	uint32_t cpu_flags;	/* that the table is for */
	uint8_t act_bias;	/* added to q of struct act_q8: 0 or 128 */
	struct mat_kernel mat[QUANT_NTYPES];
	/* For experts and routers, and for an embedding with a head apart
	 * (layers/bind.c).  They are the host's where the device of a layout
	 * multiplies no such matrices. */
	struct mat_kernel host[QUANT_NTYPES];
	/* Bytes of a matrix of n x k in the device's own format, which takes the
	 * place of the packed one where the device multiplies it; NULL = there
	 * is none.  device_groups: its first argument. */
	uint64_t (*device_bytes)(uint32_t groups, uint32_t type, uint32_t n,
	    uint32_t k);
	uint32_t device_groups;

	/* x (k) -> k / 32 blocks. */
	void (*quantize_q8)(struct act_q8 *dst, const float *x, uint32_t k);
	/* The same with less error; takes more than twice as long. */
	void (*quantize_q8_fine)(struct act_q8 *dst, const float *x,
	    uint32_t k);
	/* x (k) rounded to nearest even; denormals become 0.  After an odd k a
	 * zero is stored. */
	void (*round_bf16)(uint16_t *dst, const float *x, uint32_t k);
	/* y[i] = x[i] / sqrt(mean(x^2) + eps) * w[i]; y may be x.  w (k). */
	void (*rms_norm)(float *y, const float *x, const float *w, uint32_t k,
	    float eps);
	/* y[i] += x[i] */
	void (*add)(float *y, const float *x, uint32_t k);
	/* y[i] = the sum over j < n of w[j] * x[row[j] * ldx + i], in the order
	 * of j; each product and each sum is rounded.  n >= 1. */
	void (*weighted_sum)(float *y, const float *x, uint64_t ldx,
	    const uint32_t *row, const float *w, uint32_t n, uint32_t k);
	/* y[i] = g[i] / (1 + exp(-g[i])) * u[i]; y may be g or u. */
	void (*swiglu)(float *y, const float *g, const float *u, uint32_t k);
	/* y[i] = gelu(g[i]) * u[i] with gelu's tanh form, gelu(x) =
	 * x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) (Hendrycks and
	 * Gimpel 2016; Gemma).  y as above. */
	void (*geglu)(float *y, const float *g, const float *u, uint32_t k);
	/* gpt-oss: y[i] = g / (1 + exp(-alpha g)) * (u + 1), where g[i] is
	 * clamped to at most limit and u[i] to +-limit.  y as above. */
	void (*swiglu_oai)(float *y, const float *g, const float *u,
	    uint32_t k, float alpha, float limit);
	/* x[i] = cap * tanh(x[i] / cap) */
	void (*softcap)(float *x, uint32_t k, float cap);
	/* Rotates one head in place: pairs (2i, 2i+1), or (i, i + n_rot / 2) with
	 * neox, by cos[i] and sin[i], i < n_rot / 2. */
	void (*rope)(float *x, const float *cos, const float *sin,
	    uint32_t n_rot, int neox);
	/* Stores a KV row of head_dim elements. */
	void (*kv_store)(void *dst, enum kv_type f, const float *x,
	    uint32_t head_dim);
	/* Online softmax attention (Milakov and Gimelshein 2018, arXiv
	 * 1805.02867; Dao et al. 2022, arXiv 2205.14135): attn_chunk of all
	 * chunks and attn_merge in one call.  A row's result does not depend on
	 * the other rows. */
	void (*attention)(const struct attn_arg *a);
	/* The part of one chunk; and out from the parts of all chunks, stored
	 * one after another. */
	void (*attn_chunk)(const struct attn_arg *a, uint32_t chunk,
	    float *ret_part);
	void (*attn_merge)(const struct attn_arg *a, const float *parts);
};

/* Stores the key of a head at pos, converted as by k->kv_store, in attention's
 * layout of keys. */
void kv_store_key(const struct kernels *k, void *keys, enum kv_type f,
    uint32_t head_dim, uint32_t pos, const float *x);

/* Prefetches the lines that a key and a value at pos will be written to.  The key's
 * lines are those of a whole block of keys. */
void kv_prefetch(void *keys, enum kv_type kfmt, uint32_t head_dim, void *values,
    enum kv_type vfmt, uint32_t v_dim, uint32_t pos);

/* Sets k for these CPU flags: the reference first, then each variant that the flags
 * allow overwrites its entries, oldest to newest. */
void kernels_init(struct kernels *k, uint32_t cpu_flags);

/* One for each variant; cpu_flags as above. */
void kernels_init_ref(struct kernels *k);
void kernels_init_avx2(struct kernels *k, uint32_t cpu_flags);
void kernels_init_avxvnni(struct kernels *k, uint32_t cpu_flags);
void kernels_init_avx512(struct kernels *k, uint32_t cpu_flags);
void kernels_init_avx512_scalef(struct kernels *k, uint32_t cpu_flags);
void kernels_init_avx512_bf16(struct kernels *k, uint32_t cpu_flags);
void kernels_init_neon(struct kernels *k, uint32_t cpu_flags);
void kernels_init_dotprod(struct kernels *k, uint32_t cpu_flags);
void kernels_init_i8mm(struct kernels *k, uint32_t cpu_flags);

/* How a device wants weights packed. */
enum weight_layout {
	LAYOUT_HOST,		/* as the host's kernels read them */
	LAYOUT_HVX,		/* vectors of 128 bytes: kernels/hexagon */
	LAYOUT_RKNPU,		/* Rockchip's native matrices: kernels/rknpu */
	LAYOUT_ASCEND,		/* the host's, with room for 16-bit floats */
	LAYOUT_ASCEND_INT8,	/* the same, blocks with room for integers */
	LAYOUT_ASCEND_INT4,	/* the same, Q4_0 too */
	LAYOUT_ASCEND_OFFSETS,	/* the same, Q4_1 and Q4_K too */
	LAYOUT_NTYPES
};

static inline int
layout_is_ascend(uint32_t layout)
{
	return layout >= LAYOUT_ASCEND && layout <= LAYOUT_ASCEND_OFFSETS;
}

/* Change the host's table k to pack weights in this layout. */
void kernels_set_layout(struct kernels *k, enum weight_layout layout);
void kernels_init_hexagon(struct kernels *k);
void kernels_init_rknpu(struct kernels *k);

#endif
