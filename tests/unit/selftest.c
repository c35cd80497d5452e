/* tests/unit/selftest.c - a device's self-test: devices that compute right
 * pass, devices that compute anything else do not. */
#include "tests/support/t.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/cores.h"
#include "kernels/cpu.h"
#include "worker/hexagon/domain.h"
#include "worker/stage/pool.h"
#include "worker/stage/selftest.h"
#include "worker/stage/selftest_known.h"
#include "worker/stage/selftest_run.h"

static struct mem_ledger ledger;
static struct par *par;

static struct device_conf
conf_of(const char *session)
{
	return (struct device_conf){ .session = session, .port = "",
	    .par = par, .ledger = &ledger, .own_cores = 1 };
}

static struct device *
open_device(const struct device_ops *ops, unsigned threads)
{
	struct pool_conf pc = { .nthreads = threads };
	struct device_conf dc;
	struct device *d;
	struct err e = { 0 };

	t_ok(cores_allowed(&pc.cpus, &e), &e);
	t_ok(pool_open(&pc, &par, &e), &e);
	mem_ledger_init(&ledger, "s", GIB);
	dc = conf_of("s");
	t_ok(ops->open(&dc, &d, &e), &e);
	return d;
}

static void
close_device(const struct device_ops *ops, struct device *d)
{
	ops->close(d);
	pool_close(par);
	ck_assert_uint_eq(ledger.used_bytes, 0);
}

static int
has_hexagon(void)
{
	const struct hexagon_port *port;
	char what[DOMAIN_WHAT];
	struct err e;

	return domain_find("emulated", &port, what, &e) == 0;
}

static int
test_once(const struct device_ops *ops, struct device *d,
    struct selftest_stats *ret, struct err *reterr)
{
	const struct device_conf dc = conf_of("s");

	return selftest_open(ops, d, &dc, ret, reterr);
}

/* --- devices that compute right --- */

/* Twice, because the first test must leave the device as after open. */
static void
check_right(const struct device_ops *ops, unsigned threads)
{
	struct device *d = open_device(ops, threads);
	const uint64_t used = ledger.used_bytes;
	struct selftest_stats st;
	struct err e = { 0 };
	unsigned i;

	for (i = 0; i < 2; i++) {
		t_ok(test_once(ops, d, &st, &e), &e);
		ck_assert_ptr_null(st.untested);
		ck_assert_uint_gt(st.device_ops, 20);
		ck_assert_msg(st.error < 0.1, "%s: %g", ops->kind, st.error);
		ck_assert_uint_eq(ledger.used_bytes, used);
	}
	/* The plan has room for a staging area of 3 MiB. */
	ck_assert_uint_lt(ledger.peak_bytes, used + MIB);
	close_device(ops, d);
}

START_TEST(right_devices_pass_and_are_as_after_open)
{
	check_right(&device_cpu, 1);
	check_right(&device_cpu, 3);
	check_right(&device_reference, 1);
	if (has_hexagon())
		check_right(&device_hexagon, 1);
}
END_TEST

START_TEST(a_device_that_computes_nothing_on_purpose_is_not_tested)
{
	struct device *d = open_device(&device_null, 1);
	struct selftest_stats st;
	struct err e = { 0 };

	t_ok(test_once(&device_null, d, &st, &e), &e);
	ck_assert_str_eq(st.untested, "it computes nothing, on purpose");
	ck_assert_uint_eq(ledger.peak_bytes, 0);
	close_device(&device_null, d);
}
END_TEST

/* --- devices that are wrong --- */

/* A fault in a device that is otherwise the CPU. */
enum fault { FAULT_NONE, FAULT_NOTHING, FAULT_ZEROS, FAULT_POSITIONS,
    FAULT_ONE_ROW, FAULT_SWAPPED, FAULT_WEIGHTS, FAULT_NAN, FAULT_LEFT_OUT,
    FAULT_HALVED };

static enum fault fault;
static uint32_t fault_op;		/* of the program */

/* A prepared span, in up to two parts around the faulty operation. */
static struct faulty_span {
	const struct program *p;
	struct span s;
	uint32_t whole, before, after;
	uint8_t *compute;
} faulty_span[128];
static uint32_t nfaulty;

static int
faulty_prepare(struct device *d, const struct program *p,
    const struct span *s, const struct device_buf *kv,
    const struct device_buf *compute, uint32_t *ret_handle,
    struct err *reterr)
{
	struct faulty_span *f = &faulty_span[nfaulty];
	struct span before = *s, after = *s;
	int rc;

	ck_assert_uint_lt(nfaulty, NITEMS(faulty_span));
	*f = (struct faulty_span){ .p = p, .s = *s,
	    .compute = compute->host };
	before.end = MIN(MAX(fault_op + (fault == FAULT_HALVED), s->first),
	    s->end);
	after.first = MIN(MAX(fault_op + 1, s->first), s->end);
	if ((rc = device_cpu.prepare(d, p, s, kv, compute, &f->whole,
	    reterr)) < 0 ||
	    (rc = device_cpu.prepare(d, p, &before, kv, compute, &f->before,
	    reterr)) < 0 ||
	    (rc = device_cpu.prepare(d, p, &after, kv, compute, &f->after,
	    reterr)) < 0)
		return rc;
	*ret_handle = nfaulty++;
	return 0;
}

/* Halve the numbers of the operation's result. */
static void
halve(const struct faulty_span *f, const struct batch *b)
{
	const struct tensor *t = &f->p->t[f->p->op[fault_op].out];
	uint8_t *base = t->store == STORE_OUTPUT ? b->output :
	    f->compute + t->offset;
	uint32_t r, i;

	for (r = 0; r < b->nrows; r++)
		for (i = 0; i < t->cols; i++)
			((float *)(void *)(base + r * t->row_bytes))[i] *=
			    0.5f;
}

static void
run_around(struct device *d, const struct faulty_span *f,
    const struct batch *b)
{
	struct err e = { 0 };

	if (fault_op < f->s.first || fault_op >= f->s.end) {
		t_ok(device_cpu.run(d, f->whole, b, &e), &e);
		return;
	}
	t_ok(device_cpu.run(d, f->before, b, &e), &e);
	if (fault == FAULT_HALVED)
		halve(f, batch_of(b, f->p, fault_op));
	t_ok(device_cpu.run(d, f->after, b, &e), &e);
}

static void
spoil_output(const struct faulty_span *f, const struct batch *b)
{
	const struct tensor *t = &f->p->t[f->p->op[f->p->nops - 1].out];
	float *x = b->output;

	if (f->s.end != f->p->nops || b->output == NULL)
		return;
	if (fault == FAULT_ZEROS)
		memset(x, 0, b->nselect * t->row_bytes);
	else
		x[(b->nselect - 1) * t->row_bytes / 4 + t->cols - 1] =
		    (float)strtod("nan", NULL);
}

static int
faulty_run(struct device *d, uint32_t handle, const struct batch *b,
    struct err *reterr)
{
	const struct faulty_span *f = &faulty_span[handle];
	uint32_t pos[8] = { 0 }, token[8] = { 0 }, i;
	struct batch odd = *b;

	for (i = 0; i < b->nrows; i++) {
		pos[i] = b->pos[i] > 0 ? b->pos[i] - 1 : 0;
		if (b->token != NULL)
			token[i] = b->token[b->nrows - 1 - i];
	}
	switch (fault) {
	case FAULT_NOTHING:
		return 0;
	case FAULT_POSITIONS:
		odd.pos = pos;
		break;
	case FAULT_ONE_ROW:
		odd.nrows = 1;
		break;
	case FAULT_SWAPPED:
		odd.token = token;
		break;
	case FAULT_LEFT_OUT:
	case FAULT_HALVED:
		run_around(d, f, b);
		return 0;
	default:
		break;
	}
	if (device_cpu.run(d, f->whole, &odd, reterr) < 0)
		return -EIO;
	if (fault == FAULT_ZEROS || fault == FAULT_NAN)
		spoil_output(f, b);
	return 0;
}

static int
faulty_upload(struct device *d, const struct weights *ws,
    struct device_buf *weights, uint32_t i, uint32_t row0, uint32_t nrows,
    const void *src, struct err *reterr)
{
	/* Blocks of 32 one after the other, as if they were the file's. */
	if (fault == FAULT_WEIGHTS && ws->w[i].ext.type == QUANT_Q4_0) {
		memcpy((uint8_t *)weights->host + ws->w[i].offset, src,
		    ws->w[i].ext.nbytes);
		return 0;
	}
	return device_cpu.upload(d, ws, weights, i, row0, nrows, src, reterr);
}

static int
faulty_reset(struct device *d, struct err *reterr)
{
	nfaulty = 0;
	return device_cpu.reset(d, reterr);
}

static struct device_ops
faulty_device(enum fault with)
{
	struct device_ops odd = device_cpu;

	odd.kind = "odd";
	odd.prepare = faulty_prepare;
	odd.run = faulty_run;
	odd.upload = faulty_upload;
	odd.reset = faulty_reset;
	fault = with;
	fault_op = UINT32_MAX - 1;
	return odd;
}

static void
check_wrong(const struct device_ops *odd, const char *what)
{
	struct device *d = open_device(odd, 1);
	struct selftest_stats st;
	struct err e = { 0 };

	ck_assert_int_eq(test_once(odd, d, &st, &e), -EREMOTEIO);
	ck_assert_int_eq(e.kind, ERR_RUN);
	ck_assert_msg(strstr(e.msg, "session s: device odd computes wrong "
	    "results: in its self-test ") != NULL &&
	    strstr(e.msg, what) != NULL &&
	    strstr(e.msg, "straddle devices --verify") != NULL, "\"%s\" is "
	    "not in: %s", what, e.msg);
	ck_assert_uint_eq(ledger.used_bytes, 0);
	close_device(odd, d);
}

START_TEST(wrong_devices_end_their_session_by_name)
{
	static const struct { enum fault fault; const char *what; } cases[] = {
		{ FAULT_NOTHING, "get_rows of Q8_0 gives " },
		{ FAULT_ZEROS, "matmul of Q6_K gives 0 instead of " },
		{ FAULT_POSITIONS, "rope_table gives " },
		{ FAULT_ONE_ROW, "get_rows of Q8_0 gives " },
		{ FAULT_SWAPPED, "get_rows of Q8_0 gives " },
		{ FAULT_WEIGHTS, "matmul of Q4_0 gives " },
		{ FAULT_NAN, "matmul of Q6_K gives nan instead of " },
	};
	struct device_ops odd;
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		odd = faulty_device(cases[i].fault);
		check_wrong(&odd, cases[i].what);
	}
	odd = faulty_device(FAULT_NONE);
	check_right(&odd, 1);
}
END_TEST

static int
failing_reset(struct device *d, struct err *reterr)
{
	faulty_reset(d, reterr);
	return err_set(reterr, ERR_RUN, -EIO, "the domain has gone");
}

START_TEST(a_wrong_device_that_cannot_be_reset_is_named_too)
{
	struct device_ops odd = faulty_device(FAULT_ZEROS);

	odd.reset = failing_reset;
	check_wrong(&odd, "a layer of ");
}
END_TEST

/* The program of the short form. */
static struct selftest *
begin_short(const struct device_ops *ops, struct device *d)
{
	static const struct selftest_case tc = { "llama", QUANT_NTYPES,
	    KV_F16 };
	const struct device_conf dc = conf_of("s");
	struct selftest *t = malloc(sizeof(*t));
	struct err e = { 0 };

	t_ok(selftest_begin(t, &tc, ops, d, &dc, 1, &e), &e);
	return t;
}

/* --- the known result --- */

#define KNOWN_PATH	"worker/stage/selftest_known.h"

static void
write_known(const selftest_result result)
{
	FILE *f = fopen(KNOWN_PATH, "w");
	unsigned r, i;

	ck_assert_ptr_nonnull(f);
	fprintf(f, "/* " KNOWN_PATH " - the reference kernels' result for "
	    "the layer\n * of the self-test's short form.  Written by "
	    "STRADDLE_BLESS=1\n * build/tests/unit/selftest, which otherwise "
	    "checks it.  Included by selftest.c\n * and that test. */\n"
	    "#ifndef WORKER_STAGE_SELFTEST_KNOWN_H\n"
	    "#define WORKER_STAGE_SELFTEST_KNOWN_H\n\n"
	    "#include \"selftest_run.h\"\n\n"
	    "static const selftest_result selftest_known = {\n");
	for (r = 0; r < SELFTEST_KEPT; r++) {
		fprintf(f, "\t{");
		for (i = 0; i < SELFTEST_VOCAB; i++)
			fprintf(f, "%s%.5ff,", i % 6 == 5 ? "\n\t    " : " ",
			    (double)result[r][i]);
		fprintf(f, " },\n");
	}
	fprintf(f, "};\n\n#endif\n");
	ck_assert_int_eq(fclose(f), 0);
}

/* The C library of another machine may round an exponential or a cosine
 * differently, and so an activation of 8 bits. */
START_TEST(the_known_result_is_that_of_the_reference)
{
	struct device *d = open_device(&device_cpu, 1);
	struct selftest *t = begin_short(&device_cpu, d);
	struct err e = { 0 };
	selftest_result result;
	double sum;
	unsigned r, i;

	t_ok(selftest_reference(t, &result, &e), &e);
	if (getenv("STRADDLE_BLESS") != NULL)
		write_known((const float (*)[SELFTEST_VOCAB])result);
	for (r = 0; r < SELFTEST_KEPT && getenv("STRADDLE_BLESS") == NULL;
	    r++) {
		for (sum = 0, i = 0; i < SELFTEST_VOCAB; i++)
			sum += pow((double)result[r][i], 2) / SELFTEST_VOCAB;
		for (i = 0; i < SELFTEST_VOCAB; i++)
			ck_assert_msg(fabs((double)(result[r][i] -
			    selftest_known[r][i])) < 0.02 * sqrt(sum),
			    KNOWN_PATH ": row %u: %g, not %g; "
			    "STRADDLE_BLESS=1 writes it", r,
			    (double)result[r][i],
			    (double)selftest_known[r][i]);
	}
	t_ok(selftest_end(t, &e), &e);
	free(t);
	close_device(&device_cpu, d);
}
END_TEST

/* --- one operation --- */

START_TEST(an_operation_left_out_or_off_by_a_factor_is_named)
{
	struct device_ops odd = faulty_device(FAULT_NONE);
	struct device *d = open_device(&odd, 1);
	struct selftest *t = begin_short(&odd, d);
	struct err e = { 0 };
	enum op_kind kind[64];
	uint32_t i, n = t->dev.p->nops, last_norm = 0;

	ck_assert_uint_lt(n, NITEMS(kind));
	for (i = 0; i < n; i++) {
		kind[i] = t->dev.p->op[i].kind;
		if (kind[i] == OP_RMS_NORM)
			last_norm = i;
	}
	t_ok(selftest_end(t, &e), &e);
	free(t);
	close_device(&odd, d);
	for (i = 0; i < n; i++) {
		odd = faulty_device(FAULT_LEFT_OUT);
		fault_op = i;
		/* A row that is missing in the cache shows in attention. */
		check_wrong(&odd, op_name(kind[i] == OP_KV_STORE ?
		    OP_ATTENTION : kind[i]));
		/* A norm undoes a factor of its input, which is the sum of the
		 * layer and then its selected rows. */
		if (kind[i] == OP_QUANTIZE || kind[i] == OP_KV_STORE ||
		    i + 2 == last_norm || i + 1 == last_norm)
			continue;
		odd = faulty_device(FAULT_HALVED);
		fault_op = i;
		check_wrong(&odd, op_name(kind[i]));
	}
}
END_TEST

/* --- failures of the device itself --- */

static int
run_that_fails(struct device *d, uint32_t handle, const struct batch *b,
    struct err *reterr)
{
	(void)d;
	(void)handle;
	(void)b;
	return err_set(reterr, ERR_RUN, -ETIMEDOUT, "the runtime's words");
}

START_TEST(a_failure_of_the_device_is_passed_on)
{
	struct device_ops odd = device_cpu;
	struct device_conf dc;
	struct device *d;
	struct selftest_stats st;
	struct err e = { 0 };

	odd.run = run_that_fails;
	d = open_device(&odd, 1);
	ck_assert_int_eq(test_once(&odd, d, &st, &e), -ETIMEDOUT);
	ck_assert_str_eq(e.msg, "the runtime's words");
	ck_assert_uint_eq(ledger.used_bytes, 0);
	/* Too little memory for the test, at each of its buffers. */
	dc = conf_of("s");
	for (ledger.cap_bytes = 0; selftest_open(&device_cpu, d, &dc, &st,
	    &e) < 0; ledger.cap_bytes += 16 * KIB) {
		ck_assert_int_eq(e.kind, ERR_FIT);
		ck_assert_ptr_nonnull(strstr(e.msg, "self-test"));
		ck_assert_uint_eq(ledger.used_bytes, 0);
	}
	ck_assert_uint_gt(ledger.cap_bytes, 64 * KIB);
	close_device(&odd, d);
}
END_TEST

static void
traits_without_host(const struct device *d, struct device_traits *ret)
{
	device_cpu.traits(d, ret);
	ret->host_visible = 0;
}

static int
supports_matmul(void *arg, const struct program *p, const struct op *op,
    char reason[REASON_LEN])
{
	(void)arg;
	(void)p;
	snprintf(reason, REASON_LEN, "not this one");
	return op_is_matmul(op->kind);
}

START_TEST(memory_that_the_host_cannot_reach)
{
	struct device_ops odd = faulty_device(FAULT_ZEROS);
	struct device *d = open_device(&odd, 1);
	struct selftest_stats st;
	struct err e = { 0 };

	/* Only the result of all can be compared. */
	odd.traits = traits_without_host;
	ck_assert_int_eq(test_once(&odd, d, &st, &e), -EREMOTEIO);
	ck_assert_ptr_nonnull(strstr(e.msg, "a layer of 28 operations"));
	/* Operations that fall back have no way to their numbers. */
	odd.supports = supports_matmul;
	t_ok(test_once(&odd, d, &st, &e), &e);
	ck_assert_ptr_nonnull(strstr(st.untested, "cannot reach its memory"));
	ck_assert_uint_eq(ledger.used_bytes, 0);
	close_device(&odd, d);
}
END_TEST

/* --- every operation and type --- */

struct lines {
	unsigned n, of[4];		/* by verdict */
	unsigned right[OP_NKINDS];	/* by operation */
	char wrong[512];
};

static int
count_line(void *arg, const struct selftest_line *l, struct err *reterr)
{
	struct lines *all = arg;
	uint32_t kind;

	(void)reterr;
	if (l == NULL)
		return 0;
	all->n++;
	all->of[l->verdict]++;
	if (l->verdict == SELFTEST_WRONG || l->verdict == SELFTEST_MISSED)
		snprintf(all->wrong + strlen(all->wrong), sizeof(all->wrong) -
		    strlen(all->wrong), " %s %s,", l->op, l->type);
	for (kind = 0; kind < OP_NKINDS; kind++)
		if (strcmp(l->op, op_name(kind)) == 0)
			all->right[kind] += l->verdict == SELFTEST_OK;
	if (l->verdict == SELFTEST_UNCLAIMED)
		ck_assert(l->reason[0] != '\0');
	return 0;
}

static struct lines
test_all(const struct device_ops *ops)
{
	struct device *d = open_device(ops, 1);
	const struct device_conf dc = conf_of("s");
	struct lines all = { 0 };
	struct err e = { 0 };
	uint64_t used = ledger.used_bytes;

	t_ok(selftest_all(ops, d, &dc, count_line, &all, &e), &e);
	ck_assert_uint_eq(ledger.used_bytes, used);
	close_device(ops, d);
	return all;
}

START_TEST(the_long_form_tests_every_operation_and_type)
{
	struct lines all = test_all(&device_cpu);
	struct kernels k;
	uint32_t t, ntypes = 0, kind;

	kernels_init(&k, cpu_flags());
	for (t = 0; t < QUANT_NTYPES; t++)
		ntypes += k.mat[t].name != NULL;
	for (kind = 0; kind < OP_NKINDS; kind++)
		ck_assert_uint_eq(all.right[kind], kind == OP_GET_ROWS ||
		    op_is_matmul(kind) ? ntypes : kind == OP_KV_STORE ||
		    kind == OP_ATTENTION ? KV_NTYPES : 1);
	ck_assert_uint_eq(all.of[SELFTEST_OK], all.n);
	if (!has_hexagon())
		return;
	all = test_all(&device_hexagon);
	ck_assert_msg(all.wrong[0] == '\0', "%s", all.wrong);
	ck_assert_uint_gt(all.of[SELFTEST_UNCLAIMED], 0);
	for (kind = 0; kind < OP_NKINDS; kind++)
		ck_assert(all.right[kind] > 0 || kind == OP_GET_ROWS ||
		    kind == OP_ROPE_TABLE);
}
END_TEST

/* Zeros from one kind of operation; the number is that of a dense layer. */
static int
run_without_rope(struct device *d, uint32_t handle, const struct batch *b,
    struct err *reterr)
{
	const struct faulty_span *f = &faulty_span[handle];

	fault_op = f->s.first;
	while (fault_op < f->s.end && f->p->op[fault_op].kind != OP_ROPE)
		fault_op++;
	if (f->s.end == f->s.first + 1 && fault_op < f->s.end)
		return 0;
	return device_cpu.run(d, f->whole, b, reterr);
}

START_TEST(the_long_form_names_only_what_is_wrong)
{
	struct device_ops odd = faulty_device(FAULT_NONE);
	struct lines all;

	odd.run = run_without_rope;
	all = test_all(&odd);
	ck_assert_str_eq(all.wrong, " rope ,");
	odd = faulty_device(FAULT_ZEROS);
	all = test_all(&odd);
	ck_assert_ptr_nonnull(strstr(all.wrong, " layer ,"));
	ck_assert_ptr_nonnull(strstr(all.wrong, " matmul Q4_K,"));
	ck_assert_ptr_null(strstr(all.wrong, "rms_norm"));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_known_result_is_that_of_the_reference,
		right_devices_pass_and_are_as_after_open,
		a_device_that_computes_nothing_on_purpose_is_not_tested,
		wrong_devices_end_their_session_by_name,
		a_wrong_device_that_cannot_be_reset_is_named_too,
		an_operation_left_out_or_off_by_a_factor_is_named,
		a_failure_of_the_device_is_passed_on,
		memory_that_the_host_cannot_reach,
		the_long_form_tests_every_operation_and_type,
		the_long_form_names_only_what_is_wrong
	};

	return t_main("selftest", 120, tests, NITEMS(tests));
}
