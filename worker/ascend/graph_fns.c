/* worker/ascend/graph_fns.c - finds out whether norms, SwiGLU and residual sums may
 * be captured with their products, see graph.h: a small device runs each batch by
 * graphs, then by calls.
 *
 * It has two layers of the same shapes, and computes other numbers of rows in between.
 * That binds kept executors to other addresses, so that graphs show whether they have
 * their own. */
#include <errno.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "shm/event.h"
#include "graph.h"
#include "rows.h"
#include "span.h"
#include "trial.h"

/* A layer: x (K) -> norm -> gate and up (N) -> SwiGLU (N) -> down (K) -> x += down. */
enum { K = 64, N = 80, LAYERS = 2, ROUNDS = 2,
	ROWS = ASCEND_FEW_ROWS + ASCEND_ROWS, LAYER_OPS = 6,
	LAYER_WEIGHTS = 4, TENSORS = 1 + LAYERS * LAYER_OPS };

#define WAIT_NS		(UINT64_C(1000000000) * (ACL_OPERATOR_S + 2))
#define LEDGER_BYTES	(4 * GIB)

struct tryout {
	struct hparams hp;
	struct weight weight[LAYERS * LAYER_WEIGHTS];
	struct weights ws;
	struct op op[LAYERS * LAYER_OPS];
	struct tensor tensor[TENSORS];
	struct program p;
	struct mem_ledger ledger;
	struct device d;
	float scale[LAYERS * LAYER_WEIGHTS][N];
	float values[N * K];		/* of a matrix, or a norm */
	/* Rows of all tensors; the same as graphs have computed them. */
	float rows[TENSORS][ROWS * N], replayed[TENSORS][ROWS * N];
};

/* --- the program --- */

static void
make_weights(struct tryout *t, unsigned layer)
{
	static const enum role roles[LAYER_WEIGHTS] = { ROLE_FFN_NORM,
	    ROLE_FFN_GATE, ROLE_FFN_UP, ROLE_FFN_DOWN };
	unsigned i, j;

	for (i = 0; i < LAYER_WEIGHTS; i++) {
		j = layer * LAYER_WEIGHTS + i;
		t->weight[j].ext.role = roles[i];
		t->weight[j].ext.type = QUANT_F32;
		if (i > 0)
			t->weight[j].mat = (struct mat){ .n = i < 3 ? N : K,
			    .k = i < 3 ? K : N, .data = t->scale[j] };
	}
}

/* Operations of a layer that the device computes. */
static uint32_t
layer_ops(uint32_t fns)
{
	return (fns & ASCEND_FN_SWIGLU) == 0 ? 3 :
	    (fns & ASCEND_FN_ADDS) == 0 ? 4 : LAYER_OPS;
}

/* Returns the number of operations. */
static uint32_t
make_ops(struct tryout *t, unsigned layer, uint32_t fns)
{
	static const struct {
		enum op_kind kind;
		uint16_t in[2];		/* of the layer's results, from 1 on;
					 * 0 = x */
		int weight;		/* 1 + number */
	} ops[LAYER_OPS] = { { OP_RMS_NORM, { 0, NO_TENSOR }, 1 },
	    { OP_MATMUL, { 1, NO_TENSOR }, 2 },
	    { OP_MATMUL, { 1, NO_TENSOR }, 3 }, { OP_SWIGLU, { 2, 3 }, 0 },
	    { OP_MATMUL, { 4, NO_TENSOR }, 4 }, { OP_ADD, { 0, 5 }, 0 } };
	const uint32_t n = layer_ops(fns);
	const struct weight *w = t->weight + layer * LAYER_WEIGHTS;
	const uint16_t first = (uint16_t)(layer * LAYER_OPS);
	struct op *op = t->op + layer * n;
	unsigned i, j;
	uint16_t in;

	for (i = 0; i < n; i++) {
		op[i] = (struct op){ .kind = ops[i].kind, .out = (uint16_t)(
		    ops[i].kind == OP_ADD ? 0 : first + 1 + i),
		    .routes = NO_TENSOR, .w = ops[i].weight == 0 ? NULL :
		    &w[ops[i].weight - 1] };
		for (j = 0; j < 2; j++) {
			in = ops[i].in[j];
			op[i].in[j] = in == 0 || in == NO_TENSOR ? in :
			    (uint16_t)(first + in);
		}
	}
	return n;
}

static void
make_program(struct tryout *t, uint32_t fns)
{
	uint32_t i, nops = 0;

	t->hp.rms_eps = 1e-5f;
	t->ws = (struct weights){ .w = t->weight,
	    .n = LAYERS * LAYER_WEIGHTS };
	for (i = 0; i < LAYERS; i++) {
		make_weights(t, i);
		nops += make_ops(t, i, fns);
	}
	for (i = 0; i < TENSORS; i++)
		t->tensor[i] = (struct tensor){ .store = STORE_SCRATCH,
		    .act = ACT_F32, .cols = i % LAYER_OPS > 1 &&
		    i % LAYER_OPS < 5 ? N : K, .rows = ROWS,
		    .row_bytes = N * sizeof(float),
		    .offset = i * sizeof(t->rows[0]) };
	t->p = (struct program){ .env = { .hp = &t->hp, .ws = &t->ws,
	    .batch_rows = ROWS, .head_rows = 1 }, .op = t->op, .nops = nops,
	    .nbody = nops, .nwhole = nops, .nkept = nops, .t = t->tensor,
	    .ntensors = TENSORS };
}

/* --- the device --- */

static void
put_numbers(float *ret, uint32_t n, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		ret[i] = (float)(seed >> 16) / 32768 - 1;
	}
}

static int
load(struct tryout *t, struct err *reterr)
{
	const struct acl_weight *w;
	struct device *d = &t->d;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < t->ws.n && rc == 0; i++) {
		put_numbers(t->values, N * K, i);
		w = acl_find_weight(d, i);
		rc = w == NULL ? acl_norms_upload(d, i, t->values, reterr) :
		    acl_put_weights(&d->products, &w->m, QUANT_F32, 0, w->m.n,
		    t->values, d->row, w->scale, reterr);
		if (rc == 0 && w != NULL)
			rc = acl_products_convert(&d->products, &w->m, reterr);
	}
	return rc;
}

/* Place, load and capture: 1; 0: the device does not compute all of it. */
static int
begin(struct tryout *t, uint32_t fns, uint64_t *ret_bytes,
    struct err *reterr)
{
	const struct device_buf compute = { t->rows, sizeof(t->rows) };
	const struct span all = { 0, t->p.nops, 1 };
	struct device *d = &t->d;
	uint64_t before, after;
	int rc;

	if ((rc = acl_place(d, &t->p, &t->ws, reterr)) < 0)
		return rc;
	if (d->nweights != (layer_ops(fns) < LAYER_OPS ? 2 : 3) * LAYERS ||
	    d->norms.n != LAYERS || d->gates.n != (layer_ops(fns) > 3 ?
	    LAYERS : 0) || d->sums.n != (layer_ops(fns) == LAYER_OPS ?
	    LAYERS : 0))
		return 0;
	if ((rc = load(t, reterr)) < 0)
		return rc;
	d->most_graphs = ASCEND_GRAPHS;
	before = acl_session_free_memory(&d->s);
	if ((rc = acl_prepare(d, &all, &compute, &compute, reterr)) < 0)
		return rc;
	after = acl_session_free_memory(&d->s);
	if (d->capture_err.msg[0] != '\0') {
		*reterr = d->capture_err;
		return -EIO;
	}
	*ret_bytes = acl_graph_bytes(before, after, d->ngraphs);
	return d->ngraphs > 0;
}

/* Run n rows with the numbers of a round, by graphs or calls. */
static int
run(struct tryout *t, uint32_t n, uint32_t round, int by_graphs,
    struct err *reterr)
{
	const struct batch b = { .nrows = n, .nselect = n };
	const uint32_t nclasses = t->d.ngraph_rows;
	struct device *d = &t->d;
	int rc;

	memset(t->rows, 0xff, sizeof(t->rows));
	put_numbers(t->rows[0], ROWS * N, 1000 + round);
	d->batch = &b;
	d->running = &d->span[0];
	d->ngraph_rows = by_graphs ? nclasses : 0;
	rc = acl_run_span(d, event_now_ns() + WAIT_NS, reterr);
	d->ngraph_rows = nclasses;
	d->running = NULL;
	d->batch = NULL;
	return rc;
}

/* Other calls have operators of n rows behind others: in A, then in results. */
static int
bind_others(struct tryout *t, uint32_t n, uint32_t round, struct err *reterr)
{
	int rc = run(t, n + ASCEND_ROWS, round, 0, reterr);

	return rc < 0 ? rc : run(t, n + 8, round, 0, reterr);
}

/* Graphs come first: their results are of no earlier call. */
static int
compare(struct tryout *t, struct acl_notes *notes, int32_t *ret_why,
    struct err *reterr)
{
	uint32_t i, round, n;
	int rc;

	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < t->d.ngraph_rows; i++) {
			n = t->d.graph_rows[i];
			notes->steps++;
			if ((rc = bind_others(t, n, ROUNDS + round,
			    reterr)) < 0 || (rc = run(t, n, round, 1,
			    reterr)) < 0)
				return rc;
			memcpy(t->replayed, t->rows, sizeof(t->rows));
			if ((rc = run(t, n, round, 0, reterr)) < 0)
				return rc;
			if (memcmp(t->replayed, t->rows, sizeof(t->rows)) != 0)
				*ret_why = ACL_GRAPH_DIFFERS;
		}
	return 0;
}

/* --- the trial --- */

static int
run_trial(struct tryout *t, struct acl_notes *notes, uint32_t fns,
    struct acl_choice *c)
{
	uint64_t nbytes = 0;
	struct err e = { 0 };
	int rc = begin(t, fns, &nbytes, &e);

	c->graph_fns_why = rc > 0 ? ACL_GRAPH_FINE : ACL_GRAPH_NOT_THIS;
	if (rc > 0)
		rc = compare(t, notes, &c->graph_fns_why, &e);
	if (t->d.s.is_lost && rc == -ETIMEDOUT)
		return -EAGAIN;
	if (rc < 0)
		c->graph_fns_why = acl_graph_code(&e);
	if (c->graph_fns_why == ACL_GRAPH_FINE && nbytes > ASCEND_GRAPHS_BYTES)
		c->graph_fns_why = ACL_GRAPH_LARGE;
	if (c->graph_fns_why == ACL_GRAPH_FINE)
		c->chip.graph_bytes = MAX(c->chip.graph_bytes, nbytes);
	return 0;
}

int
acl_graph_try_fns(struct acl_session *s, struct acl_notes *notes,
    uint32_t fns, struct acl_choice *c)
{
	const uint8_t was = notes->outcome[ACL_NOTE_GRAPH_FNS];
	static struct tryout t;
	struct device *d = &t.d;
	struct err unused;
	int rc, is_lost;

	c->graph_fns_why = c->chip.graph_bytes == 0 ? c->graph_why :
	    was == ACL_ENDS ? ACL_GRAPH_ENDS : was == ACL_HANGS ?
	    ACL_GRAPH_HANGS : notes->is_late ? ACL_GRAPH_LATE :
	    ACL_GRAPH_FINE;
	if (c->graph_fns_why != ACL_GRAPH_FINE || fns == 0)
		return 0;
	memset(&t, 0, sizeof(t));
	make_program(&t, fns);
	mem_ledger_init(&t.ledger, s->src.session, LEDGER_BYTES);
	*d = (struct device){ .conf = { .session = s->src.session,
	    .par = &par_alone, .ledger = &t.ledger }, .s = *s, .choice = *c,
	    .memo = &d->own_memo, .p = &t.p };
	d->choice.chip.fns = fns;
	notes->trying = 1 + ACL_NOTE_GRAPH_FNS;
	if ((rc = run_trial(&t, notes, fns, c)) < 0)
		return rc;
	is_lost = d->s.is_lost;
	/* No task is left, so memory can be freed. */
	if (is_lost && acl_session_restart(&d->s, &unused) < 0)
		return -EAGAIN;
	acl_free(d);
	*s = d->s;
	notes->trying = 0;
	return (is_lost || s->is_lost) && acl_session_renew(s, &unused) < 0 ?
	    -EAGAIN : 0;
}
