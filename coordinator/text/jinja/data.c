/* coordinator/text/jinja/data.c - builds the variables of a rendering. */
#include "impl.h"

#include <stdlib.h>

int
jinja_data_open(const struct jinja_limits *limits, struct jinja_data **ret,
    struct err *reterr)
{
	struct jinja_data *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return err_nomem(reterr, "the variables of a template");
	d->limits = *limits;
	d->arena.limit_bytes = limits->memory_bytes;
	*ret = d;
	return 0;
}

void
jinja_data_close(struct jinja_data *d)
{
	if (d == NULL)
		return;
	jarena_free(&d->arena);
	free(d);
}

/* Zeroed; NULL after a failure, which jinja_render() reports. */
static void *
take(struct jinja_data *d, size_t n)
{
	int is_host;
	void *p;

	if (d->failed != 0)
		return NULL;
	if ((p = jarena_alloc(&d->arena, n, &is_host)) == NULL) {
		d->failed = is_host ? -ENOMEM : -E2BIG;
		return NULL;
	}
	return memset(p, 0, n);
}

struct jv
jinja_none(enum jinja_origin by)
{
	return (struct jv){ .kind = J_NONE, .by = (uint8_t)by };
}

struct jv
jinja_bool(int truth, enum jinja_origin by)
{
	return (struct jv){ .kind = J_BOOL, .by = (uint8_t)by,
	    .u.i = truth != 0 };
}

struct jv
jinja_int(int64_t i, enum jinja_origin by)
{
	return (struct jv){ .kind = J_INT, .by = (uint8_t)by, .u.i = i };
}

struct jv
jinja_float(double f, enum jinja_origin by)
{
	return (struct jv){ .kind = J_FLOAT, .by = (uint8_t)by, .u.f = f };
}

struct jv
jinja_string(struct jinja_data *d, const char *s, size_t n,
    enum jinja_origin by)
{
	struct jstr *t = take(d, sizeof(*t));
	char *copy = take(d, n);

	if (t == NULL || copy == NULL)
		return jinja_none(by);
	memcpy(copy, s, n);
	*t = (struct jstr){ .s = copy, .n = n, .nchars = SIZE_MAX,
	    .mark = (uint8_t)by };
	return jv_str(t, 0);
}

static struct jv
container(struct jinja_data *d, enum jkind kind, size_t size,
    enum jinja_origin by)
{
	struct jv v = { .kind = (uint8_t)kind, .by = (uint8_t)by };

	if ((v.u.p = take(d, size)) == NULL)
		return jinja_none(by);
	return v;
}

struct jv
jinja_list(struct jinja_data *d, enum jinja_origin by)
{
	return container(d, J_LIST, sizeof(struct jlist), by);
}

struct jv
jinja_dict(struct jinja_data *d, enum jinja_origin by)
{
	return container(d, J_DICT, sizeof(struct jdict), by);
}

/* Room for one more of n elements of v, of which cap fit. */
static void *
grown(struct jinja_data *d, void *v, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap > 0 ? *cap * 2 : 4;
	void *p;

	if (n < *cap)
		return v;
	if ((p = take(d, more * size)) == NULL)
		return NULL;
	if (n > 0)
		memcpy(p, v, n * size);
	*cap = more;
	return p;
}

void
jinja_append(struct jinja_data *d, struct jv list, struct jv item)
{
	struct jlist *l = list.u.p;
	void *p;

	if (list.kind != J_LIST ||
	    (p = grown(d, l->v, l->n, &l->cap, sizeof(*l->v))) == NULL)
		return;
	l->v = p;
	l->v[l->n++] = item;
}

void
jinja_put(struct jinja_data *d, struct jv dict, const char *key, size_t nkey,
    enum jinja_origin by, struct jv value)
{
	struct jdict *t = dict.u.p;
	struct jv name;
	size_t i;
	void *p;

	if (dict.kind != J_DICT)
		return;
	for (i = 0; i < t->n; i++)
		if (jv_s(t->v[i].key)->n == nkey &&
		    memcmp(jv_s(t->v[i].key)->s, key, nkey) == 0) {
			t->v[i].value = value;
			return;
		}
	name = jinja_string(d, key, nkey, by);
	if (name.kind != J_STRING ||
	    (p = grown(d, t->v, t->n, &t->cap, sizeof(*t->v))) == NULL)
		return;
	t->v = p;
	t->v[t->n++] = (struct jpair){ name, value };
}

void
jinja_set(struct jinja_data *d, const char *name, struct jv value)
{
	struct jvar *v;
	char *copy;

	for (v = d->vars; v != NULL; v = v->next)
		if (strcmp(v->name, name) == 0) {
			v->v = value;
			return;
		}
	v = take(d, sizeof(*v));
	copy = take(d, strlen(name) + 1);
	if (v == NULL || copy == NULL)
		return;
	strcpy(copy, name);
	*v = (struct jvar){ .next = d->vars, .name = copy, .v = value };
	d->vars = v;
}
