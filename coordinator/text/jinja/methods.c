/* coordinator/text/jinja/methods.c - the methods of Python's str.
 * Cuts and searches keep the marks of the bytes that they keep. */
#include "impl.h"

static const struct jstr *
str_arg(struct jrun *r, const struct jargs *a, size_t i, const char *what)
{
	if (i >= a->n)
		jfail(r, -EINVAL, "%s needs %zu arguments, %zu given", what,
		    i + 1, a->n);
	return jv_need_str(r, a->v[i], "the argument");
}

/* --- strip, case, padding --- */

static struct jv
strip(struct jrun *r, struct jv self, const struct jargs *a, unsigned sides)
{
	const struct jstr *chars = NULL;

	jargs_check(r, a, "strip", 0, 1, "");
	if (a->n > 0 && a->v[0].kind != J_NONE)
		chars = jv_need_str(r, a->v[0], "the argument of strip");
	return jv_str(jstr_strip(r, jv_s(self), chars, sides), self.safe);
}

static struct jv
str_strip(struct jrun *r, struct jv self, const struct jargs *a)
{
	return strip(r, self, a, 3);
}

static struct jv
str_lstrip(struct jrun *r, struct jv self, const struct jargs *a)
{
	return strip(r, self, a, 1);
}

static struct jv
str_rstrip(struct jrun *r, struct jv self, const struct jargs *a)
{
	return strip(r, self, a, 2);
}

static struct jv
str_upper(struct jrun *r, struct jv self, const struct jargs *a)
{
	jargs_check(r, a, "upper", 0, 0, "");
	return jv_str(jstr_case(r, jv_s(self), UC_UPPER), self.safe);
}

static struct jv
str_lower(struct jrun *r, struct jv self, const struct jargs *a)
{
	jargs_check(r, a, "lower", 0, 0, "");
	return jv_str(jstr_case(r, jv_s(self), UC_LOWER), self.safe);
}

static struct jv
str_title(struct jrun *r, struct jv self, const struct jargs *a)
{
	jargs_check(r, a, "title", 0, 0, "");
	return jv_str(jstr_case(r, jv_s(self), UC_TITLE), self.safe);
}

static struct jv
str_capitalize(struct jrun *r, struct jv self, const struct jargs *a)
{
	jargs_check(r, a, "capitalize", 0, 0, "");
	return jv_str(jstr_capitalize(r, jv_s(self)), self.safe);
}

/* How much is missing to the width, the first argument; *ret_fill the second. */
static int64_t
pad_of(struct jrun *r, struct jv self, const struct jargs *a,
    const struct jstr **ret_fill)
{
	int64_t width, n = (int64_t)jstr_nchars(r, jv_s(self));

	jargs_check(r, a, "padding", 1, 2, "");
	width = jv_int(r, a->v[0], "a width");
	*ret_fill = a->n > 1 ? str_arg(r, a, 1, "padding") :
	    jv_s(jv_cstr(r, " "));
	if (jstr_nchars(r, *ret_fill) != 1)
		jfail(r, -EINVAL, "The fill character must be exactly one "
		    "character long");
	return width > n ? width - n : 0;
}

static struct jv
str_ljust(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jstr *fill;
	int64_t pad = pad_of(r, self, a, &fill);

	return jv_str(jstr_pad(r, jv_s(self), 0, pad, fill), self.safe);
}

static struct jv
str_rjust(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jstr *fill;
	int64_t pad = pad_of(r, self, a, &fill);

	return jv_str(jstr_pad(r, jv_s(self), pad, 0, fill), self.safe);
}

static struct jv
str_center(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jstr *fill;
	int64_t pad = pad_of(r, self, a, &fill);
	int64_t left = pad / 2 + (pad & a->v[0].u.i & 1);

	return jv_str(jstr_pad(r, jv_s(self), left, pad - left, fill),
	    self.safe);
}

static struct jv
str_zfill(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jstr *s = jv_s(self), *zeros;
	int64_t pad;
	size_t sign = s->n > 0 && (s->s[0] == '-' || s->s[0] == '+');

	jargs_check(r, a, "zfill", 1, 1, "");
	pad = jv_int(r, a->v[0], "a width") - (int64_t)jstr_nchars(r, s);
	zeros = jstr_repeat(r, jv_s(jv_cstr(r, "0")), MAX(pad, (int64_t)0));
	return jv_str(jstr_cat(r, jstr_cat(r, jstr_part(r, s, 0, sign), zeros),
	    jstr_part(r, s, sign, s->n)), self.safe);
}

/* --- search --- */

/* The bytes that arguments i and i + 1, character indices, select. */
static void
window(struct jrun *r, const struct jstr *s, const struct jargs *a, size_t i,
    size_t *from, size_t *to)
{
	int64_t n = (int64_t)jstr_nchars(r, s), first = 0, last = n;

	if (a->n > i && a->v[i].kind != J_NONE)
		first = jv_int(r, a->v[i], "an index");
	if (a->n > i + 1 && a->v[i + 1].kind != J_NONE)
		last = jv_int(r, a->v[i + 1], "an index");
	first = first < 0 ? MAX(first + n, (int64_t)0) : first;
	last = last < 0 ? MAX(last + n, (int64_t)0) : MIN(last, n);
	/* Beyond the end not even an empty text is found. */
	*from = first > n ? s->n + 1 : jstr_offset(r, s, (size_t)first);
	*to = jstr_offset(r, s, (size_t)last);
}

/* The character index of byte at, as a value; -1: SIZE_MAX. */
static struct jv
char_index(struct jrun *r, const struct jstr *s, size_t at)
{
	if (at == SIZE_MAX)
		return jinja_int(-1, JINJA_TEMPLATE);
	return jinja_int((int64_t)jstr_nchars(r, jstr_part(r, s, 0, at)),
	    JINJA_TEMPLATE);
}

static struct jv
find(struct jrun *r, struct jv self, const struct jargs *a, int from_right,
    int must)
{
	const struct jstr *s = jv_s(self), *what = str_arg(r, a, 0, "find");
	size_t from, to, at;

	jargs_check(r, a, "find", 1, 3, "");
	window(r, s, a, 1, &from, &to);
	at = from_right ? jstr_rfind(r, s, what, from, to) :
	    jstr_find(r, s, what, from, to);
	if (must && at == SIZE_MAX)
		jfail(r, -EINVAL, "substring not found");
	return char_index(r, s, at);
}

static struct jv
str_find(struct jrun *r, struct jv self, const struct jargs *a)
{
	return find(r, self, a, 0, 0);
}

static struct jv
str_rfind(struct jrun *r, struct jv self, const struct jargs *a)
{
	return find(r, self, a, 1, 0);
}

static struct jv
str_index(struct jrun *r, struct jv self, const struct jargs *a)
{
	return find(r, self, a, 0, 1);
}

static struct jv
str_rindex(struct jrun *r, struct jv self, const struct jargs *a)
{
	return find(r, self, a, 1, 1);
}

static struct jv
str_count(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jstr *s = jv_s(self), *what = str_arg(r, a, 0, "count");
	size_t from, to, at;
	int64_t n = 0;

	jargs_check(r, a, "count", 1, 3, "");
	window(r, s, a, 1, &from, &to);
	if (what->n == 0 && from <= to)
		return jinja_int((int64_t)jstr_nchars(r, jstr_part(r, s, from,
		    to)) + 1, JINJA_TEMPLATE);
	while ((at = jstr_find(r, s, what, from, to)) != SIZE_MAX) {
		jstep(r, 1);
		n++;
		from = at + what->n;
	}
	return jinja_int(n, JINJA_TEMPLATE);
}

static int
has_affix(struct jrun *r, const struct jstr *s, size_t from, size_t to,
    struct jv v, int at_end)
{
	const struct jstr *x = jv_need_str(r, v, "a prefix or suffix");

	if (from > to || x->n > to - from)
		return 0;
	jstep(r, x->n / 64);
	return memcmp(s->s + (at_end ? to - x->n : from), x->s, x->n) == 0;
}

/* startswith and endswith take a text, or a tuple of some. */
static struct jv
affix(struct jrun *r, struct jv self, const struct jargs *a, int at_end)
{
	const struct jstr *s = jv_s(self);
	size_t from, to, i;
	int has = 0;

	jargs_check(r, a, at_end ? "endswith" : "startswith", 1, 3, "");
	window(r, s, a, 1, &from, &to);
	if (a->v[0].kind != J_TUPLE)
		has = has_affix(r, s, from, to, a->v[0], at_end);
	else
		for (i = 0; i < jv_l(a->v[0])->n && !has; i++)
			has = has_affix(r, s, from, to, jv_l(a->v[0])->v[i],
			    at_end);
	return jinja_bool(has, JINJA_TEMPLATE);
}

static struct jv
str_startswith(struct jrun *r, struct jv self, const struct jargs *a)
{
	return affix(r, self, a, 0);
}

static struct jv
str_endswith(struct jrun *r, struct jv self, const struct jargs *a)
{
	return affix(r, self, a, 1);
}

static struct jv
str_removeprefix(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jstr *s = jv_s(self);

	jargs_check(r, a, "removeprefix", 1, 1, "");
	if (!has_affix(r, s, 0, s->n, a->v[0], 0))
		return self;
	return jv_str(jstr_part(r, s, jv_s(a->v[0])->n, s->n), self.safe);
}

static struct jv
str_removesuffix(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jstr *s = jv_s(self);

	jargs_check(r, a, "removesuffix", 1, 1, "");
	if (!has_affix(r, s, 0, s->n, a->v[0], 1))
		return self;
	return jv_str(jstr_part(r, s, 0, s->n - jv_s(a->v[0])->n), self.safe);
}

/* --- split and join --- */

static void
add_part(struct jrun *r, struct jv list, struct jv self, size_t from, size_t to)
{
	jstep(r, 1);
	jlist_add(r, jv_l(list), jv_str(jstr_part(r, jv_s(self), from, to),
	    self.safe));
}

/* At white space, of which runs count once and ends not. */
static struct jv
split_words(struct jrun *r, struct jv self, int64_t max)
{
	const struct jstr *s = jv_s(self);
	struct jv list = jv_list(r, J_LIST);
	size_t at = 0, from;
	unsigned len;
	uint32_t c;

	for (;;) {
		while (at < s->n && (len = uc_get(s->s + at, s->n - at, &c),
		    uc_flags(c) & UC_SPACE))
			at += len;
		if (at >= s->n)
			return list;
		from = at;
		if (max >= 0 && (int64_t)jv_l(list)->n >= max) {
			add_part(r, list, self, from, s->n);
			return list;
		}
		while (at < s->n && (len = uc_get(s->s + at, s->n - at, &c),
		    !(uc_flags(c) & UC_SPACE)))
			at += len;
		jstep(r, (at - from) / 16);
		add_part(r, list, self, from, at);
	}
}

static void
turn_around(struct jlist *l)
{
	size_t i;

	for (i = 0; i < l->n / 2; i++) {
		struct jv v = l->v[i];

		l->v[i] = l->v[l->n - 1 - i];
		l->v[l->n - 1 - i] = v;
	}
}

static struct jv
rsplit_words(struct jrun *r, struct jv self, int64_t max)
{
	const struct jstr *s = jv_s(self);
	struct jv list = jv_list(r, J_LIST);
	size_t at = s->n, to;
	unsigned len;
	uint32_t c;

	for (;;) {
		while (at > 0 && (len = uc_back(s->s, at, &c),
		    uc_flags(c) & UC_SPACE))
			at -= len;
		if (at == 0)
			break;
		to = at;
		if (max >= 0 && (int64_t)jv_l(list)->n >= max) {
			add_part(r, list, self, 0, to);
			break;
		}
		while (at > 0 && (len = uc_back(s->s, at, &c),
		    !(uc_flags(c) & UC_SPACE)))
			at -= len;
		jstep(r, (to - at) / 16);
		add_part(r, list, self, at, to);
	}
	turn_around(jv_l(list));
	return list;
}

static struct jv
split(struct jrun *r, struct jv self, const struct jargs *a, int from_right)
{
	const struct jstr *s = jv_s(self), *sep;
	struct jv list = jv_list(r, J_LIST), v;
	int64_t max = -1;
	size_t from = 0, to = s->n, at;

	jargs_check(r, a, "split", 0, 2, "sep,maxsplit,");
	if (jarg(a, 1, "maxsplit", &v))
		max = jv_int(r, v, "maxsplit");
	if (!jarg(a, 0, "sep", &v) || v.kind == J_NONE)
		return from_right ? rsplit_words(r, self, max) :
		    split_words(r, self, max);
	sep = jv_need_str(r, v, "the separator");
	if (sep->n == 0)
		jfail(r, -EINVAL, "empty separator");
	while (max < 0 || max-- > 0) {
		at = from_right ? jstr_rfind(r, s, sep, from, to) :
		    jstr_find(r, s, sep, from, to);
		if (at == SIZE_MAX)
			break;
		if (from_right) {
			add_part(r, list, self, at + sep->n, to);
			to = at;
		} else {
			add_part(r, list, self, from, at);
			from = at + sep->n;
		}
	}
	add_part(r, list, self, from, to);
	if (from_right)
		turn_around(jv_l(list));
	return list;
}

static struct jv
str_split(struct jrun *r, struct jv self, const struct jargs *a)
{
	return split(r, self, a, 0);
}

static struct jv
str_rsplit(struct jrun *r, struct jv self, const struct jargs *a)
{
	return split(r, self, a, 1);
}

/* Line ends of str.splitlines(). */
static int
is_line_end(uint32_t c)
{
	return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) ||
	    c == 0x85 || c == 0x2028 || c == 0x2029;
}

static struct jv
str_splitlines(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jstr *s = jv_s(self);
	struct jv list = jv_list(r, J_LIST), v;
	size_t from = 0, at, end;
	int keep;
	uint32_t c;

	jargs_check(r, a, "splitlines", 0, 1, "keepends,");
	keep = jarg(a, 0, "keepends", &v) && jv_true(r, v);
	jstep(r, s->n / 16);
	for (at = 0; at < s->n; ) {
		end = at;
		at += uc_get(s->s + at, s->n - at, &c);
		if (!is_line_end(c))
			continue;
		if (c == '\r' && at < s->n && s->s[at] == '\n')
			at++;
		add_part(r, list, self, from, keep ? at : end);
		from = at;
	}
	if (from < s->n)
		add_part(r, list, self, from, s->n);
	return list;
}

static struct jv
partition(struct jrun *r, struct jv self, const struct jargs *a, int from_right)
{
	const struct jstr *s = jv_s(self), *sep = str_arg(r, a, 0, "partition");
	struct jv list = jv_list(r, J_TUPLE);
	size_t at;

	jargs_check(r, a, "partition", 1, 1, "");
	if (sep->n == 0)
		jfail(r, -EINVAL, "empty separator");
	at = from_right ? jstr_rfind(r, s, sep, 0, s->n) :
	    jstr_find(r, s, sep, 0, s->n);
	if (at != SIZE_MAX) {
		add_part(r, list, self, 0, at);
		add_part(r, list, self, at, at + sep->n);
		add_part(r, list, self, at + sep->n, s->n);
	} else if (from_right) {
		add_part(r, list, self, 0, 0);
		add_part(r, list, self, 0, 0);
		add_part(r, list, self, 0, s->n);
	} else {
		add_part(r, list, self, 0, s->n);
		add_part(r, list, self, 0, 0);
		add_part(r, list, self, 0, 0);
	}
	return list;
}

static struct jv
str_partition(struct jrun *r, struct jv self, const struct jargs *a)
{
	return partition(r, self, a, 0);
}

static struct jv
str_rpartition(struct jrun *r, struct jv self, const struct jargs *a)
{
	return partition(r, self, a, 1);
}

static struct jv
str_join(struct jrun *r, struct jv self, const struct jargs *a)
{
	struct jbuf b = { .r = r };
	struct jiter it;
	struct jv v;
	size_t n = 0;

	jargs_check(r, a, "join", 1, 1, "");
	jv_need(r, a->v[0]);
	jiter_open(r, &it, a->v[0]);
	while (jiter_next(r, &it, &v)) {
		if (n++ > 0)
			jbuf_str(&b, jv_s(self));
		jbuf_str(&b, jv_need_str(r, v, "an item of join"));
	}
	return jv_str(jbuf_end(&b), self.safe);
}

static struct jv
str_replace(struct jrun *r, struct jv self, const struct jargs *a)
{
	int64_t count = -1;

	jargs_check(r, a, "replace", 2, 3, "");
	if (a->n > 2)
		count = jv_int(r, a->v[2], "the count of replace");
	return jv_str(jstr_replace(r, jv_s(self), str_arg(r, a, 0, "replace"),
	    str_arg(r, a, 1, "replace"), count), self.safe);
}

/* --- format: {}, {0}, {name}, {{ and }} only, nothing that reaches into values --- */

static struct jv
format_field(struct jrun *r, const struct jstr *name, const struct jargs *a,
    size_t *next)
{
	size_t i = 0, k;

	if (name->n == 0) {
		if (*next >= a->n)
			jfail(r, -EINVAL, "Replacement index %zu out of range "
			    "for positional args tuple", *next);
		return a->v[(*next)++];
	}
	for (k = 0; k < name->n && k < 6 && name->s[k] >= '0' &&
	    name->s[k] <= '9'; k++)
		i = i * 10 + (size_t)(name->s[k] - '0');
	if (k == name->n && i < a->n)
		return a->v[i];
	for (k = 0; k < a->nkw; k++)
		if (jstr_eq(a->name[k], name))
			return a->kw[k];
	jfail(r, -EINVAL, "format: no argument for the field '{%.*s}'; only {}, "
	    "{0} and {name} are supported", (int)MIN(name->n, (size_t)64),
	    name->s);
}

static struct jv
str_format(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jstr *s = jv_s(self);
	struct jbuf b = { .r = r };
	size_t i, end, next = 0;

	for (i = 0; i < s->n; i++) {
		jstep(r, 1);
		if (s->s[i] != '{' && s->s[i] != '}') {
			jbuf_part(&b, s, i, i + 1);
			continue;
		}
		if (i + 1 < s->n && s->s[i + 1] == s->s[i]) {
			jbuf_part(&b, s, i, i + 1);
			i++;
			continue;
		}
		for (end = i; end < s->n && s->s[end] != '}'; end++)
			;
		if (s->s[i] == '}' || end == s->n)
			jfail(r, -EINVAL, "Single '%c' encountered in format "
			    "string", s->s[i]);
		jv_print(&b, format_field(r, jstr_part(r, s, i + 1, end), a,
		    &next));
		i = end;
	}
	return jv_str(jbuf_end(&b), self.safe);
}

/* --- questions about all characters --- */

static struct jv
all_have(struct jrun *r, struct jv self, unsigned flags, int empty)
{
	const struct jstr *s = jv_s(self);
	size_t at;
	uint32_t c;

	jstep(r, s->n / 16);
	for (at = 0; at < s->n; ) {
		at += uc_get(s->s + at, s->n - at, &c);
		if (!(uc_flags(c) & flags))
			return jinja_bool(0, JINJA_TEMPLATE);
	}
	return jinja_bool(s->n > 0 || empty, JINJA_TEMPLATE);
}

#define QUESTION(name, flags, empty) \
static struct jv \
name(struct jrun *r, struct jv self, const struct jargs *a) \
{ \
	jargs_check(r, a, #name, 0, 0, ""); \
	return all_have(r, self, flags, empty); \
}

QUESTION(str_isalnum, UC_ALPHA | UC_NUMERIC | UC_DIGIT, 0)
QUESTION(str_isalpha, UC_ALPHA, 0)
QUESTION(str_isdecimal, UC_DECIMAL, 0)
QUESTION(str_isdigit, UC_DIGIT, 0)
QUESTION(str_isnumeric, UC_NUMERIC, 0)
QUESTION(str_isprintable, UC_PRINT, 1)
QUESTION(str_isspace, UC_SPACE, 0)

static struct jv
str_islower(struct jrun *r, struct jv self, const struct jargs *a)
{
	jargs_check(r, a, "islower", 0, 0, "");
	return jinja_bool(jtest_apply(r, jtest_index("lower", 5), self, a),
	    JINJA_TEMPLATE);
}

static struct jv
str_isupper(struct jrun *r, struct jv self, const struct jargs *a)
{
	jargs_check(r, a, "isupper", 0, 0, "");
	return jinja_bool(jtest_apply(r, jtest_index("upper", 5), self, a),
	    JINJA_TEMPLATE);
}

static struct jv
str_isascii(struct jrun *r, struct jv self, const struct jargs *a)
{
	const struct jstr *s = jv_s(self);
	size_t i;

	jargs_check(r, a, "isascii", 0, 0, "");
	jstep(r, s->n / 16);
	for (i = 0; i < s->n && (uint8_t)s->s[i] < 0x80; i++)
		;
	return jinja_bool(i == s->n, JINJA_TEMPLATE);
}

const struct jmethod_row jmethods_str[] = {
	{ "strip", str_strip }, { "lstrip", str_lstrip },
	{ "rstrip", str_rstrip }, { "split", str_split },
	{ "rsplit", str_rsplit }, { "splitlines", str_splitlines },
	{ "startswith", str_startswith }, { "endswith", str_endswith },
	{ "replace", str_replace }, { "format", str_format },
	{ "upper", str_upper }, { "lower", str_lower },
	{ "title", str_title }, { "capitalize", str_capitalize },
	{ "join", str_join }, { "find", str_find }, { "rfind", str_rfind },
	{ "index", str_index }, { "rindex", str_rindex },
	{ "count", str_count }, { "removeprefix", str_removeprefix },
	{ "removesuffix", str_removesuffix },
	{ "partition", str_partition }, { "rpartition", str_rpartition },
	{ "ljust", str_ljust }, { "rjust", str_rjust },
	{ "center", str_center }, { "zfill", str_zfill },
	{ "isalnum", str_isalnum }, { "isalpha", str_isalpha },
	{ "isdecimal", str_isdecimal }, { "isdigit", str_isdigit },
	{ "isnumeric", str_isnumeric }, { "isprintable", str_isprintable },
	{ "isspace", str_isspace }, { "islower", str_islower },
	{ "isupper", str_isupper }, { "isascii", str_isascii },
	{ "casefold", NULL }, { "encode", NULL }, { "expandtabs", NULL },
	{ "format_map", NULL },
	{ "isidentifier", NULL }, { "istitle", NULL }, { "maketrans", NULL },
	{ "swapcase", NULL }, { "translate", NULL }, { NULL, NULL }
};
