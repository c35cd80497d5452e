/* coordinator/text/variables.c - the variables of a chat template as bytes. */
#include "variables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- writing --- */

static void
put(struct variables *v, const void *bytes, size_t n)
{
	size_t cap;
	char *more;

	if (v->rc < 0)
		return;
	if (n > VARIABLES_MAX_BYTES - v->n) {
		v->rc = -E2BIG;
		return;
	}
	if (v->n + n > v->cap) {
		cap = MAX(2 * v->cap, v->n + n + 256);
		if ((more = realloc(v->data, cap)) == NULL) {
			v->rc = -ENOMEM;
			return;
		}
		v->data = more;
		v->cap = cap;
	}
	if (n > 0)
		memcpy(v->data + v->n, bytes, n);
	v->n += n;
}

static void
put_number(struct variables *v, char kind, const void *number)
{
	put(v, &kind, 1);
	put(v, number, sizeof(int64_t));
}

void
variables_string(struct variables *v, const char *s, size_t n,
    enum jinja_origin by)
{
	const uint32_t len = (uint32_t)MIN(n, VARIABLES_MAX_BYTES);

	put(v, by == JINJA_TEMPLATE ? "S" : "s", 1);
	put(v, &len, sizeof(len));
	put(v, s, n);		/* refuses what len cannot tell */
}

void
variables_name(struct variables *v, const char *name)
{
	variables_string(v, name, strlen(name), JINJA_INPUT);
}

void
variables_bool(struct variables *v, int truth)
{
	put(v, truth ? "T" : "F", 1);
}

void
variables_bracket(struct variables *v, char bracket)
{
	put(v, &bracket, 1);
}

static void
put_object(struct variables *v, const json_t *object)
{
	json_t *o = (json_t *)(uintptr_t)object;	/* jansson's iterators */
	const char *key;
	json_t *value;
	size_t n;

	variables_bracket(v, '{');
	json_object_keylen_foreach(o, key, n, value) {
		variables_string(v, key, n, JINJA_INPUT);
		variables_json(v, value);
	}
	variables_bracket(v, '}');
}

/* json_loads() bounds the depth of what it reads. */
void
variables_json(struct variables *v, const json_t *value)
{
	double f;
	int64_t i;
	size_t k;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		put_object(v, value);
		break;
	case JSON_ARRAY:
		variables_bracket(v, '[');
		for (k = 0; k < json_array_size(value); k++)
			variables_json(v, json_array_get(value, k));
		variables_bracket(v, ']');
		break;
	case JSON_STRING:
		variables_string(v, json_string_value(value),
		    json_string_length(value), JINJA_INPUT);
		break;
	case JSON_INTEGER:
		i = json_integer_value(value);
		put_number(v, 'I', &i);
		break;
	case JSON_REAL:
		f = json_real_value(value);
		put_number(v, 'D', &f);
		break;
	case JSON_NULL:
		put(v, "N", 1);
		break;
	default:
		variables_bool(v, json_is_true(value));
	}
}

void
variables_role(struct variables *v, const char *role, size_t n)
{
	static const char *const roles[] = { "system", "developer", "user",
	    "assistant", "tool" };
	enum jinja_origin by = JINJA_INPUT;
	size_t i;

	for (i = 0; i < NITEMS(roles); i++)
		if (strlen(roles[i]) == n && memcmp(roles[i], role, n) == 0)
			by = JINJA_TEMPLATE;
	variables_string(v, role, n, by);
}

int
variables_end(const struct variables *v, struct err *reterr)
{
	if (v->rc == -ENOMEM)
		return err_nomem(reterr, "the messages of a conversation");
	if (v->rc < 0)
		return err_set(reterr, ERR_RUN, v->rc, "the messages, tools "
		    "and arguments of a conversation have more than %d MiB, "
		    "the most that a chat template is given",
		    (int)(VARIABLES_MAX_BYTES / MIB));
	return 0;
}

void
variables_done(struct variables *v)
{
	free(v->data);
	*v = (struct variables){ 0 };
}

/* --- reading --- */

struct input {
	const char *at, *end;
	struct jinja_data *d;
	int rc;			/* 0, -EPROTO, -E2BIG */
	unsigned depth;
};

static int
take(struct input *in, void *to, size_t n)
{
	if (in->rc == 0 && n > (size_t)(in->end - in->at))
		in->rc = -EPROTO;
	if (in->rc < 0)
		return in->rc;
	memcpy(to, in->at, n);
	in->at += n;
	return 0;
}

static char
take_kind(struct input *in)
{
	char kind = '\0';

	take(in, &kind, 1);
	return kind;
}

/* The bytes of a string whose kind is read; NULL after a failure. */
static const char *
take_bytes(struct input *in, size_t *ret_n)
{
	const char *s = NULL;
	uint32_t n = 0;

	if (take(in, &n, sizeof(n)) == 0) {
		s = in->at;
		if (n > (size_t)(in->end - in->at)) {
			in->rc = -EPROTO;
			return NULL;
		}
		in->at += n;
	}
	*ret_n = n;
	return s;
}

static struct jv take_value(struct input *in, char kind);

static struct jv
take_list(struct input *in)
{
	struct jv list = jinja_list(in->d, JINJA_INPUT);
	char kind;

	while ((kind = take_kind(in)) != ']' && in->rc == 0)
		jinja_append(in->d, list, take_value(in, kind));
	return list;
}

static struct jv
take_dict(struct input *in)
{
	struct jv dict = jinja_dict(in->d, JINJA_INPUT);
	enum jinja_origin by;
	const char *name;
	char kind;
	size_t n;

	while ((kind = take_kind(in)) != '}' && in->rc == 0) {
		if (kind != 's' && kind != 'S') {
			in->rc = -EPROTO;
			break;
		}
		by = kind == 'S' ? JINJA_TEMPLATE : JINJA_INPUT;
		if ((name = take_bytes(in, &n)) == NULL)
			break;
		jinja_put(in->d, dict, name, n, by,
		    take_value(in, take_kind(in)));
	}
	return dict;
}

static struct jv
take_container(struct input *in, char kind)
{
	struct jv v = jinja_none(JINJA_INPUT);

	if (++in->depth > VARIABLES_MAX_DEPTH)
		in->rc = in->rc == 0 ? -E2BIG : in->rc;
	else
		v = kind == '[' ? take_list(in) : take_dict(in);
	in->depth--;
	return v;
}

static struct jv
take_value(struct input *in, char kind)
{
	const char *s;
	double f = 0;
	int64_t i = 0;
	size_t n;

	switch (kind) {
	case '[':
	case '{':
		return take_container(in, kind);
	case 's':
	case 'S':
		if ((s = take_bytes(in, &n)) == NULL)
			break;
		return jinja_string(in->d, s, n, kind == 'S' ?
		    JINJA_TEMPLATE : JINJA_INPUT);
	case 'I':
		take(in, &i, sizeof(i));
		return jinja_int(i, JINJA_INPUT);
	case 'D':
		take(in, &f, sizeof(f));
		return jinja_float(f, JINJA_INPUT);
	case 'T':
	case 'F':
		return jinja_bool(kind == 'T', JINJA_INPUT);
	case 'N':
		break;
	default:
		in->rc = in->rc == 0 ? -EPROTO : in->rc;
	}
	return jinja_none(JINJA_INPUT);
}

/* A variable's name, as a string; 1 = there is one. */
static int
take_name(struct input *in, char name[64])
{
	const char *s;
	size_t n;

	if (in->at == in->end || in->rc < 0)
		return 0;
	if (take_kind(in) == 's' && (s = take_bytes(in, &n)) != NULL) {
		/* No template can tell what a longer one holds, nor one with a
		 * NUL. */
		n = strnlen(s, MIN(n, (size_t)63));
		memcpy(name, s, n);
		name[n] = '\0';
		return 1;
	}
	in->rc = -EPROTO;
	return 0;
}

int
variables_read(const char *block, size_t n, struct jinja_data *d,
    struct err *reterr)
{
	struct input in = { .at = block, .end = block + n, .d = d };
	char name[64];
	struct jv v;

	while (take_name(&in, name)) {
		v = take_value(&in, take_kind(&in));
		if (in.rc == 0)
			jinja_set(d, name, v);
	}
	if (in.rc == -E2BIG)
		return err_set(reterr, ERR_RUN, in.rc, "the values within "
		    "values are nested more than %d deep", VARIABLES_MAX_DEPTH);
	return in.rc == 0 ? 0 : err_set(reterr, ERR_RUN, in.rc,
	    "the variables are no block of values");
}
