/* coordinator/plan/solve.c - settings, caps, and the cut that the sizes allow. */
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config/cores.h"
#include "config/devices.h"
#include "shm/layout.h"
#include "sizes.h"
#include "split.h"

/* A slot of logits aims at this size; more rows only when sequences need it. */
#define LOGITS_SLOT_BYTES	(2 * MIB)

unsigned
plan_threads(const struct session_conf *s)
{
	return s->threads > 0 ? (unsigned)s->threads :
	    MAX(cpuset_count(&s->cpus), 1);
}

int
plan_own_cores(const struct conf *c, unsigned s)
{
	int i;

	for (i = 0; i < c->nsessions; i++)
		if (i != (int)s && cpuset_overlaps(&c->session[i].cpus,
		    &c->session[s].cpus))
			return 0;
	return 1;
}

int
plan_core_each(const struct plan_session *ps)
{
	return ps->own_cores && ps->threads <= cpuset_count(&ps->cores);
}

struct plan_session
plan_nothing(const struct session_conf *sc, unsigned threads)
{
	return (struct plan_session){ .conf = sc, .threads = threads,
	    .cores = sc->cpus, .cap_bytes = UINT64_MAX };
}

unsigned
plan_pieces(int half_layers, const struct model *m)
{
	return half_layers ? m->nunits : m->hp.n_layer + 2;
}

/* The unit that piece i begins with. */
static uint32_t
piece_unit(const struct plan *p, uint32_t i)
{
	return p->half_layers || i == 0 ? i : MIN(2 * i - 1,
	    p->model->nunits);
}

unsigned
plan_at_once(const struct plan *p)
{
	unsigned s;

	for (s = 0; s < p->nsessions; s++)
		if (!p->session[s].own_cores)
			return 1;
	return p->nsessions;
}

double
plan_last(const struct plan *p)
{
	double most = 0;
	unsigned s;

	for (s = 0; s < p->nsessions; s++)
		most = MAX(most, p->session[s].row_time);
	return most > 0 ? p->session[p->nsessions - 1].row_time / most : 1;
}

void
plan_ring(const struct plan *p, unsigned s, uint32_t *ret_nslots,
    uint32_t *ret_slot_bytes)
{
	const struct hparams *hp = &p->model->hp;

	if (s == 0) {
		*ret_nslots = SLOTS_IDS;
		*ret_slot_bytes = (uint32_t)slot_bytes(p->batch_rows, 0);
	} else if (s < p->nsessions) {
		*ret_slot_bytes = (uint32_t)slot_bytes(p->batch_rows,
		    hp->n_embd);
		*ret_nslots = plan_at_once(p) > 1 &&
		    *ret_slot_bytes < SLOT_LARGE ? SLOTS_AT_ONCE : SLOTS_STAGE;
	} else {
		*ret_nslots = SLOTS_LOGITS;
		*ret_slot_bytes = (uint32_t)slot_bytes(p->head_rows,
		    hp->n_vocab);
	}
}

int
plan_pays(const struct plan *p, unsigned s, unsigned i)
{
	return !p->pays_once || i == s || i == p->nsessions;
}

/* Weights and KV cache are one buffer each; the others are small. */
uint64_t
plan_over_largest(const struct plan_session *ps)
{
	uint64_t most = MAX(ps->bytes[MEM_WEIGHTS], ps->bytes[MEM_KV]);

	if (ps->limits == NULL || ps->limits->largest_bytes == 0 ||
	    most <= ps->limits->largest_bytes)
		return 0;
	return most - ps->limits->largest_bytes;
}

/* A buffer that the device cannot map lacks room as a whole that does not fit
 * the cap does. */
static uint64_t
split_bytes(void *arg, unsigned s, uint32_t from, uint32_t to)
{
	const struct sizes *z = arg;
	struct plan_session ps;
	uint64_t over;

	sizes_session(z, s, piece_unit(z->plan, from),
	    piece_unit(z->plan, to), &ps);
	ps.limits = z->plan->session[s].limits;
	over = plan_over_largest(&ps);
	return over == 0 ? ps.total_bytes : MAX(ps.total_bytes,
	    z->plan->session[s].cap_bytes + over);
}

/* An equal share, for each session without a cap, of what is free beside the
 * caps that were given. */
static int
default_cap(const struct conf *c, uint64_t free_bytes, uint64_t *ret_share,
    struct err *reterr)
{
	uint64_t given = 0;
	const char *name = NULL;
	unsigned n = 0;
	int i;

	*ret_share = 0;
	for (i = 0; i < c->nsessions; i++) {
		given += MIN(c->session[i].cap_bytes, UINT64_MAX - given);
		if (c->session[i].cap_bytes == 0) {
			name = c->session[i].name;
			n++;
		}
	}
	if (n == 0)
		return 0;
	if (given >= free_bytes)
		return err_set(reterr, ERR_FIT, -ENOSPC, "session %s has no "
		    "cap, and nothing is left for it: %" PRIu64 " bytes are "
		    "free and the other caps promise %" PRIu64 ": give it a "
		    "cap", name, free_bytes, given);
	*ret_share = (free_bytes - given) / n;
	return 0;
}

/* Weights, KV cache, scratch; the device has kept back what else it needs. */
enum { MAPS_NEEDED = 3 };

/* A cap beyond what the device can map is no cap. */
static int
keep_to_device(const struct plan_env *env, struct plan_session *ps,
    uint64_t *emulator, struct err *reterr)
{
	const struct plan_limits *l = env->limits != NULL ?
	    env->limits(ps->conf) : NULL;

	if (l == NULL)
		return 0;
	ps->limits = l;
	if (l->maps != 0 && l->maps < MAPS_NEEDED)
		return err_set(reterr, ERR_FIT, -ENOSPC, "session %s: its "
		    "device %s has room for %" PRIu64 " buffers, and a session "
		    "needs %u", ps->conf->name, ps->conf->device, l->maps,
		    MAPS_NEEDED);
	/* The program lies in the page cache since the probe: no group counts
	 * it, VmHWM does. */
	*emulator = l->emulator_bytes +
	    (env->pays_once ? 0 : l->emulator_file_bytes);
	if (ps->cap_bytes > l->total_bytes) {
		ps->cap_bytes = l->total_bytes;
		ps->capped_by = l;
	}
	return 0;
}

/* Settings that follow from the config and the model. */
static int
set_up(const struct conf *c, const struct plan_env *env, struct sizes *z,
    struct err *reterr)
{
	const struct hparams *hp = &env->model->hp;
	struct plan *p = z->plan;
	struct kv_layout kv;
	uint64_t share;
	int i, rc;

	memset(p, 0, sizeof(*p));
	z->env = env;
	p->model = env->model;
	p->half_layers = c->half_layers;
	p->nsessions = (unsigned)c->nsessions;
	p->ctx_tok = c->ctx_tok > 0 ? (uint32_t)c->ctx_tok :
	    MIN(hp->ctx_train, 4096);
	p->batch_rows = MIN((uint32_t)c->batch_rows, p->ctx_tok);
	p->nseqs = (uint32_t)c->parallel;
	p->pays_once = env->pays_once;
	p->kfmt = c->kv_type_k;
	p->vfmt = c->kv_type_v;
	p->head_rows = (uint32_t)MIN(p->batch_rows, MAX(p->nseqs,
	    MAX(LOGITS_SLOT_BYTES / slot_row_bytes(hp->n_vocab), 1)));
	if (p->nsessions > plan_pieces(p->half_layers, p->model))
		return err_set(reterr, ERR_USAGE, -EINVAL, "%u sessions are "
		    "more than the model can be cut into: the embedding, %u "
		    "%slayers and the output head: give at most %u%s",
		    p->nsessions, p->half_layers ? 2 * hp->n_layer :
		    hp->n_layer, p->half_layers ? "half " : "",
		    plan_pieces(p->half_layers, p->model), p->half_layers ||
		    p->nsessions > p->model->nunits ? "" :
		    ", or --half-layers");
	/* All layers first: what they need stays inside 64 bits. */
	rc = sizes_kv(z, 0, 2 * hp->n_layer, &kv);
	if (rc == 0 && kv.nbytes > INT64_MAX / 2)
		rc = -EOVERFLOW;
	if (rc == -EINVAL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "the KV type %s "
		    "needs heads of a multiple of 32 elements, this model's "
		    "have %u and %u: use f16", kv_type_name(KV_Q8_0),
		    hp->head_dim, hp->v_dim);
	if (rc < 0)
		return err_set(reterr, ERR_FIT, -ENOSPC,
		    "a context of %u tokens is beyond any memory", p->ctx_tok);
	if (slot_bytes(p->batch_rows, hp->n_embd) > UINT32_MAX ||
	    slot_bytes(p->head_rows, hp->n_vocab) > UINT32_MAX)
		return err_set(reterr, ERR_FIT, -ENOSPC, "%u rows of this "
		    "model do not fit into a ring's slot of 4 GiB: use a "
		    "smaller --batch", p->batch_rows);
	if ((rc = default_cap(c, env->free_bytes, &share, reterr)) < 0)
		return rc;
	for (i = 0; i < c->nsessions; i++) {
		struct plan_session *ps = &p->session[i];

		ps->conf = &c->session[i];
		ps->own_cores = plan_own_cores(c, (unsigned)i);
		ps->threads = z->threads[i] = plan_threads(ps->conf);
		ps->cores = !ps->own_cores ? ps->conf->cpus :
		    cores_best(&ps->conf->cpus, env->core_speed,
		    env->core_seconds, ps->threads);
		ps->cap_bytes = ps->conf->cap_bytes != 0 ?
		    ps->conf->cap_bytes : share;
		z->runtime[i] = env->runtime_bytes(env->arg, ps->threads) +
		    env->runtime_more;
		if ((rc = keep_to_device(env, ps, &z->emulator[i],
		    reterr)) < 0)
			return rc;
	}
	return 0;
}

/* On cores of its own a thread is as fast as its core, and all are as fast as
 * the cores together where those are fewer.  What another device does is not
 * the cores' work. */
static double
session_speed(const struct plan_env *env, const struct plan_session *ps)
{
	double sum = 0;
	unsigned cpu;

	if (!ps->own_cores)
		return 1;
	if (!device_is_on_cores(ps->conf->device))
		return ps->threads;
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (cpuset_has(&ps->cores, cpu))
			sum += env->core_speed != NULL ?
			    env->core_speed[cpu] : CORES_FASTEST;
	return sum / CORES_FASTEST;
}

/* What pieces cost is their time for a prompt, whose chunks follow each other
 * through the stages: the slowest sets the pace.  Generation is no guide: a
 * token passes the stages one after the other and takes the sum of their
 * times wherever the cuts are.  A layer's time goes with the bytes of its
 * matrices, for every row of a chunk; the embedding is only copied.  The head,
 * and in its session what the last layer has behind its keys and values, is run
 * for one row of a chunk at most. */
static double
split_cost(void *arg, uint32_t from, uint32_t to)
{
	const struct sizes *z = arg;
	const struct plan *p = z->plan;
	const uint32_t n = p->model->nunits;
	const uint32_t u0 = piece_unit(p, from), u1 = piece_unit(p, to);
	double all = (double)(z->before[u1].token - z->before[u0].token), one;

	if (u1 < n)
		return all;
	one = (double)(z->before[n].after_kv -
	    z->before[model_for_logits(p->model, u0)].after_kv);
	return all - one + one / p->batch_rows;
}

static int
cut(struct sizes *z, unsigned *reterr_session, uint64_t *reterr_short,
    struct err *reterr)
{
	struct plan *p = z->plan;
	uint32_t at[MAX_SESSIONS + 1];
	uint64_t caps[MAX_SESSIONS];
	double speed[MAX_SESSIONS];
	struct split_in in = { .nsessions = p->nsessions,
	    .nunits = plan_pieces(p->half_layers, p->model),
	    .speed = speed, .cap_bytes = caps, .bytes = split_bytes,
	    .cost = split_cost, .arg = z };
	unsigned s;
	int rc;

	for (s = 0; s < p->nsessions; s++) {
		speed[s] = session_speed(z->env, &p->session[s]);
		caps[s] = p->session[s].cap_bytes;
	}
	rc = split_units(&in, reterr_short == NULL ? NULL : at, reterr_session,
	    reterr_short);
	if (rc == -ENOMEM)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	if (reterr_short == NULL)
		return rc;
	for (s = 0; s < p->nsessions; s++) {
		sizes_session(z, s, piece_unit(p, at[s]),
		    piece_unit(p, at[s + 1]), &p->session[s]);
		p->session[s].row_time = split_cost(z, at[s], at[s + 1]) /
		    speed[s];
	}
	return rc;
}

int
plan_try(const struct conf *c, const struct plan_env *env, struct plan *ret,
    unsigned *reterr_session, uint64_t *reterr_short, struct err *reterr)
{
	struct sizes *z;
	int rc;

	if ((z = calloc(1, sizeof(*z))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	z->plan = ret;
	if ((rc = set_up(c, env, z, reterr)) == 0 &&
	    (rc = sizes_measure(z, reterr)) == 0)
		rc = cut(z, reterr_session, reterr_short, reterr);
	sizes_free(z);
	return rc;
}

int
plan_build(const struct conf *c, const struct plan_env *env,
    struct plan *ret, struct err *reterr)
{
	uint64_t lack = 0;
	unsigned s = 0;
	int rc;

	if (reterr != NULL)
		reterr->kind = ERR_NONE;
	rc = plan_try(c, env, ret, &s, &lack, reterr);
	if (rc == -ENOSPC && lack > 0)
		plan_explain_lack(c, env, ret, s, lack, reterr);
	return rc;
}
