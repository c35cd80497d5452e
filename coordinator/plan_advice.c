/* coordinator/plan_advice.c - what would fit when the plan does not. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "plan_priv.h"

static int
fits(const struct conf *c, const struct plan_env *env, struct plan *scratch)
{
	uint64_t lack;
	unsigned s;

	return plan_try(c, env, scratch, &s, &lack, NULL) == 0;
}

static void
add(char *text, size_t len, const char *what)
{
	if (text[0] != '\0')
		strlcat(text, ", or ", len);
	strlcat(text, what, len);
}

static int
fits_with(const struct conf *c, const struct plan_env *env, struct conf *v,
    struct plan *scratch, int nsessions)
{
	*v = *c;
	while (v->nsessions < nsessions)
		v->session[v->nsessions++] = c->session[c->nsessions - 1];
	return fits(v, env, scratch);
}

/* The fewest sessions, all further ones like the last.  More of them never
 * hold less, so halving finds it. */
static void
try_sessions(const struct conf *c, const struct plan_env *env, struct conf *v,
    struct plan *scratch, char *text, size_t len)
{
	int lo = c->nsessions, mid;
	int hi = (int)MIN(MAX_SESSIONS, env->model->nunits);
	char what[128];

	if (lo >= hi || !fits_with(c, env, v, scratch, hi))
		return;
	while (hi - lo > 1) {		/* lo does not fit, hi does */
		mid = lo + (hi - lo) / 2;
		if (fits_with(c, env, v, scratch, mid))
			hi = mid;
		else
			lo = mid;
	}
	snprintf(what, sizeof(what), "%d sessions (%d more like %s)", hi,
	    hi - c->nsessions, c->session[c->nsessions - 1].name);
	add(text, len, what);
}

/* The largest context below the asked one, to a multiple of 64. */
static void
try_context(const struct conf *c, const struct plan_env *env, struct conf *v,
    struct plan *scratch, uint32_t asked, char *text, size_t len)
{
	uint32_t lo = 0, hi = (asked - 1) / 64, mid;
	char what[64];

	*v = *c;
	while (lo < hi) {
		mid = lo + (hi - lo + 1) / 2;
		v->ctx_tok = (int)(mid * 64);
		if (fits(v, env, scratch))
			lo = mid;
		else
			hi = mid - 1;
	}
	if (lo == 0)
		return;
	snprintf(what, sizeof(what), "a context of %u (--ctx %u)", lo * 64,
	    lo * 64);
	add(text, len, what);
}

static void
try_batch(const struct conf *c, const struct plan_env *env, struct conf *v,
    struct plan *scratch, char *text, size_t len)
{
	char what[64];

	*v = *c;
	while ((v->batch_rows /= 2) >= 1) {
		if (!fits(v, env, scratch))
			continue;
		snprintf(what, sizeof(what), "a batch of %d (--batch %d)",
		    v->batch_rows, v->batch_rows);
		add(text, len, what);
		return;
	}
}

static void
try_kv(const struct conf *c, const struct plan_env *env, struct conf *v,
    struct plan *scratch, char *text, size_t len)
{
	*v = *c;
	v->kv_type = KV_Q8_0;
	if (c->kv_type != KV_Q8_0 && fits(v, env, scratch))
		add(text, len, "KV type q8_0 (--kv-type q8_0)");
}

static void
name_range(const struct plan_session *ps, char *buf, size_t len)
{
	buf[0] = '\0';
	if (ps->embedding)
		strlcat(buf, "the embedding", len);
	if (ps->nlayers > 0)
		snprintf(buf + strlen(buf), len - strlen(buf),
		    "%slayers %u-%u", ps->embedding ? ", " : "",
		    ps->first_layer, ps->first_layer + ps->nlayers - 1);
	if (ps->head)
		snprintf(buf + strlen(buf), len - strlen(buf),
		    "%sthe output head", buf[0] != '\0' ? ", " : "");
}

void
plan_explain_lack(const struct conf *c, const struct plan_env *env,
    const struct plan *p, unsigned s, uint64_t lack, struct err *reterr)
{
	const struct plan_session *ps = &p->session[s];
	struct conf *v = malloc(sizeof(*v));
	struct plan *scratch = malloc(sizeof(*scratch));
	char need[UNITS_BYTES_LEN], cap[UNITS_BYTES_LEN];
	char range[96], would[400] = "", grow[64];
	struct plan_env near = *env;

	/* Shares of free memory shrink while one reads. */
	near.free_bytes -= env->free_bytes / 16;
	if (v != NULL && scratch != NULL) {
		try_sessions(c, &near, v, scratch, would, sizeof(would));
		try_context(c, &near, v, scratch, p->ctx_tok, would,
		    sizeof(would));
		try_batch(c, &near, v, scratch, would, sizeof(would));
		try_kv(c, &near, v, scratch, would, sizeof(would));
	}
	snprintf(grow, sizeof(grow), "caps larger by %" PRIu64 " MiB",
	    DIV_UP(lack, MIB));
	add(would, sizeof(would), grow);
	free(v);
	free(scratch);
	name_range(ps, range, sizeof(range));
	err_set(reterr, ERR_FIT, -ENOSPC, "the model does not fit: session %s "
	    "with %s needs %s of its cap of %s: %" PRIu64 " bytes are "
	    "missing; what would fit: %s", ps->conf->name, range,
	    units_human_bytes(ps->total_bytes, need),
	    units_human_bytes(ps->cap_bytes, cap), lack, would);
}
