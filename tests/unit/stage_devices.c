/* tests/unit/stage_devices.c - tests of a stage's memory and devices: charges,
 * fallback to the CPU, limits that a device reports, devices that hang, spans
 * that threads share. */
#include "tests/support/t.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shm/arena.h"
#include "worker/stage/state.h"
#include "tests/support/chain.h"

enum { VOCAB = 320 };

static uint32_t text[CHAIN_CTX];

static void
draw_text(void)
{
	unsigned i;

	for (i = 0; i < CHAIN_CTX; i++)
		text[i] = (uint32_t)t_rand_below(VOCAB);
}

/* --- memory and placement --- */

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

	draw_text();
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

	draw_text();
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

/* More often than there are buffers: nothing is left behind. */
START_TEST(a_reset_device_is_as_after_open)
{
	static const struct device_ops *const kinds[] = { &device_cpu,
	    &device_null };
	const struct batch b = { .nrows = 0 };
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct mem_ledger ledger;
	struct device_conf dc = { .session = "x", .ledger = &ledger };
	struct device_buf buf;
	struct device *d;
	struct err e = { 0 };
	unsigned k, i;
	uint32_t h;

	chain_start(&ch, &lc);
	dc.par = ch.part[0].par;
	for (k = 0; k < NITEMS(kinds); k++) {
		mem_ledger_init(&ledger, "x", GIB);
		t_ok(kinds[k]->open(&dc, &d, &e), &e);
		for (i = 0; i < 20; i++) {
			t_ok(kinds[k]->alloc(d, MEM_KV, 4096, "keys", &buf,
			    &e), &e);
			ck_assert_uint_eq(((uint8_t *)buf.host)[0], 0);
			memset(buf.host, 1, buf.nbytes);
			t_ok(kinds[k]->prepare(d, ch.part[0].s->p,
			    &ch.part[0].s->pl.span[0], &buf, &buf, &h, &e),
			    &e);
			ck_assert_uint_eq(h, 0);
			t_ok(kinds[k]->run(d, h, &b, &e), &e);
			t_ok(kinds[k]->reset(d, &e), &e);
			ck_assert_uint_eq(ledger.used_bytes, 0);
			ck_assert_int_eq(kinds[k]->run(d, h, &b, &e), -EINVAL);
		}
		kinds[k]->close(d);
	}
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
		a_stage_charges_exactly_its_program_and_weights,
		on_the_null_device_attention_falls_back_to_the_cpu,
		a_stage_on_the_null_device_passes_its_input_on,
		strict_refuses_a_device_that_would_fall_back,
		a_device_that_computes_nothing_is_an_error,
		a_stage_respects_the_size_and_number_of_mappings,
		a_misaligned_buffer_is_refused,
		a_hanging_device_is_an_error_with_the_place,
		a_reset_device_is_as_after_open,
		a_program_may_have_thousands_of_spans,
		a_small_span_is_shared_only_by_threads_with_own_cores,
		a_span_of_attention_alone_is_shared_if_it_is_long
	};

	return t_main("stage_devices", 120, tests, NITEMS(tests));
}
