/* coordinator/text/vocab.h - the vocabulary, for the tokenizer's files.
 * Owns: struct tokenizer and its index by text.  Called by tokenizer*.c and
 * detokenizer.c only; everyone else sees tokenizer.h. */
#ifndef COORDINATOR_TEXT_VOCAB_H
#define COORDINATOR_TEXT_VOCAB_H

#include "tokenizer.h"

/* U+2581, which stands for a space in SentencePiece vocabularies. */
#define SPACE_MARK	"\xe2\x96\x81"
enum { SPACE_MARK_LEN = 3 };

enum {
	NO_TOKEN = -1,
	MAX_END_TOKENS = 16,
	MAX_TOKEN_BYTES = 1 << 20,	/* of one token's text */
	MAX_TEXT_BYTES = 1 << 30	/* of a text to encode: offsets in an
					 * escaped one stay below 2^32 */
};

/* Special tokens of one length; a byte that starts none of them is skipped
 * without a look at the index. */
struct special_len {
	uint32_t nbytes;
	int has_user;		/* some are of kind TOKEN_USER */
	uint64_t first[256 / 64];
};

struct vocab_slot {
	uint32_t hash;
	int32_t id;		/* NO_TOKEN = free */
};

struct tokenizer {
	uint32_t n;
	const struct gguf_str *text;	/* [n], the gguf's */
	const float *score;		/* [n], no NaN; NULL: bpe needs none */
	const int32_t *kind;		/* [n], 0..TOKEN_BYTE; NULL: all normal */
	uint32_t max_len;		/* bytes of the longest text */

	struct vocab_slot *slot;	/* [slot_mask + 1], open addressing */
	uint32_t slot_mask;
	struct special_len *special;	/* [nspecial], longest first */
	uint32_t nspecial;
	int32_t byte[256];		/* of each byte alone, or NO_TOKEN */
	struct bpe *bpe;		/* NULL = SentencePiece-style */

	int32_t bos, eos, unk;		/* or NO_TOKEN */
	int32_t end[MAX_END_TOKENS];
	unsigned nend;
	int add_bos;
	int space_prefix;
	int rstrip;			/* special tokens eat what blanks follow */
	int cuts_at_space;		/* no text has its mark behind a letter */
};

/* Growing list of ids. */
struct idlist {
	uint32_t *id;
	size_t n, cap;
};

/* Room for `more` further ids; 0 or -ENOMEM. */
int idlist_reserve(struct idlist *l, size_t more);

/* Fill slot, byte (with <0x00>..<0xFF>), special, max_len and cuts_at_space
 * from text and kind.  Of equal texts the last one is found; empty texts are
 * never found. */
int vocab_index(struct tokenizer *t);
void vocab_done(struct tokenizer *t);

/* The id with exactly this text, or NO_TOKEN. */
int32_t vocab_find(const struct tokenizer *t, const char *text, size_t nbytes);

/* Cut out of raw text before anything else: user-defined always, control and
 * unknown ones when `special`. */
int vocab_is_special(const struct tokenizer *t, int32_t id, int special);

/* May merging make it?  Not control, unknown and byte tokens: a text can not
 * smuggle one in. */
int vocab_is_mergeable(const struct tokenizer *t, int32_t id);

/* A byte that no token holds: its own token, or the unknown one.  out has room
 * for it.  -EBADMSG: the vocabulary has neither. */
int vocab_emit_byte(const struct tokenizer *t, uint8_t c, struct idlist *out,
    struct err *reterr);

/* A stretch of the text to encode: raw text, or one special token. */
struct fragment {
	size_t off, nbytes;
	int32_t id;		/* NO_TOKEN = raw */
};

/* text/split.c: cut text, which is these parts one behind the other, at
 * its special tokens, the longest first, the leftmost first among those of one
 * length.  Control tokens lie within one part that may have some.  *ret is
 * malloc'ed. */
int tokenizer_split(const struct tokenizer *t, const char *text,
    const struct text_part *part, size_t nparts, struct fragment **ret,
    size_t *ret_n);

#endif
