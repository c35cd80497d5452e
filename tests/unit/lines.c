/* tests/unit/lines.c - results come out in the order of their prompts,
 * whatever the order they are ready in. */
#include "tests/support/t.h"

#include <errno.h>

#include "coordinator/engine/lines.h"

struct printed {
	uint32_t n, refuse_from;
};

static int
print(void *arg, json_t *result, struct err *reterr)
{
	struct printed *p = arg;
	uint32_t index = (uint32_t)json_integer_value(result);

	json_decref(result);
	if (p->n >= p->refuse_from)
		return err_set(reterr, ERR_RUN, -EPIPE, "nobody reads");
	ck_assert_uint_eq(index, p->n);
	p->n++;
	return 0;
}

static struct line *
add(struct lines *l, uint32_t index)
{
	struct source prompt = { 0 };
	struct line *n = lines_add(l, index, &prompt);

	ck_assert_ptr_nonnull(n);
	return n;
}

START_TEST(each_comes_as_soon_as_none_holds_it_back)
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
			live[nlive++] = add(&l, next++);
		i = (uint32_t)t_rand_below(nlive);
		t_ok(source_append(&live[i]->text, "x", 1, &e), &e);
		ready[live[i]->index] = 1;
		live[i]->result = json_integer(live[i]->index);
		live[i] = live[--nlive];
		ended++;
		t_ok(lines_print(&l, print, &p, &e), &e);
		while (first < N && ready[first])
			first++;
		ck_assert_uint_eq(p.n, first);
	}
	ck_assert_uint_eq(p.n, N);
	lines_done(&l);
}
END_TEST

START_TEST(what_cannot_be_printed_ends_it_and_leaks_nothing)
{
	struct printed p = { .refuse_from = 1 };
	struct line *n;
	struct lines l;
	struct err e;
	uint32_t i;

	lines_init(&l);
	for (i = 0; i < 4; i++) {
		n = add(&l, i);
		t_ok(source_append(&n->text, "text", 4, &e), &e);
		if (i < 3)
			n->result = json_integer(i);
	}
	ck_assert_int_eq(lines_print(&l, print, &p, &e), -EPIPE);
	ck_assert_uint_eq(p.n, 1);
	lines_done(&l);
	ck_assert_int_eq(lines_print(&l, print, &p, &e), 0);
}
END_TEST

/* Pieces of every length, over every border at which it grows. */
START_TEST(a_text_grows_by_pieces)
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
			ck_abort_msg("byte %zu is another", i);
	source_free(&s);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		each_comes_as_soon_as_none_holds_it_back,
		what_cannot_be_printed_ends_it_and_leaks_nothing,
		a_text_grows_by_pieces
	};

	return t_main("lines", 60, tests, NITEMS(tests));
}
