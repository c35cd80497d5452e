/* tests/unit/plain.c - tests of escaping untrusted text. */
#include "tests/support/t.h"

#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "config/plain.h"
#include "config/utf8.h"

START_TEST(what_a_terminal_obeys_is_escaped)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "plain text, ~", "plain text, ~" },
		{ "\x1b]0;title\x07", "\\x1b]0;title\\x07" },
		{ "a\nb\tc\rd", "a\\nb\\tc\\rd" },
		{ "\x7f", "\\x7f" },
		{ "\xc2\x9b" "31m", "\\u009b31m" },
		{ "\xc2\xa0", "\xc2\xa0" },
		{ "\x9b" "31m", "\\x9b31m" },
		{ "gr\xc3\xbc\xc3\x9f" "e \xe2\x96\x81 \xf0\x9f\x98\x80",
		    "gr\xc3\xbc\xc3\x9f" "e \xe2\x96\x81 \xf0\x9f\x98\x80" },
		{ "\xe2\x80\xae" "fdp", "\\u202efdp" },
		{ "\xe2\x80\xa8\xe2\x81\xa6\xd8\x9c", "\\u2028\\u2066\\u061c" },
		{ "\xe2\x80", "\\xe2\\x80" },
		{ "\xc0\x9b\xed\xa0\x80", "\\xc0\\x9b\\xed\\xa0\\x80" },
		{ "back\\slash", "back\\slash" },
	};
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++)
		ck_assert_str_eq(PLAIN(cases[i][0]), cases[i][1]);
}
END_TEST

START_TEST(text_of_several_lines_keeps_newlines_and_tabs)
{
	char buf[64];

	ck_assert_uint_eq(plain_copy(buf, sizeof(buf), "a\n\tb\x1b\0c", 7,
	    PLAIN_LINES), 13);
	ck_assert_str_eq(buf, "a\n\tb\\x1b\\x00c");
}
END_TEST

START_TEST(text_that_does_not_fit_ends_in_a_whole_escape)
{
	char buf[16];
	size_t len;

	for (len = 1; len <= 9; len++) {
		memset(buf, 'x', sizeof(buf));
		ck_assert_uint_eq(plain_copy(buf, len, "\x1b\xc3\xbc\x1b", 4,
		    PLAIN_ALL), len < 5 ? 0u : len < 7 ? 4u : 6u);
		ck_assert_uint_eq((unsigned char)buf[len], 'x');
	}
}
END_TEST

/* No byte of any text reaches the output as a control, and none is lost. */
START_TEST(random_bytes_come_out_as_harmless_characters)
{
	char text[40], out[PLAIN_GROWTH * sizeof(text) + 1], *whole;
	size_t i, n, k, size;
	unsigned round, len;
	FILE *fp;

	for (round = 0; round < 20000; round++) {
		n = t_rand() % sizeof(text);
		for (i = 0; i < n; i++)
			text[i] = (char)(t_rand() % 2 ? (int)t_rand() :
			    "\xc2\xe2\x80\x9b\xae\x1b"[t_rand() % 6]);
		k = plain_copy(out, sizeof(out), text, n, PLAIN_ALL);
		ck_assert_uint_ge(k, n);
		fp = open_memstream(&whole, &size);
		plain_print(fp, text, n);
		fclose(fp);
		ck_assert_uint_eq(size, k);
		ck_assert_mem_eq(whole, out, k);
		free(whole);
		for (i = 0; i < k; i += len)
			ck_assert_uint_gt(len = plain_len(out + i, k - i), 0);
	}
}
END_TEST

START_TEST(json_keeps_its_value)
{
	static const char text[] = "\x1b \x7f \xc2\x9b \xe2\x80\xae \xc3\xbc";
	json_t *o = json_pack("[s]", text), *back;
	char *dump = json_dumps(o, JSON_COMPACT), *plain = plain_json(dump);
	size_t i, n = strlen(plain);
	unsigned len;

	for (i = 0; i < n; i += len)
		ck_assert_uint_gt(len = plain_len(plain + i, n - i), 0);
	back = json_loads(plain, 0, NULL);
	ck_assert(json_equal(o, back));
	json_decref(o);
	json_decref(back);
	free(dump);
	free(plain);
}
END_TEST

/* The longest growth: one byte becomes six. */
START_TEST(json_of_controls_alone_fits_its_memory)
{
	enum { N = 5000 };
	char dump[N + 3] = "\"", *plain;

	memset(dump + 1, 0x7f, N);
	dump[N + 1] = '"';
	plain = plain_json(dump);
	ck_assert_uint_le(strlen(plain) + 1, malloc_usable_size(plain));
	ck_assert_uint_eq(strlen(plain), 6 * N + 2);
	free(plain);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		what_a_terminal_obeys_is_escaped,
		text_of_several_lines_keeps_newlines_and_tabs,
		text_that_does_not_fit_ends_in_a_whole_escape,
		random_bytes_come_out_as_harmless_characters,
		json_keeps_its_value,
		json_of_controls_alone_fits_its_memory,
	};

	return t_main("plain", 20, tests, NITEMS(tests));
}
