/* coordinator/text/jinja/methods_data.c - the methods of lists, dicts, loops and
 * cyclers; finds and calls methods. */
#include "impl.h"

/* --- lists --- */

static struct jv
list_append(struct jrun *r, struct jv self, const struct jargs *a)
{
	jargs_check(r, a, "append", 1, 1, "");
	jlist_add(r, jv_l(self), a->v[0]);
	return jinja_none(JINJA_TEMPLATE);
}

static struct jv
list_extend(struct jrun *r, struct jv self, const struct jargs *a)
{
	struct jv more;
	size_t i;

	jargs_check(r, a, "extend", 1, 1, "");
	more = jv_to_list(r, a->v[0]);
	for (i = 0; i < jv_l(more)->n; i++)
		jlist_add(r, jv_l(self), jv_l(more)->v[i]);
	return jinja_none(JINJA_TEMPLATE);
}

static struct jv
list_insert(struct jrun *r, struct jv self, const struct jargs *a)
{
	struct jlist *l = jv_l(self);
	int64_t i, n = (int64_t)l->n;

	jargs_check(r, a, "insert", 2, 2, "");
	i = jv_int(r, a->v[0], "an index");
	i = i < 0 ? MAX(i + n, (int64_t)0) : MIN(i, n);
	jlist_add(r, l, a->v[1]);
	jstep(r, (uint64_t)(n - i));
	memmove(l->v + i + 1, l->v + i, (size_t)(n - i) * sizeof(*l->v));
	l->v[i] = a->v[1];
	return jinja_none(JINJA_TEMPLATE);
}

static struct jv
list_pop(struct jrun *r, struct jv self, const struct jargs *a)
{
	struct jlist *l = jv_l(self);
	int64_t i = -1, n = (int64_t)l->n;
	struct jv v;

	jargs_check(r, a, "pop", 0, 1, "");
	if (a->n > 0)
		i = jv_int(r, a->v[0], "an index");
	if (i < 0)
		i += n;
	if (i < 0 || i >= n)
		jfail(r, -EINVAL, n == 0 ? "pop from empty list" :
		    "pop index out of range");
	v = l->v[i];
	jstep(r, (uint64_t)(n - i));
	memmove(l->v + i, l->v + i + 1, (size_t)(n - i - 1) * sizeof(*l->v));
	l->n--;
	return v;
}

static struct jv
list_index(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jlist *l = jv_l(self);
	size_t i;

	jargs_check(r, a, "index", 1, 1, "");
	for (i = 0; i < l->n; i++)
		if (jv_eq(r, l->v[i], a->v[0]))
			return jinja_int((int64_t)i, JINJA_TEMPLATE);
	jfail(r, -EINVAL, "the item is not in the list");
}

static struct jv
list_count(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jlist *l = jv_l(self);
	int64_t n = 0;
	size_t i;

	jargs_check(r, a, "count", 1, 1, "");
	for (i = 0; i < l->n; i++)
		n += jv_eq(r, l->v[i], a->v[0]);
	return jinja_int(n, JINJA_TEMPLATE);
}

static struct jv
list_copy(struct jrun *r, struct jv self, const struct jargs *a)
{
	jargs_check(r, a, "copy", 0, 0, "");
	return jv_to_list(r, self);
}

/* --- dicts --- */

static struct jv
dict_get(struct jrun *r, struct jv self, const struct jargs *a)
{
	struct jv *v;

	jargs_check(r, a, "get", 1, 2, "");
	if ((v = jdict_find(r, jv_d(self), a->v[0])) != NULL)
		return *v;
	return a->n > 1 ? a->v[1] : jinja_none(JINJA_TEMPLATE);
}

static struct jv
view(struct jrun *r, struct jv self, const struct jargs *a, const char *name)
{
	struct jv list = jv_list(r, J_VIEW);
	const struct jdict *d = jv_d(self);
	size_t i;

	jargs_check(r, a, name, 0, 0, "");
	jv_l(list)->view = name;
	jstep(r, d->n);
	for (i = 0; i < d->n; i++)
		jlist_add(r, jv_l(list), name[5] == 'k' ? d->v[i].key :
		    name[5] == 'v' ? d->v[i].value :
		    jv_pair(r, d->v[i].key, d->v[i].value));
	return list;
}

static struct jv
dict_keys(struct jrun *r, struct jv self, const struct jargs *a)
{
	return view(r, self, a, "dict_keys");
}

static struct jv
dict_values(struct jrun *r, struct jv self, const struct jargs *a)
{
	return view(r, self, a, "dict_values");
}

static struct jv
dict_items(struct jrun *r, struct jv self, const struct jargs *a)
{
	return view(r, self, a, "dict_items");
}

static struct jv
dict_copy(struct jrun *r, struct jv self, const struct jargs *a)
{
	struct jv v = jv_dict(r, J_DICT);
	const struct jdict *d = jv_d(self);
	size_t i;

	jargs_check(r, a, "copy", 0, 0, "");
	for (i = 0; i < d->n; i++)
		jdict_put(r, jv_d(v), d->v[i].key, d->v[i].value);
	return v;
}

/* --- loops and cyclers --- */

static struct jv
loop_cycle(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jloop *l = self.u.p;

	if (a->n == 0)
		jfail(r, -EINVAL, "no items for cycling given");
	return a->v[l->i % a->n];
}

static struct jv
loop_changed(struct jrun *r, struct jv self, const struct jargs *a)
{
	struct jloop *l = self.u.p;
	struct jv now = jv_list(r, J_TUPLE);
	size_t i;

	for (i = 0; i < a->n; i++)
		jlist_add(r, jv_l(now), a->v[i]);
	if (l->has_changed && jv_eq(r, l->changed, now))
		return jinja_bool(0, JINJA_TEMPLATE);
	l->changed = now;
	l->has_changed = 1;
	return jinja_bool(1, JINJA_TEMPLATE);
}

static struct jv
cycler_next(struct jrun *r, struct jv self, const struct jargs *a)
{
	struct jlist *l = jv_l(self);

	jargs_check(r, a, "next", 0, 0, "");
	return l->v[l->at++ % l->n];
}

static struct jv
cycler_reset(struct jrun *r, struct jv self, const struct jargs *a)
{
	jargs_check(r, a, "reset", 0, 0, "");
	jv_l(self)->at = 0;
	return jinja_none(JINJA_TEMPLATE);
}

const struct jmethod_row jmethods_list[] = {
	{ "append", list_append }, { "extend", list_extend },
	{ "insert", list_insert }, { "pop", list_pop },
	{ "index", list_index }, { "count", list_count },
	{ "copy", list_copy }, { "clear", NULL }, { "remove", NULL },
	{ "reverse", NULL }, { "sort", NULL }, { NULL, NULL }
};

const struct jmethod_row jmethods_tuple[] = {
	{ "index", list_index }, { "count", list_count }, { NULL, NULL }
};

const struct jmethod_row jmethods_dict[] = {
	{ "get", dict_get }, { "items", dict_items }, { "keys", dict_keys },
	{ "values", dict_values }, { "copy", dict_copy }, { "clear", NULL },
	{ "fromkeys", NULL }, { "pop", NULL }, { "popitem", NULL },
	{ "setdefault", NULL }, { "update", NULL }, { NULL, NULL }
};

static const struct jmethod_row methods_loop[] = {
	{ "cycle", loop_cycle }, { "changed", loop_changed }, { NULL, NULL }
};

static const struct jmethod_row methods_cycler[] = {
	{ "next", cycler_next }, { "reset", cycler_reset }, { NULL, NULL }
};

static const struct jmethod_row *
table_of(struct jv v)
{
	switch (v.kind) {
	case J_STRING:
		return jmethods_str;
	case J_LIST:
		return jmethods_list;
	case J_TUPLE:
		return jmethods_tuple;
	case J_DICT:
		return jmethods_dict;
	case J_LOOP:
		return methods_loop;
	case J_CYCLER:
		return methods_cycler;
	default:
		return NULL;
	}
}

int
jmethod_find(struct jrun *r, struct jv v, const struct jstr *name,
    struct jv *ret)
{
	const struct jmethod_row *m = table_of(v);
	struct jmethod *bound;
	unsigned i;

	for (i = 0; m != NULL && m[i].name != NULL; i++) {
		if (!jstr_is(name, m[i].name))
			continue;
		bound = jalloc(r, sizeof(*bound));
		*bound = (struct jmethod){ v, i };
		*ret = (struct jv){ .kind = J_METHOD, .u.p = bound };
		return 1;
	}
	return 0;
}

struct jv
jmethod_call(struct jrun *r, const struct jmethod *m, const struct jargs *args)
{
	const struct jmethod_row *row = &table_of(m->self)[m->id];
	struct jv v;

	if (row->fn == NULL)
		jfail(r, -EINVAL, "the method %s of '%s' is not available to "
		    "templates", row->name, jv_type(m->self));
	jenter(r);
	v = row->fn(r, m->self, args);
	jleave(r);
	return v;
}
