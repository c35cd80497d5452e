/* tests/unit/tokenizer.c - tests of the tokenizer: encoding and decoding,
 * checked by hand on vocabularies of a few tokens; files that are refused. */
#include "tests/support/t.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/detokenizer.h"
#include "tests/support/token_ids.h"
#include "tests/support/gguf_writer.h"

#define MARK	"\xe2\x96\x81"		/* U+2581 */

struct tok {
	const char *text;
	float score;
	int32_t kind;
};

#define N(text, score)	{ text, score, TOKEN_NORMAL }
#define USER(text)	{ text, 0, TOKEN_USER }
#define CONTROL(text)	{ text, 0, TOKEN_CONTROL }
#define BYTE(text)	{ text, 0, TOKEN_BYTE }
#define FIRST		{ "<unk>", 0, TOKEN_UNKNOWN }, \
			CONTROL("<s>"), CONTROL("</s>")

/* Content of a file.  more_scores and more_kinds change the length of a
 * list. */
struct vocab {
	const struct tok *tok;
	unsigned ntok;
	const char *model;		/* NULL = leave the key out */
	const char *name;		/* general.name; NULL = leave it out */
	int no_tokens, no_scores, no_kinds, no_prefix;
	int more_scores, more_kinds;
	const char *id_key;		/* another key; or NULL */
	uint32_t id;
};

#define VOCAB(toks, ...) \
	{ .tok = toks, .ntok = NITEMS(toks), .model = "llama", \
	  __VA_ARGS__ }

static void
save_vocab(const struct vocab *v, const char *path)
{
	struct gguf_writer w;
	unsigned i, n;

	gw_open(&w);
	gw_kv_str(&w, "general.architecture", "llama");
	if (v->name != NULL)
		gw_kv_str(&w, "general.name", v->name);
	if (v->model != NULL)
		gw_kv_str(&w, "tokenizer.ggml.model", v->model);
	if (!v->no_tokens) {
		gw_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, v->ntok);
		for (i = 0; i < v->ntok; i++)
			gw_str(&w, v->tok[i].text);
	}
	if (!v->no_scores) {
		n = v->ntok + (unsigned)v->more_scores;
		gw_array(&w, "tokenizer.ggml.scores", GGUF_F32, n);
		for (i = 0; i < n; i++)
			gw_bytes(&w, &v->tok[i % v->ntok].score, 4);
	}
	if (!v->no_kinds) {
		n = v->ntok + (unsigned)v->more_kinds;
		gw_array(&w, "tokenizer.ggml.token_type", GGUF_I32, n);
		for (i = 0; i < n; i++)
			gw_bytes(&w, &v->tok[i % v->ntok].kind, 4);
	}
	if (v->no_prefix)
		gw_kv_bool(&w, "tokenizer.ggml.add_space_prefix", 0);
	if (v->id_key != NULL)
		gw_kv_u32(&w, v->id_key, v->id);
	gw_save(&w, path);
	gw_close(&w);
}

static struct gguf *gguf;
static struct tokenizer *tokenizer;

static int
try_vocab(const struct vocab *v, struct err *e)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/vocab.gguf", t_tmpdir());
	save_vocab(v, path);
	return vocab_open(&gguf, &tokenizer, path, e);
}

static const struct tokenizer *
open_vocab(const struct vocab *v)
{
	struct err e;

	t_ok(try_vocab(v, &e), &e);
	return tokenizer;
}

/* Assert that the file is refused with rc and these words. */
static void
check_refused(const struct vocab *v, int rc, const char *words)
{
	struct err e = { .kind = ERR_NONE };

	ck_assert_int_eq(try_vocab(v, &e), rc);
	ck_assert_ptr_null(tokenizer);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_msg(strstr(e.msg, words) != NULL, "\"%s\" lacks \"%s\"",
	    e.msg, words);
}

/* Assert that these ids decode to a text, from its start. */
static void
check_decoded(size_t n, const uint32_t *ids, int special, const char *want)
{
	char out[256];
	size_t len = 0, i;
	struct detokenizer d;

	detokenizer_init(&d, tokenizer, 1, special);
	for (i = 0; i < n; i++) {
		int got = detokenizer_push(&d, ids[i], out + len,
		    sizeof(out) - len);

		ck_assert_int_ge(got, 0);
		len += (size_t)got;
	}
	ck_assert_uint_eq(len, strlen(want));
	ck_assert_mem_eq(out, want, len);
}

/* ---- encoding, by hand ---- */

static const struct tok letters[] = {
	FIRST, N(MARK, -20), N("a", -20), N("b", -20), N("c", -20),
	N("ab", -2), N("bc", -1), N("aa", -3), N(MARK "a", -4), N("bca", -5),
	BYTE("<0x41>"), BYTE("<0xC3>"), BYTE("<0x84>"), BYTE("<0xFF>")
};

START_TEST(the_best_score_merges_first_then_the_leftmost)
{
	struct vocab v = VOCAB(letters, .no_prefix = 1);

	open_vocab(&v);
	check_ids(tokenizer, "", 0, 0, NULL);
	check_ids(tokenizer, "ab", 0, IDS(7));
	check_ids(tokenizer, "abc", 0, IDS(4, 8));	/* bc before ab */
	check_ids(tokenizer, "aaa", 0, IDS(9, 4));
	check_ids(tokenizer, "aaaa", 0, IDS(9, 9));
	check_ids(tokenizer, "abca", 0, IDS(4, 11));	/* bc, then bca */
	check_ids(tokenizer, "aabc", 0, IDS(9, 8));
	check_ids(tokenizer, "aab", 0, IDS(4, 7));	/* ab leaves no aa */
	check_ids(tokenizer, "a a", 0, IDS(4, 10));
}
END_TEST

START_TEST(a_space_is_put_in_front_unless_the_file_disables_it)
{
	struct vocab v = VOCAB(letters, .no_prefix = 0);

	open_vocab(&v);
	check_ids(tokenizer, "", 0, 0, NULL);
	check_ids(tokenizer, "b", 0, IDS(3, 5));
	check_ids(tokenizer, "a", 0, IDS(10));
	check_ids(tokenizer, "aa", 0, IDS(3, 9));
	check_ids(tokenizer, " a", 0, IDS(3, 10));
	v.no_prefix = 1;
	open_vocab(&v);
	check_ids(tokenizer, "a", 0, IDS(4));
	check_ids(tokenizer, " a", 0, IDS(10));
}
END_TEST

START_TEST(text_without_a_token_becomes_bytes_or_unknown)
{
	static const struct tok few[] = { N("a", 0), BYTE("<0x41>") };
	struct vocab v = VOCAB(letters, .no_prefix = 1);
	static const struct tok end[] = {
		N("a", 0), N("b", 0), N("c", 0), CONTROL("<pad>")
	};
	struct vocab poor = VOCAB(few, .no_prefix = 1);
	/* The unknown token is a control token: plain text must not write it. */
	struct vocab ends = VOCAB(end, .no_prefix = 1,
	    .id_key = "tokenizer.ggml.unknown_token_id", .id = 3);

	open_vocab(&v);
	check_ids(tokenizer, "A", 0, IDS(12));
	check_ids(tokenizer, "a\xc3\x84" "b", 0, IDS(4, 13, 14, 5));
	check_ids(tokenizer, "\xff" "a\xc3" "bc", 0, IDS(15, 4, 13, 8));
	/* A run is one unknown token; a character is not split between byte
	 * tokens and the unknown one. */
	check_ids(tokenizer, "aZa", 0, IDS(4, 0, 4));
	check_ids(tokenizer, "aZYXaZ", 0, IDS(4, 0, 4, 0));
	check_ids(tokenizer, "a\xc3\x85Za", 0, IDS(4, 0, 4));
	open_vocab(&poor);
	check_ids(tokenizer, "aAZ", 0, IDS(0, 1));
	check_ids(tokenizer, "ZaZ", 0, IDS(0));
	open_vocab(&ends);
	check_ids(tokenizer, "aZa", 0, IDS(0, 0));
}
END_TEST

START_TEST(a_merge_may_cross_a_space_if_a_token_does)
{
	static const struct tok toks[] = {
		FIRST, N(MARK, -9), N("a", -9), N("b", -9), N("a" MARK, -2),
		N("a" MARK "b", -1), N(MARK "b", -3)
	};
	struct vocab v = VOCAB(toks, .no_prefix = 1);

	open_vocab(&v);
	check_ids(tokenizer, "a b", 0, IDS(7));
	check_ids(tokenizer, "a a b", 0, IDS(6, 7));
	check_ids(tokenizer, "b b", 0, IDS(5, 8));
}
END_TEST

START_TEST(runs_of_spaces_merge_before_the_word)
{
	static const struct tok toks[] = {
		FIRST, N(MARK, -9), N("a", -9), N(MARK MARK, -1),
		N(MARK "a", -3), N(MARK MARK "a", -2)
	};
	struct vocab v = VOCAB(toks, .no_prefix = 1);

	open_vocab(&v);
	check_ids(tokenizer, "a  a", 0, IDS(4, 7));
	check_ids(tokenizer, "   a ", 0, IDS(5, 6, 3));
	check_ids(tokenizer, "    ", 0, IDS(5, 5));
}
END_TEST

START_TEST(the_last_of_equal_texts_is_used)
{
	static const struct tok toks[] = {
		N("a", -1), N("", 0), N("a", -1), N("", 0)
	};
	struct vocab v = VOCAB(toks, .no_prefix = 1);

	open_vocab(&v);
	check_ids(tokenizer, "aa", 0, IDS(2, 2));
}
END_TEST

/* ---- special tokens ---- */

static const struct tok chat[] = {
	FIRST, N(MARK, -9), N("h", -9), N("i", -9), N("hi", -1), N("\n", -9),
	N("<", -9), N(">", -9), N("s", -9), N("<s", -2),
	CONTROL("<|user|>"), CONTROL("<|end|>"), USER("<hi>"), USER("<hi>!"),
	N("!", -9), N("|", -9), USER("[hi]")
};

START_TEST(user_tokens_are_always_cut_out_the_longest_first)
{
	struct vocab v = VOCAB(chat, .no_prefix = 1);

	open_vocab(&v);
	check_ids(tokenizer, "hi<hi>hi", 0, IDS(6, 14, 6));
	check_ids(tokenizer, "<hi>!<hi>", 0, IDS(15, 14));
	check_ids(tokenizer, "<<hi>!!", 0, IDS(8, 15, 16));
	check_ids(tokenizer, "[hi]<hi>[hi", 0, IDS(18, 14, 0, 6));
}
END_TEST

START_TEST(control_tokens_are_parsed_only_on_request)
{
	struct vocab v = VOCAB(chat, .no_prefix = 1);

	open_vocab(&v);
	check_ids(tokenizer, "<s>hi</s>", 1, IDS(1, 6, 2));
	/* "<s" + ">" spells <s>: merging must not make a control token. */
	check_ids(tokenizer, "<s>", 0, IDS(11, 9));
	check_ids(tokenizer, "<unk>", 1, IDS(0));
	check_ids(tokenizer, "<|end|><|end|>", 1, IDS(13, 13));
}
END_TEST

START_TEST(text_after_a_special_token_gets_a_space)
{
	struct vocab v = VOCAB(chat, .no_prefix = 0);

	open_vocab(&v);
	check_ids(tokenizer, "hi<s>hi", 1, IDS(3, 6, 1, 3, 6));
	check_ids(tokenizer, "<hi>\nhi", 0, IDS(14, 3, 7, 6));
}
END_TEST

/* Assert that parts encode to exactly these n ids. */
static void
check_parts(const struct text_part *part, size_t nparts, int flags, size_t n,
    const uint32_t *want)
{
	uint32_t *ids;
	size_t got;
	struct err e;

	t_ok(tokenizer_encode_parts(tokenizer, part, nparts, flags, &ids, &got,
	    &e), &e);
	ck_assert_uint_eq(got, n);
	ck_assert(n == 0 || memcmp(ids, want, n * sizeof(*ids)) == 0);
	free(ids);
}

START_TEST(control_tokens_are_parsed_only_in_special_parts)
{
	static const struct text_part turn[] = {
		{ "<|user|>", 8, 1 }, { "<s>h", 4, 0 }, { "i<|end|>", 8, 1 }
	};
	static const struct text_part torn[] = {
		{ "<|us", 4, 1 }, { "er|><h", 6, 0 }, { "i><s>", 5, 1 }
	};
	struct vocab v = VOCAB(chat, .no_prefix = 1);

	open_vocab(&v);
	/* Otherwise parts are one text: h and i merge. */
	check_parts(turn, 3, 0, IDS(12, 11, 9, 6, 13));
	check_parts(torn, 3, 0, IDS(8, 17, 0, 10, 0, 17, 9, 14, 1));
	check_parts(turn, 0, ENCODE_BOS, IDS(1));
	v.no_prefix = 0;
	open_vocab(&v);
	check_parts(turn + 2, 1, 0, IDS(3, 5, 13));
	check_parts(turn + 2, 1, ENCODE_MORE, IDS(5, 13));
	ck_assert_int_eq(tokenizer_special(tokenizer, "<|end|>"), 13);
	ck_assert_int_eq(tokenizer_special(tokenizer, "<hi>"), 14);
	ck_assert_int_eq(tokenizer_special(tokenizer, "hi"), -1);
	ck_assert_int_eq(tokenizer_special(tokenizer, "none"), -1);
}
END_TEST

START_TEST(phi3_special_tokens_swallow_the_blanks_after_them)
{
	struct vocab v = VOCAB(chat, .no_prefix = 1, .name = "Phi-3-mini");

	open_vocab(&v);
	check_ids(tokenizer, "<|user|> \n hi <|end|>\n", 1, IDS(12, 6, 3, 13));
	check_ids(tokenizer, "<s> hi", 1, IDS(1, 3, 6));
	check_ids(tokenizer, "<hi>\n!", 0, IDS(14, 16));
	v.name = NULL;
	open_vocab(&v);
	check_ids(tokenizer, "<|user|>\nhi", 1, IDS(12, 7, 6));
}
END_TEST

START_TEST(gemma_has_no_prefix_and_has_tokens_for_runs_of_blanks)
{
	static const struct tok toks[] = {
		{ "<pad>", 0, TOKEN_CONTROL }, CONTROL("<eos>"),
		CONTROL("<bos>"), { "<unk>", 0, TOKEN_UNKNOWN },
		CONTROL("<start_of_turn>"), CONTROL("<end_of_turn>"),
		USER("\n"), USER("\n\n"), USER("  "), USER("   "), USER("<b>"),
		N(MARK, -9), N("h", -9), N("i", -9), N("hi", -1),
		N(MARK "hi", -2), N(MARK "h", -3), BYTE("<0x0A>")
	};
	struct vocab v = VOCAB(toks, .no_prefix = 1,
	    .id_key = "tokenizer.ggml.bos_token_id", .id = 2);

	open_vocab(&v);
	check_ids(tokenizer, "hi hi", 0, IDS(14, 15));
	check_ids(tokenizer, "   hi", 0, IDS(9, 14));
	check_ids(tokenizer, "     hi", 0, IDS(9, 8, 14));	/* 3 and 2 */
	check_ids(tokenizer, "hi\n\n\nhi", 0, IDS(14, 7, 6, 14));
	check_ids(tokenizer, "<b> hi<b>", 0, IDS(10, 15, 10));
	check_ids(tokenizer, "<start_of_turn>hi<end_of_turn>\n", 1,
	    IDS(4, 14, 5, 6));
	ck_assert_int_eq(tokenizer_bos(tokenizer), 2);
	ck_assert(tokenizer_is_end(tokenizer, 5));
	check_decoded(IDS(2, 9, 14, 8, 15, 7), 0, "   hi   hi\n\n");
}
END_TEST

START_TEST(bos_comes_first_if_requested_and_known)
{
	static const struct {
		const char *text;
		size_t n;
	} written[] = { { "<s>hi", 2 }, { "<s>", 1 }, { "<s><s>hi", 3 } };
	struct vocab v = VOCAB(chat, .no_prefix = 1);
	uint32_t *ids;
	size_t n, i;
	struct err e;

	open_vocab(&v);
	ck_assert_int_eq(tokenizer_bos(tokenizer), 1);
	ck_assert(tokenizer_is_end(tokenizer, 2));
	ck_assert(tokenizer_adds_bos(tokenizer));
	t_ok(tokenizer_encode(tokenizer, "hi", 2, 1, 0, &ids, &n, &e), &e);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(ids[0], 1);
	ck_assert_uint_eq(ids[1], 6);
	free(ids);
	/* It comes once, whoever writes it, unless the text writes more. */
	for (i = 0; i < NITEMS(written); i++) {
		t_ok(tokenizer_encode(tokenizer, written[i].text,
		    strlen(written[i].text), 1, 1, &ids, &n, &e), &e);
		ck_assert_uint_eq(n, written[i].n);
		ck_assert_uint_eq(ids[0], 1);
		ck_assert_int_eq(n > 1 && ids[1] == 1, written[i].n == 3);
		free(ids);
	}
	/* Without types, token 1 is not known as a control token. */
	v.no_kinds = 1;
	open_vocab(&v);
	ck_assert_int_eq(tokenizer_bos(tokenizer), -1);
	ck_assert(!tokenizer_adds_bos(tokenizer));
	ck_assert_int_eq(tokenizer_kind(tokenizer, 1), TOKEN_NORMAL);
	check_ids(tokenizer, "<s>", 1, IDS(1));
}
END_TEST

START_TEST(turns_end_at_eos_eot_and_known_control_tokens)
{
	static const char *const keys[] = {
		"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"
	};
	uint32_t id;
	size_t i;

	for (i = 0; i < NITEMS(keys); i++) {
		struct vocab v = VOCAB(chat, .id_key = keys[i], .id = 12);

		open_vocab(&v);
		for (id = 0; id < NITEMS(chat) + 2; id++)
			ck_assert_int_eq(tokenizer_is_end(tokenizer, id),
			    id == 2 || id == 12 || id == 13);
		ck_assert(!tokenizer_is_end(tokenizer, UINT32_MAX));
	}
}
END_TEST

/* ---- files that are refused ---- */

START_TEST(inconsistent_lists_are_refused_by_name)
{
	static const struct tok nan_score[] = { N("a", 0), N("b", NAN) };
	static const struct tok odd_kind[] = { N("a", 0), { "b", 0, 7 } };
	struct vocab good = VOCAB(chat, .no_prefix = 0), v;
	struct vocab nans = VOCAB(nan_score, .no_prefix = 0);
	struct vocab kinds = VOCAB(odd_kind, .no_prefix = 0);

	v = good, v.no_tokens = 1;
	check_refused(&v, -EBADMSG, "tokenizer.ggml.tokens is missing");
	v = good, v.more_scores = 1;
	check_refused(&v, -EBADMSG, "tokenizer.ggml.scores has 20 elements");
	v = good, v.more_scores = -1;
	check_refused(&v, -EBADMSG, "tokenizer.ggml.scores has 18 elements");
	v = good, v.more_kinds = -1;
	check_refused(&v, -EBADMSG, "tokenizer.ggml.token_type has 18");
	v = good, v.ntok = 0;
	v.no_scores = v.no_kinds = 1;
	check_refused(&v, -EBADMSG, "tokenizer.ggml.tokens has 0");
	check_refused(&nans, -EBADMSG, "token 1: its score is NaN");
	check_refused(&kinds, -EBADMSG, "token 1: its type is 7");
}
END_TEST

/* A key that a sound model does not need must not stop it. */
START_TEST(ids_outside_the_vocabulary_are_as_good_as_missing)
{
	static const char *const keys[] = {
		"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
		"tokenizer.ggml.unknown_token_id",
		"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
		"tokenizer.ggml.padding_token_id"
	};
	static const uint32_t ids[] = { NITEMS(chat), INT32_MAX, UINT32_MAX };
	size_t i, k;

	for (i = 0; i < NITEMS(keys); i++) {
		for (k = 0; k < NITEMS(ids); k++) {
			struct vocab v = VOCAB(chat, .no_prefix = 1,
			    .id_key = keys[i], .id = ids[k]);

			open_vocab(&v);
			ck_assert_int_eq(tokenizer_bos(tokenizer), 1);
			ck_assert(tokenizer_is_end(tokenizer, 2));
			ck_assert(!tokenizer_is_end(tokenizer, ids[k]));
			check_ids(tokenizer, "Z", 0, IDS(0));
		}
	}
}
END_TEST

START_TEST(unsupported_tokenizers_are_refused_by_name)
{
	struct vocab v = VOCAB(chat, .no_prefix = 0);

	v.model = "bert";
	check_refused(&v, -ENOTSUP, "\"bert\"; supported: \"llama\" (Sent");
	v.model = "llama2";
	check_refused(&v, -ENOTSUP, "\"llama2\"");
	v.model = NULL;
	check_refused(&v, -ENOTSUP, "no tokenizer in this file");
}
END_TEST

/* ---- decoding ---- */

START_TEST(the_decoder_emits_whole_characters)
{
	static const struct tok toks[] = {
		BYTE("<0xE2>"), BYTE("<0x82>"), BYTE("<0xAC>"), N("a", 0),
		N("\xac" "b", 0), BYTE("<0xF0>"), CONTROL("<s>")
	};
	/* id, and the result of its push */
	static const struct { uint32_t id; const char *out; } steps[] = {
		{ 0, "" }, { 1, "" }, { 2, "\xe2\x82\xac" },	/* euro */
		{ 0, "" }, { 1, "" }, { 4, "\xe2\x82\xac" "b" },
		{ 0, "" }, { 3, "\xe2" "a" },		/* invalid UTF-8 */
		{ 1, "\x82" }, { 2, "\xac" },
		{ 0, "" }, { 0, "\xe2" }, { 1, "" }, { 6, "" },
		{ 5, "\xe2\x82" }
	};
	struct vocab v = VOCAB(toks, .no_prefix = 1);
	struct detokenizer d;
	char out[64];
	size_t i;
	int n;

	detokenizer_init(&d, open_vocab(&v), 1, 0);
	ck_assert_uint_le(detokenizer_max(tokenizer), sizeof(out));
	for (i = 0; i < NITEMS(steps); i++) {
		n = detokenizer_push(&d, steps[i].id, out, sizeof(out));
		ck_assert_int_eq(n, (int)strlen(steps[i].out));
		ck_assert_mem_eq(out, steps[i].out, n);
	}
	ck_assert_int_eq(detokenizer_flush(&d, out, 0), -ENOBUFS);
	ck_assert_int_eq(detokenizer_flush(&d, out, sizeof(out)), 1);
	ck_assert_int_eq(out[0], (char)0xf0);
	ck_assert_int_eq(detokenizer_flush(&d, out, sizeof(out)), 0);
	ck_assert_int_eq(detokenizer_push(&d, NITEMS(toks), out, sizeof(out)),
	    -EINVAL);
	ck_assert_int_eq(detokenizer_push(&d, 0, out,
	    detokenizer_max(tokenizer) - 1), -ENOBUFS);
}
END_TEST

START_TEST(decoding_drops_the_prefix_and_control_tokens)
{
	static const struct tok toks[] = {
		FIRST, N(MARK "a", 0), N(MARK, 0), USER(" u" MARK),
		{ "x", 0, TOKEN_UNUSED }
	};
	struct vocab v = VOCAB(toks, .no_prefix = 0);
	struct detokenizer d;
	char out[64];

	open_vocab(&v);
	check_decoded(IDS(3, 3), 0, "a a");
	check_decoded(IDS(1, 3, 2), 0, "a");
	check_decoded(IDS(1, 3, 2, 0), 1, "<s>a</s><unk>");
	check_decoded(IDS(4, 4, 3), 0, "  a");
	check_decoded(IDS(5, 3), 0, " u" MARK " a");	/* as cut out */
	check_decoded(IDS(6, 3), 0, "x a");
	detokenizer_init(&d, tokenizer, 0, 0);	/* not at the start */
	ck_assert_int_eq(detokenizer_push(&d, 3, out, sizeof(out)), 2);
	ck_assert_mem_eq(out, " a", 2);
	v.no_prefix = 1;
	open_vocab(&v);
	check_decoded(IDS(3), 0, " a");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_best_score_merges_first_then_the_leftmost,
		a_space_is_put_in_front_unless_the_file_disables_it,
		text_without_a_token_becomes_bytes_or_unknown,
		a_merge_may_cross_a_space_if_a_token_does,
		runs_of_spaces_merge_before_the_word,
		the_last_of_equal_texts_is_used,
		user_tokens_are_always_cut_out_the_longest_first,
		control_tokens_are_parsed_only_on_request,
		text_after_a_special_token_gets_a_space,
		control_tokens_are_parsed_only_in_special_parts,
		phi3_special_tokens_swallow_the_blanks_after_them,
		gemma_has_no_prefix_and_has_tokens_for_runs_of_blanks,
		bos_comes_first_if_requested_and_known,
		turns_end_at_eos_eot_and_known_control_tokens,
		inconsistent_lists_are_refused_by_name,
		ids_outside_the_vocabulary_are_as_good_as_missing,
		unsupported_tokenizers_are_refused_by_name,
		the_decoder_emits_whole_characters,
		decoding_drops_the_prefix_and_control_tokens
	};
	int rc = t_main("tokenizer", 60, tests, NITEMS(tests));

	vocab_close(&gguf, &tokenizer);		/* for CK_FORK=no */
	return rc;
}
