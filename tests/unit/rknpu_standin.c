/* tests/unit/rknpu_standin.c - tests of the stand-in for librknnrt.so: shapes,
 * cores and domains, wrong results and faults.  Each of its switches shows its
 * effect, and each misuse is counted: a test of the device means something only if
 * these hold. */
#include "tests/support/rknpu.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/event.h"

/* --- shapes --- */

static void
create_unaligned(void)
{
	ck_assert_int_eq(rk_create(2, 1, 64, 48, 1), RKNN_ERR_PARAM_INVALID);
	ck_assert_int_eq(rk_create(2, 1, 48, 64, 1), RKNN_ERR_PARAM_INVALID);
	ck_assert_int_eq(rk_create(10, 1, 64, 96, 1), RKNN_ERR_PARAM_INVALID);
	ck_assert_int_eq(rk_create(10, 1, 64, 64, 0), RKNN_ERR_PARAM_INVALID);
	ck_assert_int_eq(rk_create(1, 1, 64, 24, 1), RKNN_ERR_PARAM_INVALID);
	ck_assert_int_eq(rk_create(1, 0, 64, 16, 1), RKNN_ERR_PARAM_INVALID);
	ck_assert_int_eq(rk_create(1, 1, 64, 16, 3), RKNN_ERR_PARAM_INVALID);
	ck_assert_int_eq(rk_create(1, 1, 64, 16, 1), RKNN_SUCC);
	/* B of 4 GiB and more. */
	ck_assert_int_eq(rk_create(2, 1, 65536, 65536, 1),
	    RKNN_ERR_PARAM_INVALID);
	/* No limit of N. */
	ck_assert_int_eq(rk_create(2, 1, 32, 87392, 1), RKNN_SUCC);
}

START_TEST(sizes_that_are_not_aligned_are_refused)
{
	rk_run("", create_unaligned);
}
END_TEST

static void
create_large_k(void)
{
	const char *want = getenv("RK_WANT");

	ck_assert_int_eq(rk_create(2, 1, 10240, 64, 1), RKNN_SUCC);
	ck_assert_int_eq(rk_create(2, 1, 10272, 64, 1), atoi(want));
}

static void
create_aborting_float(void)
{
	ck_assert_int_eq(rk_create(2, 1, 16640, 64, 1), RKNN_SUCC);
	rk_create(1, 1, 16640, 64, 1);
}

static void
create_64(void)
{
	rk_create(2, 1, 64, 64, 1);
}

START_TEST(large_k_is_refused_or_ends_the_process)
{
	setenv("RK_WANT", "0", 1);
	rk_run("version=2.0.0b0", create_large_k);
	setenv("RK_WANT", "-5", 1);
	rk_run("version=1.6.0", create_large_k);
	rk_run("max-k=10240", create_large_k);
	unsetenv("RK_WANT");
	rk_expect_abort("", create_aborting_float);
	rk_run("abort-k=none", create_aborting_float);
	rk_expect_abort("abort-k=32+64", create_64);
	rk_run("abort-k=32+96", create_64);
}
END_TEST

/* K of more than a segment, in one context. */
static void
multiply_segments(void)
{
	struct rk_product p;

	rk_open_type(&p, RKNN_INT8_MM_INT8_TO_INT32, 8192 + 2048);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert_int_eq(rk_is_right(&p), getenv("RK_WRONG") == NULL);
	rk_close(&p);
}

START_TEST(native_b_has_segments_of_k)
{
	rk_run("", multiply_segments);
	setenv("RK_WRONG", "1", 1);
	rk_run("segments=0", multiply_segments);
	unsetenv("RK_WRONG");
}
END_TEST

/* Several M in one context. */
static void
change_shape(void)
{
	const struct rknn_lib *lib = rk_lib();
	struct rknn_matmul_shape shapes[] = { { 1, 64, 64 }, { 3, 64, 64 } };
	struct rknn_matmul_io_attr attrs[2];
	struct rk_product p;
	uint64_t ctx;

	rk_open_native(&p, 0);
	ck_assert_int_eq(lib->rknn_matmul_destroy(p.ctx), RKNN_SUCC);
	ck_assert_int_eq(lib->rknn_matmul_create_dynamic_shape(&ctx, &p.info,
	    2, shapes, attrs), RKNN_SUCC);
	p.ctx = ctx;
	ck_assert_uint_eq(attrs[0].A.dims[1], 1);
	ck_assert_uint_eq(attrs[1].A.dims[1], 3);
	p.attr = attrs[1];
	ck_assert_int_eq(rk_bind(&p, RKNPU_A), RKNN_ERR_PARAM_INVALID);
	ck_assert_int_eq(lib->rknn_matmul_set_dynamic_shape(ctx, &shapes[1]),
	    RKNN_SUCC);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert(rk_is_right(&p));
	shapes[1].M = 4;
	ck_assert_int_eq(lib->rknn_matmul_set_dynamic_shape(ctx, &shapes[1]),
	    RKNN_ERR_PARAM_INVALID);
	shapes[1].K = 96;
	ck_assert_int_eq(lib->rknn_matmul_create_dynamic_shape(&ctx, &p.info,
	    2, shapes, attrs), RKNN_ERR_PARAM_INVALID);
	rk_close(&p);
}

START_TEST(only_m_varies_in_a_dynamic_shape)
{
	rk_run("", change_shape);
}
END_TEST

/* --- cores and domains --- */

static int ncores;			/* of the child process */

static void
set_masks(void)
{
	static const int masks[] = { 0, 1, 2, 4, 3, 7, 0xffff, 8, -1 };
	struct rknn_matmul_info info;
	struct rk_product p;
	unsigned i;
	int want;

	rknn_info(&info, RKNN_INT8_MM_INT8_TO_INT32, 1, 64, 64);
	ck_assert_int_eq(rk_open(&p, ncores == 3 ? "rk3588" : ncores == 2 ?
	    "rk3576" : "rk3566", &info), RKNN_SUCC);
	for (i = 0; i < NITEMS(masks); i++) {
		want = ncores > 1 && (masks[i] == 0 || masks[i] == 1 ||
		    masks[i] == 2 || (masks[i] == 4 && ncores == 3)) ?
		    RKNN_SUCC : RKNN_ERR_FAIL;
		ck_assert_msg(rk_lib()->rknn_matmul_set_core_mask(p.ctx,
		    masks[i]) == want, "%d cores, mask %d", ncores, masks[i]);
	}
	rk_close(&p);
}

START_TEST(a_product_takes_one_core)
{
	static const char *const socs[] = { "soc=rk3566", "soc=rk3576",
	    "soc=rk3588" };

	for (ncores = 1; ncores <= 3; ncores++)
		rk_run(socs[ncores - 1], set_masks);
}
END_TEST

static void
use_domains(void)
{
	struct rknn_matmul_info info;
	struct rk_product p, q;
	int domain;

	for (domain = 0; domain < RKNN_DOMAINS; domain++) {
		rk_open_native(&p, domain);
		ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
		ck_assert(rk_is_right(&p));
		/* A, B, C and 64 KiB of the context. */
		ck_assert_uint_eq(rk_counts().domain_bytes[domain],
		    3 * 4096 + 65536);
		rk_close(&p);
		ck_assert_uint_eq(rk_counts().domain_bytes[domain], 0);
	}
	ck_assert_uint_eq(rk_counts().switches, RKNN_DOMAINS - 1);
	rknn_info(&info, 2, 1, 64, 64);
	info.iommu_domain_id = RKNN_DOMAINS;
	ck_assert_int_eq(rk_open(&q, "rk3588", &info), RKNN_ERR_PARAM_INVALID);
	info.iommu_domain_id = -1;
	ck_assert_int_eq(rk_open(&q, "rk3588", &info), RKNN_ERR_PARAM_INVALID);
}

static void
need_new_driver(void)
{
	struct rknn_matmul_info info;
	struct rk_product p;

	rknn_info(&info, 2, 1, 64, 64);
	info.iommu_domain_id = 1;
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_ERR_FAIL);
}

static void
mix_domains(void)
{
	struct rk_product p, q;

	rk_open_native(&p, 0);
	rk_open_native(&q, 1);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert_int_eq(rk_multiply(&q), RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_matmul_set_io_mem(p.ctx,
	    q.mem[RKNPU_A], &p.attr.A), RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_matmul_run(p.ctx), RKNN_ERR_FAIL);
	RK_MISUSED(1, "A is in domain 1, the context in 0");
}

START_TEST(domains_have_their_own_memory)
{
	rk_run("", use_domains);
	rk_run("driver=0.9.6", need_new_driver);
	ck_assert_int_eq(rk_child("", mix_domains), 0);
}
END_TEST

/* A process that holds a context until it is killed; returns when it has it. */
static pid_t
start_holder(const char *switches, int domain)
{
	struct rk_product p;
	int fd[2];
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(fd), 0);
	fflush(NULL);
	if ((pid = fork()) == 0) {
		rk_load_standin(switches);
		rk_open_native(&p, domain);
		if (write(fd[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(fd[1]);
	ck_assert_int_eq(read(fd[0], &c, 1), 1);
	close(fd[0]);
	return pid;
}

START_TEST(a_second_process_beside_a_domain_ends)
{
	char switches[128];
	pid_t pid;
	int domain;

	snprintf(switches, sizeof(switches), "lock=%s/lock", t_tmpdir());
	for (domain = 0; domain <= 1; domain++) {
		pid = start_holder(switches, domain);
		if (domain == 0)
			rk_run(switches, create_64);
		else
			rk_expect_abort(switches, create_64);
		kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		rk_run(switches, create_64);
	}
}
END_TEST

/* Contexts of one process on threads of their own: the NPU's cores. */
enum { THREADS = 4, RUNS = 20 };

static void *
run_on_thread(void *arg)
{
	struct rk_product *p = arg;
	int i;

	for (i = 0; i < RUNS; i++)
		if (rk_run_again(p) != RKNN_SUCC)
			return p;
	return NULL;
}

static void
run_side_by_side(void)
{
	struct rknn_standin_counts counts;
	struct rk_product p[THREADS];
	pthread_t t[THREADS];
	uint64_t start_ns = event_now_ns();
	const char *us = getenv("RK_SWITCH_US");
	void *failed;
	int i;

	for (i = 0; i < THREADS; i++) {
		rk_open_native(&p[i], i % 2);
		ck_assert_int_eq(rk_lib()->rknn_matmul_set_core_mask(p[i].ctx,
		    i / 2 + 1), RKNN_SUCC);	/* two on each of two cores */
		ck_assert_int_eq(rk_multiply(&p[i]), RKNN_SUCC);
	}
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, run_on_thread,
		    &p[i]), 0);
	for (i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(t[i], &failed), 0);
		ck_assert_ptr_null(failed);
		ck_assert(rk_is_right(&p[i]));
		rk_close(&p[i]);
	}
	counts = rk_counts();
	ck_assert_uint_eq(counts.runs, THREADS * (RUNS + 1));
	ck_assert_uint_eq(counts.core_runs[0], THREADS / 2 * (RUNS + 1));
	ck_assert_uint_eq(counts.core_runs[1], THREADS / 2 * (RUNS + 1));
	ck_assert_uint_eq(counts.core_runs[2], 0);
	/* Attaching a domain stops all jobs. */
	ck_assert_uint_ge(counts.switches, 3);
	ck_assert_uint_ge(event_now_ns() - start_ns, us == NULL ? 0 :
	    counts.switches * 1000 * strtoul(us, NULL, 10));
}

START_TEST(contexts_run_side_by_side)
{
	rk_run("", run_side_by_side);
	setenv("RK_SWITCH_US", "1000", 1);
	rk_run("switch-us=1000", run_side_by_side);
	unsetenv("RK_SWITCH_US");
}
END_TEST

/* The time model makes a run long enough for the second thread. */
static void
run_twice_at_once(void)
{
	struct rk_product p;
	pthread_t t;
	int i;

	rk_open_native(&p, 0);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert_int_eq(pthread_create(&t, NULL, run_on_thread, &p), 0);
	for (i = 0; i < 1000 && rk_counts().misuses == 0; i++)
		rk_lib()->rknn_matmul_run(p.ctx);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_uint_gt(rk_counts().misuses, 0);
	RK_MISUSED(rk_counts().misuses, "the context runs already");
}

START_TEST(two_runs_of_a_context_at_once_are_counted)
{
	ck_assert_int_eq(rk_child("time=100", run_twice_at_once), 0);
}
END_TEST

/* --- wrong results, aborts, hangs --- */

static void
multiply_wrong(void)
{
	struct rk_product p, q;

	rk_open_native(&p, 0);
	rk_open_type(&q, RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, 64);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert_int_eq(rk_multiply(&q), RKNN_SUCC);
	ck_assert(!rk_is_right(&p));
	ck_assert(rk_is_right(&q));
	rk_close(&p);
	rk_close(&q);
}

static void
multiply_zeros(int quant)
{
	struct rknn_matmul_info info;
	struct rk_product p;
	size_t i;

	rknn_info(&info, RKNN_INT8_MM_INT8_TO_FLOAT32, 2, 64, 64);
	info.B_layout = RKNN_MM_LAYOUT_NATIVE;
	info.B_quant_type = (int16_t)quant;
	info.group_size = quant != 0 ? 32 : 0;
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_SUCC);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	for (i = 0; i < 2 * 64; i++)
		ck_assert(((float *)p.mem[RKNPU_C]->virt_addr)[i] == 0);
	rk_close(&p);
}

static void
multiply_type_9(void)
{
	multiply_zeros(RKNN_QUANT_TYPE_PER_LAYER_SYM);
}

static void
multiply_groups(void)
{
	struct rknn_matmul_info info;
	struct rk_product p;

	multiply_zeros(RKNN_QUANT_TYPE_PER_GROUP_SYM);
	rknn_info(&info, RKNN_INT8_MM_INT8_TO_FLOAT32, 2, 64, 64);
	info.B_quant_type = RKNN_QUANT_TYPE_PER_CHANNEL_SYM;
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_ERR_PARAM_INVALID);
	info.B_quant_type = RKNN_QUANT_TYPE_PER_GROUP_SYM;
	info.group_size = 48;
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_ERR_PARAM_INVALID);
}

START_TEST(products_can_be_wrong)
{
	rk_run("wrong=2", multiply_wrong);
	rk_run("zero=2+3", multiply_wrong);
	rk_expect_abort("", multiply_type_9);
	rk_run("abort-9=0", multiply_type_9);
	rk_run("", multiply_groups);
}
END_TEST

static void
scale_channels(void)
{
	float scale[64] = { 1 };
	struct rknn_quant_params q = { .name = "B", .scale = scale,
	    .scale_len = 64 };
	struct rknn_matmul_info info;
	struct rk_product p;
	float got = 0;

	rknn_info(&info, RKNN_INT8_MM_INT8_TO_INT32, 2, 64, 64);
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_matmul_set_quant_params(p.ctx, &q),
	    RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_matmul_get_quant_params(p.ctx, &q,
	    &got), RKNN_SUCC);
	ck_assert(got == 1);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert(rk_is_right(&p));
	rk_close(&p);
	info.B_quant_type = RKNN_QUANT_TYPE_PER_CHANNEL_SYM;
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_matmul_set_quant_params(p.ctx, &q),
	    RKNN_SUCC);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert(!rk_is_right(&p));
	rk_close(&p);
}

START_TEST(scales_of_channels_give_zeros)
{
	rk_run("", scale_channels);
}
END_TEST

static void
fail_third_run(void)
{
	struct rk_product p;

	rk_open_native(&p, 0);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	ck_assert_int_eq(rk_run_again(&p), RKNN_ERR_TIMEOUT);
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	ck_assert_int_eq(rk_bind(&p, RKNPU_A), RKNN_ERR_MALLOC_FAIL);
	rk_close(&p);
}

static void
multiply_once(void)
{
	struct rk_product p;

	rk_open_native(&p, 0);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert(rk_is_right(&p));
	rk_close(&p);
}

/* The call never returns. */
static void
hang(void)
{
	signal(SIGALRM, SIG_DFL);	/* libcheck's would kill the test */
	alarm(1);
	multiply_once();
}

START_TEST(calls_fail_hang_and_abort_when_told)
{
	char switches[128];
	int status;

	rk_run("fail=run:-2@3+set_io_mem:-4@4", fail_third_run);
	rk_expect_abort("abort=run@1", multiply_once);
	rk_run("abort=run@2", multiply_once);
	status = rk_child("hang=mem_sync@2", hang);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
	snprintf(switches, sizeof(switches), "abort=run,once=%s/once",
	    t_tmpdir());
	rk_expect_abort(switches, multiply_once);
	rk_run(switches, multiply_once);
}
END_TEST

/* --- answers --- */

static void
query_little(void)
{
	struct rknn_mem_size size;
	struct rknn_release r;
	struct rk_product p;

	rk_open_native(&p, 0);
	rknn_ask_release(rk_lib(), p.ctx, &r);
	ck_assert_uint_eq(r.number, RKNN_2_3_2);
	ck_assert_str_eq(r.driver, "0.8.2");
	ck_assert_int_eq(rk_lib()->rknn_query(p.ctx, RKNN_QUERY_MEM_SIZE,
	    &size, sizeof(size)), RKNN_ERR_PARAM_INVALID);
	rk_close(&p);
}

START_TEST(answers_can_be_fewer)
{
	rk_run("query=version,driver=0.8.2", query_little);
}
END_TEST

static void
take_model_time(void)
{
	struct rk_product p;
	uint64_t before, start_ns;

	rk_open_type(&p, RKNN_INT8_MM_INT8_TO_INT32, 2048);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	/* 33 us, and 128 KiB at 11 GB/s. */
	before = rk_counts().modelled_ns;
	ck_assert_uint_eq(before, 33000 + 131072 / 11);
	start_ns = event_now_ns();
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	/* Never faster. */
	ck_assert_uint_ge(event_now_ns() - start_ns, 2 * before);
	ck_assert_uint_eq(rk_counts().modelled_ns, 2 * before);
	ck_assert(rk_is_right(&p));
	rk_close(&p);
}

START_TEST(runs_take_the_time_of_the_model)
{
	rk_run("time=2", take_model_time);
}
END_TEST

static void
leave_memory(void)
{
	struct rk_product p;

	rk_open_native(&p, 0);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	exit(0);
}

START_TEST(the_counters_are_reported_at_exit)
{
	char path[128], switches[160], text[512] = "";
	FILE *fp;

	snprintf(path, sizeof(path), "%s/report", t_tmpdir());
	snprintf(switches, sizeof(switches), "report=%s", path);
	ck_assert_int_eq(rk_child(switches, leave_memory), 0);
	ck_assert_ptr_nonnull(fp = fopen(path, "r"));
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), fp));
	fclose(fp);
	ck_assert_msg(strstr(text, "1 creates, 1 runs, 3 syncs") != NULL &&
	    strstr(text, "at exit 1 contexts, 3 memories; 0 misuses") != NULL,
	    "%s", text);
}
END_TEST

static void
do_nothing(void)
{
}

START_TEST(a_switch_that_is_not_known_is_an_error)
{
	static const char *const bad[] = { "sok=rk3588", "soc=rk3399",
	    "version=2", "time=x", "coherent" };
	unsigned i;
	int status;

	for (i = 0; i < NITEMS(bad); i++) {
		status = rk_child(bad[i], do_nothing);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 1,
		    "%s", bad[i]);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		sizes_that_are_not_aligned_are_refused,
		large_k_is_refused_or_ends_the_process,
		native_b_has_segments_of_k,
		only_m_varies_in_a_dynamic_shape,
		a_product_takes_one_core,
		domains_have_their_own_memory,
		a_second_process_beside_a_domain_ends,
		contexts_run_side_by_side,
		two_runs_of_a_context_at_once_are_counted,
		products_can_be_wrong,
		scales_of_channels_give_zeros,
		calls_fail_hang_and_abort_when_told,
		answers_can_be_fewer,
		runs_take_the_time_of_the_model,
		the_counters_are_reported_at_exit,
		a_switch_that_is_not_known_is_an_error,
	};

	return t_main("rknpu_standin", 60, tests, NITEMS(tests));
}
