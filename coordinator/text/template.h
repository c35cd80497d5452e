/* coordinator/text/template.h - the chat formats of the model families.
 * Owns: the table of formats.  Called by engine/chat.c and engine/generate.c.
 * Handles text only, no token ids.
 *
 * A conversation, after its BOS token, in terms of struct chat_template:
 *
 *	begin  system[0] TEXT system[1]
 *	user[0] TEXT user[1]  ANSWER  close
 *	user[0] TEXT user[1]  ANSWER  close  ...
 *
 * Control tokens are parsed in the template's own strings only, never in the
 * texts of the user or the answers of the model. */
#ifndef COORDINATOR_TEXT_TEMPLATE_H
#define COORDINATOR_TEXT_TEMPLATE_H

#include "token.h"

struct chat_template {
	const char *name;	/* the family's usual name */
	/* The Jinja text contains each of has[] up to a NULL, and not lacks
	 * (NULL: nothing to exclude). */
	const char *has[3];
	const char *lacks;
	const char *begin;
	const char *system[2];	/* around the system message */
	int system_in_user;	/* the system message goes into the first user
				 * message, before its text */
	const char *user[2];	/* around a user message; the answer follows */
	const char *close;	/* after the model's answer */
	int channels;		/* an answer consists of messages, and only some
				 * are shown: see filter.h */
};

/* The format that this Jinja text describes; NULL: none of the table. */
const struct chat_template *chat_template_find(const char *jinja,
    size_t nbytes);
/* The format for a file without a template: plain lines. */
const struct chat_template *chat_template_plain(void);
/* Row i of the table; NULL after the last. */
const struct chat_template *chat_template_at(unsigned i);

enum { CHAT_MAX_PARTS = 8 };

/* Build the text of user turn `turn`, counted from 0.  system may be NULL; it
 * is used in turn 0 only.  parts point into the arguments and the table.
 * Returns their number. */
size_t chat_template_turn(const struct chat_template *ct, unsigned turn,
    const struct text_part *system, const struct text_part *user,
    struct text_part parts[CHAT_MAX_PARTS]);

#endif
