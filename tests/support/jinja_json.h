/* tests/support/jinja_json.h - JSON as the variables of a template, and a rendering
 * as one text.
 * Called by the tests of coordinator/text/jinja. */
#ifndef TESTS_SUPPORT_JINJA_JSON_H
#define TESTS_SUPPORT_JINJA_JSON_H

#include <jansson.h>

#include "coordinator/text/jinja/jinja.h"

/* A rendering: text[n], and for each byte who wrote it. */
struct jinja_out {
	char *text;
	char *by;		/* 't' template, 'i' input */
	size_t n;
};

struct jv
jinja_from_json(struct jinja_data *d, json_t *v, enum jinja_origin by);

/* Each pair of the object vars becomes a variable whose strings are input. */
void jinja_set_json(struct jinja_data *d, json_t *vars);

/* Compile and render; now may be NULL.  ret is filled on success and released with
 * jinja_out_free(). */
int
jinja_render_json(const char *text, size_t n, json_t *vars,
    const struct jinja_limits *limits, const struct tm *now,
    struct jinja_out *ret, struct err *e);
void jinja_out_free(struct jinja_out *o);

#endif
