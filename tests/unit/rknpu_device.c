/* tests/unit/rknpu_device.c - tests of products on Rockchip's NPU: the bits of the
 * host however a matrix is cut, calls that fail or never return, and what is left
 * after the end.  A stand-in (standin/librknnrt.c) takes the library's place. */
#include "tests/support/rknpu_side.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/event.h"
#include "tests/support/chain.h"

#define CONTAINS(text, part) \
	ck_assert_msg(strstr((text), (part)) != NULL, "%s", (text))

static const char *const socs[] = { "rk3588", "rk3576", "rk3562", "rk3566" };

static const char *chip;		/* of the child process */

/* Run fn on a machine with this chip, and more switches of the stand-in. */
static int
on_chip(const char *soc, const char *more, void (*fn)(void))
{
	char switches[256];

	chip = soc;
	rk_set_chip(soc);
	snprintf(switches, sizeof(switches), "soc=%s,%s", soc, more);
	return rk_child(switches, fn);
}

#define RUN_ON(soc, more, fn) \
	ck_assert_msg(on_chip((soc), (more), (fn)) == 0, "%s,%s", (soc), \
	    (more))

/* --- the host's bits --- */

static const struct shape {
	uint32_t type, n, k, nrows;	/* nrows = 0: several numbers */
} shapes[] = {
	/* Less than a tile, a unit, or whole ones. */
	{ QUANT_Q8_0, 1, 32, 0 }, { QUANT_Q8_0, 16, 64, 0 },
	{ QUANT_F32, 33, 1, 0 }, { QUANT_F16, 31, 50, 0 },
	{ QUANT_BF16, 97, 33, 0 }, { QUANT_Q4_0, 130, 96, 0 },
	{ QUANT_Q6_K, 128, 256, 0 }, { QUANT_Q8_0, 384, 256, 0 },
	{ QUANT_MXFP4, 700, 160, 0 }, { QUANT_F16, 513, 320, 0 },
	/* K of a segment, and beyond it. */
	{ QUANT_Q8_0, 40, 4096, 16 }, { QUANT_Q8_0, 40, 4128, 17 },
	{ QUANT_F32, 40, 4100, 5 }, { QUANT_Q4_0, 300, 8192, 3 },
	{ QUANT_Q8_0, 136, 8224, 16 }, { QUANT_F16, 65, 8200, 2 },
	{ QUANT_Q8_0, 33, 16384, 2 }, { QUANT_F16, 20, 16384, 1 },
	/* N beyond a part, of one product and of sums of several. */
	{ QUANT_Q8_0, 8200, 32, 16 }, { QUANT_Q8_0, 24800, 32, 1 },
	{ QUANT_F16, 2080, 64, 64 }, { QUANT_F16, 6500, 32, 3 },
	{ QUANT_Q8_0, 2200, 8224, 1 },
};

static const struct shape *shape;	/* of the child process */

static void
multiply(void)
{
	static const uint32_t rows[] = { 1, 2, 15, 16, 17, 33, 63, 64 };
	struct rk_side s;
	struct err e = { 0 };
	unsigned i;

	rk_side_open(&s);
	rk_side_add(&s, shape->type, shape->n, shape->k);
	ck_assert_msg(rk_side_cut(&s, &e) == 1, "%s", e.msg);
	if (shape->nrows > 0)
		rk_side_check(&s, shape->nrows);
	else
		for (i = 0; i < NITEMS(rows); i++)
			rk_side_check(&s, rows[i]);
	rk_side_close(&s);
}

/* Each shape on one chip, all shapes together; FULL: on all. */
static void
multiply_all(const char *soc, unsigned nth)
{
	unsigned i;

	for (i = 0; i < NITEMS(shapes); i++) {
		if (!t_full() && (i + t_seed() / 8 + nth) % NITEMS(socs) != 0)
			continue;
		shape = &shapes[i];
		ck_assert_msg(on_chip(soc, "", multiply) == 0, "%s: %s of %u "
		    "x %u, seed %ju", soc, quant_info(shape->type)->name,
		    shape->n, shape->k, (uintmax_t)t_seed());
	}
}

START_TEST(products_have_the_bits_of_the_host_on_each_chip)
{
	unsigned i;

	for (i = 0; i < NITEMS(socs); i++)
		multiply_all(socs[i], i);
}
END_TEST

START_TEST(products_have_the_bits_of_the_host_with_each_release)
{
	static const char *const more[] = { "version=1.6.0",
	    "version=2.0.0b0", "version=2.1.0", "version=2.3.0",
	    "query=none", "query=version", "coherent=1" };
	unsigned i, j;

	for (i = 0; i < NITEMS(more); i++)
		for (j = 7; j < 16; j += 4) {
			shape = &shapes[j];
			RUN_ON(socs[i % NITEMS(socs)], more[i], multiply);
		}
}
END_TEST

/* Two matrices, one after the other, in the same buffers' place. */
static void
multiply_again(void)
{
	struct rk_side s;
	struct err e = { 0 };
	int i;

	rk_side_open(&s);
	for (i = 0; i < 3; i++) {
		rk_side_add(&s, QUANT_Q8_0, 160, 96);
		ck_assert_msg(rk_side_cut(&s, &e) == 1, "%s", e.msg);
		rk_side_check(&s, 4);
		rk_side_drop(&s);
		t_ok(npu_drop_contexts(s.npu, &e), &e);
		/* The owner is left, and no memory. */
		ck_assert_uint_eq(rk_counts().contexts, 1);
		ck_assert_uint_eq(rk_counts().mems, 0);
	}
	rk_side_close(&s);
}

START_TEST(nothing_is_left_after_a_reset)
{
	RUN_ON("rk3588", "", multiply_again);
}
END_TEST

/* Contexts outlive a matrix, and the next one may get its memory's address. */
static void
replace_matrix(void)
{
	struct rk_side s;
	struct err e = { 0 };
	int i;

	rk_side_open(&s);
	for (i = 0; i < 4; i++) {
		rk_side_add(&s, i % 2 ? QUANT_Q4_0 : QUANT_F16, 160, 96);
		ck_assert_msg(rk_side_cut(&s, &e) == 1, "%s", e.msg);
		rk_side_check(&s, 4);
		rk_side_drop(&s);
	}
	rk_side_close(&s);
}

START_TEST(a_matrix_may_take_the_place_of_another)
{
	RUN_ON("rk3588", "", replace_matrix);
	RUN_ON("rk3566", "coherent=1", replace_matrix);
}
END_TEST

/* --- limits --- */

static void
fill_contexts(void)
{
	struct npu_shape q = { 2, 32, 32 };
	struct err e = { 0 };
	struct rk_side s;
	unsigned i, at;

	rk_side_open(&s);
	for (i = 0; i < NPU_CONTEXTS; i++, q.k += 32)
		t_ok(npu_context(s.npu, 1, q, &at, &e), &e);
	ck_assert_int_eq(npu_context(s.npu, 1, q, &at, &e), -ENOSPC);
	CONTAINS(e.msg, "session npu0: 64 shapes of products are prepared on "
	    "core 1");
	q.k = 64;
	t_ok(npu_context(s.npu, 1, q, &at, &e), &e);
	ck_assert_uint_eq(at, 1);
	t_ok(npu_context(s.npu, 0, q, &at, &e), &e);	/* another core's */
	t_ok(npu_drop_contexts(s.npu, &e), &e);
	t_ok(npu_context(s.npu, 1, q, &at, &e), &e);
	ck_assert_uint_eq(s.ledger.used_bytes, s.npu->context_bytes);
	rk_side_close(&s);
}

START_TEST(contexts_of_a_core_are_limited)
{
	RUN_ON("rk3588", "", fill_contexts);
}
END_TEST

/* A view ends where its memory does. */
static void
view_beyond(void)
{
	struct err e = { 0 };
	struct npu_mem m, v;
	struct rk_side s;

	rk_side_open(&s);
	t_ok(npu_alloc(s.npu, 8192, "some", &m, &e), &e);
	ck_assert_int_eq(npu_view(s.npu, &m, 4096, 4097, &v, &e), -EINVAL);
	ck_assert_int_eq(npu_view(s.npu, &m, UINT64_MAX, 4096, &v, &e),
	    -EINVAL);
	ck_assert_int_eq(npu_view(s.npu, &m, 4096, UINT64_MAX - 100, &v, &e),
	    -EINVAL);
	t_ok(npu_view(s.npu, &m, 4096, 4096, &v, &e), &e);
	npu_free(s.npu, &v);
	npu_free(s.npu, &m);
	npu_free(s.npu, &m);		/* none by now */
	rk_side_close(&s);
}

START_TEST(a_view_lies_within_its_memory)
{
	RUN_ON("rk3576", "", view_beyond);
}
END_TEST

/* --- codes --- */

static const char *failing;		/* its part of the message */

static void
fail_to_cut(void)
{
	struct rk_side s;
	struct err e = { 0 };

	rk_side_open(&s);
	rk_side_add(&s, QUANT_F16, 400, 8300);
	ck_assert_int_lt(rk_side_cut(&s, &e), 0);
	CONTAINS(e.msg, "session npu0: ");
	CONTAINS(e.msg, failing);
	ck_assert_uint_eq(s.memo.blamed, 0);
	ck_assert_uint_eq(s.memo.busy[0].m, 0);
	rk_side_close(&s);
}

START_TEST(a_refused_preparation_is_named_and_leaves_nothing)
{
	static const struct { const char *fail, *text; } cases[] = {
		{ "create:-5@4", "rknn_matmul_create failed with -5, "
		    "RKNN_ERR_PARAM_INVALID" },
		{ "create:-4@9", "rknn_matmul_create failed with -4, "
		    "RKNN_ERR_MALLOC_FAIL" },
		{ "create:-2@5", "rknn_matmul_create failed with -2, "
		    "RKNN_ERR_TIMEOUT" },
		{ "create:-99@3", "rknn_matmul_create failed with -99, "
		    "an unknown code" },
		{ "set_core_mask:-1@3", "rknn_matmul_set_core_mask failed "
		    "with -1, RKNN_ERR_FAIL" },
		{ "create_mem_from_fd:-1@1", "rknn_create_mem_from_fd gives no "
		    "view of" },
		{ "create_mem_from_fd:-1@8", "rknn_create_mem_from_fd gives no "
		    "view of" },
	};
	char more[64];
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		failing = cases[i].text;
		snprintf(more, sizeof(more), "fail=%s", cases[i].fail);
		RUN_ON("rk3588", more, fail_to_cut);
	}
}
END_TEST

/* The second run fails, the third has the host's bits. */
static void
fail_to_run(void)
{
	struct rk_side s;
	struct err e = { 0 };
	unsigned i;
	int rc;

	rk_side_open(&s);
	rk_side_add(&s, QUANT_F16, 400, 8300);
	ck_assert_msg(rk_side_cut(&s, &e) == 1, "%s", e.msg);
	rc = rk_side_run(&s, 2, event_now_ns() + UINT64_C(60000000000), &e);
	ck_assert_msg(rc < 0 && rc != -ETIMEDOUT, "%d: %s", rc, e.msg);
	CONTAINS(e.msg, failing);
	ck_assert_uint_eq(s.memo.blamed, 0);
	for (i = 0; i < NPU_CORES; i++)
		ck_assert_uint_eq(s.memo.busy[i].m, 0);
	rk_side_check(&s, 2);
	rk_side_close(&s);
}

START_TEST(a_refused_run_is_named_and_the_next_is_right)
{
	static const struct { const char *fail, *text; } cases[] = {
		{ "run:-2@3", "rknn_matmul_run failed with -2, "
		    "RKNN_ERR_TIMEOUT" },
		{ "run:-1@1", "rknn_matmul_run failed with -1" },
		{ "run:-13@4", "rknn_matmul_run failed with -13" },
		{ "set_io_mem:-7@5", "rknn_matmul_set_io_mem failed with -7" },
		{ "mem_sync:-1@4", "rknn_mem_sync failed with -1" },
	};
	char more[64];
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		failing = cases[i].text;
		snprintf(more, sizeof(more), "fail=%s", cases[i].fail);
		RUN_ON("rk3588", more, fail_to_run);
		RUN_ON("rk3566", more, fail_to_run);
	}
}
END_TEST

static void
open_and_fail(void)
{
	struct npu *n = NULL;
	struct err e = { 0 };

	ck_assert_int_lt(npu_open(&(struct device_conf){ .session = "npu0" },
	    NULL, &n, &e), 0);
	CONTAINS(e.msg, failing);
	ck_assert_ptr_null(n);
}

START_TEST(an_npu_that_cannot_be_opened_says_why)
{
	static const struct { const char *more, *text; } cases[] = {
		{ "fail=create:-3@1", "RKNN_ERR_DEVICE_UNAVAILABLE" },
		{ "fail=create:-10@2", "RKNN_ERR_DEVICE_UNMATCH" },
		{ "fail=set_core_mask:-1@1", "rknn_matmul_set_core_mask" },
		{ "version=1.5.2", "it is too old" },
		{ "types=1", "RKNN_ERR_PARAM_INVALID" },
	};
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		failing = cases[i].text;
		RUN_ON("rk3576", cases[i].more, open_and_fail);
	}
	/* The library serves another chip than the device tree has. */
	rk_set_chip("rk3566");
	failing = "reports groups of columns of 16";
	ck_assert_int_eq(rk_child("soc=rk3588", open_and_fail), 0);
	rk_set_chip("rk3399");
	failing = "rk3399";
	ck_assert_int_eq(rk_child("soc=rk3588", open_and_fail), 0);
}
END_TEST

/* --- calls that never return --- */

static _Atomic uint32_t may_return, has_returned;

static void
wait_for_leave(void *arg)
{
	while (may_return == 0)
		event_wait(&may_return, 0, EVENT_FOREVER);
	*(_Atomic uint32_t *)arg += 1;
	event_wake(&has_returned);
}

START_TEST(a_call_that_hangs_is_given_up_and_left_alone)
{
	struct calls *c;
	struct err e = { 0 };
	uint64_t t0;

	t_ok(calls_open("npu0", 2, NULL, &c, &e), &e);
	calls_post(c, 0, wait_for_leave, &has_returned);
	t0 = event_now_ns();
	ck_assert_int_eq(calls_wait(c, 0, t0 + 30000000), -ETIMEDOUT);
	ck_assert_uint_ge(event_now_ns() - t0, 30000000);
	ck_assert(!calls_are_lost(c));
	calls_give_up(c);
	ck_assert(calls_are_lost(c));
	calls_close(c);			/* neither joins nor frees */
	may_return = 1;
	event_wake(&may_return);
	while (has_returned == 0)
		event_wait(&has_returned, 0, EVENT_FOREVER);
	usleep(10000);			/* its thread uses c once more */
}
END_TEST

START_TEST(threads_run_what_is_posted_and_end)
{
	_Atomic uint32_t n = 0;
	struct calls *c;
	struct err e = { 0 };
	unsigned i;

	may_return = 1;
	t_ok(calls_open("npu0", 3, NULL, &c, &e), &e);
	for (i = 0; i < 3000; i++) {
		calls_post(c, i % 3, wait_for_leave, &n);
		ck_assert_int_eq(calls_wait(c, i % 3, i % 2 ? EVENT_FOREVER :
		    event_now_ns() + UINT64_C(60000000000)), 0);
	}
	ck_assert_uint_eq(n, 3000);
	calls_close(c);
	calls_close(NULL);
}
END_TEST

static void
hang_in_a_run(void)
{
	struct rk_side s;
	struct err e = { 0 };

	rk_side_open(&s);
	rk_side_add(&s, QUANT_Q8_0, 400, 64);
	ck_assert_msg(rk_side_cut(&s, &e) == 1, "%s", e.msg);
	/* The calls before the run must return in that time. */
	ck_assert_int_eq(rk_side_run(&s, 1, event_now_ns() + 5000000000, &e),
	    -ETIMEDOUT);
	CONTAINS(e.msg, "session npu0: rknn_matmul_run does not return on core "
	    "0 of the NPU");
	ck_assert_uint_eq(s.memo.blamed, 1);
	ck_assert_uint_eq(s.memo.busy[0].m, 8);
	/* Nothing calls the library again, or frees what it uses. */
	ck_assert_int_eq(npu_publish(s.npu, &s.mem, &e), -ETIMEDOUT);
	ck_assert_int_eq(npu_drop_contexts(s.npu, &e), -ETIMEDOUT);
	product_close(&s.work, s.product);
	npu_work_close(&s.work);
	npu_free(s.npu, &s.mem);
	npu_close(s.npu);
	ck_assert_uint_eq(rk_counts().contexts, 4);
	ck_assert_uint_gt(rk_counts().mems, 4);
	_exit(0);			/* past check_clean() */
}

START_TEST(a_run_that_hangs_is_given_up_at_the_deadline)
{
	RUN_ON("rk3566", "hang=run@1", hang_in_a_run);
}
END_TEST

/* --- the memo --- */

static struct npu_memo *shared_memo;	/* with child processes */

static struct npu_memo *
new_memo(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	return p;
}

/* A sanitizer may have them.  Before the first memo is opened. */
static void
free_signals(void)
{
	signal(SIGABRT, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGTERM, SIG_DFL);	/* libcheck's */
}

/* A process that ends so in a call of shape s.  Returns how many shapes the next
 * one gives up. */
static unsigned
end_in_call(struct npu_memo *m, struct npu_shape s, int sig)
{
	unsigned n = 99;
	int status;
	pid_t pid;

	fflush(NULL);
	if ((pid = fork()) == 0) {
		npu_memo_open(m, DEVICE_MEMO_BYTES, &n);
		npu_memo_begin(m, 1, s);
		if (sig == 0)
			exit(3);
		raise(sig);
		_exit(1);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_ptr_eq(npu_memo_open(m, DEVICE_MEMO_BYTES, &n), m);
	npu_memo_close(m);
	return n;
}

START_TEST(a_shape_is_lost_when_the_library_ends_the_process)
{
	static const int ends[] = { SIGABRT, SIGSEGV, SIGBUS, 0 };
	static const int kills[] = { SIGKILL, SIGTERM };
	struct npu_shape s = { 32, 64, 128 };
	unsigned i;

	free_signals();
	for (i = 0; i < NITEMS(ends); i++) {
		struct npu_memo *m = new_memo();

		ck_assert(!npu_memo_is_lost(m, s));
		ck_assert_uint_eq(end_in_call(m, s, ends[i]), 1);
		ck_assert(npu_memo_is_lost(m, s));
		ck_assert(!npu_memo_is_lost(m, (struct npu_shape){ 32, 64,
		    256 }));
		/* Once is enough. */
		ck_assert_uint_eq(end_in_call(m, s, ends[i]), 0);
		ck_assert_uint_eq(m->nlost, 1);
	}
	for (i = 0; i < NITEMS(kills); i++) {
		struct npu_memo *m = new_memo();

		ck_assert_uint_eq(end_in_call(m, s, kills[i]), 0);
		ck_assert(!npu_memo_is_lost(m, s));
	}
}
END_TEST

START_TEST(when_many_shapes_are_lost_all_are)
{
	struct npu_memo *m = new_memo();
	struct npu_shape s = { 32, 32, 32 };
	unsigned i;

	free_signals();
	for (i = 0; i < NPU_MEMO_LOST; i++, s.k += 32) {
		ck_assert(!npu_memo_is_lost(m, s));
		ck_assert_uint_eq(end_in_call(m, s, SIGABRT), 1);
	}
	ck_assert(npu_memo_is_lost(m, s));
	ck_assert_uint_eq(end_in_call(m, s, SIGABRT), 0);
	ck_assert_uint_eq(m->nlost, NPU_MEMO_LOST);
}
END_TEST

START_TEST(a_memo_may_have_any_bytes)
{
	const struct npu_shape s = { 32, 64, 128 };
	uint8_t bytes[DEVICE_MEMO_BYTES + 4];
	struct npu_memo *m;
	uint32_t magic;
	unsigned i, j, n;

	ck_assert_ptr_null(npu_memo_open(NULL, 0, &n));
	ck_assert_ptr_null(npu_memo_open(bytes, sizeof(*m) - 1, &n));
	memset(bytes, 0, sizeof(bytes));
	ck_assert_ptr_nonnull(m = npu_memo_open(bytes, DEVICE_MEMO_BYTES, &n));
	npu_memo_close(m);
	magic = m->magic;
	for (i = 0; i < 2000; i++) {
		for (j = 0; j < sizeof(bytes); j++)
			bytes[j] = (uint8_t)t_rand();
		if (i % 4 > 0)
			m->magic = magic;
		if (i % 4 > 1)
			m->nlost %= 20;
		ck_assert_ptr_eq(npu_memo_open(bytes, DEVICE_MEMO_BYTES, &n),
		    m);
		ck_assert_uint_le(n, NPU_CORES);
		ck_assert_uint_le(m->nlost, NPU_MEMO_LOST);
		ck_assert_int_eq(npu_memo_is_lost(m, s), m->nlost ==
		    NPU_MEMO_LOST);
		npu_memo_close(m);
	}
}
END_TEST

static void
skip_lost_shape(void)
{
	struct rk_side s;
	struct err e = { 0 };

	rk_side_open(&s);
	rk_side_add(&s, QUANT_Q8_0, 128, 64);
	s.memo.lost[0] = (struct npu_shape){ 128, 64, 128 };
	s.memo.nlost = 1;
	ck_assert_int_eq(rk_side_cut(&s, &e), 0);
	ck_assert_ptr_null(s.product);
	rk_side_close(&s);
}

START_TEST(a_lost_shape_is_not_sent)
{
	RUN_ON("rk3566", "abort=run", skip_lost_shape);
}
END_TEST

/* Start a process that ends this one once the library is blamed. */
static void
kill_once_blamed(void)
{
	const pid_t caller = getpid();
	const volatile uint32_t *blamed = &shared_memo->blamed;
	const pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid > 0)
		return;
	while (*blamed == 0 && getppid() == caller)
		usleep(1000);
	if (getppid() == caller)
		kill(caller, SIGALRM);
	_exit(0);
}

/* Killed by the coordinator, which does not wait for the deadline. */
static void
hang_until_killed(void)
{
	struct rk_side s;
	struct err e = { 0 };
	unsigned n;

	rk_side_open(&s);
	ck_assert_ptr_nonnull(npu_memo_open(shared_memo, DEVICE_MEMO_BYTES,
	    &n));
	rk_side_add(&s, QUANT_Q8_0, 128, 64);
	s.npu->memo = shared_memo;
	ck_assert_msg(rk_side_cut(&s, &e) == 1, "%s", e.msg);
	signal(SIGALRM, SIG_DFL);
	kill_once_blamed();
	(void)rk_side_run(&s, 1, EVENT_FOREVER, &e);
	_exit(1);
}

START_TEST(a_call_that_takes_long_is_blamed_before_the_deadline)
{
	const struct npu_shape s = { 8, 64, 128 };
	unsigned n;
	int status;

	shared_memo = new_memo();
	status = on_chip("rk3566", "hang=run@1", hang_until_killed);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
	npu_memo_open(shared_memo, DEVICE_MEMO_BYTES, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert(npu_memo_is_lost(shared_memo, s));
}
END_TEST

/* --- the device in stages --- */

enum { TEXT = 40 };

/* As a session opens it: the self-test is over. */
static int
open_proven(const struct device_conf *dc, struct device **ret,
    struct err *reterr)
{
	int rc;

	setenv("STRADDLE_RKNPU_FROM", "1", 1);
	rc = device_rknpu.open(dc, ret, reterr);
	return rc < 0 ? rc : device_rknpu.reset(*ret, reterr);
}

static void
run_chain(struct chain *c, const struct device_ops *dev, uint32_t type,
    unsigned nstages, uint32_t chunk)
{
	static struct device_ops proven;
	struct chain_conf lc = CHAIN_CONF;
	uint32_t text[TEXT], i;
	struct err e = { 0 };

	for (i = 0; i < TEXT; i++)
		text[i] = (i * 7 + 3) % lc.tiny.n_vocab;
	lc.tiny.type = type;
	lc.dev[0] = dev;
	if (dev == &device_rknpu) {
		proven = *dev;
		proven.open = open_proven;
		lc.dev[0] = &proven;
	}
	lc.nstages = nstages;
	lc.cut[1] = nstages > 1 ? 3 : 0;
	t_ok(chain_open(c, &lc, &e), &e);
	chain_send_text(c, 0, 0, text, TEXT, chunk);
	chain_send_stop(c);
	t_ok(chain_run(c, &e), &e);
}

static uint32_t chain_type;		/* of the child process */

static void
compare_chains(void)
{
	static struct chain one, other;

	run_chain(&one, &device_rknpu, chain_type, 1, 1);
	run_chain(&other, &device_rknpu, chain_type, 2, 13);
	ck_assert(chain_same_logits(&one, 0, &other, 0, 0, TEXT));
	ck_assert_uint_gt(rk_counts().runs, 500);
	chain_close(&one);
	chain_close(&other);
}

START_TEST(logits_do_not_depend_on_stages_and_batches)
{
	static const uint32_t types[] = { QUANT_Q8_0, QUANT_Q4_0, QUANT_F16,
	    QUANT_F32 };
	unsigned i;

	for (i = 0; i < NITEMS(types); i++) {
		chain_type = types[i];
		RUN_ON(socs[i], "", compare_chains);
	}
}
END_TEST

/* The first chain's calls all succeed; in the other one some are refused. */
static void
compare_refused(void)
{
	static struct chain one, other;

	run_chain(&one, &device_rknpu, chain_type, 1, 5);
	run_chain(&other, &device_rknpu, chain_type, 1, 5);
	ck_assert(chain_same_logits(&one, 0, &other, 0, 0, TEXT));
	ck_assert_uint_gt(rk_counts().runs, 300);
	chain_close(&one);
	chain_close(&other);
}

START_TEST(logits_are_the_same_when_calls_are_refused)
{
	static const char *const more[] = {
		"fail=run:-2@400+run:-1@500",
		"fail=run:-1@301+create:-5@20",
		"fail=create_mem_from_fd:-1@300+set_io_mem:-4@400",
		"fail=set_core_mask:-1@30+mem_sync:-2@400",
	};
	unsigned i;

	for (i = 0; i < NITEMS(more); i++) {
		chain_type = i % 2 ? QUANT_F16 : QUANT_Q8_0;
		RUN_ON("rk3588", more[i], compare_refused);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		products_have_the_bits_of_the_host_on_each_chip,
		products_have_the_bits_of_the_host_with_each_release,
		nothing_is_left_after_a_reset,
		a_matrix_may_take_the_place_of_another,
		contexts_of_a_core_are_limited,
		a_view_lies_within_its_memory,
		a_refused_preparation_is_named_and_leaves_nothing,
		a_refused_run_is_named_and_the_next_is_right,
		an_npu_that_cannot_be_opened_says_why,
		a_call_that_hangs_is_given_up_and_left_alone,
		threads_run_what_is_posted_and_end,
		a_run_that_hangs_is_given_up_at_the_deadline,
		a_shape_is_lost_when_the_library_ends_the_process,
		when_many_shapes_are_lost_all_are,
		a_memo_may_have_any_bytes,
		a_lost_shape_is_not_sent,
		a_call_that_takes_long_is_blamed_before_the_deadline,
		logits_do_not_depend_on_stages_and_batches,
		logits_are_the_same_when_calls_are_refused,
	};

	return t_main("rknpu_device", 120, tests, NITEMS(tests));
}
