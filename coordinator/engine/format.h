/* coordinator/engine/format.h - a model's chat format in its vocabulary.
 * Called by chat.c.  Owns nothing. */
#ifndef COORDINATOR_ENGINE_FORMAT_H
#define COORDINATOR_ENGINE_FORMAT_H

#include "config/conf.h"
#include "coordinator/text/template.h"
#include "coordinator/text/tokenizer.h"

/* Name the format, and the parts of the template that are not followed with
 * the options in c. */
enum { CHAT_NOTE_LEN = 512 };
void format_note(const struct chat_template *ct, const struct conf *c,
    char note[CHAT_NOTE_LEN]);

/* The texts of a turn; any bytes. */
struct chat_pair {
	const char *user, *answer;
	size_t nuser, nanswer;
};

/* Encode user turn `turn`, counted from 0; *ret_ids is malloc'ed.  system may
 * be NULL.  special: control tokens in both texts are parsed. */
int format_encode_turn(const struct tokenizer *t, unsigned turn,
    const char *system, const char *text, size_t nbytes, int special,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr);

/* Do later turns have its answer as it was given? */
int format_keeps(const struct chat_template *ct, const struct chat_pair *p);
/* Encode a turn with its answer as later turns have it: without its thoughts,
 * and with what the template writes and strips there. */
int format_encode_earlier(const struct tokenizer *t, unsigned turn,
    const char *system, const struct chat_pair *p, int special,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr);

#endif
