/* coordinator/engine/notes.c - notes on a model and a plan, to stderr. */
#include "notes.h"

#include <inttypes.h>

#include "config/log.h"
#include "config/units.h"

void
notes_unused_tensors(const struct gguf *g, const struct model *m)
{
	const struct gguf_tensor *first;
	uint64_t n = model_unused(m, &first);

	if (n > 0)
		log_warnx("%s: %" PRIu64 " of %" PRIu64 " tensors are not "
		    "used by a %s model of %u layers, the first is %s: the "
		    "output differs from the original model's",
		    g->file[first->file].path, n, g->ntensors,
		    arch_info(m->hp.arch)->name, m->hp.n_layer, first->name);
}

/* Explain a session that holds only the embedding or the head: the device of its
 * neighbour cannot map that at once. */
static void
note_lone_end(const struct plan_session *end, const struct plan_session *next,
    const char *what)
{
	char need[UNITS_BYTES_LEN], most[UNITS_BYTES_LEN];
	const struct plan_limits *l = next->limits;

	if (end->u1 - end->u0 != 1 || l == NULL || l->largest_bytes == 0 ||
	    end->bytes[MEM_WEIGHTS] <= l->largest_bytes)
		return;
	log_info("note: session %s holds %s alone: its %s exceed the largest "
	    "mapping of session %s on %s, %s (%s)", end->conf->name, what,
	    units_human_bytes(end->bytes[MEM_WEIGHTS], need),
	    next->conf->name, next->conf->device,
	    units_human_bytes(l->largest_bytes, most), l->largest_from);
}

static void
note_lone_ends(const struct plan *p)
{
	unsigned last = p->nsessions - 1;

	if (last == 0)
		return;
	note_lone_end(&p->session[0], &p->session[1], "the embedding");
	note_lone_end(&p->session[last], &p->session[last - 1],
	    "the output head");
}

void
notes_quota(const struct conf *c, const struct plan *p)
{
	const int parallel = plan_parallel_stages(p) > 1;
	const struct session_conf *s;
	const struct plan_session *less = NULL;
	unsigned threads = 0, i;

	if (c->quota.cores <= 0)
		return;
	for (i = 0; i < p->nsessions; i++) {
		s = p->session[i].conf;
		if (s->threads == 0 && less == NULL &&
		    p->session[i].threads < cpuset_count(&s->cpus))
			less = &p->session[i];
		threads = parallel ? threads + p->session[i].threads :
		    MAX(threads, p->session[i].threads);
	}
	if (less != NULL)
		log_info("note: session %s: %u thread%s for %u cores, because "
		    "the CPU quota pays for %.4g (%s)", less->conf->name,
		    less->threads, less->threads > 1 ? "s" : "",
		    cpuset_count(&less->conf->cpus), c->quota.cores,
		    c->quota.by);
	/* One thread is the least. */
	if (threads > p->nsessions * (unsigned)parallel + !parallel &&
	    (double)threads > c->quota.cores + 1e-6)
		log_info("note: %u threads%s exceed the CPU quota, which pays "
		    "for %.4g cores (%s): they are stopped for a part of each "
		    "period", threads, parallel ? " of all sessions" : "",
		    c->quota.cores, c->quota.by);
}

void
notes_plan(const struct plan *p, const struct room *room)
{
	char need[UNITS_BYTES_LEN], have[UNITS_BYTES_LEN];
	const struct plan_session *ps;
	uint64_t sum = plan_bytes(p, -1), caps = 0;

	for (ps = p->session; ps < p->session + p->nsessions; ps++) {
		if (!ps->conf->cap_given)
			continue;	/* a share of what is free */
		caps += MIN(ps->cap_bytes, UINT64_MAX - caps);
		if (ps->lowered_by[0] != '\0')
			log_info("note: session %s: cap %s lowered to %s: %s",
			    ps->conf->name, units_human_bytes(
			    ps->conf->cap_bytes, need), units_human_bytes(
			    ps->cap_bytes, have), ps->lowered_by);
	}
	if (room != NULL && sum > room->free_bytes)
		log_info("note: memory is overcommitted: the sessions need %s, "
		    "%s is free (%s)", units_human_bytes(sum, need),
		    units_human_bytes(room->free_bytes, have), room->by);
	else if (room != NULL && caps > room->free_bytes)
		log_info("note: caps are overcommitted: they add up to %s, %s "
		    "is free (%s), and the plan needs less",
		    units_human_bytes(caps, need),
		    units_human_bytes(room->free_bytes, have), room->by);
	note_lone_ends(p);
	if (p->ctx_tok > p->model->hp.ctx_train)
		log_info("note: a context of %u tokens; the model was "
		    "trained with %u", p->ctx_tok, p->model->hp.ctx_train);
}

const struct session *
notes_kv_overflow(const struct sessions *ss)
{
	const struct session *s;

	for (s = ss->s; s < ss->s + ss->n; s++)
		if (s->status != NULL && atomic_load_explicit(
		    &s->status->kv_overflow, memory_order_relaxed) != 0)
			return s;
	return NULL;
}

void
notes_kv(const struct sessions *ss)
{
	const struct session *s = notes_kv_overflow(ss);

	if (s != NULL)
		log_warnx("session %s: keys or values exceeded the range of "
		    "F16, 65504, and were stored as infinite, which changes "
		    "the output: use --kv-type f32", s->name);
}
