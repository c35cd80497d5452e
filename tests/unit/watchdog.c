/* tests/unit/watchdog.c - tests of the watchdog: time limits, and which
 * sessions it reports as hanging. */
#include "tests/support/t.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coordinator/session/sessions.h"
#include "shm/event.h"
#include "shm/ring.h"
#include "tests/support/tiny.h"

#define MS	UINT64_C(1000000)
#define S	UINT64_C(1000000000)

/* --- limits --- */

START_TEST(no_progress_within_the_limit_is_a_hang)
{
	struct watchdog w = { 0 };
	uint64_t now = 7 * S, i;

	/* The first check only starts the clock. */
	ck_assert_int_eq(watchdog_check(&w, now, 5, S), 0);
	for (i = 1; i < 10; i++)
		ck_assert_int_eq(watchdog_check(&w, now + i * 100 * MS, 5, S),
		    0);
	ck_assert_int_eq(watchdog_check(&w, now + S, 5, S), 1);
	/* Any progress restarts it. */
	ck_assert_int_eq(watchdog_check(&w, now + 2 * S, 6, S), 0);
	ck_assert_int_eq(watchdog_check(&w, now + 2 * S + 999 * MS, 6, S), 0);
	ck_assert_int_eq(watchdog_check(&w, now + 2 * S + 999 * MS, 5, S), 0);
}
END_TEST

/* Ctrl-Z, then fg after an hour: the coordinator was stopped too. */
START_TEST(time_without_checks_is_no_hang)
{
	struct watchdog w = { 0 };

	ck_assert_int_eq(watchdog_check(&w, S, 5, 5 * S), 0);
	ck_assert_int_eq(watchdog_check(&w, 2 * S, 5, 5 * S), 0);
	ck_assert_int_eq(watchdog_check(&w, 3600 * S, 5, 5 * S), 0);
	ck_assert_int_eq(watchdog_check(&w, 3600 * S + 250 * MS, 6, 5 * S), 0);
	ck_assert_uint_eq(w.stalled_ns, 0);
}
END_TEST

START_TEST(limits_follow_from_measured_passes)
{
	struct watchdog w = { 0 }, slow;
	uint64_t none = watchdog_pass_limit_ns(&w, 1), one, n;

	ck_assert_uint_eq(watchdog_pass_ns(&w, 1), 0);
	ck_assert_uint_ge(none, 100 * S);	/* nothing measured */
	ck_assert_uint_eq(watchdog_load_limit_ns(&w), none);
	w.pass_ns[0] = 100 * MS;		/* one row */
	one = watchdog_pass_limit_ns(&w, 1);
	ck_assert_uint_lt(one, 20 * S);
	ck_assert_uint_eq(watchdog_pass_ns(&w, 128), 128 * 100 * MS);
	/* A measurement takes precedence over scaling by rows. */
	w.pass_ns[status_pass(128)] = 2 * S;
	ck_assert_uint_eq(watchdog_pass_ns(&w, 128), 2 * S);
	ck_assert_uint_eq(watchdog_pass_ns(&w, 100), 2 * S);
	ck_assert_uint_eq(watchdog_pass_ns(&w, 64), 64 * 100 * MS);
	ck_assert_uint_eq(watchdog_pass_ns(&w, 129), 4 * S);
	ck_assert_uint_eq(watchdog_pass_limit_ns(&w, 1), one);
	/* Fewer rows take no longer. */
	w.pass_ns[0] = 0;
	ck_assert_uint_eq(watchdog_pass_ns(&w, 1), 2 * S);
	/* A device that is 100 times slower gets 100 times as long. */
	slow = w;
	slow.pass_ns[status_pass(128)] = 200 * S;
	ck_assert_uint_eq(watchdog_pass_limit_ns(&slow, 128) -
	    watchdog_pass_limit_ns(&w, 128),
	    99 * (watchdog_pass_limit_ns(&w, 128) -
	    watchdog_pass_limit_ns(&(struct watchdog){ .pass_ns = { 1 } }, 1) +
	    4));
	/* No value of a worker overflows. */
	for (n = 1; n <= MAX_BATCH; n *= 2) {
		memset(&w, 0xff, sizeof(w));
		ck_assert_uint_ge(watchdog_pass_limit_ns(&w, (uint32_t)n),
		    none);
	}
}
END_TEST

START_TEST(a_restarted_worker_keeps_the_measurements)
{
	struct watchdog w = { .pass_ns = { S }, .load_ns = 2 * S };

	ck_assert_int_eq(watchdog_check(&w, S, 5, S), 0);
	ck_assert_int_eq(watchdog_check(&w, 2 * S, 5, S), 1);
	watchdog_start_load(&w, 0);
	ck_assert_int_eq(watchdog_check(&w, 3 * S, 5, S), 0);
	ck_assert_uint_eq(w.stalled_ns, 0);
	ck_assert_uint_eq(w.pass_ns[0], S);
	ck_assert_uint_lt(watchdog_load_limit_ns(&w), 60 * S);
}
END_TEST

/* Limit: four times the time up to the last progress, at least a minute; the
 * longest limit before the first block. */
START_TEST(the_limit_of_a_first_load_follows_its_progress)
{
	struct watchdog w = { .load_start_ns = 1000 * S };
	uint64_t none = watchdog_load_limit_ns(&w), early;

	ck_assert_int_eq(watchdog_check(&w, 1001 * S, 0, 5 * S), 0);
	ck_assert_uint_eq(watchdog_load_limit_ns(&w), none);
	ck_assert_int_eq(watchdog_check(&w, 1002 * S, 1, 5 * S), 0);
	early = watchdog_load_limit_ns(&w);
	ck_assert_uint_ge(early, 60 * S);
	ck_assert_uint_lt(early, none);
	/* Time without progress does not extend the limit. */
	ck_assert_int_eq(watchdog_check(&w, 1003 * S, 1, 5 * S), 0);
	ck_assert_uint_eq(watchdog_load_limit_ns(&w), early);
	ck_assert_int_eq(watchdog_check(&w, 1100 * S, 2, 5 * S), 0);
	ck_assert_uint_ge(watchdog_load_limit_ns(&w), 400 * S);
	ck_assert_uint_lt(watchdog_load_limit_ns(&w), 420 * S);
	/* The time of a complete load takes precedence. */
	w.load_ns = S;
	ck_assert_uint_lt(watchdog_load_limit_ns(&w), 10 * S);
	/* A new load without a measurement. */
	w.load_ns = 0;
	watchdog_start_load(&w, 0);
	ck_assert_uint_eq(watchdog_load_limit_ns(&w), none);
}
END_TEST

/* --- two sessions with rings and status pages, but without workers --- */

static struct gguf *g;
static struct model *m;
static struct plan plan;
static const struct session_conf session_conf = { .device = "cpu" };
static struct sessions ss;
static struct stage_status status[2];
static struct ring producer[3];

static void
open_sessions(void)
{
	const struct tiny tiny = { .n_layer = 2, .n_embd = 64, .n_ff = 128,
	    .n_vocab = 320, .n_head = 4, .n_head_kv = 2, .head_dim = 32,
	    .v_dim = 32, .type = QUANT_F32, .odd_type = TINY_SAME_TYPE };
	uint32_t nslots, nbytes;
	struct err e = { 0 };
	unsigned i;

	t_ok(tiny_open(&tiny, &g, &m, &e), &e);
	plan = (struct plan){ .model = m, .batch_rows = 8, .head_rows = 2,
	    .nsessions = 2 };
	memset(&ss, 0, sizeof(ss));
	memset(status, 0, sizeof(status));
	ss.plan = &plan;
	ss.n = 2;
	ss.rows_in_flight = 1;
	for (i = 0; i < 3; i++) {
		plan_ring(&plan, i, &nslots, &nbytes);
		t_ok(ring_create("watch", nslots, nbytes, &ss.ring[i], &e),
		    &e);
		t_ok(ring_attach_mapped(ss.ring[i].base, ss.ring[i].nbytes,
		    RING_SIDE_PRODUCER, nslots, nbytes, &producer[i], &e), &e);
	}
	for (i = 0; i < 2; i++) {
		ss.s[i].name = i == 0 ? "a" : "b";
		ss.s[i].state = SESSION_READY;
		plan.session[i].conf = &session_conf;
		ss.s[i].plan = &plan.session[i];
		ss.s[i].status = &status[i];
		ss.s[i].proc = &ss.s[i].own;
		ss.s[i].own.child.pid = getpid();
		atomic_store(&status[i].heartbeat, 10);
		atomic_store(&status[i].progress, 100);
		atomic_store(&status[i].pass_ns[0], MS);
	}
}

static void
close_sessions(void)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		region_close(&ss.ring[i]);
	tiny_close(g, m);
}

static void
commit_slots(struct ring *r, uint32_t n)
{
	while (n-- > 0) {
		ck_assert_ptr_nonnull(ring_reserve_spsc(r));
		ring_commit_spsc(r);
	}
}

/* Check progress, pretend that both sessions stood still for still_ns, and
 * check again. */
static int
check_after(uint64_t still_ns, struct err *e)
{
	unsigned i;

	ss.next_check_ns = 0;
	t_ok(sessions_check_progress(&ss, e), e);
	for (i = 0; i < 2; i++)
		ss.watchdog[i].stalled_ns = still_ns;
	ss.next_check_ns = 0;
	return sessions_check_progress(&ss, e);
}

static void
add_heartbeat(unsigned i)
{
	atomic_fetch_add(&status[i].heartbeat, 1);
}

START_TEST(a_batch_needs_progress_heartbeats_do_not_count)
{
	struct err e = { 0 };

	open_sessions();
	commit_slots(&producer[1], 1);			/* b has a batch */
	ss.next_check_ns = 0;
	t_ok(sessions_check_progress(&ss, &e), &e);
	ss.watchdog[1].stalled_ns = 10 * S;
	add_heartbeat(0);
	add_heartbeat(1);
	ss.next_check_ns = 0;
	ck_assert_int_eq(sessions_check_progress(&ss, &e), -ECHILD);
	ck_assert_ptr_nonnull(strstr(e.msg, "session b: its worker hangs: "
	    "nothing has moved for 10."));
	ck_assert_ptr_nonnull(strstr(e.msg, "a batch of 1 row takes 0.001 s"));
	ck_assert_int_eq(ss.s[1].state, SESSION_FAILED);
	ck_assert_int_eq(ss.s[0].state, SESSION_READY);
	close_sessions();
}
END_TEST

START_TEST(the_end_of_an_op_is_progress)
{
	struct err e = { 0 };

	open_sessions();
	commit_slots(&producer[1], 1);
	ss.next_check_ns = 0;
	t_ok(sessions_check_progress(&ss, &e), &e);
	ss.watchdog[1].stalled_ns = 10 * S;
	add_heartbeat(0);
	atomic_fetch_add(&status[1].progress, 1);
	ss.next_check_ns = 0;
	t_ok(sessions_check_progress(&ss, &e), &e);
	ck_assert_uint_eq(ss.watchdog[1].stalled_ns, 0);
	close_sessions();
}
END_TEST

START_TEST(an_idle_worker_needs_heartbeats_only)
{
	struct err e = { 0 };
	int full;

	for (full = 0; full < 2; full++) {
		open_sessions();
		if (full) {			/* a waits for room */
			commit_slots(&producer[0], 1);
			commit_slots(&producer[1], SLOTS_STAGE);
		}
		ss.next_check_ns = 0;
		t_ok(sessions_check_progress(&ss, &e), &e);
		ss.watchdog[0].stalled_ns = 10 * S;
		add_heartbeat(0);
		atomic_fetch_add(&status[1].progress, 1);
		ss.next_check_ns = 0;
		t_ok(sessions_check_progress(&ss, &e), &e);
		ck_assert_uint_eq(ss.watchdog[0].stalled_ns, 0);
		atomic_fetch_add(&status[1].progress, 1);
		ss.watchdog[0].stalled_ns = 10 * S;
		ss.next_check_ns = 0;
		ck_assert_int_eq(sessions_check_progress(&ss, &e), -ECHILD);
		ck_assert_int_eq(ss.s[0].state, SESSION_FAILED);
		close_sessions();
	}
}
END_TEST

START_TEST(missing_or_long_measurements_give_long_limits)
{
	struct err e = { 0 };

	open_sessions();
	commit_slots(&producer[1], 1);
	atomic_store(&status[0].pass_ns[0], 0);
	atomic_store(&status[1].pass_ns[0], 0);
	t_ok(check_after(30 * S, &e), &e);
	atomic_store(&status[0].pass_ns[0], 20 * S);
	atomic_store(&status[1].pass_ns[0], 20 * S);
	t_ok(check_after(60 * S, &e), &e);
	ck_assert_int_eq(check_after(90 * S, &e), -ECHILD);
	close_sessions();
}
END_TEST

/* The short limit holds although nothing is measured: a stopped process
 * computes nothing. */
START_TEST(a_stopped_worker_is_found_without_measurements)
{
	static const char *const in[] = { "a batch", "a load" };
	struct err e = { 0 };
	unsigned i;
	pid_t pid;

	if ((pid = fork()) == 0) {
		raise(SIGSTOP);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
	for (i = 0; i < NITEMS(in); i++) {
		open_sessions();
		atomic_store(&status[1].pass_ns[0], 0);
		commit_slots(&producer[1], 1);
		if (i == 1) {
			ss.s[1].state = SESSION_LOADING;
			watchdog_start_load(&ss.watchdog[1], event_now_ns());
		}
		ss.s[1].own.child.pid = pid;
		t_ok(check_after(4 * S, &e), &e);
		ck_assert_msg(check_after(5 * S, &e) == -ECHILD, "%s", in[i]);
		ck_assert_ptr_nonnull(strstr(e.msg, "stopped by a signal"));
		ck_assert_int_eq(ss.s[1].state, SESSION_FAILED);
		close_sessions();
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
END_TEST

/* A worker that ignores the message about another loss. */
START_TEST(heartbeats_do_not_replace_the_answer_to_a_new_epoch)
{
	struct err e = { 0 };

	open_sessions();
	ss.next_check_ns = 0;
	t_ok(sessions_check_progress(&ss, &e), &e);
	ss.watchdog[0].stalled_ns = ss.watchdog[1].stalled_ns = 10 * S;
	ss.epoch = 3;
	ss.s[0].epoch = 3;
	ss.s[1].epoch = 2;
	add_heartbeat(0);
	add_heartbeat(1);
	ss.next_check_ns = 0;
	ck_assert_int_eq(sessions_check_progress(&ss, &e), -ECHILD);
	ck_assert_int_eq(ss.s[0].state, SESSION_READY);
	ck_assert_int_eq(ss.s[1].state, SESSION_FAILED);
	close_sessions();
}
END_TEST

START_TEST(a_slot_in_any_ring_means_work_in_flight)
{
	unsigned i;

	for (i = 0; i < NITEMS(producer); i++) {
		open_sessions();
		ck_assert(sessions_rings_are_empty(&ss));
		commit_slots(&producer[i], 1);
		ck_assert(!sessions_rings_are_empty(&ss));
		close_sessions();
	}
}
END_TEST

START_TEST(sessions_without_a_worker_are_not_watched)
{
	struct err e = { 0 };

	open_sessions();
	ss.s[0].status = ss.s[1].status = NULL;
	ss.s[0].state = SESSION_CLOSED;
	ss.s[1].state = SESSION_SPAWNED;
	t_ok(check_after(900 * S, &e), &e);
	/* A session that was checked just now has not stalled. */
	close_sessions();
	open_sessions();
	t_ok(check_after(0, &e), &e);
	ss.watchdog[0].stalled_ns = ss.watchdog[1].stalled_ns = 90 * S;
	t_ok(sessions_check_progress(&ss, &e), &e);
	close_sessions();
}
END_TEST

START_TEST(loaded_bytes_are_progress_of_a_load)
{
	struct err e = { 0 };

	open_sessions();
	ss.s[0].state = ss.s[1].state = SESSION_LOADING;
	watchdog_start_load(&ss.watchdog[0], event_now_ns());
	watchdog_start_load(&ss.watchdog[1], event_now_ns());
	/* The first load has a long limit. */
	t_ok(check_after(60 * S, &e), &e);
	watchdog_end_load(&ss.watchdog[0], event_now_ns());
	watchdog_end_load(&ss.watchdog[1], event_now_ns());
	ck_assert_uint_gt(ss.watchdog[0].load_ns, 0);
	watchdog_start_load(&ss.watchdog[0], event_now_ns());
	watchdog_start_load(&ss.watchdog[1], event_now_ns());
	ck_assert_int_eq(check_after(60 * S, &e), -ECHILD);
	ck_assert_ptr_nonnull(strstr(e.msg, "its whole load took "));
	ss.s[0].state = SESSION_LOADING;
	watchdog_start_load(&ss.watchdog[0], event_now_ns());
	watchdog_start_load(&ss.watchdog[1], event_now_ns());
	ss.next_check_ns = 0;
	t_ok(sessions_check_progress(&ss, &e), &e);
	ss.watchdog[0].stalled_ns = ss.watchdog[1].stalled_ns = 60 * S;
	atomic_fetch_add(&status[0].load_bytes, 4096);
	atomic_fetch_add(&status[1].load_bytes, 4096);
	ss.next_check_ns = 0;
	t_ok(sessions_check_progress(&ss, &e), &e);
	close_sessions();
}
END_TEST

/* Two checks, with a call that began at these times, and still_ns before the
 * second one. */
static int
check_call(uint64_t first, uint64_t second, uint64_t still_ns, struct err *e)
{
	unsigned i;

	ss.next_check_ns = 0;
	atomic_store(&status[1].device_call_ns, first);
	t_ok(sessions_check_progress(&ss, e), e);
	ss.call[1].stalled_ns = still_ns;
	atomic_store(&status[1].device_call_ns, second);
	for (i = 0; i < 2; i++)
		add_heartbeat(i);
	ss.next_check_ns = 0;
	return sessions_check_progress(&ss, e);
}

/* In every state, whatever else moves, and whatever batches take. */
START_TEST(a_call_of_the_devices_library_has_a_minute)
{
	static const enum session_state states[] = { SESSION_SPAWNED,
	    SESSION_BOUND, SESSION_LOADING, SESSION_READY, SESSION_DRAINED };
	struct err e = { 0 };
	unsigned i;

	for (i = 0; i < NITEMS(states); i++) {
		open_sessions();
		ss.s[1].state = states[i];
		atomic_store(&status[1].pass_ns[0], 600 * S);
		t_ok(check_call(7, 7, 59 * S, &e), &e);
		t_ok(check_call(7, 8, 60 * S, &e), &e);	/* another call */
		t_ok(check_call(0, 0, 60 * S, &e), &e);	/* none */
		ck_assert_int_eq(ss.s[1].state, states[i]);
		ck_assert_int_eq(check_call(9, 9, 60 * S, &e), -ECHILD);
		ck_assert_msg(strstr(e.msg, "session b: its device cpu hangs: "
		    "a call of its library has not returned for 60.") != NULL,
		    "%s", e.msg);
		ck_assert_int_eq(ss.s[1].state, SESSION_FAILED);
		ck_assert(ss.s[1].has_hung);
		ck_assert_int_eq(ss.s[0].state, SESSION_READY);
		/* Once. */
		t_ok(check_call(9, 9, 90 * S, &e), &e);
		close_sessions();
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		no_progress_within_the_limit_is_a_hang,
		time_without_checks_is_no_hang,
		limits_follow_from_measured_passes,
		a_restarted_worker_keeps_the_measurements,
		the_limit_of_a_first_load_follows_its_progress,
		a_batch_needs_progress_heartbeats_do_not_count,
		the_end_of_an_op_is_progress,
		an_idle_worker_needs_heartbeats_only,
		missing_or_long_measurements_give_long_limits,
		a_stopped_worker_is_found_without_measurements,
		heartbeats_do_not_replace_the_answer_to_a_new_epoch,
		a_slot_in_any_ring_means_work_in_flight,
		sessions_without_a_worker_are_not_watched,
		loaded_bytes_are_progress_of_a_load,
		a_call_of_the_devices_library_has_a_minute
	};

	return t_main("watchdog", 60, tests, NITEMS(tests));
}
