/* tests/unit/ascend_choose.c - tests of the trial on the stand-in for CANN that chooses
 * a way to multiply. */
#include "tests/support/ascend.h"

#include <stdio.h>
#include <string.h>

#include "worker/ascend/trial.h"

#define WAIT_NS	UINT64_C(300000000000)

static struct acl_session s;
static struct acl_choice choice;

static struct {
	enum acl_way way;
	enum acl_nz nz;
	unsigned nclasses, cut_k, c_type, groups;
	const char *groups_reason;
	const char *reason;		/* has this; NULL = there is none */
} want;

static void
check_choice(void)
{
	const struct acl_form *f = &choice.form[ASCEND_HALF];
	struct ascend_standin_counts c;
	char groups_reason[ACL_REASON];
	struct acl_notes notes = { 0 };

	as_open(&s);
	choice = (struct acl_choice){ .magic = ACL_CHOICE,
	    .chip = { .has_memory = !s.machine.is_rc } };
	ck_assert_int_eq(acl_choose(&s, &notes, &choice, groups_reason), 0);
	ck_assert_uint_eq(notes.trying, 0);
	ck_assert_msg(f->way == want.way, "%s, not %s: %s",
	    acl_way_name(f->way), acl_way_name(want.way), choice.reason);
	if (want.reason != NULL)
		HAS(choice.reason, want.reason);
	else
		ck_assert_str_eq(choice.reason, "");
	if (want.way != ACL_WAY_NONE) {
		ck_assert_uint_eq(f->nz, want.nz);
		ck_assert_uint_eq(f->nclasses, want.nclasses);
		ck_assert_uint_eq(choice.chip.cut_k, want.cut_k);
		ck_assert_uint_eq(f->c_type, want.c_type);
		ck_assert_msg(choice.chip.groups == want.groups, "groups %u: "
		    "%s", choice.chip.groups, groups_reason);
		if (want.groups_reason != NULL)
			HAS(groups_reason, want.groups_reason);
		else
			ck_assert_str_eq(groups_reason, "");
	}
	c = as_counts();
	ck_assert_uint_eq(c.device_bytes, 0);
	as_close(&s);
}

/* "way, classes, cut, type" of an answer. */
#define CHOOSES(switches, way_, classes, cut, type, why) do {		\
	want.way = (way_);						\
	want.nclasses = (classes);					\
	want.cut_k = (cut);						\
	want.c_type = (type);						\
	want.reason = (why);						\
	want.groups = (cut) ? 0 : groups_;				\
	want.groups_reason = (cut) ? "K is in segments" : groups_reason_; \
	as_run_bare((switches), AS_OLD, check_choice);			\
} while (0)

START_TEST(the_first_way_that_is_right_is_chosen)
{
	const char *groups_reason_ = NULL;
	unsigned groups_ = 3;

	CHOOSES("", ACL_WAY_MM, 3, 0, ACL_FLOAT, NULL);
	CHOOSES("soc=310B", ACL_WAY_MM, 3, 1, ACL_FLOAT, NULL);
	CHOOSES("missing=Mm", ACL_WAY_MATMUL, 3, 0, ACL_FLOAT,
	    "aclnnMm is not in this CANN");
	CHOOSES("fail=Mm:161002", ACL_WAY_MATMUL, 3, 0, ACL_FLOAT, "161002");
	CHOOSES("fail=Mm:361001+Matmul:561103", ACL_WAY_BATCH_MATMUL, 3, 0,
	    ACL_FLOAT, "361001");
	CHOOSES("late=Mm:507018+Matmul:507015", ACL_WAY_BATCH_MATMUL, 3, 0,
	    ACL_FLOAT, "507018");
	CHOOSES("wrong=Mm", ACL_WAY_MATMUL, 3, 0, ACL_FLOAT, "instead of");
	groups_ = 2;
	groups_reason_ = "161002";
	CHOOSES("offsets=0", ACL_WAY_MM, 3, 0, ACL_FLOAT, NULL);
	groups_ = 0;
	groups_reason_ = "WeightQuantBatchMatmulV2";
	CHOOSES("zero=Mm+Matmul+BatchMatMul+WeightQuantBatchMatmulV2",
	    ACL_WAY_CONVOLUTION, 3, 0, ACL_FLOAT, "instead of");
	groups_reason_ = "361001";
	CHOOSES("soc=310B,ops=docs", ACL_WAY_CONVOLUTION, 3, 0, ACL_FLOAT,
	    "361001");
	groups_reason_ = "is not in this CANN";
	CHOOSES("soc=310B,ops=docs,as=missing", ACL_WAY_CONVOLUTION, 3, 0,
	    ACL_FLOAT, "is not in this CANN");
	CHOOSES("soc=310B,ops=classic", ACL_WAY_CLASSIC, 3, 1, ACL_FLOAT,
	    "361001");
	groups_reason_ = "500002";
	CHOOSES("soc=310B,quirks=0,ops=classic,as=500002", ACL_WAY_CLASSIC, 3,
	    0, ACL_FLOAT, "500002");
	groups_reason_ = "is not in this CANN";
	CHOOSES("ops=classic,as=missing", ACL_WAY_CLASSIC, 3, 0, ACL_FLOAT,
	    "is not in this CANN");
	groups_reason_ = "361001";
	/* A board as the documents have it, whatever others report. */
	groups_reason_ = "361001";
	CHOOSES("soc=310B,ops=docs,as=507018", ACL_WAY_CONVOLUTION, 3, 0,
	    ACL_FLOAT, "507018");
}
END_TEST

/* Row-major matrices are refused. */
#define NZ_ONLY	"nd=0,missing=Convolution+aclopCompile,"

START_TEST(fractal_nz_is_chosen_where_nothing_else_is_right)
{
	const char *groups_reason_ = NULL;
	unsigned groups_ = 3;

	want.nz = ACL_NZ_BY_LIBRARY;
	CHOOSES(NZ_ONLY, ACL_WAY_MM, 3, 0, ACL_FLOAT, "561103");
	CHOOSES(NZ_ONLY "wrong=Mm", ACL_WAY_MATMUL, 3, 0, ACL_FLOAT, "561103");
	want.nz = ACL_NZ_BY_US;
	CHOOSES(NZ_ONLY "fail=TransMatmulWeight:561103", ACL_WAY_MM, 3, 0,
	    ACL_FLOAT, "561103");
	/* The library's matrix is wrong. */
	CHOOSES(NZ_ONLY "zero=TransMatmulWeight", ACL_WAY_MM, 3, 0, ACL_FLOAT,
	    "561103");
	CHOOSES(NZ_ONLY "soc=310B", ACL_WAY_MM, 3, 1, ACL_FLOAT, "561103");
	want.nz = ACL_ND;
	CHOOSES(NZ_ONLY "nz=0", ACL_WAY_NONE, 0, 0, 0, "561103");
}
END_TEST

START_TEST(no_way_is_chosen_where_none_is_right)
{
	const char *groups_reason_ = NULL;
	unsigned groups_ = 0;

	CHOOSES("soc=310B,ops=none", ACL_WAY_NONE, 0, 0, 0, "361001");
	CHOOSES("soc=310B,ops=none,as=561103", ACL_WAY_NONE, 0, 0, 0,
	    "561103");
	CHOOSES("soc=310B,ops=none,as=507018", ACL_WAY_NONE, 0, 0, 0,
	    "507018");
	CHOOSES("ops=classic,wrong=MatMulV2", ACL_WAY_NONE, 0, 0, 0, "361001");
	CHOOSES("ops=classic,late=MatMulV2:507018", ACL_WAY_NONE, 0, 0, 0,
	    "361001");
	CHOOSES("ops=classic,missing=aclopCompile", ACL_WAY_NONE, 0, 0, 0,
	    "361001");
	CHOOSES("ops=classic,fail=aclopExecWithHandle:100025", ACL_WAY_NONE, 0,
	    0, 0, "361001");
	CHOOSES("wrong=all", ACL_WAY_NONE, 0, 0, 0, "instead of");
	CHOOSES("zero=all", ACL_WAY_NONE, 0, 0, 0, "instead of");
}
END_TEST

static void
measure_workspace(void)
{
	struct acl_notes notes = { 0 };
	char unused[ACL_REASON];

	as_open(&s);
	choice = (struct acl_choice){ .magic = ACL_CHOICE,
	    .chip = { .has_memory = !s.machine.is_rc } };
	ck_assert_int_eq(acl_choose(&s, &notes, &choice, unused), 0);
	/* The constant part is more than the library's. */
	ck_assert_uint_le(choice.chip.workspace_percent, 130);
	ck_assert_uint_ge(choice.chip.workspace_percent, 110);
	ck_assert_uint_ge(choice.chip.workspace_bytes, 4096);
	as_close(&s);
}

START_TEST(workspace_grows_with_the_matrix)
{
	as_run_bare("workspace-percent=130", AS_OLD, measure_workspace);
	as_run_bare("soc=310B,workspace-percent=130", AS_OLD,
	    measure_workspace);
}
END_TEST

/* As the probe does it. */
static int
choose_alone(void *arg, struct acl_notes *notes, void *ret, struct err *reterr)
{
	char groups_reason[ACL_REASON];
	int rc;

	(void)reterr;
	as_open(&s);
	choice = (struct acl_choice){ .magic = ACL_CHOICE,
	    .chip = { .has_memory = !s.machine.is_rc } };
	rc = acl_choose(&s, notes, &choice, groups_reason);
	acl_session_close(&s);
	memcpy(ret, &choice, sizeof(choice));
	snprintf(arg, ACL_REASON, "%s", groups_reason);
	return rc;
}

static void
choose_in_processes(void)
{
	char unused[ACL_REASON];
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", choose_alone, unused, WAIT_NS, WAIT_NS,
	    &choice, sizeof(choice), &e), &e);
	ck_assert_msg(choice.form[ASCEND_HALF].way == ACL_WAY_BATCH_MATMUL,
	    "%s", choice.reason);
	HAS(choice.reason, "aclnnMm ends its process");
	ck_assert_uint_eq(choice.chip.groups, 0);
}

/* A compilation ends its process, or never returns. */
static void
choose_without_compiler(void)
{
	char unused[ACL_REASON];
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", choose_alone, unused, WAIT_NS / 150, WAIT_NS,
	    &choice, sizeof(choice), &e), &e);
	ck_assert_uint_eq(choice.form[ASCEND_HALF].way, ACL_WAY_NONE);
}

START_TEST(a_way_that_ends_its_process_is_left_out)
{
	as_run_bare("ops=classic,abort=aclopCompile@2", AS_OLD,
	    choose_without_compiler);
	as_run_bare("ops=classic,hang=aclopCompile@2", AS_OLD,
	    choose_without_compiler);
	as_run_bare("abort=Mm+aclnnMatmul+WeightQuantBatchMatmulV2", AS_OLD,
	    choose_in_processes);
}
END_TEST

static void
choose_without_conversion(void)
{
	char unused[ACL_REASON];
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", choose_alone, unused, WAIT_NS, WAIT_NS,
	    &choice, sizeof(choice), &e), &e);
	ck_assert_uint_eq(choice.form[ASCEND_HALF].way, ACL_WAY_MM);
	ck_assert_uint_eq(choice.form[ASCEND_HALF].nz, ACL_NZ_BY_US);
}

START_TEST(a_conversion_that_ends_its_process_is_left_out)
{
	as_run_bare(NZ_ONLY "abort=TransMatmulWeight", AS_OLD,
	    choose_without_conversion);
}
END_TEST

/* Mm works, but not for large matrices, whose workspace is asked last. */
static void
choose_for_large(void)
{
	char unused[ACL_REASON];
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", choose_alone, unused, WAIT_NS, WAIT_NS,
	    &choice, sizeof(choice), &e), &e);
	ck_assert_msg(choice.form[ASCEND_HALF].way == ACL_WAY_MATMUL, "%s",
	    choice.reason);
	HAS(choice.reason, "aclnnMm ends its process");
}

START_TEST(a_way_that_ends_its_process_late_is_left_out)
{
	as_run_bare("abort=Mm@7", AS_OLD, choose_for_large);
}
END_TEST

/* Products of 8-bit integers have 6 shapes. */
static void
choose_for_bytes(void)
{
	char why[ACL_REASON];
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", choose_alone, why, WAIT_NS, WAIT_NS,
	    &choice, sizeof(choice), &e), &e);
	ck_assert_uint_eq(choice.form[ASCEND_HALF].way, ACL_WAY_MM);
	ck_assert_uint_eq(choice.chip.groups, ASCEND_INT8);
}

START_TEST(integers_of_4_bits_do_not_take_those_of_8_along)
{
	char switches[512];

	snprintf(switches, sizeof(switches),
	    "abort=WeightQuantBatchMatmulV2@7,once=%s/once", t_tmpdir());
	as_run_bare(switches, AS_OLD, choose_for_bytes);
}
END_TEST

/* Where results depend on the number of rows, all products have one. */
START_TEST(rows_that_depend_on_others_go_in_blocks)
{
	const char *groups_reason_ = "depends on other rows";
	unsigned groups_ = 3;

	CHOOSES("company=rows", ACL_WAY_MM, 1, 0, ACL_FLOAT,
	    "depends on other rows");
	groups_ = 0;
	groups_reason_ = "361001";
	CHOOSES("company=rows,ops=classic", ACL_WAY_CLASSIC, 1, 0, ACL_FLOAT,
	    "361001");
	CHOOSES("company=place", ACL_WAY_NONE, 0, 0, 0,
	    "depends on other rows");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_first_way_that_is_right_is_chosen,
		fractal_nz_is_chosen_where_nothing_else_is_right,
		no_way_is_chosen_where_none_is_right,
		workspace_grows_with_the_matrix,
		a_way_that_ends_its_process_is_left_out,
		a_conversion_that_ends_its_process_is_left_out,
		a_way_that_ends_its_process_late_is_left_out,
		integers_of_4_bits_do_not_take_those_of_8_along,
		rows_that_depend_on_others_go_in_blocks,
	};

	return t_main("ascend_choose", 60, tests, NITEMS(tests));
}
