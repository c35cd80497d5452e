/* tests/unit/stage_renew.c - tests of a stage after the loss of a neighbour: it
 * clears its sequences, switches to new rings at any point, drops batches of
 * older epochs, and computes the same bits from replayed batches. */
#include "tests/support/t.h"

#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker/stage/state.h"
#include "tests/support/chain.h"
#include "tests/support/syscalls.h"

enum { TEXT = 48, VOCAB = 320 };

static uint32_t text[TEXT];

/* Tokens of the epoch that is lost. */
static uint32_t other[TEXT];

static void
draw_texts(void)
{
	unsigned i;

	for (i = 0; i < TEXT; i++) {
		text[i] = (uint32_t)t_rand_below(VOCAB);
		other[i] = (uint32_t)t_rand_below(VOCAB);
	}
}

/* The reference: the text without a loss, one row a batch. */
static const struct chain *
run_reference(const struct chain_conf *lc)
{
	static struct chain ch;

	draw_texts();
	chain_start(&ch, lc);
	chain_send_text(&ch, 0, 0, text, TEXT, 1);
	chain_finish(&ch);
	return &ch;
}

static void
close_reference(const struct chain *ch)
{
	chain_close((struct chain *)(uintptr_t)ch);
}

START_TEST(replayed_batches_give_the_same_bits)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	const struct chain *ref;
	unsigned i;

	lc.nstages = 3;
	lc.cut[1] = 2;
	lc.cut[2] = 4;
	ref = run_reference(&lc);
	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, other, 30, 7);
	chain_send_text(&ch, 1, 0, text, 20, 5);
	chain_finish(&ch);
	for (i = 0; i < lc.nstages; i++)
		stage_renew(ch.part[i].s, 1, NULL, NULL);
	ch.epoch = 1;
	chain_send_text(&ch, 0, 0, text, 20, 16);
	chain_send_text(&ch, 1, 0, other, 3, 3);
	chain_send_text(&ch, 0, 20, text, TEXT - 20, 1);
	chain_finish(&ch);
	ck_assert(chain_same_logits(ref, 0, &ch, 0, 0, TEXT));
	chain_close(&ch);
	close_reference(ref);
}
END_TEST

/* A neighbour that fills the ring at every wake-up; it gives up after a hundred
 * rings.  syscall() is replaced, so that the wake-up runs it here. */
static struct ring_shared *flooded;

static void
flood(void)
{
	uint32_t tail = atomic_load(&flooded->tail);

	if (tail < 100 * CHAIN_SLOTS)
		atomic_store(&flooded->head, tail + CHAIN_SLOTS);
}

long
syscall(long nr, ...)
{
	long a[SYSCALL_ARGS];
	va_list ap;

	va_start(ap, nr);
	syscall_args(a, ap);
	va_end(ap);
	if (nr == SYS_futex && flooded != NULL &&
	    (_Atomic uint32_t *)a[0] == &flooded->tail) {
		flood();
		return 0;
	}
	return syscall_real(nr, a);
}

START_TEST(renew_ends_although_the_neighbour_keeps_sending)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct ring_shared *sh;

	chain_start(&ch, &lc);
	flooded = sh = ch.map[0].base;
	atomic_store(&sh->asleep, RING_PRODUCER);
	flood();
	stage_renew(ch.part[0].s, 1, NULL, NULL);
	ck_assert_uint_eq(atomic_load(&sh->tail), CHAIN_SLOTS);
	/* An impossible counter ends the dropping, too. */
	flooded = NULL;
	atomic_store(&sh->head, UINT32_MAX / 2);
	stage_renew(ch.part[0].s, 2, NULL, NULL);
	ck_assert_uint_eq(atomic_load(&sh->tail), 2 * CHAIN_SLOTS);
	chain_close(&ch);
}
END_TEST

START_TEST(renew_drops_waiting_slots_and_later_ones_of_old_epochs)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	const struct chain *ref = run_reference(&lc);

	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, other, 10, 5);
	stage_renew(ch.part[0].s, 7, NULL, NULL);
	ck_assert_uint_eq(ring_used_spsc(&ch.first), 0);
	/* From a neighbour that does not know of the new epoch yet. */
	chain_send_text(&ch, 0, 0, other, 10, 5);
	ch.epoch = 7;
	chain_send_text(&ch, 0, 0, text, TEXT, 6);
	chain_finish(&ch);
	ck_assert_uint_eq(ch.seen[0].epoch, 7);
	ck_assert(chain_same_logits(ref, 0, &ch, 0, 0, TEXT));
	chain_close(&ch);
	close_reference(ref);
}
END_TEST

/* --- renewal in the middle of a batch --- */

static struct region old[2];
static int ncalls;

static void
create_new_rings(struct chain *ch, struct ring *in, struct ring *out)
{
	struct err e = { 0 };
	unsigned i;

	for (i = 0; i < 2; i++) {
		old[i] = ch->map[i];
		t_ok(ring_create("new", CHAIN_SLOTS, i == 0 ?
		    ch->first.slot_bytes : ch->last.slot_bytes,
		    &ch->map[i], &e), &e);
	}
	t_ok(ring_attach_mapped(ch->map[0].base, ch->map[0].nbytes,
	    RING_SIDE_CONSUMER, CHAIN_SLOTS, ch->first.slot_bytes, in, &e), &e);
	t_ok(ring_attach_mapped(ch->map[1].base, ch->map[1].nbytes,
	    RING_SIDE_PRODUCER, CHAIN_SLOTS, ch->last.slot_bytes, out, &e), &e);
	t_ok(ring_attach_mapped(ch->map[0].base, ch->map[0].nbytes,
	    RING_SIDE_PRODUCER, CHAIN_SLOTS, ch->first.slot_bytes, &ch->first,
	    &e), &e);
	t_ok(ring_attach_mapped(ch->map[1].base, ch->map[1].nbytes,
	    RING_SIDE_CONSUMER, CHAIN_SLOTS, ch->last.slot_bytes, &ch->last,
	    &e), &e);
}

/* Called when the stage waits for room in the middle of a batch: start a new
 * epoch. */
static int
renew_when_idle(void *arg)
{
	struct chain *ch = arg;
	struct ring in, out;

	if (ncalls++ > 0)
		return 0;
	ck_assert_uint_eq(ring_used_spsc(&ch->last), CHAIN_SLOTS);
	create_new_rings(ch, &in, &out);
	stage_renew(ch->part[0].s, 1, &in, &out);
	ch->epoch = 1;
	chain_send_text(ch, 0, 0, text, TEXT, 5);
	chain_send_stop(ch);
	return 0;
}

START_TEST(renew_drops_the_batch_in_progress)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	const struct chain *ref = run_reference(&lc);
	struct err e = { 0 };
	unsigned i;

	chain_start(&ch, &lc);
	for (i = 0; i < CHAIN_SLOTS - 2; i++)
		chain_send_control(&ch, BATCH_FORGET, 0, 0);
	/* Four slots of logits. */
	chain_send_text(&ch, 0, 0, other, 16, 16);
	chain_send_text(&ch, 0, 16, other, 1, 1);
	ncalls = 0;
	/* If this hangs, the timeout of the test ends it. */
	t_ok(stage_run(ch.part[0].s, renew_when_idle, &ch, &e), &e);
	ck_assert_int_gt(ncalls, 0);
	t_ok(chain_run(&ch, &e), &e);
	ck_assert_uint_eq(ch.seen[0].epoch, 1);
	ck_assert(chain_same_logits(ref, 0, &ch, 0, 0, TEXT));
	region_close(&old[0]);
	region_close(&old[1]);
	chain_close(&ch);
	close_reference(ref);
}
END_TEST

/* --- calls by the coordinator, and times of passes --- */

static int
leave_when_called(void *arg)
{
	const struct chain *ch = arg;

	ncalls++;
	/* Two batches wait; neither has begun. */
	ck_assert_uint_eq(ring_used_spsc(&ch->first), 2);
	return 1;
}

START_TEST(a_call_is_answered_before_the_next_batch)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	struct err e = { 0 };

	draw_texts();
	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, text, 10, 5);
	atomic_fetch_add(&ch.part[0].status.call, 1);
	ncalls = 0;
	t_ok(stage_run(ch.part[0].s, leave_when_called, &ch, &e), &e);
	ck_assert_int_eq(ncalls, 1);
	/* It is answered only once. */
	chain_finish(&ch);
	ck_assert_uint_eq(ch.nseen, 4);
	chain_close(&ch);
}
END_TEST

START_TEST(the_longest_pass_is_recorded_by_row_class)
{
	static struct chain ch;
	struct chain_conf lc = CHAIN_CONF;
	const struct stage_status *st = &ch.part[0].status;
	uint64_t one, all = 0;
	unsigned i;

	draw_texts();
	chain_start(&ch, &lc);
	chain_send_text(&ch, 0, 0, text, 3, 1);
	chain_finish(&ch);
	one = atomic_load(&st->pass_ns[0]);
	ck_assert_uint_gt(one, 0);
	chain_send_text(&ch, 0, 3, text, 10, 5);
	chain_finish(&ch);
	ck_assert_uint_gt(atomic_load(&st->pass_ns[3]), 0);	/* 5 to 8 */
	ck_assert_uint_eq(atomic_load(&st->pass_ns[0]), one);
	for (i = 0; i < STATUS_PASSES; i++)
		all += atomic_load(&st->pass_ns[i]) != 0;
	ck_assert_uint_eq(all, 2);
	ck_assert_uint_eq(status_pass(1), 0);
	ck_assert_uint_eq(status_pass(2), 1);
	ck_assert_uint_eq(status_pass(3), 2);
	ck_assert_uint_eq(status_pass(MAX_BATCH), STATUS_PASSES - 1);
	ck_assert_uint_eq(status_pass(UINT32_MAX), STATUS_PASSES - 1);
	chain_close(&ch);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		replayed_batches_give_the_same_bits,
		renew_ends_although_the_neighbour_keeps_sending,
		renew_drops_waiting_slots_and_later_ones_of_old_epochs,
		renew_drops_the_batch_in_progress,
		a_call_is_answered_before_the_next_batch,
		the_longest_pass_is_recorded_by_row_class
	};

	return t_main("stage_renew", 120, tests, NITEMS(tests));
}
