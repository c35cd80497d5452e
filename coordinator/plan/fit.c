/* coordinator/plan/fit.c - what fits under given caps: the number of sessions,
 * the context, the batch, the KV type.  By trying: a plan costs milliseconds. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "sizes.h"

enum {
	CTX_STEP = 64,
	/* Below this, a batch saves little memory and costs much speed. */
	LEAST_BATCH = 16
};

int
fit_init(struct fit *f, const struct conf *c, const struct plan_env *env)
{
	*f = (struct fit){ .c = c, .env = &f->near, .near = *env };
	f->near.runtime_more = env->waver_bytes;
	/* Shares of free memory shrink while one reads. */
	f->near.free_bytes -= env->free_bytes / 16;
	f->v = malloc(sizeof(*f->v));
	f->scratch = malloc(sizeof(*f->scratch));
	return f->v != NULL && f->scratch != NULL ? 0 : -ENOMEM;
}

void
fit_done(struct fit *f)
{
	free(f->v);
	free(f->scratch);
}

static int
fits(struct fit *f)
{
	f->short_bytes = 0;
	return plan_try(f->v, f->env, f->scratch, &f->short_session,
	    f->who_lacks ? &f->short_bytes : NULL, NULL) == 0;
}

/* A name for session i that none before it has. */
static void
name_session(struct conf *v, int i)
{
	char name[MAX_NAME];
	int k, nth = i;

	do {
		snprintf(name, sizeof(name), "%.20s%d", v->session[i].device,
		    nth++);
		for (k = 0; k < i; k++)
			if (strcmp(v->session[k].name, name) == 0)
				break;
	} while (k < i);
	memcpy(v->session[i].name, name, sizeof(name));
}

static int
fits_with_sessions(struct fit *f, int n)
{
	*f->v = *f->c;
	f->v->half_layers |= f->halves;
	f->v->nsessions = MIN(n, f->c->nsessions);
	while (f->v->nsessions < n) {
		f->v->session[f->v->nsessions] =
		    f->c->session[f->c->nsessions - 1];
		name_session(f->v, f->v->nsessions++);
	}
	return fits(f);
}

/* The same, with who lacks how much. */
static int
fits_or_lacks(struct fit *f, int n)
{
	int yes;

	f->who_lacks = 1;
	yes = fits_with_sessions(f, n);
	f->who_lacks = 0;
	return yes;
}

/* More of them never hold less, so halving finds the fewest. */
int
fit_sessions(struct fit *f, int from)
{
	int lo = from, mid;
	int hi = (int)MIN(MAX_SESSIONS, plan_pieces(
	    f->c->half_layers | f->halves, f->env->model));

	if (fits_with_sessions(f, from))
		return from;
	if (from >= hi || !fits_with_sessions(f, hi))
		return 0;
	while (hi - lo > 1) {		/* lo does not fit, hi does */
		mid = lo + (hi - lo) / 2;
		if (fits_with_sessions(f, mid))
			hi = mid;
		else
			lo = mid;
	}
	return hi;
}

/* What a plan for c would take, before anything is made smaller. */
static uint32_t
asked_context(const struct fit *f, const struct conf *c)
{
	return c->ctx_tok > 0 ? (uint32_t)c->ctx_tok :
	    MIN(f->env->model->hp.ctx_train, 4096);
}

uint32_t
fit_context(struct fit *f, const struct conf *with)
{
	uint32_t lo = 0, hi = (asked_context(f, with) - 1) / CTX_STEP, mid;

	*f->v = *with;
	while (lo < hi) {
		mid = lo + (hi - lo + 1) / 2;
		f->v->ctx_tok = (int)(mid * CTX_STEP);
		if (fits(f))
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo * CTX_STEP;
}

uint32_t
fit_batch(struct fit *f)
{
	*f->v = *f->c;
	/* A batch is never longer than the context. */
	f->v->batch_rows = (int)MIN((uint32_t)f->v->batch_rows,
	    asked_context(f, f->c));
	while ((f->v->batch_rows /= 2) >= 1)
		if (fits(f))
			return (uint32_t)f->v->batch_rows;
	return 0;
}

int
fit_kv(struct fit *f)
{
	*f->v = *f->c;
	f->v->kv_type_k = f->v->kv_type_v = KV_Q8_0;
	return (f->c->kv_type_k != KV_Q8_0 || f->c->kv_type_v != KV_Q8_0) &&
	    fits(f);
}

int
fit_halves(struct fit *f, int most)
{
	const int have = f->c->nsessions;
	int n;

	if (f->c->half_layers || most == 1)
		return 0;
	f->halves = 1;
	n = most > have ? fit_sessions(f, have) :
	    fits_with_sessions(f, have) ? have : 0;
	f->halves = 0;
	return n;
}

int
fit_together(struct fit *f, uint32_t *ret_ctx, uint32_t *ret_batch)
{
	struct conf *with = malloc(sizeof(*with));

	*ret_ctx = 0;
	if (with == NULL)
		return 0;
	*with = *f->c;
	with->kv_type_k = with->kv_type_v = KV_Q8_0;
	with->batch_rows = MIN(with->batch_rows, LEAST_BATCH);
	*ret_batch = (uint32_t)with->batch_rows;
	*f->v = *with;
	*ret_ctx = fits(f) ? asked_context(f, with) : fit_context(f, with);
	free(with);
	return *ret_ctx > 0;
}

/* --- plan --fit --- */

/* "a context of 512, a batch of 128 and KV type f16" */
static const char *
settings(const struct fit *f, const struct conf *c, char buf[128])
{
	uint32_t ctx = asked_context(f, c);

	snprintf(buf, 128, "a context of %u, a batch of %u and KV type %s%s%s",
	    ctx, MIN((uint32_t)c->batch_rows, ctx), kv_type_name(c->kv_type_k),
	    c->kv_type_v != c->kv_type_k ? " and " : "",
	    c->kv_type_v != c->kv_type_k ? kv_type_name(c->kv_type_v) : "");
	return buf;
}

/* One session is a pattern: how many like it?  1 with v set, or 0. */
static int
choose_number(struct fit *f, char why[PLAN_WHY_LEN])
{
	char what[128], cap[UNITS_BYTES_LEN], one[MAX_NAME], who[MAX_NAME];
	int n = fit_sessions(f, 1);

	if (n == 0)
		return 0;
	settings(f, f->c, what);
	strlcpy(one, f->c->session[0].name, sizeof(one));
	if (n == 1) {
		snprintf(why, PLAN_WHY_LEN, "one session like %s is enough "
		    "for %s", one, what);
	} else if (!fits_or_lacks(f, n - 1)) {
		strlcpy(who, f->v->session[f->short_session].name,
		    sizeof(who));
		snprintf(why, PLAN_WHY_LEN, "%d sessions like %s, each with "
		    "a cap of %s, are the fewest for %s: with %d, session %s "
		    "lacks %" PRIu64 " bytes", n, one, units_human_bytes(
		    f->scratch->session[0].cap_bytes, cap), what, n - 1, who,
		    f->short_bytes);
	}
	return fits_with_sessions(f, n);
}

/* The first that helps, from what costs least, with a text of it; 0 = nothing
 * does.  A context is what a user notices most: it is not cut to less than half of
 * what it could be with the rest made smaller, too. */
static int
choose_smaller(struct fit *f, struct fit_choice *ret, char text[256])
{
	const struct conf *c = f->c;
	const int halves = fit_halves(f, c->nsessions) > 0;
	const uint32_t batch = halves ? 0 : fit_batch(f);
	uint32_t ctx, least;

	*ret = (struct fit_choice){ 0 };
	if (halves) {
		ret->halves = 1;
		snprintf(text, 256, "cuts inside layers (--half-layers), which "
		    "cost nothing");
	} else if (batch >= LEAST_BATCH) {
		ret->batch = batch;
		snprintf(text, 256, "a batch of %u (--batch %u), which only "
		    "makes prompts slower", batch, batch);
	} else if (fit_kv(f)) {
		ret->kv = 1;
		snprintf(text, 256, "KV type q8_0 (--kv-type q8_0), which "
		    "costs a little precision");
	} else if (fit_together(f, &ctx, &least) &&
	    ctx > 2 * fit_context(f, c)) {
		*ret = (struct fit_choice){ .kv = 1, .ctx = ctx,
		    .batch = least };
		snprintf(text, 256, "all of a context of %u, a batch of %u "
		    "and KV type q8_0 (--ctx %u --batch %u --kv-type q8_0)",
		    ctx, least, ctx, least);
	} else if ((ctx = fit_context(f, c)) > 0) {
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

/* v as chosen. */
static void
make_smaller(struct fit *f, const struct fit_choice *x)
{
	*f->v = *f->c;
	if (x->halves)
		f->v->half_layers = 1;
	if (x->batch > 0)
		f->v->batch_rows = (int)x->batch;
	if (x->ctx > 0)
		f->v->ctx_tok = (int)x->ctx;
	if (x->kv)
		f->v->kv_type_k = f->v->kv_type_v = KV_Q8_0;
}

/* As asked and exactly: room is left only in what is chosen. */
static int
fits_exactly(struct fit *f, const struct plan_env *env)
{
	int yes;

	f->env = env;
	yes = fits_or_lacks(f, f->c->nsessions);
	f->env = &f->near;
	return yes;
}

/* Several sessions are what there is.  1 with v set, or 0. */
static int
choose_settings(struct fit *f, const struct plan_env *env,
    char why[PLAN_WHY_LEN])
{
	int n = f->c->nsessions;
	char what[128], others[512], text[256], who[MAX_NAME];
	struct fit_choice chosen;
	uint64_t lack;

	settings(f, f->c, what);
	if (fits_exactly(f, env)) {
		snprintf(why, PLAN_WHY_LEN, "the %d session%s given hold%s %s "
		    "as asked", n, n > 1 ? "s" : "", n > 1 ? "" : "s", what);
		return 1;
	}
	lack = f->short_bytes;
	strlcpy(who, f->c->session[f->short_session].name, sizeof(who));
	if (!choose_smaller(f, &chosen, text))
		return 0;
	plan_alternatives(f, &chosen, others, sizeof(others));
	make_smaller(f, &chosen);
	snprintf(why, PLAN_WHY_LEN, "%d session%s cannot hold %s: session %s "
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
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	else if ((c->nsessions == 1 && choose_number(&f, why)) ||
	    choose_settings(&f, env, why))
		*ret_conf = *f.v;
	fit_done(&f);
	/* What cannot fit in any way is explained as ever. */
	return rc < 0 ? rc : plan_build(ret_conf, env, ret, reterr);
}
