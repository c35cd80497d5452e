/* coordinator/plan/solve.c - plans one config: its settings, caps, sizes, and
 * the best cut that the sizes allow. */
#include "solve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "config/cores.h"
#include "config/devices.h"
#include "shm/layout.h"
#include "sizes.h"
#include "split.h"

/* A slot of logits has as many rows as fit into this size, or one for each
 * sequence when these are more. */
#define LOGITS_SLOT_BYTES	(2 * MIB)

/* The first unit of piece i: pieces are the embedding, layers (their sublayers
 * with --half-layers) and the head. */
static uint32_t
piece_unit(const struct plan *p, uint32_t i)
{
	return p->half_layers || i == 0 ? i : MIN(2 * i - 1,
	    p->model->nunits);
}

/* For split_units(): a session whose largest buffer exceeds what its device
 * maps, or that exceeds its share of the device's memory, exceeds its cap by as
 * much. */
static uint64_t
split_bytes(void *arg, unsigned s, uint32_t from, uint32_t to)
{
	const struct sizes *z = arg;
	struct plan_session ps;
	uint64_t over;

	sizes_session(z, s, piece_unit(z->plan, from),
	    piece_unit(z->plan, to), &ps);
	ps.limits = z->plan->session[s].limits;
	ps.device_share = z->plan->session[s].device_share;
	over = MAX(plan_buffer_excess(&ps), plan_device_excess(&ps));
	return over == 0 ? ps.total_bytes : MAX(ps.total_bytes,
	    z->plan->session[s].cap_bytes + over);
}

/* The cap of a session of a NUMA node (-1 = any) that has none: an equal share of
 * the memory that is free and not in the caps that were given. */
static int
default_cap(const struct conf *c, int node, uint64_t free_bytes,
    const char *by, uint64_t *ret_share, struct err *reterr)
{
	uint64_t given = 0;
	const char *name = NULL;
	unsigned n = 0;
	int i;

	*ret_share = UINT64_MAX;
	for (i = 0; i < c->nsessions; i++) {
		if (node >= 0 && c->session[i].node != node)
			continue;
		given += MIN(c->session[i].cap_bytes, UINT64_MAX - given);
		if (c->session[i].cap_bytes == 0) {
			name = c->session[i].name;
			n++;
		}
	}
	if (n == 0)
		return 0;
	if (c->another_machine)
		return err_set(reterr, ERR_USAGE, -EINVAL, "session %s has no "
		    "cap, and the memory of another machine is not known: "
		    "give it a cap", name);
	if (given >= free_bytes)
		return err_set(reterr, ERR_FIT, -ENOSPC, "session %s has no "
		    "cap, and no memory is left for one: %" PRIu64 " bytes are "
		    "free%s%s%s, the other caps add up to %" PRIu64 ": give it "
		    "a cap, or make the others smaller", name, free_bytes,
		    *by != '\0' ? " (" : "", by, *by != '\0' ? ")" : "",
		    given);
	*ret_share = (free_bytes - given) / n;
	return 0;
}

/* Without a limit of its own: as much as anything can have, until its size is
 * known. */
#define NO_LIMIT	(INT64_MAX / MAX_SESSIONS)

/* The cap of session ps as the user wants it: given, or a share of the memory of
 * all and of its node. */
static int
wanted_cap(const struct conf *c, const struct plan_env *env,
    struct plan_session *ps, struct err *reterr)
{
	uint64_t share;
	unsigned i;
	int rc;

	ps->cap_bytes = ps->conf->cap_bytes;
	if (ps->cap_bytes != 0)
		return 0;
	if (env->overcommit) {
		ps->cap_bytes = NO_LIMIT;
		return 0;
	}
	if ((rc = default_cap(c, -1, env->free_bytes, env->nrooms > 0 ?
	    env->rooms[0].room.by : "", &ps->cap_bytes, reterr)) < 0)
		return rc;
	for (i = 0; i < env->nrooms; i++) {
		if (env->rooms[i].node < 0 ||
		    env->rooms[i].node != ps->conf->node)
			continue;
		if ((rc = default_cap(c, ps->conf->node,
		    env->rooms[i].room.free_bytes, env->rooms[i].room.by,
		    &share, reterr)) < 0)
			return rc;
		ps->cap_bytes = MIN(ps->cap_bytes, share);
	}
	return 0;
}

static void
lower_cap(struct plan_session *ps, const struct room *r)
{
	if (ps->cap_bytes <= r->cap_bytes)
		return;
	ps->cap_bytes = r->cap_bytes;
	strlcpy(ps->lowered_by, r->cap_by, sizeof(ps->lowered_by));
}

/* The process itself: the first session of a worker has it all. */
static uint64_t
base_bytes(const struct plan_env *env, const struct plan_session *ps,
    unsigned i)
{
	uint64_t n;

	if (ps->worker.n > 1 && env->shared_bytes != NULL &&
	    (n = env->shared_bytes(env->arg, ps->worker.threads,
	    ps->worker.n)) > 0)
		return ps->worker.first == i ? n : 0;
	return env->runtime_bytes(env->arg, ps->threads);
}

void
plan_process_room(const struct plan_env *env, const struct plan_session *ps,
    struct room *ret)
{
	env->process_room(ps->worker.threads, ret);
	if (ret->cap_bytes != UINT64_MAX)
		ret->cap_bytes /= ps->worker.n;
}

/* Lower the cap to what this process can have at all, so that it is one that the
 * session can reach. */
static void
lower_to_rooms(const struct plan_env *env, struct plan_session *ps)
{
	struct room r;
	unsigned i;

	for (i = 0; i < env->nrooms; i++)
		if (env->rooms[i].node < 0 ||
		    env->rooms[i].node == ps->conf->node)
			lower_cap(ps, &env->rooms[i].room);
	if (env->nrooms > 0 && env->process_room != NULL) {
		plan_process_room(env, ps, &r);
		lower_cap(ps, &r);
	}
}

/* The sum of the sessions must be there: -ENOSPC without a message. */
static int
check_rooms(const struct plan_env *env, struct plan *p)
{
	const struct plan_room *r;
	uint64_t need;
	unsigned i;

	for (i = 0; i < env->nrooms; i++) {
		r = &env->rooms[i];
		need = plan_bytes(p, r->node);
		if (need > r->room.free_bytes && need - r->room.free_bytes >
		    p->short_bytes) {
			p->short_room = r;
			p->short_bytes = need - r->room.free_bytes;
		}
	}
	return p->short_room != NULL ? -ENOSPC : 0;
}

/* A session without a cap that overcommits: what it needs, and an eighth. */
static void
trim_caps(struct plan *p)
{
	struct plan_session *ps;

	for (ps = p->session; ps < p->session + p->nsessions; ps++)
		if (ps->conf->cap_bytes == 0)
			ps->cap_bytes = MIN(ps->cap_bytes, ALIGN_UP(
			    ps->total_bytes + ps->total_bytes / 8 + 4 * MIB,
			    MIB));
}

/* Weights, KV cache, scratch; the device has reserved what else it needs. */
enum { MAPS_NEEDED = 3 };

/* Lower the cap to what the device can map, and count its library and its
 * emulator. */
static int
apply_device_limits(const struct plan_env *env, struct plan_session *ps,
    uint64_t *runtime, uint64_t *emulator, struct err *reterr)
{
	const struct plan_limits *l = env->limits != NULL ?
	    env->limits(ps->conf) : NULL;

	if (l == NULL)
		return 0;
	ps->limits = l;
	if (l->maps != 0 && l->maps < MAPS_NEEDED)
		return err_set(reterr, ERR_FIT, -ENOSPC, "session %s: its "
		    "device %s maps at most %" PRIu64 " buffers, and a session "
		    "needs %u", ps->conf->name, ps->conf->device, l->maps,
		    MAPS_NEEDED);
	/* The emulator's program is in the page cache since the probe: no group
	 * is charged for it, but VmHWM includes it. */
	*emulator = l->emulator_bytes +
	    (env->charged_once ? 0 : l->emulator_file_bytes);
	*runtime += l->library_bytes;
	if (ps->cap_bytes > l->total_bytes) {
		ps->cap_bytes = l->total_bytes;
		ps->capped_by = l;
	}
	return 0;
}

/* Share what is free on each device among the sessions on it, by their caps. */
static void
share_devices(struct plan *p)
{
	const struct plan_limits *l;
	double sum;
	unsigned s, t;

	for (s = 0; s < p->nsessions; s++) {
		l = p->session[s].limits;
		if (l == NULL || l->device_free_bytes == 0)
			continue;
		for (sum = 0, t = 0; t < p->nsessions; t++)
			if (p->session[t].limits == l)
				sum += (double)p->session[t].cap_bytes;
		p->session[s].device_share = MAX((uint64_t)(
		    (double)l->device_free_bytes *
		    ((double)p->session[s].cap_bytes / sum)), 1);
	}
}

/* Fill in all of the plan but the cut. */
static int
init_plan(const struct conf *c, const struct plan_env *env, struct sizes *z,
    struct err *reterr)
{
	const struct hparams *hp = &env->model->hp;
	struct plan *p = z->plan;
	struct kv_layout kv;
	int i, rc;

	memset(p, 0, sizeof(*p));
	z->env = env;
	p->model = env->model;
	p->half_layers = c->half_layers;
	p->nsessions = (unsigned)c->nsessions;
	p->ctx_tok = plan_asked_context(c, env->model);
	p->nseqs = (uint32_t)c->parallel;
	/* A batch may hold rows of all sequences. */
	p->batch_rows = (uint32_t)MIN((uint64_t)c->batch_rows,
	    (uint64_t)p->ctx_tok * p->nseqs);
	p->charged_once = env->charged_once;
	p->kfmt = c->kv_type_k;
	p->vfmt = c->kv_type_v;
	p->head_rows = (uint32_t)MIN(p->batch_rows, MAX(p->nseqs,
	    MAX(LOGITS_SLOT_BYTES / slot_row_bytes(hp->n_vocab), 1)));
	if (p->nsessions > plan_pieces(p->half_layers, p->model))
		return err_set(reterr, ERR_USAGE, -EINVAL, "the model cannot "
		    "be cut into %u sessions: it has the embedding, %u %slayers "
		    "and the output head: give at most %u%s",
		    p->nsessions, p->half_layers ? 2 * hp->n_layer :
		    hp->n_layer, p->half_layers ? "half " : "",
		    plan_pieces(p->half_layers, p->model), p->half_layers ||
		    p->nsessions > p->model->nunits ? "" :
		    ", or --half-layers");
	/* All layers first: no range of them overflows 64 bits then. */
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
		    "a context of %u tokens needs more memory than any "
		    "machine has: use a smaller --ctx", p->ctx_tok);
	if (slot_bytes(p->batch_rows, hp->n_embd) > UINT32_MAX ||
	    slot_bytes(p->head_rows, hp->n_vocab) > UINT32_MAX)
		return err_set(reterr, ERR_FIT, -ENOSPC, "%u rows of this "
		    "model do not fit into a ring's slot of 4 GiB: use a "
		    "smaller --batch", p->batch_rows);
	for (i = 0; i < c->nsessions; i++) {
		struct plan_session *ps = &p->session[i];

		ps->conf = &c->session[i];
		ps->own_cores = plan_own_cores(c, (unsigned)i);
		ps->threads = z->threads[i] = plan_threads(ps->conf);
		ps->cores = !ps->own_cores ? ps->conf->cpus :
		    cores_best(&ps->conf->cpus, env->core_speed,
		    env->core_seconds, ps->threads);
		if ((rc = wanted_cap(c, env, ps, reterr)) < 0)
			return rc;
		ps->worker = plan_worker_of(c, (unsigned)i);
		lower_to_rooms(env, ps);
		z->runtime[i] = base_bytes(env, ps, (unsigned)i) +
		    env->runtime_extra_bytes;
		if ((rc = apply_device_limits(env, ps, &z->runtime[i],
		    &z->emulator[i], reterr)) < 0)
			return rc;
	}
	share_devices(p);
	return 0;
}

/* On cores of its own a session is as fast as the sum of the cores that its
 * threads run on.  The speed of cores says nothing about another device. */
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

/* The cost of pieces is their time for a prompt, whose chunks follow each other
 * through the stages, so that the slowest stage sets the pace.  Generation does
 * not depend on the cuts: a token passes the stages one after another, and
 * takes the sum of their times.
 *
 * A layer's time is proportional to the bytes of its matrices, for every row of
 * a chunk; the embedding is only copied.  The head, and in its session the part
 * of the last layer after its keys and values, runs for one row of a chunk at
 * most. */
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
cut_units(struct sizes *z, unsigned *reterr_session, uint64_t *reterr_short,
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
		return err_nomem(reterr, "the split over %u sessions",
		    p->nsessions);
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
plan_solve(const struct conf *c, const struct plan_env *env, struct plan *ret,
    unsigned *reterr_session, uint64_t *reterr_short, struct err *reterr)
{
	uint64_t lack;
	unsigned session;
	struct sizes *z;
	int rc;

	if ((z = calloc(1, sizeof(*z))) == NULL)
		return err_nomem(reterr, "the plan of %d sessions",
		    c->nsessions);
	z->plan = ret;
	if ((rc = init_plan(c, env, z, reterr)) == 0 &&
	    (rc = sizes_measure(z, reterr)) == 0)
		rc = cut_units(z, reterr_session, reterr_short, reterr);
	/* The sum of the sessions follows from the ranges. */
	if (rc == 0 && env->nrooms > 0 && reterr_short == NULL &&
	    !env->no_room_check)
		rc = cut_units(z, &session, &lack, reterr);
	if (rc == 0 && !env->no_room_check)
		rc = check_rooms(env, ret);
	if (rc == 0 && env->overcommit)
		trim_caps(ret);
	sizes_free(z);
	return rc;
}
