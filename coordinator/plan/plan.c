/* coordinator/plan/plan.c - questions about a config, and about a plan that is
 * made. */
#include "plan.h"

#include "shm/layout.h"

unsigned
plan_threads(const struct session_conf *s)
{
	unsigned n = MAX(cpuset_count(&s->cpus), 1);

	if (s->threads > 0)
		return (unsigned)s->threads;
	return s->quota_threads > 0 ? MIN(n, (unsigned)s->quota_threads) : n;
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

struct plan_worker
plan_worker_of(const struct conf *c, unsigned s)
{
	struct plan_worker w = { .first = s };
	unsigned i;

	for (i = 0; i < (unsigned)c->nsessions; i++) {
		if (!conf_shares_worker(&c->session[i], &c->session[s]))
			continue;
		w.first = MIN(w.first, i);
		w.threads += plan_threads(&c->session[i]);
		w.n++;
	}
	return w;
}

int
plan_core_each(const struct plan_session *ps)
{
	return ps->own_cores && ps->threads <= cpuset_count(&ps->cores);
}

struct plan_session
plan_empty_session(const struct session_conf *sc, unsigned threads)
{
	return (struct plan_session){ .conf = sc, .threads = threads,
	    .cores = sc->cpus, .cap_bytes = UINT64_MAX,
	    .worker = { .n = 1, .threads = threads } };
}

unsigned
plan_pieces(int half_layers, const struct model *m)
{
	return half_layers ? m->nunits : m->hp.n_layer + 2;
}

unsigned
plan_parallel_stages(const struct plan *p)
{
	unsigned s;

	for (s = 0; s < p->nsessions; s++)
		if (!p->session[s].own_cores)
			return 1;
	return p->nsessions;
}

double
plan_last_ratio(const struct plan *p)
{
	double most = 0;
	unsigned s;

	for (s = 0; s < p->nsessions; s++)
		most = MAX(most, p->session[s].row_time);
	return most > 0 ? p->session[p->nsessions - 1].row_time / most : 1;
}

uint64_t
plan_bytes(const struct plan *p, int node)
{
	uint64_t sum = 0;
	unsigned s;

	for (s = 0; s < p->nsessions; s++)
		if (node < 0 || p->session[s].conf->node == node)
			sum += p->session[s].total_bytes;
	return sum;
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
		*ret_nslots = plan_parallel_stages(p) > 1 &&
		    *ret_slot_bytes < SLOT_LARGE ? SLOTS_PARALLEL : SLOTS_STAGE;
	} else {
		*ret_nslots = SLOTS_LOGITS;
		*ret_slot_bytes = (uint32_t)slot_bytes(p->head_rows,
		    hp->n_vocab);
	}
}

int
plan_charges_ring(const struct plan *p, unsigned s, unsigned i)
{
	return !p->charged_once || i == s || i == p->nsessions;
}

uint64_t
plan_device_excess(const struct plan_session *ps)
{
	return ps->device_share > 0 && ps->device_bytes > ps->device_share ?
	    ps->device_bytes - ps->device_share : 0;
}

/* Weights and KV cache are one buffer each; all other buffers are small. */
uint64_t
plan_buffer_excess(const struct plan_session *ps)
{
	uint64_t most = MAX(ps->bytes[MEM_WEIGHTS], ps->bytes[MEM_KV]);

	if (ps->limits == NULL || ps->limits->largest_bytes == 0 ||
	    most <= ps->limits->largest_bytes)
		return 0;
	return most - ps->limits->largest_bytes;
}
