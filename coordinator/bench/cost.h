/* coordinator/bench/cost.h - the least operations and bytes that a test needs.
 * Owns nothing.  Called by run.c.  Pure functions of the model's shape.
 *
 * Counts the matrix products (two operations per weight and token), their
 * weights as stored in the file, read once per batch, and the keys and values
 * that a generated token attends to.  Attention's own arithmetic, norms and
 * activations are left out, which keeps the result a lower bound.
 *
 * A token uses only its own experts.  A batch of several rows reads
 * every expert that one of them uses: the expected number, if all choices are
 * equally likely. */
#ifndef COORDINATOR_BENCH_COST_H
#define COORDINATOR_BENCH_COST_H

#include "layers/model.h"
#include "roofline.h"

struct bench_cost {
	/* "head": computed only for rows whose logits are wanted. */
	double row_ops[PEAK_NKINDS];	/* operations of one token */
	double head_ops[PEAK_NKINDS];	/* and of its logits */
	double layer_bytes, head_bytes;	/* weights but experts */
	double expert_bytes, head_expert_bytes;	/* weights of all experts */
	double expert_share;		/* fraction that one token uses */
	double kv_bytes;		/* one position, full-attention layers */
	double local_kv_bytes;		/* one position, local layers */
	uint32_t window;		/* positions that local layers see */
};

/* head_u0: first unit of the session that has the head.  That session computes
 * the part of the last layer after its keys and values, and the head, only for
 * tokens whose logits are wanted. */
void bench_cost(const struct model *m, const struct kernels *k,
    enum kv_type kfmt, enum kv_type vfmt, uint32_t head_u0,
    struct bench_cost *ret);

struct bench_work {
	double ops[PEAK_NKINDS];
	double read_bytes;		/* from memory */
	double disk_bytes;
};

/* Work of a prompt of n tokens in batches of batch_rows, with logits of the
 * last token. */
struct bench_work bench_work_prompt(const struct bench_cost *c, uint32_t n,
    uint32_t batch_rows);
/* Work of generating n tokens after `depth` positions in each of nseqs
 * sequences at once, in batches of batch_rows. */
struct bench_work bench_work_generate(const struct bench_cost *c, uint32_t n,
    uint32_t depth, uint32_t nseqs, uint32_t batch_rows);

/* Least time for the work at these bounds, in seconds.  Computing (one kind
 * after another), memory and disk overlap, so it is the longest of the three.
 * *ret is the bound that decides; among kinds of operations, the slowest.  0
 * when none of the bounds is known. */
double bench_work_s(const struct bench_work *w, const struct bounds *b,
    enum roof *ret);

#endif
