/* coordinator/cmd/explain.c - where every operation runs, and why.
 * Each session's worker builds its program and places it; nothing is loaded.
 * Layers whose operations are equal are printed once; with -v each of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "config/plain.h"
#include "config/words.h"
#include "shm/wire.h"
#include "cmd.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/queries.h"
#include "coordinator/print/confined.h"
#include "coordinator/print/output.h"
#include "coordinator/print/wrap.h"

/* Consecutive operations of one layer; or of none: layer -1. */
struct group {
	int32_t layer;
	unsigned first, n;	/* of ops */
	int printed;
};

struct explained {
	json_t *ops, *summary;
	const struct session_conf *session;	/* the current one */
	int json, all;
	int width;		/* of the sessions' names */
	unsigned device_ops, cpu_ops;	/* of this session */
	struct wire_placed *placed;	/* [nplaced], of this session */
	unsigned nplaced;
	int nomem;
};

static const char *
place_of(const struct explained *x, const struct wire_placed *wp)
{
	return wp->on_device ? x->session->device : "cpu";
}

/* The name after the layer: "ffn_down.weight" of "blk.7.ffn_down.weight". */
static const char *
name_in_layer(const struct wire_placed *wp)
{
	char prefix[32];
	size_t n;

	if (wp->layer < 0)
		return wp->tensor;
	n = (size_t)snprintf(prefix, sizeof(prefix), "blk.%d.", wp->layer);
	return strncmp(wp->tensor, prefix, n) == 0 ? wp->tensor + n :
	    wp->tensor;
}

static int
is_same_op(const struct wire_placed *a, const struct wire_placed *b)
{
	return a->on_device == b->on_device && a->head == b->head &&
	    strcmp(a->share, b->share) == 0 && strcmp(a->op, b->op) == 0 &&
	    strcmp(a->reason, b->reason) == 0 &&
	    strcmp(name_in_layer(a), name_in_layer(b)) == 0;
}

/* The barrier at the beginning does not count: it depends on what is before the
 * layer. */
static int
is_same_group(const struct explained *x, const struct group *a,
    const struct group *b)
{
	const struct wire_placed *p = x->placed + a->first;
	const struct wire_placed *q = x->placed + b->first;
	unsigned i;

	if (a->layer < 0 || b->layer < 0 || a->n != b->n)
		return 0;
	for (i = 0; i < a->n; i++)
		if (!is_same_op(&p[i], &q[i]) || (i > 0 &&
		    p[i].barrier_before != q[i].barrier_before))
			return 0;
	return 1;
}

/* One line, or several where there is a reason; folded: for several layers. */
static void
print_op(const struct explained *x, const struct wire_placed *wp, int folded)
{
	const char *name = name_in_layer(wp);
	char layer[16], tensor[sizeof(wp->tensor) + 8], line[256];
	struct wrap w;

	snprintf(layer, sizeof(layer), "%d", wp->layer);
	strlcpy(tensor, wp->tensor, sizeof(tensor));
	if (folded && name != wp->tensor)
		snprintf(tensor, sizeof(tensor), "blk.*.%s", name);
	snprintf(line, sizeof(line), "%-*s %5s %-12s %-27s %c %-8s %s",
	    x->width, x->session->name, wp->layer < 0 ? (wp->head ? "head" :
	    "-") : folded ? "*" : layer, wp->op, tensor, wp->barrier_before ?
	    '|' : ' ', wp->share, place_of(x, wp));
	wrap_begin(&w, stdout, 15, PLAIN(line));
	wrap_words(&w, PLAIN(wp->reason));
	wrap_end(&w);
}

/* Mark g and every later group that equals it as printed, and write their
 * layers into buf: "0-4,6".  Returns the last of them. */
static const struct group *
fold(const struct explained *x, struct group *g, const struct group *end,
    char *buf, size_t len)
{
	const struct group *first = g, *last = g;
	int32_t from = g->layer;

	snprintf(buf, len, "%d", from);
	for (; g < end; g++) {
		if (g != first && !is_same_group(x, first, g))
			continue;
		g->printed = 1;
		if (g->layer > last->layer + 1) {
			if (last->layer > from)
				words_add(buf, len, "", "-%d", last->layer);
			words_add(buf, len, ",", "%d", g->layer);
			from = g->layer;
		}
		last = g;
	}
	if (last->layer > from)
		words_add(buf, len, "", "-%d", last->layer);
	return last;
}

static void
print_group(const struct explained *x, struct group *g,
    const struct group *end)
{
	const struct group *shown = g;
	char layers[256];
	unsigned i;

	if (g->printed)
		return;
	if (!x->all && g->layer >= 0)
		shown = fold(x, g, end, layers, sizeof(layers));
	if (shown != g)
		printf("%-*s layers %s, each:\n", x->width, x->session->name,
		    layers);
	for (i = 0; i < g->n; i++)
		print_op(x, &x->placed[shown->first + i], shown != g);
}

static int
print_session(const struct explained *x, struct err *reterr)
{
	struct group *groups = calloc(x->nplaced + 1, sizeof(*groups)), *g;
	unsigned i, n = 0;
	char may[256];

	if (groups == NULL)
		return err_nomem(reterr, "the groups of %u operations",
		    x->nplaced);
	for (i = 0; i < x->nplaced; i++) {
		if (n == 0 || groups[n - 1].layer != x->placed[i].layer)
			groups[n++] = (struct group){
			    .layer = x->placed[i].layer, .first = i };
		groups[n - 1].n++;
	}
	for (g = groups; g < groups + n; g++)
		print_group(x, g, groups + n);
	free(groups);
	printf("%-*s %u operations on %s, ", x->width, x->session->name,
	    x->device_ops, x->session->device);
	if (x->cpu_ops == 0)
		puts("all where asked");
	else
		printf("%u fall back to the CPU\n", x->cpu_ops);
	confined_rights(x->session->device, may, sizeof(may));
	if (may[0] != '\0')
		printf("%-*s for its device its confined worker may %s\n",
		    x->width, x->session->name, may);
	return 0;
}

static void
add_op(struct explained *x, const struct wire_placed *wp)
{
	json_array_append_new(x->ops, json_pack(
	    "{s:s,s:o,s:o,s:o,s:s,s:o,s:b,s:o}", "session", x->session->name,
	    "layer", wp->layer >= 0 ? json_integer(wp->layer) : json_null(),
	    "op", output_json_string(wp->op), "tensor",
	    output_json_string(wp->tensor), "where", place_of(x, wp),
	    "reason", output_json_string(wp->reason), "barrier_before",
	    (int)wp->barrier_before, "share",
	    output_json_string(wp->share)));
}

static void
keep_op(struct explained *x, const struct wire_placed *wp)
{
	const unsigned n = x->nplaced;
	struct wire_placed *grown = x->placed;

	/* Room for n more at 0 and at each power of two. */
	if ((n & (n - 1)) == 0)
		grown = reallocarray(x->placed, n > 0 ? 2 * (size_t)n : 1,
		    sizeof(*grown));
	if (grown == NULL) {
		x->nomem = 1;
		return;
	}
	x->placed = grown;
	x->placed[x->nplaced++] = *wp;
}

static void
on_placed(void *arg, uint32_t type, const void *answer)
{
	const struct wire_placed *wp = answer;
	struct explained *x = arg;

	if (type != WIRE_PLACED)
		return;
	x->device_ops += wp->on_device != 0;
	x->cpu_ops += wp->on_device == 0;
	if (x->json)
		add_op(x, wp);
	else
		keep_op(x, wp);
}

static int
explain_session(struct explained *x, const struct engine *eng, unsigned i,
    struct err *reterr)
{
	int rc;

	x->session = engine_plan_of(eng)->session[i].conf;
	x->device_ops = x->cpu_ops = x->nplaced = 0;
	rc = query_placement(eng, i, on_placed, x, reterr);
	json_array_append_new(x->summary, json_pack("{s:s,s:i,s:i,s:o}",
	    "session", x->session->name, "device_ops", (int)x->device_ops,
	    "cpu_ops", (int)x->cpu_ops, "rights",
	    confined_rights_json(x->session->device)));
	if (rc == 0 && x->nomem)
		rc = err_nomem(reterr, "the operations of session %s",
		    x->session->name);
	if (rc == 0 && !x->json)
		rc = print_session(x, reterr);
	return rc;
}

static int
explain_all(const struct engine *eng, struct err *reterr)
{
	const struct conf *c = engine_conf(eng);
	struct explained x = { .ops = json_array(), .summary = json_array(),
	    .json = c->json, .all = c->verbose > 1 };
	const struct plan *p = engine_plan_of(eng);
	unsigned i;
	int rc = 0;

	x.width = (int)strlen("session");
	for (i = 0; i < p->nsessions; i++)
		x.width = MAX(x.width, (int)strlen(p->session[i].conf->name));
	if (!x.json)
		printf("%-*s %5s %-12s %-27s   %-8s %s\n", x.width, "session",
		    "layer", "op", "tensor", "threads", "where, reason");
	for (i = 0; i < p->nsessions && rc == 0; i++)
		rc = explain_session(&x, eng, i, reterr);
	free(x.placed);
	if (rc == 0 && x.json)
		return output_json(json_pack("{s:o,s:o}", "ops", x.ops,
		    "summary", x.summary), 1, reterr);
	json_decref(x.ops);
	json_decref(x.summary);
	return rc;
}

int
cmd_explain(const struct conf *c, struct err *reterr)
{
	struct engine *eng = NULL;
	int rc;

	if ((rc = engine_open(c, &eng, reterr)) == 0 &&
	    (rc = engine_plan(eng, reterr)) == 0)
		rc = explain_all(eng, reterr);
	engine_close(eng);
	return rc;
}
