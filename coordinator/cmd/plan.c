/* coordinator/cmd/plan.c - the split and the memory table.  Starts no
 * session; one short-lived worker tells what a process weighs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "coordinator/engine/engine.h"
#include "coordinator/print/output.h"

/* What --fit chose; null = nothing that it could change helps. */
static json_t *
fit_json(const struct engine *j)
{
	if (j->fit_why[0] == '\0')
		return json_null();
	return json_pack("{s:i,s:i,s:i,s:b,s:s,s:s,s:s}", "sessions",
	    (int)j->plan.nsessions, "context", (int)j->plan.ctx_tok, "batch",
	    (int)j->plan.batch_rows, "half_layers",
	    j->plan.half_layers, "kv_type_k",
	    kv_type_name(j->fitted->kv_type_k), "kv_type_v",
	    kv_type_name(j->fitted->kv_type_v), "why", j->fit_why);
}

static int
print_json(const struct engine *j, int rc, const struct err *advice,
    struct err *reterr)
{
	json_t *o = output_sessions(&j->plan, NULL);

	json_object_set_new(o, "fits", json_boolean(rc == 0));
	if (j->c->fit)
		json_object_set_new(o, "fit", fit_json(j));
	json_object_set_new(o, "advice", rc == 0 ? json_null() :
	    output_json_text(advice->msg, strlen(advice->msg)));
	return output_json(o, 1, reterr);
}

static void
print_text(const struct engine *j)
{
	output_table(stdout, &j->plan, NULL);
	if (j->fit_why[0] != '\0')
		printf("fit: %s\n", j->fit_why);
}

int
cmd_plan(const struct conf *c, struct err *reterr)
{
	struct engine j;
	int rc;

	if (c->check_only) {
		conf_print(c, stdout);
		return 0;
	}
	if ((rc = engine_open(&j, c, reterr)) == 0)
		rc = engine_plan(&j, reterr);
	/* A plan that does not fit is shown all the same: the nearest one. */
	if (rc == 0 || (rc == -ENOSPC && j.plan.nsessions > 0 &&
	    j.plan.session[0].total_bytes > 0)) {
		if (!c->json)
			print_text(&j);
		else if (rc == 0)
			rc = print_json(&j, rc, NULL, reterr);
		else
			print_json(&j, rc, reterr, NULL);
	}
	engine_close(&j);
	return rc;
}
