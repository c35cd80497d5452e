/* tests/unit/ascend_queue.c - tests of products in flight on the stand-in for CANN,
 * whose tasks run when they are waited for: one that is read too early has old bytes. */
#include "tests/support/ascend.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "kernels/types/quant.h"
#include "shm/event.h"
#include "worker/ascend/queue.h"

#define SECOND	UINT64_C(1000000000)

enum { K = 48, MOST_N = 1024, MATRICES = 3 };

static struct acl_session s;
static struct acl_choice choice;
static struct acl_products p;
static struct acl_queue q;

static struct matrix {
	struct acl_matrix m;
	float value[MOST_N * K];	/* n x K */
} w[MATRICES];
static uint16_t x[ASCEND_ROWS * K];	/* rows x K */

static void
open_matrix(struct matrix *m, uint32_t n)
{
	static uint16_t half[MOST_N * K];
	struct err e = { 0 };
	uint32_t i;

	m->m = (struct acl_matrix){ .n = n, .k = K, .format = ASCEND_HALF,
	    .w = as_block(n * K * sizeof(*half)) };
	for (i = 0; i < n * K; i++) {
		half[i] = as_random_half();
		m->value[i] = half_to_float(half[i]);
	}
	as_ok(as_lib()->aclrtMemcpy((void *)(uintptr_t)m->m.w, n * K *
	    sizeof(*half), half, n * K * sizeof(*half),
	    ACL_MEMCPY_HOST_TO_DEVICE));
	t_ok(acl_products_prepare(&p, &m->m, &e), &e);
}

/* C has room for c_bytes; A is filled. */
static void
begin(uint64_t c_bytes, uint32_t n0, uint32_t n1, uint32_t n2)
{
	struct err e = { 0 };
	uint32_t i;

	as_open(&s);
	choice = (struct acl_choice){ .magic = ACL_CHOICE,
	    .form[ASCEND_HALF] = { .way = ACL_WAY_MM, .c_type = ACL_FLOAT,
	    .nclasses = 3, .rows = { 1, 8, ASCEND_ROWS } },
	    .chip = { .has_memory = !s.machine.is_rc, .cut_k = 1 } };
	p = (struct acl_products){ .s = &s, .choice = &choice,
	    .a_bytes = sizeof(x), .c_bytes = c_bytes };
	open_matrix(&w[0], n0);
	open_matrix(&w[1], n1);
	open_matrix(&w[2], n2);
	as_open_products(&p);
	memset(p.c, 0xff, p.c_bytes);
	for (i = 0; i < ASCEND_ROWS * K; i++)
		p.a[i] = x[i] = as_random_half();
	t_ok(acl_products_send(&p, K, ASCEND_ROWS, &e), &e);
	acl_queue_init(&q, &p);
}

static void
end(void)
{
	acl_session_drain(&s);
	acl_products_close(&p);
	as_close_products(&p);
	as_close(&s);
}

static void
open_events(void)
{
	struct err e = { 0 };

	t_ok(acl_session_events(&s, &e), &e);
	ck_assert_uint_eq(s.nevents, ACL_EVENTS);
}

/* Returns as acl_queue_start(). */
static int
start(unsigned i, uint32_t r0, uint32_t m)
{
	struct err e = { 0 };
	int rc = acl_queue_start(&q, i, &w[i].m, ASCEND_ROWS, r0, m, &e);

	ck_assert_msg(rc >= 0, "%s", e.msg);
	return rc;
}

static void
mark(void)
{
	struct err e = { 0 };

	t_ok(acl_queue_mark(&q, &e), &e);
}

/* The rows of the first product in flight are right. */
static int
is_right(uint32_t r0, uint32_t m)
{
	const struct acl_flight *f = acl_queue_at(&q, 0);
	const struct matrix *a = &w[f->id];
	static float got[MOST_N];
	float want;
	uint32_t r, i, j;

	for (r = 0; r < m; r++) {
		acl_products_read(&p, &a->m, m, f->at, r, got);
		for (i = 0; i < a->m.n; i++) {
			for (want = 0, j = 0; j < K; j++)
				want += a->value[i * K + j] *
				    half_to_float(x[(r0 + r) * K + j]);
			if (got[i] != want)
				return 0;
		}
	}
	return 1;
}

static void
finish(uint32_t r0, uint32_t m)
{
	struct err e = { 0 };

	t_ok(acl_queue_wait(&q, event_now_ns() + 300 * SECOND, &e), &e);
	ck_assert(is_right(r0, m));
	acl_queue_drop(&q);
}

static uint64_t
done(void)
{
	return as_counts().products;
}

/* --- the order, and events --- */

static void
wait_for_each(void)
{
	begin(1 * MIB, 1024, 512, 16);
	open_events();
	ck_assert_int_eq(start(0, 0, 64), 1);
	ck_assert_int_eq(start(1, 0, 64), 1);
	ck_assert_int_eq(start(2, 0, 64), 1);
	mark();
	/* Nothing has run, and the last two have not when the first one has. */
	ck_assert_uint_eq(done(), 0);
	ck_assert(!is_right(0, 64));
	finish(0, 64);
	ck_assert_uint_eq(done(), 1);
	ck_assert(!is_right(0, 64));
	finish(0, 64);
	ck_assert_uint_eq(done(), 2);
	finish(0, 64);
	ck_assert_uint_eq(done(), 3);
	ck_assert_ptr_null(acl_queue_at(&q, 0));
	end();
}

START_TEST(each_product_is_read_while_the_next_one_computes)
{
	as_run_bare("", AS_OLD, wait_for_each);
	as_run_bare("soc=310B", AS_OLD, wait_for_each);
}
END_TEST

static void
wait_once(void)
{
	struct ascend_standin_counts before, after;
	unsigned i, round;

	begin(64 * KIB, 64, 32, 16);
	open_events();
	before = as_counts();
	for (round = 0; round < 3 * ACL_EVENTS; round++) {
		for (i = 0; i < MATRICES; i++)
			ck_assert_int_eq(start(i, 5, 1), 1);
		mark();
		ck_assert(!acl_queue_at(&q, 0)->has_event);
		ck_assert(!acl_queue_at(&q, 1)->has_event);
		ck_assert(acl_queue_at(&q, 2)->has_event);
		ck_assert_uint_eq(done(), before.products + 3 * round);
		finish(5, 1);
		ck_assert_uint_eq(done(), before.products + 3 * round + 3);
		finish(5, 1);
		finish(5, 1);
	}
	after = as_counts();
	ck_assert_uint_eq(after.events, before.events);
	ck_assert_uint_eq(after.allocations, before.allocations);
	end();
}

START_TEST(small_products_are_waited_for_together)
{
	as_run_bare("", AS_OLD, wait_once);
	as_run_bare("soc=310B", AS_OLD, wait_once);
}
END_TEST

static void
wait_without_events(void)
{
	struct err e = { 0 };

	begin(1 * MIB, 1024, 512, 16);
	ck_assert_int_eq(acl_session_events(&s, &e), -ENOTSUP);
	HAS(e.msg, "aclrtCreateEvent failed with 207000");
	ck_assert_uint_eq(s.nevents, 0);
	ck_assert_int_eq(start(0, 0, 64), 1);
	ck_assert_int_eq(start(1, 8, 7), 1);
	mark();
	finish(0, 64);
	ck_assert_uint_eq(done(), 2);
	ck_assert_int_eq(start(2, 0, 8), 1);
	finish(8, 7);
	/* It was started after the wait. */
	ck_assert_uint_eq(done(), 2);
	ck_assert(!is_right(0, 8));
	finish(0, 8);
	end();
}

START_TEST(a_device_without_events_is_waited_for)
{
	as_run_bare("fail=aclrtCreateEvent:207000@3", AS_OLD,
	    wait_without_events);
	as_run_bare("soc=310B,fail=aclrtCreateEvent:207000", AS_OLD,
	    wait_without_events);
}
END_TEST

/* --- C's room --- */

static void
check_room(void)
{
	const struct acl_flight *f, *g;
	unsigned i, j;

	for (i = 0; (f = acl_queue_at(&q, i)) != NULL; i++) {
		ck_assert_uint_eq(f->at % ACL_ALIGN, 0);
		ck_assert_uint_le(f->at + f->nbytes, p.c_bytes);
		ck_assert_uint_ge(f->nbytes, acl_products_c_bytes(&p,
		    &w[f->id].m, 1));
		for (j = 0; j < i; j++) {
			g = acl_queue_at(&q, j);
			ck_assert(f->at + f->nbytes <= g->at ||
			    g->at + g->nbytes <= f->at);
		}
	}
}

/* Products of any size, each read some time later, in order. */
static void
fill_room(void)
{
	struct { uint32_t r0, m; } started[256];
	unsigned n = 0, nread = 0, full = 0, i;
	int rc;

	/* The largest one takes two thirds of it. */
	begin(ALIGN_UP((uint64_t)ASCEND_ROWS * 300 * sizeof(float) * 3 / 2,
	    (uint64_t)ACL_ALIGN), 300, 160, 17);
	open_events();
	while (nread < NITEMS(started)) {
		i = (unsigned)t_rand_below(MATRICES);
		rc = 0;
		if (n < NITEMS(started)) {
			started[n].m = 1 + (uint32_t)t_rand_below(
			    t_rand_below(2) ? 64 : 8);
			started[n].r0 = (uint32_t)t_rand_below(ASCEND_ROWS -
			    acl_products_rows(&p, &w[i].m, started[n].m) + 1);
			rc = start(i, started[n].r0, started[n].m);
			full += rc == 0;
			n += (unsigned)rc;
			check_room();
		}
		if (rc == 0 || t_rand_below(3) == 0) {
			mark();
			finish(started[nread].r0, started[nread].m);
			nread++;
		}
	}
	ck_assert_uint_gt(full, 0);
	end();
}

START_TEST(products_in_flight_have_parts_of_c)
{
	as_run_bare("", AS_OLD, fill_room);
	as_run_bare("soc=310B", AS_OLD, fill_room);
}
END_TEST

static void
exceed_room(void)
{
	struct err e = { 0 };

	begin(32 * KIB, 16, 256, 16);
	open_events();
	ck_assert_int_eq(start(0, 0, 64), 1);
	ck_assert_int_eq(acl_queue_start(&q, 1, &w[1].m, ASCEND_ROWS, 0, 64,
	    &e), 0);
	mark();
	finish(0, 64);
	ck_assert_int_eq(acl_queue_start(&q, 1, &w[1].m, ASCEND_ROWS, 0, 64,
	    &e), -EINVAL);
	HAS(e.msg, "session npu0: C of 32768 bytes, and 65536 are needed");
	end();
}

START_TEST(a_product_without_room_waits)
{
	as_run_bare("", AS_OLD, exceed_room);
}
END_TEST

/* --- failures --- */

static int fails_after;			/* products that are right */

static void
fail_in_the_middle(void)
{
	struct err e = { 0 };
	int i, rc;

	begin(1 * MIB, 1024, 512, 512);
	open_events();
	for (i = 0; i < MATRICES; i++)
		ck_assert_int_eq(start((unsigned)i, 0, 64), 1);
	mark();
	for (i = 0; i < fails_after; i++)
		finish(0, 64);
	rc = acl_queue_wait(&q, event_now_ns() + 300 * SECOND, &e);
	ck_assert_int_lt(rc, 0);
	ck_assert_int_ne(rc, -ETIMEDOUT);
	ck_assert(s.is_lost);
	HAS(e.msg, "session npu0");
	HAS(e.msg, "failed with 5070");
	ck_assert(!is_right(0, 64));
	acl_session_close(&s);
	_exit(0);			/* as a worker that lost it */
}

START_TEST(a_task_that_fails_loses_the_stream)
{
	fails_after = 0;
	as_run_bare("late=Mm:507018@1", AS_OLD, fail_in_the_middle);
	fails_after = 1;
	as_run_bare("late=Mm:507018@2", AS_OLD, fail_in_the_middle);
	as_run_bare("soc=310B,late=Mm:507015@2", AS_OLD, fail_in_the_middle);
	/* Nobody knows whether an event's wait tells it. */
	as_run_bare("late=Mm:507018@2,event-errors=0", AS_OLD,
	    fail_in_the_middle);
}
END_TEST

START_TEST(an_operator_that_hangs_is_given_up_by_the_device)
{
	fails_after = 1;
	as_run_bare("hang=Mm@2", AS_OLD, fail_in_the_middle);
}
END_TEST

static void
hang_to_the_deadline(void)
{
	struct err e = { 0 };
	uint64_t deadline_ns;

	begin(1 * MIB, 1024, 512, 16);
	open_events();
	ck_assert_int_eq(start(0, 0, 64), 1);
	mark();
	deadline_ns = event_now_ns() + SECOND / 2;
	ck_assert_int_eq(acl_queue_wait(&q, deadline_ns, &e), -ETIMEDOUT);
	ck_assert_uint_ge(event_now_ns(), deadline_ns);
	ck_assert(s.is_lost);
	acl_session_close(&s);
	_exit(0);
}

START_TEST(a_wait_ends_at_its_deadline)
{
	as_run_bare("hang=Mm@1", AS_OLD, hang_to_the_deadline);
	as_run_bare("hang=Mm@1,event-errors=0", AS_OLD, hang_to_the_deadline);
}
END_TEST

/* --- time --- */

#define PRODUCT_NS	(3 * SECOND / 10)	/* that the device takes for one */

/* A wait takes one product, and the host so long to read it that the next one is done
 * by then: it is there without a wait. */
static void
overlap(void)
{
	struct err e = { 0 };
	uint64_t first_ns, last_ns, now, before;
	unsigned i;

	begin(64 * KIB, 16, 32, 16);
	open_events();
	before = as_counts().products;
	first_ns = event_now_ns();
	for (i = 0; i < MATRICES; i++) {
		ck_assert_int_eq(start(i, 0, 64), 1);
		mark();
	}
	last_ns = event_now_ns();
	t_ok(acl_queue_wait(&q, last_ns + 300 * SECOND, &e), &e);
	ck_assert_uint_ge(event_now_ns() - first_ns, PRODUCT_NS);
	ck_assert_uint_eq(as_counts().products, before + 1);
	finish(0, 64);
	for (i = 1; i < MATRICES; i++) {
		while ((now = event_now_ns()) < last_ns + (i + 1) * PRODUCT_NS)
			usleep(1000);
		t_ok(acl_queue_wait(&q, now, &e), &e);
		ck_assert_uint_eq(as_counts().products, before + i + 1);
		finish(0, 64);
	}
	end();
}

START_TEST(the_host_reads_while_the_device_computes)
{
	as_run_bare("delay-us=300000", AS_OLD, overlap);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		each_product_is_read_while_the_next_one_computes,
		small_products_are_waited_for_together,
		a_device_without_events_is_waited_for,
		products_in_flight_have_parts_of_c,
		a_product_without_room_waits,
		a_task_that_fails_loses_the_stream,
		an_operator_that_hangs_is_given_up_by_the_device,
		a_wait_ends_at_its_deadline,
		the_host_reads_while_the_device_computes,
	};

	return t_main("ascend_queue", 60, tests, NITEMS(tests));
}
