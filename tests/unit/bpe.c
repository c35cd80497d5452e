/* tests/unit/bpe.c - tests of byte-level BPE: checked by hand on vocabularies
 * of a few merges, and against a naive implementation on random ones.
 * unit/pre.c tests the pre-tokenizers. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/detokenizer.h"
#include "tests/support/bpe_vocab.h"
#include "tests/support/token_ids.h"

#define SP	"\xc4\xa0"		/* a space, as spelled in files */

#define VOCAB(name, list, ...) \
	{ .pre = name, .merge = list, .nmerges = NITEMS(list), __VA_ARGS__ }
#define EXTRA(list)	.extra = list, .nextra = NITEMS(list)

static struct gguf *gguf;
static struct tokenizer *tokenizer;

static int
try_vocab(const struct bpe_vocab *v, struct err *e)
{
	return bpe_vocab_open(&gguf, &tokenizer, v, "bpe.gguf", e);
}

static void
open_vocab(const struct bpe_vocab *v)
{
	struct err e;

	t_ok(try_vocab(v, &e), &e);
}

static void
check_refused(const struct bpe_vocab *v, int rc, const char *words)
{
	struct err e = { .kind = ERR_NONE };

	ck_assert_int_eq(try_vocab(v, &e), rc);
	ck_assert_ptr_null(tokenizer);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_msg(strstr(e.msg, words) != NULL, "\"%s\" lacks \"%s\"",
	    e.msg, words);
	ck_assert_ptr_nonnull(strstr(e.msg, "bpe.gguf"));
}

/* ---- merging ---- */

START_TEST(the_first_merge_of_the_list_applies_first_then_the_leftmost)
{
	static const char *const list[] = {
		"b c", "a b", "a a", "a bc", "aa a", "bc d"
	};
	struct bpe_vocab v = VOCAB("qwen2", list);

	open_vocab(&v);
	check_pieces(tokenizer, "", 0, "");
	check_pieces(tokenizer, "ab", 0, "ab");
	check_pieces(tokenizer, "abc", 0, "abc");	/* bc, then a bc */
	check_pieces(tokenizer, "abd", 0, "ab|d");
	check_pieces(tokenizer, "aaaaa", 0, "aa|aaa");	/* twice a a */
	check_pieces(tokenizer, "abcd", 0, "abc|d");	/* a bc first */
	check_pieces(tokenizer, "bcd", 0, "bcd");
	check_ids(tokenizer, "abx", 0, IDS(257, 'x'));
}
END_TEST

START_TEST(merges_stay_within_words)
{
	static const char *const list[] = {
		"a " SP, "a 1", SP " a", "! a", "1 2", "12 3", "123 4"
	};
	struct bpe_vocab v = VOCAB("llama-bpe", list);

	open_vocab(&v);
	check_pieces(tokenizer, "a a", 0, "a|" SP "a");
	check_pieces(tokenizer, "a1234", 0, "a|123|4");
	check_pieces(tokenizer, "a!a", 0, "a|!a");
	v.pre = "gpt-2";
	open_vocab(&v);
	check_pieces(tokenizer, "a1234", 0, "a|1234");
	check_pieces(tokenizer, "a!a", 0, "a|!|a");
	v.pre = "smollm";
	open_vocab(&v);
	check_pieces(tokenizer, "a1234", 0, "a|1|2|3|4");
	v.pre = NULL;				/* "default" */
	open_vocab(&v);
	check_pieces(tokenizer, "a1234", 0, "a|123|4");
}
END_TEST

START_TEST(a_word_that_is_a_token_is_not_merged_for_some_models)
{
	static const char *const list[] = { "b c", "a b" };
	static const struct bpe_token more[] = {
		{ "abc", TOKEN_NORMAL }, { "hid", TOKEN_CONTROL },
		{ SP "x\xc3\x83", TOKEN_NORMAL }
	};
	struct bpe_vocab v = VOCAB("llama-bpe", list, EXTRA(more));

	open_vocab(&v);
	check_pieces(tokenizer, "abc", 0, "abc");
	check_pieces(tokenizer, "abcb", 0, "a|bc|b");
	check_pieces(tokenizer, "hid", 0, "h|i|d");	/* a control token */
	v.pre = "qwen2";
	open_vocab(&v);
	check_pieces(tokenizer, "abc", 0, "a|bc");
	v.pre = "tekken";
	open_vocab(&v);
	check_pieces(tokenizer, "abc abc", 0, "abc|" SP "|a|bc");
}
END_TEST

START_TEST(merges_never_produce_a_control_token)
{
	static const char *const list[] = { "a b", "< s", "<s >" };
	static const struct bpe_token more[] = { { "<s>", TOKEN_CONTROL } };
	struct bpe_vocab v = VOCAB("gpt-2", list, EXTRA(more));

	/* The later of two equal texts is found: the control token. */
	open_vocab(&v);
	check_pieces(tokenizer, "<s>", 0, "<|s|>");	/* words: <, s, > */
	v.pre = "qwen2";
	open_vocab(&v);
	check_pieces(tokenizer, "<s>", 0, "<s|>");
	check_pieces(tokenizer, "<s>", 1, "<s>");
}
END_TEST

/* ---- special tokens ---- */

static const char *const hi[] = { "h i", "< h", "i >" };
static const struct bpe_token special[] = {
	{ "<|end|>", TOKEN_CONTROL }, { "<hi>", TOKEN_USER },
	{ "  ", TOKEN_USER }, { "<hi>!", TOKEN_USER },
	{ "<unk>", TOKEN_UNKNOWN }, { "<|x|>", TOKEN_UNUSED }
};

START_TEST(special_tokens_are_parsed_if_allowed_and_cut_the_text)
{
	struct bpe_vocab v = VOCAB("gpt-2", hi, EXTRA(special));

	open_vocab(&v);
	check_pieces(tokenizer, "hi<|end|>hi", 1, "hi|<|end|>|hi");
	check_pieces(tokenizer, "<|end|>", 0, "<|||e|n|d|||>");
	check_pieces(tokenizer, "hi<hi>hi", 0, "hi|<hi>|hi");
	check_pieces(tokenizer, "<hi>!!", 0, "<hi>!|!");
	check_pieces(tokenizer, "hi   hi", 0, "hi|  |" SP "|hi");
	check_pieces(tokenizer, "<unk>", 1, "<unk>");
	check_pieces(tokenizer, "<|x|>", 1, "<|||x|||>");
	/* No space is put in front. */
	check_pieces(tokenizer, "<|end|> hi", 1, "<|end|>|" SP "|hi");
}
END_TEST

START_TEST(the_pre_tokenizer_decides_whether_bos_is_added)
{
	static const struct { const char *pre; int adds; } of[] = {
		{ "llama-bpe", 1 }, { "tekken", 1 }, { "qwen2", 0 },
		{ "gpt-2", 0 }, { "deepseek-v3", 0 }
	};
	struct bpe_vocab v = VOCAB("", hi, EXTRA(special), .bos = 259);
	size_t i;

	for (i = 0; i < NITEMS(of); i++) {
		v.pre = of[i].pre;
		open_vocab(&v);
		ck_assert_int_eq(tokenizer_bos(tokenizer), 259);
		ck_assert_int_eq(tokenizer_adds_bos(tokenizer), of[i].adds);
	}
	/* No id: the default of SentencePiece does not apply. */
	v.bos = 0;
	open_vocab(&v);
	ck_assert_int_eq(tokenizer_bos(tokenizer), -1);
}
END_TEST

START_TEST(end_tokens_of_messages_do_not_end_a_gpt_oss_answer)
{
	static const struct bpe_token phi[] = { { "<|end|>", TOKEN_CONTROL } };
	static const struct bpe_token oss[] = {
		{ "<|end|>", TOKEN_CONTROL }, { "<|return|>", TOKEN_CONTROL },
		{ "<|call|>", TOKEN_CONTROL }
	};
	struct bpe_vocab v = VOCAB("gpt-4o", hi, EXTRA(phi));

	open_vocab(&v);
	ck_assert(tokenizer_is_end(tokenizer, 259));
	v.extra = oss;
	v.nextra = NITEMS(oss);
	open_vocab(&v);
	ck_assert(!tokenizer_is_end(tokenizer, 259));
	ck_assert(tokenizer_is_end(tokenizer, 260));
	ck_assert(tokenizer_is_end(tokenizer, 261));
}
END_TEST

/* ---- bytes ---- */

START_TEST(a_byte_without_a_token_is_left_out)
{
	static const struct bpe_token more[] = {
		{ "<unk>", TOKEN_UNKNOWN }, { "x", TOKEN_CONTROL }
	};
	struct bpe_vocab v = VOCAB("gpt-2", hi, .missing_byte = 'x');

	open_vocab(&v);
	check_pieces(tokenizer, "hi", 0, "hi");
	check_pieces(tokenizer, "xhixhx", 0, "hi|h");
	check_pieces(tokenizer, "x", 0, "");
	/* Neither a key nor a default of BPE names the unknown token, and text
	 * must not write a control token that spells the byte. */
	v.extra = more;
	v.nextra = NITEMS(more);
	open_vocab(&v);
	check_pieces(tokenizer, "xhix", 0, "hi");
}
END_TEST

static void
check_round_trip(const char *text, size_t nbytes)
{
	char *out = malloc(detokenizer_max(tokenizer));
	struct detokenizer d;
	size_t n, i, at = 0;
	uint32_t *ids;
	struct err e;
	int got = 0;

	ck_assert_ptr_nonnull(out);
	t_ok(tokenizer_encode(tokenizer, text, nbytes, 1, 0, &ids, &n, &e),
	    &e);
	detokenizer_init(&d, tokenizer, 1, 0);
	for (i = 0; i <= n && got >= 0; i++) {
		got = i < n ? detokenizer_push(&d, ids[i], out,
		    detokenizer_max(tokenizer)) : detokenizer_flush(&d, out,
		    detokenizer_max(tokenizer));
		if (got < 0 || (size_t)got > nbytes - at ||
		    memcmp(out, text + at, (size_t)got) != 0)
			break;
		at += (size_t)got;
	}
	ck_assert_uint_eq(at, nbytes);
	free(ids);
	free(out);
}

START_TEST(each_byte_survives_a_round_trip)
{
	struct bpe_vocab v = VOCAB("llama-bpe", hi, EXTRA(special));
	char all[512], one;
	unsigned c;

	open_vocab(&v);
	for (c = 0; c < 256; c++) {
		one = (char)c;
		check_round_trip(&one, 1);
		all[2 * c] = one;
		all[2 * c + 1] = (char)(c * 7);
	}
	check_round_trip(all, sizeof(all));
	check_round_trip(" a", 2);		/* no prefix is dropped */
	check_round_trip("<hi>  \xe2\x96\x81", 9);
}
END_TEST

START_TEST(token_texts_that_spell_no_bytes_decode_unchanged)
{
	/* A literal space and line break, U+2581, U+0145, a lone lead byte. */
	static const struct bpe_token odd[] = {
		{ "a b\n", TOKEN_NORMAL }, { "\xe2\x96\x81", TOKEN_NORMAL },
		{ "\xc5\x85x", TOKEN_NORMAL }, { "x\xc4", TOKEN_NORMAL },
		{ SP "\xc5\x83", TOKEN_NORMAL }
	};
	static const struct { const char *out; int n; } want[] = {
		{ "a b\n", 4 }, { "\xe2\x96\x81", 3 }, { "\xc5\x85x", 3 },
		{ "x", 1 }, { "\xc4 \xad", 3 }
	};
	struct bpe_vocab v = VOCAB("gpt-2", hi, EXTRA(odd));
	struct detokenizer d;
	char out[64];
	unsigned i;

	open_vocab(&v);
	detokenizer_init(&d, tokenizer, 1, 0);
	for (i = 0; i < NITEMS(odd); i++) {
		ck_assert_int_eq(detokenizer_push(&d, 259 + i, out,
		    sizeof(out)), want[i].n);
		ck_assert_mem_eq(out, want[i].out, want[i].n);
	}
}
END_TEST

/* ---- files that are refused ---- */

START_TEST(bad_merges_are_refused_by_number_and_text)
{
	static const char *const odd[] = { "a b", "ab" };
	static const char *const absent[] = { "a b", "ab zz" };
	static const char *const twice[] = { "a b", "a b", "ab a" };
	/* More than are searched at once; two are bad. */
	static const char *const late[] = { "a a", "a b", "a c", "a d", "a e",
	    "a f", "a g", "a h", "a i", "a j", "a k", "a l", "a m", "a n",
	    "a o", "a p", "a q", "a r", "a zz", "as" };
	static const struct bpe_token zz[] = { { "zz", TOKEN_NORMAL } };
	struct bpe_vocab v = VOCAB("gpt-2", odd);
	struct bpe_vocab w = VOCAB("gpt-2", absent);
	struct bpe_vocab t = VOCAB("gpt-2", twice);
	struct bpe_vocab l = VOCAB("gpt-2", late);

	check_refused(&l, -EBADMSG, "merges, 18: \"a zz\" merges a text");
	check_refused(&v, -EBADMSG, "merges, 1: \"ab\" is not two texts");
	check_refused(&w, -EBADMSG, "\"ab zz\" merges a text that is no");
	w.extra = zz;
	w.nextra = 1;
	open_vocab(&w);
	open_vocab(&t);
	check_pieces(tokenizer, "aba", 0, "aba");
	v.no_merges = 1;
	check_refused(&v, -EBADMSG, "tokenizer.ggml.merges is missing");
}
END_TEST

START_TEST(an_unknown_pre_tokenizer_is_refused_by_name)
{
	struct bpe_vocab v = VOCAB("gpt-5o", hi);

	check_refused(&v, -ENOTSUP, "\"gpt-5o\", an unknown pre-tokenizer");
}
END_TEST

/* ---- naive implementation ---- */

enum { MAX_MERGES = 60, LETTERS = 4 };

/* The definition of BPE: repeatedly apply the first merge of the list that
 * applies anywhere, at its leftmost place.  out gets the pieces, separated by
 * |. */
static void
merge_naively(const char *const *merge, unsigned nmerges, const char *text,
    char *out)
{
	unsigned n = (unsigned)strlen(text), i, m, end[64];
	char both[80];

	for (i = 0; i < n; i++)
		end[i] = i + 1;
	for (m = 0; m < nmerges; ) {
		for (i = 0; i + 1 < n; i++) {
			unsigned from = i > 0 ? end[i - 1] : 0;

			snprintf(both, sizeof(both), "%.*s %.*s",
			    (int)(end[i] - from), text + from,
			    (int)(end[i + 1] - end[i]), text + end[i]);
			if (strcmp(both, merge[m]) == 0)
				break;
		}
		if (i + 1 >= n) {
			m++;
			continue;
		}
		n--;
		memmove(&end[i], &end[i + 1], (n - i) * sizeof(end[0]));
		m = 0;
	}
	for (i = 0; i < n; i++)
		out += sprintf(out, "%s%.*s", i > 0 ? "|" : "",
		    (int)(end[i] - (i > 0 ? end[i - 1] : 0)),
		    text + (i > 0 ? end[i - 1] : 0));
	*out = '\0';
}

/* Draw merges of letters and of products of earlier merges. */
static unsigned
draw_merges(char (*merge)[64])
{
	unsigned n = (unsigned)t_rand_below(MAX_MERGES), i, k;
	char part[2][32];

	for (i = 0; i < n; i++) {
		for (k = 0; k < 2; k++) {
			unsigned from = (unsigned)t_rand_below(LETTERS + i);
			char *space;

			if (from < LETTERS) {
				snprintf(part[k], sizeof(part[k]), "%c",
				    'a' + from);
				continue;
			}
			memcpy(part[k], merge[from - LETTERS], 31);
			part[k][31] = '\0';
			space = strchr(part[k], ' ');
			memmove(space, space + 1, strlen(space));
			if (strlen(part[k]) > 12)
				strcpy(part[k], "a");
		}
		snprintf(merge[i], 64, "%s %s", part[0], part[1]);
	}
	return n;
}

START_TEST(random_merges_agree_with_the_definition)
{
	static char merge[MAX_MERGES][64];
	static const char *list[MAX_MERGES];
	struct bpe_vocab v = { .pre = "qwen2", .merge = list };
	char text[64], want[256];
	unsigned round, i, k;
	size_t n;

	for (i = 0; i < MAX_MERGES; i++)
		list[i] = merge[i];
	for (round = 0; round < 60; round++) {
		v.nmerges = draw_merges(merge);
		open_vocab(&v);
		for (k = 0; k < 40; k++) {
			n = t_rand_below(40);
			for (i = 0; i < n; i++)
				text[i] = (char)('a' + t_rand_below(LETTERS));
			text[n] = '\0';
			merge_naively(list, v.nmerges, text, want);
			check_pieces(tokenizer, text, 0, want);
		}
	}
}
END_TEST

/* A word of half a million letters: quadratic merging would take minutes. */
START_TEST(long_words_take_near_linear_time)
{
	static const char *const list[] = {
		"a a", "aa aa", "aaaa aaaa", "a b", "b a"
	};
	struct bpe_vocab v = VOCAB("gpt-2", list);
	enum { LEN = 500000 };
	char *text = malloc(LEN);
	size_t i;

	ck_assert_ptr_nonnull(text);
	open_vocab(&v);
	memset(text, 'a', LEN);
	check_round_trip(text, LEN);
	for (i = 0; i < LEN; i++)
		text[i] = (char)('a' + t_rand_below(2));
	check_round_trip(text, LEN);
	free(text);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_first_merge_of_the_list_applies_first_then_the_leftmost,
		merges_stay_within_words,
		a_word_that_is_a_token_is_not_merged_for_some_models,
		merges_never_produce_a_control_token,
		special_tokens_are_parsed_if_allowed_and_cut_the_text,
		the_pre_tokenizer_decides_whether_bos_is_added,
		end_tokens_of_messages_do_not_end_a_gpt_oss_answer,
		a_byte_without_a_token_is_left_out,
		each_byte_survives_a_round_trip,
		token_texts_that_spell_no_bytes_decode_unchanged,
		bad_merges_are_refused_by_number_and_text,
		an_unknown_pre_tokenizer_is_refused_by_name,
		random_merges_agree_with_the_definition,
		long_words_take_near_linear_time
	};
	int rc = t_main("bpe", 60, tests, NITEMS(tests));

	vocab_close(&gguf, &tokenizer);		/* for CK_FORK=no */
	return rc;
}
