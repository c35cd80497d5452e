/* coordinator/text/detokenizer.h - token ids to text, one token at a time.
 * Owns: the bytes of an unfinished UTF-8 character.  Called by engine/ and by
 * the command detokenize. */
#ifndef COORDINATOR_TEXT_DETOKENIZER_H
#define COORDINATOR_TEXT_DETOKENIZER_H

#include "tokenizer.h"

struct detokenizer {
	const struct tokenizer *t;
	uint8_t held[8];	/* bytes of an unfinished character */
	unsigned nheld;
	int at_start;		/* the first token's space prefix is dropped */
	int special;		/* control tokens are shown */
};

/* at_start: the first id begins a text, so drop the space that encoding put in
 * front of it. */
void detokenizer_init(struct detokenizer *d, const struct tokenizer *t,
    int at_start, int special);

/* Append id and write the characters that are now complete to out, which holds
 * detokenizer_max() bytes.  Returns the byte count; -EINVAL: id is outside the
 * vocabulary.  Bytes that can never become UTF-8 are passed through. */
int detokenizer_push(struct detokenizer *d, uint32_t id, char *out,
    size_t outlen);
/* Write the held bytes of an unfinished character as they are. */
int detokenizer_flush(struct detokenizer *d, char *out, size_t outlen);
size_t detokenizer_max(const struct tokenizer *t);

#endif
