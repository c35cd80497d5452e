/* tests/unit/ascend_verdict.c - what an earlier probe tried, which may be of another
 * machine, or anything. */
#include "tests/support/ascend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "worker/ascend/graph.h"
#include "worker/ascend/verdict.h"

static struct acl_session s;
static char key[DEVICE_KEY_BYTES], why[160], groups_reason[ACL_REASON];

static void
begin(void)
{
	struct err e = { 0 };

	t_ok(acl_session_open("npu0", 0, &s, &e), &e);
	acl_verdict_key(&s, t_tmpdir(), key);
	ck_assert_uint_gt(strlen(key), 0);
}

static struct acl_choice
some_choice(void)
{
	struct acl_choice c = { .magic = ACL_CHOICE, .chip = { .groups = 1,
	    .workspace_bytes = 2 * MIB, .workspace_percent = 130 },
	    .reason = "a reason" };

	c.form[ASCEND_HALF] = (struct acl_form){ ACL_WAY_MATMUL, ACL_FLOAT, 3,
	    0, { 1, 8, ASCEND_ROWS } };
	c.form[ASCEND_INT8] = (struct acl_form){ ACL_WAY_GROUPS, ACL_FLOAT16,
	    1, 0, { ASCEND_FEW_ROWS } };
	c.fn[ACL_FN_NORM] = acl_fn_pack(ACL_FN_RIGHT, 0);
	c.fn[ACL_FN_SILU] = acl_fn_pack(ACL_FN_REFUSED, 561103);
	return c;
}

static int
take(const struct acl_choice *c, struct acl_choice *ret)
{
	struct device_verdict v;

	acl_verdict_fill(c, "another", key, &v);
	why[0] = '\0';
	return acl_verdict_take(&v, key, &s, ret, groups_reason, why,
	    sizeof(why));
}

/* --- what is taken --- */

static void
take_own(void)
{
	struct acl_choice want = some_choice(), got = { .strategy =
	    ACL_POOL_SLOTS, .chip = { .has_slots = 1, .granule_bytes = 7 } };

	begin();
	want.chip.fns = ASCEND_FN_ALL;
	want.unfit = (struct acl_unfit){ .n = 1, .shape = { { .n = 1 } } };
	ck_assert_int_eq(take(&want, &got), 1);
	ck_assert_mem_eq(got.form, want.form, sizeof(got.form));
	ck_assert_mem_eq(got.fn, want.fn, sizeof(got.fn));
	ck_assert_uint_eq(got.chip.workspace_bytes, 2 * MIB);
	ck_assert_uint_eq(got.chip.workspace_percent, 130);
	ck_assert_uint_eq(got.chip.groups, 1);
	ck_assert_str_eq(got.reason, "a reason");
	ck_assert_str_eq(groups_reason, "another");
	/* The rest is this probe's. */
	ck_assert_uint_eq(got.chip.fns, 0);
	ck_assert_uint_eq(got.unfit.n, 0);
	ck_assert_uint_eq(got.strategy, ACL_POOL_SLOTS);
	ck_assert_uint_eq(got.chip.has_slots, 1);
	ck_assert_uint_eq(got.chip.granule_bytes, 7);
	acl_session_close(&s);
}

START_TEST(the_ways_are_taken_and_nothing_else)
{
	as_run_bare("", AS_OLD, take_own);
}
END_TEST

static void
take_shapes(void)
{
	const struct acl_choice c = some_choice();
	struct acl_choice choice = { 0 };
	struct acl_shapes want = { .n = 2, .shape = {
	    { ASCEND_INT8, 4096, 14336, acl_fn_pack(ACL_FN_COMPANY, 0) },
	    { ACL_SHAPE_NORM, 4096, 0, acl_fn_pack(ACL_FN_RIGHT, 0) } } }, got;
	struct device_verdict v;

	begin();
	acl_verdict_fill(&c, "", key, &v);
	acl_verdict_shapes(&v, &got);
	ck_assert_uint_eq(got.n, 0);
	acl_verdict_put_shapes(&v, &want, &c);
	acl_verdict_shapes(&v, &got);
	ck_assert_mem_eq(&got, &want, sizeof(got));
	ck_assert_int_eq(acl_verdict_take(&v, key, &s, &choice, groups_reason,
	    why, sizeof(why)), 1);
	v.key[0] = '\0';			/* nothing is kept */
	acl_verdict_shapes(&v, &got);
	ck_assert_uint_eq(got.n, 0);
	strlcpy(v.key, key, sizeof(v.key));
	want.n = ACL_MOST_SHAPES + 1;
	acl_verdict_put_shapes(&v, &want, &c);
	acl_verdict_shapes(&v, &got);
	ck_assert_uint_eq(got.n, 0);
	ck_assert_int_eq(acl_verdict_take(&v, key, &s, &choice, groups_reason,
	    why, sizeof(why)), 0);
	ck_assert_str_eq(why, "it is out of bounds");
	acl_session_close(&s);
}

START_TEST(shapes_of_models_are_kept_beside_the_ways)
{
	as_run_bare("", AS_OLD, take_shapes);
}
END_TEST

static void
refuse_missing(void)
{
	struct acl_choice want = some_choice(), got = { 0 };

	begin();
	ck_assert_int_eq(take(&want, &got), 0);
	ck_assert_str_eq(why, "aclnnRmsNorm is not in this CANN");
	acl_session_close(&s);
}

static void
refuse_missing_ways(void)
{
	static const struct acl_shape_way gone[] = {
		{ .n = 64, .k = 32, .way = ACL_WAY_CONVOLUTION },
		{ .n = 64, .k = 32, .way = ACL_WAY_MM,
		    .twin = { 0, ACL_WAY_CONVOLUTION } },
		{ .n = 64, .k = 32, .way = ACL_WAY_MM,
		    .nz = ACL_NZ_BY_LIBRARY },
	};
	struct acl_choice want = some_choice(), got = { 0 };
	unsigned i;

	begin();
	want.nshapes = 1;
	for (i = 0; i < NITEMS(gone); i++) {
		want.shape[0] = gone[i];
		ck_assert_int_eq(take(&want, &got), 0);
		ck_assert_str_eq(why, i < 2 ?
		    "aclnnConvolution is not in this CANN" :
		    "aclnnMm is not in this CANN");
	}
	acl_session_close(&s);
}

START_TEST(an_operator_that_is_gone_is_not_taken)
{
	as_run_bare("missing=RmsNorm", AS_OLD, refuse_missing);
	as_run_bare("missing=Convolution+TransMatmulWeight", AS_OLD,
	    refuse_missing_ways);
}
END_TEST

#define REFUSED(change)	do {						\
	struct acl_choice c = some_choice(), before = { .strategy = 1 },\
	    got = before;						\
									\
	change;								\
	ck_assert_msg(!take(&c, &got), #change);			\
	ck_assert_str_eq(why, "it is out of bounds");			\
	ck_assert_mem_eq(&got, &before, sizeof(got));			\
} while (0)

static const struct acl_shape_way a_shape = { .n = 64, .k = 32,
    .way = ACL_WAY_MM };

static void
refuse_unsound(void)
{
	begin();
	REFUSED(c.magic++);
	REFUSED(c.form[ASCEND_HALF].way = ACL_NWAYS);
	REFUSED(c.form[ASCEND_HALF].way = ACL_WAY_NONE);
	REFUSED(c.form[ASCEND_HALF].way = ACL_WAY_GROUPS);
	REFUSED(c.form[ASCEND_INT8].way = ACL_WAY_MM);
	REFUSED(c.form[ASCEND_INT8].way = ACL_WAY_NONE);
	REFUSED(c.form[ASCEND_HALF].c_type = 77);
	REFUSED(c.form[ASCEND_HALF].nclasses = 0);
	REFUSED(c.form[ASCEND_HALF].nclasses = ACL_CLASSES + 1);
	REFUSED(c.form[ASCEND_HALF].rows[0] = 0);
	REFUSED(c.form[ASCEND_INT8].rows[0] = ASCEND_ROWS);
	REFUSED(c.form[ASCEND_HALF].rows[2] = 2 * ASCEND_ROWS);
	REFUSED(c.form[ASCEND_HALF].rows[1] = 1);
	REFUSED(c.form[ASCEND_HALF].rows[1] = 7);
	REFUSED(c.chip.groups = 2);
	REFUSED(c.chip.groups = ASCEND_FORMATS);
	REFUSED(c.chip.cut_k = 2);
	REFUSED(c.chip.fns = ASCEND_FN_ALL + 1);
	REFUSED(c.fn[ACL_FN_ADD] = acl_fn_pack(ACL_FN_OUTCOMES, 0));
	REFUSED(c.graph_why = ACL_GRAPH_WHYS - 1);
	REFUSED(c.graph_why = INT32_MIN);
	REFUSED(c.graph_fns_why = ACL_GRAPH_WHYS - 1);
	REFUSED(c.graphs = ACL_GRAPH_BITS);
#define SHAPE(change)	REFUSED(c.nshapes = 1; c.shape[0] = a_shape;	\
	c.shape[0].change)
	REFUSED(c.nshapes = ACL_SHAPE_WAYS + 1);
	SHAPE(n = 0);
	SHAPE(k = 31);
	SHAPE(format = ASCEND_INT8);
	SHAPE(format = 0xff);
	SHAPE(way = ACL_WAY_NONE);
	SHAPE(way = ACL_WAY_CLASSIC);
	SHAPE(way = ACL_NWAYS);
	SHAPE(nz = ACL_NZ_KINDS);
	SHAPE(way = ACL_WAY_CONVOLUTION; c.shape[0].nz = ACL_NZ_BY_US);
	SHAPE(twin[2] = ACL_WAY_GROUPS);
	SHAPE(nz = ACL_NZ_BY_US; c.shape[0].twin[0] = ACL_WAY_CONVOLUTION);
	REFUSED(c.unfit.n = ACL_MOST_UNFIT + 1);
	REFUSED(c.unfit.kinds = UINT8_MAX);
	REFUSED(c.chip.workspace_bytes = UINT64_MAX);
	REFUSED(c.chip.workspace_percent = ASCEND_MOST_PERCENT + 1);
	acl_session_close(&s);
}

START_TEST(a_verdict_out_of_bounds_is_refused)
{
	as_run_bare("", AS_OLD, refuse_unsound);
}
END_TEST

/* Whatever is taken is in bounds: an operator that is there, rows that fit. */
static void
take_noise(void)
{
	const struct acl_choice c = some_choice();
	struct device_verdict v, noisy;
	struct acl_choice got;
	unsigned i, j, f, n;

	begin();
	acl_verdict_fill(&c, "", key, &v);
	for (i = 0; i < 20000; i++) {
		noisy = v;
		for (n = 1 + (unsigned)t_rand_below(3); n > 0; n--)
			noisy.of_device[t_rand_below(sizeof(v.of_device))] =
			    (uint8_t)t_rand();
		memset(&got, 0, sizeof(got));
		if (!acl_verdict_take(&noisy, key, &s, &got,
		    groups_reason, why, sizeof(why)))
			continue;
		ck_assert_uint_lt(got.chip.groups, ASCEND_FORMATS);
		ck_assert_uint_lt(strlen(got.reason), ACL_REASON);
		ck_assert_uint_lt(strlen(groups_reason), ACL_REASON);
		for (f = 0; f < ASCEND_FORMATS; f++) {
			ck_assert_uint_lt(got.form[f].way, ACL_NWAYS);
			for (j = 0; got.form[f].way != ACL_WAY_NONE &&
			    j < got.form[f].nclasses; j++)
				ck_assert_uint_le(got.form[f].rows[j],
				    ASCEND_ROWS);
		}
	}
	acl_session_close(&s);
}

START_TEST(noise_stays_in_bounds)
{
	as_run_bare("", AS_OLD, take_noise);
}
END_TEST

/* --- the key --- */

static void
refuse_others(void)
{
	static const char *const lines[] = { "processor=", "executable=",
	    "interface=", "runtime=", "library of operators=", "driver=",
	    "mode=" };
	const struct acl_choice c = some_choice();
	struct acl_choice got = { 0 };
	struct device_verdict v;
	unsigned i;
	char *at;

	begin();
	for (i = 0; i < NITEMS(lines); i++) {
		acl_verdict_fill(&c, "", key, &v);
		at = strstr(v.key, lines[i]);
		ck_assert_msg(at != NULL, "%s in %s", lines[i], key);
		at[strlen(lines[i])] ^= 1;
		ck_assert_int_eq(acl_verdict_take(&v, key, &s, &got,
		    groups_reason, why, sizeof(why)), 0);
		HAS(why, lines[i]);
	}
	acl_verdict_fill(&c, "", "", &v);
	ck_assert_int_eq(acl_verdict_take(&v, key, &s, &got,
	    groups_reason, why, sizeof(why)), 0);
	acl_verdict_fill(&c, "", key, &v);
	strlcat(v.key, "x=y\n", sizeof(v.key));
	ck_assert_int_eq(acl_verdict_take(&v, key, &s, &got,
	    groups_reason, why, sizeof(why)), 0);
	acl_session_close(&s);
}

/* A board captures nothing, whatever a file says. */
static void
refuse_graphs(void)
{
	struct acl_choice c = some_choice(), got = { 0 };

	begin();
	c.chip.graph_bytes = 4096;
	ck_assert_int_eq(take(&c, &got), 0);
	HAS(why, "nothing is captured here");
	acl_session_close(&s);
}

START_TEST(graphs_of_a_board_are_refused)
{
	as_run_bare("soc=310B", AS_OLD, refuse_graphs);
}
END_TEST

START_TEST(a_verdict_of_another_machine_is_refused)
{
	as_run_bare("", AS_OLD, refuse_others);
}
END_TEST

/* An upgraded driver, or package of operators. */
static void
change_files(void)
{
	char before[DEVICE_KEY_BYTES];

	ck_assert_int_eq(setenv("ASCEND_OPP_PATH", t_tmpdir(), 1), 0);
	begin();
	HAS(key, "driver=none");
	strcpy(before, key);
	t_put_file(t_tmpdir(), "/usr/local/Ascend/driver/version.info",
	    "Version=1\n", 10);
	acl_verdict_key(&s, t_tmpdir(), key);
	ck_assert_str_ne(key, before);
	strcpy(before, key);
	t_put_file(t_tmpdir(), "/version.info", "Version=2\n", 10);
	acl_verdict_key(&s, t_tmpdir(), key);
	ck_assert_str_ne(key, before);
	strcpy(before, key);
	t_put_file(t_tmpdir(), "/built-in/op_impl/ai_core/tbe/kernel/config/"
	    "ascend910b/x.json", "", 0);
	acl_verdict_key(&s, t_tmpdir(), key);
	ck_assert_str_ne(key, before);
	acl_session_close(&s);
}

START_TEST(the_key_follows_driver_and_operators)
{
	as_run_bare("", AS_OLD, change_files);
}
END_TEST

/* A key that does not fit would be cut off where a difference may be. */
static void
make_long_key(void)
{
	struct err e = { 0 };
	char *text = calloc(1, DEVICE_KEY_BYTES);

	ck_assert_ptr_nonnull(text);
	memset(text, 'x', DEVICE_KEY_BYTES - 1);
	ck_assert_int_eq(setenv("ASCEND_CUSTOM_OPP_PATH", text, 1), 0);
	free(text);
	t_ok(acl_session_open("npu0", 0, &s, &e), &e);
	acl_verdict_key(&s, "", key);
	ck_assert_str_eq(key, "");
	acl_session_close(&s);
}

START_TEST(a_key_that_is_too_long_is_none)
{
	as_run_bare("", AS_OLD, make_long_key);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_ways_are_taken_and_nothing_else,
		shapes_of_models_are_kept_beside_the_ways,
		an_operator_that_is_gone_is_not_taken,
		a_verdict_out_of_bounds_is_refused,
		noise_stays_in_bounds,
		graphs_of_a_board_are_refused,
		a_verdict_of_another_machine_is_refused,
		the_key_follows_driver_and_operators,
		a_key_that_is_too_long_is_none,
	};

	return t_main("ascend_verdict", 60, tests, NITEMS(tests));
}
