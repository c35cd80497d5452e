/* coordinator/text/template_shape.h - a shape of a conversation, and how a chat
 * template strips its texts.
 * Used by template.c and its parts.  Owns nothing. */
#ifndef COORDINATOR_TEXT_TEMPLATE_SHAPE_H
#define COORDINATOR_TEXT_TEMPLATE_SHAPE_H

#include <time.h>

enum { READ_MAX_MESSAGES = 8, READ_WHY_LEN = 96 };

/* Edits of a message's text by the template.  Blanks are those of Python's
 * str.strip(). */
enum read_edit {
	EDIT_LEFT = 1, EDIT_RIGHT = 2,		/* blanks */
	EDIT_LEFT_LINES = 4, EDIT_RIGHT_LINES = 8	/* line breaks only */
};

enum read_role { READ_SYSTEM, READ_USER, READ_ASSISTANT };

/* A message: its text is hole i, where i is its index. */
struct read_message {
	enum read_role role;
	int is_empty;		/* its text is */
	int thinks;		/* its text is a thought, think_end, hole i */
};

struct read_shape {
	struct read_message m[READ_MAX_MESSAGES];	/* [n] */
	unsigned n;
};

/* The template's other variables. */
struct read_vars {
	const char *bos, *eos;	/* texts of the tokens; NULL = none */
	const char *think_end;	/* "</think>" or alike */
	time_t now;		/* for strftime_now() */
};

#endif
