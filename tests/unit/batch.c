/* tests/unit/batch.c - tests of the batcher: random prompts on simulated
 * stages.  The KV cache of a sequence is the hash of all tokens fed to it, and
 * its next token follows from that hash.  A row that is lost, duplicated, out
 * of order or of another sequence changes every later token. */
#include "tests/support/t.h"

#include <errno.h>
#include <string.h>

#include "coordinator/engine/batch.h"

enum { MAX_ROWS = 40, MAX_PROMPT = 100, MAX_PROMPTS = 60, MAX_IN_FLIGHT = 6 };

struct prompt {
	uint32_t ids[MAX_PROMPT], n;
	uint32_t ntokens;	/* most tokens to generate, as -n */
	uint64_t hash;		/* when it ended; 0 = not yet */
	uint32_t ngenerated;
};

struct sent_batch {
	struct batch_out out;
	struct batch_row row[MAX_ROWS];
	uint64_t hash[MAX_ROWS];	/* result of each row */
};

struct sim {
	struct batcher b;
	struct prompt prompt[MAX_PROMPTS];
	uint32_t nprompts, next, ended;
	uint32_t prompt_of[MAX_SEQS];	/* prompt of each slot */
	int is_used[MAX_SEQS];
	uint64_t hash[MAX_SEQS];	/* simulated KV caches */
	uint32_t len[MAX_SEQS];
	struct sent_batch sent[MAX_IN_FLIGHT];	/* ring: they return in order */
	uint32_t first, nsent, depth;
	uint32_t max_rows, nmixed;
};

static uint64_t
add_token(uint64_t h, uint32_t token)
{
	return (h ^ token) * UINT64_C(0x100000001b3) + 1;
}

static uint32_t
next_token(uint64_t h)
{
	return (uint32_t)(h >> 7) & 0xfff;
}

/* Some sequences end before their limit. */
static int
has_ended(const struct prompt *p, uint64_t h)
{
	return p->ngenerated == p->ntokens || next_token(h) % 50 == 0;
}

/* The final hash of a sequence that runs alone. */
static uint64_t
hash_alone(const struct prompt *prompt)
{
	struct prompt p = *prompt;
	uint64_t h = 0;
	uint32_t i;

	for (i = 0; i < p.n; i++)
		h = add_token(h, p.ids[i]);
	for (p.ngenerated = 0; !has_ended(&p, h); p.ngenerated++)
		h = add_token(h, next_token(h));
	return h;
}

static uint32_t
chunk_half(const void *arg, uint32_t n, uint32_t left)
{
	(void)arg;
	(void)left;
	return n / 2;
}

static uint32_t
chunk_whole(const void *arg, uint32_t n, uint32_t left)
{
	(void)arg;
	(void)left;
	return n;
}

static void
init_sim(struct sim *s, const struct batch_conf *conf, uint32_t nprompts,
    uint32_t max_len, uint32_t ntokens)
{
	struct prompt *p;
	uint32_t i, k;

	memset(s, 0, sizeof(*s));
	batch_init(&s->b, conf);
	s->nprompts = nprompts;
	s->depth = MAX_IN_FLIGHT;
	for (i = 0; i < nprompts; i++) {
		p = &s->prompt[i];
		p->n = 1 + (uint32_t)t_rand_below(max_len);
		p->ntokens = (uint32_t)t_rand_below(ntokens + 1);
		for (k = 0; k < p->n; k++)
			p->ids[k] = (uint32_t)t_rand_below(1 << 20);
	}
}

static void
start_prompts(struct sim *s)
{
	uint32_t seq;

	while (s->next < s->nprompts && batch_has_slot(&s->b)) {
		seq = batch_start(&s->b, s->prompt[s->next].ids,
		    s->prompt[s->next].n);
		ck_assert_uint_lt(seq, s->b.conf.nseqs);
		ck_assert_int_eq(s->is_used[seq], 0);
		s->is_used[seq] = 1;
		s->prompt_of[seq] = s->next++;
	}
}

/* Check the rows of a batch and simulate the stages' work on it. */
static void
compute_batch(struct sim *s, struct sent_batch *f, int generating)
{
	const struct batch_conf *conf = &s->b.conf;
	const struct batch_row *r;
	const struct prompt *p;
	uint32_t i, ntokens = 0;
	int last;

	if (f->out.kind == BATCH_FORGET) {
		s->len[f->out.seq] = 0;
		s->hash[f->out.seq] = 0;
		return;
	}
	ck_assert_int_eq(f->out.kind, BATCH_DATA);
	ck_assert_uint_ge(f->out.nrows, 1);
	ck_assert_uint_le(f->out.nrows, conf->batch_rows);
	for (i = 0; i < f->out.nrows; i++) {
		r = &f->row[i];
		ck_assert_uint_lt(r->seq, conf->nseqs);
		ck_assert_int_eq(s->is_used[r->seq], 1);
		p = &s->prompt[s->prompt_of[r->seq]];
		ck_assert_uint_eq(r->pos, s->len[r->seq]++);
		last = r->pos + 1 >= p->n;
		ck_assert_uint_eq(r->flags, last ? ROW_LOGITS : 0);
		s->hash[r->seq] = add_token(s->hash[r->seq], r->token);
		f->hash[i] = s->hash[r->seq];
		if (r->pos >= p->n)
			/* Generated tokens come first. */
			ck_assert_uint_eq(ntokens++, i);
	}
	s->max_rows = MAX(s->max_rows, f->out.nrows);
	s->nmixed += ntokens > 0 && ntokens < f->out.nrows;
	if (!generating)
		return;
	ck_assert_uint_le(f->out.nrows, MAX(conf->mixed_rows, 2 * ntokens));
	ck_assert_uint_le(s->b.in_flight, conf->groups);
}

/* Send the next batch; 0 = there is none. */
static int
send_batch(struct sim *s)
{
	struct sent_batch *f = &s->sent[(s->first + s->nsent) % MAX_IN_FLIGHT];
	int generating = s->b.ngenerating > 0;

	if (s->nsent == s->depth)
		return 0;
	start_prompts(s);
	f->out = (struct batch_out){ .rows = f->row };
	if (batch_next(&s->b, &f->out) == 0)
		return 0;
	s->nsent++;
	compute_batch(s, f, generating);
	return 1;
}

static void
receive_row(struct sim *s, const struct batch_row *r, uint64_t hash)
{
	struct prompt *p = &s->prompt[s->prompt_of[r->seq]];

	ck_assert_int_eq(batch_answer(&s->b, r), 0);
	/* A second answer to one row. */
	ck_assert_int_eq(batch_answer(&s->b, r), -EPROTO);
	if (!has_ended(p, hash)) {
		p->ngenerated++;
		batch_token(&s->b, r->seq, next_token(hash));
		return;
	}
	p->hash = hash;
	s->ended++;
	s->is_used[r->seq] = 0;
	batch_end(&s->b, r->seq);
}

/* Take the results of the oldest batch. */
static void
receive_batch(struct sim *s)
{
	struct sent_batch *f = &s->sent[s->first];
	uint32_t i;

	ck_assert_uint_gt(s->nsent, 0);
	if (f->out.kind == BATCH_DATA)
		for (i = 0; i < f->out.nrows; i++)
			if (f->row[i].flags & ROW_LOGITS)
				receive_row(s, &f->row[i], f->hash[i]);
	ck_assert_int_eq(batch_done(&s->b, f->out.kind), 0);
	s->first = (s->first + 1) % MAX_IN_FLIGHT;
	s->nsent--;
}

/* Send and receive in random order until nothing is in flight and nothing is
 * left to send: every sequence must have ended as if it ran alone. */
static void
run_sim(struct sim *s)
{
	uint32_t i;

	for (;;) {
		if (t_rand_below(3) != 0 && send_batch(s))
			continue;
		if (s->nsent > 0)
			receive_batch(s);
		else if (!send_batch(s))
			break;
	}
	ck_assert_uint_eq(s->ended, s->nprompts);
	ck_assert_uint_eq(s->b.in_flight, 0);
	ck_assert_uint_eq(s->b.pending, 0);
	ck_assert_uint_eq(s->b.ngenerating, 0);
	for (i = 0; i < s->nprompts; i++)
		ck_assert_uint_eq(s->prompt[i].hash,
		    hash_alone(&s->prompt[i]));
}

START_TEST(batching_does_not_change_a_sequence)
{
	static struct sim s;
	uint32_t round, nmixed = 0;

	for (round = 0; round < 200; round++) {
		struct batch_conf conf = {
			.nseqs = 1 + (uint32_t)t_rand_below(12),
			.batch_rows = 1 + (uint32_t)t_rand_below(MAX_ROWS),
			.mixed_rows = 1 + (uint32_t)t_rand_below(20),
			.groups = 1 + (uint32_t)t_rand_below(4),
			.chunk = t_rand_below(2) ? chunk_half : chunk_whole,
		};

		init_sim(&s, &conf, (uint32_t)t_rand_below(MAX_PROMPTS),
		    1 + (uint32_t)t_rand_below(MAX_PROMPT), 20);
		s.depth = 1 + (uint32_t)t_rand_below(MAX_IN_FLIGHT);
		run_sim(&s);
		nmixed += s.nmixed;
	}
	ck_assert_uint_gt(nmixed, 300);
}
END_TEST

START_TEST(all_slots_can_be_in_use)
{
	static struct sim s;
	struct batch_conf conf = { .nseqs = MAX_SEQS,
	    .batch_rows = MAX_ROWS, .mixed_rows = MAX_ROWS, .groups = 3,
	    .chunk = chunk_whole };

	init_sim(&s, &conf, MAX_PROMPTS, 3, 200);
	run_sim(&s);
	ck_assert_uint_eq(s.max_rows, MAX_ROWS);
}
END_TEST

/* Bring n sequences past their prompts, with nothing left in flight. */
static void
start_generating(struct sim *s, uint32_t n)
{
	s->nprompts = n;
	while (send_batch(s))
		;
	while (s->nsent > 0) {
		receive_batch(s);
		if (s->b.pending > 0)
			send_batch(s);
	}
	ck_assert_uint_eq(s->b.ngenerating, n);
}

/* A long sequence generates at least this many tokens. */
enum { LONG = 20 };

static int
is_long(const struct prompt *prompt)
{
	struct prompt p = *prompt;
	uint64_t h = 0;
	uint32_t i;

	p.ntokens = UINT32_MAX;
	for (i = 0; i < p.n; i++)
		h = add_token(h, p.ids[i]);
	for (i = 0; i < LONG && !has_ended(&p, h); i++)
		h = add_token(h, next_token(h));
	return i == LONG;
}

static void
init_long_sim(struct sim *s, const struct batch_conf *conf, uint32_t n,
    uint32_t max_len)
{
	uint32_t i;

	init_sim(s, conf, n, max_len, 0);
	for (i = 0; i < n; i++) {
		s->prompt[i].ntokens = UINT32_MAX;
		while (!is_long(&s->prompt[i]))
			s->prompt[i].ids[0]++;
	}
}

START_TEST(tokens_of_all_sequences_share_a_batch)
{
	static struct sim s;
	struct batch_conf conf = { .nseqs = 9, .batch_rows = MAX_ROWS,
	    .mixed_rows = 32, .groups = 1, .chunk = chunk_whole };
	uint32_t step;

	init_long_sim(&s, &conf, 9, 5);
	start_generating(&s, 9);
	for (step = 0; step < 5; step++) {
		ck_assert_int_eq(send_batch(&s), 1);
		ck_assert_uint_eq(s.sent[s.first].out.nrows, 9);
		ck_assert_int_eq(send_batch(&s), 0);	/* one group */
		receive_batch(&s);
	}
}
END_TEST

START_TEST(groups_divide_the_sequences)
{
	static struct sim s;
	struct batch_conf conf = { .nseqs = 7, .batch_rows = MAX_ROWS,
	    .mixed_rows = 32, .groups = 3, .chunk = chunk_whole };
	uint32_t step;

	init_long_sim(&s, &conf, 7, 5);
	start_generating(&s, 7);
	ck_assert_int_eq(send_batch(&s), 1);
	ck_assert_int_eq(send_batch(&s), 1);
	ck_assert_int_eq(send_batch(&s), 1);
	ck_assert_uint_eq(s.sent[s.first].out.nrows, 3);
	ck_assert_uint_eq(s.sent[s.first + 1].out.nrows, 3);
	ck_assert_uint_eq(s.sent[s.first + 2].out.nrows, 1);
	for (step = 0; step < 9; step++) {	/* still three groups */
		ck_assert_int_eq(send_batch(&s), 0);
		receive_batch(&s);
		ck_assert_int_eq(send_batch(&s), 1);
	}
}
END_TEST

START_TEST(small_batches_serve_sequences_in_turn)
{
	static struct sim s;
	struct batch_conf conf = { .nseqs = 8, .batch_rows = 3,
	    .mixed_rows = 3, .groups = 1, .chunk = chunk_whole };
	uint32_t step, i, least, most;

	init_long_sim(&s, &conf, 8, 1);	/* one row each */
	start_generating(&s, 8);
	for (step = 0; step < 20; step++) {
		ck_assert_int_eq(send_batch(&s), 1);
		ck_assert_uint_eq(s.sent[s.first].out.nrows, 3);
		receive_batch(&s);
		least = UINT32_MAX;
		most = 0;
		for (i = 0; i < 8; i++) {
			least = MIN(least, s.prompt[i].ngenerated);
			most = MAX(most, s.prompt[i].ngenerated);
		}
		ck_assert_uint_le(most - least, 1);
	}
}
END_TEST

START_TEST(a_prompt_is_split_over_mixed_batches)
{
	static struct sim s;
	struct batch_conf conf = { .nseqs = 3, .batch_rows = MAX_ROWS,
	    .mixed_rows = 16, .groups = 1, .chunk = chunk_whole };

	init_long_sim(&s, &conf, 2, 5);
	start_generating(&s, 2);
	s.nprompts = 3;
	s.prompt[2] = (struct prompt){ .n = 30, .ntokens = 9 };
	ck_assert_int_eq(send_batch(&s), 1);
	ck_assert_uint_eq(s.sent[s.first].out.nrows, 16);
	receive_batch(&s);
	ck_assert_int_eq(send_batch(&s), 1);
	ck_assert_uint_eq(s.sent[s.first].out.nrows, 16);
	receive_batch(&s);
	ck_assert_int_eq(send_batch(&s), 1);
	ck_assert_uint_eq(s.sent[s.first].out.nrows, 4);
	receive_batch(&s);
	ck_assert_uint_eq(s.b.ngenerating, 3);
}
END_TEST

START_TEST(unexpected_rows_are_refused)
{
	static struct sim s;
	struct batch_conf conf = { .nseqs = 2, .batch_rows = 8,
	    .mixed_rows = 8, .groups = 1, .chunk = chunk_whole };
	struct batch_row r;

	init_sim(&s, &conf, 1, 5, 5);
	ck_assert_int_eq(batch_done(&s.b, BATCH_DATA), -EPROTO);
	ck_assert_int_eq(send_batch(&s), 1);
	r = s.sent[0].row[s.sent[0].out.nrows - 1];
	r.pos++;
	ck_assert_int_eq(batch_answer(&s.b, &r), -EPROTO);
	r.pos--;
	r.seq = !r.seq;
	ck_assert_int_eq(batch_answer(&s.b, &r), -EPROTO);
	r.seq = 2;
	ck_assert_int_eq(batch_answer(&s.b, &r), -EPROTO);
	r.seq = UINT32_MAX;
	ck_assert_int_eq(batch_answer(&s.b, &r), -EPROTO);
	receive_batch(&s);
	ck_assert_int_eq(batch_done(&s.b, BATCH_DATA), -EPROTO);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		batching_does_not_change_a_sequence,
		all_slots_can_be_in_use,
		tokens_of_all_sequences_share_a_batch,
		groups_divide_the_sequences,
		small_batches_serve_sequences_in_turn,
		a_prompt_is_split_over_mixed_batches,
		unexpected_rows_are_refused
	};

	return t_main("batch", 60, tests, NITEMS(tests));
}
