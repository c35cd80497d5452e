/* coordinator/plan/fit.c - searches for the number of sessions, the context,
 * the batch and the KV type that fit. */
#include "fit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solve.h"

enum { CTX_STEP = 64 };

int
fit_init(struct fit *f, const struct conf *c, const struct plan_env *env)
{
	unsigned i;

	memset(f, 0, sizeof(*f));
	f->c = c;
	f->env = &f->env_margin;
	f->env_margin = *env;
	f->env_margin.runtime_extra_bytes = env->margin_bytes;
	/* Less may be free by the time that the advice is taken. */
	f->env_margin.free_bytes -= env->free_bytes / 16;
	f->env_margin.rooms = f->room;
	for (i = 0; i < env->nrooms; i++) {
		f->room[i] = env->rooms[i];
		f->room[i].room.free_bytes -= f->room[i].room.free_bytes / 16;
	}
	f->trial = malloc(sizeof(*f->trial));
	f->plan = malloc(sizeof(*f->plan));
	return f->trial != NULL && f->plan != NULL ? 0 : -ENOMEM;
}

void
fit_done(struct fit *f)
{
	free(f->trial);
	free(f->plan);
}

/* Plan f->trial: 1 = it fits. */
static int
try_trial(struct fit *f)
{
	struct plan_env env = *f->env;

	env.no_room_check = f->no_rooms;
	f->short_bytes = 0;
	return plan_solve(f->trial, &env, f->plan, &f->short_session,
	    f->want_short ? &f->short_bytes : NULL, NULL) == 0;
}

/* Give session i a name that no session before it has. */
static void
name_session(struct conf *c, int i)
{
	char name[MAX_NAME];
	int k, nth = i;

	do {
		snprintf(name, sizeof(name), "%.20s%d", c->session[i].device,
		    nth++);
		for (k = 0; k < i; k++)
			if (strcmp(c->session[k].name, name) == 0)
				break;
	} while (k < i);
	memcpy(c->session[i].name, name, sizeof(name));
}

int
fit_try_sessions(struct fit *f, int n)
{
	*f->trial = *f->c;
	f->trial->half_layers |= f->sublayers;
	f->trial->nsessions = MIN(n, f->c->nsessions);
	while (f->trial->nsessions < n) {
		f->trial->session[f->trial->nsessions] =
		    f->c->session[f->c->nsessions - 1];
		name_session(f->trial, f->trial->nsessions++);
	}
	return try_trial(f);
}

int
fit_try_short(struct fit *f, int n)
{
	int fits;

	f->want_short = 1;
	fits = fit_try_sessions(f, n);
	f->want_short = 0;
	return fits;
}

/* By bisection: more sessions never hold less. */
static int
fewest_sessions(struct fit *f, int from)
{
	int lo = from, mid;
	int hi = (int)MIN(MAX_SESSIONS, plan_pieces(
	    f->c->half_layers | f->sublayers, f->env->model));

	if (fit_try_sessions(f, from))
		return from;
	if (from >= hi || !fit_try_sessions(f, hi))
		return 0;
	while (hi - lo > 1) {		/* lo does not fit, hi does */
		mid = lo + (hi - lo) / 2;
		if (fit_try_sessions(f, mid))
			hi = mid;
		else
			lo = mid;
	}
	return hi;
}

int
fit_fewest_sessions(struct fit *f, int from)
{
	int n;

	f->no_rooms = 1;
	n = fewest_sessions(f, from);
	f->no_rooms = 0;
	return n;
}

uint32_t
fit_asked_context(const struct fit *f, const struct conf *c)
{
	return plan_asked_context(c, f->env->model);
}

uint32_t
fit_largest_context(struct fit *f, const struct conf *with)
{
	uint32_t lo = 0, hi = (fit_asked_context(f, with) - 1) / CTX_STEP, mid;

	*f->trial = *with;
	while (lo < hi) {
		mid = lo + (hi - lo + 1) / 2;
		f->trial->ctx_tok = (int)(mid * CTX_STEP);
		if (try_trial(f))
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo * CTX_STEP;
}

uint32_t
fit_largest_batch(struct fit *f)
{
	*f->trial = *f->c;
	/* A batch never has more rows than the contexts of all sequences. */
	f->trial->batch_rows = (int)MIN((uint64_t)f->trial->batch_rows,
	    (uint64_t)fit_asked_context(f, f->c) * (uint64_t)f->c->parallel);
	while ((f->trial->batch_rows /= 2) >= 1)
		if (try_trial(f))
			return (uint32_t)f->trial->batch_rows;
	return 0;
}

int
fit_kv_q8_0(struct fit *f)
{
	*f->trial = *f->c;
	f->trial->kv_type_k = f->trial->kv_type_v = KV_Q8_0;
	return (f->c->kv_type_k != KV_Q8_0 || f->c->kv_type_v != KV_Q8_0) &&
	    try_trial(f);
}

int
fit_sublayers(struct fit *f, int max_sessions)
{
	const int have = f->c->nsessions;
	int n;

	if (f->c->half_layers || max_sessions == 1)
		return 0;
	f->sublayers = 1;
	n = max_sessions > have ? fit_fewest_sessions(f, have) :
	    fit_try_sessions(f, have) ? have : 0;
	if (n > have && !fit_try_sessions(f, n))
		n = 0;
	f->sublayers = 0;
	return n;
}

int
fit_all_smaller(struct fit *f, uint32_t *ret_ctx, uint32_t *ret_batch)
{
	struct conf *with = malloc(sizeof(*with));

	*ret_ctx = 0;
	if (with == NULL)
		return 0;
	*with = *f->c;
	with->kv_type_k = with->kv_type_v = KV_Q8_0;
	with->batch_rows = MIN(with->batch_rows, FIT_MIN_BATCH);
	*ret_batch = (uint32_t)with->batch_rows;
	*f->trial = *with;
	*ret_ctx = try_trial(f) ? fit_asked_context(f, with) :
	    fit_largest_context(f, with);
	free(with);
	return *ret_ctx > 0;
}
