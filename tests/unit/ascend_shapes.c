/* tests/unit/ascend_shapes.c - shapes of a model that an Ascend processor is tried
 * with: lists of them, and the trials, with the stand-in for CANN. */
#include "tests/support/ascend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "worker/ascend/shape_trial.h"
#include "worker/ascend/trial.h"
#include "worker/ascend/verdict.h"
#include "worker/device.h"

/* --- lists --- */

static struct acl_shape
shape(uint32_t kind, uint32_t n, enum acl_fn_outcome o)
{
	return (struct acl_shape){ kind, n, 64, acl_fn_pack(o, 0) };
}

START_TEST(a_full_list_drops_the_shape_that_was_not_used_longest)
{
	struct acl_shapes list = { 0 };
	struct acl_shape s;
	uint32_t i;

	for (i = 0; i < ACL_MOST_SHAPES; i++) {
		s = shape(ASCEND_HALF, 1 + i, ACL_FN_WRONG);
		acl_shapes_add(&list, &s);
	}
	ck_assert_int_eq(acl_shapes_are_sound(&list), 1);
	s = shape(ASCEND_HALF, 1, ACL_FN_UNTRIED);
	ck_assert_int_eq(acl_shapes_take(&list, &s), 1);
	ck_assert_int_eq(acl_fn_outcome(s.outcome), ACL_FN_WRONG);
	ck_assert_uint_eq(list.n, ACL_MOST_SHAPES);
	s = shape(ASCEND_INT8, 1, ACL_FN_RIGHT);
	ck_assert_int_eq(acl_shapes_take(&list, &s), 0);
	acl_shapes_add(&list, &s);
	ck_assert_uint_eq(list.n, ACL_MOST_SHAPES);
	ck_assert_int_eq(acl_shapes_are_sound(&list), 1);
	ck_assert_ptr_nonnull(acl_shapes_find(&list, ASCEND_HALF, 1, 64));
	ck_assert_ptr_nonnull(acl_shapes_find(&list, ASCEND_INT8, 1, 64));
	ck_assert_ptr_null(acl_shapes_find(&list, ASCEND_HALF, 2, 64));
	ck_assert_ptr_null(acl_shapes_find(&list, ASCEND_HALF, 3, 65));
}
END_TEST

START_TEST(lists_out_of_bounds_are_refused)
{
	struct acl_shapes list = { .n = 2, .shape = { shape(ASCEND_HALF, 1,
	    ACL_FN_RIGHT), shape(ACL_SHAPE_GATE, 1, ACL_FN_RIGHT) } }, bad;
	struct acl_unfit unfit = { .n = 1, .shape = { list.shape[0] } };

	ck_assert_int_eq(acl_shapes_are_sound(&list), 1);
	ck_assert_int_eq(acl_unfit_is_sound(&unfit), 1);
#define REFUSED(change)	do {						\
	bad = list;							\
	change;								\
	ck_assert_msg(!acl_shapes_are_sound(&bad), #change);		\
} while (0)
	REFUSED(bad.n = ACL_MOST_SHAPES + 1);
	REFUSED(bad.n = UINT32_MAX);
	REFUSED(bad.n = 3);
	REFUSED(bad.shape[1].kind = ACL_SHAPE_KINDS);
	REFUSED(bad.shape[1].n = 0);
	REFUSED(bad.shape[1].outcome = acl_fn_pack(ACL_FN_OUTCOMES, 0));
	REFUSED(bad.shape[1].kind = ASCEND_HALF);
	unfit.n = ACL_MOST_UNFIT + 1;
	ck_assert_int_eq(acl_unfit_is_sound(&unfit), 0);
	unfit.n = 1;
	unfit.kinds = 1 << ACL_SHAPE_KINDS;
	ck_assert_int_eq(acl_unfit_is_sound(&unfit), 0);
	unfit.kinds = 0;
	unfit.shape[0].kind = ACL_SHAPE_KINDS;
	ck_assert_int_eq(acl_unfit_is_sound(&unfit), 0);
}
END_TEST

START_TEST(a_kind_with_too_many_unfit_shapes_does_not_run)
{
	struct acl_unfit u = { 0 };
	struct acl_shape s;
	char why[128];
	uint32_t i;

	for (i = 0; i < ACL_MOST_UNFIT; i++) {
		s = shape(ASCEND_INT8, 1 + i, i % 2 ? ACL_FN_WRONG :
		    ACL_FN_COMPANY);
		acl_unfit_add(&u, &s);
	}
	s = shape(ASCEND_HALF, 1, ACL_FN_RIGHT);
	acl_unfit_add(&u, &s);
	s = shape(ASCEND_HALF, 2, ACL_FN_REFUSED);
	acl_unfit_add(&u, &s);
	s = shape(ASCEND_HALF, 3, ACL_FN_UNTRIED);
	acl_unfit_add(&u, &s);
	ck_assert_uint_eq(u.n, ACL_MOST_UNFIT);
	ck_assert_uint_eq(u.kinds, 0);
	ck_assert(acl_unfit_allows(&u, ASCEND_HALF, 1, 64, why, sizeof(why)));
	ck_assert(acl_unfit_allows(&u, ASCEND_INT8, 1, 65, why, sizeof(why)));
	ck_assert(!acl_unfit_allows(&u, ASCEND_INT8, 1, 64, why, sizeof(why)));
	ck_assert_str_eq(why, "a row depends on others in products of 1 x 64");
	ck_assert(!acl_unfit_allows(&u, ASCEND_INT8, 2, 64, why, sizeof(why)));
	ck_assert_str_eq(why, "products of 2 x 64 are wrong");
	s = shape(ASCEND_HALF, 9, ACL_FN_LATE);
	acl_unfit_add(&u, &s);
	ck_assert_uint_eq(u.n, ACL_MOST_UNFIT);
	ck_assert(acl_unfit_is_sound(&u));
	ck_assert(!acl_unfit_allows(&u, ASCEND_HALF, 1, 64, why, sizeof(why)));
	HAS(why, "too many products of this format");
	ck_assert(acl_unfit_allows(&u, ASCEND_INT8, 99, 64, why, sizeof(why)));
	ck_assert(acl_unfit_allows(&u, ACL_SHAPE_NORM, 1, 64, why,
	    sizeof(why)));
}
END_TEST

/* --- trials --- */

static struct acl_session s;
static struct acl_notes notes;
static struct acl_choice choice;
static struct acl_shapes known, got;

/* Shapes of no multiple of a tile: 24 x 4160 has segments of K, where these are. */
static const struct device_shapes want = {
	.nmatrices = 6, .nnorms = 1, .ngates = 1, .eps = 1e-6f,
	.matrix = {
		{ 136, 96, QUANT_F16 }, { 136, 96, QUANT_Q8_0 },
		{ 136, 96, QUANT_Q4_0 }, { 136, 96, QUANT_Q4_1 },
		{ 24, 4160, QUANT_F32 }, { 7, 24, QUANT_F16 },
	},
	.norm = { 320 }, .gate = { 640 },
};

static int
is_right(enum acl_fn fn)
{
	return acl_fn_outcome(choice.fn[fn]) == ACL_FN_RIGHT;
}

static void
begin(void)
{
	char reason[ACL_REASON];

	as_open(&s);
	choice = (struct acl_choice){ .magic = ACL_CHOICE,
	    .chip.has_memory = !s.machine.is_rc };
	ck_assert_int_eq(acl_choose(&s, &notes, &choice, reason), 0);
	ck_assert_int_ne(choice.form[ASCEND_HALF].way, ACL_WAY_NONE);
	if (is_right(ACL_FN_NORM) && is_right(ACL_FN_TO_HALF))
		choice.chip.fns = ASCEND_FN_NORMS;
	if (is_right(ACL_FN_SCALE) && is_right(ACL_FN_SILU) &&
	    is_right(ACL_FN_MUL))
		choice.chip.fns |= ASCEND_FN_SWIGLU;
	if ((choice.chip.fns & ASCEND_FN_NORMS) != 0 &&
	    is_right(ACL_FN_SCALE_ROWS) && is_right(ACL_FN_ADD))
		choice.chip.fns |= ASCEND_FN_ADDS | ASCEND_FN_ADD_NORMS;
	notes.trying = 0;
}

static void
try_model(void)
{
	ck_assert_int_eq(acl_try_model(&s, &notes, &choice, &want,
	    UINT64_MAX, &known, &got), 0);
	ck_assert_uint_eq(notes.trying, 0);
}

static enum acl_fn_outcome
outcome(uint32_t kind, uint32_t n, uint32_t k)
{
	const struct acl_shape *found = acl_shapes_find(&got, kind, n, k);

	ck_assert_msg(found != NULL, "kind %u, %u x %u", kind, n, k);
	return acl_fn_outcome(found->outcome);
}

/* All shapes that are the device's are right but one. */
static void
expect_all_but(uint32_t kind, uint32_t n, uint32_t k, enum acl_fn_outcome o)
{
	uint32_t i;

	for (i = 0; i < got.n; i++)
		ck_assert_msg(acl_fn_outcome(got.shape[i].outcome) ==
		    (got.shape[i].kind == kind && got.shape[i].n == n &&
		    got.shape[i].k == k ? o : ACL_FN_RIGHT),
		    "kind %u, %u x %u: %u", got.shape[i].kind, got.shape[i].n,
		    got.shape[i].k, acl_fn_outcome(got.shape[i].outcome));
	ck_assert_int_eq(outcome(kind, n, k), o);
}

static void
find_all_right(void)
{
	uint64_t products;

	begin();
	try_model();
	/* 7 x 24 is not the device's. */
	ck_assert_uint_eq(got.n, 2 + choice.chip.groups +
	    (choice.chip.fns & ASCEND_FN_NORMS ? 1 : 0) +
	    (choice.chip.fns & ASCEND_FN_SWIGLU ? 1 : 0) +
	    (choice.chip.fns & ASCEND_FN_ADDS ? 1 : 0));
	expect_all_but(ASCEND_HALF, 24, 4160, ACL_FN_RIGHT);
	ck_assert_uint_eq(known.n, got.n);
	ck_assert_mem_eq(known.shape, got.shape, got.n * sizeof(got.shape[0]));
	/* The second start tries nothing. */
	products = as_counts().tasks;
	try_model();
	ck_assert_uint_eq(as_counts().tasks, products);
	ck_assert_uint_eq(known.n, got.n);
	ck_assert_mem_eq(known.shape, got.shape, got.n * sizeof(got.shape[0]));
	as_close(&s);
}

START_TEST(shapes_are_tried_once_in_each_format)
{
	as_run_bare("", AS_OLD, find_all_right);
	as_run_bare("soc=310B", AS_OLD, find_all_right);
	as_run_bare("soc=310B,ops=all", AS_OLD, find_all_right);
}
END_TEST

START_TEST(shapes_are_tried_in_each_layout)
{
	as_run_bare("soc=310B,ops=all,quirks=0", AS_OLD, find_all_right);
	as_run_bare("nd=0", AS_SPLIT, find_all_right);
	as_run_bare("nd=0,missing=TransMatmulWeight", AS_OLD, find_all_right);
	as_run_bare("offsets=0,fail=Mm:561103", AS_SPLIT, find_all_right);
}
END_TEST

static void
find_wrong(void)
{
	begin();
	try_model();
	expect_all_but(ASCEND_HALF, 24, 4160, ACL_FN_WRONG);
	as_close(&s);
}

static void
find_wrong_norm(void)
{
	begin();
	try_model();
	expect_all_but(ACL_SHAPE_NORM, 320, 0, ACL_FN_WRONG);
	as_close(&s);
}

/* Conversions are of norms and of sums. */
static void
find_wrong_cast(void)
{
	begin();
	try_model();
	ck_assert_int_eq(outcome(ACL_SHAPE_NORM, 320, 0), ACL_FN_WRONG);
	ck_assert_int_eq(outcome(ACL_SHAPE_SUM, 320, 0), ACL_FN_WRONG);
	ck_assert_int_eq(outcome(ACL_SHAPE_GATE, 640, 0), ACL_FN_RIGHT);
	as_close(&s);
}

/* Where K has segments, rows of 4192 are converted as 4096 and 96. */
static void
find_wrong_piece(void)
{
	static const struct device_shapes wide = { .nnorms = 1,
	    .norm = { 4192 }, .eps = 1e-6f };

	begin();
	ck_assert_int_eq(acl_try_model(&s, &notes, &choice, &wide, UINT64_MAX,
	    &known, &got), 0);
	ck_assert_int_eq(outcome(ACL_SHAPE_NORM, 4192, 0), choice.chip.cut_k ?
	    ACL_FN_WRONG : ACL_FN_RIGHT);
	as_close(&s);
}

static void
find_wrong_sum(void)
{
	begin();
	try_model();
	expect_all_but(ACL_SHAPE_SUM, 320, 0, ACL_FN_WRONG);
	as_close(&s);
}

static void
find_wrong_gate(void)
{
	begin();
	try_model();
	expect_all_but(ACL_SHAPE_GATE, 640, 0, ACL_FN_WRONG);
	as_close(&s);
}

START_TEST(a_shape_that_is_wrong_is_found)
{
	as_run_bare("shape=product:24x4160:wrong", AS_OLD, find_wrong);
	as_run_bare("shape=RmsNorm:320:wrong", AS_OLD, find_wrong_norm);
	as_run_bare("shape=Cast:320:wrong", AS_OLD, find_wrong_cast);
	as_run_bare("soc=310B,ops=all,shape=Cast:96:wrong", AS_OLD,
	    find_wrong_piece);
	as_run_bare("shape=Cast:96:wrong", AS_OLD, find_wrong_piece);
	as_run_bare("shape=AddRmsNorm:320:wrong", AS_OLD, find_wrong_sum);
	as_run_bare("shape=Add:320:wrong", AS_OLD, find_wrong_sum);
	as_run_bare("shape=Silu:640:wrong", AS_OLD, find_wrong_gate);
}
END_TEST

static void
find_company(void)
{
	begin();
	try_model();
	expect_all_but(ASCEND_HALF, 24, 4160, ACL_FN_COMPANY);
	as_close(&s);
}

static void
find_company_of_integers(void)
{
	unsigned f;

	begin();
	ck_assert_uint_eq(choice.chip.groups, ASCEND_OFFSETS);
	try_model();
	for (f = 0; f < ASCEND_FORMATS; f++)
		ck_assert_int_eq(outcome(f, 136, 96), ACL_FN_COMPANY);
	ck_assert_int_eq(outcome(ASCEND_HALF, 24, 4160), ACL_FN_RIGHT);
	as_close(&s);
}

static void
find_company_of_norm(void)
{
	begin();
	try_model();
	expect_all_but(ACL_SHAPE_NORM, 320, 0, ACL_FN_COMPANY);
	as_close(&s);
}

START_TEST(a_row_that_depends_on_others_at_one_shape_is_found)
{
	as_run_bare("shape=product:24x4160:company", AS_OLD, find_company);
	as_run_bare("shape=product:136x96:company", AS_OLD,
	    find_company_of_integers);
	as_run_bare("shape=RmsNorm:320:company", AS_OLD,
	    find_company_of_norm);
}
END_TEST

static void
find_late(void)
{
	begin();
	try_model();
	expect_all_but(ASCEND_HALF, 24, 4160, ACL_FN_LATE);
	ck_assert_uint_eq(acl_shapes_find(&got, ASCEND_HALF, 24,
	    4160)->outcome & 0xffffff, 507018);
	as_close(&s);
}

static void
find_late_norm(void)
{
	begin();
	try_model();
	expect_all_but(ACL_SHAPE_NORM, 320, 0, ACL_FN_LATE);
	as_close(&s);
}

START_TEST(a_shape_that_fails_leaves_a_stream_for_the_others)
{
	as_run_bare("shape=product:24x4160:late", AS_OLD, find_late);
	as_run_bare("shape=RmsNorm:320:late", AS_OLD, find_late_norm);
}
END_TEST

/* The plan has no room for the workspace of these calls. */
static void
find_refused(void)
{
	struct acl_shape text;
	char why[128];

	begin();
	choice.chip.workspace_bytes = 1;
	choice.chip.workspace_percent = 0;
	try_model();
	ck_assert_int_eq(outcome(ASCEND_HALF, 136, 96), ACL_FN_REFUSED);
	ck_assert_int_eq(outcome(ACL_SHAPE_NORM, 320, 0), ACL_FN_REFUSED);
	text = *acl_shapes_find(&got, ASCEND_HALF, 136, 96);
	acl_shape_text(&text, why, sizeof(why));
	ck_assert_str_eq(why, "products of 136 x 96 are refused");
	ck_assert(!acl_outcome_is_unfit(ACL_FN_REFUSED));
	as_close(&s);
}

START_TEST(a_shape_that_needs_too_much_workspace_is_refused)
{
	as_run_bare("workspace-percent=130,fn-workspace=100", AS_OLD,
	    find_refused);
}
END_TEST

/* The process before this one ended with shape 4, and there is no time. */
static void
obey_notes(void)
{
	begin();
	notes.outcome[ACL_NOTE_SHAPE + 4] = ACL_ENDS;
	notes.outcome[ACL_NOTE_SHAPE + 6] = ACL_HANGS;
	try_model();
	ck_assert_int_eq(outcome(ASCEND_HALF, 24, 4160), ACL_FN_ENDS);
	ck_assert_int_eq(outcome(ACL_SHAPE_NORM, 320, 0), ACL_FN_HANGS);
	ck_assert_int_eq(outcome(ASCEND_HALF, 136, 96), ACL_FN_RIGHT);
	known.n = 0;
	notes.is_late = 1;
	try_model();
	ck_assert_int_eq(outcome(ASCEND_HALF, 24, 4160), ACL_FN_ENDS);
	ck_assert_int_eq(outcome(ASCEND_HALF, 136, 96), ACL_FN_UNTRIED);
	ck_assert_int_eq(outcome(ACL_SHAPE_GATE, 640, 0), ACL_FN_UNTRIED);
	/* They are tried by the next start. */
	ck_assert_uint_eq(known.n, 2);
	as_close(&s);
}

START_TEST(shapes_that_end_a_process_or_have_no_time_are_left_out)
{
	as_run_bare("", AS_OLD, obey_notes);
}
END_TEST

/* --- ways --- */

/* The matrices of 16-bit floats have this way, layout and way for one row. */
static void
expect_ways(enum acl_way way, enum acl_nz nz, enum acl_way alone)
{
	static const struct acl_matrix m[] = { { .n = 136, .k = 96 },
	    { .n = 24, .k = 4160 } };
	struct acl_choice before;
	struct acl_form f;
	uint64_t tasks;
	unsigned i;

	begin();
	try_model();
	for (i = 0; i < NITEMS(m); i++) {
		f = acl_form_of(&choice, &m[i]);
		ck_assert_msg(f.way == way && f.nz == nz, "%u x %u: %s, %u",
		    m[i].n, m[i].k, acl_way_name((enum acl_way)f.way), f.nz);
		ck_assert_str_eq(acl_way_name(acl_way_of(&choice, &m[i], 0)),
		    acl_way_name(alone));
		ck_assert_uint_eq(acl_way_of(&choice, &m[i], 1), way);
		ck_assert_uint_eq(acl_way_of(&choice, &m[i], 2), way);
	}
	ck_assert(acl_choice_is_sound(&choice));
	/* Both are known now. */
	before = choice;
	tasks = as_counts().tasks;
	try_model();
	ck_assert_mem_eq(&choice, &before, sizeof(choice));
	ck_assert_uint_eq(as_counts().tasks, tasks);
	as_close(&s);
}

static void
stay(void)
{
	expect_ways(ACL_WAY_MM, ACL_ND, ACL_WAY_MM);
}

static void
take_another(void)
{
	expect_ways(ACL_WAY_MATMUL, ACL_ND, ACL_WAY_MATMUL);
}

static void
take_layout(void)
{
	expect_ways(ACL_WAY_MM, ACL_NZ_BY_LIBRARY, ACL_WAY_MM);
}

static void
take_twin(void)
{
	expect_ways(ACL_WAY_MM, ACL_ND, ACL_WAY_BATCH_MATMUL);
}

/* A fast way that is wrong at one shape. */
static void
take_checked_one(void)
{
	begin();
	try_model();
	ck_assert_str_eq(acl_way_name((enum acl_way)acl_form_of(&choice,
	    &(struct acl_matrix){ .n = 136, .k = 96 }).way), "aclnnMatmul");
	ck_assert_str_eq(acl_way_name((enum acl_way)acl_form_of(&choice,
	    &(struct acl_matrix){ .n = 24, .k = 4160 }).way),
	    "aclnnBatchMatMul");
	as_close(&s);
}

/* The clock fails at one matrix. */
static void
stay_mostly(void)
{
	begin();
	try_model();
	expect_all_but(ASCEND_HALF, 24, 4160, ACL_FN_RIGHT);
	ck_assert_uint_eq(choice.nshapes, 1);
	as_close(&s);
}

static void
take_right_one(void)
{
	begin();
	try_model();
	expect_all_but(ASCEND_HALF, 24, 4160, ACL_FN_RIGHT);
	ck_assert_uint_eq(choice.nshapes, 1);
	ck_assert(choice.shape[0].n == 24 && choice.shape[0].way ==
	    ACL_WAY_MATMUL);
	as_close(&s);
}

START_TEST(the_fastest_way_is_chosen_for_each_shape)
{
	as_run_bare("", AS_OLD, stay);
	as_run_bare("slow=Mm:115", AS_OLD, stay);
	as_run_bare("slow=Mm:200", AS_OLD, take_another);
	as_run_bare("soc=310B,ops=all,quirks=0,slow=Mm:200", AS_OLD,
	    take_another);
	as_run_bare("slow=ND:200", AS_OLD, take_layout);
	as_run_bare("slow=Mm:400@1+Matmul:350@1", AS_OLD, take_twin);
	/* A way that is wrong at one shape is not lost at others. */
	as_run_bare("shape=Mm:24:wrong", AS_OLD, take_right_one);
	as_run_bare("slow=Mm:200,shape=Matmul:24:wrong", AS_OLD,
	    take_checked_one);
	/* Without a clock the first way stays. */
	as_run_bare("slow=Mm:200,fail=aclrtRecordEvent:207000@3", AS_OLD,
	    stay_mostly);
}
END_TEST

static void
leave_others_out(void)
{
	begin();
	notes.outcome[ACL_NOTE_OTHERS] = ACL_ENDS;
	try_model();
	ck_assert_uint_eq(choice.nshapes, 0);
	ck_assert_int_eq(outcome(ASCEND_HALF, 136, 96), ACL_FN_RIGHT);
	as_close(&s);
}

/* As many ways as there is room for; n of them of shapes that are known. */
static void
fill_list(uint32_t n)
{
	struct acl_shape known_one;
	uint32_t i;

	for (i = 0; i < ACL_SHAPE_WAYS; i++) {
		choice.shape[i] = (struct acl_shape_way){ .n = 16 * (i + 1),
		    .k = 16, .way = ACL_WAY_MATMUL };
		known_one = shape(ASCEND_HALF, 16 * (i + 1), ACL_FN_RIGHT);
		known_one.k = 16;
		if (i < n)
			acl_shapes_add(&known, &known_one);
	}
	choice.nshapes = ACL_SHAPE_WAYS;
}

static void
make_room(void)
{
	begin();
	fill_list(10);
	try_model();
	ck_assert_uint_eq(choice.nshapes, 12);
	ck_assert_uint_eq(known.n, 10 + got.n);
	as_close(&s);
}

/* A shape without a way of its own is what the first way makes of it. */
static void
find_no_room(void)
{
	struct acl_choice before;

	begin();
	fill_list(ACL_SHAPE_WAYS);
	before = choice;
	try_model();
	ck_assert_mem_eq(&choice, &before, sizeof(choice));
	expect_all_but(ASCEND_HALF, 24, 4160, ACL_FN_WRONG);
	as_close(&s);
}

START_TEST(other_ways_cost_no_shape)
{
	as_run_bare("slow=Mm:200", AS_OLD, leave_others_out);
	as_run_bare("slow=Mm:200", AS_OLD, make_room);
	as_run_bare("shape=Mm:24:wrong", AS_OLD, find_no_room);
}
END_TEST

/* Calls of 65520 columns and of 80. */
static void
try_parts(void)
{
	struct device_shapes large = { .nmatrices = 2, .matrix = {
	    { 65600, 16, QUANT_F16 }, { 16, 320, QUANT_F16 } } };

	begin();
	ck_assert_int_eq(acl_try_model(&s, &notes, &choice, &large,
	    UINT64_MAX, &known, &got), 0);
	ck_assert_int_eq(outcome(ASCEND_HALF, 65600, 16), ACL_FN_WRONG);
	ck_assert_int_eq(outcome(ASCEND_HALF, 16, 320), ACL_FN_RIGHT);
	as_close(&s);
}

START_TEST(each_part_of_many_columns_is_tried)
{
	as_run_bare("shape=Mm:80:wrong", AS_OLD, try_parts);
	as_run_bare("shape=Mm:65520:wrong", AS_OLD, try_parts);
}
END_TEST

/* --- two devices of a run --- */

static struct device_probe
probe(const char *port, const struct device_shapes *shapes,
    const struct device_verdict *verdict, int is_next)
{
	const struct device_conf dc = { .session = "npu0", .port = port,
	    .shapes = shapes, .verdict = verdict, .is_next = is_next };
	struct device_probe ret;
	struct err e = { 0 };

	t_ok(device_ascend.probe(&dc, &ret, &e), &e);
	ck_assert(ret.choice.is_made);
	return ret;
}

static void
probe_two(void)
{
	struct device_shapes some = want;
	struct device_probe first, second;

	some.nmatrices = 1;
	first = probe("", &some, NULL, 0);
	second = probe("1", &want, &first.verdict, 1);
	ck_assert_mem_eq(&second.choice, &first.choice, sizeof(first.choice));
	/* A later start tries the others. */
	second = probe("1", &want, &first.verdict, 0);
	ck_assert(memcmp(&second.choice, &first.choice,
	    sizeof(first.choice)) != 0);
}

START_TEST(the_second_device_tries_nothing_that_the_first_left)
{
	char switches[] = "soc=910B,slow=Mm:200";

	as_preload(switches, AS_OLD);
	probe_two();
}
END_TEST

static void
lack_memory(void)
{
	struct device_shapes large = { .nmatrices = 2, .matrix = {
	    { 4096, 4096, QUANT_F16 }, { 16, 320, QUANT_F16 } } };

	begin();
	ck_assert_int_eq(acl_try_model(&s, &notes, &choice, &large,
	    UINT64_MAX, &known, &got), 0);
	ck_assert_int_eq(outcome(ASCEND_HALF, 4096, 4096), ACL_FN_UNTRIED);
	ck_assert_int_eq(outcome(ASCEND_HALF, 16, 320), ACL_FN_RIGHT);
	ck_assert_uint_eq(known.n, 1);
	as_close(&s);
}

START_TEST(a_shape_without_memory_is_not_tried)
{
	as_run_bare("mem-bytes=30000000", AS_OLD, lack_memory);
}
END_TEST



int
main(void)
{
	const TTest *const tests[] = {
		a_full_list_drops_the_shape_that_was_not_used_longest,
		lists_out_of_bounds_are_refused,
		a_kind_with_too_many_unfit_shapes_does_not_run,
		shapes_are_tried_once_in_each_format,
		shapes_are_tried_in_each_layout,
		a_shape_that_is_wrong_is_found,
		a_row_that_depends_on_others_at_one_shape_is_found,
		a_shape_that_fails_leaves_a_stream_for_the_others,
		a_shape_that_needs_too_much_workspace_is_refused,
		shapes_that_end_a_process_or_have_no_time_are_left_out,
		a_shape_without_memory_is_not_tried,
		the_fastest_way_is_chosen_for_each_shape,
		other_ways_cost_no_shape,
		each_part_of_many_columns_is_tried,
		the_second_device_tries_nothing_that_the_first_left,
	};

	return t_main("ascend_shapes", 300, tests, NITEMS(tests));
}
