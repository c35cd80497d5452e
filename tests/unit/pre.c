/* tests/unit/pre.c - tests of the pre-tokenizers: their words, recorded from
 * huggingface/tokenizers 0.23.3 with the steps of each model's tokenizer.json
 * (but "default", which only llama.cpp defines); invalid UTF-8, and time for
 * long texts. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/pre.h"

enum { NTEXTS = 4 };

static const char *const texts[NTEXTS] = {
	"It's WE'LL  don't 1234567 x2=3.14 \302\275 \r\n\n\tif (a_b++"
	") {`c`}   \n  ",
	"\303\211COLE na\303\257ve cafe\314\201 \320\277\321\200"
	"\320\270\320\262\320\265\321\202\320\234\320\270\321\200 "
	"\344\275\240\345\245\275\357\274\214\344\270\226\347\225\214"
	"123\343\200\202 \343\202\253\343\203\212 \354\225\210"
	"\353\205\225 \360\237\232\200\360\237\232\200!\343\200\200"
	"\302\240a",
	"HTTPServer camelCase </s>/\n/x $5+~^| \341\240\216",
	/* Marks, case and digits outside ASCII. */
	"\340\244\250\340\244\256\340\244\270\340\245\215\340\244\244"
	"\340\245\207 \320\237\321\200\320\270\320\262\320\265\321\202"
	"\320\234\320\270\321\200 e\314\201te\314\201 \303\211COLE\303\251"
	"t\303\251 I'\305\277 \320\264\302\262 \331\206\331\221\331\205 "
	"\302\27412 12\302\2753456 \331\241\331\242\331\243\331\244"
};

/* The words of each text, separated by @. */
static const struct golden {
	const char *name;
	const char *same[5];		/* other names of the same cuts */
	const char *words[NTEXTS];
} golden[] = {
	{ "default", { NULL }, {
	    "It@'@s@ WE@'@LL@ @ don@'@t@ @123@456@7@ x@2@=@3@.@14@ @\302\275@ "
	    "\r\n\n@\t@if@ @(@a@_@b@++)@ @{@`@c@`@}@   \n  ",
	    "\303\211COLE@ na\303\257ve@ cafe@\314\201@ \320\277\321\200"
	    "\320\270\320\262\320\265\321\202\320\234\320\270\321\200@ "
	    "\344\275\240\345\245\275@\357\274\214@\344\270\226\347\225\214@12"
	    "3@\343\200\202@ \343\202\253\343\203\212@ \354\225\210"
	    "\353\205\225@ \360\237\232\200\360\237\232\200@!@\343\200\200@"
	    "\302\240@a",
	    "HTTPServer@ camelCase@ @</@s@>/@\n@/@x@ @$@5@+~^|@ \341\240\216",
	    "\340\244\250\340\244\256\340\244\270@\340\245\215@\340\244\244@"
	    "\340\245\207@ \320\237\321\200\320\270\320\262\320\265\321\202"
	    "\320\234\320\270\321\200@ e@\314\201@te@\314\201@ \303\211COLE"
	    "\303\251t\303\251@ I@'@\305\277@ \320\264@\302\262@ \331\206@"
	    "\331\221@\331\205@ @\302\27412@ @12\302\275@345@6@ @\331\241"
	    "\331\242\331\243\331\244" } },
	{ "gpt-2", { "phi-2", "olmo", "mpt" }, {
	    "It@'s@ WE@'@LL@ @ don@'t@ 1234567@ x@2@=@3@.@14@ \302\275@ \r\n\n"
	    "@\t@if@ (@a@_@b@++)@ {`@c@`}@   \n  ",
	    "\303\211COLE@ na\303\257ve@ cafe@\314\201@ \320\277\321\200"
	    "\320\270\320\262\320\265\321\202\320\234\320\270\321\200@ "
	    "\344\275\240\345\245\275@\357\274\214@\344\270\226\347\225\214@12"
	    "3@\343\200\202@ \343\202\253\343\203\212@ \354\225\210"
	    "\353\205\225@ \360\237\232\200\360\237\232\200!@\343\200\200@"
	    "\302\240@a",
	    "HTTPServer@ camelCase@ </@s@>/@\n@/@x@ $@5@+~^|@ \341\240\216",
	    "\340\244\250\340\244\256\340\244\270@\340\245\215@\340\244\244@"
	    "\340\245\207@ \320\237\321\200\320\270\320\262\320\265\321\202"
	    "\320\234\320\270\321\200@ e@\314\201@te@\314\201@ \303\211COLE"
	    "\303\251t\303\251@ I@'@\305\277@ \320\264@\302\262@ \331\206@"
	    "\331\221@\331\205@ \302\27412@ 12\302\2753456@ \331\241\331\242"
	    "\331\243\331\244" } },
	{ "llama-bpe", { "llama3", "llama-v3", "dbrx", "smaug-bpe" }, {
	    "It@'s@ WE@'LL@ @ don@'t@ @123@456@7@ x@2@=@3@.@14@ @\302\275@ \r"
	    "\n\n@\tif@ (@a@_b@++)@ {`@c@`}@   \n@  ",
	    "\303\211COLE@ na\303\257ve@ cafe@\314\201@ \320\277\321\200"
	    "\320\270\320\262\320\265\321\202\320\234\320\270\321\200@ "
	    "\344\275\240\345\245\275@\357\274\214\344\270\226\347\225\214@123"
	    "@\343\200\202@ \343\202\253\343\203\212@ \354\225\210\353\205\225"
	    "@ \360\237\232\200\360\237\232\200!@\343\200\200@\302\240a",
	    "HTTPServer@ camelCase@ </@s@>/\n@/x@ $@5@+~^|@ \341\240\216",
	    "\340\244\250\340\244\256\340\244\270@\340\245\215\340\244\244@"
	    "\340\245\207@ \320\237\321\200\320\270\320\262\320\265\321\202"
	    "\320\234\320\270\321\200@ e@\314\201te@\314\201@ \303\211COLE"
	    "\303\251t\303\251@ I@'\305\277@ \320\264@\302\262@ \331\206@"
	    "\331\221\331\205@ @\302\27412@ @12\302\275@345@6@ @\331\241"
	    "\331\242\331\243@\331\244" } },
	{ "qwen2", { "deepseek-r1-qwen", "stablelm2" }, {
	    "It@'s@ WE@'LL@ @ don@'t@ @1@2@3@4@5@6@7@ x@2@=@3@.@1@4@ @\302\275"
	    "@ \r\n\n@\tif@ (@a@_b@++)@ {`@c@`}@   \n@  ",
	    "\303\211COLE@ na\303\257ve@ cafe@\314\201@ \320\277\321\200"
	    "\320\270\320\262\320\265\321\202\320\234\320\270\321\200@ "
	    "\344\275\240\345\245\275@\357\274\214\344\270\226\347\225\214@1@2"
	    "@3@\343\200\202@ \343\202\253\343\203\212@ \354\225\210"
	    "\353\205\225@ \360\237\232\200\360\237\232\200!@\343\200\200@"
	    "\302\240a",
	    "HTTPServer@ camelCase@ </@s@>/\n@/x@ $@5@+~^|@ \341\240\216",
	    "\340\244\250\340\244\256\340\244\270@\340\245\215\340\244\244@"
	    "\340\245\207@ \320\237\321\200\320\270\320\262\320\265\321\202"
	    "\320\234\320\270\321\200@ e@\314\201te@\314\201@ \303\211COLE"
	    "\303\251t\303\251@ I@'\305\277@ \320\264@\302\262@ \331\206@"
	    "\331\221\331\205@ @\302\274@1@2@ @1@2@\302\275@3@4@5@6@ @\331\241"
	    "@\331\242@\331\243@\331\244" } },
	{ "gpt-4o", { "llama4" }, {
	    "It's@ WE'LL@ @ don't@ @123@456@7@ x@2@=@3@.@14@ @\302\275@ \r\n\n"
	    "@\tif@ (@a@_b@++)@ {`@c@`}@   \n@  ",
	    "\303\211COLE@ na\303\257ve@ cafe\314\201@ \320\277\321\200"
	    "\320\270\320\262\320\265\321\202@\320\234\320\270\321\200@ "
	    "\344\275\240\345\245\275@\357\274\214\344\270\226\347\225\214@123"
	    "@\343\200\202@ \343\202\253\343\203\212@ \354\225\210\353\205\225"
	    "@ \360\237\232\200\360\237\232\200!@\343\200\200@\302\240a",
	    "HTTPServer@ camel@Case@ </@s@>/\n/@x@ $@5@+~^|@ \341\240\216",
	    "\340\244\250\340\244\256\340\244\270\340\245\215\340\244\244"
	    "\340\245\207@ \320\237\321\200\320\270\320\262\320\265\321\202@"
	    "\320\234\320\270\321\200@ e\314\201te\314\201@ \303\211COLE"
	    "\303\251t\303\251@ I'\305\277@ \320\264@\302\262@ \331\206"
	    "\331\221\331\205@ @\302\27412@ @12\302\275@345@6@ @\331\241"
	    "\331\242\331\243@\331\244" } },
	{ "tekken", { NULL }, {
	    "It@'s@ WE@'LL@ @ don@'t@ @1@2@3@4@5@6@7@ x@2@=@3@.@1@4@ @\302\275"
	    "@ \r\n\n@\tif@ (@a@_b@++)@ {`@c@`}@   \n@  ",
	    "\303\211COLE@ na\303\257ve@ cafe\314\201@ \320\277\321\200"
	    "\320\270\320\262\320\265\321\202@\320\234\320\270\321\200@ "
	    "\344\275\240\345\245\275@\357\274\214\344\270\226\347\225\214@1@2"
	    "@3@\343\200\202@ \343\202\253\343\203\212@ \354\225\210"
	    "\353\205\225@ \360\237\232\200\360\237\232\200!@\343\200\200@"
	    "\302\240a",
	    "HTTPServer@ camel@Case@ </@s@>/\n/@x@ $@5@+~^|@ \341\240\216",
	    "\340\244\250\340\244\256\340\244\270\340\245\215\340\244\244"
	    "\340\245\207@ \320\237\321\200\320\270\320\262\320\265\321\202@"
	    "\320\234\320\270\321\200@ e\314\201te\314\201@ \303\211COLE"
	    "\303\251t\303\251@ I@'\305\277@ \320\264@\302\262@ \331\206"
	    "\331\221\331\205@ @\302\274@1@2@ @1@2@\302\275@3@4@5@6@ @\331\241"
	    "@\331\242@\331\243@\331\244" } },
	{ "smollm", { "starcoder", "refact", "command-r" }, {
	    "It@'s@ WE@'@LL@ @ don@'t@ @1@2@3@4@5@6@7@ x@2@=@3@.@1@4@ @"
	    "\302\275@ \r\n\n@\t@if@ (@a@_@b@++)@ {`@c@`}@   \n  ",
	    "\303\211COLE@ na\303\257ve@ cafe@\314\201@ \320\277\321\200"
	    "\320\270\320\262\320\265\321\202\320\234\320\270\321\200@ "
	    "\344\275\240\345\245\275@\357\274\214@\344\270\226\347\225\214@1@"
	    "2@3@\343\200\202@ \343\202\253\343\203\212@ \354\225\210"
	    "\353\205\225@ \360\237\232\200\360\237\232\200!@\343\200\200@"
	    "\302\240@a",
	    "HTTPServer@ camelCase@ </@s@>/@\n@/@x@ $@5@+~^|@ \341\240\216",
	    "\340\244\250\340\244\256\340\244\270@\340\245\215@\340\244\244@"
	    "\340\245\207@ \320\237\321\200\320\270\320\262\320\265\321\202"
	    "\320\234\320\270\321\200@ e@\314\201@te@\314\201@ \303\211COLE"
	    "\303\251t\303\251@ I@'@\305\277@ \320\264@\302\262@ \331\206@"
	    "\331\221@\331\205@ @\302\274@1@2@ @1@2@\302\275@3@4@5@6@ @"
	    "\331\241@\331\242@\331\243@\331\244" } },
	{ "deepseek-llm", { NULL }, {
	    "It@'@s@ WE@'@LL@ @ don@'@t@ @1@2@3@4@5@6@7@ x@2@=@3@.@1@4@ @"
	    "\302\275@ @\r@\n@\n@\tif@ (@a@_@b@++)@ {`@c@`}@   @\n@  ",
	    "\303\211@COLE@ na@\303\257@ve@ cafe@\314\201@ \320\277\321\200"
	    "\320\270\320\262\320\265\321\202\320\234\320\270\321\200@ @"
	    "\344\275\240\345\245\275@\357\274\214@\344\270\226\347\225\214@1@"
	    "2@3@\343\200\202@ @\343\202\253\343\203\212@ @\354\225\210"
	    "\353\205\225@ \360\237\232\200\360\237\232\200@!@\343\200\200@"
	    "\302\240a",
	    "HTTPServer@ camelCase@ </@s@>/@\n@/@x@ $@5@+~^|@ @\341\240\216",
	    "\340\244\250\340\244\256\340\244\270\340\245\215\340\244\244"
	    "\340\245\207@ \320\237\321\200\320\270\320\262\320\265\321\202"
	    "\320\234\320\270\321\200@ e@\314\201@te@\314\201@ \303\211@COLE@"
	    "\303\251@t@\303\251@ I@'@\305\277@ \320\264@\302\262@ \331\206"
	    "\331\221\331\205 @\302\274@1@2@ @1@2@\302\275@3@4@5@6@ @\331\241@"
	    "\331\242@\331\243@\331\244" } },
	{ "deepseek-coder", { NULL }, {
	    "It@'@s@ WE@'@LL@ @ don@'@t@ @1@2@3@4@5@6@7@ x@2@=@3@.@1@4@ @"
	    "\302\275@ @\r@\n@\n@\tif@ (@a@_@b@++@)@ {@`@c@`@}@   @\n@  ",
	    "\303\211COLE@ na\303\257ve@ cafe@\314\201@ \320\277\321\200"
	    "\320\270\320\262\320\265\321\202\320\234\320\270\321\200@ @"
	    "\344\275\240\345\245\275@\357\274\214@\344\270\226\347\225\214@1@"
	    "2@3@\343\200\202@ @\343\202\253\343\203\212@ @\354\225\210"
	    "\353\205\225@ \360\237\232\200\360\237\232\200@!@\343\200\200@"
	    "\302\240a",
	    "HTTPServer@ camelCase@ <@/@s@>@/@\n@/@x@ $@5@+~^| @\341\240\216",
	    "\340\244\250\340\244\256\340\244\270@\340\245\215@\340\244\244@"
	    "\340\245\207@ \320\237\321\200\320\270\320\262\320\265\321\202"
	    "\320\234\320\270\321\200@ e@\314\201@te@\314\201@ \303\211COLE"
	    "\303\251t\303\251@ I@'@\305\277@ \320\264@\302\262@ \331\206@"
	    "\331\221@\331\205@ @\302\274@1@2@ @1@2@\302\275@3@4@5@6@ @"
	    "\331\241@\331\242@\331\243@\331\244" } },
	{ "deepseek-v3", { NULL }, {
	    "It@'s@ WE@'LL@ @ don@'t@ @123@456@7@ x@2@=@3@.@14@ @\302\275@ \r"
	    "\n\n@\tif@ (@a@_b@++)@ {`@c@`}@   \n@  ",
	    "\303\211COLE@ na\303\257ve@ cafe\314\201@ \320\277\321\200"
	    "\320\270\320\262\320\265\321\202\320\234\320\270\321\200@ @"
	    "\344\275\240\345\245\275@\357\274\214@\344\270\226\347\225\214@12"
	    "3@\343\200\202@ @\343\202\253\343\203\212@ \354\225\210"
	    "\353\205\225@ \360\237\232\200\360\237\232\200!@\343\200\200@"
	    "\302\240a",
	    "HTTPServer@ camelCase@ </@s@>/\n@/x@ $@5@+~^|@ @\341\240\216",
	    "\340\244\250\340\244\256\340\244\270\340\245\215\340\244\244"
	    "\340\245\207@ \320\237\321\200\320\270\320\262\320\265\321\202"
	    "\320\234\320\270\321\200@ e\314\201te\314\201@ \303\211COLE"
	    "\303\251t\303\251@ I@'@\305\277@ \320\264@\302\262@ \331\206"
	    "\331\221\331\205@ @\302\27412@ @12\302\275@345@6@ @\331\241"
	    "\331\242\331\243@\331\244" } },
	{ "falcon", { NULL }, {
	    "It@'@s@ WE@'@LL@ @ don@'@t@ @123@456@7@ x@2@=@3@.@14@ \302@\275@ "
	    "\r\n\n@\t@if@ @(@a@_@b@++)@ @{`@c@`}@   \n  ",
	    "\303\211COLE@ na\303\257ve@ cafe@\314\201@ \320\277\321\200"
	    "\320\270\320@\262@\320\265\321\202\320\234\320\270\321\200@ \344@"
	    "\275@\240\345\245@\275@\357@\274@\214@\344\270\226\347\225\214@12"
	    "3@\343\200\202@ \343\202\253\343\203\212@ \354\225\210"
	    "\353\205\225@ \360\237\232\200\360\237\232\200@!@\343\200\200@"
	    "\302\240@a",
	    "HTTPServer@ camelCase@ @</@s@>/@\n@/@x@ @$@5@+~^|@ \341\240\216",
	    "\340\244\250\340\244\256\340\244\270@\340\245\215@\340\244\244@"
	    "\340\245\207@ \320\237\321\200\320\270\320@\262@\320\265\321\202"
	    "\320\234\320\270\321\200@ e@\314\201@te@\314\201@ \303\211COLE"
	    "\303\251t\303\251@ I@'@\305\277@ \320\264@\302@\262@ \331\206@"
	    "\331\221@\331\205@ \302@\27412@ @12@\302@\275@345@6@ \331\241"
	    "\331\242\331\243\331\244" } }
};

static struct pre *
open_pre(const char *name)
{
	struct pre *p;
	struct err e;

	t_ok(pre_open(name, strlen(name), &p, &e), &e);
	return p;
}

struct words {
	const char *text;
	size_t at;		/* end of the last word */
	size_t n, wrong;
	char *joined;		/* NULL = do not join */
};

static int
record_word(void *arg, size_t off, size_t nbytes, struct err *reterr)
{
	struct words *w = arg;

	(void)reterr;
	/* Words must be contiguous and in order. */
	w->wrong += off != w->at || nbytes == 0;
	if (w->joined != NULL) {
		if (w->n > 0)
			strcat(w->joined, "@");
		strncat(w->joined, w->text + off, nbytes);
	}
	w->at += nbytes;
	w->n++;
	return 0;
}

static void
cut_text(const struct pre *p, const char *text, size_t nbytes, char *joined)
{
	struct words w = { .text = text, .joined = joined };
	struct err e = { .kind = ERR_NONE };

	if (joined != NULL)
		*joined = '\0';
	t_ok(pre_cut(p, text, nbytes, record_word, &w, &e), &e);
	ck_assert_uint_eq(w.wrong, 0);
	ck_assert_uint_eq(w.at, nbytes);
}

static void
check_cut(const char *name, const char *text, const char *want)
{
	char joined[1024];
	struct pre *p = open_pre(name);

	ck_assert_uint_lt(strlen(text) * 2, sizeof(joined));
	cut_text(p, text, strlen(text), joined);
	ck_assert_msg(strcmp(joined, want) == 0, "%s cuts\n%s, not\n%s", name,
	    joined, want);
	pre_close(p);
}

START_TEST(words_agree_with_the_published_patterns)
{
	size_t i, k, n = 0;
	unsigned s;

	for (i = 0; i < NITEMS(golden); i++) {
		for (k = 0; k < NTEXTS; k++) {
			const struct golden *g = &golden[i];

			check_cut(g->name, texts[k], g->words[k]);
			for (s = 0; g->same[s] != NULL; s++)
				check_cut(g->same[s], texts[k], g->words[k]);
			n += k == 0 ? 1 + s : 0;
		}
	}
	ck_assert_ptr_nonnull(pre_name((unsigned)n - 1));
	/* All names are covered. */
	ck_assert_ptr_null(pre_name((unsigned)n));
}
END_TEST

START_TEST(an_unknown_name_is_refused_with_the_known_names)
{
	static const char *const names[] = { "gpt-5", "gpt", "gpt-2 ", "" };
	struct pre *p = NULL;
	struct err e;
	size_t i;
	unsigned k;

	for (i = 0; i < NITEMS(names); i++) {
		ck_assert_int_eq(pre_open(names[i], strlen(names[i]), &p, &e),
		    -ENOTSUP);
		ck_assert_ptr_null(p);
		ck_assert_int_eq(e.kind, ERR_MODEL);
		ck_assert_ptr_nonnull(strstr(e.msg, names[i]));
		for (k = 0; pre_name(k) != NULL; k++)
			ck_assert_ptr_nonnull(strstr(e.msg, pre_name(k)));
	}
	pre_close(NULL);
}
END_TEST

START_TEST(unicode_white_space_counts_as_blank)
{
	/* Next line, no-break, ogham, line and paragraph separators. */
	check_cut("gpt-2", "a\302\205b", "a@\302\205@b");
	check_cut("gpt-2", "a\302\240\341\232\200b",
	    "a@\302\240@\341\232\200@b");
	check_cut("gpt-2", "\342\200\250\342\200\251!",
	    "\342\200\250@\342\200\251@!");
	/* The Mongolian vowel separator is no longer white space. */
	check_cut("gpt-2", "!\341\240\216!", "!\341\240\216!");
	check_cut("gpt-2", "! \342\200\213!", "!@ \342\200\213!");
}
END_TEST

START_TEST(falcon_knows_the_punctuation_of_unicode_8)
{
	/* U+2E42 is of Unicode 7, U+2E54 of Unicode 13.  Both have bytes that
	 * are digits of Latin-1. */
	check_cut("falcon", "!\342\271\202", "!\342@\271@\202");
	check_cut("falcon", "!\342\271\224", "!@\342@\271@\224");
}
END_TEST

START_TEST(invalid_utf8_is_cut_as_u_fffd_and_kept)
{
	check_cut("gpt-2", "a\377\376b", "a@\377\376@b");
	check_cut("gpt-2", "a \377!b", "a@ \377!@b");
	check_cut("llama-bpe", "1234\303", "123@4@\303");
	/* Overlong; surrogate. */
	check_cut("llama-bpe", "\340\200ab \355\240\200",
	    "\340\200@ab@ \355\240\200");
	check_cut("deepseek-v3", "a\200b", "a@\200@b");	/* U+FFFD is a symbol */
	check_cut("qwen2", "\303\251\303 \303\251", "\303\251@\303@ \303\251");
}
END_TEST

/* Quadratic time would take minutes. */
START_TEST(a_run_of_blanks_takes_linear_time)
{
	enum { LEN = 300000 };
	char *text = malloc(LEN);
	struct pre *p;
	size_t k;

	ck_assert_ptr_nonnull(text);
	memset(text, ' ', LEN);
	text[LEN - 1] = '1';		/* the run is not at the end */
	for (k = 0; k < NITEMS(golden); k++) {
		p = open_pre(golden[k].name);
		cut_text(p, text, LEN, NULL);
		pre_close(p);
	}
	free(text);
}
END_TEST

START_TEST(long_runs_of_any_unit_take_linear_time)
{
	static const char *const unit[] = {
		" ", "\n", "a", "A", "1", "!", "'", " a", "\t\n", "  !",
		"\303\211", "\344\275\240", "\314\201", "Aa", "\377", " \n\n "
	};
	enum { LEN = 10000 };
	char *text = malloc(LEN + 1);
	struct pre *p;
	size_t i, k, at, n;

	ck_assert_ptr_nonnull(text);
	for (k = 0; k < NITEMS(golden); k++) {
		p = open_pre(golden[k].name);
		for (i = 0; i < NITEMS(unit); i++) {
			n = strlen(unit[i]);
			for (at = 0; at + n <= LEN; at += n)
				memcpy(text + at, unit[i], n);
			cut_text(p, text, at, NULL);
			text[at] = 'x';
			cut_text(p, text, at + 1, NULL);
			text[at] = '1';
			cut_text(p, text, at + 1, NULL);
		}
		pre_close(p);
	}
	free(text);
}
END_TEST

START_TEST(words_cover_any_bytes_once_in_order)
{
	static const char *const bits[] = {
		" ", "  ", "\n", "\r\n", "a", "B", "'s", "'LL", "12", "!", "/",
		"$", "\303\251", "\314\201", "\343\200\202", "\344\275\240",
		"\360\237\232\200", "\302\240", "\341\240\216", "\000", "\177"
	};
	char text[200];
	struct pre *p;
	size_t n, len, round;
	unsigned k;

	for (k = 0; pre_name(k) != NULL; k++) {
		p = open_pre(pre_name(k));
		for (round = 0; round < 200; round++) {
			for (n = 0; n < 150; n += len) {
				const char *b = bits[t_rand_below(
				    NITEMS(bits))];

				len = t_rand_below(8) == 0 ? 0 : strlen(b);
				memcpy(text + n, b, len);
				if (len == 0) {
					text[n] = (char)t_rand();
					len = 1;
				}
			}
			cut_text(p, text, n, NULL);
		}
		cut_text(p, text, 0, NULL);
		pre_close(p);
	}
}
END_TEST

static int
stop_at_third_word(void *arg, size_t off, size_t nbytes, struct err *reterr)
{
	unsigned *left = arg;

	(void)off;
	(void)nbytes;
	return --*left > 0 ? 0 : err_set(reterr, ERR_RUN, -EPIPE, "enough");
}

START_TEST(the_callback_can_stop_the_cutting)
{
	struct pre *p = open_pre("deepseek-coder");
	unsigned left = 3;
	struct err e;

	ck_assert_int_eq(pre_cut(p, "a b\nc d e", 9, stop_at_third_word,
	    &left, &e), -EPIPE);
	ck_assert_uint_eq(left, 0);
	ck_assert_str_eq(e.msg, "enough");
	pre_close(p);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		words_agree_with_the_published_patterns,
		an_unknown_name_is_refused_with_the_known_names,
		unicode_white_space_counts_as_blank,
		falcon_knows_the_punctuation_of_unicode_8,
		invalid_utf8_is_cut_as_u_fffd_and_kept,
		a_run_of_blanks_takes_linear_time,
		long_runs_of_any_unit_take_linear_time,
		words_cover_any_bytes_once_in_order,
		the_callback_can_stop_the_cutting
	};

	return t_main("pre", 60, tests, NITEMS(tests));
}
