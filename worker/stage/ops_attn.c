/* worker/stage/ops_attn.c - the KV cache and attention on the host.
 *
 * The work is a line of units.  A unit is one KV head of one tile (some rows of
 * one sequence); its cost follows from the keys it reads.  The line is cut into
 * shares by the threads' speeds (layers/par.h).  A border inside a unit moves
 * to the nearest chunk of keys: the chunks' results are kept in the scratch of
 * the thread that begins the unit, which merges them once all are complete.  A
 * thread that finishes its share steals whole units of other threads.  No
 * result depends on how the line is cut (kernels/kernels.h). */
#include <stdatomic.h>
#include <string.h>

#include "ops_kinds.h"

/* Prefetch the next unit's keys and values early only up to this size: more do
 * not stay in the near caches until the current unit is done. */
enum { EARLY_BYTES = 64 * 1024 };

/* Keys and values of one KV head of one sequence, in the cache. */
struct kv_head {
	uint8_t *k, *v;
};

static struct kv_head
kv_head(const struct ops_ctx *c, uint32_t layer, uint32_t seq, uint32_t h)
{
	const struct kv_layout *kv = &c->p->env.kv;

	return (struct kv_head){ c->kv + kv_k_off(kv, layer, seq, h),
	    c->kv + kv_v_off(kv, layer, seq, h) };
}

/* Store the keys and values of one row at place pos.  The next head's lines are
 * prefetched while one is stored. */
static void
kv_store_row(const struct ops_ctx *c, uint32_t layer, uint32_t seq,
    uint32_t pos, const float *k, const float *v)
{
	const struct kv_conf *f = &c->p->env.kv.conf;
	const struct hparams *hp = c->p->env.hp;
	const uint32_t n = c->p->env.kv.n_head_kv;
	struct kv_head head = kv_head(c, layer, seq, 0), next = head;
	uint32_t h;

	for (h = 0; h < n; h++, head = next) {
		if (h + 1 < n) {
			next = kv_head(c, layer, seq, h + 1);
			kv_prefetch(next.k, f->kfmt, hp->head_dim, next.v, f->vfmt,
			    hp->v_dim, pos);
		}
		kv_store_key(c->k, head.k, f->kfmt, hp->head_dim, pos,
		    k + (size_t)h * hp->head_dim);
		c->k->kv_store(head.v + pos * c->p->env.kv.v_row, f->vfmt,
		    v + (size_t)h * hp->v_dim, hp->v_dim);
	}
}

/* 1 if one of x[n] becomes infinite when it is rounded to F16. */
static int
exceeds_half(const float *x, uint32_t n)
{
	typedef uint32_t lanes __attribute__((vector_size(16)));
	const uint32_t limit = 0x477ff000;	/* 65520 */
	lanes v, over = { 0 };
	uint32_t i, bits;
	int found = 0;

	for (i = 0; i + 4 <= n; i += 4) {
		memcpy(&v, x + i, sizeof(v));
		/* NaN, above 0x7f800000, is not an overflow. */
		v = (v & 0x7fffffff) - limit;
		over |= (lanes)(v <= 0x7f800000 - limit);
	}
	for (; i < n; i++) {
		memcpy(&bits, x + i, sizeof(bits));
		found |= (bits & 0x7fffffff) - limit <= 0x7f800000 - limit;
	}
	return found || (over[0] | over[1] | over[2] | over[3]) != 0;
}

static void
note_overflow(const struct ops_ctx *c, const float *k, const float *v)
{
	const struct kv_conf *f = &c->p->env.kv.conf;
	const struct hparams *hp = c->p->env.hp;
	const uint32_t n = c->p->env.kv.n_head_kv;

	if ((f->kfmt == KV_F16 && exceeds_half(k, n * hp->head_dim)) ||
	    (f->vfmt == KV_F16 && exceeds_half(v, n * hp->v_dim)))
		atomic_store_explicit(c->b->kv_overflow, 1,
		    memory_order_relaxed);
}

/* k (rows, n_head_kv * head_dim), v (rows, n_head_kv * v_dim) */
void
op_kv_store(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi)
{
	const uint32_t layer = op_kv_layer(c->p, op);
	const uint32_t ring = kv_kind_of(&c->p->env.kv, layer)->ring;
	uint32_t pos;
	uint64_t r;

	for (r = lo; r < hi; r++) {
		pos = c->b->pos[r];
		kv_store_row(c, layer, c->b->seq[r], ring > 0 ? pos % ring :
		    pos, row_at(c, op->in[0], r), row_at(c, op->in[1], r));
		if (c->b->kv_overflow != NULL)
			note_overflow(c, row_at(c, op->in[0], r),
			    row_at(c, op->in[1], r));
	}
}

/* The batch's rows, grouped by sequence, cut into tiles.  Tiles follow the
 * order of the rows, so that a thread mostly gets rows whose queries and keys
 * it computed itself: their lines are in its cache. */
struct tiles {
	const struct ops_ctx *c;
	uint32_t *order;	/* [nrows], in the thread's scratch */
	float *scratch;		/* the kernel's, in the same place */
	uint32_t most;		/* rows of a tile */
	uint32_t at;		/* index in order of the next tile */
};

/* Some rows of one sequence.  Each of its units reads the chunks [first, end)
 * of keys, and all its units cost the same. */
struct tile {
	struct attn_arg a;	/* of KV head 0, without k and v */
	uint32_t seq;
	uint32_t first, end;
	uint64_t cost;
	int whole;		/* too large to be cut: parts would not fit */
};

/* The thread's scratch at an offset of program_attn_room(). */
static void *
attn_room(const struct ops_ctx *c, unsigned thread, uint64_t at)
{
	return (uint8_t *)ops_thread_room(c, thread) + at;
}

static struct tiles
tiles_begin(const struct ops_ctx *c, unsigned thread)
{
	const struct hparams *hp = c->p->env.hp;
	uint32_t n_rep = hp->n_head / hp->n_head_kv, n = c->b->nrows, i, at;
	uint32_t count[MAX_SEQS + 1] = { 0 };
	uint64_t share = (uint64_t)n * hp->n_head_kv / (4 * c->par->nthreads);
	struct tiles t = { .c = c };

	t.order = attn_room(c, thread, program_attn_room(c->p).order);
	t.scratch = attn_room(c, thread, 0);
	for (i = 0; i < n; i++)
		count[c->b->seq[i] + 1]++;
	for (i = 0; i < MAX_SEQS; i++)
		count[i + 1] += count[i];
	for (i = 0; i < n; i++) {
		at = count[c->b->seq[i]]++;
		t.order[at] = i;
	}
	/* As many rows as share a block of keys well, but at least some units
	 * for each thread. */
	t.most = MAX(ATTN_QUERIES / n_rep, 1);
	t.most = (uint32_t)MIN(t.most, MAX(share, DIV_UP(8, n_rep)));
	return t;
}

/* Cost of nkeys keys for a tile.  Few queries are bound by memory, many by
 * their products. */
static uint64_t
keys_cost(const struct attn_arg *a, uint32_t nkeys)
{
	return (uint64_t)nkeys * MAX(16, a->nrows * a->n_rep);
}

static uint64_t
chunk_cost(const struct attn_arg *a, uint32_t c)
{
	uint32_t first, end = attn_chunk_keys(a, c, &first);

	return keys_cost(a, end - first);
}

/* Step to the next tile; 0 at the end. */
static int
tiles_next(struct tiles *t, const struct op *op, struct tile *ret)
{
	const struct batch *b = t->c->b;
	const struct program *p = t->c->p;
	const struct hparams *hp = p->env.hp;
	const uint32_t *row = t->order + t->at;
	uint32_t n = 1, first, end;

	if (t->at == b->nrows)
		return 0;
	while (n < t->most && t->at + n < b->nrows &&
	    b->seq[row[n]] == b->seq[row[0]] &&
	    b->pos[row[n]] == b->pos[row[0]] + n)
		n++;
	t->at += n;
	*ret = (struct tile){
		.seq = b->seq[row[0]],
		.a = {
			.q = row_at(t->c, op->in[0], 0),
			.out = row_at(t->c, op->out, 0),
			.ldq = p->t[op->in[0]].row_bytes / sizeof(float),
			.ldo = p->t[op->out].row_bytes / sizeof(float),
			.row = row, .nrows = n, .pos = b->pos[row[0]],
			.kfmt = p->env.kv.conf.kfmt,
			.vfmt = p->env.kv.conf.vfmt,
			.ring = kv_kind_of(&p->env.kv,
			    op_kv_layer(p, op))->ring,
			.n_rep = hp->n_head / hp->n_head_kv,
			.head_dim = hp->head_dim, .v_dim = hp->v_dim,
			.scale = hp->attn_scale,
			.softcap = hp->attn_softcap,
			.window = op->window,
			.scratch = t->scratch,
		},
	};
	ret->end = attn_chunks(&ret->a, &ret->first);
	end = attn_span(&ret->a, &first);
	ret->cost = keys_cost(&ret->a, end - first);
	ret->whole = (ret->end - ret->first) * attn_part_floats(n *
	    ret->a.n_rep, hp->v_dim) > program_attn_room(p).parts_floats;
	return 1;
}

/* The thread whose share of a line of length total holds the middle of [at, at
 * + cost). */
static unsigned
owner(const struct ops_ctx *c, uint64_t total, uint64_t at, uint64_t cost)
{
	return par_owner(c->par, total, at + cost / 2);
}

/* The kernel's arguments for KV head h. */
static struct attn_arg
head_arg(const struct ops_ctx *c, const struct op *op, const struct tile *t,
    uint32_t h)
{
	const struct kv_head kv = kv_head(c, op_kv_layer(c->p, op), t->seq, h);
	struct attn_arg a = t->a;

	a.q += (size_t)h * a.n_rep * a.head_dim;
	a.out += (size_t)h * a.n_rep * a.v_dim;
	if (op->w != NULL)
		a.sink = op->w->vec + h * a.n_rep;
	a.k = kv.k;
	a.v = kv.v;
	return a;
}

static float *
parts_of(const struct ops_ctx *c, unsigned thread)
{
	return attn_room(c, thread, program_attn_room(c->p).parts);
}

/* May a tile's units prefetch the next unit's keys from their beginning?  Not
 * when these would be evicted again, nor when a thread has less than two units
 * for each block of keys of its first unit, which is never prefetched. */
static int
prefetches_early(const struct ops_ctx *c, const struct tile *t, uint64_t total)
{
	const struct kv_layout *kv = &c->p->env.kv;
	const uint64_t units = total / (t->cost * c->par->nthreads);
	uint32_t first, end = attn_span(&t->a, &first);
	uint64_t keys = end - first;

	return keys * (kv->k_row + kv->v_row) <= EARLY_BYTES &&
	    DIV_UP(keys, ATTN_BLOCK) <= units / 2;
}

/* How the line is cut. */
struct cut {
	/* Units of thread t alone: count[t] from first[t] on. */
	uint32_t first[MAX_CPUS], count[MAX_CPUS];
	uint32_t nunits;	/* in the line */
	int shared;		/* some units are cut between threads */
	/* The cut unit that this thread begins, and has to merge. */
	struct attn_arg begun;
	int has_begun;
};

/* Place the next unit of the line, KV head h of the tile, at position at:
 * either one thread gets all of it, or each thread computes its chunks now. */
static void
place_unit(const struct ops_ctx *c, const struct op *op, unsigned thread,
    const struct tile *t, uint32_t h, uint64_t at, uint64_t total,
    struct cut *cut)
{
	const uint32_t unit = cut->nunits++;
	uint64_t last = chunk_cost(&t->a, t->end - 1), cost, step;
	unsigned from = owner(c, total, at, chunk_cost(&t->a, t->first));
	unsigned to = owner(c, total, at + t->cost - last, last);
	struct attn_arg a;
	uint32_t i;

	if (t->whole)
		from = to = owner(c, total, at, t->cost);
	if (from == to) {
		if (cut->count[from]++ == 0)
			cut->first[from] = unit;
		return;
	}
	cut->shared = 1;
	if (thread < from || thread > to)
		return;
	a = head_arg(c, op, t, h);
	if (from == thread) {
		cut->has_begun = 1;
		cut->begun = a;
	}
	step = attn_part_floats(a.nrows * a.n_rep, a.v_dim);
	for (i = t->first; i < t->end; i++, at += cost) {
		cost = chunk_cost(&t->a, i);
		if (owner(c, total, at, cost) == thread)
			c->k->attn_chunk(&a, i, parts_of(c, from) +
			    (i - t->first) * step);
	}
}

/* A position in the line: tile t, whose units end before unit end. */
struct place {
	struct tiles ts;
	struct tile t;
	uint32_t end;
};

/* Move to a unit and return the kernel's arguments for it. */
static struct attn_arg
place_find(const struct ops_ctx *c, const struct op *op,
    const struct tiles *all, uint64_t total, uint32_t unit, struct place *p)
{
	const uint32_t heads = c->p->env.hp->n_head_kv;

	if (p->end == 0 || unit < p->end - heads) {
		p->ts = *all;
		p->end = 0;
	}
	for (; unit >= p->end; p->end += heads) {
		tiles_next(&p->ts, op, &p->t);
		p->t.a.early = prefetches_early(c, &p->t, total);
	}
	return head_arg(c, op, &p->t, unit + heads - p->end);
}

/* The first unit of thread t that nobody has begun; 0 = none.  begin: the
 * caller takes it. */
static int
unit_of(const struct ops_ctx *c, const struct op *op, const struct cut *cut,
    unsigned t, int begin, uint32_t *ret)
{
	_Atomic uint32_t *begun = ops_begun(c, t, c->p->ngroups +
	    op_kv_layer(c->p, op));
	uint32_t at = atomic_load_explicit(begun, memory_order_relaxed);

	if (at < cut->count[t] && begin)
		at = atomic_fetch_add_explicit(begun, 1, memory_order_relaxed);
	if (at >= cut->count[t])
		return 0;
	*ret = cut->first[t] + at;
	return 1;
}

/* Begin a unit of this thread, else of the next one and so on.  A thread with a
 * single unit begins it at once, so it is not worth a cache miss to check. */
static int
unit_begin(const struct ops_ctx *c, const struct op *op, unsigned thread,
    const struct cut *cut, uint32_t *ret)
{
	const unsigned n = c->par->nthreads;
	unsigned i, t;

	for (i = 0; i < n; i++) {
		t = (thread + i) % n;
		if ((t == thread || cut->count[t] > 1) &&
		    unit_of(c, op, cut, t, 1, ret))
			return 1;
	}
	return 0;
}

/* Run units until none is left.  While one runs, the kernel prefetches the next
 * of this thread's units, even though another thread may take it. */
static void
units_run(const struct ops_ctx *c, const struct op *op,
    const struct tiles *all, uint64_t total, unsigned thread,
    const struct cut *cut)
{
	struct place p = { .end = 0 };
	struct attn_arg a, next;
	uint32_t unit;

	while (unit_begin(c, op, thread, cut, &unit)) {
		a = place_find(c, op, all, total, unit, &p);
		if (unit_of(c, op, cut, thread, 0, &unit)) {
			next = place_find(c, op, all, total, unit, &p);
			a.next = &next;
		}
		c->k->attention(&a);
	}
}

void
op_attention(const struct ops_ctx *c, const struct op *op, unsigned thread)
{
	const uint32_t heads = c->p->env.hp->n_head_kv;
	struct tiles all = tiles_begin(c, thread), ts = all;
	uint64_t total = 0, at = 0;
	uint32_t h;
	struct cut cut;
	struct tile t;

	cut.nunits = 0;
	cut.shared = cut.has_begun = 0;
	memset(cut.count, 0, c->par->nthreads * sizeof(cut.count[0]));
	while (tiles_next(&ts, op, &t))
		total += t.cost * heads;
	for (ts = all; tiles_next(&ts, op, &t);)
		for (h = 0; h < heads; h++, at += t.cost)
			place_unit(c, op, thread, &t, h, at, total, &cut);
	units_run(c, op, &all, total, thread, &cut);
	if (!cut.shared)	/* equal on every thread */
		return;
	c->par->barrier(c->par, thread);
	if (cut.has_begun)
		c->k->attn_merge(&cut.begun, parts_of(c, thread));
}
