/* tests/unit/journal.c - tests of the journal: replay after a loss, and
 * matching of results.  Stages that store only tokens lose everything at random
 * moments; after a replay they must hold the tokens of stages that lost
 * nothing. */
#include "tests/support/t.h"

#include <errno.h>
#include <string.h>

#include "coordinator/engine/journal.h"

enum { SEQS = 5, CTX = 60, ROWS = 9, BATCHES = 6, STEPS = 4000 };

/* Stages that store only tokens, by the rules of worker/stage/loop.c. */
struct stages {
	uint32_t len[SEQS], token[SEQS][CTX];
};

static void
store_row(struct stages *st, const struct batch_row *r)
{
	ck_assert_uint_lt(r->seq, SEQS);
	ck_assert_uint_eq(r->pos, st->len[r->seq]);
	ck_assert_uint_lt(r->pos, CTX);
	st->token[r->seq][st->len[r->seq]++] = r->token;
}

static void
process_batch(struct stages *st, const struct batch_hdr *h,
    const struct batch_row *rows)
{
	uint32_t i;

	switch (h->kind) {
	case BATCH_DATA:
		for (i = 0; i < h->nrows; i++)
			store_row(st, &rows[i]);
		break;
	case BATCH_FORGET:
		st->len[h->seq] = MIN(h->pos, st->len[h->seq]);
		break;
	default:
		memset(st->len, 0, sizeof(st->len));
		break;
	}
}

/* Draw rows that continue their sequences once everything in flight has been
 * processed. */
static uint32_t
draw_rows(struct stages *st, struct batch_row *rows)
{
	uint32_t n = 1 + (uint32_t)t_rand_below(ROWS), i, made = 0, seq;

	for (i = 0; i < n; i++) {
		seq = (uint32_t)t_rand_below(SEQS);
		if (st->len[seq] == CTX)
			continue;
		rows[made] = (struct batch_row){ .seq = seq,
		    .pos = st->len[seq], .token = (uint32_t)t_rand_below(1000),
		    .flags = t_rand_below(2) ? ROW_LOGITS : 0 };
		store_row(st, &rows[made++]);
	}
	return made;
}

static void
draw_batch(struct stages *st, struct batch_hdr *h, struct batch_row *rows)
{
	*h = (struct batch_hdr){ .kind = BATCH_DATA };
	if (t_rand_below(8) > 0 && (h->nrows = draw_rows(st, rows)) > 0)
		return;
	h->kind = BATCH_FORGET;
	h->seq = (uint32_t)t_rand_below(SEQS);
	h->pos = (uint32_t)t_rand_below(CTX);
	process_batch(st, h, NULL);
}

static void
replay_journal(const struct journal *j, struct stages *st)
{
	struct journal_cursor c = { 0 };
	struct batch_row rows[ROWS];
	uint64_t n = 0;
	uint32_t k, i, seqs;

	memset(st, 0, sizeof(*st));
	while ((k = journal_replay(j, &c, rows, ROWS)) > 0) {
		ck_assert_uint_le(k, ROWS);
		for (i = 0; i < k; i++) {
			ck_assert_uint_eq(rows[i].flags, 0);
			store_row(st, &rows[i]);
		}
		n += k;
	}
	ck_assert_uint_eq(n, journal_tokens(j, &seqs));
	for (i = 0; i < j->n; i++)
		process_batch(st, &journal_at(j, i)->hdr,
		    journal_at(j, i)->rows);
}

static void
check_equal(const struct stages *a, const struct stages *b)
{
	uint32_t i;

	for (i = 0; i < SEQS; i++) {
		ck_assert_uint_eq(a->len[i], b->len[i]);
		ck_assert_mem_eq(a->token[i], b->token[i],
		    a->len[i] * sizeof(a->token[i][0]));
	}
}

START_TEST(a_replay_and_the_batches_in_flight_restore_all_sequences)
{
	struct stages now = { 0 }, replayed;
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
		replay_journal(&j, &replayed);
		check_equal(&now, &replayed);
	}
	journal_close(&j);
}
END_TEST

static struct batch_row
make_row(uint32_t seq, uint32_t pos)
{
	return (struct batch_row){ .seq = seq, .pos = pos,
	    .token = seq * 100 + pos };
}

START_TEST(an_ended_sequence_is_replayed_only_while_in_flight)
{
	const struct batch_row first[] = { make_row(0, 0), make_row(1, 0),
	    make_row(1, 1) };
	const struct batch_row last[] = { make_row(1, 2), make_row(0, 1) };
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
	/* Once forgotten, it is replayed like any other sequence. */
	h = (struct batch_hdr){ .kind = BATCH_FORGET, .seq = 1 };
	ck_assert_int_eq(journal_push(&j, &h, NULL), 0);
	journal_pop(&j);
	h = (struct batch_hdr){ .kind = BATCH_DATA, .nrows = 1 };
	ck_assert_int_eq(journal_push(&j, &h, &first[1]), 0);
	journal_pop(&j);
	ck_assert_uint_eq(journal_tokens(&j, &seqs), 3);
	ck_assert_uint_eq(seqs, 2);
	/* After a stop nothing is replayed. */
	h = (struct batch_hdr){ .kind = BATCH_STOP };
	ck_assert_int_eq(journal_push(&j, &h, NULL), 0);
	ck_assert_uint_eq(journal_tokens(&j, &seqs), 0);
	journal_pop(&j);
	ck_assert_uint_eq(journal_tokens(&j, &seqs), 0);
	journal_close(&j);
}
END_TEST

START_TEST(results_must_match_the_rows_with_logits_in_order)
{
	struct batch_row rows[] = { make_row(0, 0), make_row(1, 0),
	    make_row(1, 1), make_row(2, 0), make_row(0, 1) };
	const struct journal_batch b = { .hdr = { .nrows = NITEMS(rows) },
	    .rows = rows }, none = { .hdr = { .kind = BATCH_FORGET } };
	struct batch_row result[3], bad;
	uint32_t at;

	rows[1].flags = rows[2].flags = rows[4].flags = ROW_LOGITS;
	result[0] = rows[1];
	result[1] = rows[2];
	result[2] = rows[4];
	at = 0;
	ck_assert(journal_take_rows(&b, &at, result, 3, 1));
	/* In parts; an empty part is refused. */
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, result, 0, 0));
	ck_assert(journal_take_rows(&b, &at, result, 1, 0));
	ck_assert(journal_take_rows(&b, &at, result + 1, 2, 1));
	/* Refused: an end too early, no end after the last row, an end without
	 * rows, another order, another token, a row without logits, a start
	 * behind the last row. */
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, result, 2, 1));
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, result, 3, 0));
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, result, 0, 1));
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, result + 1, 2, 0));
	at = 0;
	bad = result[0];
	bad.token++;
	ck_assert(!journal_take_rows(&b, &at, &bad, 1, 0));
	at = 0;
	ck_assert(!journal_take_rows(&b, &at, rows, 1, 0));
	at = NITEMS(rows);
	ck_assert(!journal_take_rows(&b, &at, result, 1, 1));
	/* A batch without logits has an end and no rows. */
	at = 0;
	ck_assert(journal_take_rows(&none, &at, result, 0, 1));
	ck_assert(!journal_take_rows(&none, &at, result, 1, 1));
	ck_assert(!journal_take_rows(&none, &at, result, 0, 0));
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
	rows[0] = make_row(0, CTX);
	ck_assert_int_eq(journal_push(&j, &h, rows), -EINVAL);
	rows[0] = make_row(0, 0);
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
		a_replay_and_the_batches_in_flight_restore_all_sequences,
		an_ended_sequence_is_replayed_only_while_in_flight,
		results_must_match_the_rows_with_logits_in_order,
		a_full_journal_and_rows_out_of_range_are_refused
	};

	return t_main("journal", 60, tests, NITEMS(tests));
}
