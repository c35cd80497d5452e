/* layers/program.h - the flat list of operations that a stage runs per batch.
 * Owns: ops, tensors, and the scratch layout that follows from their lives.
 * Called by the plan (scratch size), the placement and the stage.  Knows no
 * device and no file.
 *
 * Two parts.  body: once per batch, on all its rows; before a head, once the
 * last layer has stored its keys and values, here or in the stage before, on
 * those rows alone that want logits.  head: once per block of up to head_rows
 * of these, each block handed over as soon as it is done. */
#ifndef LAYERS_PROGRAM_H
#define LAYERS_PROGRAM_H

#include "config/err.h"
#include "bind.h"
#include "kv.h"

enum op_kind {
	OP_GET_ROWS,	/* out = embedding rows of the batch's tokens */
	OP_ROPE_TABLE,	/* out (rows, n_rot) = cos and sin of each position */
	OP_RMS_NORM,	/* out = norm(in0) * w, of each head where heads > 0 */
	OP_QUANTIZE,	/* out = in0 as the matmuls that follow want it */
	OP_MATMUL,	/* out = in0 . w^T (+ bias) */
	OP_ROPE,	/* in0 rotated in place by the table in1 */
	OP_KV_STORE,	/* in0 = k, in1 = v into the cache */
	OP_ATTENTION,	/* out = attention(in0 = q, cache) */
	OP_SWIGLU,	/* out = silu(in0) * in1 */
	OP_GEGLU,	/* out = gelu(in0) * in1 */
	OP_SWIGLU_OAI,	/* out = gpt-oss's, clamped: kernels.h */
	OP_ADD,		/* out = in0 + in1 */
	OP_SCALE,	/* out = in0 * param */
	OP_SOFTCAP,	/* out = param * tanh(in0 / param) */
	OP_MOE_ROUTE,	/* out = routes: whose experts and weights, of in0 */
	OP_MOE_ROWS,	/* out = in0's rows by expert; routes get their places */
	OP_MATMUL_ID,	/* out = in0 . w^T (+ bias), each row by its expert */
	OP_MOE_SUM,	/* out = each row's experts' rows of in0, weighed */
	OP_SELECT_ROWS,	/* out = the rows of in0 that want logits */
	OP_NKINDS
};
const char *op_name(enum op_kind k);	/* "matmul" */

/* Where a tensor's bytes are. */
enum storage {
	STORE_SCRATCH,	/* compute arena + offset */
	STORE_INPUT,	/* payload of the slot that came in */
	STORE_OUTPUT	/* payload of the slot that goes out */
};

struct tensor {
	enum storage store;
	enum act_type act;	/* how its rows lie */
	uint32_t cols;
	uint32_t rows;		/* most rows: batch_rows or head_rows, or the
				 * experts' */
	uint64_t row_bytes;
	uint64_t offset;	/* STORE_SCRATCH */
	uint32_t def, last;	/* first and last op that touches it */
};

#define NO_TENSOR	UINT16_MAX

/* How the threads of a session share an op. */
enum op_share {
	SHARE_ROWS,	/* each thread some rows, all of their columns */
	SHARE_COLS,	/* each thread some columns of all rows, by the group */
	SHARE_ANY	/* as the op likes */
};
const char *op_share_name(enum op_share s);	/* "rows" */

/* Ops of which a thread does the same columns. */
struct share_group {
	uint32_t cols;
	uint32_t unit;		/* columns that are not parted */
	uint32_t first;		/* op that began it */
	uint32_t nops;
	uint64_t token_bytes;	/* of weights that one token reads in it */
};

struct op {
	enum op_kind kind;
	int16_t layer;		/* of the model, -1 = none */
	uint16_t out, in[2];	/* tensors, NO_TENSOR = none */
	uint16_t routes;	/* tensor: of ops on the experts' rows */
	/* GET_ROWS, RMS_NORM, MATMUL, MATMUL_ID; ATTENTION: sinks, NULL = none */
	const struct weight *w;
	const struct weight *bias;	/* of these two, NULL = none */
	uint32_t heads;		/* ROPE, RMS_NORM: heads in a row */
	uint32_t window;	/* ATTENTION: keys that are seen, 0 = all */
	float param;
	uint8_t local;		/* ROPE_TABLE: of local layers */
	uint8_t experts;	/* on the experts' rows, not the batch's */
	uint8_t fine;		/* QUANTIZE, MOE_ROWS: quantize_q8_fine */
	uint8_t begins;		/* half a layer, not the program's first */
	/* Set by shares_find(). */
	enum op_share share;
	uint16_t group;		/* SHARE_COLS: of program.group */
	uint8_t barrier_before;		/* all threads meet before it */
};

/* A product of weights: of the batch's rows, or of the experts'. */
static inline int
op_is_matmul(enum op_kind kind)
{
	return kind == OP_MATMUL || kind == OP_MATMUL_ID;
}

/* What a program is built for. */
struct program_env {
	const struct hparams *hp;
	const struct weights *ws;	/* laid out; must outlive the program */
	uint32_t first_sublayer, nsublayers;	/* of layers: arch.h */
	int embedding, head;
	uint32_t batch_rows, head_rows;
	struct kv_layout kv;
};

struct program {
	struct program_env env;
	struct op *op;		/* [nops] */
	uint32_t nops, nbody;	/* ops [nbody, nops) are the head part */
	uint32_t nwhole, nkept;	/* of the body, ops [nwhole, nkept) move the rows
				 * that want logits to the front, and those
				 * behind work on these: both nbody where there
				 * is no head */
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
 * one piece for each thread, each 64-aligned.  Attention works in a piece, and
 * products keep rows there (struct mat_ready): never both at a time, since a
 * meeting of the threads lies between. */
uint64_t program_compute_bytes(const struct program *p, unsigned nthreads);
uint64_t program_thread_bytes(const struct program *p);

/* A thread's piece while attention is at work: the kernel's scratch from 0 on,
 * then, as offsets in bytes, the parts of a unit of work that this thread and
 * others share, and the batch's rows by sequence. */
struct attn_room {
	uint64_t parts, order;
	uint64_t nbytes;
	uint64_t parts_floats;
};
struct attn_room program_attn_room(const struct program *p);

/* The op's layer, as kv.h counts them: of KV_STORE and ATTENTION. */
static inline uint32_t
op_kv_layer(const struct program *p, const struct op *op)
{
	return (uint32_t)op->layer - p->env.kv.conf.first_layer;
}

/* Bytes that an op reads of its weight for one token: of the experts that it
 * chooses. */
uint64_t op_token_bytes(const struct program *p, const struct op *op);

#endif
