/* coordinator/bench/cost.c - counts the operations and bytes of the tests. */
#include "cost.h"

#include <math.h>
#include <string.h>

/* The kind of arithmetic that a matrix kernel uses. */
static enum peak_kind
peak_kind_of(const struct mat_kernel *k)
{
	static const enum peak_kind kinds[] = {
		[ACT_F32] = PEAK_F32, [ACT_Q8] = PEAK_INT8,
		[ACT_BF16] = PEAK_BF16
	};

	return kinds[k->act];
}

void
bench_cost(const struct model *m, const struct kernels *k, enum kv_type kfmt,
    enum kv_type vfmt, uint32_t head_u0, struct bench_cost *ret)
{
	const struct hparams *hp = &m->hp;
	const struct extent *e;
	double ops, position, *kinds;
	uint32_t l, u = 0, late = model_for_logits(m, head_u0);
	int head;

	memset(ret, 0, sizeof(*ret));
	if (hp->n_expert > 0)
		ret->expert_share = (double)hp->n_expert_used / hp->n_expert;
	for (e = m->ext; e < m->ext + m->next; e++) {
		while (e == m->ext + m->first[u + 1])
			u++;
		/* The embedding is a lookup: one row per token. */
		if (role_info(e->role)->use == USE_VECTOR ||
		    e->role == ROLE_TOKEN_EMBD)
			continue;
		ops = 2.0 * e->nrows * e->ncols;
		head = u >= late && !role_before_kv(e->role);
		kinds = head ? ret->head_ops : ret->row_ops;
		if (role_info(e->role)->use == USE_EXPERTS) {
			kinds[peak_kind_of(&k->mat[e->type])] += ops *
			    ret->expert_share;
			*(head ? &ret->head_expert_bytes :
			    &ret->expert_bytes) += (double)e->nbytes;
		} else {
			kinds[peak_kind_of(&k->mat[e->type])] += ops;
			*(head ? &ret->head_bytes : &ret->layer_bytes) +=
			    (double)e->nbytes;
		}
	}
	position = (double)hp->n_head_kv * (double)(kv_row_bytes(kfmt,
	    hp->head_dim) + kv_row_bytes(vfmt, hp->v_dim));
	ret->window = hp->window;
	for (l = 0; l < hp->n_layer; l++)
		if (layer_is_local(hp, l))
			ret->local_kv_bytes += position;
		else
			ret->kv_bytes += position;
}

/* Expected fraction of the experts that at least one of `rows` rows uses. */
static double
experts_used(const struct bench_cost *c, uint32_t rows)
{
	return 1 - pow(1 - c->expert_share, rows);
}

/* Bytes of weights that a batch of `rows` rows reads; `wanted` rows need
 * logits. */
static double
batch_bytes(const struct bench_cost *c, uint32_t rows, uint32_t wanted)
{
	double bytes = c->layer_bytes + c->expert_bytes * experts_used(c, rows);

	if (wanted > 0)
		bytes += c->head_bytes + c->head_expert_bytes *
		    experts_used(c, wanted);
	return bytes;
}

/* Bytes of keys and values that n tokens read, when generated one after another
 * after `depth` positions. */
static double
kv_read_bytes(const struct bench_cost *c, uint32_t n, uint32_t depth)
{
	/* The token at position p attends to p + 1 positions. */
	double bytes = c->kv_bytes * n * (depth + (n + 1) / 2.0);
	uint32_t i;

	for (i = 0; i < n && c->local_kv_bytes > 0; i++)
		bytes += c->local_kv_bytes * MIN(depth + i + 1, c->window);
	return bytes;
}

struct bench_work
bench_work_prompt(const struct bench_cost *c, uint32_t n, uint32_t batch_rows)
{
	struct bench_work w = { 0 };
	uint32_t left;
	unsigned k;

	for (left = n; left > batch_rows; left -= batch_rows)
		w.read_bytes += batch_bytes(c, batch_rows, 0);
	w.read_bytes += batch_bytes(c, left, 1);
	for (k = 0; k < PEAK_NKINDS; k++)
		w.ops[k] = c->row_ops[k] * n + c->head_ops[k];
	return w;
}

struct bench_work
bench_work_generate(const struct bench_cost *c, uint32_t n, uint32_t depth,
    uint32_t nseqs, uint32_t batch_rows)
{
	double rows = (double)n * nseqs;
	struct bench_work w = { .read_bytes = nseqs *
	    kv_read_bytes(c, n, depth) };
	uint32_t left, some;
	unsigned k;

	for (left = nseqs; left > 0; left -= some) {
		some = MIN(left, batch_rows);
		w.read_bytes += n * batch_bytes(c, some, some);
	}
	for (k = 0; k < PEAK_NKINDS; k++)
		w.ops[k] = (c->row_ops[k] + c->head_ops[k]) * rows;
	return w;
}

/* Time for an amount at a rate; 0 when the rate is unknown. */
static double
time_s(double amount, double per_s)
{
	return per_s > 0 ? amount / per_s : 0;
}

double
bench_work_s(const struct bench_work *w, const struct bounds *b,
    enum roof *ret)
{
	double t, longest = 0, most = 0, compute = 0;
	enum roof k;

	*ret = ROOF_READ;
	for (k = 0; k < ROOF_READ; k++) {
		t = time_s(w->ops[k], b->per_s[k]);
		compute += t;
		if (t > most) {
			most = t;
			*ret = k;
		}
	}
	longest = compute;
	if ((t = time_s(w->read_bytes, b->per_s[ROOF_READ])) > longest) {
		longest = t;
		*ret = ROOF_READ;
	}
	if ((t = time_s(w->disk_bytes, b->per_s[ROOF_DISK])) > longest) {
		longest = t;
		*ret = ROOF_DISK;
	}
	return longest;
}
