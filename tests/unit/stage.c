/* tests/unit/stage.c - tests of a stage: batches, output, refusals, memory,
 * devices.  A small model runs over one to four stages in this process; the
 * reference is one stage with one row a batch. */
#include "tests/support/t.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shm/arena.h"
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

static int
supports_nothing(void *arg, const struct program *p, const struct op *op,
    char reason[REASON_LEN])
{
	(void)arg;
	(void)p;
	(void)op;
	snprintf(reason, REASON_LEN, "it has no kernels at all");
	return 0;
}

START_TEST(a_device_that_computes_nothing_is_an_error)
{
	static struct chain ch;
	struct device_ops idle = device_null;
	struct chain_conf lc = CHAIN_CONF;
	struct err e = { 0 };

	idle.supports = supports_nothing;
	lc.dev[0] = &idle;
	ck_assert_int_eq(chain_open(&ch, &lc, &e), -ENOTSUP);
	ck_assert_msg(strstr(e.msg, "stage0: device null would compute "
	    "nothing") != NULL && strstr(e.msg, "matmul because: it has no "
	    "kernels at all") != NULL, "%s", e.msg);
	chain_close(&ch);
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
	check_refused(&h, rows, 2, "more rows than the ring was made for (17)");
	h.nrows = UINT32_MAX;
	check_refused(&h, rows, 2, "more rows");
	h.nrows = 0;
	check_refused(&h, rows, 0, "no rows");
	h = good;
	h.kind = 4;
	check_refused(&h, rows, 2, "an unknown kind (4)");
	h.kind = 0;
	check_refused(&h, rows, 2, "an unknown kind (0)");
	h.kind = BATCH_FORGET;
	h.seq = CHAIN_SEQS;
	check_refused(&h, rows, 2, "no such sequence (3)");
}
END_TEST

START_TEST(invalid_rows_are_refused)
{
	const struct batch_hdr hdr = GOOD_HDR;
	struct batch_row rows[2] = { { .pos = 0 }, { .pos = 1 } };

	rows[1].seq = CHAIN_SEQS;
	check_refused(&hdr, rows, 2, "no such sequence (3)");
	rows[1].seq = 0;
	rows[1].token = VOCAB;
	check_refused(&hdr, rows, 2, "a token outside the vocabulary (320)");
	rows[1].token = 0;
	rows[1].pos = 2;
	check_refused(&hdr, rows, 2, "does not continue its sequence");
	rows[1].pos = 0;
	check_refused(&hdr, rows, 2, "does not continue its sequence");
	rows[1].pos = UINT32_MAX;
	check_refused(&hdr, rows, 2, "does not continue its sequence");
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
	ck_assert_ptr_nonnull(strstr(e.msg, "beyond the context (80)"));
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

/* --- memory and devices --- */

START_TEST(a_stage_charges_exactly_its_program_and_weights)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	const struct mem_ledger *m;
	struct placement pl;
	struct program *p;
	struct weights ws;
	struct err e = { 0 };
	uint64_t weights, kv, compute;

	lc.threads = 2;
	chain_start(&ch, &lc);
	t_ok(stage_explain(&ch.part[0].sc, &pl, &p, &ws, &e), &e);
	weights = arena_charge_bytes(ws.nbytes);
	kv = arena_charge_bytes(p->env.kv.nbytes);
	compute = arena_charge_bytes(program_compute_bytes(p, 2));
	ck_assert_uint_eq(pl.nspans, stage_placement(ch.part[0].s)->nspans);
	m = &ch.part[0].ledger;
	ck_assert_uint_eq(m->tag_bytes[MEM_WEIGHTS], weights);
	ck_assert_uint_eq(m->tag_bytes[MEM_KV], kv);
	ck_assert_uint_eq(m->tag_bytes[MEM_COMPUTE], compute);
	ck_assert_uint_eq(m->tag_bytes[MEM_STAGING], 0);
	ck_assert_uint_gt(m->tag_peak[MEM_STAGING], 0);
	placement_free(&pl);
	program_free(p);
	weights_free(&ws);
	chain_close(&ch);

	/* The cap is one byte short of the buffers, then of the staging
	 * area. */
	lc.cap_bytes = weights + kv + compute - 1;
	ck_assert_int_eq(chain_open(&ch, &lc, &e), -ENOMEM);
	ck_assert_int_eq(e.kind, ERR_FIT);
	ck_assert_ptr_nonnull(strstr(e.msg, "stage0"));
	ck_assert_ptr_nonnull(strstr(e.msg, "compute"));
	chain_close(&ch);
	lc.cap_bytes++;
	ck_assert_int_eq(chain_open(&ch, &lc, &e), -ENOMEM);
	ck_assert_ptr_nonnull(strstr(e.msg, "staging"));
	chain_close(&ch);
}
END_TEST

START_TEST(on_the_null_device_attention_falls_back_to_the_cpu)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	const struct placement *pl;
	const float *x;
	unsigned i;

	draw_texts();
	lc.dev[0] = &device_null;
	lc.nstages = 3;
	lc.cut[1] = 3;
	lc.cut[2] = 9;
	chain_start(&ch, &lc);
	pl = stage_placement(ch.part[1].s);
	ck_assert_uint_eq(pl->cpu_ops, 3);	/* layers 1 to 3 */
	ck_assert_uint_eq(pl->nspans, 7);
	ck_assert_uint_eq(pl->nbody_spans, 7);
	chain_send_text(&ch, 0, 0, text, 9, 9);
	chain_finish(&ch);
	ck_assert_uint_eq(ch.nseen, 3);		/* blocks of 4, 4, 1 */
	x = chain_logits(&ch, 0, 8);
	ck_assert_ptr_nonnull(x);
	for (i = 0; i < VOCAB; i++)
		ck_assert(x[i] == 0);
	chain_close(&ch);
}
END_TEST

/* Payload of the first slot of ring i. */
static const void *
first_payload(const struct chain *ch, unsigned i)
{
	return (const uint8_t *)ch->map[i].base + RING_SLOTS_OFF +
	    slot_payload_off(ch->conf.batch_rows);
}

START_TEST(a_stage_on_the_null_device_passes_its_input_on)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	const float *x;

	draw_texts();
	lc.nstages = 3;
	lc.dev[1] = &device_null;
	lc.dev[2] = &device_cpu;
	lc.cut[1] = 1;
	lc.cut[2] = 9;
	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, text, 9, 9);
	chain_finish(&ch);
	x = first_payload(&ch, 1);
	ck_assert(x[0] != 0 || x[1] != 0);
	ck_assert_int_eq(memcmp(x, first_payload(&ch, 2),
	    9 * slot_row_bytes(64)), 0);
	chain_close(&ch);
}
END_TEST

START_TEST(strict_refuses_a_device_that_would_fall_back)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct err e = { 0 };

	lc.dev[0] = &device_null;
	lc.strict = 1;
	ck_assert_int_eq(chain_open(&ch, &lc, &e), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(e.msg, "attention of layer 0"));
	chain_close(&ch);
	lc.dev[0] = &device_cpu;
	chain_start(&ch, &lc);
	chain_close(&ch);
}
END_TEST

/* --- limits that a device reports --- */

static struct device_traits traits;
static void *host;	/* reported address of every buffer; NULL = true */

static void
odd_traits(const struct device *d, struct device_traits *ret)
{
	(void)d;
	*ret = traits;
}

static int
odd_alloc(struct device *d, enum mem_tag tag, uint64_t nbytes,
    const char *what, struct device_buf *ret, struct err *reterr)
{
	int rc = device_cpu.alloc(d, tag, nbytes, what, ret, reterr);

	if (host != NULL)
		ret->host = host;
	return rc;
}

/* The CPU with changeable traits; the defaults restrict nothing. */
static struct device_ops
odd_device(void)
{
	struct device_ops odd = device_cpu;

	odd.kind = "odd";
	odd.traits = odd_traits;
	odd.alloc = odd_alloc;
	traits = (struct device_traits){ .host_visible = 1, .align = 64,
	    .largest_map = UINT64_MAX, .max_maps = 3 };
	host = NULL;
	return odd;
}

/* Assert that a stage on this device fails to open with this code and words. */
static void
check_open_fails(const struct device_ops *odd, int code, const char *words)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct err e = { 0 };

	lc.dev[0] = odd;
	ck_assert_int_eq(chain_open(&ch, &lc, &e), code);
	ck_assert_msg(strstr(e.msg, words) != NULL, "\"%s\" is not in: %s",
	    words, e.msg);
	chain_close(&ch);
}

START_TEST(a_stage_respects_the_size_and_number_of_mappings)
{
	const struct device_ops odd = odd_device();
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	char words[128];
	uint64_t most;

	lc.dev[0] = &odd;
	chain_start(&ch, &lc);
	most = ch.part[0].s->ws.nbytes;
	ck_assert_uint_gt(most, ch.part[0].s->compute.nbytes);
	ck_assert_uint_gt(most, ch.part[0].s->kv.nbytes);
	chain_close(&ch);
	traits.largest_map = most;
	chain_start(&ch, &lc);
	chain_close(&ch);
	traits.largest_map = most - 1;
	snprintf(words, sizeof(words), "session stage0: weights: %" PRIu64
	    " bytes, device odd maps at most %" PRIu64 " at once", most,
	    most - 1);
	check_open_fails(&odd, -ENOMEM, words);
	traits.largest_map = most;
	traits.max_maps = 2;
	check_open_fails(&odd, -ENOMEM, "session stage0: compute scratch: ");
	check_open_fails(&odd, -ENOMEM,
	    " bytes would be mapping 3, device odd has at most 2");
}
END_TEST

START_TEST(a_misaligned_buffer_is_refused)
{
	const struct device_ops odd = odd_device();

	host = (void *)(uintptr_t)0x12340020;
	check_open_fails(&odd, -EPROTO, "session stage0: weights: device odd "
	    "gave a buffer at 0x12340020, which violates its own alignment "
	    "of 64 bytes");
}
END_TEST

static uint64_t sync_limit_ns;

static int
sync_that_hangs(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	(void)d;
	sync_limit_ns = deadline_ns - event_now_ns();
	return err_set(reterr, ERR_RUN, -ETIMEDOUT, "the runtime's words");
}

START_TEST(a_hanging_device_is_an_error_with_the_place)
{
	struct device_ops odd = odd_device();
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct err e = { 0 };

	odd.sync = sync_that_hangs;
	lc.dev[0] = &odd;
	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, text, 1, 1);
	ck_assert_int_eq(chain_run(&ch, &e), -ETIMEDOUT);
	ck_assert_str_eq(e.msg, "session stage0: device odd did not finish "
	    "within 600 s a span that begins with get_rows of tensor "
	    "token_embd.weight");
	ck_assert_uint_gt(sync_limit_ns, UINT64_C(500000000000));
	ck_assert_uint_le(sync_limit_ns, UINT64_C(600000000000));
	chain_close(&ch);
}
END_TEST

/* As many spans as a model of a few thousand layers has. */
START_TEST(a_program_may_have_thousands_of_spans)
{
	static const struct device_ops *const kinds[] = { &device_cpu,
	    &device_null };
	const struct device_buf none = { 0 };
	const struct batch b = { .nrows = 0 };
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct device_conf dc;
	struct device *d;
	uint32_t h, i;
	unsigned k;
	struct err e = { 0 };

	chain_start(&ch, &lc);
	dc = (struct device_conf){ .session = "x", .par = ch.part[0].par,
	    .ledger = &ch.part[0].ledger };
	for (k = 0; k < NITEMS(kinds); k++) {
		t_ok(kinds[k]->open(&dc, &d, &e), &e);
		for (i = 0; i < 5000; i++) {
			t_ok(kinds[k]->prepare(d, ch.part[0].s->p,
			    &ch.part[0].s->pl.span[0], &none, &none, &h, &e),
			    &e);
			ck_assert_uint_eq(h, i);
		}
		t_ok(kinds[k]->run(d, 0, &b, &e), &e);
		t_ok(kinds[k]->run(d, 4999, &b, &e), &e);
		ck_assert_int_eq(kinds[k]->run(d, 5000, &b, &e), -EINVAL);
		kinds[k]->close(d);
	}
	chain_close(&ch);
}
END_TEST

/* Calls of a pool that claims two threads and runs none. */
static unsigned ncalls;

static void
count_run(struct par *par, par_fn *fn, void *arg)
{
	(void)par;
	(void)fn;
	(void)arg;
	ncalls++;
}

/* Four layers of 256: 2.6 M multiply-adds a row; a batch of no rows counts as
 * one and computes nothing. */
START_TEST(a_small_span_is_shared_only_by_threads_with_own_cores)
{
	const struct device_buf none = { 0 };
	const struct batch b = { .nrows = 0 };
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct par par = { .nthreads = 2, .run = count_run };
	struct device_conf dc = { .session = "x", .par = &par };
	struct device *d;
	uint32_t whole, one_op;
	struct span first;
	struct err e = { 0 };

	lc.tiny.n_embd = 256;
	lc.tiny.n_ff = 512;
	chain_start(&ch, &lc);
	dc.ledger = &ch.part[0].ledger;
	first = ch.part[0].s->pl.span[0];
	first.end = first.first + 1;		/* the embedding: no product */
	for (dc.own_cores = 0; dc.own_cores < 2; dc.own_cores++) {
		t_ok(device_cpu.open(&dc, &d, &e), &e);
		t_ok(device_cpu.prepare(d, ch.part[0].s->p,
		    &ch.part[0].s->pl.span[0], &none, &none, &whole, &e), &e);
		t_ok(device_cpu.prepare(d, ch.part[0].s->p, &first, &none,
		    &none, &one_op, &e), &e);
		ncalls = 0;
		t_ok(device_cpu.run(d, one_op, &b, &e), &e);
		ck_assert_uint_eq(ncalls, 0);
		t_ok(device_cpu.run(d, whole, &b, &e), &e);
		ck_assert_uint_eq(ncalls, (unsigned)dc.own_cores);
		device_cpu.close(d);
	}
	chain_close(&ch);
}
END_TEST

/* 4 heads, 16000 keys and values of 32 elements: 4 M multiply-adds. */
START_TEST(a_span_of_attention_alone_is_shared_if_it_is_long)
{
	const struct device_buf none = { 0 };
	const uint32_t seq = 0, pos = 15999;
	const struct batch b = { .nrows = 1, .seq = &seq, .pos = &pos };
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct par par = { .nthreads = 2, .run = count_run };
	struct device_conf dc = { .session = "x", .par = &par };
	const struct program *p;
	struct span attention = { 0 };
	struct device *d;
	struct err e = { 0 };
	uint32_t h;

	chain_start(&ch, &lc);
	dc.ledger = &ch.part[0].ledger;
	p = ch.part[0].s->p;
	while (p->op[attention.first].kind != OP_ATTENTION)
		attention.first++;
	attention.end = attention.first + 1;
	t_ok(device_cpu.open(&dc, &d, &e), &e);
	t_ok(device_cpu.prepare(d, p, &attention, &none, &none, &h, &e), &e);
	ncalls = 0;
	t_ok(device_cpu.run(d, h, &b, &e), &e);
	ck_assert_uint_eq(ncalls, 1);
	device_cpu.close(d);
	chain_close(&ch);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		logits_do_not_depend_on_stages_threads_or_batches,
		a_device_that_computes_nothing_is_an_error,
		rows_of_several_sequences_share_a_batch,
		the_head_sends_logits_in_blocks_and_marks_the_last,
		a_batch_without_logits_is_reported_as_done,
		an_idle_stage_sends_heartbeats_and_ends_when_told,
		a_forgotten_tail_can_be_rewritten,
		control_batches_pass_through_in_order,
		corrupt_headers_are_refused,
		invalid_rows_are_refused,
		rows_beyond_the_context_are_refused,
		a_ring_with_corrupt_counters_is_refused,
		a_stage_charges_exactly_its_program_and_weights,
		on_the_null_device_attention_falls_back_to_the_cpu,
		a_stage_on_the_null_device_passes_its_input_on,
		strict_refuses_a_device_that_would_fall_back,
		a_stage_respects_the_size_and_number_of_mappings,
		a_misaligned_buffer_is_refused,
		a_hanging_device_is_an_error_with_the_place,
		a_program_may_have_thousands_of_spans,
		a_small_span_is_shared_only_by_threads_with_own_cores,
		a_span_of_attention_alone_is_shared_if_it_is_long
	};

	return t_main("stage", 120, tests, NITEMS(tests));
}
