/* tests/unit/stage.c - tests of a stage: batches, output, refusals.
 * A small model runs over one to four stages in this process; the
 * reference is one stage with one row a batch. */
#include "tests/support/t.h"

#include <errno.h>
#include <string.h>

#include "worker/stage/state.h"
#include "tests/support/chain.h"

/* The text is longer than a block of keys. */
enum { TEXT = ATTN_BLOCK + 7, VOCAB = 320 };

static uint32_t text[CHAIN_CTX], other[CHAIN_CTX];

static void
draw_texts(void)
{
	unsigned i;

	for (i = 0; i < CHAIN_CTX; i++) {
		text[i] = (uint32_t)t_rand_below(VOCAB);
		other[i] = (uint32_t)t_rand_below(VOCAB);
	}
}

/* The reference: one stage, the text in sequence 0, one row a batch. */
static const struct chain *
run_reference(enum kv_type fmt, uint32_t type)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;

	draw_texts();
	lc.fmt = fmt;
	lc.tiny.type = type;
	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, text, TEXT, 1);
	chain_finish(&ch);
	return &ch;
}

static void
close_reference(const struct chain *ch)
{
	chain_close((struct chain *)(uintptr_t)ch);
}

START_TEST(logits_do_not_depend_on_stages_threads_or_batches)
{
	static const struct {
		unsigned nstages, threads;
		uint32_t cut[CHAIN_STAGES], chunk, head_rows;
	} configs[] = {
		{ 1, 2, { 0 }, 16, 1 },
		{ 2, 1, { 0, 5 }, 7, 16 },
		{ 3, 2, { 0, 1, 9 }, 3, 2 },
		{ 4, 3, { 0, 3, 5, 9 }, 13, 5 },
		/* Cuts inside layers: attention alone, the FFN alone, and the
		 * last FFN with the head. */
		{ 2, 2, { 0, 4 }, 7, 16 },
		{ 4, 3, { 0, 3, 4, 8 }, 16, 5 },
		{ 4, 1, { 0, 4, 5, 6 }, 5, 4 }
	};
	static const uint32_t types[KV_NTYPES] = { QUANT_F16, QUANT_Q8_0,
	    QUANT_Q4_0 };
	static struct chain ch;
	const struct chain *ref;
	struct chain_conf lc;
	enum kv_type fmt;
	unsigned i;

	for (fmt = 0; fmt < KV_NTYPES; fmt++) {
		ref = run_reference(fmt, types[fmt]);
		lc = ref->conf;
		for (i = 0; i < NITEMS(configs); i++) {
			lc.nstages = configs[i].nstages;
			lc.threads = configs[i].threads;
			lc.head_rows = configs[i].head_rows;
			memcpy(lc.cut, configs[i].cut, sizeof(configs[i].cut));
			chain_start(&ch, &lc);
			chain_send_text(&ch, 2, 0, other, 20, 16);
			chain_send_text(&ch, 1, 0, text, TEXT,
			    configs[i].chunk);
			chain_finish(&ch);
			ck_assert_msg(chain_same_logits(ref, 0, &ch, 1, 0,
			    TEXT), "config %u, KV type %d", i, fmt);
			chain_close(&ch);
		}
		close_reference(ref);
	}
}
END_TEST

START_TEST(rows_of_several_sequences_share_a_batch)
{
	static struct chain ch;
	const struct chain *ref = run_reference(KV_F16, QUANT_Q8_0);
	struct chain_conf lc = CHAIN_CONF;
	struct batch_row rows[16];
	uint32_t pos, s;

	chain_start(&ch, &lc);
	for (pos = 0; pos < TEXT; pos++) {
		for (s = 0; s < CHAIN_SEQS; s++)
			rows[s] = (struct batch_row){ .seq = s, .pos = pos,
			    .token = s == 1 ? other[pos] : text[pos],
			    .flags = ROW_LOGITS };
		chain_send_rows(&ch, rows, CHAIN_SEQS);
	}
	chain_finish(&ch);
	ck_assert(chain_same_logits(ref, 0, &ch, 0, 0, TEXT));
	ck_assert(chain_same_logits(ref, 0, &ch, 2, 0, TEXT));
	ck_assert(!chain_same_logits(ref, 0, &ch, 1, 1, 1));
	chain_close(&ch);
	close_reference(ref);
}
END_TEST

START_TEST(the_head_sends_logits_in_blocks_and_marks_the_last)
{
	static const uint32_t first[] = { 0, 4, 8 }, nrows[] = { 4, 4, 2 };
	static struct chain ch;
	const struct chain *ref = run_reference(KV_F16, QUANT_Q8_0);
	struct chain_conf lc = CHAIN_CONF;
	struct batch_row rows[16];
	unsigned i, n;

	chain_start(&ch, &lc);
	/* Ten of sixteen rows want logits. */
	for (n = 0, i = 0; i < 16; i++) {
		rows[i] = (struct batch_row){ .pos = i, .token = text[i] };
		if (i % 8 < 5)
			rows[i].flags = ROW_LOGITS, n++;
	}
	ck_assert_uint_eq(n, 10);
	ch.number = 77;
	chain_send_rows(&ch, rows, 16);
	chain_finish(&ch);
	ck_assert_uint_eq(ch.nseen, 3);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(ch.seen[i].magic, BATCH_MAGIC);
		ck_assert_uint_eq(ch.seen[i].kind, BATCH_DATA);
		ck_assert_uint_eq(ch.seen[i].number, 77);
		ck_assert_uint_eq(ch.seen[i].first, first[i]);
		ck_assert_uint_eq(ch.seen[i].nrows, nrows[i]);
		ck_assert_uint_eq(ch.seen[i].flags, i == 2 ? BATCH_LAST : 0);
	}
	for (i = 0; i < 16; i++) {
		ck_assert_int_eq(chain_logits(&ch, 0, i) != NULL, i % 8 < 5);
		if (i % 8 < 5)
			ck_assert(chain_same_logits(ref, 0, &ch, 0, i, 1));
	}
	chain_close(&ch);
	close_reference(ref);
}
END_TEST

START_TEST(a_batch_without_logits_is_reported_as_done)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct batch_row row = { .token = 5 };

	lc.nstages = 2;
	lc.cut[1] = 5;
	chain_start(&ch, &lc);
	chain_send_rows(&ch, &row, 1);
	chain_finish(&ch);
	ck_assert_uint_eq(ch.nseen, 1);
	ck_assert_uint_eq(ch.seen[0].nrows, 0);
	ck_assert_uint_eq(ch.seen[0].flags, BATCH_LAST);
	ck_assert_uint_eq(atomic_load(&ch.part[0].status.batches), 1);
	ck_assert_uint_eq(atomic_load(&ch.part[1].status.batches), 1);
	/* Each op counts; those of the head did not run. */
	ck_assert_uint_gt(atomic_load(&ch.part[0].status.progress), 20);
	chain_close(&ch);
}
END_TEST

START_TEST(an_idle_stage_sends_heartbeats_and_ends_when_told)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct err e = { 0 };
	uint64_t before;

	chain_start(&ch, &lc);
	before = atomic_load(&ch.part[0].status.heartbeat);
	t_ok(chain_run(&ch, &e), &e);
	ck_assert_uint_gt(atomic_load(&ch.part[0].status.heartbeat), before);
	ck_assert_uint_eq(ch.nseen, 0);
	chain_close(&ch);
}
END_TEST

START_TEST(a_forgotten_tail_can_be_rewritten)
{
	static struct chain ch;
	const struct chain *ref = run_reference(KV_F16, QUANT_Q8_0);
	struct chain_conf lc = CHAIN_CONF;

	lc.nstages = 2;
	lc.cut[1] = 5;
	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, text, 20, 16);
	chain_send_text(&ch, 0, 20, other, 10, 16);
	chain_send_control(&ch, BATCH_FORGET, 0, 20);
	chain_send_text(&ch, 0, 20, text, TEXT - 20, 16);
	chain_finish(&ch);
	ck_assert(chain_same_logits(ref, 0, &ch, 0, 0, TEXT));
	/* Forgetting past the end changes nothing. */
	chain_send_control(&ch, BATCH_FORGET, 0, 1000);
	chain_send_text(&ch, 0, TEXT, text, 2, 2);
	chain_send_control(&ch, BATCH_FORGET, 0, 0);
	chain_send_text(&ch, 0, 0, text, 5, 2);
	chain_finish(&ch);
	ck_assert(chain_same_logits(ref, 0, &ch, 0, 0, TEXT));
	chain_close(&ch);
	close_reference(ref);
}
END_TEST

START_TEST(control_batches_pass_through_in_order)
{
	static const enum batch_kind kinds[] = { BATCH_DATA, BATCH_FORGET,
	    BATCH_DATA, BATCH_STOP };
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	unsigned i;

	draw_texts();
	lc.nstages = 3;
	lc.cut[1] = 1;
	lc.cut[2] = 9;
	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, text, 2, 2);
	chain_send_control(&ch, BATCH_FORGET, 0, 1);
	chain_send_text(&ch, 0, 1, text, 2, 2);
	chain_send_control(&ch, BATCH_STOP, 0, 0);
	chain_send_text(&ch, 0, 3, text, 1, 1);	/* after the stop */
	chain_finish(&ch);
	ck_assert_uint_eq(ch.nseen, NITEMS(kinds));
	for (i = 0; i < ch.nseen; i++) {
		ck_assert_uint_eq(ch.seen[i].kind, kinds[i]);
		ck_assert_uint_eq(ch.seen[i].number, i);
		ck_assert_uint_eq(ch.seen[i].flags, BATCH_LAST);
	}
	chain_finish(&ch);
	ck_assert_uint_eq(ch.seen[ch.nseen - 1].number, NITEMS(kinds));
	chain_close(&ch);
}
END_TEST

/* --- refusals --- */

/* Assert that a new stage refuses this slot: -EPROTO, a message with the
 * session and these words. */
static void
check_refused(const struct batch_hdr *hdr, const struct batch_row *rows,
    uint32_t n, const char *words)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct err e = { 0 };

	chain_start(&ch, &lc);
	chain_send_slot(&ch, hdr, rows, n);
	ck_assert_int_eq(chain_run(&ch, &e), -EPROTO);
	ck_assert_int_eq(e.kind, ERR_RUN);
	ck_assert_msg(strstr(e.msg, "session stage0: batch 9: ") != NULL &&
	    strstr(e.msg, words) != NULL, "\"%s\" is not in: %s", words,
	    e.msg);
	ck_assert_uint_eq(ch.nseen, 0);
	chain_close(&ch);
}

#define GOOD_HDR { .magic = BATCH_MAGIC, .kind = BATCH_DATA, .number = 9, \
	.nrows = 2 }

START_TEST(corrupt_headers_are_refused)
{
	static const struct batch_row rows[2] = { { .pos = 0 }, { .pos = 1 } };
	const struct batch_hdr good = GOOD_HDR;
	struct batch_hdr h = good;

	h.magic ^= 1;
	check_refused(&h, rows, 2, "not a batch header");
	h = good;
	h.nrows = 17;
	check_refused(&h, rows, 2, "17 rows, the ring was made for 16");
	h.nrows = UINT32_MAX;
	check_refused(&h, rows, 2, "rows, the ring was made for");
	h.nrows = 0;
	check_refused(&h, rows, 0, "no rows");
	h = good;
	h.kind = 4;
	check_refused(&h, rows, 2, "unknown kind 4");
	h.kind = 0;
	check_refused(&h, rows, 2, "unknown kind 0");
	h.kind = BATCH_FORGET;
	h.seq = CHAIN_SEQS;
	check_refused(&h, rows, 2, "no sequence 3: the session has 3");
}
END_TEST

START_TEST(invalid_rows_are_refused)
{
	const struct batch_hdr hdr = GOOD_HDR;
	struct batch_row rows[2] = { { .pos = 0 }, { .pos = 1 } };

	rows[1].seq = CHAIN_SEQS;
	check_refused(&hdr, rows, 2, "no sequence 3: the session has 3");
	rows[1].seq = 0;
	rows[1].token = VOCAB;
	check_refused(&hdr, rows, 2, "token 320 is outside the vocabulary of "
	    "320");
	rows[1].token = 0;
	rows[1].pos = 2;
	check_refused(&hdr, rows, 2, "row at position 2, expected 1");
	rows[1].pos = 0;
	check_refused(&hdr, rows, 2, "row at position 0, expected 1");
	rows[1].pos = UINT32_MAX;
	check_refused(&hdr, rows, 2, "row at position 4294967295, expected 1");
}
END_TEST

START_TEST(rows_beyond_the_context_are_refused)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct batch_row row = { .pos = CHAIN_CTX };
	struct err e = { 0 };

	draw_texts();
	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, text, CHAIN_CTX, 16);
	chain_finish(&ch);
	ck_assert_ptr_nonnull(chain_logits(&ch, 0, CHAIN_CTX - 1));
	chain_send_rows(&ch, &row, 1);
	ck_assert_int_eq(chain_run(&ch, &e), -EPROTO);
	ck_assert_ptr_nonnull(strstr(e.msg, "position 80 is beyond the "
	    "context of 80"));
	chain_close(&ch);
}
END_TEST

/* Local layers hold the last ATTN_BLOCK positions in a ring of that size: going
 * back further would attend to rows of later positions. */
START_TEST(a_cut_below_the_window_is_refused)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct err e = { 0 };

	draw_texts();
	lc.tiny.window = 8;
	lc.tiny.full_every = 2;
	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, text, TEXT, 16);
	chain_finish(&ch);
	/* The window of the last position is still there, and nothing cannot
	 * be missing. */
	chain_send_control(&ch, BATCH_FORGET, 0, TEXT - 1);
	chain_finish(&ch);
	chain_send_control(&ch, BATCH_FORGET, 0, 10);
	ck_assert_int_eq(chain_run(&ch, &e), -EPROTO);
	ck_assert_ptr_nonnull(strstr(e.msg, "cannot cut sequence 0 to 10 "
	    "rows: local layers have overwritten earlier rows"));
	chain_close(&ch);

	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, text, TEXT, 16);
	chain_send_control(&ch, BATCH_FORGET, 0, 0);
	chain_send_text(&ch, 0, 0, text, 20, 16);
	chain_finish(&ch);
	/* Short: nothing was overwritten since. */
	chain_send_control(&ch, BATCH_FORGET, 0, 10);
	chain_finish(&ch);
	chain_close(&ch);
}
END_TEST

START_TEST(a_ring_with_corrupt_counters_is_refused)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct ring_shared *sh;
	struct err e = { 0 };

	chain_start(&ch, &lc);
	sh = ch.map[0].base;
	atomic_store(&sh->head, CHAIN_SLOTS + 1);
	ck_assert_int_eq(chain_run(&ch, &e), -EPROTO);
	ck_assert_ptr_nonnull(strstr(e.msg, "session stage0: the ring into"));
	atomic_store(&sh->head, 0);
	chain_send_text(&ch, 0, 0, other, 1, 1);
	sh = ch.map[1].base;
	atomic_store(&sh->tail, 1);
	ck_assert_int_eq(chain_run(&ch, &e), -EPROTO);
	ck_assert_ptr_nonnull(strstr(e.msg, "session stage0: the ring out of"));
	chain_close(&ch);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		logits_do_not_depend_on_stages_threads_or_batches,
		rows_of_several_sequences_share_a_batch,
		the_head_sends_logits_in_blocks_and_marks_the_last,
		a_batch_without_logits_is_reported_as_done,
		an_idle_stage_sends_heartbeats_and_ends_when_told,
		a_forgotten_tail_can_be_rewritten,
		control_batches_pass_through_in_order,
		corrupt_headers_are_refused,
		invalid_rows_are_refused,
		rows_beyond_the_context_are_refused,
		a_cut_below_the_window_is_refused,
		a_ring_with_corrupt_counters_is_refused
	};

	return t_main("stage", 120, tests, NITEMS(tests));
}
