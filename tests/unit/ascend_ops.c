/* tests/unit/ascend_ops.c - tests of operators on the stand-in for CANN that are no
 * products: calls, and the trial of each. */
#include "tests/support/ascend.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shm/event.h"
#include "worker/ascend/ascend.h"
#include "worker/ascend/ops_trial.h"

#define WAIT_NS	UINT64_C(300000000000)

static struct acl_session s;

/* --- calls --- */

START_TEST(rows_are_cut_into_classes)
{
	static const struct { uint32_t rows, calls, most; } want[] = {
		{ 1, 1, 1 }, { 2, 1, 8 }, { 8, 1, 8 }, { 9, 2, 9 },
		{ 63, 8, 64 }, { 64, 1, 64 }, { 65, 2, 65 }, { 72, 2, 72 },
		{ 128, 2, 128 },
	};
	uint32_t i, r, calls;

	for (i = 0; i < NITEMS(want); i++) {
		for (r = calls = 0; r < want[i].rows; calls++)
			r += acl_fn_rows(want[i].rows - r);
		ck_assert_uint_eq(calls, want[i].calls);
		ck_assert_uint_eq(r, want[i].most);
	}
}
END_TEST

static void
add_often(void)
{
	const struct acl_fn_shape shape = { .fn = ACL_FN_ADD, .rows = 8,
	    .cols = 32 };
	struct acl_fns f = { .s = &s };
	struct ascend_standin_counts before, after;
	struct as_tensor x, y, z;
	float vx[256], vy[256], got[256];
	struct err e = { 0 };
	int i;

	as_open(&s);
	x = as_matrix(ACL_FLOAT, 8, 32);
	y = as_matrix(ACL_FLOAT, 8, 32);
	z = as_matrix(ACL_FLOAT, 8, 32);
	as_fill(&x, vx);
	as_fill(&y, vy);
	ck_assert_int_eq(acl_fns_start(&f, &shape, (void *[ACL_FN_ARGS]){
	    x.data }, (void *[ACL_FN_ARGS]){ z.data }, NULL, &e), -EINVAL);
	t_ok(acl_fns_prepare(&f, &shape, NULL, &e), &e);
	before = as_counts();
	for (i = 0; i < 5; i++) {
		t_ok(acl_fns_prepare(&f, &shape, NULL, &e), &e);
		t_ok(acl_fns_start(&f, &shape, (void *[ACL_FN_ARGS]){ x.data,
		    i % 2 == 0 ? y.data : x.data }, (void *[ACL_FN_ARGS]){
		    z.data }, NULL, &e), &e);
		t_ok(acl_session_wait(&s, event_now_ns() + WAIT_NS, &e), &e);
		as_get(&z, got);
		ck_assert(got[255] == vx[255] + (i % 2 == 0 ? vy : vx)[255]);
	}
	after = as_counts();
	ck_assert_uint_eq(after.tensors, before.tensors);
	ck_assert_uint_eq(after.executors, before.executors);
	ck_assert_uint_eq(after.allocations, before.allocations);
	acl_fns_close(&f);
	as_free(&x);
	as_free(&y);
	as_free(&z);
	as_close(&s);
}

START_TEST(calls_are_made_once_where_they_can)
{
	as_run_bare("", AS_OLD, add_often);
	as_run_bare("soc=310B", AS_SPLIT, add_often);
	as_run_bare("fail=aclSetAclOpExecutorRepeatable:561000", AS_OLD,
	    add_often);
}
END_TEST

static void
refuse_workspace(void)
{
	const struct acl_fn_shape shape = { .fn = ACL_FN_NORM, .rows = 1,
	    .cols = 32, .eps = 1 };
	struct acl_fns f = { .s = &s, .workspace_most = 1 };
	struct err e = { 0 };
	int code = 0;

	as_open(&s);
	ck_assert_int_eq(acl_fns_prepare(&f, &shape, &code, &e), -ENOTSUP);
	ck_assert_msg(strstr(e.msg, "bytes of workspace, and 1 are") != NULL,
	    "%s", e.msg);
	f.workspace_most = 0;
	t_ok(acl_fns_prepare(&f, &shape, &code, &e), &e);
	ck_assert_uint_gt(f.workspace_need, 1);
	acl_fns_close(&f);
	as_close(&s);
}

START_TEST(workspace_beyond_the_plan_is_refused)
{
	as_run_bare("fn-workspace=64", AS_OLD, refuse_workspace);
}
END_TEST

/* --- the trial --- */

static uint32_t got[ACL_FNS];
static struct acl_notes notes;
static uint32_t segment;
static int at_end;

static void
try_all(void)
{
	struct ascend_standin_counts c;
	uint64_t workspace;

	as_open(&s);
	at_end = acl_try_fns(&s, &notes, 3, segment, got, &workspace);
	c = as_counts();
	if (at_end == 0)
		ck_assert_uint_eq(c.device_bytes, 0);
}

/* The trial's word on each operator; NULL = it is right. */
static const char *expected[ACL_FNS];

static void
check_all(void)
{
	char text[96];
	unsigned i;

	try_all();
	ck_assert_int_eq(at_end, 0);
	for (i = 0; i < ACL_FNS; i++) {
		acl_fn_text((enum acl_fn)i, got[i], text, sizeof(text));
		ck_assert_msg(expected[i] != NULL ? strstr(text,
		    expected[i]) != NULL : acl_fn_outcome(got[i]) ==
		    ACL_FN_RIGHT, "%s, not: %s", text, expected[i] != NULL ?
		    expected[i] : "is right");
	}
	as_close(&s);
}

#define FINDS(switches, ...) do {					\
	static const char *const want_[ACL_FNS] = { __VA_ARGS__ };	\
									\
	memcpy(expected, want_, sizeof(expected));			\
	as_run_bare((switches), AS_SPLIT, check_all);			\
} while (0)

START_TEST(operators_that_are_right_are_found)
{
	FINDS("", NULL);
	FINDS("rc=1", NULL);
	FINDS("fail=aclSetAclOpExecutorRepeatable:561000", NULL);
	FINDS("soc=310B", [ACL_FN_NORM] = "361001",
	    [ACL_FN_ADD_NORM] = "361001", [ACL_FN_SWIGLU] = "361001",
	    [ACL_FN_ROTATE] = "aclnnRotaryPositionEmbedding: failed with "
	    "361001, ACLNN_ERR_RUNTIME_ERROR");
}
END_TEST

START_TEST(operators_that_refuse_are_named_with_the_code)
{
	FINDS("fail=RmsNorm:561103+Cast:161002,missing=Silu+aclnnAdd",
	    [ACL_FN_NORM] = "aclnnRmsNorm: failed with 561103, ",
	    [ACL_FN_TO_HALF] = "161002", [ACL_FN_TO_FLOAT] = "161002",
	    [ACL_FN_SILU] = "aclnnSilu is not in this CANN",
	    [ACL_FN_ADD] = "is not in this CANN");
	/* A phase two that fails, and a task: the stream is made anew. */
	FINDS("fail=aclnnMul:507000,late=RmsNorm:507018+InplaceAdd:507015",
	    [ACL_FN_MUL] = "507000", [ACL_FN_SCALE] = "507000",
	    [ACL_FN_SCALE_ROWS] = "507000",
	    [ACL_FN_NORM] = "507018",
	    [ACL_FN_ADD_TO] = "aclnnInplaceAdd: failed with 507015");
}
END_TEST

START_TEST(operators_that_are_wrong_are_found)
{
	FINDS("wrong=RmsNorm+Cast+Silu,zero=SwiGlu+InplaceAdd",
	    [ACL_FN_NORM] = "wrong numbers", [ACL_FN_TO_HALF] = "wrong",
	    [ACL_FN_TO_FLOAT] = "wrong",
	    [ACL_FN_SILU] = "wrong", [ACL_FN_SWIGLU] = "wrong",
	    [ACL_FN_ADD_TO] = "wrong");
	FINDS("wrong=AddRmsNorm+Mul+Add+RotaryPositionEmbedding",
	    [ACL_FN_ADD_NORM] = "wrong", [ACL_FN_MUL] = "wrong",
	    [ACL_FN_SCALE] = "wrong", [ACL_FN_SCALE_ROWS] = "wrong",
	    [ACL_FN_ADD] = "wrong", [ACL_FN_ROTATE] = "wrong");
	/* The norm of a sum is not that of the sum that is rounded. */
	FINDS("wide-sums=1", [ACL_FN_ADD_NORM] = "wrong");
}
END_TEST

/* As a session does where K is in segments. */
START_TEST(rows_are_converted_in_pieces_where_k_has_segments)
{
	FINDS("shape=Cast:64:wrong", NULL);
	segment = 4096;
	FINDS("", NULL);
	/* Rows of 4160 are converted as 4096 columns and 64. */
	FINDS("shape=Cast:4096:wrong", [ACL_FN_TO_HALF] = "wrong");
	FINDS("shape=Cast:64:wrong", [ACL_FN_TO_HALF] = "wrong");
	segment = 0;
}
END_TEST

START_TEST(rows_that_depend_on_others_are_found)
{
	FINDS("company=rows", [ACL_FN_NORM] = "depends on other rows",
	    [ACL_FN_ADD_NORM] = "depends on other rows");
	FINDS("company=place", [ACL_FN_NORM] = "depends on other rows",
	    [ACL_FN_ADD_NORM] = "depends on other rows");
}
END_TEST

/* --- what devices prints --- */

static const char *const *listed;	/* parts of its text; NULL ends */

/* As the probe does it. */
static void
list_all(void)
{
	const struct device_conf dc = { .session = "npu0", .port = "" };
	static struct device_probe probe;
	char text[2 * sizeof(probe.check[0].text)] = "";
	struct err e = { 0 };
	unsigned i;

	t_ok(device_ascend.probe(&dc, &probe, &e), &e);
	for (i = 0; i < probe.nchecks; i++)
		if (strcmp(probe.check[i].what, "other operators") == 0) {
			strcat(text, probe.check[i].text);
			strcat(text, "|");
		}
	for (i = 0; listed[i] != NULL; i++)
		HAS(text, listed[i]);
}

#define LISTS(switches, ...) do {					\
	static const char *const list_[] = { __VA_ARGS__, NULL };	\
									\
	listed = list_;							\
	as_run_bare((switches), AS_OLD, list_all);			\
} while (0)

START_TEST(every_operator_is_listed_with_its_outcome)
{
	LISTS("", "right: RmsNorm, AddRmsNorm, SwiGlu, Silu, Mul, Mul by a "
	    "vector, Add, InplaceAdd, RotaryPositionEmbedding, Cast, Cast to "
	    "32 bits, Mul by a column|");
	LISTS("soc=310B,ops=all,company=rows,missing=Add,wrong=Silu,"
	    "fail=Cast:161002",
	    "right: SwiGlu, Mul, Mul by a vector, InplaceAdd, "
	    "RotaryPositionEmbedding, Mul by a column; not: RmsNorm (depends "
	    "on other rows), "
	    "AddRmsNorm (depends on other rows), Silu (wrong), Add (missing), "
	    "Cast (161002), Cast to 32 bits (161002)|");
	/* The board has segments, the card has none. */
	LISTS("soc=310B,ops=all,shape=Cast:64:wrong", "not: Cast (wrong)|");
	LISTS("shape=Cast:64:wrong", "Cast, Cast to 32 bits, Mul by a "
	    "column|");
}
END_TEST

/* More than a check has room for. */
START_TEST(a_long_list_of_operators_is_not_cut)
{
	struct acl_choice c = { 0 };
	struct device_probe probe = { 0 };
	char all[3 * sizeof(probe.check[0].text)], name[64];
	unsigned i;

	for (i = 0; i < ACL_FNS; i++)
		c.fn[i] = acl_fn_pack(ACL_FN_COMPANY, 0);
	acl_tell_operators(&c, &probe);
	ck_assert_uint_eq(probe.nchecks, 2);
	ck_assert(!probe.check[0].ok);
	snprintf(all, sizeof(all), "%s, %s,", probe.check[0].text,
	    probe.check[1].text);
	HAS(all, "right: none; not: ");
	for (i = 0; i < ACL_FNS; i++) {
		snprintf(name, sizeof(name), " %s (depends on other rows),",
		    acl_fn_name((enum acl_fn)i) + strlen("aclnn"));
		HAS(all, name);
	}
}
END_TEST

static int
try_alone(void *arg, struct acl_notes *n, void *ret, struct err *reterr)
{
	uint64_t workspace;
	int rc;

	(void)arg;
	(void)reterr;
	as_open(&s);
	rc = acl_try_fns(&s, n, 3, 0, ret, &workspace);
	acl_session_close(&s);
	return rc;
}

static void
try_in_processes(void)
{
	char text[96];
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", try_alone, NULL, WAIT_NS, WAIT_NS, got,
	    sizeof(got), &e), &e);
	acl_fn_text(ACL_FN_NORM, got[ACL_FN_NORM], text, sizeof(text));
	ck_assert_str_eq(text, "aclnnRmsNorm ends its process");
	ck_assert_int_eq(acl_fn_outcome(got[ACL_FN_ADD_NORM]), ACL_FN_ENDS);
	ck_assert_int_eq(acl_fn_outcome(got[ACL_FN_SILU]), ACL_FN_RIGHT);
}

START_TEST(an_operator_that_ends_its_process_is_left_out)
{
	as_run_bare("abort=RmsNorm+aclnnAddRmsNorm", AS_OLD, try_in_processes);
}
END_TEST

static void
have_no_time(void)
{
	notes = (struct acl_notes){ .is_late = 1 };
	try_all();
	ck_assert_int_eq(acl_fn_outcome(got[ACL_FN_NORM]), ACL_FN_UNTRIED);
	as_close(&s);
}

START_TEST(without_time_nothing_is_tried)
{
	as_run_bare("", AS_OLD, have_no_time);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		rows_are_cut_into_classes,
		calls_are_made_once_where_they_can,
		workspace_beyond_the_plan_is_refused,
		operators_that_are_right_are_found,
		operators_that_refuse_are_named_with_the_code,
		operators_that_are_wrong_are_found,
		rows_are_converted_in_pieces_where_k_has_segments,
		rows_that_depend_on_others_are_found,
		an_operator_that_ends_its_process_is_left_out,
		without_time_nothing_is_tried,
		every_operator_is_listed_with_its_outcome,
		a_long_list_of_operators_is_not_cut,
	};

	return t_main("ascend_ops", 60, tests, NITEMS(tests));
}
