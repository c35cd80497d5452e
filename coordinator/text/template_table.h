/* coordinator/text/template_table.h - the formats of the model families, for
 * templates that cannot be read.
 * Called by template.c.  Owns the table. */
#ifndef COORDINATOR_TEXT_TEMPLATE_TABLE_H
#define COORDINATOR_TEXT_TEMPLATE_TABLE_H

#include <stddef.h>

struct template_family {
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
	int channels;		/* as in struct chat_template */
};

/* The family whose markers this Jinja text contains, or NULL. */
const struct template_family *template_family_find(const char *jinja,
    size_t nbytes);
/* Row i of the table; NULL after the last. */
const struct template_family *template_family_at(unsigned i);

#endif
