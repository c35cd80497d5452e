/* coordinator/text/pieces.h - what an answer needs of a vocabulary: the text and
 * the kind of each token, the ids that end an answer.
 * Owns: the block's format.  The process that parses the file writes the block;
 * another one gets it in memory that cannot change any more.  Called by the
 * reader and by tokenizer.c.  Does not encode.
 *
 * Guarantee: a block may hold anything.  pieces_open() checks every count, offset
 * and id once, in one pass; what it accepts cannot make any function here read
 * outside the block or write more than pieces_max_bytes(). */
#ifndef COORDINATOR_TEXT_PIECES_H
#define COORDINATOR_TEXT_PIECES_H

#include "config/err.h"
#include "layers/gguf/gguf.h"
#include "token.h"

enum {
	PIECES_MAX_BYTES = 32 << 20,	/* of a block */
	PIECES_ALIGN = 8		/* of the block in memory */
};

struct encoder;
struct pieces;

/* --- making a block --- */

/* -ENOTSUP with ERR_MODEL: it would exceed PIECES_MAX_BYTES. */
int pieces_bytes(const struct encoder *e, uint64_t *ret, struct err *reterr);
/* Write all of the block. */
void pieces_write(const struct encoder *e, void *block);

/* --- reading one --- */

/* The block must stay as it is until pieces_close(), at a multiple of
 * PIECES_ALIGN.  -EBADMSG with ERR_RUN: "the reader's image: ...". */
int pieces_open(const void *block, uint64_t nbytes, struct pieces **ret,
    struct err *reterr);
void pieces_close(struct pieces *p);

/* As the functions of tokenizer.h. */
uint32_t pieces_size(const struct pieces *p);
size_t pieces_max_bytes(const struct pieces *p);
int32_t pieces_bos(const struct pieces *p);
int32_t pieces_eos(const struct pieces *p);
unsigned pieces_ends(const struct pieces *p, const int32_t **ret);
int32_t pieces_special(const struct pieces *p, const char *text);
int pieces_adds_bos(const struct pieces *p);
int pieces_adds_space(const struct pieces *p);
enum token_kind pieces_kind(const struct pieces *p, uint32_t id);
struct gguf_str pieces_text(const struct pieces *p, uint32_t id);
size_t pieces_decode(const struct pieces *p, uint32_t id, int show_control,
    char *out);

#endif
