/* coordinator/cmd/plan.c - the split and the memory table.  Starts no session, but
 * short-lived workers that measure a worker's base memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/plain.h"
#include "cmd.h"
#include "coordinator/engine/engine.h"
#include "coordinator/print/output.h"

/* The settings that --fit chose; null = none of them helps. */
static json_t *
fit_json(const struct engine *eng)
{
	const struct conf *fit = engine_fit_conf(eng);
	const struct plan *p = engine_plan_of(eng);
	const char *why = engine_fit_reason(eng);

	if (why[0] == '\0')
		return json_null();
	return json_pack("{s:i,s:i,s:i,s:b,s:s,s:s,s:s}", "sessions",
	    (int)p->nsessions, "context", (int)p->ctx_tok, "batch",
	    (int)p->batch_rows, "half_layers",
	    p->half_layers, "kv_type_k",
	    kv_type_name(fit->kv_type_k), "kv_type_v",
	    kv_type_name(fit->kv_type_v), "why", why);
}

static json_t *
machine_json(const struct engine *eng)
{
	const struct room *r = engine_room(eng);

	if (r == NULL)
		return json_pack("{s:b}", "this", 0);
	/* Names of groups need not be UTF-8. */
	return json_pack("{s:b,s:o,s:o}", "this", 1, "free_bytes",
	    r->free_bytes != UINT64_MAX ?
	    json_integer((json_int_t)r->free_bytes) : json_null(), "free_by",
	    output_json_string(r->by));
}

static int
print_json(struct engine *eng, int rc, const struct err *advice,
    struct err *reterr)
{
	json_t *o = output_sessions(engine_plan_of(eng), NULL,
	    engine_processes(eng));

	json_object_set_new(o, "fits", json_boolean(rc == 0));
	json_object_set_new(o, "machine", machine_json(eng));
	if (engine_conf(eng)->fit)
		json_object_set_new(o, "fit", fit_json(eng));
	json_object_set_new(o, "advice", rc == 0 ? json_null() :
	    output_json_string(advice->msg));
	return output_json(o, 1, reterr);
}

/* "machine: this one, 20.8 GiB free (...)". */
static void
print_machine(const struct engine *eng)
{
	const struct room *r = engine_room(eng);
	char size[UNITS_BYTES_LEN];

	if (r == NULL)
		printf("machine: another one; its free memory is not "
		    "considered\n");
	else if (r->free_bytes != UINT64_MAX)
		printf("machine: this one, %s free (%s)\n",
		    units_human_bytes(r->free_bytes, size), PLAIN(r->by));
}

static void
print_text(struct engine *eng)
{
	const char *why = engine_fit_reason(eng);

	output_table(stdout, engine_plan_of(eng), NULL,
	    engine_processes(eng));
	print_machine(eng);
	if (why[0] != '\0')
		printf("fit: %s\n", PLAIN(why));
}

int
cmd_plan(const struct conf *c, struct err *reterr)
{
	struct engine *eng;
	const struct plan *p;
	int rc;

	if (c->check_only) {
		conf_print(c, stdout);
		return 0;
	}
	if ((rc = engine_open(c, &eng, reterr)) < 0)
		return rc;
	rc = engine_plan(eng, reterr);
	p = engine_plan_of(eng);
	/* Where nothing fits, show the nearest plan with the advice. */
	if (rc == 0 || (rc == -ENOSPC && p->nsessions > 0 &&
	    p->session[0].total_bytes > 0)) {
		if (!c->json)
			print_text(eng);
		else if (rc == 0)
			rc = print_json(eng, rc, NULL, reterr);
		else
			print_json(eng, rc, reterr, NULL);
	}
	engine_close(eng);
	return rc;
}
