/* tests/unit/tokenizer_text.c - tests of the tokenizer with the demo's
 * vocabulary: recorded ids, round trips of any text, and a naive implementation
 * of merging. */
#include "tests/support/t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/detokenizer.h"
#include "tests/support/token_ids.h"
#include "config/utf8.h"

#define MARK	"\xe2\x96\x81"		/* U+2581 */

static struct gguf *gguf;
static struct tokenizer *tokenizer;

static void
open_demo(void)
{
	struct err e;

	t_ok(gguf_open(t_data("kjv-q8_0.gguf"), &gguf, &e), &e);
	t_ok(tokenizer_open(gguf, &tokenizer, &e), &e);
}

static void
close_demo(void)
{
	tokenizer_close(tokenizer);
	gguf_close(gguf);
}

static unsigned
put_utf8(uint32_t c, uint8_t *p)
{
	unsigned len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4, i;

	for (i = len; i-- > 1; c >>= 6)
		p[i] = 0x80 | (c & 0x3f);
	p[0] = (uint8_t)(len == 1 ? c : (0xf00u >> len & 0xff) | c);
	return len;
}

START_TEST(utf8_accepts_exactly_the_valid_characters)
{
	uint32_t c, count = 0, wrong = 0;
	unsigned len, i;
	uint8_t p[4];

	for (c = 0; c < 0x140000; c++) {
		int ok = c < 0x110000 && (c < 0xd800 || c > 0xdfff);

		len = put_utf8(c, p);
		wrong += utf8_len(p, 4) != (ok ? len : 0);
		for (i = 1; i < len && ok; i++)
			wrong += utf8_len(p, i) != 0 ||
			    utf8_unfinished(p, i) != i;
		wrong += ok && utf8_unfinished(p, len) != 0;
	}
	ck_assert_uint_eq(wrong, 0);
	/* Pairs of bytes: 128 * 256 begin with ASCII, 30 * 64 are
	 * characters. */
	for (c = 0; c < 0x10000; c++) {
		p[0] = (uint8_t)(c >> 8);
		p[1] = (uint8_t)c;
		count += utf8_len(p, 2) > 0;
	}
	ck_assert_uint_eq(count, 128 * 256 + 30 * 64);
	/* Overlong, surrogate, too large: more bytes cannot complete them. */
	ck_assert_uint_eq(utf8_unfinished((const uint8_t *)"\xe0\x9f", 2), 0);
	ck_assert_uint_eq(utf8_unfinished((const uint8_t *)"\xed\xa0", 2), 0);
	ck_assert_uint_eq(utf8_unfinished((const uint8_t *)"\xf4\x90", 2), 0);
	ck_assert_uint_eq(utf8_unfinished((const uint8_t *)"\xc1", 1), 0);
	ck_assert_uint_eq(utf8_unfinished((const uint8_t *)"\xf5", 1), 0);
	ck_assert_uint_eq(utf8_unfinished(p, 0), 0);
}
END_TEST

/* Recorded from this program, which agreed at that time with the ids of another
 * program on two vocabularies of this kind (make check-conformance).  To record
 * again: build/straddle tokenize --no-bos -m tests/data/kjv-q8_0.gguf -p ... */
START_TEST(the_demo_vocabulary_gives_the_recorded_ids)
{
	open_demo();
	ck_assert_uint_eq(tokenizer_size(tokenizer), 2048);
	ck_assert_uint_eq(tokenizer_text(tokenizer, 1).len, 3);
	ck_assert_uint_eq(tokenizer_text(tokenizer, 2048).len, 0);
	check_ids(tokenizer,
	    "In the beginning God created the heaven and the earth.", 0,
	    IDS(305, 2034, 261, 1799, 1240, 389, 282, 555, 285, 261, 734, 270,
	    261, 618, 1992));
	check_ids(tokenizer, "  And it came to pass,\nthat", 0,
	    IDS(2047, 2047, 571, 356, 474, 291, 601, 1990, 13, 259, 281));
	check_ids(tokenizer, "\xc3\x84pfel \xf0\x9f\xa6\x99", 0,
	    IDS(2047, 198, 135, 2036, 2026, 347, 2047, 243, 162, 169, 156));
	check_ids(tokenizer, "<s>[1]", 0, IDS(2047, 63, 2039, 65, 94, 52, 96));
	close_demo();
}
END_TEST

static int
is_utf8(const char *text, size_t n)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + n;
	unsigned len;

	while (p < end && (len = utf8_len(p, (size_t)(end - p))) > 0)
		p += len;
	return p == end;
}

/* Decode ids one by one.  Returns *ret_n bytes, from malloc().  whole: assert
 * that each push gives whole characters. */
static char *
decode_ids(const uint32_t *ids, size_t n, int special, int whole, size_t *ret_n)
{
	size_t max = detokenizer_max(tokenizer), i;
	char *buf = malloc(max * (n + 1)), *p = buf;
	struct detokenizer d;
	int got, broken = buf == NULL;

	detokenizer_init(&d, tokenizer, 1, special);
	for (i = 0; i < n && !broken; i++) {
		got = detokenizer_push(&d, ids[i], p, max);
		broken = got < 0 || (whole && !is_utf8(p, (size_t)got));
		p += MAX(got, 0);
	}
	ck_assert(!broken);
	got = detokenizer_flush(&d, p, max);
	ck_assert_int_ge(got, 0);
	ck_assert(!whole || got == 0);
	*ret_n = (size_t)(p - buf) + (size_t)got;
	return buf;
}

enum { MAX_RANDOM = 300 };

/* Valid UTF-8 without U+2581, which decodes as a space. */
static size_t
random_text(uint8_t *p)
{
	static const char common[] = "etaoinshrdlu ETHGL ,.;:'\n\t<s>0x";
	size_t n = 0, len = t_rand_below(MAX_RANDOM);

	while (n < len) {
		uint64_t dice = t_rand_below(100);
		uint32_t c = (uint8_t)common[t_rand_below(sizeof(common) - 1)];

		if (dice < 20)
			c = ' ';
		else if (dice < 30)
			c = (uint32_t)t_rand_below(0x3000);
		else if (dice < 35)
			c = 0xe000 + (uint32_t)t_rand_below(0x110000 - 0xe000);
		if (c != 0x2581)
			n += put_utf8(c, p + n);
	}
	return n;
}

static size_t
random_bytes(uint8_t *p)
{
	size_t n = t_rand_below(MAX_RANDOM), i;

	for (i = 0; i < n; i++) {
		p[i] = (uint8_t)t_rand();
		if (t_rand_below(3) == 0)	/* lead bytes and the like */
			p[i] |= 0xc0;
		if (i >= 2 && memcmp(p + i - 2, MARK, 3) == 0)
			p[i] = ' ';
	}
	return n;
}

static void
check_round_trip(const uint8_t *text, size_t n, int whole)
{
	uint32_t *ids;
	size_t nids, len;
	struct err e;
	char *back;

	t_ok(tokenizer_encode(tokenizer, (const char *)text, n, 1, 0, &ids,
	    &nids, &e), &e);
	back = decode_ids(ids, nids, 0, whole, &len);
	ck_assert_uint_eq(len, n);
	ck_assert_mem_eq(back, text, n);
	free(back);
	free(ids);
}

START_TEST(decoding_restores_any_text_in_whole_characters)
{
	uint8_t text[MAX_RANDOM + 4];
	int i;

	open_demo();
	for (i = 0; i < 3000; i++)
		check_round_trip(text, random_text(text), 1);
	close_demo();
}
END_TEST

START_TEST(decoding_restores_any_bytes)
{
	uint8_t text[MAX_RANDOM + 4];
	int i;

	open_demo();
	for (i = 0; i < 3000; i++)
		check_round_trip(text, random_bytes(text), 0);
	check_round_trip((const uint8_t *)"\0a\0", 3, 1);
	close_demo();
}
END_TEST

struct span {
	const char *p;
	size_t n;
};

/* The definition: check every token for every pair of neighbours,
 * repeatedly. */
static int32_t
naive_find(struct span s)
{
	uint32_t id;

	for (id = 0; id < tokenizer_size(tokenizer); id++) {
		struct gguf_str t = tokenizer_text(tokenizer, id);

		if (tokenizer_kind(tokenizer, id) == TOKEN_NORMAL &&
		    t.len == s.n && memcmp(t.data, s.p, s.n) == 0)
			return (int32_t)id;
	}
	return -1;
}

static size_t
naive_merge(struct span *s, size_t n, const float *score)
{
	for (;;) {
		size_t best = n, i;
		float best_score = -INFINITY;

		for (i = 0; i + 1 < n; i++) {
			int32_t id = naive_find((struct span){ s[i].p,
			    s[i].n + s[i + 1].n });

			if (id >= 0 && score[id] > best_score) {
				best = i;
				best_score = score[id];
			}
		}
		if (best == n)
			return n;
		s[best].n += s[best + 1].n;
		memmove(&s[best + 1], &s[best + 2],
		    (--n - best - 1) * sizeof(*s));
	}
}

START_TEST(merging_agrees_with_the_naive_implementation)
{
	const void *score;
	uint64_t nscores;
	int round;
	struct err e;

	open_demo();
	t_ok(gguf_get_array(gguf, "tokenizer.ggml.scores", GGUF_F32, &score,
	    &nscores, &e), &e);
	for (round = 0; round < 100; round++) {
		static const char words[][8] = { MARK, MARK, "the", "and",
		    "unto", "LORD", "aa", "s", "e", "ing", ",", "\n", "\xff" };
		char text[256] = MARK, plain[256], *q = plain;
		size_t n = 0, nids, i, len;
		struct span s[256];
		uint32_t *ids;

		for (i = t_rand_below(12); i > 0; i--)
			strcat(text, words[t_rand_below(NITEMS(words))]);
		len = strlen(text);
		for (i = 0; i < len; i += s[n++].n) {
			unsigned c = utf8_len((uint8_t *)text + i, len - i);

			s[n] = (struct span){ text + i, c > 0 ? c : 1 };
			if (i > 0 && s[n].n == 3)
				*q++ = ' ';
			else if (i > 0)
				*q++ = text[i];
		}
		t_ok(tokenizer_encode(tokenizer, plain, (size_t)(q - plain), 0,
		    0, &ids, &nids, &e), &e);
		n = naive_merge(s, n, score);
		if (q == plain)
			n = 0;
		ck_assert_uint_eq(nids, n);
		for (i = 0; i < n; i++) {
			int32_t id = naive_find(s[i]);

			if (id < 0)	/* a byte: <0x00> is token 3 */
				id = 3 + (uint8_t)*s[i].p;
			ck_assert_int_eq((int32_t)ids[i], id);
		}
		free(ids);
	}
	close_demo();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		utf8_accepts_exactly_the_valid_characters,
		the_demo_vocabulary_gives_the_recorded_ids,
		decoding_restores_any_text_in_whole_characters,
		decoding_restores_any_bytes,
		merging_agrees_with_the_naive_implementation
	};

	return t_main("tokenizer_text", 60, tests, NITEMS(tests));
}
