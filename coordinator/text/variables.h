/* coordinator/text/variables.h - the variables of a chat template as bytes, which
 * go to the process that renders it.
 * Owns: the block's format, and a block that is being written.  Called by
 * engine/form.c, probe.c and `render`, which write one, and by render.c, which
 * reads it.
 * Does not know messages: values, and who wrote each string.
 *
 * A block is a list of pairs of a name and a value:
 *
 *	N T F			none, true, false
 *	I int64  D double	in this machine's byte order
 *	s uint32 bytes		a string of the input
 *	S uint32 bytes		a string of this program's: as the template's own
 *	[ value... ]  { name value... }		a name is a string
 *
 * Guarantee: a block may hold anything.  variables_read() refuses what is no
 * block, reads nothing outside it, and does not recurse without a bound. */
#ifndef COORDINATOR_TEXT_VARIABLES_H
#define COORDINATOR_TEXT_VARIABLES_H

#include <jansson.h>

#include "coordinator/text/jinja/jinja.h"

/* Limits of a block: its size, and how deep values are nested in it. */
#define VARIABLES_MAX_BYTES	(64 * MIB)
enum { VARIABLES_MAX_DEPTH = 200 };

struct variables {
	char *data;		/* [n], malloc'ed */
	size_t n, cap;
	int rc;			/* 0, or the first failure: -ENOMEM, -E2BIG */
};

/* Begin with {0}.  A failure is kept until variables_end(). */
void variables_name(struct variables *v, const char *name);
void variables_string(struct variables *v, const char *s, size_t n,
    enum jinja_origin by);
void variables_bool(struct variables *v, int truth);
/* Any value of JSON; its strings are input. */
void variables_json(struct variables *v, const json_t *value);
/* '[', ']', '{' or '}': the values between two of them. */
void variables_bracket(struct variables *v, char bracket);
/* A role as a value: the five that templates know are strings of this program's,
 * so that a template can make a control token of one. */
void variables_role(struct variables *v, const char *role, size_t n);

/* The block is whole: what failed, if anything. */
int variables_end(const struct variables *v, struct err *reterr);
void variables_done(struct variables *v);

/* Set each pair of the block as a variable of d.  -EPROTO: it is no block; -E2BIG:
 * nested too deeply. */
int variables_read(const char *block, size_t n, struct jinja_data *d,
    struct err *reterr);

#endif
