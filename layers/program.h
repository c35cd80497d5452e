/* layers/program.h - the flat list of operations that a stage runs per batch.
 * Owns: the types of operations and tensors, and the sizes that follow from
 * them.  Called by the plan (scratch size), the placement and the stage.  Does
 * not depend on devices or files.  build.h makes one.
 *
 * A program has two parts.  The body runs once per batch, on all its rows; in
 * the stage with the head, once the last layer's keys and values are stored
 * (here or in the stage before), only on the rows that need logits.  The head
 * runs once per block of up to head_rows of these rows, and each block is sent
 * as soon as it is done. */
#ifndef LAYERS_PROGRAM_H
#define LAYERS_PROGRAM_H

#include "config/err.h"
#include "bind.h"
#include "kv.h"

enum op_kind {
	OP_GET_ROWS,	/* out = embedding rows of the batch's tokens */
	OP_ROPE_TABLE,	/* out (rows, n_rot) = cos and sin of each position */
	OP_RMS_NORM,	/* out = norm(in0) * w; per head if heads > 0 */
	OP_QUANTIZE,	/* out = in0 in the format of the next matmuls */
	OP_MATMUL,	/* out = in0 . w^T (+ bias) */
	OP_ROPE,	/* in0 rotated in place by the table in1 */
	OP_KV_STORE,	/* in0 = k, in1 = v into the cache */
	OP_ATTENTION,	/* out = attention(in0 = q, cache) */
	OP_SWIGLU,	/* out = silu(in0) * in1 */
	OP_GEGLU,	/* out = gelu(in0) * in1 */
	OP_SWIGLU_OAI,	/* out = clamped SwiGLU of gpt-oss: kernels.h */
	OP_ADD,		/* out = in0 + in1 */
	OP_SCALE,	/* out = in0 * param */
	OP_SOFTCAP,	/* out = param * tanh(in0 / param) */
	OP_MOE_ROUTE,	/* out = routes: experts and weights from in0 */
	OP_MOE_ROWS,	/* out = in0's rows by expert; places into routes */
	OP_MATMUL_ID,	/* out = in0 . w^T (+ bias) of each row's expert */
	OP_MOE_SUM,	/* out = weighted sum of each row's experts' rows */
	OP_SELECT_ROWS,	/* out = the rows of in0 that need logits */
	OP_NKINDS
};
const char *op_name(enum op_kind k);	/* "matmul" */

/* Where a tensor is stored. */
enum storage {
	STORE_SCRATCH,	/* compute arena + offset */
	STORE_INPUT,	/* payload of the input slot */
	STORE_OUTPUT	/* payload of the output slot */
};

struct tensor {
	enum storage store;
	enum act_type act;	/* format of its rows */
	uint32_t cols;
	uint32_t rows;		/* maximum: batch_rows, head_rows, or the
				 * experts' rows */
	uint64_t row_bytes;
	uint64_t offset;	/* STORE_SCRATCH */
	uint32_t def, last;	/* first and last op that uses it */
};

#define NO_TENSOR	UINT16_MAX

/* How an op is divided among the threads of a session. */
enum op_share {
	SHARE_ROWS,	/* each thread: all columns of some rows */
	SHARE_COLS,	/* each thread: its group's columns of all rows */
	SHARE_ANY	/* decided by the op */
};
const char *op_share_name(enum op_share s);	/* "rows" */

/* Ops in which each thread has the same columns. */
struct share_group {
	uint32_t cols;
	uint32_t unit;		/* multiple of columns at which it may be cut */
	uint32_t first;		/* its first op */
	uint32_t nops;
	uint64_t token_bytes;	/* weight bytes that it reads per token */
};

struct op {
	enum op_kind kind;
	int16_t layer;		/* of the model, -1 = none */
	uint16_t out, in[2];	/* tensors, NO_TENSOR = none */
	uint16_t routes;	/* tensor with the routes, for MoE ops */
	/* of GET_ROWS, RMS_NORM, MATMUL, MATMUL_ID; ATTENTION: sinks or NULL */
	const struct weight *w;
	const struct weight *bias;	/* of both matmuls; NULL = none */
	uint32_t heads;		/* ROPE, RMS_NORM: heads in a row */
	uint32_t window;	/* ATTENTION: visible keys, 0 = all */
	float param;
	uint8_t local;		/* ROPE_TABLE: for local layers */
	uint8_t experts;	/* runs on the experts' rows, not the batch's */
	uint8_t fine;		/* QUANTIZE, MOE_ROWS: quantize_q8_fine */
	uint8_t begins;		/* starts a sublayer, except the first one */
	/* Set by shares_assign(). */
	enum op_share share;
	uint16_t group;		/* SHARE_COLS: of program.group */
	uint8_t barrier_before;	/* all threads wait for each other first */
};

/* 1 for both kinds of matrix products. */
static inline int
op_is_matmul(enum op_kind kind)
{
	return kind == OP_MATMUL || kind == OP_MATMUL_ID;
}

/* The input of program_build(). */
struct program_env {
	const struct hparams *hp;
	const struct weights *ws;	/* laid out; outlives this */
	uint32_t first_sublayer, nsublayers;	/* numbered as in arch.h */
	int embedding, head;
	uint32_t batch_rows, head_rows;
	struct kv_layout kv;
};

struct program {
	struct program_env env;
	struct op *op;		/* [nops] */
	uint32_t nops, nbody;	/* ops [nbody, nops) are the head part */
	uint32_t nwhole, nkept;	/* ops [nwhole, nkept) of the body move the rows
				 * that need logits to the front; later ones
				 * run on these only.  Both nbody if the stage
				 * has no head */
	struct tensor *t;	/* [ntensors] */
	uint32_t ntensors;
	struct share_group *group;	/* [ngroups] */
	uint32_t ngroups;
	uint64_t scratch_bytes;	/* 64-aligned */
	uint64_t ready_bytes;	/* a thread's, for mat_ready; 64-aligned */
	const struct weight *rope_freqs;	/* NULL = none */
};

void program_free(struct program *p);	/* NULL is fine */

/* Bytes of the compute arena for this many threads: the tensors' scratch, then
 * one piece per thread, each 64-aligned.  A piece is the scratch of attention,
 * or holds rows for matmuls (struct mat_ready), never both at a time: there is
 * always a barrier between the two. */
uint64_t program_compute_bytes(const struct program *p, unsigned nthreads);
uint64_t program_thread_bytes(const struct program *p);

/* A thread's piece during attention: the kernel's scratch at 0, then, at
 * offsets in bytes, the partial results of work units that several threads
 * share, and the batch's rows ordered by sequence. */
struct attn_room {
	uint64_t parts, order;
	uint64_t nbytes;
	uint64_t parts_floats;
};
struct attn_room program_attn_room(const struct program *p);

/* The layer of a KV_STORE or ATTENTION op, as kv.h counts layers. */
static inline uint32_t
op_kv_layer(const struct program *p, const struct op *op)
{
	return (uint32_t)op->layer - p->env.kv.conf.first_layer;
}

/* Weight bytes that an op reads per token; for experts, those of the chosen. */
uint64_t op_token_bytes(const struct program *p, const struct op *op);

#endif
