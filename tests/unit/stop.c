/* tests/unit/stop.c - texts that end an answer, against a naive search; the same
 * however the answer is cut into pieces. */
#include "tests/support/t.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/text/stop.h"

static struct stops stops;

/* The end of the answer's visible part: of the first text that is complete, and of
 * several the longest. */
static size_t
naive_end(const char *text, size_t n, int *ret_found)
{
	size_t end, len;
	unsigned k;

	*ret_found = -1;
	for (end = 1; end <= n && *ret_found < 0; end++) {
		len = 0;
		for (k = 0; k < stops.n; k++) {
			const struct stop_text *t = &stops.text[k];

			if (t->len <= end && t->len > len &&
			    memcmp(text + end - t->len, t->s, t->len) == 0) {
				len = t->len;
				*ret_found = (int)k;
			}
		}
		if (*ret_found >= 0)
			return end - len;
	}
	return n;
}

/* Push text[n] in random pieces. */
static int
push_pieces(const char *text, size_t n, char *out, size_t *ret_n,
    unsigned *ret_held)
{
	struct stop_state ss = { .nheld = 0 };
	char piece[1024];
	size_t i = 0, more, shown;
	int found = -1;

	*ret_n = 0;
	while (i < n && found < 0) {
		more = t_rand_below(4);
		more = MIN(more, n - i);
		found = stops_push(&stops, &ss, text + i, more, piece,
		    &shown);
		ck_assert_uint_le(shown, more + MAX_STOP_BYTES);
		memcpy(out + *ret_n, piece, shown);
		*ret_n += shown;
		i += more;
	}
	memcpy(out + *ret_n, ss.held, ss.nheld);
	*ret_n += ss.nheld;
	*ret_held = ss.nheld;
	return found;
}

START_TEST(random_texts_end_where_a_naive_search_ends_them)
{
	char text[64], stop[STOP_TEXTS][8], out[2048];
	unsigned round, i, k, held;
	size_t n, want, got;
	int found, want_found;

	for (round = 0; round < 20000; round++) {
		n = t_rand() % sizeof(text);
		for (i = 0; i < n; i++)
			text[i] = (char)('a' + t_rand() % 2);
		stops.n = 0;
		for (k = t_rand() % 5; k > 0; k--) {
			unsigned len = 1 + t_rand() % 7;

			for (i = 0; i < len; i++)
				stop[k][i] = (char)('a' + t_rand() % 2);
			stop[k][len] = '\0';
			stops_add(&stops, stop[k]);
		}
		want = naive_end(text, n, &want_found);
		found = push_pieces(text, n, out, &got, &held);
		ck_assert_uint_eq(got, want);
		ck_assert(memcmp(out, text, got) == 0);
		/* Either of two equal texts is right. */
		ck_assert_int_eq(found >= 0, want_found >= 0);
		if (found >= 0)
			ck_assert_str_eq(stops.text[found].s,
			    stops.text[want_found].s);
	}
}
END_TEST

START_TEST(only_a_possible_beginning_is_held_back)
{
	struct stop_state ss = { .nheld = 0 };
	char out[512];
	size_t n;

	stops.n = 0;
	stops_add(&stops, "abac");
	ck_assert_int_eq(stops_push(&stops, &ss, "xaba", 4, out, &n), -1);
	ck_assert_uint_eq(n, 1);
	ck_assert_int_eq(stops_push(&stops, &ss, "", 0, out, &n), -1);
	ck_assert_uint_eq(n, 0);
	ck_assert_uint_eq(ss.nheld, 3);
	ck_assert_int_eq(stops_push(&stops, &ss, "b", 1, out, &n), -1);
	ck_assert_uint_eq(n, 2);		/* "ab" of abab */
	ck_assert_uint_eq(ss.nheld, 2);
	ck_assert_int_eq(stops_push(&stops, &ss, "acz", 3, out, &n), 0);
	ck_assert_uint_eq(n, 0);
	ck_assert_uint_eq(ss.nheld, 0);
	stops.n = 0;
	ck_assert_int_eq(stops_push(&stops, &ss, "abac", 4, out, &n), -1);
	ck_assert_uint_eq(n, 4);
}
END_TEST

START_TEST(the_longest_text_and_the_most_fit)
{
	char longest[MAX_STOP_BYTES + 1], out[4 * MAX_STOP_BYTES];
	struct stop_state ss = { .nheld = 0 };
	size_t n;
	unsigned k;

	memset(longest, 'x', MAX_STOP_BYTES);
	longest[MAX_STOP_BYTES] = '\0';
	longest[MAX_STOP_BYTES - 1] = 'y';
	stops.n = 0;
	for (k = 0; k < STOP_TEXTS; k++)
		stops_add(&stops, longest);
	for (k = 0; k < 3; k++) {
		ck_assert_int_lt(stops_push(&stops, &ss, longest,
		    MAX_STOP_BYTES - 1, out, &n), 0);
		ck_assert_uint_eq(ss.nheld, MAX_STOP_BYTES - 1);
	}
	ck_assert_int_ge(stops_push(&stops, &ss, "y", 1, out, &n), 0);
	ck_assert_uint_eq(n, 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		random_texts_end_where_a_naive_search_ends_them,
		only_a_possible_beginning_is_held_back,
		the_longest_text_and_the_most_fit
	};

	return t_main("stop", 60, tests, NITEMS(tests));
}
