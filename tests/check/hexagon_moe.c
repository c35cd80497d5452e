/* tests/check/hexagon_moe.c - checks of a domain's mixtures of experts: routes, rows
 * sorted by expert, each expert's product, and their sum, against plain C; and
 * routes that a domain must refuse, because the host can write them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "tests/support/hexdom.h"
#include "tests/support/kernel_inputs.h"

enum { ROWS = 5, K = 96, N = 40, MOST = 12 };

static struct kernels ref, hex;

struct mix {
	struct hexdom *w;
	uint32_t type, nexpert, nused;
	struct hx_ref score, x, routes, rows, weights, bias, y, sum;
	uint32_t step;			/* bytes of an expert's matrix */
};

static struct hx_op
make_op(enum hx_kind kind)
{
	return (struct hx_op){ .kind = kind, .out = hexdom_none,
	    .in = { hexdom_none, hexdom_none }, .w = hexdom_none,
	    .bias = hexdom_none, .routes = hexdom_none };
}

static void
run_op(struct mix *m, struct hx_op *op)
{
	uint32_t status = hexdom_run(m->w, op, ROWS, 0);

	check(status == HXQ_OK, "status: %s", domain_status_text(status));
}

static void
mix_open(struct mix *m, struct hexdom *w, uint32_t type,
    uint32_t nexpert, uint32_t nused)
{
	uint32_t i, e;
	uint8_t *src;
	float *x;

	*m = (struct mix){ .w = w, .type = type, .nexpert = nexpert,
	    .nused = nused };
	hexdom_reset(w);
	w->m.n_expert = nexpert;
	w->m.n_expert_used = nused;
	w->m.moe_scale = 1.5f;
	m->score = hexdom_alloc(w, ROWS, 0, nexpert);
	m->x = hexdom_alloc(w, ROWS, 0, K);
	m->routes = hexdom_alloc(w, ROWS, 0, 3 * nused);
	m->rows = hexdom_alloc(w, ROWS * nused,
	    act_row_bytes(hex.mat[type].act, K), K);
	m->y = hexdom_alloc(w, ROWS * nused, 0, N);
	m->sum = hexdom_alloc(w, ROWS, 0, N);
	m->bias = hexdom_alloc(w, 1, 0, N * nexpert);
	m->step = (uint32_t)hex.mat[type].packed_bytes(N, K);
	m->weights = hexdom_alloc(w, nexpert, m->step, K);
	src = calloc(N, quant_row_bytes(type, K));
	for (e = 0; e < nexpert; e++) {
		fill_rows(src, type, N * quant_row_bytes(type, K), IN_RANDOM);
		hex.mat[type].pack(hexdom_row(w, &m->weights, e), src, 0, N,
		    N, K);
	}
	free(src);
	for (i = 0; i < ROWS; i++) {
		fill_floats(hexdom_row(w, &m->score, i), nexpert, IN_RANDOM);
		fill_floats(hexdom_row(w, &m->x, i), K, IN_RANDOM);
	}
	/* Equal scores: the lower expert must come first. */
	x = hexdom_row(w, &m->score, 1);
	for (i = 0; i < nexpert; i++)
		x[i] = (float)(i / 2 % 3);
	fill_floats(hexdom_row(w, &m->bias, 0), N * nexpert, IN_RANDOM);
}

/* Expert a ranks before b. */
static int
ranks_before(const float *s, uint32_t a, uint32_t b)
{
	return s[a] > s[b] || (s[a] == s[b] && a < b);
}

static void
check_routes(struct mix *m)
{
	struct hx_op op = make_op(HX_MOE_ROUTE);
	uint32_t r, i, e, rank;

	op.in[0] = m->score;
	op.out = m->routes;
	run_op(m, &op);
	for (r = 0; r < ROWS; r++) {
		const float *s = hexdom_row(m->w, &m->score, r);
		const uint32_t *route = hexdom_row(m->w, &m->routes, r);
		const float *w = (const float *)(const void *)(route +
		    m->nused);
		double of = 0, top = s[route[0]], want, eps;

		for (e = 0; e < m->nexpert; e++) {
			for (rank = 0, i = 0; i < m->nexpert; i++)
				rank += (uint32_t)ranks_before(s, i, e);
			if (rank < m->nused)
				check(route[rank] == e, "row %u: expert %u "
				    "does not have rank %u", r, e, rank);
			if (rank < m->nused || m->w->m.moe_all)
				of += exp((double)s[e]);
		}
		for (i = 0; i < m->nused; i++) {
			want = exp((double)s[route[i]]) / of * 1.5;
			/* The distance from the largest score is rounded in units
			 * of log 2; an absolute error of an exponent is a
			 * relative error of the power.  exp of less than -87 is
			 * 0. */
			eps = want * (64 + 2 * (top - (double)s[route[i]])) *
			    0x1p-24 + 0x1p-120;
			check_close(&w[i], &want, &eps, 1, "weight");
		}
	}
}

/* The experts' rows are those of the tokens, sorted by expert, then by token. */
static void
check_sorted_rows(struct mix *m)
{
	int q8 = hex.mat[m->type].act == ACT_Q8;
	size_t nbytes = q8 ? K / 32 * sizeof(struct act_q8) :
	    K * sizeof(float);
	struct hx_op op = make_op(HX_MOE_ROWS);
	uint32_t at[ROWS * MOST], r, i;
	struct act_q8 want[K / 32];

	op.experts = 1;
	op.q8 = (uint32_t)q8;
	op.in[0] = m->x;
	op.out = m->rows;
	op.routes = m->routes;
	run_op(m, &op);
	for (i = 0; i < ROWS * m->nused; i++)
		at[i] = UINT32_MAX;
	for (r = 0; r < ROWS; r++) {
		const uint32_t *route = hexdom_row(m->w, &m->routes, r);
		const void *x = hexdom_row(m->w, &m->x, r);

		if (q8)
			ref.quantize_q8(want, x, K);
		for (i = 0; i < m->nused; i++) {
			uint32_t row = route[2 * m->nused + i];

			if (row >= ROWS * m->nused || at[row] != UINT32_MAX) {
				check(0, "row %u goes to %u", r, row);
				continue;
			}
			at[row] = route[i] * ROWS + r;
			check_bytes(hexdom_row(m->w, &m->rows, row), q8 ?
			    (const void *)want : x, nbytes, "a row sorted by expert");
		}
	}
	for (i = 1; i < ROWS * m->nused; i++)
		check(at[i - 1] < at[i], "rows %u and %u are not in order",
		    i - 1, i);
}

static void
check_products(struct mix *m)
{
	const struct mat_kernel *mk = &hex.mat[m->type];
	struct hx_op op = make_op(HX_MATMUL_ID);
	uint32_t r, i, e, row;
	float want[N];

	op.experts = 1;
	op.type = m->type;
	op.in[0] = m->rows;
	op.out = m->y;
	op.routes = m->routes;
	op.w = m->weights;
	op.bias = m->bias;
	run_op(m, &op);
	for (r = 0; r < ROWS; r++)
		for (i = 0; i < m->nused; i++) {
			const uint32_t *route = hexdom_row(m->w, &m->routes,
			    r);
			struct mat w = { .n = N, .k = K, .type = m->type };

			e = route[i];
			row = route[2 * m->nused + i];
			w.data = hexdom_row(m->w, &m->weights, e);
			mk->matmul(want, N, hexdom_row(m->w, &m->rows, row),
			    NULL, &w, (const float *)hexdom_row(m->w, &m->bias,
			    0) + e * N, 1, 0, N);
			check_bytes(hexdom_row(m->w, &m->y, row), want,
			    sizeof(want), "an expert's product");
		}
}

static void
check_sum(struct mix *m)
{
	struct hx_op op = make_op(HX_MOE_SUM);
	uint32_t r, i, k;

	op.in[0] = m->y;
	op.out = m->sum;
	op.routes = m->routes;
	run_op(m, &op);
	for (r = 0; r < ROWS; r++) {
		const uint32_t *route = hexdom_row(m->w, &m->routes, r);
		const float *w = (const float *)(const void *)(route +
		    m->nused);
		float want[N];

		for (i = 0; i < m->nused; i++) {
			const float *y = hexdom_row(m->w, &m->y,
			    route[2 * m->nused + i]);

			for (k = 0; k < N; k++)
				want[k] = i == 0 ? w[i] * y[k] : want[k] +
				    w[i] * y[k];
		}
		check_bytes(hexdom_row(m->w, &m->sum, r), want,
		    sizeof(want), "the sum over experts");
	}
}

static void
check_refused(struct mix *m, struct hx_op *op, const char *label)
{
	uint32_t status = hexdom_run(m->w, op, ROWS, 0);

	check(status == HXQ_ERANGE, "%s: %s", label,
	    domain_status_text(status));
}

static void
check_refusals(struct mix *m)
{
	uint32_t *route = hexdom_row(m->w, &m->routes, 3);
	struct hx_op op = make_op(HX_MATMUL_ID);

	op.experts = 1;
	op.type = m->type;
	op.in[0] = m->rows;
	op.out = m->y;
	op.w = m->weights;
	check_refused(m, &op, "no routes");
	op.routes = m->routes;
	op.w.offset = (uint32_t)m->w->mem.nbytes - m->step * m->nexpert + 64;
	check_refused(m, &op, "experts past the end of their buffer");
	op.w = m->weights;
	route[0] = m->nexpert;
	check_refused(m, &op, "a route to an expert that does not exist");
	op.kind = HX_MOE_SUM;
	op.experts = 0;
	op.in[0] = m->y;
	op.out = m->sum;
	op.w = hexdom_none;
	route[2 * m->nused] = ROWS * m->nused;
	check_refused(m, &op, "a route to a row that does not exist");
}

void
check_hexagon_moe(struct hexdom *w)
{
	static const struct { uint32_t nexpert, nused; } shape[] = {
		{ 1, 1 }, { 8, 2 }, { 33, 4 }, { 12, 12 },
	};
	static const uint32_t types[] = { QUANT_MXFP4, QUANT_Q8_0, QUANT_Q4_1,
	    QUANT_Q5_0, QUANT_Q5_1, QUANT_F32 };
	struct mix m;
	uint32_t i, t;

	kernels_init(&ref, 0);
	hex = ref;
	kernels_init_hexagon(&hex);
	for (t = 0; t < NITEMS(types); t++)
		for (i = 0; i < NITEMS(shape); i++) {
			begin_case("%u of %u experts, %s", shape[i].nused,
			    shape[i].nexpert, quant_info(types[t])->name);
			w->m.moe_all = i % 2;
			mix_open(&m, w, types[t], shape[i].nexpert,
			    shape[i].nused);
			check_routes(&m);
			check_sorted_rows(&m);
			check_products(&m);
			check_sum(&m);
			check_refusals(&m);
		}
	w->m.n_expert = w->m.n_expert_used = 0;
}
