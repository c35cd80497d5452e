/* coordinator/text/jinja/value.c - makes and compares values, by Python's rules. */
#include "impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct jv
jv_undefined(struct jrun *r, const char *fmt, ...)
{
	struct jv v = { .kind = J_UNDEFINED };
	struct jundef *u = jalloc(r, sizeof(*u));
	char text[200], *copy;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	copy = jalloc(r, strlen(text) + 1);
	u->text = strcpy(copy, text);
	v.u.p = u;
	return v;
}

struct jv
jv_list(struct jrun *r, enum jkind kind)
{
	struct jv v = { .kind = (uint8_t)kind };

	v.u.p = jzalloc(r, 1, sizeof(struct jlist));
	return v;
}

struct jv
jv_dict(struct jrun *r, enum jkind kind)
{
	struct jv v = { .kind = (uint8_t)kind };

	v.u.p = jzalloc(r, 1, sizeof(struct jdict));
	return v;
}

struct jv
jv_pair(struct jrun *r, struct jv a, struct jv b)
{
	struct jv v = jv_list(r, J_TUPLE);

	jlist_add(r, jv_l(v), a);
	jlist_add(r, jv_l(v), b);
	return v;
}

void
jlist_add(struct jrun *r, struct jlist *l, struct jv v)
{
	size_t cap;
	struct jv *more;

	if (l->n == l->cap) {
		cap = l->cap > 0 ? l->cap * 2 : 4;
		more = jzalloc(r, cap, sizeof(*more));
		if (l->n > 0)
			memcpy(more, l->v, l->n * sizeof(*more));
		l->v = more;
		l->cap = cap;
	}
	l->v[l->n++] = v;
}

static void
need_hashable(struct jrun *r, struct jv key)
{
	if (key.kind == J_LIST || key.kind == J_DICT ||
	    (key.kind == J_VIEW && strcmp(jv_type(key), "dict_values") != 0))
		jfail(r, -EINVAL, "unhashable type: '%s'", jv_type(key));
}

struct jv *
jdict_find(struct jrun *r, struct jdict *d, struct jv key)
{
	size_t i;

	if (key.kind == J_STRING)
		return jdict_find_str(r, d, jv_s(key));
	need_hashable(r, key);
	for (i = 0; i < d->n; i++) {
		jstep(r, 1);
		if (jv_eq(r, d->v[i].key, key))
			return &d->v[i].value;
	}
	return NULL;
}

struct jv *
jdict_find_str(struct jrun *r, struct jdict *d, const struct jstr *key)
{
	size_t i;

	jstep(r, d->n / 8);
	for (i = 0; i < d->n; i++)
		if (d->v[i].key.kind == J_STRING &&
		    jstr_eq(jv_s(d->v[i].key), key))
			return &d->v[i].value;
	return NULL;
}

void
jdict_put(struct jrun *r, struct jdict *d, struct jv key, struct jv v)
{
	struct jv *old = jdict_find(r, d, key);
	struct jpair *more;
	size_t cap;

	if (old != NULL) {
		*old = v;
		return;
	}
	if (d->n == d->cap) {
		cap = d->cap > 0 ? d->cap * 2 : 4;
		more = jzalloc(r, cap, sizeof(*more));
		if (d->n > 0)
			memcpy(more, d->v, d->n * sizeof(*more));
		d->v = more;
		d->cap = cap;
	}
	d->v[d->n++] = (struct jpair){ key, v };
}

const char *
jv_type(struct jv v)
{
	static const char *const names[] = {
		[J_UNDEFINED] = "Undefined", [J_NONE] = "NoneType",
		[J_BOOL] = "bool", [J_INT] = "int", [J_FLOAT] = "float",
		[J_STRING] = "str", [J_LIST] = "list", [J_TUPLE] = "tuple",
		[J_GENERATOR] = "generator", [J_RANGE] = "range",
		[J_DICT] = "dict", [J_NAMESPACE] = "Namespace",
		[J_MACRO] = "Macro", [J_METHOD] = "builtin_function_or_method",
		[J_FUNCTION] = "function", [J_LOOP] = "LoopContext",
		[J_CYCLER] = "Cycler", [J_JOINER] = "Joiner"
	};

	return v.kind == J_VIEW ? jv_l(v)->view : names[v.kind];
}

void
jv_need(struct jrun *r, struct jv v)
{
	const struct jundef *u = v.u.p;

	if (v.kind == J_UNDEFINED)
		jfail(r, -EINVAL, "%s", u != NULL ? u->text : "an undefined "
		    "value is used");
}

int
jv_is_number(struct jv v)
{
	return v.kind == J_BOOL || v.kind == J_INT || v.kind == J_FLOAT;
}

int
jv_is_sequence(struct jv v)
{
	return v.kind == J_LIST || v.kind == J_TUPLE || v.kind == J_RANGE;
}

int64_t
jv_int(struct jrun *r, struct jv v, const char *what)
{
	jv_need(r, v);
	if (v.kind != J_INT && v.kind != J_BOOL)
		jfail(r, -EINVAL, "%s must be an integer, not '%s'", what,
		    jv_type(v));
	return v.u.i;
}

const struct jstr *
jv_need_str(struct jrun *r, struct jv v, const char *what)
{
	jv_need(r, v);
	if (v.kind != J_STRING)
		jfail(r, -EINVAL, "%s must be a string, not '%s'", what,
		    jv_type(v));
	return jv_s(v);
}

int
jv_true(struct jrun *r, struct jv v)
{
	switch (v.kind) {
	case J_UNDEFINED:
	case J_NONE:
		return 0;
	case J_BOOL:
	case J_INT:
		return v.u.i != 0;
	case J_FLOAT:
		return v.u.f != 0;
	case J_STRING:
	case J_LIST:
	case J_TUPLE:
	case J_VIEW:
	case J_RANGE:
	case J_DICT:
		return jv_length(r, v) > 0;
	default:
		return 1;
	}
}

size_t
jv_length(struct jrun *r, struct jv v)
{
	switch (v.kind) {
	case J_UNDEFINED:
		return 0;
	case J_STRING:
		return jv_s(v)->n == 0 ? 0 : jstr_nchars(r, jv_s(v));
	case J_LIST:
	case J_TUPLE:
	case J_VIEW:
		return jv_l(v)->n;
	case J_DICT:
		return jv_d(v)->n;
	case J_RANGE:
		return ((struct jrange *)v.u.p)->n;
	case J_LOOP:
		return ((struct jloop *)v.u.p)->n;
	default:
		jfail(r, -EINVAL, "object of type '%s' has no len()",
		    jv_type(v));
	}
}

static long double
number(struct jv v)
{
	return v.kind == J_FLOAT ? (long double)v.u.f : (long double)v.u.i;
}

static int
lists_eq(struct jrun *r, const struct jlist *a, const struct jlist *b)
{
	size_t i;

	if (a->n != b->n)
		return 0;
	for (i = 0; i < a->n; i++)
		if (!jv_same(a->v[i], b->v[i]) && !jv_eq(r, a->v[i], b->v[i]))
			return 0;
	return 1;
}

static int
dicts_eq(struct jrun *r, struct jdict *a, struct jdict *b)
{
	size_t i;
	struct jv *v;

	if (a->n != b->n)
		return 0;
	for (i = 0; i < a->n; i++)
		if ((v = jdict_find(r, b, a->v[i].key)) == NULL ||
		    !jv_eq(r, a->v[i].value, *v))
			return 0;
	return 1;
}

int
jv_same(struct jv a, struct jv b)
{
	if (a.kind != b.kind)
		return 0;
	if (a.kind == J_NONE || a.kind == J_UNDEFINED)
		return 1;
	if (a.kind == J_FLOAT)
		return a.u.f == b.u.f;
	if (a.kind == J_BOOL || a.kind == J_INT)
		return a.u.i == b.u.i;
	return a.u.p == b.u.p;
}

int
jv_eq(struct jrun *r, struct jv a, struct jv b)
{
	const struct jrange *x = a.u.p, *y = b.u.p;
	int eq;

	jstep(r, 1);
	if (jv_is_number(a) && jv_is_number(b))
		return number(a) == number(b);
	if (a.kind != b.kind)
		return 0;
	switch (a.kind) {
	case J_STRING:
		jstep(r, jv_s(a)->n / 64);
		return jstr_eq(jv_s(a), jv_s(b));
	case J_LIST:
	case J_TUPLE:
		jenter(r);
		eq = lists_eq(r, jv_l(a), jv_l(b));
		jleave(r);
		return eq;
	case J_DICT:
		jenter(r);
		eq = dicts_eq(r, jv_d(a), jv_d(b));
		jleave(r);
		return eq;
	case J_RANGE:
		return x->n == y->n && (x->n == 0 || (x->from == y->from &&
		    (x->n == 1 || x->step == y->step)));
	default:
		return jv_same(a, b);
	}
}

/* -1, 0 or 1, in the order of code points. */
static int
compare_strings(struct jrun *r, const struct jstr *a, const struct jstr *b)
{
	int c = memcmp(a->s, b->s, MIN(a->n, b->n));

	jstep(r, MIN(a->n, b->n) / 64);
	if (c != 0)
		return c < 0 ? -1 : 1;
	return a->n < b->n ? -1 : a->n > b->n;
}

static int
compare_lists(struct jrun *r, const struct jlist *a, const struct jlist *b,
    const char *op)
{
	size_t i;

	for (i = 0; i < a->n && i < b->n; i++)
		if (!jv_eq(r, a->v[i], b->v[i]))
			return jv_compare(r, a->v[i], b->v[i], op);
	return a->n < b->n ? -1 : a->n > b->n;
}

int
jv_compare(struct jrun *r, struct jv a, struct jv b, const char *op)
{
	int c;

	jstep(r, 1);
	jv_need(r, a);
	jv_need(r, b);
	if (jv_is_number(a) && jv_is_number(b))
		/* 2: not a number, which no comparison holds for */
		return number(a) < number(b) ? -1 : number(a) > number(b) ? 1 :
		    number(a) == number(b) ? 0 : 2;
	if (a.kind == J_STRING && b.kind == J_STRING)
		return compare_strings(r, jv_s(a), jv_s(b));
	if (a.kind == b.kind && (a.kind == J_LIST || a.kind == J_TUPLE)) {
		jenter(r);
		c = compare_lists(r, jv_l(a), jv_l(b), op);
		jleave(r);
		return c;
	}
	jfail(r, -EINVAL, "'%s' not supported between instances of '%s' and "
	    "'%s'", op, jv_type(a), jv_type(b));
}

int
jv_in(struct jrun *r, struct jv item, struct jv in)
{
	struct jiter it;
	struct jv v;

	if (in.kind == J_STRING) {
		if (item.kind != J_STRING)
			jfail(r, -EINVAL, "'in <string>' requires string as left "
			    "operand, not %s", jv_type(item));
		return jstr_find(r, jv_s(in), jv_s(item), 0, jv_s(in)->n) !=
		    SIZE_MAX;
	}
	if (in.kind == J_DICT)
		return jdict_find(r, jv_d(in), item) != NULL;
	if (in.kind == J_NONE || in.kind == J_BOOL || in.kind == J_INT ||
	    in.kind == J_FLOAT || in.kind > J_DICT)
		jfail(r, -EINVAL, "argument of type '%s' is not iterable",
		    jv_type(in));
	jiter_open(r, &it, in);
	while (jiter_next(r, &it, &v))
		if ((jv_same(v, item) && item.kind != J_FLOAT) ||
		    jv_eq(r, v, item))
			return 1;
	return 0;
}

void
jiter_open(struct jrun *r, struct jiter *it, struct jv v)
{
	*it = (struct jiter){ .v = v };
	switch (v.kind) {
	case J_UNDEFINED:
	case J_STRING:
	case J_LIST:
	case J_TUPLE:
	case J_VIEW:
	case J_RANGE:
	case J_DICT:
		return;
	case J_LOOP:
		return;
	case J_GENERATOR:
		if (jv_l(v)->view != NULL)
			jfail(r, -EINVAL, "%s", jv_l(v)->view);
		return;
	default:
		jfail(r, -EINVAL, "'%s' object is not iterable", jv_type(v));
	}
}

/* The character at byte it->i, as a string. */
static int
next_char(struct jrun *r, struct jiter *it, struct jv *ret)
{
	const struct jstr *s = jv_s(it->v);
	unsigned len;
	uint32_t c;

	if (it->i >= s->n)
		return 0;
	len = uc_get(s->s + it->i, s->n - it->i, &c);
	*ret = jv_str(jstr_part(r, s, it->i, it->i + len), 0);
	it->i += len;
	return 1;
}

int
jiter_next(struct jrun *r, struct jiter *it, struct jv *ret)
{
	const struct jrange *g;
	struct jlist *l;

	jstep(r, 1);
	switch (it->v.kind) {
	case J_STRING:
		return next_char(r, it, ret);
	case J_GENERATOR:
		l = jv_l(it->v);
		if (l->at >= l->n)
			return 0;
		*ret = l->v[l->at++];
		return 1;
	case J_LIST:
	case J_TUPLE:
	case J_VIEW:
		l = jv_l(it->v);
		if (it->i >= l->n)
			return 0;
		*ret = l->v[it->i++];
		return 1;
	case J_DICT:
		if (it->i >= jv_d(it->v)->n)
			return 0;
		*ret = jv_d(it->v)->v[it->i++].key;
		return 1;
	case J_RANGE:
		g = it->v.u.p;
		if (it->i >= g->n)
			return 0;
		*ret = jinja_int(g->from + (int64_t)it->i++ * g->step,
		    JINJA_TEMPLATE);
		return 1;
	default:
		return 0;
	}
}

struct jv
jv_to_list(struct jrun *r, struct jv v)
{
	struct jv list = jv_list(r, J_LIST), item;
	struct jiter it;

	jiter_open(r, &it, v);
	while (jiter_next(r, &it, &item))
		jlist_add(r, jv_l(list), item);
	return list;
}

struct jv
jv_fold(struct jrun *r, struct jv v)
{
	return v.kind != J_STRING ? v :
	    jv_str(jstr_case(r, jv_s(v), UC_LOWER), v.safe);
}

/* Merge order[from, mid) and order[mid, to) through spare; equal keys keep their
 * order. */
static void
merge(struct jrun *r, const struct jv *keys, size_t *order, size_t *spare,
    size_t from, size_t mid, size_t to, int reverse)
{
	size_t i = from, k = mid, n = from;
	int c;

	while (i < mid && k < to) {
		c = reverse ? jv_compare(r, keys[order[i]], keys[order[k]],
		    "<") : jv_compare(r, keys[order[k]], keys[order[i]], "<");
		spare[n++] = c < 0 ? order[k++] : order[i++];
	}
	while (i < mid)
		spare[n++] = order[i++];
	while (k < to)
		spare[n++] = order[k++];
	memcpy(order + from, spare + from, (to - from) * sizeof(*order));
}

void
jlist_sort(struct jrun *r, struct jlist *l, const struct jlist *keys,
    int with_case, int reverse)
{
	struct jv *key = jzalloc(r, l->n + 1, sizeof(*key));
	struct jv *old = jzalloc(r, l->n + 1, sizeof(*old));
	size_t *order = jzalloc(r, l->n + 1, sizeof(*order));
	size_t *spare = jzalloc(r, l->n + 1, sizeof(*spare));
	size_t i, width;

	for (i = 0; i < l->n; i++) {
		old[i] = l->v[i];
		key[i] = with_case ? keys->v[i] : jv_fold(r, keys->v[i]);
		order[i] = i;
	}
	for (width = 1; width < l->n; width *= 2)
		for (i = 0; i + width < l->n; i += 2 * width)
			merge(r, key, order, spare, i, i + width,
			    MIN(i + 2 * width, l->n), reverse);
	for (i = 0; i < l->n; i++)
		l->v[i] = old[order[i]];
}
