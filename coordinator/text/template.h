/* coordinator/text/template.h - how a family of models writes a conversation.
 * Owns: the table of families.  Called by chat.c.  Knows text only.
 *
 * The text of a conversation, once its BOS token stands:
 *
 *	begin  [system]  user ask  {answer close  user ask}...
 *
 * Each piece is the template's own: control tokens in it are meant.  What is
 * between them is the user's and the model's: there, they are not. */
#ifndef COORDINATOR_TEXT_TEMPLATE_H
#define COORDINATOR_TEXT_TEMPLATE_H

#include "tokenizer.h"

struct chat_template {
	const char *name;	/* as people call the family */
	/* Its Jinja text contains all of these and not that; NULL = ends. */
	const char *has[3];
	const char *lacks;
	const char *begin;
	const char *system[2];	/* around the system's text */
	int system_in_user;	/* it goes inside the first user text, in front */
	const char *user[2];	/* around a user's text; then the model goes on */
	const char *close;	/* behind the model's answer */
	int channels;		/* an answer is messages, not all for the user */
};

/* The family whose template this is; NULL: none of the table. */
const struct chat_template *chat_template_find(const char *jinja,
    size_t nbytes);
/* For a file without a template: lines go in as they are. */
const struct chat_template *chat_template_plain(void);
/* By number, for tests and messages; NULL behind the last. */
const struct chat_template *chat_template_at(unsigned i);

enum { CHAT_MAX_PARTS = 8 };

/* What goes to the model for the turn of a user: the n-th, from 0 on.  system
 * NULL: none; it goes with turn 0 only.  parts point into the arguments and
 * the table; returns how many. */
size_t chat_template_turn(const struct chat_template *ct, unsigned turn,
    const struct text_part *system, const struct text_part *user,
    struct text_part parts[CHAT_MAX_PARTS]);

#endif
