/* coordinator/plan/advice.c - what would fit when a plan does not. */
#include "advice.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

#include "config/words.h"
#include "solve.h"

#define OR	", or "

static int
is_same(const struct fit_choice *a, struct fit_choice b)
{
	return a->sublayers == b.sublayers && a->kv == b.kv && a->ctx == b.ctx &&
	    a->batch == b.batch;
}

void
advice_alternatives(struct fit *f, const struct fit_choice *chosen,
    char *text, size_t len)
{
	const struct conf *c = f->c;
	uint32_t ctx, batch, all;
	int n, kv;

	text[0] = '\0';
	n = fit_fewest_sessions(f, c->nsessions);
	if (n > c->nsessions && !fit_try_sessions(f, n))
		n = 0;		/* this machine has not enough memory for them */
	if (n > c->nsessions)
		words_add(text, len, OR, "%d sessions (%d more like %s)", n,
		    n - c->nsessions, c->session[c->nsessions - 1].name);
	if (fit_sublayers(f, c->nsessions)) {
		if (!is_same(chosen, (struct fit_choice){ .sublayers = 1 }))
			words_add(text, len, OR, "cuts inside layers "
			    "(--half-layers)");
	} else if (n == 0 && (n = fit_sublayers(f, MAX_SESSIONS)) > 0) {
		words_add(text, len, OR, "%d sessions with --half-layers (%d "
		    "more like %s)", n, n - c->nsessions,
		    c->session[c->nsessions - 1].name);
	}
	if ((ctx = fit_largest_context(f, c)) > 0 &&
	    !is_same(chosen, (struct fit_choice){ .ctx = ctx }))
		words_add(text, len, OR, "a context of %u (--ctx %u)", ctx,
		    ctx);
	if ((batch = fit_largest_batch(f)) > 0 &&
	    !is_same(chosen, (struct fit_choice){ .batch = batch }))
		words_add(text, len, OR, "a batch of %u (--batch %u)", batch,
		    batch);
	if ((kv = fit_kv_q8_0(f)) != 0 &&
	    !is_same(chosen, (struct fit_choice){ .kv = 1 }))
		words_add(text, len, OR, "KV type q8_0 (--kv-type q8_0)");
	if (batch == 0 && !kv && fit_all_smaller(f, &all, &batch) &&
	    all > ctx && !is_same(chosen, (struct fit_choice){ .kv = 1,
	    .ctx = all, .batch = batch }))
		words_add(text, len, OR, "all of --ctx %u --batch %u "
		    "--kv-type q8_0", all, batch);
}

/* "embedding, layers 0-5". */
static void
describe_range(const struct plan_session *ps, char *buf, size_t len)
{
	char layers[SUBLAYERS_LEN];

	buf[0] = '\0';
	if (ps->embedding)
		words_add(buf, len, ", ", "embedding");
	sublayers_text(ps->first_sublayer, ps->nsublayers, layers);
	if (layers[0] != '\0')
		words_add(buf, len, ", ", "layers %s", layers);
	if (ps->head)
		words_add(buf, len, ", ", "output head");
}

/* A single unit exceeds what the device maps at once: only another device
 * helps, and only at an end of the pipeline can one be added. */
static void
advise_device(const struct plan_session *ps, char *would, size_t len)
{
	if (ps->u1 - ps->u0 != 1)
		return;
	if (ps->head)
		words_add(would, len, OR, "a cpu session after it, for the "
		    "output head");
	else if (ps->embedding)
		words_add(would, len, OR, "a cpu session before it, for the "
		    "embedding");
}

static void
explain_largest(const struct plan_session *ps, uint64_t over,
    char *would, size_t len, struct err *reterr)
{
	const struct plan_limits *l = ps->limits;
	char need[UNITS_BYTES_LEN], most[UNITS_BYTES_LEN], range[96];

	advise_device(ps, would, len);
	describe_range(ps, range, sizeof(range));
	err_set(reterr, ERR_FIT, -ENOSPC, "the model does not fit: session %s "
	    "(%s): a buffer of %s is needed, its device %s maps at most %s "
	    "at once (%s), %" PRIu64 " bytes short; what would fit: %s",
	    ps->conf->name, range,
	    units_human_bytes(l->largest_bytes + over, need),
	    ps->conf->device, units_human_bytes(l->largest_bytes, most),
	    l->largest_from, over, would[0] != '\0' ? would : "another "
	    "device");
}

static void
explain_device(const struct plan_session *ps, char *would, size_t len,
    struct err *reterr)
{
	char need[UNITS_BYTES_LEN], have[UNITS_BYTES_LEN];
	char all[UNITS_BYTES_LEN], range[96];

	advise_device(ps, would, len);
	describe_range(ps, range, sizeof(range));
	err_set(reterr, ERR_FIT, -ENOSPC, "the model does not fit: session %s "
	    "(%s): %s of the memory of its device %s are needed, its share "
	    "is %s of %s free there (%s; sessions on one device share by "
	    "their caps), %" PRIu64 " bytes short; what would fit: %s",
	    ps->conf->name, range, units_human_bytes(ps->device_bytes, need),
	    ps->conf->device, units_human_bytes(ps->device_share, have),
	    units_human_bytes(ps->limits->device_free_bytes, all),
	    ps->limits->device_from, plan_device_excess(ps), would[0] != '\0' ?
	    would : "another device");
}

/* The option that leaves this machine's memory out of account. */
static const char *
override(const struct conf *c)
{
	return c->cmd == CMD_PLAN ? "another machine "
	    "(--for-another-machine)" : "--overcommit, to run it all the same";
}

/* 1 = the cap is a share of this machine's memory. */
static int
is_share(const struct plan_env *env, const struct plan_session *ps)
{
	return env->nrooms > 0 && ps->conf->cap_bytes == 0 &&
	    ps->capped_by == NULL && env->rooms[0].room.by[0] != '\0';
}

/* 1 = an rlimit, into by, leaves a process less than the session needs.  No
 * option changes that. */
static int
exceeds_rlimit(const struct plan_env *env, const struct plan_session *ps,
    char *by, size_t len)
{
	struct room r;

	by[0] = '\0';
	if (env->nrooms == 0 || env->process_room == NULL)
		return 0;
	plan_process_room(env, ps, &r);
	if (ps->total_bytes > r.cap_bytes)
		strlcpy(by, r.cap_by, len);
	return ps->total_bytes > r.cap_bytes;
}

static int
machine_holds(const struct plan_env *env, const struct plan *p)
{
	unsigned i;

	for (i = 0; i < env->nrooms; i++)
		if (plan_bytes(p, env->rooms[i].node) >
		    env->rooms[i].room.free_bytes)
			return 0;
	return 1;
}

/* Say how to make the cap of ps larger: a larger cap does not help beyond the
 * memory that exists. */
static void
advise_cap(const struct conf *c, const struct plan_env *env,
    const struct plan *p, const struct plan_session *ps, uint64_t lack,
    char *would, size_t len)
{
	const int is_fixed = ps->lowered_by[0] != '\0' || is_share(env, ps);
	char by[ROOM_BY];

	if (ps->capped_by != NULL && !is_fixed) {
		if (would[0] == '\0')
			words_add(would, len, OR, "another device");
	} else if (exceeds_rlimit(env, ps, by, sizeof(by))) {
		words_add(would, len, OR, "a higher limit than %s", by);
		if (c->cmd == CMD_PLAN)
			words_add(would, len, OR, "%s", override(c));
	} else if (is_fixed) {
		words_add(would, len, OR, "%s", override(c));
	} else {
		words_add(would, len, OR, "caps larger by %" PRIu64 " MiB%s",
		    DIV_UP(lack, MIB), machine_holds(env, p) ? "" :
		    c->cmd == CMD_PLAN ? " and --for-another-machine" :
		    " and --overcommit");
	}
}

void
advice_explain_room(const struct conf *c, const struct plan_env *env,
    const struct plan *p, struct err *reterr)
{
	const struct plan_room *r = p->short_room;
	char need[UNITS_BYTES_LEN], have[UNITS_BYTES_LEN];
	char would[512] = "";
	const struct fit_choice nothing = { 0 };
	struct fit f;

	if (fit_init(&f, c, env) == 0)
		advice_alternatives(&f, &nothing, would, sizeof(would));
	fit_done(&f);
	words_add(would, sizeof(would), OR, "%s", override(c));
	err_set(reterr, ERR_FIT, -ENOSPC, "this machine cannot hold the plan: "
	    "%s needed, %s free (%s), %" PRIu64 " bytes short; what would "
	    "fit: %s", units_human_bytes(plan_bytes(p, r->node), need),
	    units_human_bytes(r->room.free_bytes, have), r->room.by,
	    p->short_bytes, would);
}

void
advice_explain(const struct conf *c, const struct plan_env *env,
    const struct plan *p, unsigned s, uint64_t lack, struct err *reterr)
{
	const struct plan_session *ps = &p->session[s];
	char need[UNITS_BYTES_LEN], cap[UNITS_BYTES_LEN];
	char range[96], would[512] = "", why[ROOM_BY + 64] = "";
	const struct fit_choice nothing = { 0 };
	struct fit f;

	if (fit_init(&f, c, env) == 0)
		advice_alternatives(&f, &nothing, would, sizeof(would));
	fit_done(&f);
	/* The total and the largest buffer may both be too large: explain the
	 * one that lacks more. */
	if (plan_buffer_excess(ps) > 0 && ps->total_bytes <= ps->cap_bytes +
	    plan_buffer_excess(ps)) {
		explain_largest(ps, plan_buffer_excess(ps), would,
		    sizeof(would), reterr);
		return;
	}
	if (plan_device_excess(ps) > 0 && ps->total_bytes <= ps->cap_bytes +
	    plan_device_excess(ps)) {
		explain_device(ps, would, sizeof(would), reterr);
		return;
	}
	advise_cap(c, env, p, ps, lack, would, sizeof(would));
	if (ps->lowered_by[0] != '\0')
		snprintf(why, sizeof(why), " (lowered: %s)",
		    ps->lowered_by);
	else if (is_share(env, ps))
		snprintf(why, sizeof(why), " (a share of what is left: %s)",
		    env->rooms[0].room.by);
	else if (ps->capped_by != NULL)
		snprintf(why, sizeof(why), " (limit of its device %s: "
		    "%s)", ps->conf->device, ps->capped_by->from);
	describe_range(ps, range, sizeof(range));
	err_set(reterr, ERR_FIT, -ENOSPC, "the model does not fit: session %s "
	    "(%s): %s needed, cap %s%s, %" PRIu64 " bytes short; "
	    "what would fit: %s", ps->conf->name, range,
	    units_human_bytes(ps->total_bytes, need),
	    units_human_bytes(ps->cap_bytes, cap), why, lack, would);
}
