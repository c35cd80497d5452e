/* tests/unit/batch.c - the rows of each batch: random prompts on stages that
 * are made of hashes.  What a sequence's cache holds is the hash of all tokens
 * it was fed, and the next token follows from it: one row lost, doubled, out of
 * order or of another sequence, and every token behind it is another. */
#include "tests/support/t.h"

#include <errno.h>
#include <string.h>

#include "coordinator/engine/batch.h"

enum { MAX_ROWS = 40, MAX_PROMPT = 100, MAX_PROMPTS = 60, MAX_FLYING = 6 };

struct prompt {
	uint32_t ids[MAX_PROMPT], n;
	uint32_t ntokens;	/* then the text ends: -n */
	uint64_t hash;		/* when it did; 0 = not yet */
	uint32_t made;
};

struct flying {
	struct batch_out out;
	struct batch_row row[MAX_ROWS];
	uint64_t hash[MAX_ROWS];	/* what each row computed */
};

struct world {
	struct batcher b;
	struct prompt prompt[MAX_PROMPTS];
	uint32_t nprompts, next, ended;
	uint32_t of[MAX_SEQS];		/* prompt in this slot */
	int taken[MAX_SEQS];
	uint64_t hash[MAX_SEQS];	/* the stages' caches */
	uint32_t len[MAX_SEQS];
	struct flying fly[MAX_FLYING];	/* a ring: batches come back in order */
	uint32_t first, nflying, depth;
	uint32_t most_rows, nmixed, nbatches;
};

static uint64_t
mix(uint64_t h, uint32_t token)
{
	return (h ^ token) * UINT64_C(0x100000001b3) + 1;
}

static uint32_t
token_after(uint64_t h)
{
	return (uint32_t)(h >> 7) & 0xfff;
}

/* Some texts end by themselves. */
static int
is_last(const struct prompt *p, uint64_t h)
{
	return p->made == p->ntokens || token_after(h) % 50 == 0;
}

/* The same text with nobody else about. */
static uint64_t
hash_alone(const struct prompt *prompt)
{
	struct prompt p = *prompt;
	uint64_t h = 0;
	uint32_t i;

	for (i = 0; i < p.n; i++)
		h = mix(h, p.ids[i]);
	for (p.made = 0; !is_last(&p, h); p.made++)
		h = mix(h, token_after(h));
	return h;
}

static uint32_t
half(const void *arg, uint32_t n, uint32_t left)
{
	(void)arg;
	(void)left;
	return n / 2;
}

static uint32_t
whole(const void *arg, uint32_t n, uint32_t left)
{
	(void)arg;
	(void)left;
	return n;
}

static void
world_init(struct world *w, const struct batch_conf *conf, uint32_t nprompts,
    uint32_t longest, uint32_t ntokens)
{
	struct prompt *p;
	uint32_t i, k;

	memset(w, 0, sizeof(*w));
	batch_init(&w->b, conf);
	w->nprompts = nprompts;
	w->depth = MAX_FLYING;
	for (i = 0; i < nprompts; i++) {
		p = &w->prompt[i];
		p->n = 1 + (uint32_t)t_rand_below(longest);
		p->ntokens = (uint32_t)t_rand_below(ntokens + 1);
		for (k = 0; k < p->n; k++)
			p->ids[k] = (uint32_t)t_rand_below(1 << 20);
	}
}

static void
start_prompts(struct world *w)
{
	uint32_t seq;

	while (w->next < w->nprompts && batch_has_slot(&w->b)) {
		seq = batch_start(&w->b, w->prompt[w->next].ids,
		    w->prompt[w->next].n);
		ck_assert_uint_lt(seq, w->b.conf.nseqs);
		ck_assert_int_eq(w->taken[seq], 0);
		w->taken[seq] = 1;
		w->of[seq] = w->next++;
	}
}

/* What the stages do with a batch, and what must hold for it. */
static void
compute(struct world *w, struct flying *f, int making)
{
	const struct batch_conf *conf = &w->b.conf;
	const struct batch_row *r;
	const struct prompt *p;
	uint32_t i, ntokens = 0;
	int last;

	if (f->out.kind == BATCH_FORGET) {
		w->len[f->out.seq] = 0;
		w->hash[f->out.seq] = 0;
		return;
	}
	ck_assert_int_eq(f->out.kind, BATCH_DATA);
	ck_assert_uint_ge(f->out.nrows, 1);
	ck_assert_uint_le(f->out.nrows, conf->batch_rows);
	for (i = 0; i < f->out.nrows; i++) {
		r = &f->row[i];
		ck_assert_uint_lt(r->seq, conf->nseqs);
		ck_assert_int_eq(w->taken[r->seq], 1);
		p = &w->prompt[w->of[r->seq]];
		ck_assert_uint_eq(r->pos, w->len[r->seq]++);
		last = r->pos + 1 >= p->n;
		ck_assert_uint_eq(r->flags, last ? ROW_LOGITS : 0);
		w->hash[r->seq] = mix(w->hash[r->seq], r->token);
		f->hash[i] = w->hash[r->seq];
		if (r->pos >= p->n)
			ck_assert_uint_eq(ntokens++, i);	/* in front */
	}
	w->nbatches++;
	w->most_rows = MAX(w->most_rows, f->out.nrows);
	w->nmixed += ntokens > 0 && ntokens < f->out.nrows;
	if (!making)
		return;
	ck_assert_uint_le(f->out.nrows, MAX(conf->mixed_rows, 2 * ntokens));
	ck_assert_uint_le(w->b.in_flight, conf->groups);
}

/* Send one thing; 0 = there is nothing to send. */
static int
send_one(struct world *w)
{
	struct flying *f = &w->fly[(w->first + w->nflying) % MAX_FLYING];
	int making = w->b.ngenerating > 0;

	if (w->nflying == w->depth)
		return 0;
	start_prompts(w);
	f->out = (struct batch_out){ .rows = f->row };
	if (batch_next(&w->b, &f->out) == 0)
		return 0;
	w->nflying++;
	compute(w, f, making);
	return 1;
}

static void
take_row(struct world *w, const struct batch_row *r, uint64_t hash)
{
	struct prompt *p = &w->prompt[w->of[r->seq]];

	ck_assert_int_eq(batch_answer(&w->b, r), 0);
	ck_assert_int_eq(batch_answer(&w->b, r), -EPROTO);	/* once */
	if (!is_last(p, hash)) {
		p->made++;
		batch_token(&w->b, r->seq, token_after(hash));
		return;
	}
	p->hash = hash;
	w->ended++;
	w->taken[r->seq] = 0;
	batch_end(&w->b, r->seq);
}

/* The oldest batch comes back. */
static void
take_one(struct world *w)
{
	struct flying *f = &w->fly[w->first];
	uint32_t i;

	ck_assert_uint_gt(w->nflying, 0);
	if (f->out.kind == BATCH_DATA)
		for (i = 0; i < f->out.nrows; i++)
			if (f->row[i].flags & ROW_LOGITS)
				take_row(w, &f->row[i], f->hash[i]);
	ck_assert_int_eq(batch_done(&w->b, f->out.kind), 0);
	w->first = (w->first + 1) % MAX_FLYING;
	w->nflying--;
}

/* With nothing in flight and nothing to send all must have ended. */
static void
run_world(struct world *w)
{
	uint32_t i;

	for (;;) {
		if (t_rand_below(3) != 0 && send_one(w))
			continue;
		if (w->nflying > 0)
			take_one(w);
		else if (!send_one(w))
			break;
	}
	ck_assert_uint_eq(w->ended, w->nprompts);
	ck_assert_uint_eq(w->b.in_flight, 0);
	ck_assert_uint_eq(w->b.pending, 0);
	ck_assert_uint_eq(w->b.ngenerating, 0);
	for (i = 0; i < w->nprompts; i++)
		ck_assert_uint_eq(w->prompt[i].hash,
		    hash_alone(&w->prompt[i]));
}

START_TEST(every_text_is_what_it_is_alone)
{
	static struct world w;
	uint32_t round, nmixed = 0;

	for (round = 0; round < 200; round++) {
		struct batch_conf conf = {
			.nseqs = 1 + (uint32_t)t_rand_below(12),
			.batch_rows = 1 + (uint32_t)t_rand_below(MAX_ROWS),
			.mixed_rows = 1 + (uint32_t)t_rand_below(20),
			.groups = 1 + (uint32_t)t_rand_below(4),
			.chunk = t_rand_below(2) ? half : whole,
		};

		world_init(&w, &conf, (uint32_t)t_rand_below(MAX_PROMPTS),
		    1 + (uint32_t)t_rand_below(MAX_PROMPT), 20);
		w.depth = 1 + (uint32_t)t_rand_below(MAX_FLYING);
		run_world(&w);
		nmixed += w.nmixed;
	}
	ck_assert_uint_gt(nmixed, 300);
}
END_TEST

START_TEST(all_slots_there_can_be)
{
	static struct world w;
	struct batch_conf conf = { .nseqs = MAX_SEQS,
	    .batch_rows = MAX_ROWS, .mixed_rows = MAX_ROWS, .groups = 3,
	    .chunk = whole };

	world_init(&w, &conf, MAX_PROMPTS, 3, 200);
	run_world(&w);
	ck_assert_uint_eq(w.most_rows, MAX_ROWS);
}
END_TEST

/* n sequences beyond their prompts, nothing in flight. */
static void
make_texts(struct world *w, uint32_t n)
{
	w->nprompts = n;
	while (send_one(w))
		;
	while (w->nflying > 0) {
		take_one(w);
		if (w->b.pending > 0)
			send_one(w);
	}
	ck_assert_uint_eq(w->b.ngenerating, n);
}

/* None of these n texts ends within so many tokens. */
enum { LONG = 20 };

static int
is_long(const struct prompt *prompt)
{
	struct prompt p = *prompt;
	uint64_t h = 0;
	uint32_t i;

	p.ntokens = UINT32_MAX;
	for (i = 0; i < p.n; i++)
		h = mix(h, p.ids[i]);
	for (i = 0; i < LONG && !is_last(&p, h); i++)
		h = mix(h, token_after(h));
	return i == LONG;
}

static void
long_texts(struct world *w, const struct batch_conf *conf, uint32_t n,
    uint32_t longest)
{
	uint32_t i;

	world_init(w, conf, n, longest, 0);
	for (i = 0; i < n; i++) {
		w->prompt[i].ntokens = UINT32_MAX;
		while (!is_long(&w->prompt[i]))
			w->prompt[i].ids[0]++;
	}
}

START_TEST(tokens_of_all_texts_go_together)
{
	static struct world w;
	struct batch_conf conf = { .nseqs = 9, .batch_rows = MAX_ROWS,
	    .mixed_rows = 32, .groups = 1, .chunk = whole };
	uint32_t step;

	long_texts(&w, &conf, 9, 5);
	make_texts(&w, 9);
	for (step = 0; step < 5; step++) {
		ck_assert_int_eq(send_one(&w), 1);
		ck_assert_uint_eq(w.fly[w.first].out.nrows, 9);
		ck_assert_int_eq(send_one(&w), 0);	/* one group */
		take_one(&w);
	}
}
END_TEST

START_TEST(groups_share_the_texts)
{
	static struct world w;
	struct batch_conf conf = { .nseqs = 7, .batch_rows = MAX_ROWS,
	    .mixed_rows = 32, .groups = 3, .chunk = whole };
	uint32_t step;

	long_texts(&w, &conf, 7, 5);
	make_texts(&w, 7);
	ck_assert_int_eq(send_one(&w), 1);
	ck_assert_int_eq(send_one(&w), 1);
	ck_assert_int_eq(send_one(&w), 1);
	ck_assert_uint_eq(w.fly[w.first].out.nrows, 3);
	ck_assert_uint_eq(w.fly[w.first + 1].out.nrows, 3);
	ck_assert_uint_eq(w.fly[w.first + 2].out.nrows, 1);
	for (step = 0; step < 9; step++) {	/* and stay three */
		ck_assert_int_eq(send_one(&w), 0);
		take_one(&w);
		ck_assert_int_eq(send_one(&w), 1);
	}
}
END_TEST

START_TEST(no_text_falls_behind_when_a_batch_is_too_small)
{
	static struct world w;
	struct batch_conf conf = { .nseqs = 8, .batch_rows = 3,
	    .mixed_rows = 3, .groups = 1, .chunk = whole };
	uint32_t step, i, least, most;

	long_texts(&w, &conf, 8, 1);	/* in three batches, all at once */
	make_texts(&w, 8);
	for (step = 0; step < 20; step++) {
		ck_assert_int_eq(send_one(&w), 1);
		ck_assert_uint_eq(w.fly[w.first].out.nrows, 3);
		take_one(&w);
		least = UINT32_MAX;
		most = 0;
		for (i = 0; i < 8; i++) {
			least = MIN(least, w.prompt[i].made);
			most = MAX(most, w.prompt[i].made);
		}
		ck_assert_uint_le(most - least, 1);
	}
}
END_TEST

START_TEST(a_prompt_joins_in_pieces_beside_tokens)
{
	static struct world w;
	struct batch_conf conf = { .nseqs = 3, .batch_rows = MAX_ROWS,
	    .mixed_rows = 16, .groups = 1, .chunk = whole };

	long_texts(&w, &conf, 2, 5);
	make_texts(&w, 2);
	w.nprompts = 3;
	w.prompt[2] = (struct prompt){ .n = 30, .ntokens = 9 };
	ck_assert_int_eq(send_one(&w), 1);
	ck_assert_uint_eq(w.fly[w.first].out.nrows, 16);
	take_one(&w);
	ck_assert_int_eq(send_one(&w), 1);
	ck_assert_uint_eq(w.fly[w.first].out.nrows, 16);
	take_one(&w);
	ck_assert_int_eq(send_one(&w), 1);
	ck_assert_uint_eq(w.fly[w.first].out.nrows, 4);
	take_one(&w);
	ck_assert_uint_eq(w.b.ngenerating, 3);
}
END_TEST

START_TEST(rows_that_nobody_asked_for_are_refused)
{
	static struct world w;
	struct batch_conf conf = { .nseqs = 2, .batch_rows = 8,
	    .mixed_rows = 8, .groups = 1, .chunk = whole };
	struct batch_row r;

	world_init(&w, &conf, 1, 5, 5);
	ck_assert_int_eq(batch_done(&w.b, BATCH_DATA), -EPROTO);
	ck_assert_int_eq(send_one(&w), 1);
	r = w.fly[0].row[w.fly[0].out.nrows - 1];
	r.pos++;
	ck_assert_int_eq(batch_answer(&w.b, &r), -EPROTO);
	r.pos--;
	r.seq = !r.seq;
	ck_assert_int_eq(batch_answer(&w.b, &r), -EPROTO);
	r.seq = 2;
	ck_assert_int_eq(batch_answer(&w.b, &r), -EPROTO);
	r.seq = UINT32_MAX;
	ck_assert_int_eq(batch_answer(&w.b, &r), -EPROTO);
	take_one(&w);
	ck_assert_int_eq(batch_done(&w.b, BATCH_DATA), -EPROTO);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_text_is_what_it_is_alone,
		all_slots_there_can_be,
		tokens_of_all_texts_go_together,
		groups_share_the_texts,
		no_text_falls_behind_when_a_batch_is_too_small,
		a_prompt_joins_in_pieces_beside_tokens,
		rows_that_nobody_asked_for_are_refused
	};

	return t_main("batch", 60, tests, NITEMS(tests));
}
