/* coordinator/text/split.h - cuts a text at its special tokens.
 * Owns: the automaton that finds them.  Called by tokenizer.c, before the rest
 * is encoded. */
#ifndef COORDINATOR_TEXT_SPLIT_H
#define COORDINATOR_TEXT_SPLIT_H

#include "vocab.h"

struct special_node;

struct specials {
	struct special_node *node;	/* [n]; node 0 is the root */
	uint32_t *slot;			/* [slot_mask + 1], children by parent
					 * and byte; 0 = free */
	uint32_t root[256];		/* children of the root; 0 = none */
	uint32_t n, slot_mask;
	struct hash_key key;		/* of the slots */
	int has_user;			/* some are of kind TOKEN_USER */
};

/* Index the special tokens of v.  -EBADMSG: their texts are too long
 * together.  After a failure, too, *ret needs specials_done(). */
int specials_build(const struct vocab *v, struct specials *ret,
    struct err *reterr);
void specials_done(struct specials *sp);

/* A piece of the text: raw text, or one special token. */
struct fragment {
	size_t off, nbytes;
	int32_t id;		/* NO_TOKEN = raw */
};

/* Cut text, the concatenation of parts, at its special tokens: the leftmost
 * first, and of those that begin at one place the longest, as
 * huggingface/tokenizers and SentencePiece do.  A control token counts only
 * within one part that allows it.  rstrip: blanks after a special token are
 * dropped.  text has at most 2^30 bytes.  *ret is malloc'ed, *ret_n fragments;
 * -ENOMEM, or what v->poll returned.  Linear in the text's length. */
int split_special_tokens(const struct specials *sp, const struct vocab *v,
    int rstrip, const char *text, const struct text_part *part, size_t nparts,
    struct fragment **ret, size_t *ret_n, struct err *reterr);

#endif
