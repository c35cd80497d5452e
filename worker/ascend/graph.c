/* worker/ascend/graph.c - see graph.h. */
#include "graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "shm/event.h"
#include "trial.h"
#include "trial_memory.h"

/* The trial's product, its graphs; of them, the first ones run, and the memory of others
 * is measured, which have as many products as count as one graph: each with a copy of C,
 * after one of A. */
enum { TRY_N = 32, TRY_K = 64, TRY_GRAPHS = 4, TRY_RUN = 2,
	TRY_PRODUCTS = (ASCEND_GRAPH_TASKS - 1) / 2 };

/* A capture that other threads' calls do not disturb. */
enum { THREAD_LOCAL = 1 };

#define WAIT_NS		(UINT64_C(1000000000) * (ACL_OPERATOR_S + 2))
#define STEP_BYTES	(4 * KIB)	/* graph_bytes is a multiple of it */

const char *
acl_graph_text(int32_t why, char ret[ACL_GRAPH_TEXT])
{
	static const char *const texts[] = {
		[ACL_GRAPH_FINE] = "",
		[-ACL_GRAPH_MISSING] = "not on this chip, or in this CANN",
		[-ACL_GRAPH_DIFFERS] = "a replay gives other results",
		[-ACL_GRAPH_ENDS] = "the trial ends its process",
		[-ACL_GRAPH_HANGS] = "the trial hangs",
		[-ACL_GRAPH_LATE] = "no time was left for the trial",
		[-ACL_GRAPH_LARGE] = "a graph needs too much memory",
		[-ACL_GRAPH_NOT_THIS] = "not with this operator",
	};

	if (why > 0)
		snprintf(ret, ACL_GRAPH_TEXT, "failed with %d, %s", why,
		    acl_code_name(why));
	else
		snprintf(ret, ACL_GRAPH_TEXT, "%s", (unsigned)-why <
		    NITEMS(texts) ? texts[-why] : "unknown");
	return ret;
}

static int
report(struct acl_session *s, const char *call, int code, struct err *reterr)
{
	return code == ACL_SUCCESS ? 0 : acl_failed(s->src.lib,
	    s->src.session, call, code, reterr);
}

int
acl_graph_begin(struct acl_session *s, struct err *reterr)
{
	return report(s, "aclmdlRICaptureBegin",
	    s->src.lib->aclmdlRICaptureBegin(s->stream, THREAD_LOCAL), reterr);
}

int
acl_graph_end(struct acl_session *s, void **ret, struct err *reterr)
{
	*ret = NULL;
	return report(s, "aclmdlRICaptureEnd",
	    s->src.lib->aclmdlRICaptureEnd(s->stream, ret), reterr);
}

int
acl_graph_start(struct acl_session *s, void *graph, struct err *reterr)
{
	return report(s, "aclmdlRIExecuteAsync",
	    s->src.lib->aclmdlRIExecuteAsync(graph, s->stream), reterr);
}

void
acl_graph_free(struct acl_session *s, void *graph)
{
	if (graph != NULL)
		s->src.lib->aclmdlRIDestroy(graph);
}

/* --- the trial --- */

struct tryout {
	struct acl_products p;
	struct acl_matrix w, other;
	struct acl_trial_memory memory;
	void *graph[TRY_GRAPHS];
};

static int
begin_memory(struct tryout *t, struct err *reterr)
{
	static uint16_t weights[2 * TRY_N * TRY_K];
	const uint64_t one = ascend_weight_bytes(t->w.format, TRY_N, TRY_K);
	const struct acl_source *src = &t->p.s->src;
	struct acl_products *p = &t->p;
	unsigned i;
	void *w;
	int rc;

	p->a_bytes = (uint64_t)ASCEND_ROWS * TRY_K * sizeof(*p->a);
	p->c_bytes = (uint64_t)ASCEND_ROWS * TRY_N * sizeof(float);
	if ((rc = acl_trial_alloc(p, sizeof(weights), &t->memory, &w,
	    reterr)) < 0)
		return rc;
	/* As integers: numbers, and scales of another size. */
	for (i = 0; i < NITEMS(weights); i++)
		weights[i] = float_to_half((float)(i * 7 % 15) - 7);
	t->w.w = w;
	t->other = t->w;
	t->other.w = (char *)w + ALIGN_UP(one, (uint64_t)ACL_ALIGN);
	return report(p->s, "aclrtMemcpy", src->lib->aclrtMemcpy(w,
	    sizeof(weights), weights, sizeof(weights),
	    ACL_MEMCPY_HOST_TO_DEVICE), reterr);
}

static void
end_memory(struct tryout *t)
{
	struct acl_session *s = t->p.s;
	unsigned i;

	for (i = 0; i < TRY_GRAPHS; i++)
		acl_graph_free(s, t->graph[i]);
	acl_trial_free(s, &t->memory);
	acl_products_close(&t->p);
}

/* Start it n times. */
static int
start_product(struct tryout *t, unsigned n, struct err *reterr)
{
	const uint32_t rows = acl_products_fill(&t->p, 1);
	int rc = acl_products_send(&t->p, TRY_K, rows, reterr);

	for (; n > 0 && rc == 0; n--)
		rc = acl_products_start(&t->p, &t->w, rows, 0, 1, 0, reterr);
	return rc;
}

/* Run a product of other memory, which kept executors are bound to from then on. */
static int
bind_others(struct tryout *t, struct err *reterr)
{
	int rc = acl_products_start(&t->p, &t->other, acl_products_fill(&t->p,
	    1), 1, 1, t->p.c_bytes / 2, reterr);

	return rc < 0 ? rc : acl_session_wait(t->p.s, event_now_ns() +
	    WAIT_NS, reterr);
}

static int
capture(struct tryout *t, unsigned nproducts, void **ret, struct err *reterr)
{
	int rc = acl_graph_begin(t->p.s, reterr), ended;
	struct err e = { 0 };

	if (rc < 0)
		return rc;
	rc = start_product(t, nproducts, reterr);
	ended = acl_graph_end(t->p.s, ret, &e);
	if (rc == 0 && ended < 0)
		*reterr = e;
	return rc < 0 ? rc : ended;
}

/* Compute one row with the numbers of `round`: by the graph, or NULL. */
static int
multiply(struct tryout *t, void *graph, int round, float ret[TRY_N],
    struct err *reterr)
{
	struct acl_session *s = t->p.s;
	unsigned i;
	int rc;

	for (i = 0; i < t->p.a_bytes / sizeof(*t->p.a); i++)
		t->p.a[i] = float_to_half((float)((int)i * round % 11) - 5);
	memset(t->p.c, 0xff, t->p.c_bytes);
	rc = graph != NULL ? acl_graph_start(s, graph, reterr) :
	    start_product(t, 1, reterr);
	if (rc < 0 || (rc = acl_session_wait(s, event_now_ns() + WAIT_NS,
	    reterr)) < 0)
		return rc;
	acl_products_read(&t->p, &t->w, 1, 0, 0, ret);
	return 0;
}

/* Returns 0, or an error; *ret_why is set without one. */
static int
try_graph(struct tryout *t, struct acl_notes *notes, uint64_t *ret_bytes,
    int32_t *ret_why, struct err *reterr)
{
	float plain[TRY_N], replayed[TRY_N];
	uint64_t before = 0;
	int i, rc;

	if ((rc = acl_products_prepare(&t->p, &t->w, reterr)) < 0 ||
	    (rc = begin_memory(t, reterr)) < 0)
		return rc;
	for (i = 0; i < TRY_GRAPHS; i++) {
		if (i == TRY_RUN)
			before = acl_session_free_memory(t->p.s);
		if ((rc = capture(t, i < TRY_RUN ? 1 : TRY_PRODUCTS,
		    &t->graph[i], reterr)) < 0)
			return rc;
	}
	*ret_bytes = acl_graph_bytes(before, acl_session_free_memory(t->p.s),
	    TRY_GRAPHS - TRY_RUN);
	*ret_why = ACL_GRAPH_FINE;
	for (i = 1; i < 4; i++) {
		notes->steps++;
		/* The graph comes first: its results are of no earlier
		 * call. */
		if ((rc = bind_others(t, reterr)) < 0 ||
		    (rc = multiply(t, t->graph[i % TRY_RUN], i, replayed,
		    reterr)) < 0 || (rc = multiply(t, NULL, i, plain,
		    reterr)) < 0)
			return rc;
		if (memcmp(plain, replayed, sizeof(plain)) != 0)
			*ret_why = ACL_GRAPH_DIFFERS;
	}
	return 0;
}

uint64_t
acl_graph_bytes(uint64_t before, uint64_t after, uint32_t n)
{
	return MAX(ALIGN_UP((before > after ? before - after : 0) / MAX(n, 1),
	    STEP_BYTES), STEP_BYTES);
}

int32_t
acl_graph_code(const struct err *e)
{
	const int code = acl_code_in(e);

	return code > 0 ? code : ACL_ERROR_RT_INTERNAL_ERROR;
}

static int
run_trial(struct acl_session *s, struct acl_notes *notes,
    struct acl_choice *c, enum ascend_format format)
{
	static struct tryout t;
	uint64_t nbytes = 0;
	struct err e = { 0 };
	int rc;

	t = (struct tryout){ .p = { .s = s, .choice = c },
	    .w = { .n = TRY_N, .k = TRY_K, .format = format } };
	rc = try_graph(&t, notes, &nbytes, &c->graph_why, &e);
	if (s->is_lost && rc == -ETIMEDOUT)
		return -EAGAIN;
	if (rc < 0)
		c->graph_why = acl_graph_code(&e);
	acl_session_drain(s);
	if (c->graph_why == ACL_GRAPH_FINE && nbytes > ASCEND_GRAPHS_BYTES)
		c->graph_why = ACL_GRAPH_LARGE;
	if (c->graph_why == ACL_GRAPH_FINE)
		c->chip.graph_bytes = nbytes;
	end_memory(&t);
	return s->is_lost && acl_session_renew(s, &e) < 0 ? -EAGAIN : 0;
}

/* Try graphs of another way than the first, which has some: its bit in c->graphs.  0 or
 * -EAGAIN. */
static int
try_other(struct acl_session *s, struct acl_notes *notes,
    struct acl_choice *c, enum ascend_format format, unsigned way, unsigned nz)
{
	struct acl_choice one = *c;
	int rc;

	if (c->chip.graph_bytes == 0 || notes->is_late ||
	    notes->outcome[ACL_NOTE_GRAPHS] != ACL_FINE ||
	    !acl_way_has_graphs((enum acl_way)way) ||
	    (c->graphs & ACL_GRAPH_BIT(way, nz)) != 0)
		return 0;
	one.form[format].way = (uint8_t)way;
	one.form[format].nz = (uint8_t)nz;
	one.nshapes = 0;
	one.graph_why = ACL_GRAPH_FINE;
	notes->trying = 1 + ACL_NOTE_GRAPHS;
	if ((rc = run_trial(s, notes, &one, format)) == -EAGAIN)
		return rc;
	notes->trying = 0;
	if (one.graph_why != ACL_GRAPH_FINE)
		return 0;
	c->graphs |= ACL_GRAPH_BIT(way, nz);
	c->chip.graph_bytes = MAX(c->chip.graph_bytes,
	    one.chip.graph_bytes);
	return 0;
}

int
acl_graph_try_ways(struct acl_session *s, struct acl_notes *notes,
    struct acl_choice *c)
{
	const struct acl_shape_way *w = c->shape;
	unsigned i;
	int rc = 0;

	for (; w < c->shape + c->nshapes && rc == 0; w++) {
		rc = try_other(s, notes, c, ASCEND_HALF, w->way, w->nz);
		for (i = 0; i < ACL_CLASSES && rc == 0; i++)
			if (w->twin[i] != ACL_WAY_NONE)
				rc = try_other(s, notes, c, ASCEND_HALF,
				    w->twin[i], w->nz);
	}
	return rc;
}

int
acl_graph_try(struct acl_session *s, struct acl_notes *notes,
    struct acl_choice *c)
{
	const uint8_t was = notes->outcome[ACL_NOTE_GRAPHS];
	int rc;

	c->chip.graph_bytes = c->graphs = 0;
	c->graph_why = ACL_GRAPH_MISSING;
	if (!acl_has_capture(s->src.lib, &s->machine) || s->machine.is_rc)
		return 0;
	c->graph_why = !acl_way_has_graphs(
	    (enum acl_way)c->form[ASCEND_HALF].way) ? ACL_GRAPH_NOT_THIS :
	    was == ACL_ENDS ? ACL_GRAPH_ENDS : was == ACL_HANGS ?
	    ACL_GRAPH_HANGS : notes->is_late ? ACL_GRAPH_LATE :
	    ACL_GRAPH_FINE;
	if (c->graph_why != ACL_GRAPH_FINE)
		return 0;
	notes->trying = 1 + ACL_NOTE_GRAPHS;
	if ((rc = run_trial(s, notes, c, ASCEND_HALF)) == -EAGAIN)
		return rc;
	notes->trying = 0;
	if (c->graph_why == ACL_GRAPH_FINE)
		c->graphs = ACL_GRAPH_BIT(c->form[ASCEND_HALF].way,
		    c->form[ASCEND_HALF].nz);
	return c->chip.groups == 0 ? 0 : try_other(s, notes, c, ASCEND_INT8,
	    ACL_WAY_GROUPS, ACL_ND);
}
