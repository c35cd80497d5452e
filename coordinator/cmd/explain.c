/* coordinator/cmd/explain.c - where every operation runs, and why.
 * Each session's worker builds its program and places it; nothing is loaded. */
#include <stdio.h>

#include "config/plain.h"
#include "shm/wire.h"
#include "cmd.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/queries.h"
#include "coordinator/print/output.h"

struct explained {
	json_t *ops, *summary;
	const struct session_conf *session;	/* the current one */
	int json;
	unsigned device_ops, cpu_ops;	/* of this session */
};

static void
print_op(struct explained *x, const struct wire_placed *wp,
    const char *where)
{
	printf("%-10s ", x->session->name);
	if (wp->layer >= 0)
		printf("%5d ", wp->layer);
	else
		printf("%5s ", wp->head ? "head" : "-");
	printf("%-12s %-30s %c %-8s %-8s %s\n", wp->op, wp->tensor,
	    wp->barrier_before ? '|' : ' ', wp->share, where, PLAIN(wp->reason));
}

static void
add_op(struct explained *x, const struct wire_placed *wp, const char *where)
{
	json_array_append_new(x->ops, json_pack(
	    "{s:s,s:o,s:s,s:s,s:s,s:s,s:b,s:s}", "session", x->session->name,
	    "layer", wp->layer >= 0 ? json_integer(wp->layer) : json_null(),
	    "op", wp->op, "tensor", wp->tensor, "where", where, "reason",
	    wp->reason, "barrier_before", (int)wp->barrier_before, "share",
	    wp->share));
}

static void
on_placed(void *arg, uint32_t type, const void *answer)
{
	const struct wire_placed *wp = answer;
	struct explained *x = arg;
	const char *where;

	if (type != WIRE_PLACED)
		return;
	where = wp->on_device ? x->session->device : "cpu";
	x->device_ops += wp->on_device != 0;
	x->cpu_ops += wp->on_device == 0;
	if (x->json)
		add_op(x, wp, where);
	else
		print_op(x, wp, where);
}

static int
explain_session(struct explained *x, const struct engine *eng, unsigned i,
    struct err *reterr)
{
	int rc;

	x->session = engine_plan_of(eng)->session[i].conf;
	x->device_ops = x->cpu_ops = 0;
	rc = query_placement(eng, i, on_placed, x, reterr);
	json_array_append_new(x->summary, json_pack("{s:s,s:i,s:i}", "session",
	    x->session->name, "device_ops", (int)x->device_ops, "cpu_ops",
	    (int)x->cpu_ops));
	if (rc == 0 && !x->json)
		printf("%-10s %u operations on %s, %u fall back to the CPU\n",
		    x->session->name, x->device_ops, x->session->device,
		    x->cpu_ops);
	return rc;
}

static int
explain_all(const struct engine *eng, struct err *reterr)
{
	struct explained x = { .ops = json_array(), .summary = json_array(),
	    .json = engine_conf(eng)->json };
	unsigned i;
	int rc = 0;

	if (!x.json)
		printf("%-10s %5s %-12s %-30s   %-8s %-8s %s\n", "session",
		    "layer", "op", "tensor", "threads", "where", "reason");
	for (i = 0; i < engine_plan_of(eng)->nsessions && rc == 0; i++)
		rc = explain_session(&x, eng, i, reterr);
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
