/* coordinator/text/vocab.h - a vocabulary's tokens, and the search for a text.
 * Owns: the index by text.  Called by tokenizer.c, bpe.c, spm.c and split.c;
 * everyone else sees tokenizer.h.  Does not encode. */
#ifndef COORDINATOR_TEXT_VOCAB_H
#define COORDINATOR_TEXT_VOCAB_H

#include "config/err.h"
#include "layers/gguf/gguf.h"
#include "hash.h"
#include "losses.h"
#include "token.h"

/* Limits of one token's text, and of the numbers of tokens and of merges; the
 * largest vocabularies in use have some 260,000 and 520,000. */
enum { MAX_TOKEN_BYTES = 1 << 20, MAX_TOKENS = 4 << 20 };

/* Limit of the text whose symbols are merged as one: merging takes some 60 bytes
 * of memory for each. */
enum { MAX_MERGED_BYTES = 32 << 20 };

/* Refuse a longer one. */
int vocab_refuse_long(size_t nbytes, struct err *reterr);

struct vocab_slot {
	uint32_t hash;
	int32_t id;		/* NO_TOKEN = free */
};

struct vocab {
	uint32_t n;
	const struct gguf_str *text;	/* [n], owned by the gguf */
	const float *score;		/* [n], no NaN; NULL = all 0 */
	const int32_t *kind;		/* [n], 0..TOKEN_BYTE; NULL: all normal */
	int32_t *own_kind;		/* the same, where the file's kinds were
					 * changed */
	uint32_t max_len;		/* bytes of the longest text */

	struct vocab_slot *slot;	/* [slot_mask + 1], open addressing */
	uint32_t slot_mask;
	struct hash_key key;		/* of the slots */
	int32_t byte[256];		/* token of each byte, or NO_TOKEN */
	int32_t unk;			/* token of text that has none, or
					 * NO_TOKEN; set by tokenizer.c */
	int has_inner_space;		/* some text has a space mark after
					 * another character */
	tokenizer_poll_fn *poll;	/* NULL = nothing ends encoding */
};

/* Growing list of ids. */
struct idlist {
	uint32_t *id;
	size_t n, cap;
	size_t unknown_end;	/* n after the last unknown token; 0 = none */
	size_t work;		/* bytes encoded since the last poll */
	struct losses lost;
};

/* Make room for `more` further ids; 0 or -ENOMEM. */
int idlist_reserve(struct idlist *l, size_t more);

/* nbytes more are encoded: now and then, ask v->poll whether to go on. */
int idlist_poll(struct idlist *l, const struct vocab *v, size_t nbytes,
    struct err *reterr);

/* Read the tokens of g, which must stay open, check them and build the index.
 * byte[] gets the tokens named <0x00>..<0xFF>, but for control tokens.  Among
 * tokens with equal texts the search finds the last one; it never finds empty
 * texts.
 * -EBADMSG: an array is missing or wrong.  After a failure, too, v needs
 * vocab_done(). */
int vocab_init(struct vocab *v, const struct gguf *g, int with_scores,
    struct err *reterr);
void vocab_done(struct vocab *v);

/* The id with exactly this text, or NO_TOKEN. */
int32_t vocab_find(const struct vocab *v, const char *text, size_t nbytes);

/* The same in steps, for several texts at once: most of a search is waiting for
 * memory, which each step fetches for the next one.  The two in the middle may
 * be left out. */
enum { VOCAB_BATCH = 16 };
struct vocab_search {
	size_t nbytes;
	uint32_t hash;
};
void vocab_search_begin(const struct vocab *v, const char *text,
    size_t nbytes, struct vocab_search *ret);
void vocab_search_text(const struct vocab *v, const struct vocab_search *s);
void vocab_search_bytes(const struct vocab *v, const struct vocab_search *s);
int32_t vocab_search_end(const struct vocab *v, const char *text,
    const struct vocab_search *s);

/* The token of a byte, spelled so; never one that text must not write. */
int32_t vocab_find_byte(const struct vocab *v, const char *text,
    size_t nbytes);

/* Make ids [n] control tokens, whatever the file says: before anything else is
 * built on v.  -ENOMEM. */
int vocab_set_control(struct vocab *v, const uint32_t *ids, uint32_t n);

/* TOKEN_UNKNOWN for an id outside the vocabulary. */
enum token_kind vocab_kind(const struct vocab *v, uint32_t id);

/* Is the token cut out of raw text before merging?  User-defined tokens always
 * are, control and unknown ones when `special`. */
int vocab_is_special(const struct vocab *v, int32_t id, int special);

/* May merging produce the token?  Control, unknown and byte tokens are
 * excluded, so that untrusted text cannot produce one. */
int vocab_is_mergeable(const struct vocab *v, int32_t id);

/* Take bytes that no token covers: as the unknown token, or, without one, not
 * at all.  fuse: one token stands for a run of them.  out has room for one. */
void vocab_emit_unknown(const struct vocab *v, const uint8_t *bytes,
    size_t nbytes, int fuse, struct idlist *out);

#endif
