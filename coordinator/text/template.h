/* coordinator/text/template.h - the chat formats of the model families.
 * Owns: a model's format, and the table of formats for templates that cannot
 * be read.  Called by engine/chat.c and engine/decoder.c.  Handles text only,
 * no token ids.
 *
 * A conversation, after its BOS token, in terms of struct chat_template:
 *
 *	first USER answer ANSWER close USER answer ANSWER close ...
 *	system[0] SYSTEM system[1] USER answer ANSWER close ...
 *
 * Earlier answers are kept with `reopen` in front of them instead of what begins
 * an answer, and without their thoughts where the template drops them.  Control
 * tokens are parsed in the template's own strings only, never in the texts of
 * the user or the answers of the model. */
#ifndef COORDINATOR_TEXT_TEMPLATE_H
#define COORDINATOR_TEXT_TEMPLATE_H

#include <time.h>

#include "config/err.h"
#include "token.h"

/* Parts of a model's template that are not followed. */
enum template_lost {
	LOST_ALL = 1,		/* the format is of the table, or plain */
	LOST_SYSTEM = 2,	/* a system text's place */
	LOST_TURNS = 4		/* turns after the first */
};

struct chat_template {
	const char *name;	/* the family's usual name, or "its own" */
	char *first;		/* in front of the first user message */
	char *system[2];	/* around a system text in front of it */
	char *empty;		/* instead of both and an empty text */
	char *answer;		/* behind a user message; the answer follows */
	size_t begun_bytes;	/* of `answer`'s end: they begin the answer,
				 * and later turns do not keep them */
	char *reopen;		/* and put this in their place */
	char *close;		/* behind an answer, to the next user text */
	char *think_end;	/* later turns drop the answer up to this;
				 * NULL: they keep it */
	int writes_bos;		/* the template writes BOS in front */
	/* Stripping of texts: enum read_edit. */
	unsigned edit_system, edit_user, edit_user_after_system,
	    edit_next_user;
	unsigned edit_answer;	/* of an earlier turn */
	unsigned edit_rest;	/* and of what follows its thoughts */
	int channels;		/* an answer consists of messages, and only some
				 * are shown: see filter.h */
	unsigned lost;		/* enum template_lost */
	char why[128];		/* on the first of them */
	char also[96];		/* LOST_ALL: what else the template has */
};

/* Texts that a template may write. */
struct template_vars {
	const char *bos, *eos;	/* of these tokens; NULL = none */
	time_t now;		/* for the date */
};

/* Read the Jinja text jinja[nbytes]; NULL = the file has none.  Where it
 * cannot be read, the table has the format of its markers, or messages are
 * plain lines, and *ret says what is lost.  -ENOMEM. */
int chat_template_open(const char *jinja, size_t nbytes,
    const struct template_vars *vars, struct chat_template **ret,
    struct err *reterr);
void chat_template_close(struct chat_template *ct);

/* The format of plain lines. */
const struct chat_template *chat_template_plain(void);
int chat_template_is_plain(const struct chat_template *ct);

/* Strip ends of text[nbytes], as enum read_edit says. */
void chat_template_strip(const char **text, size_t *nbytes, unsigned edit);

/* Cut text[nbytes], an answer, to what later turns keep of it. */
void chat_template_keep(const struct chat_template *ct, const char **text,
    size_t *nbytes);

enum { CHAT_MAX_PARTS = 8 };

/* Build the text of user turn `turn`, counted from 0.  system may be NULL; it
 * is used in turn 0 only.  parts point into the arguments and ct.  Returns
 * their number. */
size_t chat_template_turn(const struct chat_template *ct, unsigned turn,
    const struct text_part *system, const struct text_part *user,
    struct text_part parts[CHAT_MAX_PARTS]);

#endif
