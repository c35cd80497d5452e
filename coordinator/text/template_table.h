/* coordinator/text/template_table.h - the forms of the model families, for files
 * without a template and for templates that fail.
 * Called by engine/form.c, encoder.c and tests.  Owns the table. */
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
	const char *user[2];	/* around a user message */
	const char *answer[2];	/* around an answer */
	const char *earlier;	/* in front of an earlier answer's text */
};

/* The family whose markers this Jinja text contains, or NULL. */
const struct template_family *template_family_find(const char *jinja,
    size_t nbytes);
/* The family of this name, in upper or lower case; "plain": none. */
const struct template_family *template_family_named(const char *name);
/* The form as a Jinja text, malloc'ed.  -ENOMEM. */
int template_family_jinja(const struct template_family *f, char **ret,
    size_t *ret_n);
/* Row i of the table; NULL after the last. */
const struct template_family *template_family_at(unsigned i);

#endif
