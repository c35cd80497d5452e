/* worker/ascend/capture.c - graphs of a span, captured when it is made, which start
 * the tasks of few rows by one call.
 *
 * A graph has all that the device does between two actions of the host: a chain of
 * steps.  Its first step computes rows that the host puts into X or A; each other one
 * needs only what the device has by then.  The host reads the results of products and
 * of SwiGLU once the whole chain has been waited for.  Calls, their order and their
 * addresses are those of the steps without a graph. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "config/words.h"
#include "shm/event.h"
#include "graph.h"
#include "span.h"

/* --- chains --- */

enum part {
	ENDS,				/* the chain, before this step */
	FORBIDS,			/* the whole chain */
	PASSES,				/* the device does nothing here */
	JOINS
};

struct chain {
	const struct acl_step *first;
	uint32_t end;			/* the step after the last one */
	uint32_t n;			/* rows */
	int has_rows;			/* in A, by a step of the chain */
	const struct acl_norm *norm;	/* in Y, by a step of the chain, or NULL */
	int has_gate, has_sum;
	unsigned nproducts;		/* whose results are copied to the host */
};

int
acl_captures_fns(const struct device *d)
{
	return d->choice.graph_fns_why == ACL_GRAPH_FINE;
}

/* Have two operations the same rows of a batch? */
static int
has_same_rows(const struct program *p, uint32_t a, uint32_t b)
{
	return (a >= p->nbody) == (b >= p->nbody) && (a >= p->nkept) ==
	    (b >= p->nkept);
}

/* A product goes on while the host reads those before it, and all that follow with the
 * same rows begin together: one that cannot be captured keeps the others out. */
static enum part
part_of_product(const struct device *d, const struct chain *c,
    const struct acl_step *s)
{
	if (acl_is_taken(s))
		return PASSES;
	return c->has_rows && has_same_rows(d->p, s->at, c->first->at) &&
	    acl_matrix_has_graphs(&d->choice, &s->w->m) &&
	    acl_rows_of_product(d, s, 0, c->n) == c->n ? JOINS : FORBIDS;
}

/* SwiGLU has C for itself, and one block of rows in a graph. */
static int
may_join_gate(const struct device *d, const struct chain *c,
    const struct acl_gate *g)
{
	return acl_captures_fns(d) && c->nproducts == 0 &&
	    acl_matrix_has_graphs(&d->choice, &g->w[0]->m) &&
	    acl_matrix_has_graphs(&d->choice, &g->w[1]->m) &&
	    acl_gate_rows(d, g, c->n) == c->n;
}

/* The host fills the memory that the first sum of rows needs with the rows.  The product
 * has C for itself, and one block of rows in a graph.  The trial has sums after SwiGLU
 * only. */
static int
may_join_sum(const struct device *d, const struct chain *c,
    const struct acl_step *s)
{
	const struct acl_norm *norm = c->first->norm;

	return acl_captures_fns(d) && (d->choice.chip.fns &
	    ASCEND_FN_SWIGLU) != 0 && s - 2 == c->first &&
	    c->first->kind == ACL_STEP_ROWS && (norm == NULL ||
	    !acl_norm_is_there(norm)) &&
	    acl_matrix_has_graphs(&d->choice, &s[-1].w->m) &&
	    acl_rows_of_product(d, s - 1, 0, c->n) == c->n;
}

/* The host fills X unless a sum is there, and may want Y back. */
static enum part
part_of_norm(const struct device *d, const struct chain *c,
    const struct acl_step *s)
{
	const int joins = !s->is_back && acl_captures_fns(d);

	if (s->is_of_sum)
		return joins && !c->has_rows && (s == c->first ||
		    c->has_sum) ? JOINS : ENDS;
	return joins && s == c->first ? JOINS : ENDS;
}

/* Are the calls of step s the same each time, and need they nothing from the host
 * since the chain began?  Each kind of step answers here. */
static enum part
part_of(const struct device *d, const struct chain *c,
    const struct acl_step *s)
{
	const int is_first = s == c->first;

	if (c->has_gate)
		return ENDS;
	if (s->kind == ACL_STEP_HOST)
		return PASSES;
	if (s->kind == ACL_STEP_PRODUCT)
		return part_of_product(d, c, s);
	if (!has_same_rows(d->p, s->at, c->first->at))
		return ENDS;
	switch (s->kind) {
	case ACL_STEP_NORM:
		return part_of_norm(d, c, s);
	case ACL_STEP_ROWS:	/* the host fills A, unless a norm does */
		return is_first || (!c->has_rows && c->norm != NULL &&
		    s->norm == c->norm) ? JOINS : ENDS;
	case ACL_STEP_SUM:
		return may_join_sum(d, c, s) ? JOINS : ENDS;
	default:
		return may_join_gate(d, c, s->gate) ? JOINS : ENDS;
	}
}

/* The chain that begins with step s, for n rows: 1, or 0 if there is none. */
static int
find_chain(const struct device *d, const struct acl_step *s, uint32_t n,
    struct chain *ret)
{
	const uint32_t end = d->running->first + d->running->n;
	struct chain c = { .first = s, .n = n };
	const struct acl_step *o = s;
	enum part part = PASSES;

	if (s->kind == ACL_STEP_HOST || s->kind == ACL_STEP_PRODUCT ||
	    s->kind == ACL_STEP_SUM)
		return 0;
	for (; o < d->step + end; o++) {
		part = part_of(d, &c, o);
		if (part == ENDS || part == FORBIDS)
			break;
		if (part == PASSES)
			continue;
		c.end = (uint32_t)(o - d->step) + 1;
		c.has_rows = o->kind == ACL_STEP_ROWS || (c.has_rows &&
		    o->kind != ACL_STEP_SUM);
		if (o->kind == ACL_STEP_NORM)
			c.norm = o->norm;
		c.has_sum |= o->kind == ACL_STEP_SUM;
		c.has_gate |= o->kind == ACL_STEP_SWIGLU;
		c.nproducts += o->kind == ACL_STEP_PRODUCT;
	}
	*ret = c;
	return part != FORBIDS && (c.nproducts > 0 || c.has_gate || c.has_sum ||
	    (c.has_rows && s->kind == ACL_STEP_NORM));
}

/* "norm X, product with A, B" */
static void
name_chain(const struct device *d, const struct acl_step *s, uint32_t end,
    char *ret, size_t len)
{
	unsigned nproducts = 0;

	ret[0] = '\0';
	for (; s < d->step + end; s++)
		if (s->kind == ACL_STEP_NORM)
			words_add(ret, len, ", ", "norm %s",
			    acl_name_of_step(d, s));
		else if (s->kind == ACL_STEP_SWIGLU)
			words_add(ret, len, ", ", "SwiGLU with %s and %s",
			    acl_name_of_step(d, s - 2),
			    acl_name_of_step(d, s - 1));
		else if (s->kind == ACL_STEP_SUM)
			words_add(ret, len, ", ", "residual sum after %s",
			    acl_name_of_step(d, s - 1));
		else if (s->kind == ACL_STEP_PRODUCT && !acl_is_taken(s))
			words_add(ret, len, ", ", "%s%s", nproducts++ == 0 ?
			    "product with " : "", acl_name_of_step(d, s));
}

/* --- capture --- */

/* List the rows of products that are captured: all of the choice's classes up to the
 * largest one, so that the calls for any number of rows are those of the next
 * class. */
static void
list_graph_rows(struct device *d)
{
	const struct acl_form *f = d->choice.form;
	uint32_t *rows = d->graph_rows, i, j;

	d->ngraph_rows = 0;
	for (; f < d->choice.form + ASCEND_FORMATS; f++)
		for (i = 0; f->way != ACL_WAY_NONE && i < f->nclasses; i++) {
			if (f->rows[i] > ASCEND_FEW_ROWS)
				continue;
			j = d->ngraph_rows;
			while (j > 0 && rows[j - 1] >= f->rows[i])
				j--;
			if (j == ASCEND_GRAPH_CLASSES || (j < d->ngraph_rows &&
			    rows[j] == f->rows[i]))
				continue;
			d->ngraph_rows = MIN(d->ngraph_rows + 1,
			    (uint32_t)ASCEND_GRAPH_CLASSES);
			memmove(rows + j + 1, rows + j, (d->ngraph_rows - 1 -
			    j) * sizeof(*rows));
			rows[j] = f->rows[i];
		}
}

/* Only products are captured, and this conversion of a norm's rows is a call before
 * their graph. */
static int
sends_before(const struct device *d, const struct acl_step *s)
{
	return s->norm != NULL && acl_norm_is_there(s->norm) &&
	    !acl_captures_fns(d);
}

/* Start the calls of all steps of a chain, or list its products if a graph has done
 * so. */
static int
start_chain(struct device *d, const struct acl_step *s, uint32_t end,
    uint32_t n, struct err *reterr)
{
	const int is_replay = d->queue.mode == ACL_QUEUE_REPLAY;
	int rc = 0;

	for (; s < d->step + end && rc == 0; s++) {
		if (s->kind == ACL_STEP_NORM && !is_replay)
			rc = acl_start_norm(d, s, reterr);
		if (s->kind == ACL_STEP_SUM && !is_replay)
			rc = acl_sum_tasks(d, s, n, reterr);
		if (s->kind == ACL_STEP_SUM && rc == 0)
			acl_sum_note(d, s, batch_of(d->batch, d->p, s->at),
			    n);
		if (s->kind == ACL_STEP_SWIGLU && !is_replay)
			rc = acl_gate_start(d, s->gate, 0, n, reterr);
		if (s->kind != ACL_STEP_ROWS)
			continue;
		if (!is_replay && !sends_before(d, s))
			rc = acl_send_rows(d, s, reterr);
		if (rc == 0)
			rc = acl_start_rows(d, s, reterr);
	}
	return rc;
}

/* Capture a chain of up to most_tasks tasks.  Returns 1, or 0 if it has more, or C is
 * too small for its products: *ret may hold a partial graph then, which the caller
 * frees. */
static int
capture_chain(struct device *d, const struct chain *c, uint32_t most_tasks,
    void **ret, struct err *reterr)
{
	const struct batch b = { .nrows = c->n, .nselect = c->n };
	struct err e = { 0 };
	int rc, ended, is_full = 0;

	d->batch = &b;
	d->rows = acl_products_fill(&d->products, c->n);
	acl_queue_init(&d->queue, &d->products);
	d->queue.mode = ACL_QUEUE_CAPTURE;
	if ((rc = acl_graph_begin(&d->s, reterr)) == 0) {
		d->s.most_tasks = d->s.ntasks + most_tasks;
		rc = start_chain(d, c->first, c->end, c->n, reterr);
		is_full = rc == -ENOSPC;
		d->s.most_tasks = 0;
		ended = acl_graph_end(&d->s, ret, &e);
		if ((rc == 0 || is_full) && (rc = ended) < 0)
			*reterr = e;
	}
	d->batch = NULL;
	return rc < 0 ? rc : !is_full && d->queue.n == c->nproducts;
}

/* Calls are made one by one from here on.  If the stream is still in the capture, there
 * is another one. */
static int
give_up_graphs(struct device *d, const struct err *e, struct err *reterr)
{
	struct err unused;

	log_info("no more products are captured: %s",
	    acl_without_session(d->conf.session, e->msg));
	d->capture_err = *e;
	d->most_graphs = d->ngraphs;
	return acl_session_wait(&d->s, event_now_ns() + UINT64_C(1000000000) *
	    ACL_OPERATOR_S, &unused) == 0 ? 0 : acl_session_restart(&d->s,
	    reterr);
}

/* An upper bound: as how many graphs those of one class of rows count, for the
 * program's operations from `from` on. */
static uint64_t
units_from(const struct device *d, uint32_t from)
{
	const struct ascend_chip *chip = &d->choice.chip;
	const struct program *p = d->p;
	struct ascend_sizes z = { 0 };
	const struct acl_weight *w;
	const struct op *op;
	uint32_t i;

	for (i = from; i < p->nops; i++) {
		op = &p->op[i];
		w = op->kind != OP_MATMUL ? NULL : acl_find_weight(d,
		    (uint32_t)(op->w - p->env.ws->w));
		if (w != NULL)
			ascend_sizes_add(&z, chip, w->type, w->m.n, w->m.k, 0);
		if (acl_find_norm(d, i) != NULL)
			ascend_norms_add(&z, chip, p->t[op->out].cols);
		if (op->kind == OP_SWIGLU)
			ascend_gates_add(&z, chip, p->t[op->out].cols);
		if (op->kind == OP_ADD)
			ascend_sums_add(&z, chip, p->t[op->out].cols);
	}
	return ascend_class_units(&z);
}

/* Capture the chain that begins with step s, for class i of rows, if there is one and
 * it counts as no more than `left`. */
static int
capture_step(struct device *d, struct acl_step *s, uint32_t i, uint32_t left,
    struct err *reterr)
{
	struct acl_step_graph *g = &s->graph[i];
	const uint64_t ntasks = d->s.ntasks;
	struct err e = { 0 };
	struct chain c;
	int rc;

	if (left == 0 || !find_chain(d, s, d->graph_rows[i], &c))
		return 0;
	g->end = c.end;
	rc = capture_chain(d, &c, left * ASCEND_GRAPH_TASKS, &g->graph, &e);
	if (rc > 0)
		d->ngraphs += ascend_graph_units(d->s.ntasks - ntasks);
	else if (g->graph != NULL) {
		acl_graph_free(&d->s, g->graph);
		g->graph = NULL;
	}
	return rc < 0 ? give_up_graphs(d, &e, reterr) : 0;
}

int
acl_capture_span(struct device *d, uint32_t op_end, struct err *reterr)
{
	const struct acl_span *span = &d->span[d->nspans];
	uint32_t i, at, end, left;
	uint64_t kept;
	int rc = 0;

	if (d->most_graphs == 0)
		return 0;
	kept = units_from(d, op_end);
	list_graph_rows(d);
	d->running = span;
	/* Few rows first, and with room for those of later spans: where memory
	 * ends, generation has its graphs. */
	for (i = 0; i < d->ngraph_rows; i++)
		for (at = span->first; at < span->first + span->n && rc == 0;
		    at = MAX(at + 1, end)) {
			left = d->most_graphs - d->ngraphs;
			if (i > 0)
				left -= (uint32_t)MIN(kept, (uint64_t)left);
			rc = capture_step(d, &d->step[at], i, left, reterr);
			end = d->step[at].graph[i].graph == NULL ? 0 :
			    d->step[at].graph[i].end;
		}
	d->running = NULL;
	return rc;
}

/* --- run --- */

static const struct acl_step_graph *
graph_of(const struct device *d, const struct acl_step *s, uint32_t n)
{
	uint32_t i = 0;

	while (i < d->ngraph_rows && d->graph_rows[i] < n)
		i++;
	return i < d->ngraph_rows && s->graph[i].graph != NULL ? &s->graph[i] :
	    NULL;
}

int
acl_replay(struct device *d, const struct acl_step *s, uint32_t n,
    struct err *reterr)
{
	const struct acl_step_graph *g = graph_of(d, s, n);
	char names[256];
	struct err e;
	int rc = 0;

	if (g == NULL)
		return 0;
	if (s->kind == ACL_STEP_ROWS && sends_before(d, s))
		rc = acl_send_rows(d, s, reterr);
	if (rc < 0)
		return rc;
	if ((rc = acl_graph_start(&d->s, g->graph, &e)) < 0) {
		name_chain(d, s, g->end, names, sizeof(names));
		return err_set(reterr, ERR_RUN, rc, "session %s: captured %s: "
		    "%s", d->conf.session, names, acl_without_session(
		    d->conf.session, e.msg));
	}
	d->replayed = g->end;
	d->queue.mode = ACL_QUEUE_REPLAY;
	rc = start_chain(d, s, g->end, n, reterr);
	d->queue.mode = ACL_QUEUE_RUN;
	if (rc == 0)
		rc = acl_queue_mark(&d->queue, reterr);
	return rc < 0 ? rc : 1;
}

void
acl_free_graphs(struct device *d)
{
	uint32_t i, j;

	for (i = 0; i < d->nsteps && !d->s.is_lost; i++)
		for (j = 0; j < ASCEND_GRAPH_CLASSES; j++)
			acl_graph_free(&d->s, d->step[i].graph[j].graph);
	d->ngraphs = d->most_graphs = 0;
	d->capture_err = (struct err){ 0 };
}
