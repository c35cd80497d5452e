/* coordinator/plan/build.c - makes a plan: for the config as it is, or (plan
 * --fit) for the nearest config that fits under the caps. */
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

#include "advice.h"
#include "fit.h"
#include "solve.h"

int
plan_build(const struct conf *c, const struct plan_env *env,
    struct plan *ret, struct err *reterr)
{
	uint64_t lack = 0;
	unsigned s = 0;
	int rc;

	if (reterr != NULL)
		reterr->kind = ERR_NONE;
	rc = plan_solve(c, env, ret, &s, &lack, reterr);
	if (rc == -ENOSPC && lack > 0)
		advice_explain(c, env, ret, s, lack, reterr);
	else if (rc == -ENOSPC && ret->short_room != NULL)
		advice_explain_room(c, env, ret, reterr);
	return rc;
}

/* --- plan --fit --- */

/* "a context of 512, a batch of 128 and KV type f16".  Returns buf. */
static const char *
describe_settings(const struct fit *f, const struct conf *c, char buf[128])
{
	uint32_t ctx = fit_asked_context(f, c);

	snprintf(buf, 128, "a context of %u, a batch of %u and KV type %s%s%s",
	    ctx, MIN((uint32_t)c->batch_rows, ctx), kv_type_name(c->kv_type_k),
	    c->kv_type_v != c->kv_type_k ? " and " : "",
	    c->kv_type_v != c->kv_type_k ? kv_type_name(c->kv_type_v) : "");
	return buf;
}

/* The config has one session: choose how many like it.  1 with f->trial set, or
 * 0 = no number fits. */
static int
choose_sessions(struct fit *f, char why[PLAN_WHY_LEN])
{
	char what[128], cap[UNITS_BYTES_LEN], one[MAX_NAME], short_name[MAX_NAME];
	int n = fit_fewest_sessions(f, 1);

	if (n == 0)
		return 0;
	/* More sessions are no remedy for a machine that is too small:
	 * plan_build() refuses the choice. */
	f->no_rooms = 1;
	describe_settings(f, f->c, what);
	strlcpy(one, f->c->session[0].name, sizeof(one));
	if (n == 1) {
		snprintf(why, PLAN_WHY_LEN, "one session like %s is enough "
		    "for %s", one, what);
	} else if (!fit_try_short(f, n - 1)) {
		strlcpy(short_name,
		    f->trial->session[f->short_session].name,
		    sizeof(short_name));
		snprintf(why, PLAN_WHY_LEN, "%d sessions like %s, each with "
		    "a cap of %s, are the fewest for %s: with %d, session %s "
		    "lacks %" PRIu64 " bytes", n, one, units_human_bytes(
		    f->plan->session[0].cap_bytes, cap), what, n - 1, short_name,
		    f->short_bytes);
	}
	n = fit_try_sessions(f, n);
	f->no_rooms = 0;
	return n;
}

/* Choose the first setting that helps, in order of what it costs the user, and
 * describe it; 0 = none helps.  A shorter context costs most: it is not cut to
 * less than half of what it could be with the other settings made smaller as
 * well. */
static int
choose_setting(struct fit *f, struct fit_choice *ret, char text[256])
{
	const struct conf *c = f->c;
	const int sublayers = fit_sublayers(f, c->nsessions) > 0;
	const uint32_t batch = sublayers ? 0 : fit_largest_batch(f);
	uint32_t ctx, least;

	*ret = (struct fit_choice){ 0 };
	if (sublayers) {
		ret->sublayers = 1;
		snprintf(text, 256, "cuts inside layers (--half-layers), which "
		    "cost nothing");
	} else if (batch >= FIT_MIN_BATCH) {
		ret->batch = batch;
		snprintf(text, 256, "a batch of %u (--batch %u), which only "
		    "makes prompts slower", batch, batch);
	} else if (fit_kv_q8_0(f)) {
		ret->kv = 1;
		snprintf(text, 256, "KV type q8_0 (--kv-type q8_0), which "
		    "costs a little precision");
	} else if (fit_all_smaller(f, &ctx, &least) &&
	    ctx > 2 * fit_largest_context(f, c)) {
		*ret = (struct fit_choice){ .kv = 1, .ctx = ctx,
		    .batch = least };
		snprintf(text, 256, "all of a context of %u, a batch of %u "
		    "and KV type q8_0 (--ctx %u --batch %u --kv-type q8_0)",
		    ctx, least, ctx, least);
	} else if ((ctx = fit_largest_context(f, c)) > 0) {
		ret->ctx = ctx;
		snprintf(text, 256, "a context of %u (--ctx %u), at which "
		    "texts end", ctx, ctx);
	} else if (batch > 0) {
		ret->batch = batch;
		snprintf(text, 256, "a batch of %u (--batch %u), which makes "
		    "prompts much slower", batch, batch);
	} else {
		return 0;
	}
	return 1;
}

/* Set f->trial to f->c with the settings chosen. */
static void
apply_choice(struct fit *f, const struct fit_choice *x)
{
	*f->trial = *f->c;
	if (x->sublayers)
		f->trial->half_layers = 1;
	if (x->batch > 0)
		f->trial->batch_rows = (int)x->batch;
	if (x->ctx > 0)
		f->trial->ctx_tok = (int)x->ctx;
	if (x->kv)
		f->trial->kv_type_k = f->trial->kv_type_v = KV_Q8_0;
}

/* Try the config as it is, without the margin that a choice has. */
static int
fits_as_asked(struct fit *f, const struct plan_env *env)
{
	int fits;

	f->env = env;
	fits = fit_try_short(f, f->c->nsessions);
	f->env = &f->env_margin;
	return fits;
}

/* The config has several sessions: keep them, and choose settings.  1 with
 * f->trial set, or 0 = nothing helps. */
static int
choose_settings(struct fit *f, const struct plan_env *env,
    char why[PLAN_WHY_LEN])
{
	int n = f->c->nsessions;
	char what[128], others[512], text[256], who[MAX_NAME + 16];
	struct fit_choice chosen;
	uint64_t lack;

	describe_settings(f, f->c, what);
	if (fits_as_asked(f, env)) {
		snprintf(why, PLAN_WHY_LEN, "the %d session%s given hold%s %s "
		    "as asked", n, n > 1 ? "s" : "", n > 1 ? "" : "s", what);
		return 1;
	}
	lack = f->short_bytes;
	snprintf(who, sizeof(who), "session %s",
	    f->c->session[f->short_session].name);
	if (lack == 0 && f->plan->short_room != NULL) {
		lack = f->plan->short_bytes;
		strlcpy(who, "this machine", sizeof(who));
	}
	if (!choose_setting(f, &chosen, text))
		return 0;
	advice_alternatives(f, &chosen, others, sizeof(others));
	apply_choice(f, &chosen);
	snprintf(why, PLAN_WHY_LEN, "%d session%s cannot hold %s: %s "
	    "lacks %" PRIu64 " bytes; chosen: %s%s%s", n, n > 1 ? "s" : "",
	    what, who, lack, text, others[0] != '\0' ?
	    "; what else would help: " : "", others);
	return 1;
}

int
plan_fit(const struct conf *c, const struct plan_env *env,
    struct conf *ret_conf, struct plan *ret, char why[PLAN_WHY_LEN],
    struct err *reterr)
{
	struct fit f;
	int rc = 0;

	why[0] = '\0';
	*ret_conf = *c;
	if (fit_init(&f, c, env) < 0)
		rc = err_nomem(reterr, "the plans of a fit");
	else if ((c->nsessions == 1 && choose_sessions(&f, why)) ||
	    choose_settings(&f, env, why))
		*ret_conf = *f.trial;
	fit_done(&f);
	/* Where nothing fits, plan_build() explains why. */
	return rc < 0 ? rc : plan_build(ret_conf, env, ret, reterr);
}
