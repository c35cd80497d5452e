/* tests/unit/ascend_graph.c - tests of captured products on the stand-in for CANN: the
 * trial that finds out whether graphs work, and products in flight that a graph has
 * started. */
#include "tests/support/ascend.h"

#include <stdio.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "shm/event.h"
#include "worker/ascend/graph.h"
#include "worker/ascend/queue.h"

#define WAIT_NS	UINT64_C(300000000000)

static struct acl_session s;
static struct acl_choice choice;

static void
begin(void)
{
	as_open(&s);
	choice = (struct acl_choice){ .magic = ACL_CHOICE,
	    .form[ASCEND_HALF] = { .way = ACL_WAY_MM, .c_type = ACL_FLOAT,
	    .nclasses = 3, .rows = { 1, 8, ASCEND_ROWS } },
	    .chip = { .has_memory = !s.machine.is_rc } };
}

static void
end(void)
{
	as_close(&s);
	ck_assert_uint_eq(as_counts().device_bytes, 0);
}

/* --- the trial --- */

static struct { int32_t why; uint64_t nbytes; } want;

static void
check_trial(const struct acl_notes *notes, int32_t why)
{
	char text[ACL_GRAPH_TEXT];

	ck_assert_msg(why == want.why, "%s", acl_graph_text(why, text));
	ck_assert_uint_eq(choice.chip.graph_bytes, want.nbytes);
	ck_assert_uint_eq(notes->trying, 0);
	end();
}

static void
try_once(void)
{
	struct acl_notes notes = { 0 };

	begin();
	ck_assert_int_eq(acl_graph_try(&s, &notes, &choice), 0);
	check_trial(&notes, choice.graph_why);
}

#define TRIES(switches, code, bytes) do {				\
	want.why = (code);						\
	want.nbytes = (bytes);						\
	as_run_bare((switches), AS_OLD, try_once);			\
} while (0)

START_TEST(graphs_are_used_where_a_replay_is_right)
{
	TRIES("", ACL_GRAPH_FINE, 4096);
	TRIES("graph-bytes=70000", ACL_GRAPH_FINE, 73728);
	TRIES("graph-bytes=0", ACL_GRAPH_FINE, 4096);
	TRIES("workspace-percent=50", ACL_GRAPH_FINE, 4096);
	TRIES("fail=aclSetAclOpExecutorRepeatable:561000", ACL_GRAPH_FINE,
	    4096);
}
END_TEST

START_TEST(other_machines_have_none_and_say_why)
{
	TRIES("soc=310B", ACL_GRAPH_MISSING, 0);
	TRIES("rc=1", ACL_GRAPH_MISSING, 0);
	TRIES("capture=0", 207000, 0);
	TRIES("fail=aclmdlRICaptureBegin:107030", 107030, 0);
	TRIES("fail=aclmdlRICaptureEnd:507903", 507903, 0);
	TRIES("fail=aclmdlRIExecuteAsync:507000", 507000, 0);
	/* While it is captured, and when it runs. */
	TRIES("fail=aclnnMm:361001@2", 361001, 0);
	TRIES("late=Mm:507018@2", 507018, 0);
	TRIES("graph-stale=1", ACL_GRAPH_DIFFERS, 0);
	/* Its copy of C brings what an earlier product left there. */
	TRIES("graph-drops=Mm", ACL_GRAPH_DIFFERS, 0);
	TRIES("graph-rebinds=Mm", ACL_GRAPH_DIFFERS, 0);
	TRIES("graph-bytes=70000000", ACL_GRAPH_LARGE, 0);
}
END_TEST

/* --- the trial of norms and SwiGLU --- */

static uint32_t fns;

static void
begin_fns(void)
{
	struct acl_notes notes = { 0 };
	unsigned i;

	begin();
	choice.strategy = ACL_POOL_SLOTS;
	choice.chip.has_slots = 1;
	choice.chip.workspace_bytes = MIB;
	for (i = 0; i < ACL_FNS; i++)
		choice.fn[i] = acl_fn_pack(ACL_FN_RIGHT, 0);
	ck_assert_int_eq(acl_graph_try(&s, &notes, &choice), 0);
}

static void
try_fns(void)
{
	struct acl_notes notes = { 0 };

	begin_fns();
	ck_assert_int_eq(choice.graph_why, ACL_GRAPH_FINE);
	ck_assert_int_eq(acl_graph_try_fns(&s, &notes, fns, &choice), 0);
	check_trial(&notes, choice.graph_fns_why);
}

#define TRIES_FNS(switches, which, code) do {				\
	fns = (which);							\
	want.why = (code);						\
	want.nbytes = 4096;						\
	as_run_bare((switches), AS_OLD, try_fns);			\
} while (0)

enum { WITHOUT_SUMS = ASCEND_FN_NORMS | ASCEND_FN_SWIGLU };

START_TEST(norms_and_swiglu_are_tried_apart)
{
	static const char *const operators[] = { "RmsNorm", "Cast", "Mul",
	    "Silu" };
	char text[64];
	unsigned i;

	TRIES_FNS("", WITHOUT_SUMS, ACL_GRAPH_FINE);
	TRIES_FNS("graph-bytes=0", WITHOUT_SUMS, ACL_GRAPH_FINE);
	TRIES_FNS("fail=aclSetAclOpExecutorRepeatable:561000", WITHOUT_SUMS,
	    ACL_GRAPH_FINE);
	TRIES_FNS("missing=Silu", ASCEND_FN_NORMS, ACL_GRAPH_FINE);
	for (i = 0; i < NITEMS(operators); i++) {
		snprintf(text, sizeof(text), "graph-drops=%s", operators[i]);
		TRIES_FNS(text, WITHOUT_SUMS, ACL_GRAPH_DIFFERS);
		snprintf(text, sizeof(text), "graph-rebinds=%s", operators[i]);
		TRIES_FNS(text, WITHOUT_SUMS, ACL_GRAPH_DIFFERS);
	}
	TRIES_FNS("graph-drops=Silu", ASCEND_FN_NORMS, ACL_GRAPH_FINE);
	/* The product's trial has 4 captures and 3 replays. */
	TRIES_FNS("fail=aclmdlRICaptureEnd:507903@5", WITHOUT_SUMS, 507903);
	TRIES_FNS("fail=aclmdlRIExecuteAsync:507000@4", WITHOUT_SUMS,
	    507000);
	TRIES_FNS("fail=aclnnSilu:361001@2", WITHOUT_SUMS, 361001);
	TRIES_FNS("late=RmsNorm:507018@5", WITHOUT_SUMS, 507018);
	TRIES_FNS("late=Silu:507018@5", WITHOUT_SUMS, 507018);
}
END_TEST

START_TEST(sums_are_tried_with_them)
{
	static const char *const operators[] = { "AddRmsNorm", "Add", "Mul" };
	char text[64];
	unsigned i;

	TRIES_FNS("", ASCEND_FN_ALL, ACL_GRAPH_FINE);
	TRIES_FNS("fail=aclSetAclOpExecutorRepeatable:561000", ASCEND_FN_ALL,
	    ACL_GRAPH_FINE);
	for (i = 0; i < NITEMS(operators); i++) {
		snprintf(text, sizeof(text), "graph-drops=%s", operators[i]);
		TRIES_FNS(text, ASCEND_FN_ALL, ACL_GRAPH_DIFFERS);
		snprintf(text, sizeof(text), "graph-rebinds=%s", operators[i]);
		TRIES_FNS(text, ASCEND_FN_ALL, ACL_GRAPH_DIFFERS);
	}
	TRIES_FNS("graph-drops=Add", WITHOUT_SUMS, ACL_GRAPH_FINE);
	TRIES_FNS("fail=aclnnAdd:361001@2", ASCEND_FN_ALL, 361001);
	TRIES_FNS("late=Add:507018@5", ASCEND_FN_ALL, 507018);
}
END_TEST

/* Nothing is tried without graphs of products. */
static void
skip_fns(void)
{
	struct acl_notes notes = { 0 };

	begin_fns();
	ck_assert_int_eq(acl_graph_try_fns(&s, &notes, ASCEND_FN_ALL,
	    &choice), 0);
	ck_assert_int_eq(choice.graph_fns_why, choice.graph_why);
	ck_assert_uint_eq(choice.chip.graph_bytes, 0);
	ck_assert_uint_eq(notes.steps, 0);
	end();
}

START_TEST(without_graphs_of_products_there_are_none_of_norms)
{
	as_run_bare("graph-stale=1", AS_OLD, skip_fns);
	as_run_bare("rc=1", AS_OLD, skip_fns);
}
END_TEST

/* As the probe does it. */
static int
try_alone(void *arg, struct acl_notes *notes, void *ret, struct err *reterr)
{
	int rc;

	(void)arg;
	(void)reterr;
	begin();
	rc = acl_graph_try(&s, notes, &choice);
	acl_session_close(&s);
	memcpy(ret, &choice, sizeof(choice));
	return rc;
}

static void
try_in_processes(void)
{
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", try_alone, NULL, WAIT_NS, WAIT_NS, &choice,
	    sizeof(choice), &e), &e);
	ck_assert_int_eq(choice.graph_why, want.why);
	ck_assert_uint_eq(choice.chip.graph_bytes, 0);
}

START_TEST(a_trial_that_ends_its_process_is_left_out)
{
	want.why = ACL_GRAPH_ENDS;
	as_run_bare("abort=aclmdlRIExecuteAsync", AS_OLD, try_in_processes);
	as_run_bare("abort=aclmdlRICaptureEnd@2", AS_OLD, try_in_processes);
}
END_TEST

/* --- products in flight --- */

enum { N = 64, K = 64 };

static struct acl_products p;
static struct acl_queue q;
static struct acl_matrix w[2];
static float plain[2][N], got[N];

static void
open_products(void)
{
	static uint16_t half[N * K];
	struct err e = { 0 };
	unsigned i, j;

	p = (struct acl_products){ .s = &s, .choice = &choice,
	    .a_bytes = ASCEND_ROWS * K * sizeof(uint16_t), .c_bytes = 64 * KIB };
	for (i = 0; i < 2; i++) {
		w[i] = (struct acl_matrix){ .n = N, .k = K,
		    .w = as_block(sizeof(half)) };
		for (j = 0; j < N * K; j++)
			half[j] = float_to_half((float)t_rand_below(15) - 7);
		as_ok(as_lib()->aclrtMemcpy((void *)(uintptr_t)w[i].w,
		    sizeof(half), half, sizeof(half),
		    ACL_MEMCPY_HOST_TO_DEVICE));
		t_ok(acl_products_prepare(&p, &w[i], &e), &e);
	}
	as_open_products(&p);
	t_ok(acl_session_events(&s, &e), &e);
	acl_queue_init(&q, &p);
}

static void
close_products(void)
{
	acl_products_close(&p);
	as_close_products(&p);
}

static void
fill_a(void)
{
	unsigned i;

	for (i = 0; i < ASCEND_ROWS * K; i++)
		p.a[i] = float_to_half((float)t_rand_below(15) - 7);
	memset(p.c, 0xff, p.c_bytes);
}

/* Both products, of one row; in a mode of the queue. */
static void
start_both(enum acl_queue_mode mode)
{
	struct err e = { 0 };
	uint32_t i;

	if (mode != ACL_QUEUE_REPLAY)
		t_ok(acl_products_send(&p, K, 1, &e), &e);
	q.mode = mode;
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(acl_queue_start(&q, i, &w[i], 1, 0, 1, &e), 1);
	if (mode == ACL_QUEUE_REPLAY)
		q.mode = ACL_QUEUE_RUN;
	t_ok(acl_queue_mark(&q, &e), &e);
}

static void
finish(float ret[N])
{
	struct err e = { 0 };

	t_ok(acl_queue_wait(&q, event_now_ns() + WAIT_NS, &e), &e);
	acl_products_read(&p, &w[0], 1, acl_queue_at(&q, 0)->at, 0, ret);
	acl_queue_drop(&q);
}

static void
replay(void)
{
	struct ascend_standin_counts before, after;
	struct err e = { 0 };
	void *graph;
	int i;

	begin();
	open_products();
	fill_a();
	t_ok(acl_graph_begin(&s, &e), &e);
	start_both(ACL_QUEUE_CAPTURE);
	t_ok(acl_graph_end(&s, &graph, &e), &e);
	before = as_counts();
	ck_assert_uint_eq(before.products, 0);
	for (i = 0; i < 10; i++) {
		acl_queue_init(&q, &p);
		fill_a();
		start_both(ACL_QUEUE_RUN);
		finish(plain[0]);
		finish(plain[1]);
		memset(p.c, 0xff, p.c_bytes);
		t_ok(acl_graph_start(&s, graph, &e), &e);
		start_both(ACL_QUEUE_REPLAY);
		/* It has not run, and is waited for once. */
		acl_products_read(&p, &w[0], 1, acl_queue_at(&q, 0)->at, 0,
		    got);
		ck_assert_mem_ne(got, plain[0], sizeof(got));
		ck_assert(!acl_queue_at(&q, 0)->has_event);
		ck_assert(acl_queue_at(&q, 1)->has_event);
		finish(got);
		ck_assert_mem_eq(got, plain[0], sizeof(got));
		finish(got);
		ck_assert_mem_eq(got, plain[1], sizeof(got));
	}
	after = as_counts();
	ck_assert_uint_eq(after.replays, 10);
	ck_assert_uint_eq(after.products, 40);
	/* Two products, copies of A and C, and an event that is not captured. */
	ck_assert_uint_eq(after.tasks - before.tasks, 2 * 10 * (2 + 3 + 1));
	ck_assert_uint_eq(after.allocations, before.allocations);
	ck_assert_uint_eq(after.device_bytes, before.device_bytes);
	acl_graph_free(&s, graph);
	close_products();
	end();
}

START_TEST(a_graph_computes_as_the_calls_did)
{
	as_run_bare("", AS_OLD, replay);
	as_run_bare("", AS_SPLIT, replay);
}
END_TEST

/* --- how many --- */

START_TEST(graphs_have_bounded_memory)
{
	struct ascend_chip chip = { .has_memory = 1 };
	struct ascend_sizes z = { .k = 64, .c_bytes = 4096, .nweights = 10 };
	uint64_t without = ascend_device_bytes(&chip, &z, 64);
	uint64_t work = ascend_work_bytes(&chip, &z, 64);

	ck_assert_uint_eq(ascend_graphs(&chip, &z), 0);
	chip.graph_bytes = 4096;
	ck_assert_uint_eq(ascend_graphs(&chip, &z), 30);
	ck_assert_uint_eq(ascend_device_bytes(&chip, &z, 64), without + 30 *
	    4096);
	ck_assert_uint_eq(ascend_work_bytes(&chip, &z, 64), work + 30 * 4096);
	/* One with more than 16 tasks counts as several. */
	z.graph_tasks = 33;
	ck_assert_uint_eq(ascend_graphs(&chip, &z), 36);
	ck_assert_uint_eq(ascend_graph_units(0), 1);
	ck_assert_uint_eq(ascend_graph_units(16), 1);
	ck_assert_uint_eq(ascend_graph_units(17), 2);
	z.nweights = 1000;
	ck_assert_uint_eq(ascend_graphs(&chip, &z), ASCEND_GRAPHS);
	chip.graph_bytes = 3 * MIB;
	ck_assert_uint_eq(ascend_graphs(&chip, &z), 21);
	chip.graph_bytes = ASCEND_GRAPHS_BYTES;
	ck_assert_uint_eq(ascend_graphs(&chip, &z), 1);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		graphs_are_used_where_a_replay_is_right,
		other_machines_have_none_and_say_why,
		norms_and_swiglu_are_tried_apart,
		sums_are_tried_with_them,
		without_graphs_of_products_there_are_none_of_norms,
		a_trial_that_ends_its_process_is_left_out,
		a_graph_computes_as_the_calls_did,
		graphs_have_bounded_memory,
	};

	return t_main("ascend_graph", 60, tests, NITEMS(tests));
}
