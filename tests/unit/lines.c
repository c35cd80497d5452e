/* tests/unit/lines.c - tests of result lines: they are printed in the order of
 * their prompts, whatever order they complete in. */
#include "tests/support/t.h"

#include <errno.h>

#include "coordinator/engine/lines.h"

struct printed {
	uint32_t n, refuse_from;
};

static int
print_result(void *arg, json_t *result, struct err *reterr)
{
	struct printed *p = arg;
	uint32_t index = (uint32_t)json_integer_value(result);

	json_decref(result);
	if (p->n >= p->refuse_from)
		return err_set(reterr, ERR_RUN, -EPIPE, "the output is closed");
	ck_assert_uint_eq(index, p->n);
	p->n++;
	return 0;
}

static struct line *
add_line(struct lines *l, uint32_t index)
{
	struct source prompt = { 0 };
	struct line *n = lines_add(l, index, &prompt);

	ck_assert_ptr_nonnull(n);
	return n;
}

START_TEST(a_result_is_printed_once_all_before_it_are_complete)
{
	enum { N = 500, LIVE = 12 };
	struct printed p = { .refuse_from = UINT32_MAX };
	struct line *live[LIVE];
	int ready[N] = { 0 };
	uint32_t nlive = 0, next = 0, ended = 0, first = 0, i;
	struct lines l;
	struct err e;

	lines_init(&l);
	while (ended < N) {
		while (nlive < LIVE && next < N)
			live[nlive++] = add_line(&l, next++);
		i = (uint32_t)t_rand_below(nlive);
		t_ok(source_append(&live[i]->text, "x", 1, &e), &e);
		ready[live[i]->index] = 1;
		live[i]->result = json_integer(live[i]->index);
		live[i] = live[--nlive];
		ended++;
		t_ok(lines_print(&l, print_result, &p, &e), &e);
		while (first < N && ready[first])
			first++;
		ck_assert_uint_eq(p.n, first);
	}
	ck_assert_uint_eq(p.n, N);
	lines_done(&l);
}
END_TEST

START_TEST(a_failed_print_ends_the_output_and_leaks_nothing)
{
	struct printed p = { .refuse_from = 1 };
	struct line *n;
	struct lines l;
	struct err e;
	uint32_t i;

	lines_init(&l);
	for (i = 0; i < 4; i++) {
		n = add_line(&l, i);
		t_ok(source_append(&n->text, "text", 4, &e), &e);
		if (i < 3)
			n->result = json_integer(i);
	}
	ck_assert_int_eq(lines_print(&l, print_result, &p, &e), -EPIPE);
	ck_assert_uint_eq(p.n, 1);
	lines_done(&l);
	ck_assert_int_eq(lines_print(&l, print_result, &p, &e), 0);
}
END_TEST

/* Pieces of every length, across every reallocation. */
START_TEST(a_source_grows_piece_by_piece)
{
	struct source s = { 0 };
	char piece[700];
	struct err e;
	size_t n, total = 0, i;

	for (n = 0; n < sizeof(piece); n++) {
		for (i = 0; i < n; i++)
			piece[i] = (char)((total + i) % 127);
		t_ok(source_append(&s, piece, n, &e), &e);
		total += n;
		ck_assert_uint_eq(s.nbytes, total);
		ck_assert_int_eq(s.text[total], '\0');
	}
	for (i = 0; i < total; i++)
		if (s.text[i] != (char)(i % 127))
			ck_abort_msg("byte %zu differs", i);
	source_free(&s);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_result_is_printed_once_all_before_it_are_complete,
		a_failed_print_ends_the_output_and_leaks_nothing,
		a_source_grows_piece_by_piece
	};

	return t_main("lines", 60, tests, NITEMS(tests));
}
