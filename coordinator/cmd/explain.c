/* coordinator/cmd/explain.c - where every operation runs, and why.
 * Each session's worker builds its program and places it; nothing is loaded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "coordinator/engine/engine.h"
#include "coordinator/print/output.h"

struct explained {
	json_t *ops, *summary;
	unsigned device_ops, cpu_ops;	/* of this session */
};

static void
on_placed(struct explained *x, const struct session *s,
    const struct wire_placed *wp, int json)
{
	const char *where = wp->on_device ? s->plan->conf->device : "cpu";
	/* Work that the session did not want on the CPU. */
	int fell = !wp->on_device;

	x->device_ops += !fell;
	x->cpu_ops += fell;
	if (json) {
		json_array_append_new(x->ops, json_pack(
		    "{s:s,s:o,s:s,s:s,s:s,s:s,s:b,s:s}", "session", s->name, "layer",
		    wp->layer >= 0 ? json_integer(wp->layer) : json_null(),
		    "op", wp->op, "tensor", wp->tensor, "where", where,
		    "reason", wp->reason, "barrier_before", (int)wp->barrier_before, "share",
		    wp->share));
		return;
	}
	printf("%-10s ", s->name);
	if (wp->layer >= 0)
		printf("%5d ", wp->layer);
	else
		printf("%5s ", wp->head ? "head" : "-");
	printf("%-12s %-30s %c %-8s %-8s %s\n", wp->op, wp->tensor,
	    wp->barrier_before ? '|' : ' ', wp->share, where, wp->reason);
}

static int
explain_session(struct explained *x, const struct engine *j, unsigned i,
    struct chan_msg *m, struct err *reterr)
{
	struct wire_placed wp;
	struct session s;
	int rc;

	x->device_ops = x->cpu_ops = 0;
	if ((rc = session_probe(&j->plan.session[i], j->c, NULL, -1, &s,
	    reterr)) < 0)
		return rc;
	if ((rc = session_send_model(&s, &j->plan, reterr)) == 0)
		rc = session_send(&s, WIRE_EXPLAIN, NULL, 0, NULL, 0, reterr);
	while (rc == 0) {
		rc = session_answer(&s, m, reterr);
		if (rc < 0 || m->type == WIRE_END)
			break;
		if (m->type != WIRE_PLACED || m->nbytes != sizeof(wp))
			continue;
		memcpy(&wp, m->buf, sizeof(wp));
		on_placed(x, &s, &wp, j->c->json);
	}
	session_close(&s);
	return rc;
}

static int
explain_all(struct engine *j, struct chan_msg *m, struct err *reterr)
{
	struct explained x = { json_array(), json_array(), 0, 0 };
	unsigned i;
	int rc = 0;

	if (!j->c->json)
		printf("%-10s %5s %-12s %-30s   %-8s %-8s %s\n", "session",
		    "layer", "op", "tensor", "threads", "where", "reason");
	for (i = 0; i < j->plan.nsessions && rc == 0; i++) {
		rc = explain_session(&x, j, i, m, reterr);
		json_array_append_new(x.summary, json_pack("{s:s,s:i,s:i}",
		    "session", j->plan.session[i].conf->name, "device_ops",
		    (int)x.device_ops, "cpu_ops", (int)x.cpu_ops));
		if (rc == 0 && !j->c->json)
			printf("%-10s %u operations on %s, %u fall back to "
			    "the CPU\n", j->plan.session[i].conf->name,
			    x.device_ops, j->plan.session[i].conf->device,
			    x.cpu_ops);
	}
	if (rc == 0 && j->c->json)
		return output_json(json_pack("{s:o,s:o}", "ops", x.ops,
		    "summary", x.summary), 1, reterr);
	json_decref(x.ops);
	json_decref(x.summary);
	return rc;
}

int
cmd_explain(const struct conf *c, struct err *reterr)
{
	struct chan_msg *m = malloc(sizeof(*m));
	struct engine j;
	int rc;

	if (m == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	if ((rc = engine_open(&j, c, reterr)) == 0 &&
	    (rc = engine_plan(&j, reterr)) == 0)
		rc = explain_all(&j, m, reterr);
	engine_close(&j);
	free(m);
	return rc;
}
