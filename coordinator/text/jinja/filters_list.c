/* coordinator/text/jinja/filters_list.c - filters of lists and dicts. */
#include "impl.h"

/* --- attributes by path: "a.b", "0", or an integer --- */

static struct jv
item_of(struct jrun *r, struct jv v, const struct jstr *part)
{
	int64_t i = 0;
	size_t k;

	for (k = 0; k < part->n && k < 9 && part->s[k] >= '0' &&
	    part->s[k] <= '9'; k++)
		i = i * 10 + (part->s[k] - '0');
	if (part->n > 0 && k == part->n)
		return jop_item(r, v, jinja_int(i, JINJA_TEMPLATE));
	return jop_item(r, v, jv_str(part, 0));
}

static struct jv
get_path(struct jrun *r, struct jv v, struct jv path)
{
	const struct jstr *s;
	size_t from = 0, to;

	if (path.kind != J_STRING)
		return jop_item(r, v, path);
	s = jv_s(path);
	do {
		for (to = from; to < s->n && s->s[to] != '.'; to++)
			;
		v = item_of(r, v, jstr_part(r, s, from, to));
		from = to + 1;
	} while (to < s->n);
	return v;
}

static int
is_true_arg(struct jrun *r, const struct jargs *args, size_t i, const char *name)
{
	struct jv a;

	return jarg(args, i, name, &a) && jv_true(r, a);
}

/* A generator's list.  One over what nothing can iterate fails when it is read, not
 * before. */
static struct jv
lazy(struct jrun *r, struct jv v)
{
	struct jv out = jv_list(r, J_GENERATOR);

	if (v.kind == J_GENERATOR)
		jv_l(out)->view = jv_l(v)->view;
	else if (v.kind == J_NONE || jv_is_number(v) || v.kind > J_DICT)
		jv_l(out)->view = jformat(r, "'%s' object is not iterable",
		    jv_type(v));
	return out;
}

/* --- default, length, first, last --- */

static struct jv
filter_default(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv other = jv_cstr(r, "");

	jargs_check(r, args, "default", 0, 2, "default_value,boolean,");
	jarg(args, 0, "default_value", &other);
	if (v.kind == J_UNDEFINED || (is_true_arg(r, args, 1, "boolean") &&
	    !jv_true(r, v)))
		return other;
	return v;
}

static struct jv
filter_length(struct jrun *r, struct jv v, const struct jargs *args)
{
	jargs_check(r, args, "length", 0, 0, "");
	return jinja_int((int64_t)jv_length(r, v), JINJA_TEMPLATE);
}

static struct jv
filter_first(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jiter it;
	struct jv item;

	jargs_check(r, args, "first", 0, 0, "");
	jiter_open(r, &it, v);
	return jiter_next(r, &it, &item) ? item :
	    jv_undefined(r, "No first item, sequence was empty.");
}

static struct jv
filter_last(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv list;
	struct jlist *l;

	jargs_check(r, args, "last", 0, 0, "");
	if (v.kind == J_GENERATOR)
		jfail(r, -EINVAL, "'generator' object is not reversible");
	list = jv_to_list(r, v);
	l = jv_l(list);
	return l->n > 0 ? l->v[l->n - 1] :
	    jv_undefined(r, "No last item, sequence was empty.");
}

/* --- lists --- */

static struct jv
filter_list(struct jrun *r, struct jv v, const struct jargs *args)
{
	jargs_check(r, args, "list", 0, 0, "");
	return jv_to_list(r, v);
}

static struct jv
filter_reverse(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv from = jv_to_list(r, v), to;
	size_t i;

	jargs_check(r, args, "reverse", 0, 0, "");
	if (v.kind == J_STRING)
		return jop_slice(r, v, jinja_none(0), jinja_none(0),
		    jinja_int(-1, 0));
	to = jv_list(r, v.kind == J_GENERATOR || v.kind == J_UNDEFINED ?
	    J_LIST : J_GENERATOR);
	for (i = jv_l(from)->n; i-- > 0; )
		jlist_add(r, jv_l(to), jv_l(from)->v[i]);
	return to;
}

static struct jv
filter_join(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jbuf b = { .r = r };
	const struct jstr *sep = NULL;
	struct jv item, a;
	struct jiter it;
	size_t n = 0;

	jargs_check(r, args, "join", 0, 2, "d,attribute,");
	if (jarg(args, 0, "d", &a))
		sep = jv_to_str(r, a);
	jiter_open(r, &it, v);
	while (jiter_next(r, &it, &item)) {
		if (n++ > 0 && sep != NULL)
			jbuf_str(&b, sep);
		if (jarg(args, 1, "attribute", &a) && a.kind != J_NONE)
			item = get_path(r, item, a);
		jv_print(&b, item);
	}
	return jv_str(jbuf_end(&b), 0);
}

/* The keys of l's items: themselves, or an attribute. */
static struct jlist *
keys_of(struct jrun *r, const struct jlist *l, struct jv attr)
{
	struct jv keys = jv_list(r, J_LIST);
	size_t i;

	for (i = 0; i < l->n; i++)
		jlist_add(r, jv_l(keys), attr.kind == J_NONE ? l->v[i] :
		    get_path(r, l->v[i], attr));
	return jv_l(keys);
}

/* The same for sort: a list of each item's attributes, which commas separate. */
static struct jlist *
sort_keys(struct jrun *r, const struct jlist *l, struct jv attr, int with_case)
{
	struct jv keys = jv_list(r, J_LIST), key, one;
	const struct jstr *s = attr.kind == J_STRING ? jv_s(attr) : NULL;
	size_t i, from, to;

	for (i = 0; i < l->n; i++) {
		key = jv_list(r, J_LIST);
		from = 0;
		do {
			for (to = from; s != NULL && to < s->n &&
			    s->s[to] != ','; to++)
				;
			one = l->v[i];
			if (attr.kind != J_NONE)
				one = get_path(r, one, s == NULL ? attr :
				    jv_str(jstr_part(r, s, from, to), 0));
			jlist_add(r, jv_l(key), with_case ? one :
			    jv_fold(r, one));
			from = to + 1;
		} while (s != NULL && to < s->n);
		jlist_add(r, jv_l(keys), key);
	}
	return jv_l(keys);
}

/* sort(reverse=False, case_sensitive=False, attribute=None) */
static struct jv
filter_sort(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv list = jv_to_list(r, v), attr = jinja_none(JINJA_TEMPLATE);
	int with_case;

	jargs_check(r, args, "sort", 0, 3, "reverse,case_sensitive,attribute,");
	with_case = is_true_arg(r, args, 1, "case_sensitive");
	jarg(args, 2, "attribute", &attr);
	jlist_sort(r, jv_l(list), sort_keys(r, jv_l(list), attr, with_case),
	    with_case, is_true_arg(r, args, 0, "reverse"));
	return list;
}

/* dictsort(case_sensitive=False, by='key', reverse=False) */
static struct jv
filter_dictsort(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv list = jv_list(r, J_LIST), keys = jv_list(r, J_LIST), by;
	int by_value = 0;
	size_t i;

	jargs_check(r, args, "dictsort", 0, 3, "case_sensitive,by,reverse,");
	jv_need(r, v);
	if (v.kind != J_DICT)
		jfail(r, -EINVAL, "'%s' object has no attribute 'items'",
		    jv_type(v));
	if (jarg(args, 1, "by", &by)) {
		by_value = jstr_is(jv_need_str(r, by, "by"), "value");
		if (!by_value && !jstr_is(jv_s(by), "key"))
			jfail(r, -EINVAL, "You can only sort by either \"key\" "
			    "or \"value\"");
	}
	for (i = 0; i < jv_d(v)->n; i++) {
		const struct jpair *p = &jv_d(v)->v[i];

		jlist_add(r, jv_l(list), jv_pair(r, p->key, p->value));
		jlist_add(r, jv_l(keys), by_value ? p->value : p->key);
	}
	jlist_sort(r, jv_l(list), jv_l(keys), is_true_arg(r, args, 0,
	    "case_sensitive"), is_true_arg(r, args, 2, "reverse"));
	return list;
}

/* unique(case_sensitive=False, attribute=None): the first of equal items. */
static struct jv
filter_unique(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv list, out = lazy(r, v), key;
	struct jv seen = jv_list(r, J_LIST), attr = jinja_none(JINJA_TEMPLATE);
	int with_case = is_true_arg(r, args, 0, "case_sensitive");
	size_t i;

	jargs_check(r, args, "unique", 0, 2, "case_sensitive,attribute,");
	jarg(args, 1, "attribute", &attr);
	if (jv_l(out)->view != NULL)
		return out;
	list = jv_to_list(r, v);
	for (i = 0; i < jv_l(list)->n; i++) {
		key = jv_l(list)->v[i];
		if (attr.kind != J_NONE)
			key = get_path(r, key, attr);
		if (!with_case)
			key = jv_fold(r, key);
		if (key.kind == J_LIST || key.kind == J_DICT) {
			jv_l(out)->view = jformat(r, "unhashable type: '%s'",
			    jv_type(key));
			return out;
		}
		if (jv_in(r, key, seen))
			continue;
		jlist_add(r, jv_l(seen), key);
		jlist_add(r, jv_l(out), jv_l(list)->v[i]);
	}
	return out;
}

static struct jv
min_or_max(struct jrun *r, struct jv v, const struct jargs *args, int sign)
{
	struct jv list = jv_to_list(r, v), attr = jinja_none(JINJA_TEMPLATE);
	int with_case = is_true_arg(r, args, 0, "case_sensitive"), c;
	struct jlist *keys;
	size_t i, best = 0;

	jargs_check(r, args, sign < 0 ? "min" : "max", 0, 2,
	    "case_sensitive,attribute,");
	jarg(args, 1, "attribute", &attr);
	if (jv_l(list)->n == 0)
		return jv_undefined(r, "No aggregated item, sequence was empty.");
	keys = keys_of(r, jv_l(list), attr);
	for (i = 0; i < keys->n; i++) {
		if (!with_case)
			keys->v[i] = jv_fold(r, keys->v[i]);
		c = jv_compare(r, keys->v[i], keys->v[best],
		    sign < 0 ? "<" : ">");
		if (c == sign)
			best = i;
	}
	return jv_l(list)->v[best];
}

static struct jv
filter_min(struct jrun *r, struct jv v, const struct jargs *args)
{
	return min_or_max(r, v, args, -1);
}

static struct jv
filter_max(struct jrun *r, struct jv v, const struct jargs *args)
{
	return min_or_max(r, v, args, 1);
}

/* sum(attribute=None, start=0) */
static struct jv
filter_sum(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv sum = jinja_int(0, JINJA_TEMPLATE), item, attr;
	struct jiter it;

	jargs_check(r, args, "sum", 0, 2, "attribute,start,");
	jarg(args, 1, "start", &sum);
	jiter_open(r, &it, v);
	while (jiter_next(r, &it, &item)) {
		if (jarg(args, 0, "attribute", &attr) && attr.kind != J_NONE)
			item = get_path(r, item, attr);
		sum = jop_binary(r, OP_ADD, sum, item);
	}
	return sum;
}

static struct jv
filter_items(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv out = jv_list(r, J_GENERATOR);
	size_t i;

	jargs_check(r, args, "items", 0, 0, "");
	if (v.kind == J_UNDEFINED)
		return out;
	if (v.kind != J_DICT) {
		jv_l(out)->view = "Can only get item pairs from a mapping.";
		return out;
	}
	for (i = 0; i < jv_d(v)->n; i++)
		jlist_add(r, jv_l(out), jv_pair(r, jv_d(v)->v[i].key,
		    jv_d(v)->v[i].value));
	return out;
}

/* batch(linecount, fill_with=None): lists of so many items. */
static struct jv
filter_batch(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv out = lazy(r, v), part = jv_list(r, J_LIST);
	struct jv item, fill = jinja_none(JINJA_TEMPLATE), count;
	struct jiter it;
	int64_t n;

	jargs_check(r, args, "batch", 1, 2, "linecount,fill_with,");
	if (!jarg(args, 0, "linecount", &count) ||
	    (n = jv_int(r, count, "linecount")) < 1)
		jfail(r, -EINVAL, "batch needs a linecount above 0");
	jarg(args, 1, "fill_with", &fill);
	if (jv_l(out)->view != NULL)
		return out;
	jiter_open(r, &it, v);
	while (jiter_next(r, &it, &item)) {
		if ((int64_t)jv_l(part)->n == n) {
			jlist_add(r, jv_l(out), part);
			part = jv_list(r, J_LIST);
		}
		jlist_add(r, jv_l(part), item);
	}
	while (fill.kind != J_NONE && jv_l(part)->n > 0 &&
	    (int64_t)jv_l(part)->n < n) {
		jstep(r, 1);
		jlist_add(r, jv_l(part), fill);
	}
	if (jv_l(part)->n > 0)
		jlist_add(r, jv_l(out), part);
	return out;
}

/* groupby(attribute, default=None, case_sensitive=False): pairs of a value and the
 * items that have it. */
static struct jv
filter_groupby(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv list = jv_to_list(r, v), out = jv_list(r, J_LIST), attr, key;
	int with_case = is_true_arg(r, args, 2, "case_sensitive");
	struct jv last = jinja_none(JINJA_TEMPLATE), group = last, folded;
	size_t i;

	jargs_check(r, args, "groupby", 1, 3,
	    "attribute,default,case_sensitive,");
	if (!jarg(args, 0, "attribute", &attr))
		jfail(r, -EINVAL, "groupby needs an attribute");
	jlist_sort(r, jv_l(list), keys_of(r, jv_l(list), attr), with_case, 0);
	for (i = 0; i < jv_l(list)->n; i++) {
		key = get_path(r, jv_l(list)->v[i], attr);
		folded = with_case ? key : jv_fold(r, key);
		if (i == 0 || !jv_eq(r, folded, last)) {
			group = jv_list(r, J_LIST);
			jlist_add(r, jv_l(out), jv_pair(r, key, group));
			last = folded;
		}
		jlist_add(r, jv_l(group), jv_l(list)->v[i]);
	}
	return out;
}

/* --- map, select, reject --- */

/* The arguments behind the first n. */
static struct jargs
rest_of(const struct jargs *args, size_t n)
{
	struct jargs rest = *args;

	rest.v = args->n > n ? args->v + n : NULL;
	rest.n = args->n > n ? args->n - n : 0;
	return rest;
}

static struct jv
map_attribute(struct jrun *r, struct jv item, struct jv attr,
    const struct jargs *args)
{
	struct jv v = get_path(r, item, attr), other;

	if (v.kind == J_UNDEFINED && jarg(args, SIZE_MAX, "default", &other))
		return other;
	return v;
}

/* map('filter', arguments...) or map(attribute=, default=) */
static struct jv
filter_map(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv out = lazy(r, v), item, attr = out;
	struct jargs rest = rest_of(args, 1);
	const struct jstr *name;
	unsigned index = JNO_INDEX;
	struct jiter it;

	if (args->n > 0) {
		name = jv_need_str(r, args->v[0], "the filter of map");
		if ((index = jfilter_index(name->s, name->n)) == JNO_INDEX)
			jfail(r, -EINVAL, "No filter named '%.*s'.",
			    (int)MIN(name->n, (size_t)100), name->s);
	} else if (!jarg(args, SIZE_MAX, "attribute", &attr))
		jfail(r, -EINVAL, "map requires a filter argument");
	else
		jargs_check(r, args, "map", 1, 0, "attribute,default,");
	if (!jv_true(r, v) || jv_l(out)->view != NULL)
		return jv_true(r, v) ? out : jv_list(r, J_GENERATOR);
	jiter_open(r, &it, v);
	while (jiter_next(r, &it, &item))
		jlist_add(r, jv_l(out), index == JNO_INDEX ?
		    map_attribute(r, item, attr, args) :
		    jfilter_apply(r, index, item, &rest));
	return out;
}

/* Keep the items for which a test, or without one their truth, is `wanted`; with
 * by_attr the first argument names what of them is looked at. */
static struct jv
choose(struct jrun *r, struct jv v, const struct jargs *args, int wanted,
    int by_attr)
{
	struct jv out = lazy(r, v), item, value;
	size_t first = by_attr ? 1 : 0;
	struct jargs rest = rest_of(args, first + 1);
	unsigned index = JNO_INDEX;
	const struct jstr *name;
	struct jiter it;
	int holds;

	if (args->n < first)
		jfail(r, -EINVAL, "Missing parameter for attribute name");
	if (args->n > first) {
		name = jv_need_str(r, args->v[first], "the name of a test");
		if ((index = jtest_index(name->s, name->n)) == JNO_INDEX)
			jfail(r, -EINVAL, "No test named '%.*s'.",
			    (int)MIN(name->n, (size_t)100), name->s);
	}
	if (!jv_true(r, v) || jv_l(out)->view != NULL)
		return jv_true(r, v) ? out : jv_list(r, J_GENERATOR);
	jiter_open(r, &it, v);
	while (jiter_next(r, &it, &item)) {
		value = by_attr ? get_path(r, item, args->v[0]) : item;
		holds = index == JNO_INDEX ? jv_true(r, value) :
		    jtest_apply(r, index, value, &rest);
		if (holds == wanted)
			jlist_add(r, jv_l(out), item);
	}
	return out;
}

static struct jv
filter_select(struct jrun *r, struct jv v, const struct jargs *args)
{
	return choose(r, v, args, 1, 0);
}

static struct jv
filter_reject(struct jrun *r, struct jv v, const struct jargs *args)
{
	return choose(r, v, args, 0, 0);
}

static struct jv
filter_selectattr(struct jrun *r, struct jv v, const struct jargs *args)
{
	return choose(r, v, args, 1, 1);
}

static struct jv
filter_rejectattr(struct jrun *r, struct jv v, const struct jargs *args)
{
	return choose(r, v, args, 0, 1);
}

/* attr(name): an attribute, which only namespaces, loops and methods have. */
static struct jv
filter_attr(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv name;

	jargs_check(r, args, "attr", 1, 1, "name,");
	jarg(args, 0, "name", &name);
	if (v.kind == J_DICT)
		return jv_undefined(r, "'dict object' has no such attribute");
	return jop_attr(r, v, jv_need_str(r, name, "the name of attr"));
}

const struct jfilter jfilters_list[] = {
	{ "attr", filter_attr }, { "batch", filter_batch },
	{ "count", filter_length }, { "d", filter_default },
	{ "default", filter_default }, { "dictsort", filter_dictsort },
	{ "first", filter_first }, { "groupby", filter_groupby },
	{ "items", filter_items }, { "join", filter_join },
	{ "last", filter_last }, { "length", filter_length },
	{ "list", filter_list }, { "map", filter_map },
	{ "max", filter_max }, { "min", filter_min },
	{ "reject", filter_reject }, { "rejectattr", filter_rejectattr },
	{ "reverse", filter_reverse }, { "select", filter_select },
	{ "selectattr", filter_selectattr }, { "sort", filter_sort },
	{ "sum", filter_sum }, { "unique", filter_unique }
};
const size_t njfilters_list = NITEMS(jfilters_list);
