/* coordinator/text/roles.h - the tokens that a chat template uses as markers.
 * Owns nothing.  Called by tokenizer.c.
 *
 * Converters give markers any type: control, user-defined or normal.  Their
 * role is decided by the model's template, by the metadata and by the names of
 * tokens that end a turn, and a marker is a control token whatever its type
 * says: text cannot write it, and answers do not show it. */
#ifndef COORDINATOR_TEXT_ROLES_H
#define COORDINATOR_TEXT_ROLES_H

#include "settings.h"
#include "vocab.h"

/* Texts of tokens that end a turn or a message; [ROLES_NENDS]. */
enum { ROLES_NENDS = 15 };
extern const char *const roles_end_texts[ROLES_NENDS];

/* The token that `end`, the first word behind an answer, begins with; NO_TOKEN: it is
 * none, or no marker. */
int32_t roles_template_end(const struct vocab *v, const char *end);

/* Make control tokens of the markers of g's template, of the tokens that its
 * metadata names, and of end (or NO_TOKEN).  -ENOMEM. */
int roles_apply(struct vocab *v, const struct gguf *g,
    const struct settings *set, int32_t end);

#endif
