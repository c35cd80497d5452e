/* tests/unit/roofline.c - tests of bench's bounds: caches, teams of cores,
 * reads, costs of models, and the arithmetic of bounds and fractions. */
#include "tests/support/t.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/cores.h"
#include "coordinator/bench/bench.h"
#include "coordinator/bench/caches.h"
#include "coordinator/bench/team.h"
#include "coordinator/engine/signals.h"
#include "kernels/cpu.h"
#include "tests/support/tiny.h"

static struct err err;

static int
is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* --- series --- */

START_TEST(series_has_mean_median_and_deviation_in_any_order)
{
	static const double v[] = { 5, 1, 4, 1, 3, 9 };
	static const double median[] = { 5, 3, 4, 2.5, 3, 3.5 };
	struct series s = { 0 };
	unsigned i;

	ck_assert(series_median(&s) == 0);
	ck_assert(series_mean(&s) == 0);
	for (i = 0; i < NITEMS(v); i++) {
		t_ok(series_add(&s, v[i], &err), &err);
		ck_assert(is_near(series_median(&s), median[i]));
		if (i == 0)
			ck_assert(series_sd(&s) == 0);
	}
	ck_assert(is_near(series_mean(&s), 23.0 / 6));
	/* Squares of the differences: 269/6, over 5. */
	ck_assert(is_near(series_sd(&s), sqrt(269.0 / 6 / 5)));
	for (i = 0; i < 100; i++)
		t_ok(series_add(&s, 7, &err), &err);
	ck_assert(is_near(series_median(&s), 7));
	series_free(&s);
	ck_assert_uint_eq(s.n, 0);
}
END_TEST

/* --- caches --- */

static void
write_cache_file(const char *root, unsigned cpu, unsigned index,
    const char *name, const char *text)
{
	char path[512], cmd[600];
	FILE *fp;

	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%u/cache/"
	    "index%u", root, cpu, index);
	snprintf(cmd, sizeof(cmd), "mkdir -p '%s'", path);
	ck_assert_int_eq(system(cmd), 0);
	strcat(path, "/");
	strcat(path, name);
	fp = fopen(path, "w");
	ck_assert_ptr_nonnull(fp);
	fputs(text, fp);
	fclose(fp);
}

/* Four cores; each two share a last cache, and each core has its own L2. */
START_TEST(each_last_level_cache_counts_once)
{
	static const unsigned cpu[] = { 0, 1, 2, 3 };
	const char *root = t_tmpdir();
	unsigned i;

	for (i = 0; i < 4; i++) {
		write_cache_file(root, i, 0, "level", "1\n");
		write_cache_file(root, i, 0, "size", "48K\n");
		write_cache_file(root, i, 2, "level", "3\n");
		write_cache_file(
		    root, i, 2, "size", i < 2 ? "32768K\n" : "16M\n");
		write_cache_file(
		    root, i, 2, "shared_cpu_list", i < 2 ? "0-1\n" : "2-3\n");
		write_cache_file(root, i, 1, "level", "2\n");
		write_cache_file(root, i, 1, "size", "2048K\n");
	}
	ck_assert_uint_eq(caches_last_bytes(cpu, 1, root), 32 * MIB);
	ck_assert_uint_eq(caches_last_bytes(cpu, 2, root), 32 * MIB);
	ck_assert_uint_eq(caches_last_bytes(cpu, 4, root), 48 * MIB);
	ck_assert_uint_eq(caches_last_bytes(cpu + 1, 2, root), 48 * MIB);
	ck_assert_uint_eq(caches_last_bytes(cpu, 4, "/nonexistent"), 0);
}
END_TEST

START_TEST(the_read_buffer_exceeds_caches_and_leaves_memory_free)
{
	/* 4 x 260 MiB is more than 1 GiB. */
	ck_assert_uint_eq(roofline_read_bytes(260 * MIB, 64 * GIB, 2),
	    1040 * MIB);
	ck_assert_uint_eq(roofline_read_bytes(8 * MIB, 64 * GIB, 4), GIB);
	ck_assert_uint_eq(roofline_read_bytes(0, 0, 1), GIB);
	/* At most a quarter of free memory, in whole steps for each core. */
	ck_assert_uint_eq(roofline_read_bytes(260 * MIB, GIB, 2), 256 * MIB);
	ck_assert_uint_eq(roofline_read_bytes(260 * MIB, GIB, 3),
	    85 / 2 * 2 * MIB * 3);
	ck_assert_uint_eq(roofline_read_bytes(0, 4 * MIB, 8), 16 * MIB);
}
END_TEST

/* --- teams --- */

enum { STEPS = 5 };

struct progress {
	unsigned left[MAX_CPUS];
	int cpu[MAX_CPUS];
};

static double
count_step(void *arg, unsigned i)
{
	struct progress *w = arg;

	w->cpu[i] = sched_getcpu();
	return w->left[i] > 0 ? (w->left[i]--, 1) : 0;
}

static unsigned
allowed_cpus(unsigned cpu[MAX_CPUS])
{
	struct cpuset set;
	unsigned i, n = 0;

	t_ok(cores_allowed(&set, &err), &err);
	for (i = 0; i < MAX_CPUS; i++)
		if (cpuset_has(&set, i))
			cpu[n++] = i;
	return n;
}

START_TEST(a_team_runs_on_its_cores_until_each_is_done)
{
	static struct progress w;
	unsigned cpu[MAX_CPUS], n = allowed_cpus(cpu), i;
	struct team_time t;

	for (i = 0; i < n; i++)
		w.left[i] = STEPS;
	t_ok(team_run(cpu, n, TEAM_UNTIL_DONE, count_step, &w, &t, &err),
	    &err);
	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(w.left[i], 0);
		ck_assert_int_eq(w.cpu[i], (int)cpu[i]);
	}
	ck_assert(t.wall_s > 0);
	ck_assert(t.rate > 0 && isfinite(t.rate));
}
END_TEST

START_TEST(any_number_of_cores_reads_for_one_slice)
{
	static const struct read_shape shape = { 2, 512 };
	unsigned cpu[MAX_CPUS], n = MIN(allowed_cpus(cpu), 4), i;
	struct read_area *a;
	struct team_time t;
	struct peaks p;

	peaks_init(&p, cpu_flags());
	t_ok(read_area_open(&p, cpu, n, n * 2 * READ_STEP, &a, &err), &err);
	for (i = 1; i <= n; i++) {
		t_ok(read_area_slice(a, i, shape, 1000000, &t, &err), &err);
		ck_assert(t.rate > 0 && isfinite(t.rate));
	}
	read_area_close(a);
	read_area_close(NULL);
}
END_TEST

START_TEST(a_roofline_stays_within_the_given_memory)
{
	unsigned cpu[MAX_CPUS];
	struct cpuset one = { 0 };
	struct roofline *r;
	struct bounds b;

	allowed_cpus(cpu);
	cpuset_add(&one, cpu[0]);
	t_ok(roofline_open(&one, 32 * MIB, 100000, &r, &err), &err);
	ck_assert_uint_eq(roofline_buffer_bytes(r), 8 * MIB);
	ck_assert_uint_eq(roofline_ncores(r), 1);
	t_ok(roofline_slice(r, 1u << ROOF_READ | 1u << ROOF_INT8, &b, &err),
	    &err);
	ck_assert(b.per_s[ROOF_READ] > 0 && b.per_s[ROOF_INT8] > 0);
	ck_assert(b.per_s[ROOF_F32] == 0);	/* not requested */
	roofline_close(r);
}
END_TEST

/* Clear the Referenced bits of all pages.  A page in a core's TLB is not marked
 * again; a fork flushes the TLBs of all cores. */
static void
clear_referenced_bits(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "we");
	pid_t pid;

	if (f == NULL)
		return;
	fputs("1", f);
	fclose(f);
	ck_assert_int_ge(pid = fork(), 0);
	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

START_TEST(every_page_of_the_buffer_is_touched)
{
	static const char file[] = "smaps_rollup", used[] = "Referenced:";
	unsigned cpu[MAX_CPUS], n = MIN(allowed_cpus(cpu), 4);
	uint64_t nbytes = n * 8 * READ_STEP, idle;
	struct read_area *a;
	struct peaks p;

	peaks_init(&p, cpu_flags());
	t_ok(read_area_open(&p, cpu, n, nbytes, &a, &err), &err);
	clear_referenced_bits();
	if ((idle = t_proc_bytes(file, used)) == 0 || idle >= nbytes) {
		printf("note: this kernel does not report referenced pages\n");
	} else {
		t_ok(read_area_touch(a, &err), &err);
		ck_assert_uint_ge(t_proc_bytes(file, used), nbytes);
	}
	read_area_close(a);
}
END_TEST

START_TEST(the_disk_roofline_reads_whole_files)
{
	struct tiny tiny = TINY;
	struct gguf *g;
	struct model *m;
	double bytes_s;
	sigset_t set;
	int direct;

	t_ok(tiny_open(&tiny, &g, &m, &err), &err);
	t_ok(roofline_disk(g, &bytes_s, &direct, &err), &err);
	ck_assert(bytes_s > 0 && isfinite(bytes_s));
	g->file[0].nbytes++;		/* one byte past the end */
	ck_assert_int_lt(roofline_disk(g, &bytes_s, &direct, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "has the file changed"));
	g->file[0].nbytes--;
	signals_ending(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGINT);
	ck_assert_int_eq(roofline_disk(g, &bytes_s, &direct, &err), -EINTR);
	ck_assert_ptr_nonnull(strstr(err.msg, "interrupted"));
	t_ok(roofline_disk(g, &bytes_s, &direct, &err), &err);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	tiny_close(g, m);
}
END_TEST

/* --- costs of models --- */

/* Costs of a model whose last session has n units. */
static void
get_cost(const struct tiny *t, enum act_type act, uint32_t n,
    struct bench_cost *ret)
{
	struct kernels k;
	struct gguf *g;
	struct model *m;

	t_ok(tiny_open(t, &g, &m, &err), &err);
	kernels_init(&k, 0);
	k.mat[t->type].act = act;
	bench_cost(m, &k, KV_F16, KV_F32, m->nunits - n, ret);
	tiny_close(g, m);
}

/* Weights of TINY's four layers: q and o 64 x 64, k and v 64 x 32, three FFN
 * matrices 64 x 128; the head is 64 x 320.  Q8_0 has 34 bytes for 32. */
#define LAYERS	(4.0 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128))
#define HEAD	(64.0 * 320)

START_TEST(cost_counts_the_matrices)
{
	struct tiny t = TINY;
	struct bench_cost c, tied;

	get_cost(&t, ACT_Q8, 1, &c);
	ck_assert(is_near(c.row_ops[PEAK_INT8], 2 * LAYERS));
	ck_assert(is_near(c.head_ops[PEAK_INT8], 2 * HEAD));
	ck_assert(c.row_ops[PEAK_F32] == 0 && c.head_ops[PEAK_F32] == 0);
	ck_assert(is_near(c.layer_bytes, LAYERS / 32 * 34));
	ck_assert(is_near(c.head_bytes, HEAD / 32 * 34));
	/* Four layers, two heads of 16; K has two bytes each, V four. */
	ck_assert(is_near(c.kv_bytes, 4 * 2 * 16 * (2 + 4)));
	t.tied = 1;
	get_cost(&t, ACT_Q8, 1, &tied);
	ck_assert_int_eq(memcmp(&c, &tied, sizeof(c)), 0);
	t.type = QUANT_F16;
	get_cost(&t, ACT_F32, 1, &c);
	ck_assert(is_near(c.row_ops[PEAK_F32], 2 * LAYERS));
	ck_assert(c.row_ops[PEAK_INT8] == 0);
	ck_assert(is_near(c.layer_bytes, LAYERS * 2));
	t.type = QUANT_BF16;
	get_cost(&t, ACT_BF16, 1, &c);
	ck_assert(is_near(c.row_ops[PEAK_BF16], 2 * LAYERS));
	ck_assert(c.row_ops[PEAK_F32] == 0);
}
END_TEST

/* The last layer without q, k and v. */
#define FFN	(3.0 * 64 * 128)
#define AFTER_QKV	(64.0 * 64 + FFN)

START_TEST(the_last_layer_counts_once_for_each_row_of_logits)
{
	struct tiny t = TINY;
	struct bench_cost c, d;

	get_cost(&t, ACT_Q8, 4, &c);
	ck_assert(is_near(c.row_ops[PEAK_INT8], 2 * (LAYERS - AFTER_QKV)));
	ck_assert(is_near(c.head_ops[PEAK_INT8], 2 * (HEAD + AFTER_QKV)));
	ck_assert(is_near(c.layer_bytes, (LAYERS - AFTER_QKV) / 32 * 34));
	ck_assert(is_near(c.head_bytes, (HEAD + AFTER_QKV) / 32 * 34));
	get_cost(&t, ACT_Q8, 3, &d);
	ck_assert_int_eq(memcmp(&c, &d, sizeof(c)), 0);
	/* If another session has its attention, that runs for all rows. */
	get_cost(&t, ACT_Q8, 2, &d);
	ck_assert(is_near(d.row_ops[PEAK_INT8], 2 * (LAYERS - FFN)));
	ck_assert(is_near(d.head_ops[PEAK_INT8], 2 * (HEAD + FFN)));
}
END_TEST

/* Round numbers. */
static const struct bench_cost cost = {
	.row_ops = { [PEAK_INT8] = 1000, [PEAK_F32] = 10 },
	.head_ops = { [PEAK_INT8] = 200 },
	.layer_bytes = 500, .head_bytes = 100, .kv_bytes = 4,
};

START_TEST(a_prompt_computes_the_head_once_and_reads_weights_per_batch)
{
	struct bench_work w = bench_work_prompt(&cost, 300, 128);

	ck_assert(is_near(w.ops[PEAK_INT8], 300 * 1000 + 200));
	ck_assert(is_near(w.ops[PEAK_F32], 300 * 10));
	ck_assert(is_near(w.read_bytes, 3 * 500 + 100));
}
END_TEST

START_TEST(generation_reads_weights_and_context_per_step)
{
	/* Positions 7, 8, 9: 8 + 9 + 10 keys for each of two sequences. */
	struct bench_work w = bench_work_generate(&cost, 3, 7, 2, 128);

	ck_assert(is_near(w.ops[PEAK_INT8], 2 * 3 * 1200));
	ck_assert(is_near(w.read_bytes, 3 * 600 + 2 * 27 * 4));
	/* Five sequences in batches of two: three batches a step. */
	w = bench_work_generate(&cost, 1, 0, 5, 2);
	ck_assert(is_near(w.read_bytes, 3 * 600 + 5 * 4));
}
END_TEST

/* Four layers of 6 experts, each 3 x 64 x 96 weights; a token uses 2. */
#define EXPERTS	(4.0 * 6 * 3 * 64 * 96)
#define ROUTERS	(4.0 * 6 * 64)

START_TEST(a_token_costs_only_its_experts)
{
	struct tiny t = TINY;
	struct bench_cost c;
	struct bench_work w;
	double dense = LAYERS - 4.0 * 3 * 64 * 128;

	t.n_expert = 6;
	t.n_used = 2;
	t.n_ff_expert = 96;
	get_cost(&t, ACT_Q8, 1, &c);
	ck_assert(is_near(c.row_ops[PEAK_INT8], 2 * (dense + EXPERTS / 3)));
	ck_assert(is_near(c.row_ops[PEAK_F32], 2 * ROUTERS));
	ck_assert(is_near(c.layer_bytes, dense / 32 * 34 + ROUTERS * 4));
	ck_assert(is_near(c.expert_bytes, EXPERTS / 32 * 34));
	ck_assert(is_near(c.expert_share, 1 / 3.0));

	/* The last layer counts for rows of logits. */
	get_cost(&t, ACT_Q8, 4, &c);
	ck_assert(is_near(c.expert_bytes, EXPERTS / 32 * 34 * 3 / 4));
	ck_assert(is_near(c.head_expert_bytes, EXPERTS / 32 * 34 / 4));

	c = cost;
	c.expert_bytes = 900;
	c.expert_share = 1 / 3.0;
	w = bench_work_generate(&c, 1, 0, 1, 128);
	ck_assert(is_near(w.read_bytes, 600 + 300 + 4));
	/* Two rows: the second chooses a third of the remaining experts. */
	w = bench_work_generate(&c, 1, 0, 2, 128);
	ck_assert(is_near(w.read_bytes, 600 + 500 + 2 * 4));
	w = bench_work_prompt(&c, 5, 2);
	ck_assert(is_near(w.read_bytes, 100 + 3 * 500 + 2 * 500 + 300));
	c.head_expert_bytes = 90;
	w = bench_work_prompt(&c, 5, 2);
	ck_assert(is_near(w.read_bytes, 100 + 3 * 500 + 2 * 500 + 300 + 30));
	w = bench_work_generate(&c, 3, 0, 1, 128);
	ck_assert(is_near(w.read_bytes,
	    3 * (600 + 300 + 30) + 4 * (1 + 2 + 3)));
	w = bench_work_generate(&c, 1, 0, 3, 2);	/* batches of 2 and 1 */
	ck_assert(is_near(w.read_bytes, 600 + 500 + 50 + 600 + 300 + 30 +
	    3 * 4));
}
END_TEST

START_TEST(local_layers_read_only_their_window)
{
	struct tiny t = TINY;
	struct bench_cost c;
	struct bench_work w;

	t.window = 9;
	t.full_every = 4;
	get_cost(&t, ACT_Q8, 1, &c);
	ck_assert(is_near(c.kv_bytes, 1 * 2 * 16 * (2 + 4)));
	ck_assert(is_near(c.local_kv_bytes, 3 * 2 * 16 * (2 + 4)));
	ck_assert_uint_eq(c.window, 9);

	/* Positions 7, 8, 9: 8 + 9 + 10 keys, and 8 + 9 + 9 local ones. */
	c = cost;
	c.local_kv_bytes = 100;
	c.window = 9;
	w = bench_work_generate(&c, 3, 7, 1, 128);
	ck_assert(is_near(w.read_bytes, 3 * 600 + 27 * 4 + 26 * 100));
}
END_TEST

START_TEST(the_bound_is_the_slowest_resource)
{
	struct bench_work w = { .ops = { [PEAK_INT8] = 8000,
	    [PEAK_F32] = 100 }, .read_bytes = 50 };
	struct bounds b = { .per_s = { [ROOF_INT8] = 1000, [ROOF_F32] = 100,
	    [ROOF_READ] = 10 } };
	enum roof r;

	/* 8 s + 1 s of computing; 5 s of reading, in parallel. */
	ck_assert(is_near(bench_work_s(&w, &b, &r), 9));
	ck_assert_int_eq(r, ROOF_INT8);
	w.ops[PEAK_F32] = 900;
	ck_assert(is_near(bench_work_s(&w, &b, &r), 17));
	ck_assert_int_eq(r, ROOF_F32);
	w.read_bytes = 200;
	ck_assert(is_near(bench_work_s(&w, &b, &r), 20));
	ck_assert_int_eq(r, ROOF_READ);
	/* A resource without a measurement is no bound. */
	w.disk_bytes = 1e9;
	ck_assert(is_near(bench_work_s(&w, &b, &r), 20));
	b.per_s[ROOF_DISK] = 1e7;
	ck_assert(is_near(bench_work_s(&w, &b, &r), 100));
	ck_assert_int_eq(r, ROOF_DISK);
	b = (struct bounds){ 0 };
	ck_assert(bench_work_s(&w, &b, &r) == 0);
}
END_TEST

START_TEST(tests_are_named_by_kind_and_size)
{
	static const char *const names[] = { "pp64", "tg8", "tg8x4",
	    "tg8@d100", "tg8x4@d100", "load" };
	static struct bench_tests ts;
	struct conf c;
	unsigned i;

	conf_defaults(&c);
	bench_tests_init(&c, &ts);
	ck_assert_uint_eq(ts.n, 2);
	ck_assert_str_eq(ts.t[0].name, "pp512");
	ck_assert_str_eq(ts.t[1].name, "tg128");
	c.bench_prompt = 64;
	c.n_predict = 8;
	c.bench_load = 1;
	c.depths = (struct int_list){ 2, { 0, 100 } };
	c.parallels = (struct int_list){ 2, { 1, 4 } };
	bench_tests_init(&c, &ts);
	ck_assert_uint_eq(ts.n, NITEMS(names));
	for (i = 0; i < NITEMS(names); i++)
		ck_assert_str_eq(ts.t[i].name, names[i]);
	ck_assert_uint_eq(bench_tests_ctx(&ts), 108);
	ck_assert_uint_eq(bench_tests_seqs(&ts), 4);
	c.bench_prompt = c.n_predict = c.bench_load = 0;
	bench_tests_init(&c, &ts);
	ck_assert_uint_eq(ts.n, 0);
}
END_TEST

/* The result of runs with these speeds, as multiples of a bound of 100 units per
 * second in `kind`. */
static struct bench_result
result_of(struct bench_test *t, const struct bench *b, enum roof kind,
    const double *speed, unsigned n, double share, double cache_bytes)
{
	struct bounds best = { .share = 1 };
	struct bench_result r;
	unsigned i;

	t->units = 10;
	t->work = (struct bench_work){ 0 };
	if (kind < ROOF_READ)
		t->work.ops[kind] = 1000;
	else if (kind == ROOF_READ)
		t->work.read_bytes = 1000;
	else
		t->work.disk_bytes = 1000;
	best.per_s[kind] = 10000;
	for (i = 0; i < n; i++)
		if (series_add(&t->speed, 100 * speed[i], &err) < 0 ||
		    series_add(&t->share, share, &err) < 0)
			ck_abort_msg("%s", err.msg);
	r = bench_result(b, t, &best, cache_bytes);
	series_free(&t->speed);
	series_free(&t->share);
	ck_assert(fabs(r.limit - 100) < 1e-9);
	ck_assert_int_eq(r.bound, kind);
	return r;
}

START_TEST(a_fraction_is_the_median_speed_over_the_bound)
{
	static const double speed[] = { 0.5, 9, 0.7, 0.8, 0.6 };
	const struct bench b = { .cores_alone = 1, .weight_bytes = 100 };
	struct bench_test t = { .kind = BENCH_PROMPT };
	struct bench_result r = result_of(&t, &b, ROOF_INT8, speed, 5, 0.8,
	    10);

	ck_assert_ptr_null(r.why_not);
	ck_assert(fabs(r.fraction - 0.7) < 1e-9);
	ck_assert(r.of_share_known);
	ck_assert(fabs(r.of_share - 0.7 / 0.8) < 1e-9);
	/* The runs had more of the cores than the slices. */
	r = result_of(&t, &b, ROOF_INT8, speed, 5, 0.2, 10);
	ck_assert_ptr_null(r.why_not);
	ck_assert(!r.of_share_known);
}
END_TEST

START_TEST(a_result_above_its_bound_has_a_reason_instead_of_a_fraction)
{
	static const double at = 1.049, above = 1.051, far = 6.38;
	const struct bench large = { .cores_alone = 1, .weight_bytes = 100 },
	    small = { .cores_alone = 1, .weight_bytes = 9 },
	    device = { .weight_bytes = 100 };
	struct bench_test load = { .kind = BENCH_LOAD },
	    prompt = { .kind = BENCH_PROMPT },
	    generate = { .kind = BENCH_GENERATE };
	struct bench_result r;

	r = result_of(&prompt, &large, ROOF_INT8, &at, 1, 1, 10);
	ck_assert(r.why_not == NULL && !r.disturbed);
#define CHECK(test, bench, kind, speed, cache, text, is_disturbed) do { \
	r = result_of(&test, &bench, kind, &speed, 1, 1, cache); \
	ck_assert_ptr_nonnull(r.why_not); \
	ck_assert_msg(strstr(r.why_not, text) != NULL, "%s", r.why_not); \
	ck_assert_int_eq(r.disturbed, is_disturbed); \
	ck_assert(!r.of_share_known); \
} while (0)
	CHECK(prompt, large, ROOF_INT8, above, 10, "other load", 1);
	CHECK(prompt, large, ROOF_INT8, far, 10, "other load", 1);
	CHECK(generate, large, ROOF_READ, far, 10, "other load", 1);
	CHECK(generate, small, ROOF_READ, far, 10, "fit into caches", 0);
	CHECK(generate, small, ROOF_READ, far, 0, "may fit into caches", 0);
	/* Caches do not explain a bound by products. */
	CHECK(prompt, small, ROOF_INT8, far, 10, "other load", 1);
	/* A device may be faster than the cores. */
	CHECK(generate, device, ROOF_READ, far, 10, "host's cores", 0);
	CHECK(load, large, ROOF_DISK, far, 10, "raw reads", 0);
#undef CHECK
}
END_TEST

/* --- splits --- */

START_TEST(a_split_assigns_each_core_and_byte_once)
{
	static struct conf c, s;
	struct cpuset all, seen;
	unsigned n, i, cpu, cores;

	conf_defaults(&c);
	c.nsessions = 2;
	for (i = 0; i < 2; i++) {
		c.session[i] = (struct session_conf){ .name = "x",
		    .device = "cpu", .node = 1, .threads = 9,
		    .cap_bytes = 300 * MIB };
		for (cpu = 0; cpu < 4; cpu++)
			cpuset_add(&c.session[i].cpus, 2 * cpu + 3 * i);
	}
	conf_cores(&c, &all);		/* 0 2 4 6 and 3 5 7 9 */
	ck_assert_uint_eq(cpuset_count(&all), 8);
	for (n = 1; n <= 8; n++) {
		bench_split_conf(&c, (int)n, 1, &s);
		ck_assert_int_eq(s.nsessions, (int)n);
		for (i = 0; i < n; i++)
			ck_assert_int_eq(memcmp(&s.session[i].cpus, &all,
			    sizeof(all)), 0);
		bench_split_conf(&c, (int)n, 0, &s);
		memset(&seen, 0, sizeof(seen));
		for (i = cores = 0; i < n; i++) {
			struct session_conf *sc = &s.session[i];

			ck_assert(!cpuset_overlaps(&seen, &sc->cpus));
			ck_assert_uint_ge(cpuset_count(&sc->cpus), 8 / n);
			cores += cpuset_count(&sc->cpus);
			for (cpu = 0; cpu < 10; cpu++)
				if (cpuset_has(&sc->cpus, cpu))
					cpuset_add(&seen, cpu);
			ck_assert_uint_eq(sc->cap_bytes, 600 * MIB / n);
			ck_assert_int_eq(sc->threads, 0);
			ck_assert_int_eq(sc->node, -1);
		}
		ck_assert_uint_eq(cores, 8);
		ck_assert_int_eq(memcmp(&seen, &all, sizeof(all)), 0);
	}
	ck_assert_str_eq(s.session[7].name, "cpu7");
	ck_assert_str_eq(s.session[7].cores, "9");
	/* If one session has no cap, all share the free memory. */
	c.session[1].cap_bytes = 0;
	bench_split_conf(&c, 3, 1, &s);
	ck_assert_uint_eq(s.session[2].cap_bytes, 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		series_has_mean_median_and_deviation_in_any_order,
		each_last_level_cache_counts_once,
		the_read_buffer_exceeds_caches_and_leaves_memory_free,
		a_team_runs_on_its_cores_until_each_is_done,
		any_number_of_cores_reads_for_one_slice,
		a_roofline_stays_within_the_given_memory,
		every_page_of_the_buffer_is_touched,
		the_disk_roofline_reads_whole_files,
		cost_counts_the_matrices,
		the_last_layer_counts_once_for_each_row_of_logits,
		a_token_costs_only_its_experts,
		local_layers_read_only_their_window,
		a_prompt_computes_the_head_once_and_reads_weights_per_batch,
		generation_reads_weights_and_context_per_step,
		the_bound_is_the_slowest_resource,
		tests_are_named_by_kind_and_size,
		a_fraction_is_the_median_speed_over_the_bound,
		a_result_above_its_bound_has_a_reason_instead_of_a_fraction,
		a_split_assigns_each_core_and_byte_once,
	};

	return t_main("roofline", 60, tests, NITEMS(tests));
}
