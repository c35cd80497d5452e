/* kernels/hexagon/moe.c - mixtures of experts, as in worker/stage/ops_moe.c.
 *
 * A row of the batch becomes as many rows as a token has experts, sorted by
 * expert and then in the batch's order; kernels/matmul/experts.h has the layout
 * of its route.
 *
 * The host can write to routes, and their values become addresses: each value
 * is checked when it is read. */
#include "kernels/matmul/experts.h"
#include "vfloat.h"

static uint32_t *
route_of(const struct hx_batch *b, const struct hx_ref *routes, uint32_t r)
{
	return hx_at(b, routes, r);
}

static float
exp_sum(const float *score, uint32_t n, float max)
{
	float sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += hx_exp(score[i] - max);
	return sum;
}

/* out = routes without their rows; in0 (rows x n_expert). */
uint32_t
hx_moe_route(const struct hx_batch *b, const struct hx_op *op)
{
	const uint32_t n = b->m->n_expert, nused = b->m->n_expert_used;
	uint32_t r, i, *expert;
	float *w, max, sum;

	if (op->in[0].cols < n || op->out.cols < ROUTE_PARTS * nused)
		return HXQ_ERANGE;
	for (r = 0; r < b->nrows; r++) {
		const float *score = hx_at(b, &op->in[0], r);

		expert = route_of(b, &op->out, r);
		w = route_weights(expert, nused);
		experts_choose(score, n, nused, expert);
		max = score[expert[0]];
		for (sum = 0, i = 0; i < nused; i++) {
			w[i] = hx_exp(score[expert[i]] - max);
			sum += w[i];
		}
		if (b->m->moe_all)
			sum = exp_sum(score, n, max);
		for (i = 0; i < nused; i++)
			w[i] = (sum > 0 ? hx_div(w[i], sum) : sum) *
			    b->m->moe_scale;
	}
	return HXQ_OK;
}

/* Expert e has the experts' rows [first[e], first[e + 1]).  HXQ_ERANGE: a route has
 * an expert that does not exist. */
static uint32_t
find_first(const struct hx_batch *b, const struct hx_ref *routes,
    uint32_t first[MAX_EXPERTS + 1])
{
	const uint32_t n = b->m->n_expert, nused = b->m->n_expert_used;
	uint32_t r, i, e;

	if (routes->buf == HX_NONE)
		return HXQ_ERANGE;
	for (e = 0; e <= n; e++)
		first[e] = 0;
	for (r = 0; r < b->nrows; r++)
		for (i = 0; i < nused; i++) {
			e = route_of(b, routes, r)[i];
			if (e >= n)
				return HXQ_ERANGE;
			first[e + 1]++;
		}
	for (e = 0; e < n; e++)
		first[e + 1] += first[e];
	return HXQ_OK;
}

/* Copies a row in 64-bit words; rows are 64-aligned. */
static void
copy_row(void *dst, const void *src, uint32_t nbytes)
{
	uint64_t *d = dst;
	const uint64_t *s = src;
	uint32_t i;

	for (i = 0; i < DIV_UP(nbytes, 8); i++)
		d[i] = s[i];
}

/* out (experts' rows x k) = for each expert, the rows of in0 routed to it. */
uint32_t
hx_moe_rows(const struct hx_batch *b, const struct hx_op *op)
{
	static uint32_t next[MAX_EXPERTS + 1];
	const uint32_t nused = b->m->n_expert_used;
	uint32_t nbytes = op->out.cols * 4, r, i, *row, *route, status;
	void *first;

	if (op->out.row_bytes % 8 != 0 || op->in[0].row_bytes % 8 != 0 ||
	    op->out.cols != op->in[0].cols)
		return HXQ_ERANGE;
	if ((status = find_first(b, &op->routes, next)) != HXQ_OK)
		return status;
	if (op->q8)
		nbytes = op->out.cols / 32 * (uint32_t)sizeof(struct act_q8);
	for (r = 0; r < b->nrows; r++) {
		route = route_of(b, &op->routes, r);
		row = route_rows(route, nused);
		for (i = 0; i < nused; i++) {
			row[i] = next[route[i]]++;
			first = hx_at(b, &op->out, row[0]);
			if (i > 0)
				copy_row(hx_at(b, &op->out, row[i]), first,
				    nbytes);
			else if (op->q8)
				hx_quantize_row(first, hx_at(b, &op->in[0], r),
				    op->out.cols, (uint8_t)b->m->act_bias,
				    op->fine);
			else
				copy_row(first, hx_at(b, &op->in[0], r), nbytes);
		}
	}
	return HXQ_OK;
}

/* out (experts' rows x n) = each row of in0 times the matrix of its expert. */
uint32_t
hx_matmul_id(const struct hx_batch *b, const struct hx_op *op)
{
	static uint32_t first[MAX_EXPERTS + 1];
	hx_matrix_fn *fn = op->type == QUANT_F32 ? hx_matrix_f32 :
	    hx_matrix_q8;
	uint32_t e, status;

	if (op->w.cols > HX_MAX_K)
		return HXQ_ENOTSUP;
	if ((status = find_first(b, &op->routes, first)) != HXQ_OK)
		return status;
	for (e = 0; e < b->m->n_expert && status == HXQ_OK; e++)
		if (first[e] < first[e + 1])
			status = fn(b, op, hx_at(b, &op->w, e),
			    op->bias.buf == HX_NONE ? NULL :
			    (const float *)hx_at(b, &op->bias, 0) +
			    e * op->out.cols, first[e], first[e + 1]);
	return status;
}

/* y = w * x, or y += w * x with onto. */
static __attribute__((noinline)) void
add_weighted(float *y, const float *x, float w, uint32_t k, int onto)
{
	const HVX_Vector vw = vf_splat(w);
	int vector = vf_finite(x, k) && vf_finite(y, onto ? k : 0) && w == w;
	uint32_t i = 0;
	HVX_Vector v;

	for (; vector && i + VF_ALL <= k; i += VF_ALL) {
		v = vf_mul(vw, vf_load(x + i));
		vf_store(y + i, onto ? vf_add(vf_load(y + i), v) : v);
	}
	for (; i < k; i++)
		y[i] = onto ? y[i] + w * x[i] : w * x[i];
}

/* out (rows x n_embd) = for each row, the sum of its experts' rows of in0 times their
 * weights, in the order of its route. */
uint32_t
hx_moe_sum(const struct hx_batch *b, const struct hx_op *op)
{
	const uint32_t nused = b->m->n_expert_used;
	uint32_t r, i;

	if (op->routes.buf == HX_NONE)
		return HXQ_ERANGE;
	for (r = 0; r < b->nrows; r++) {
		uint32_t *route = route_of(b, &op->routes, r);
		const float *w = route_weights(route, nused);
		const uint32_t *row = route_rows(route, nused);

		for (i = 0; i < nused; i++) {
			if (row[i] >= b->nrows * nused)
				return HXQ_ERANGE;
			add_weighted(hx_at(b, &op->out, r),
			    hx_at(b, &op->in[0], row[i]), w[i],
			    op->out.cols, i > 0);
		}
	}
	return HXQ_OK;
}
