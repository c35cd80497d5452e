/* worker/ascend/capture.c - graphs of a span: products with the same rows, captured
 * when the span is made, so that the tasks of few rows are started by one call. */
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "shm/event.h"
#include "graph.h"
#include "span.h"

/* List the rows of products that are captured: all of the choice's classes up to the
 * largest one, so that the calls for any number of rows are those of the next
 * class. */
static void
list_graph_rows(struct device *d)
{
	const struct acl_form *f = d->choice.form;
	uint32_t *rows = d->graph_rows, most, i, j;

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
	/* Each step must get as many as the others. */
	most = MAX(d->most_graphs / MAX(d->nweights, 1), 1);
	d->ngraph_rows = MIN(d->ngraph_rows, most);
}

/* The step after the products with the rows of s, which may be SwiGLU's. */
static uint32_t
end_of_rows(const struct device *d, const struct acl_step *s)
{
	const uint32_t end = d->running->first + d->running->n;
	uint32_t i = (uint32_t)(s - d->step) + 1;

	while (i < end && d->step[i].kind != ACL_STEP_ROWS &&
	    d->step[i].gate == NULL)
		i++;
	return i;
}

/* Are the calls for the products of a step the same each time?  They have one block of
 * rows each, and the batch's rows. */
static int
can_capture(const struct device *d, const struct acl_step *s, uint32_t n)
{
	const struct program *p = d->p;
	const struct acl_step *o, *end = d->step + end_of_rows(d, s);
	uint32_t nproducts = 0;

	for (o = s + 1; o < end; o++) {
		if (o->kind != ACL_STEP_PRODUCT)
			continue;
		if (acl_rows_of_product(d, o, 0, n) < n ||
		    !acl_matrix_has_graphs(&d->choice, &o->w->m) || (o->at >= p->nbody) != (s->at >=
		    p->nbody) || (o->at >= p->nkept) != (s->at >= p->nkept))
			return 0;
		nproducts++;
	}
	return nproducts > 0;
}

/* Capture the products of step s for up to n rows: 1; 0: not all fit in C. */
static int
capture_rows(struct device *d, struct acl_step *s, uint32_t n, void **ret,
    struct err *reterr)
{
	const struct batch b = { .nrows = n, .nselect = n };
	struct err e = { 0 };
	int rc, ended;

	d->batch = &b;
	d->rows = acl_products_fill(&d->products, n);
	acl_queue_init(&d->queue, &d->products);
	d->queue.mode = ACL_QUEUE_CAPTURE;
	if ((rc = acl_graph_begin(&d->s, reterr)) == 0) {
		rc = acl_start_rows(d, s, reterr);
		ended = acl_graph_end(&d->s, ret, &e);
		if (rc == 0 && (rc = ended) < 0)
			*reterr = e;
	}
	d->batch = NULL;
	return rc < 0 ? rc : d->next == end_of_rows(d, s);
}

/* Calls are made one by one from here on.  If the stream is still in the capture, there
 * is another one. */
static int
give_up_graphs(struct device *d, const struct err *e, struct err *reterr)
{
	struct err unused;

	log_info("no more products are captured: %s",
	    acl_without_session(d->conf.session, e->msg));
	d->most_graphs = d->ngraphs;
	return acl_session_wait(&d->s, event_now_ns() + UINT64_C(1000000000) *
	    ACL_OPERATOR_S, &unused) == 0 ? 0 : acl_session_restart(&d->s,
	    reterr);
}

int
acl_capture_span(struct device *d, struct err *reterr)
{
	const struct acl_span *span = &d->span[d->nspans];
	struct acl_step *s = d->step + span->first;
	struct err e = { 0 };
	uint32_t i;
	int rc = 0;

	if (d->most_graphs == 0)
		return 0;
	list_graph_rows(d);
	d->running = span;
	for (; s < d->step + span->first + span->n && rc >= 0; s++)
		for (i = 0; s->kind == ACL_STEP_ROWS && i < d->ngraph_rows &&
		    d->ngraphs < d->most_graphs && rc >= 0; i++) {
			if (!can_capture(d, s, d->graph_rows[i]))
				continue;
			rc = capture_rows(d, s, d->graph_rows[i], &s->graph[i],
			    &e);
			if (rc > 0)
				d->ngraphs++;
			else if (s->graph[i] != NULL) {
				acl_graph_free(&d->s, s->graph[i]);
				s->graph[i] = NULL;
			}
			if (rc < 0)
				rc = give_up_graphs(d, &e, reterr);
		}
	d->running = NULL;
	return rc < 0 ? rc : 0;
}

void *
acl_graph_of(const struct device *d, const struct acl_step *s, uint32_t n)
{
	uint32_t i = 0;

	while (i < d->ngraph_rows && d->graph_rows[i] < n)
		i++;
	return i < d->ngraph_rows ? s->graph[i] : NULL;
}

void
acl_free_graphs(struct device *d)
{
	uint32_t i, j;

	for (i = 0; i < d->nsteps && !d->s.is_lost; i++)
		for (j = 0; j < ASCEND_GRAPH_CLASSES; j++)
			acl_graph_free(&d->s, d->step[i].graph[j]);
	d->ngraphs = d->most_graphs = 0;
}
