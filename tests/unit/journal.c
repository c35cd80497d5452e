/* tests/unit/journal.c - what a replay brings back: stages that know nothing
 * but tokens lose everything at random moments, and are told anew.  What they
 * hold must then be what stages hold that lost nothing. */
#include "tests/support/t.h"

#include <errno.h>
#include <string.h>

#include "coordinator/engine/journal.h"

enum { SEQS = 5, CTX = 60, ROWS = 9, BATCHES = 6, STEPS = 4000 };

/* The rules of worker/stage/loop.c, as far as tokens go. */
struct world {
	uint32_t len[SEQS], token[SEQS][CTX];
};

static void
take_row(struct world *w, const struct batch_row *r)
{
	ck_assert_uint_lt(r->seq, SEQS);
	ck_assert_uint_eq(r->pos, w->len[r->seq]);	/* it continues */
	ck_assert_uint_lt(r->pos, CTX);
	w->token[r->seq][w->len[r->seq]++] = r->token;
}

static void
take(struct world *w, const struct batch_hdr *h, const struct batch_row *rows)
{
	uint32_t i;

	switch (h->kind) {
	case BATCH_DATA:
		for (i = 0; i < h->nrows; i++)
			take_row(w, &rows[i]);
		break;
	case BATCH_FORGET:
		w->len[h->seq] = MIN(h->pos, w->len[h->seq]);
		break;
	default:
		memset(w->len, 0, sizeof(w->len));
		break;
	}
}

/* Rows that continue their sequences as they will be when all that is under way
 * has been taken. */
static uint32_t
draw_rows(struct world *w, struct batch_row *rows)
{
	uint32_t n = 1 + (uint32_t)t_rand_below(ROWS), i, made = 0, seq;

	for (i = 0; i < n; i++) {
		seq = (uint32_t)t_rand_below(SEQS);
		if (w->len[seq] == CTX)
			continue;
		rows[made] = (struct batch_row){ .seq = seq,
		    .pos = w->len[seq], .token = (uint32_t)t_rand_below(1000),
		    .flags = t_rand_below(2) ? ROW_LOGITS : 0 };
		take_row(w, &rows[made++]);
	}
	return made;
}

static void
draw_batch(struct world *w, struct batch_hdr *h, struct batch_row *rows)
{
	*h = (struct batch_hdr){ .kind = BATCH_DATA };
	if (t_rand_below(8) > 0 && (h->nrows = draw_rows(w, rows)) > 0)
		return;
	h->kind = BATCH_FORGET;
	h->seq = (uint32_t)t_rand_below(SEQS);
	h->pos = (uint32_t)t_rand_below(CTX);
	take(w, h, NULL);
}

static void
replay(const struct journal *j, struct world *w)
{
	struct journal_cursor c = { 0 };
	struct batch_row rows[ROWS];
	uint64_t n = 0;
	uint32_t k, i, seqs;

	memset(w, 0, sizeof(*w));
	while ((k = journal_replay(j, &c, rows, ROWS)) > 0) {
		ck_assert_uint_le(k, ROWS);
		for (i = 0; i < k; i++) {
			ck_assert_uint_eq(rows[i].flags, 0);
			take_row(w, &rows[i]);
		}
		n += k;
	}
	ck_assert_uint_eq(n, journal_tokens(j, &seqs));
	for (i = 0; i < j->n; i++)
		take(w, &journal_at(j, i)->hdr, journal_at(j, i)->rows);
}

static void
same(const struct world *a, const struct world *b)
{
	uint32_t i;

	for (i = 0; i < SEQS; i++) {
		ck_assert_uint_eq(a->len[i], b->len[i]);
		ck_assert_mem_eq(a->token[i], b->token[i],
		    a->len[i] * sizeof(a->token[i][0]));
	}
}

START_TEST(a_replay_and_what_was_under_way_bring_all_back)
{
	struct world now = { 0 }, again;
	struct batch_row rows[ROWS];
	struct batch_hdr h;
	struct journal j;
	struct err e = { 0 };
	unsigned i;

	t_ok(journal_open(&j, SEQS, CTX, ROWS, BATCHES, &e), &e);
	for (i = 0; i < STEPS; i++) {
		if (j.n < BATCHES && t_rand_below(2)) {
			draw_batch(&now, &h, rows);
			ck_assert_int_eq(journal_push(&j, &h, rows), 0);
		} else if (j.n > 0)
			journal_pop(&j);
		replay(&j, &again);
		same(&now, &again);
	}
	journal_close(&j);
}
END_TEST

static struct batch_row
row(uint32_t seq, uint32_t pos)
{
	return (struct batch_row){ .seq = seq, .pos = pos,
	    .token = seq * 100 + pos };
}

START_TEST(what_is_over_is_replayed_only_while_it_is_under_way)
{
	const struct batch_row first[] = { row(0, 0), row(1, 0), row(1, 1) };
	const struct batch_row last[] = { row(1, 2), row(0, 1) };
	struct batch_hdr h = { .kind = BATCH_DATA, .nrows = 3 };
	struct journal j;
	struct err e = { 0 };
	uint32_t seqs;

	t_ok(journal_open(&j, SEQS, CTX, ROWS, BATCHES, &e), &e);
	ck_assert_int_eq(journal_push(&j, &h, first), 0);
	h.nrows = 2;
	ck_assert_int_eq(journal_push(&j, &h, last), 0);
	ck_assert_uint_eq(journal_rows(&j), 3);
	journal_pop(&j);
	ck_assert_uint_eq(journal_rows(&j), 2);
	journal_end_sequence(&j, 1);
	ck_assert_uint_eq(journal_tokens(&j, &seqs), 3);
	journal_pop(&j);
	ck_assert_uint_eq(journal_tokens(&j, &seqs), 2);
	ck_assert_uint_eq(seqs, 1);
	/* Forgotten, it is a sequence like the others. */
	h = (struct batch_hdr){ .kind = BATCH_FORGET, .seq = 1 };
	ck_assert_int_eq(journal_push(&j, &h, NULL), 0);
	journal_pop(&j);
	h = (struct batch_hdr){ .kind = BATCH_DATA, .nrows = 1 };
	ck_assert_int_eq(journal_push(&j, &h, &first[1]), 0);
	journal_pop(&j);
	ck_assert_uint_eq(journal_tokens(&j, &seqs), 3);
	ck_assert_uint_eq(seqs, 2);
	/* After a stop nobody needs anything. */
	h = (struct batch_hdr){ .kind = BATCH_STOP };
	ck_assert_int_eq(journal_push(&j, &h, NULL), 0);
	ck_assert_uint_eq(journal_tokens(&j, &seqs), 0);
	journal_pop(&j);
	ck_assert_uint_eq(journal_tokens(&j, &seqs), 0);
	journal_close(&j);
}
END_TEST

START_TEST(an_answer_has_the_rows_that_were_asked_for_in_their_order)
{
	struct batch_row rows[] = { row(0, 0), row(1, 0), row(1, 1),
	    row(2, 0), row(0, 1) };
	const struct journal_batch b = { .hdr = { .nrows = NITEMS(rows) },
	    .rows = rows }, none = { .hdr = { .kind = BATCH_FORGET } };
	struct batch_row back[3], bad;
	uint32_t at;

	rows[1].flags = rows[2].flags = rows[4].flags = ROW_LOGITS;
	back[0] = rows[1];
	back[1] = rows[2];
	back[2] = rows[4];
	at = 0;
	ck_assert(journal_take_rows(&b, &at, back, 3, 1));
	/* In parts; nothing is no part. */
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, back, 0, 0));
	ck_assert(journal_take_rows(&b, &at, back, 1, 0));
	ck_assert(journal_take_rows(&b, &at, back + 1, 2, 1));
	/* Too few for an end, more than there are, another order, another
	 * row, one that nobody asked for. */
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, back, 2, 1));
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, back, 3, 0));
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, back, 0, 1));
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, back + 1, 2, 0));
	at = 0;
	bad = back[0];
	bad.token++;
	ck_assert(!journal_take_rows(&b, &at, &bad, 1, 0));
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, rows, 1, 0));
	at = NITEMS(rows);
	ck_assert(!journal_take_rows(&b, &at, back, 1, 1));
	/* One that asked for nothing has an end alone. */
	at = 0;
	ck_assert(journal_take_rows(&none, &at, back, 0, 1));
	ck_assert(!journal_take_rows(&none, &at, back, 1, 1));
	ck_assert(!journal_take_rows(&none, &at, back, 0, 0));
}
END_TEST

START_TEST(a_full_journal_and_rows_out_of_range_are_refused)
{
	struct batch_row rows[ROWS + 1] = { { 0 } };
	struct batch_hdr h = { .kind = BATCH_DATA, .nrows = 1 };
	struct journal j;
	struct err e = { 0 };
	unsigned i;

	t_ok(journal_open(&j, SEQS, CTX, ROWS, BATCHES, &e), &e);
	rows[0].seq = SEQS;
	ck_assert_int_eq(journal_push(&j, &h, rows), -EINVAL);
	rows[0] = row(0, CTX);
	ck_assert_int_eq(journal_push(&j, &h, rows), -EINVAL);
	rows[0] = row(0, 0);
	h.nrows = ROWS + 1;
	ck_assert_int_eq(journal_push(&j, &h, rows), -EINVAL);
	h = (struct batch_hdr){ .kind = BATCH_FORGET, .seq = SEQS };
	ck_assert_int_eq(journal_push(&j, &h, NULL), -EINVAL);
	h.seq = 0;
	for (i = 0; i < BATCHES; i++)
		ck_assert_int_eq(journal_push(&j, &h, NULL), 0);
	ck_assert_int_eq(journal_push(&j, &h, NULL), -EAGAIN);
	journal_close(&j);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_replay_and_what_was_under_way_bring_all_back,
		what_is_over_is_replayed_only_while_it_is_under_way,
		an_answer_has_the_rows_that_were_asked_for_in_their_order,
		a_full_journal_and_rows_out_of_range_are_refused
	};

	return t_main("journal", 60, tests, NITEMS(tests));
}
