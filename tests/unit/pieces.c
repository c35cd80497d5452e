/* tests/unit/pieces.c - tests of a vocabulary's block: it says what the encoder
 * says, and a block that was tampered with is refused or harmless. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/encoder.h"
#include "tests/support/pieces_cases.h"
#include "tests/support/pieces_walk.h"

/* The block's head, written out a second time. */
enum {
	AT_MAGIC = 0, AT_NTOKENS = 4, AT_NSPECIAL = 8, AT_NENDS = 12,
	AT_MAX_LEN = 16, AT_TEXT_BYTES = 20, AT_IS_BPE = 24, AT_ADDS_BOS = 28,
	AT_ADDS_SPACE = 32, AT_BOS = 36, AT_EOS = 40, AT_END = 44,
	HEAD_BYTES = 204
};

struct block {
	uint8_t *b;
	uint64_t nbytes;
};

static struct block
make_case(unsigned i)
{
	struct block k;

	k.b = pieces_make(pieces_case_save(i, t_tmpdir()), &k.nbytes);
	return k;
}

static uint32_t
get_u32(const struct block *k, uint64_t at)
{
	uint32_t v;

	memcpy(&v, k->b + at, sizeof(v));
	return v;
}

static void
put_u32(struct block *k, uint64_t at, uint32_t v)
{
	ck_assert_uint_le(at + sizeof(v), k->nbytes);
	memcpy(k->b + at, &v, sizeof(v));
}

/* Returns what pieces_open() does; whatever it accepts must be sound. */
static int
try(const uint8_t *b, uint64_t nbytes, struct err *ret_why)
{
	int rc;
	const char *broken = pieces_try(b, nbytes, &rc, ret_why);

	ck_assert_msg(broken == NULL, "broken: %s", broken);
	return rc;
}

static void
refuse(const struct block *k, const char *text)
{
	struct err e;

	ck_assert_msg(try(k->b, k->nbytes, &e) < 0, "accepted: %s", text);
	ck_assert_msg(strstr(e.msg, text) != NULL, "\"%s\" is not in: %s",
	    text, e.msg);
}

/* Change a number, the block must be refused, change it back. */
static void
refuse_u32(struct block *k, uint64_t at, uint32_t v, const char *text)
{
	uint32_t old = get_u32(k, at);

	put_u32(k, at, v);
	refuse(k, text);
	put_u32(k, at, old);
}

/* --- what a block says --- */

static void
same_token(const struct encoder *e, const struct pieces *p, uint32_t id)
{
	const struct gguf_str want = e->v.text[id], s = pieces_text(p, id);
	char *text = strndup(want.data, want.len);
	int32_t found;

	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(s.len, want.len);
	ck_assert_mem_eq(s.data, want.data, want.len);
	ck_assert_int_eq(pieces_kind(p, id), vocab_kind(&e->v, id));
	found = vocab_find(&e->v, text, strlen(text));
	if (found != NO_TOKEN && !vocab_is_special(&e->v, found, 1))
		found = NO_TOKEN;
	ck_assert_int_eq(pieces_special(p, text), found);
	free(text);
}

static void
check_block_of(const char *path)
{
	struct err e = { .kind = ERR_NONE };
	struct encoder *encoder;
	const int32_t *end;
	struct pieces *p;
	struct gguf *g;
	uint64_t nbytes;
	uint8_t *b;
	uint32_t i;

	t_ok(gguf_open(path, &g, &e), &e);
	t_ok(encoder_open(g, &encoder, &e), &e);
	t_ok(pieces_bytes(encoder, &nbytes, &e), &e);
	ck_assert_ptr_nonnull(b = malloc(nbytes));
	memset(b, 0xaa, nbytes);	/* all of it is to be written */
	pieces_write(encoder, b);
	t_ok(pieces_open(b, nbytes, &p, &e), &e);
	ck_assert_ptr_null(pieces_walk(p, b, nbytes));
	ck_assert_uint_eq(pieces_size(p), encoder->v.n);
	ck_assert_uint_eq(pieces_max_bytes(p), encoder->v.max_len);
	ck_assert_int_eq(pieces_bos(p), encoder->set.bos);
	ck_assert_int_eq(pieces_eos(p), encoder->set.eos);
	ck_assert_uint_eq(pieces_ends(p, &end), encoder->nend);
	ck_assert_mem_eq(end, encoder->end, encoder->nend * sizeof(*end));
	for (i = 0; i < encoder->v.n; i++)
		same_token(encoder, p, i);
	pieces_close(p);
	encoder_close(encoder);
	gguf_close(g);
	free(b);
}

START_TEST(block_says_what_the_encoder_says)
{
	unsigned i;

	for (i = 0; i < PIECES_NCASES; i++)
		check_block_of(pieces_case_save(i, t_tmpdir()));
	check_block_of(t_data("kjv-q8_0.gguf"));
}
END_TEST

START_TEST(tokens_are_decoded_as_their_kind_says)
{
	struct err e = { .kind = ERR_NONE };
	struct block k = make_case(0);
	struct pieces *p;
	char out[16];

	t_ok(pieces_open(k.b, k.nbytes, &p, &e), &e);
	ck_assert_uint_eq(pieces_decode(p, 1, 0, out), 0);	/* <s> */
	ck_assert_uint_eq(pieces_decode(p, 1, 1, out), 3);
	ck_assert_uint_eq(pieces_decode(p, 6, 0, out), 1);	/* <0x61> */
	ck_assert_int_eq(out[0], 'a');
	ck_assert_uint_eq(pieces_decode(p, 11, 0, out), 2);	/* MARK a */
	ck_assert_mem_eq(out, " a", 2);
	ck_assert_uint_eq(pieces_decode(p, 5, 0, out), 1);	/* user's u */
	ck_assert_uint_eq(pieces_decode(p, 15, 1, out), 0);	/* empty */
	ck_assert_uint_eq(pieces_decode(p, 1000, 1, out), 0);
	pieces_close(p);
	free(k.b);
}
END_TEST

/* --- blocks that were tampered with --- */

START_TEST(head_that_cannot_be_is_refused)
{
	struct block k = make_case(1);
	const uint32_t n = get_u32(&k, AT_NTOKENS),
	    text = get_u32(&k, AT_TEXT_BYTES);

	refuse_u32(&k, AT_MAGIC, 0, "the first number is 0");
	refuse_u32(&k, AT_NTOKENS, 0, "the number of tokens is 0");
	refuse_u32(&k, AT_NTOKENS, UINT32_MAX, "the number of tokens is 4294");
	refuse_u32(&k, AT_NTOKENS, n - 1, "the size in bytes by its counts");
	refuse_u32(&k, AT_NSPECIAL, n + 1, "the number of special tokens");
	refuse_u32(&k, AT_NSPECIAL, 0, "the size in bytes by its counts");
	refuse_u32(&k, AT_NENDS, ENCODER_MAX_ENDS + 1,
	    "the number of ends of an answer is 41");
	refuse_u32(&k, AT_MAX_LEN, (1 << 20) + 1, "the longest text in bytes");
	refuse_u32(&k, AT_MAX_LEN, 0, "the end of a token's text");
	refuse_u32(&k, AT_TEXT_BYTES, text + 1, "the size in bytes");
	refuse_u32(&k, AT_BOS, n, "the id of BOS");
	refuse_u32(&k, AT_BOS, (uint32_t)-2, "the id of BOS is -2");
	refuse_u32(&k, AT_BOS, (uint32_t)-1, "the id of BOS is -1");
	refuse_u32(&k, AT_EOS, n, "the id of EOS");
	refuse_u32(&k, AT_EOS, (uint32_t)-2, "the id of EOS is -2");
	refuse_u32(&k, AT_END, n, "the id of an end");
	refuse_u32(&k, AT_END, (uint32_t)-1, "the id of an end is -1");
	free(k.b);
}
END_TEST

START_TEST(tokens_that_cannot_be_are_refused)
{
	struct block k = make_case(1);
	const uint32_t n = get_u32(&k, AT_NTOKENS),
	    nspecial = get_u32(&k, AT_NSPECIAL);
	const uint64_t special = HEAD_BYTES + 4 * ((uint64_t)n + 1),
	    kind = special + 4 * (uint64_t)nspecial;
	uint8_t old;

	ck_assert_uint_gt(nspecial, 0);
	refuse_u32(&k, HEAD_BYTES, 1, "the end of all texts");
	refuse_u32(&k, HEAD_BYTES + 4 * n, 0, "the end of all texts is 0");
	refuse_u32(&k, HEAD_BYTES + 4, UINT32_MAX,
	    "the end of a token's text");
	refuse_u32(&k, HEAD_BYTES + 8, 0, "the end of a token's text is 0");
	refuse_u32(&k, special, n, "the id of a special token");
	refuse_u32(&k, special + 4 * (nspecial - 1), UINT32_MAX,
	    "the id of a special token");
	old = k.b[kind];
	k.b[kind] = TOKEN_BYTE + 1;
	refuse(&k, "the kind of a token is 7");
	k.b[kind] = old;
	k.b[kind + n - 1] = 0xff;
	refuse(&k, "the kind of a token is 255");
	free(k.b);
}
END_TEST

/* The search halves, so an order that is none must end it, too. */
START_TEST(special_tokens_in_a_wrong_order_are_harmless)
{
	struct block k = make_case(1);
	const uint64_t special = HEAD_BYTES +
	    4 * ((uint64_t)get_u32(&k, AT_NTOKENS) + 1);
	const uint32_t n = get_u32(&k, AT_NSPECIAL);
	uint32_t i, swap;

	for (i = 0; i < n / 2; i++) {
		swap = get_u32(&k, special + 4 * i);
		put_u32(&k, special + 4 * i,
		    get_u32(&k, special + 4 * (n - 1 - i)));
		put_u32(&k, special + 4 * (n - 1 - i), swap);
	}
	ck_assert_int_eq(try(k.b, k.nbytes, NULL), 0);
	for (i = 0; i < n; i++)
		put_u32(&k, special + 4 * i, 0);
	ck_assert_int_eq(try(k.b, k.nbytes, NULL), 0);
	free(k.b);
}
END_TEST

START_TEST(block_of_another_size_is_refused)
{
	struct block k = make_case(2);
	uint8_t *more = calloc(1, k.nbytes + 64);
	uint64_t n;

	ck_assert_ptr_nonnull(more);
	memcpy(more, k.b, k.nbytes);
	for (n = 0; n < k.nbytes + 64; n++)
		ck_assert_int_eq(try(more, n, NULL),
		    n == k.nbytes ? 0 : -EBADMSG);
	free(more);
	free(k.b);
}
END_TEST

START_TEST(block_that_is_too_large_is_refused_unread)
{
	struct err e = { .kind = ERR_NONE };
	struct block k = make_case(0);
	struct pieces *p = NULL;

	ck_assert_int_eq(pieces_open(k.b, PIECES_MAX_BYTES + 1, &p, &e),
	    -EBADMSG);
	ck_assert_int_eq(pieces_open(k.b, UINT64_MAX, &p, &e), -EBADMSG);
	ck_assert_int_eq(pieces_open(NULL, 0, &p, &e), -EBADMSG);
	ck_assert_ptr_null(p);
	free(k.b);
}
END_TEST

START_TEST(block_at_an_odd_address_is_refused)
{
	struct err e = { .kind = ERR_NONE };
	struct block k = make_case(0);
	uint8_t *moved = malloc(k.nbytes + PIECES_ALIGN);
	struct pieces *p = NULL;
	unsigned i;

	ck_assert_ptr_nonnull(moved);
	for (i = 1; i < PIECES_ALIGN; i++) {
		memcpy(moved + i, k.b, k.nbytes);
		ck_assert_int_eq(pieces_open(moved + i, k.nbytes, &p, &e),
		    -EBADMSG);
		ck_assert_ptr_nonnull(strstr(e.msg, "the misalignment in "
		    "bytes is "));
	}
	ck_assert_ptr_null(p);
	free(moved);
	free(k.b);
}
END_TEST

static void
change_bytes(const struct block *k)
{
	static const uint8_t flip[] = { 0x01, 0x02, 0x40, 0x80, 0xff };
	unsigned j;
	uint64_t i;

	for (i = 0; i < k->nbytes; i++) {
		for (j = 0; j < NITEMS(flip); j++) {
			k->b[i] ^= flip[j];
			try(k->b, k->nbytes, NULL);
			k->b[i] ^= flip[j];
		}
	}
}

START_TEST(any_changed_byte_is_refused_or_harmless)
{
	struct block k;
	unsigned i;

	for (i = 0; i < PIECES_NCASES; i++) {
		k = make_case(i);
		change_bytes(&k);
		free(k.b);
	}
}
END_TEST

START_TEST(any_changed_number_is_refused_or_harmless)
{
	static const uint32_t value[] = { 0, 1, 7, 0x10000, 0x100000, 0x100001,
	    0x400000, 0x7fffffff, 0x80000000u, 0xfffffffeu, 0xffffffffu };
	struct block k;
	unsigned i, j;
	uint32_t old;
	uint64_t at;

	for (i = 0; i < PIECES_NCASES; i++) {
		k = make_case(i);
		for (at = 0; at + 4 <= k.nbytes; at += 4) {
			old = get_u32(&k, at);
			for (j = 0; j < NITEMS(value); j++) {
				put_u32(&k, at, value[j]);
				try(k.b, k.nbytes, NULL);
			}
			put_u32(&k, at, old);
		}
		free(k.b);
	}
}
END_TEST

START_TEST(random_changes_are_refused_or_harmless)
{
	struct block k = make_case(1);
	uint8_t *b = malloc(k.nbytes);
	unsigned i, n, opened = 0;
	uint64_t at;

	ck_assert_ptr_nonnull(b);
	for (i = 0; i < 20000; i++) {
		memcpy(b, k.b, k.nbytes);
		for (n = 1 + (unsigned)t_rand_below(6); n > 0; n--) {
			at = t_rand_below(k.nbytes);
			if (t_rand_below(2))
				b[at] = (uint8_t)t_rand_below(9);
			else
				b[at] ^= (uint8_t)(1u << t_rand_below(8));
		}
		opened += try(b, k.nbytes, NULL) == 0;
	}
	ck_assert_uint_gt(opened, 0);
	ck_assert_uint_lt(opened, i);
	free(b);
	free(k.b);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		block_says_what_the_encoder_says,
		tokens_are_decoded_as_their_kind_says,
		head_that_cannot_be_is_refused,
		tokens_that_cannot_be_are_refused,
		special_tokens_in_a_wrong_order_are_harmless,
		block_of_another_size_is_refused,
		block_that_is_too_large_is_refused_unread,
		block_at_an_odd_address_is_refused,
		any_changed_byte_is_refused_or_harmless,
		any_changed_number_is_refused_or_harmless,
		random_changes_are_refused_or_harmless
	};

	return t_main("pieces", 60, tests, NITEMS(tests));
}
