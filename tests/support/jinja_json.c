/* tests/support/jinja_json.c - JSON as the variables of a template. */
#include "tests/support/jinja_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct jv
jinja_from_json(struct jinja_data *d, json_t *v, enum jinja_origin by)
{
	struct jv to;
	const char *key;
	json_t *c;
	size_t i;

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		to = jinja_dict(d, by);
		json_object_foreach(v, key, c)
			jinja_put(d, to, key, strlen(key), by,
			    jinja_from_json(d, c, by));
		return to;
	case JSON_ARRAY:
		to = jinja_list(d, by);
		json_array_foreach(v, i, c)
			jinja_append(d, to, jinja_from_json(d, c, by));
		return to;
	case JSON_STRING:
		return jinja_string(d, json_string_value(v),
		    json_string_length(v), by);
	case JSON_INTEGER:
		return jinja_int(json_integer_value(v), by);
	case JSON_REAL:
		return jinja_float(json_real_value(v), by);
	case JSON_NULL:
		return jinja_none(by);
	default:
		return jinja_bool(json_is_true(v), by);
	}
}

void
jinja_set_json(struct jinja_data *d, json_t *vars)
{
	const char *key;
	json_t *c;

	json_object_foreach(vars, key, c)
		jinja_set(d, key, jinja_from_json(d, c, JINJA_INPUT));
}

static int
take(void *arg, const char *s, size_t n, enum jinja_origin by)
{
	struct jinja_out *o = arg;
	char *text = realloc(o->text, o->n + n + 1), *marks;

	if (text == NULL)
		return -ENOMEM;
	o->text = text;
	if ((marks = realloc(o->by, o->n + n + 1)) == NULL)
		return -ENOMEM;
	o->by = marks;
	memcpy(text + o->n, s, n);
	memset(marks + o->n, by == JINJA_INPUT ? 'i' : 't', n);
	o->n += n;
	text[o->n] = marks[o->n] = '\0';
	return 0;
}

int
jinja_render_json(const char *text, size_t n, json_t *vars,
    const struct jinja_limits *limits, const struct tm *now,
    struct jinja_out *ret, struct err *e)
{
	struct jinja_program *p = NULL;
	struct jinja_data *d = NULL;
	int rc;

	memset(ret, 0, sizeof(*ret));
	ret->text = calloc(1, 1);
	ret->by = calloc(1, 1);
	if ((rc = jinja_compile(text, n, limits, &p, e)) == 0 &&
	    (rc = jinja_data_open(limits, &d, e)) == 0) {
		if (vars != NULL)
			jinja_set_json(d, vars);
		rc = jinja_render(p, d, now, take, ret, e);
	}
	jinja_data_close(d);
	jinja_close(p);
	if (rc < 0)
		jinja_out_free(ret);
	return rc;
}

void
jinja_out_free(struct jinja_out *o)
{
	free(o->text);
	free(o->by);
	memset(o, 0, sizeof(*o));
}
