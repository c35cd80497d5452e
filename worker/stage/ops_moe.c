/* worker/stage/ops_moe.c - mixtures of experts on the host.
 *
 * A row of the batch becomes as many experts' rows as a token has experts.
 * Rows are grouped by expert, in batch order within each, so that one matrix
 * product computes all rows of an expert and its weights are read once.
 * kernels/matmul/experts.h has the layout of a row's route.
 *
 * All threads visit all chosen experts, each with its own columns, so that the
 * shares do not depend on which experts are chosen.  The sum over a token's
 * experts follows the order of its route, so that it depends on its own row
 * alone. */
#include "kernels/matmul/experts.h"
#include "ops_kinds.h"

#include <math.h>
#include <string.h>

/* Sum of exp(x - max) over all n, in order. */
static float
exp_sum(const float *score, uint32_t n, float max)
{
	float sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += expf(score[i] - max);
	return sum;
}

/* out = routes, without the indices of rows; in0 (rows, n_expert) */
void
op_moe_route(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi)
{
	const struct hparams *hp = c->p->env.hp;
	const uint32_t n = hp->n_expert, nused = hp->n_expert_used;
	float *score, *w, max, sum;
	uint32_t *expert, i;
	uint64_t r;

	for (r = lo; r < hi; r++) {
		score = row_at(c, op->in[0], r);
		expert = row_at(c, op->out, r);
		w = route_weights(expert, nused);
		experts_choose(score, n, nused, expert);
		max = score[expert[0]];
		for (sum = 0, i = 0; i < nused; i++) {
			w[i] = expf(score[expert[i]] - max);
			sum += w[i];
		}
		/* Softmax before or after the choice gives the same normalized
		 * weights except for rounding. */
		if (!hp->moe_norm && hp->moe_gate == GATE_SOFTMAX)
			sum = exp_sum(score, n, max);
		for (i = 0; i < nused; i++)
			w[i] = w[i] / sum * hp->moe_scale;
	}
}

/* Expert e's rows among the experts' rows: [first[e], first[e + 1]). */
static void
find_first(const struct ops_ctx *c, uint16_t routes,
    uint32_t first[MAX_EXPERTS + 1])
{
	const struct hparams *hp = c->p->env.hp;
	const uint32_t *expert;
	uint32_t r, i;

	memset(first, 0, (hp->n_expert + 1) * sizeof(*first));
	for (r = 0; r < c->b->nrows; r++) {
		expert = row_at(c, routes, r);
		for (i = 0; i < hp->n_expert_used; i++)
			first[expert[i] + 1]++;
	}
	for (i = 0; i < hp->n_expert; i++)
		first[i + 1] += first[i];
}

/* out (experts' rows, k) = the rows of in0 that each expert works on.  Every
 * thread counts all routes and copies its part of the batch's rows. */
void
op_moe_rows(const struct ops_ctx *c, const struct op *op, unsigned thread)
{
	const uint32_t nused = c->p->env.hp->n_expert_used;
	const struct tensor *t = &c->p->t[op->out];
	uint32_t next[MAX_EXPERTS + 1], *route, *row, i;
	uint64_t r, lo, hi;

	find_first(c, op->routes, next);
	par_share(c->par, c->b->nrows, thread, &lo, &hi);
	for (r = 0; r < hi; r++) {
		route = row_at(c, op->routes, r);
		row = route_rows(route, nused);
		for (i = 0; i < nused && r < lo; i++)
			next[route[i]]++;
		for (i = 0; i < nused && r >= lo; i++) {
			row[i] = next[route[i]]++;
			if (i == 0)
				ops_round(c, op, row_at(c, op->out, row[0]),
				    row_at(c, op->in[0], r), t->cols);
			else
				memcpy(row_at(c, op->out, row[i]), row_at(c,
				    op->out, row[0]), t->row_bytes);
		}
	}
}

/* Compute columns [c0, c1) of experts' rows [r0, r1) with expert e's matrix. */
static void
expert_matmul(const struct ops_ctx *c, const struct op *op, uint32_t e,
    uint32_t r0, uint32_t r1, uint32_t c0, uint32_t c1)
{
	const struct mat w = weight_mat(op->w, e);

	op->w->kern->matmul(row_at(c, op->out, r0),
	    c->p->t[op->out].row_bytes / sizeof(float),
	    row_at(c, op->in[0], r0), c->ready, &w, op->bias != NULL ?
	    op->bias->vec + (size_t)e * w.n : NULL, r1 - r0, c0, c1);
}

/* Run ops of one group over columns [c0, c1), strip after strip, for each
 * expert that has rows. */
void
experts_run(const struct ops_ctx *c, const struct op *op,
    const struct op *end, uint32_t c0, uint32_t c1)
{
	const uint32_t unit = c->p->group[op->group].unit;
	uint32_t first[MAX_EXPERTS + 1], e, lo, to, strip, r;
	const struct op *o;

	find_first(c, op->routes, first);
	for (e = 0; e < c->p->env.hp->n_expert; e++) {
		if (first[e] == first[e + 1])
			continue;
		strip = ops_strip(end - op, first[e + 1] - first[e], unit);
		for (lo = c0; lo < c1; lo = to) {
			to = MIN(c1 - lo, strip) + lo;
			for (o = op; o < end; o++)
				if (o->kind == OP_MATMUL_ID)
					expert_matmul(c, o, e, first[e],
					    first[e + 1], lo, to);
				else
					for (r = first[e]; r < first[e + 1];
					    r++)
						element_op(c, o, r, lo, to);
		}
	}
}

/* out (rows, n_embd) = weighted sum of each row's experts' rows of in0 */
void
op_moe_sum(const struct ops_ctx *c, const struct op *op, uint64_t r,
    uint32_t c0, uint32_t c1)
{
	const uint32_t nused = c->p->env.hp->n_expert_used;
	uint32_t *route = row_at(c, op->routes, r);
	const uint32_t *row = route_rows(route, nused);
	const float *w = route_weights(route, nused);

	c->k->weighted_sum((float *)row_at(c, op->out, r) + c0,
	    (float *)row_at(c, op->in[0], 0) + c0,
	    c->p->t[op->in[0]].row_bytes / sizeof(float), row, w, nused,
	    c1 - c0);
}
