/* tests/unit/convert.c - what a converter says is checked before it is used. */
#include "tests/support/t.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "coordinator/quantize/convert.h"

static struct convert_layout
sound_layout(void)
{
	struct convert_layout l = { .ntensors = 3, .tensor_bytes = 1000,
	    .file_bytes = 2000, .count = { 2, 1, QUANT_Q8_0 },
	    .nunknown = 1, .unknown_name = "a.weight" };

	return l;
}

static struct convert_tensor
sound_tensor(void)
{
	struct convert_tensor t = { .name = "blk.0.attn_q.weight", .ndims = 2,
	    .ne = { 256, 2, 1, 1 }, .from = { 1024, 1024, QUANT_F16, 0 },
	    .to = { 544, 544, QUANT_Q8_0, 0 }, .result = { 0.1, 10 } };

	return t;
}

#define LAYOUT_REFUSED(what, ...)					\
	do {								\
		l = sound_layout();					\
		__VA_ARGS__;						\
		ck_assert_int_eq(convert_check_layout(&l, 1000, &e),	\
		    -EBADMSG);						\
		ck_assert_int_eq(e.kind, ERR_RUN);			\
		ck_assert_ptr_nonnull(strstr(e.msg, what));		\
	} while (0)

START_TEST(a_layout_that_cannot_be_is_refused)
{
	struct convert_layout l = sound_layout();
	struct err e;

	t_ok(convert_check_layout(&l, 1000, &e), &e);
	l.count = (struct requant_count){ 0, 0, UINT32_MAX };
	t_ok(convert_check_layout(&l, 1000, &e), &e);
	LAYOUT_REFUSED("a number of tensors", l.ntensors = 0);
	LAYOUT_REFUSED("a size", l.file_bytes = 0);
	LAYOUT_REFUSED("a size", l.file_bytes = 100 * MIB);
	LAYOUT_REFUSED("a size", l.file_bytes = UINT64_MAX);
	LAYOUT_REFUSED("a choice of types", l.count.fallback = 3);
	LAYOUT_REFUSED("a choice of types",
	    l.count.fallback_type = QUANT_NTYPES);
	LAYOUT_REFUSED("a choice of types",
	    l.count.fallback_type = UINT32_MAX);
	LAYOUT_REFUSED("a name", memset(l.unknown_name, 'a',
	    sizeof(l.unknown_name)));
}
END_TEST

/* The disk is not filled for a model that is small. */
START_TEST(an_output_is_bounded_by_its_input)
{
	struct convert_layout l = sound_layout();
	struct err e;

	l.file_bytes = INT64_MAX;
	t_ok(convert_check_layout(&l, INT64_MAX, &e), &e);
	l.file_bytes = (uint64_t)INT64_MAX + 1;
	ck_assert_int_eq(convert_check_layout(&l, INT64_MAX, &e), -EBADMSG);
	l.file_bytes = 21 * GIB;
	t_ok(convert_check_layout(&l, GIB, &e), &e);
	l.file_bytes = 33 * GIB;
	ck_assert_int_eq(convert_check_layout(&l, GIB, &e), -EBADMSG);
}
END_TEST

#define TENSOR_REFUSED(what, ...)					\
	do {								\
		t = sound_tensor();					\
		__VA_ARGS__;						\
		ck_assert_int_eq(convert_check_tensor(&t, &e),		\
		    -EBADMSG);						\
		ck_assert_int_eq(e.kind, ERR_RUN);			\
		ck_assert_ptr_nonnull(strstr(e.msg, what));		\
	} while (0)

START_TEST(a_tensor_that_cannot_be_is_refused)
{
	struct convert_tensor t = sound_tensor();
	struct err e;

	t_ok(convert_check_tensor(&t, &e), &e);
	t.from.type = t.to.type = UINT32_MAX;	/* printed as unknown */
	t.ndims = 0;
	t_ok(convert_check_tensor(&t, &e), &e);
	TENSOR_REFUSED("a name", memset(t.name, 'a', sizeof(t.name)));
	TENSOR_REFUSED("a shape", t.ndims = GGUF_MAX_DIMS + 1);
	TENSOR_REFUSED("a shape", t.ndims = UINT32_MAX);
	TENSOR_REFUSED("an error", t.result.errors = (double)NAN);
	TENSOR_REFUSED("an error", t.result.errors = (double)INFINITY);
	TENSOR_REFUSED("an error", t.result.errors = -1);
	TENSOR_REFUSED("an error", t.result.squares = (double)NAN);
	TENSOR_REFUSED("an error", t.result.squares = -(double)INFINITY);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_layout_that_cannot_be_is_refused,
		an_output_is_bounded_by_its_input,
		a_tensor_that_cannot_be_is_refused
	};

	return t_main("convert", 60, tests, NITEMS(tests));
}
