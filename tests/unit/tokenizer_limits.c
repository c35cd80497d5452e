/* tests/unit/tokenizer_limits.c - tests of hostile vocabularies and texts: tables
 * whose keys collide, special tokens that overlap, work that is interrupted. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/split.h"
#include "tests/support/bpe_vocab.h"
#include "tests/support/token_ids.h"

static struct gguf *gguf;
static struct tokenizer *tokenizer;

static int
try_vocab(const struct bpe_vocab *v, struct err *e)
{
	return bpe_vocab_open(&gguf, &tokenizer, v, "limits.gguf", e);
}

static void
open_vocab(const struct bpe_vocab *v)
{
	struct err e;

	t_ok(try_vocab(v, &e), &e);
}

/* FNV-1a without a key, which this program once used. */
static uint32_t
fnv(const char *text)
{
	uint32_t h = UINT32_C(2166136261);

	for (; *text != '\0'; text++)
		h = (h ^ (uint8_t)*text) * UINT32_C(16777619);
	return h ^ h >> 15;
}

/* Sum of the distances of all entries from the slots of their hashes: what
 * building the table took, beside one step for each. */
static uint64_t
displacement(const struct vocab *v)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i <= v->slot_mask; i++) {
		if (v->slot[i].id != NO_TOKEN)
			sum += (i - v->slot[i].hash) & v->slot_mask;
	}
	return sum;
}

enum { NCOLLIDING = 3000, TEXT_LEN = 12 };

/* Texts whose unkeyed hashes agree in the 13 bits that select a slot. */
static void
make_colliding(struct bpe_token *tok, char (*text)[TEXT_LEN])
{
	uint32_t i, n = 0;

	for (i = 0; n < NCOLLIDING; i++) {
		snprintf(text[n], TEXT_LEN, "%x~", i);
		if (fnv(text[n]) % 8192 > 15)
			continue;
		tok[n] = (struct bpe_token){ text[n], TOKEN_NORMAL };
		n++;
	}
}

START_TEST(texts_made_to_collide_are_spread_over_the_table)
{
	char (*text)[TEXT_LEN] = calloc(NCOLLIDING + 1, sizeof(*text));
	struct bpe_token *tok = calloc(NCOLLIDING, sizeof(*tok));
	struct bpe_vocab bv = { .pre = "gpt-2", .extra = tok,
	    .nextra = NCOLLIDING };
	struct vocab v, w;
	struct err e;

	make_colliding(tok, text);
	open_vocab(&bv);
	t_ok(vocab_init(&v, gguf, 0, &e), &e);
	/* As many slots as the texts were made for. */
	ck_assert_uint_eq(v.slot_mask, 8191);
	/* n * n / 2 with the unkeyed hash; half a step each is usual. */
	ck_assert_uint_lt(displacement(&v), 4 * v.n);
	ck_assert_int_eq(vocab_find(&v, text[7], strlen(text[7])), 256 + 7);
	/* Each table has a key of its own. */
	t_ok(vocab_init(&w, gguf, 0, &e), &e);
	ck_assert_mem_ne(&v.key, &w.key, sizeof(v.key));
	vocab_done(&v);
	vocab_done(&w);
	free(tok);
	free(text);
}
END_TEST

/* Key 00 01 ... 0f, bytes 00 01 ...: computed in Python by the definition, which
 * gave CPython's hash() of strings (siphash13) as well. */
START_TEST(hashes_are_siphash_1_3)
{
	static const struct {
		size_t n;
		uint64_t want;
	} of[] = {
		{ 0, UINT64_C(0xabac0158050fc4dc) },
		{ 1, UINT64_C(0xc9f49bf37d57ca93) },
		{ 7, UINT64_C(0xd3927d989bb11140) },
		{ 8, UINT64_C(0x369095118d299a8e) },
		{ 9, UINT64_C(0x25a48eb36c063de4) },
		{ 15, UINT64_C(0xd320d86d2a519956) },
		{ 16, UINT64_C(0xcc4fdd1a7d908b66) },
		{ 20, UINT64_C(0xc0dc2f46a6cce040) }
	};
	struct hash_key key = { { UINT64_C(0x0706050403020100),
	    UINT64_C(0x0f0e0d0c0b0a0908) } };
	uint8_t bytes[20];
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (i = 0; i < NITEMS(of); i++)
		ck_assert_uint_eq(hash_bytes(&key, bytes, of[i].n), of[i].want);
	ck_assert_uint_eq(hash_number(&key, key.k[0]),
	    UINT64_C(0x369095118d299a8e));
}
END_TEST

START_TEST(the_leftmost_special_token_wins_then_the_longest)
{
	static const struct bpe_token toks[] = {
		{ "ab", TOKEN_USER }, { "bcd", TOKEN_USER },
		{ "abcx", TOKEN_USER }, { "<c>", TOKEN_CONTROL },
		{ "<c><c>", TOKEN_CONTROL }, { "c><", TOKEN_USER },
		{ "aa", TOKEN_USER }, { "aaa", TOKEN_CONTROL }
	};
	struct bpe_vocab v = { .pre = "gpt-2", .extra = toks,
	    .nextra = NITEMS(toks) };

	open_vocab(&v);
	check_pieces(tokenizer, "abcd", 0, "ab|c|d");
	check_pieces(tokenizer, "abcx", 0, "abcx");
	check_pieces(tokenizer, "xbcdab", 0, "x|bcd|ab");
	check_pieces(tokenizer, "<c><c>", 1, "<c><c>");
	check_pieces(tokenizer, "<c><c", 1, "<c>|<|c");
	check_pieces(tokenizer, "<c><c>", 0, "<|c><|c|>");
	check_pieces(tokenizer, "aaaaa", 0, "aa|aa|a");
	check_pieces(tokenizer, "aaaaa", 1, "aaa|aa");
}
END_TEST

START_TEST(the_border_of_two_parts_makes_no_control_token)
{
	static const struct bpe_token toks[] = {
		{ "<c>", TOKEN_CONTROL }, { "[u]", TOKEN_USER }
	};
	static const struct text_part parts[] = {
		{ "<c><", 4, 1 }, { "c>", 2, 1 }, { "[", 1, 0 }, { "u]<c>", 5, 1 }
	};
	struct bpe_vocab v = { .pre = "gpt-2", .extra = toks,
	    .nextra = NITEMS(toks) };
	static const uint32_t want[] = { 256, '<', 'c', '>', 257, 256 };
	uint32_t *ids;
	struct err e;
	size_t n;

	open_vocab(&v);
	t_ok(tokenizer_encode_parts(tokenizer, parts, NITEMS(parts), 0, &ids,
	    &n, &e), &e);
	ck_assert_uint_eq(n, NITEMS(want));
	ck_assert_mem_eq(ids, want, sizeof(want));
	free(ids);
}
END_TEST

/* The definition: the longest special token at `at` that the parts allow. */
static int32_t
naive_special(const struct vocab *v, const struct text_part *part,
    size_t nparts, const char *text, size_t nbytes, size_t at)
{
	int32_t best = NO_TOKEN;
	uint64_t longest = 0;
	size_t p, end = 0;
	uint32_t id;

	for (p = 0; p < nparts && end <= at; p++)
		end += part[p].nbytes;
	for (id = 0; id < v->n; id++) {
		const struct gguf_str *s = &v->text[id];

		if (s->len < longest || s->len == 0 || s->len > nbytes - at ||
		    memcmp(text + at, s->data, s->len) != 0 ||
		    !vocab_is_special(v, (int32_t)id, part[p - 1].special &&
		    s->len <= end - at))
			continue;
		best = (int32_t)id;
		longest = s->len;
	}
	return best;
}

static void
check_split(const struct vocab *v, const struct specials *sp,
    const struct text_part *part, size_t nparts, const char *text)
{
	size_t nbytes = 0, n, i, at = 0, raw = 0;
	struct fragment *f = NULL;
	struct err e;

	for (i = 0; i < nparts; i++)
		nbytes += part[i].nbytes;
	t_ok(split_special_tokens(sp, v, 0, text, part, nparts, &f, &n, &e),
	    &e);
	for (i = 0; at < nbytes;) {
		int32_t id = naive_special(v, part, nparts, text, nbytes, at);

		raw += id == NO_TOKEN;
		at += id == NO_TOKEN ? 1 : v->text[id].len;
		if (id == NO_TOKEN && at < nbytes)
			continue;
		if (raw > 0) {
			ck_assert_uint_lt(i, n);
			ck_assert_int_eq(f[i].id, NO_TOKEN);
			ck_assert_uint_eq(f[i++].nbytes, raw);
			raw = 0;
		}
		if (id != NO_TOKEN) {
			ck_assert_uint_lt(i, n);
			ck_assert_int_eq(f[i++].id, id);
		}
	}
	ck_assert_uint_eq(i, n);
	free(f);
}

static size_t
random_text(char *out, size_t max)
{
	size_t n = 1 + t_rand_below(max), i;

	for (i = 0; i < n; i++)
		out[i] = "ab<"[t_rand_below(3)];
	out[n] = '\0';
	return n;
}

START_TEST(special_tokens_are_cut_as_defined)
{
	enum { NTOKENS = 12, NPARTS = 4, MOST = 8 };
	char name[NTOKENS][MOST + 1], text[NPARTS * 4 * MOST + 1];
	struct bpe_token toks[NTOKENS];
	struct bpe_vocab bv = { .pre = "gpt-2", .extra = toks,
	    .nextra = NTOKENS };
	struct text_part part[NPARTS];
	struct specials sp;
	size_t i, k, at;
	struct vocab v;
	struct err e;
	int round;

	for (round = 0; round < 60; round++) {
		for (i = 0; i < NTOKENS; i++) {
			/* Two bytes or more, and equal texts of equal kinds. */
			random_text(name[i] + 1, MOST - 1);
			name[i][0] = 'a';
			toks[i] = (struct bpe_token){ name[i],
			    strlen(name[i]) % 3 == 0 ? TOKEN_USER :
			    TOKEN_CONTROL };
		}
		open_vocab(&bv);
		t_ok(vocab_init(&v, gguf, 0, &e), &e);
		t_ok(specials_build(&v, &sp, &e), &e);
		for (k = 0; k < 50; k++) {
			for (i = 0, at = 0; i < NPARTS; i++) {
				size_t n = random_text(text + at, 3 * MOST);

				part[i] = (struct text_part){ text + at, n,
				    (int)t_rand_below(2) };
				at += n;
			}
			check_split(&v, &sp, part, NPARTS, text);
		}
		specials_done(&sp);
		vocab_done(&v);
	}
}
END_TEST

/* Converters marked added tokens as user-defined or normal. */
START_TEST(tokens_that_end_texts_are_control_tokens_of_any_kind)
{
	static const enum token_kind kinds[] = {
		TOKEN_NORMAL, TOKEN_USER, TOKEN_CONTROL
	};
	struct bpe_token toks[] = { { "<|end|>", 0 }, { "ab", 0 } };
	static const char *const merges[] = { "< |" };
	struct bpe_vocab v = { .pre = "gpt-2", .extra = toks,
	    .nextra = NITEMS(toks), .merge = merges, .nmerges = 1 };
	size_t i;

	for (i = 0; i < NITEMS(kinds); i++) {
		toks[0].kind = toks[1].kind = kinds[i];
		v.bos = 257;
		open_vocab(&v);
		check_pieces(tokenizer, "<|end|>", 0, "<||e|n|d|||>");
		check_pieces(tokenizer, "<|end|>", 1, "<|end|>");
		ck_assert_int_eq(tokenizer_kind(tokenizer, 257),
		    TOKEN_CONTROL);
		/* Text that people write stays text. */
		v.bos = 258;
		open_vocab(&v);
		ck_assert_int_eq(tokenizer_kind(tokenizer, 258),
		    (int)kinds[i]);
	}
}
END_TEST

/* Each place of the text begins like each of the tokens.  Trying every length
 * at every place would take hours. */
START_TEST(overlapping_special_tokens_take_linear_time)
{
	enum { NTOKENS = 2000, LEN = 1 << 20 };
	struct bpe_token *tok = calloc(NTOKENS, sizeof(*tok));
	char *as = malloc(NTOKENS + 1), *text = malloc(LEN);
	struct bpe_vocab v = { .pre = "gpt-2", .extra = tok,
	    .nextra = NTOKENS };
	uint32_t *ids;
	struct err e;
	size_t n, i;

	memset(as, 'a', NTOKENS);
	as[NTOKENS] = '\0';
	for (i = 0; i < NTOKENS; i++) {
		char *s = strdup(as + i);

		s[NTOKENS - i - 1] = '!';	/* aaa...a! */
		tok[i] = (struct bpe_token){ s, TOKEN_USER };
	}
	open_vocab(&v);
	for (i = 0; i < LEN; i++)
		text[i] = i % 5000 == 4999 ? ' ' : 'a';
	t_ok(tokenizer_encode(tokenizer, text, LEN, 0, 0, &ids, &n, &e), &e);
	ck_assert_uint_eq(n, LEN);
	free(ids);
	for (i = 0; i < NTOKENS; i++)
		free((char *)(uintptr_t)tok[i].text);
	free(tok);
	free(as);
	free(text);
}
END_TEST

START_TEST(special_tokens_of_too_many_bytes_are_refused)
{
	enum { N = 5 };
	struct bpe_token tok[N];
	struct bpe_vocab v = { .pre = "gpt-2", .extra = tok, .nextra = N };
	struct err e = { .kind = ERR_NONE };
	size_t i;

	for (i = 0; i < N; i++) {
		char *s = calloc(1, MAX_TOKEN_BYTES + 1);

		memset(s, 'a' + (int)i, MAX_TOKEN_BYTES);
		tok[i] = (struct bpe_token){ s, TOKEN_CONTROL };
	}
	ck_assert_int_eq(try_vocab(&v, &e), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(e.msg, "limits.gguf"));
	ck_assert_ptr_nonnull(strstr(e.msg, "5242880 bytes of text"));
	for (i = 0; i < N; i++)
		free((char *)(uintptr_t)tok[i].text);
}
END_TEST

static unsigned polls_left;

static int
stop_at_poll(struct err *reterr)
{
	return --polls_left > 0 ? 0 : err_set(reterr, ERR_RUN, -EINTR, "stop");
}

/* Encode the text with an interruption at the first, the second, ... poll.
 * Returns the number of polls. */
static unsigned
interrupt_each_poll(const char *text, size_t nbytes)
{
	unsigned i;
	uint32_t *ids;
	size_t n;
	struct err e;
	int rc;

	tokenizer_set_poll(tokenizer, stop_at_poll);
	for (i = 1;; i++) {
		polls_left = i;
		rc = tokenizer_encode(tokenizer, text, nbytes, 0, 1, &ids, &n,
		    &e);
		if (rc == 0)
			break;
		ck_assert_int_eq(rc, -EINTR);
		ck_assert_str_eq(e.msg, "stop");
	}
	free(ids);
	tokenizer_set_poll(tokenizer, NULL);
	return i - 1;
}

START_TEST(encoding_can_be_interrupted_at_any_time)
{
	static const struct bpe_token toks[] = { { "<c>", TOKEN_CONTROL } };
	static const char *const merges[] = { "a a", "aa aa", "aaaa aaaa" };
	struct bpe_vocab v = { .pre = "gpt-2", .extra = toks, .nextra = 1,
	    .merge = merges, .nmerges = NITEMS(merges) };
	enum { LEN = 1 << 18 };
	char *text = malloc(LEN), path[300];
	size_t i;
	struct err e;

	open_vocab(&v);
	for (i = 0; i < LEN; i++)	/* many words */
		text[i] = i % 4 == 0 ? ' ' : 'a';
	ck_assert_uint_ge(interrupt_each_poll(text, LEN), LEN / (128 << 10));
	memset(text, 'a', LEN);		/* one word: while it is merged */
	ck_assert_uint_ge(interrupt_each_poll(text, LEN), LEN / (64 << 10) + 2);
	snprintf(path, sizeof(path), "%s", t_data("kjv-q8_0.gguf"));
	t_ok(vocab_open(&gguf, &tokenizer, path, &e), &e);
	ck_assert_uint_ge(interrupt_each_poll(text, LEN), LEN / (128 << 10));
	free(text);
}
END_TEST

START_TEST(a_word_too_long_to_merge_is_refused)
{
	struct bpe_vocab v = { .pre = "gpt-2" };
	size_t len = (size_t)MAX_MERGED_BYTES + 1, n;
	char *text = malloc(len);
	uint32_t *ids;
	struct err e;

	memset(text, 'a', len);
	open_vocab(&v);
	ck_assert_int_eq(tokenizer_encode(tokenizer, text, len, 0, 0, &ids, &n,
	    &e), -EFBIG);
	ck_assert_ptr_nonnull(strstr(e.msg, "33554433 bytes"));
	free(text);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		texts_made_to_collide_are_spread_over_the_table,
		hashes_are_siphash_1_3,
		the_leftmost_special_token_wins_then_the_longest,
		the_border_of_two_parts_makes_no_control_token,
		special_tokens_are_cut_as_defined,
		tokens_that_end_texts_are_control_tokens_of_any_kind,
		overlapping_special_tokens_take_linear_time,
		special_tokens_of_too_many_bytes_are_refused,
		encoding_can_be_interrupted_at_any_time,
		a_word_too_long_to_merge_is_refused
	};

	return t_main("tokenizer_limits", 60, tests, NITEMS(tests));
}
