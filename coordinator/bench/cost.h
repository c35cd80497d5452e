/* coordinator/bench/cost.h - what a test asks of the machine at the least.
 * Called by bench.  Pure: a model's shape in, operations and bytes out.
 *
 * Counted are the matrix products (two operations for each weight and token)
 * and their weights as they lie in the file, read once for each batch, with
 * the keys and values that a generated token looks at.  Attention's own
 * arithmetic, norms and activations are left out: a bound asks for less.
 *
 * Of experts a token's own are counted.  A batch of several rows reads those
 * that any of them is given to: as many as would be expected if each choice
 * were as likely as any other. */
#ifndef COORDINATOR_BENCH_COST_H
#define COORDINATOR_BENCH_COST_H

#include "layers/model.h"
#include "roofline.h"

struct bench_cost {
	double row_ops[PEAK_NKINDS];	/* for one token */
	double head_ops[PEAK_NKINDS];	/* more, where its logits are wanted */
	double layer_bytes, head_bytes;	/* of both; but for */
	double expert_bytes;		/* those of all experts, */
	double head_expert_bytes;	/* and of the last layer's */
	double expert_share;		/* of which a token uses this part */
	double kv_bytes;		/* of one position, in full layers */
	double local_kv_bytes;		/* and in local ones */
	uint32_t window;		/* of these */
};

/* head_u0: the first unit of the session with the head.  What it has of the
 * last layer behind its keys and values is only computed for tokens whose
 * logits are wanted. */
void bench_cost(const struct model *m, const struct kernels *k,
    enum kv_type kfmt, enum kv_type vfmt, uint32_t head_u0,
    struct bench_cost *ret);

struct bench_work {
	double ops[PEAK_NKINDS];
	double read_bytes;		/* from memory */
	double disk_bytes;
};

/* A prompt of n tokens in batches of batch_rows, logits of the last. */
struct bench_work bench_work_prompt(const struct bench_cost *c, uint32_t n,
    uint32_t batch_rows);
/* n tokens one after another behind `depth`, by nseqs sequences at once, in
 * batches of batch_rows. */
struct bench_work bench_work_generate(const struct bench_cost *c, uint32_t n,
    uint32_t depth, uint32_t nseqs, uint32_t batch_rows);

/* Seconds that the work takes at these bounds: computing (kinds one after
 * another), memory and disk side by side, so the longest of the three.  *ret
 * is what that is bound by, of several kinds of operations the one that takes
 * most.  0 when no bound of it is known. */
double bench_work_s(const struct bench_work *w, const struct bounds *b,
    enum roof *ret);

#endif
