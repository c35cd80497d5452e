/* coordinator/text/jinja/filters.c - filters of texts and numbers, and the table of
 * all filters. */
#include "impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { INT_TEXT_BYTES = 128 };

/* As Jinja's soft_str(): a string stays as it is, safe or not. */
static struct jv
soft_str(struct jrun *r, struct jv v)
{
	return v.kind == J_STRING ? v : jv_str(jv_to_str(r, v), 0);
}

static struct jv
filter_upper(struct jrun *r, struct jv v, const struct jargs *args)
{
	jargs_check(r, args, "upper", 0, 0, "");
	return jv_str(jstr_case(r, jv_to_str(r, v), UC_UPPER), v.safe);
}

static struct jv
filter_lower(struct jrun *r, struct jv v, const struct jargs *args)
{
	jargs_check(r, args, "lower", 0, 0, "");
	return jv_str(jstr_case(r, jv_to_str(r, v), UC_LOWER), v.safe);
}

static struct jv
filter_capitalize(struct jrun *r, struct jv v, const struct jargs *args)
{
	jargs_check(r, args, "capitalize", 0, 0, "");
	return jv_str(jstr_capitalize(r, jv_to_str(r, v)), v.safe);
}

/* Words begin behind white space, - and opening brackets, unlike str.title(). */
static struct jv
filter_title(struct jrun *r, struct jv v, const struct jargs *args)
{
	const struct jstr *s = jv_to_str(r, v), *word;
	struct jbuf b = { .r = r };
	size_t from = 0, at;
	unsigned len;
	uint32_t c;

	jargs_check(r, args, "title", 0, 0, "");
	for (at = 0; at <= s->n; at += len) {
		len = 1;
		c = ' ';
		if (at < s->n)
			len = uc_get(s->s + at, s->n - at, &c);
		if (!(uc_flags(c) & UC_SPACE) && (c >= 0x80 || c == 0 ||
		    strchr("-({[<", (int)c) == NULL))
			continue;
		word = jstr_capitalize(r, jstr_part(r, s, from, at));
		jbuf_str(&b, word);
		if (at < s->n)
			jbuf_part(&b, s, at, at + len);
		from = at + len;
	}
	return jv_str(jbuf_end(&b), v.safe);
}

static struct jv
filter_trim(struct jrun *r, struct jv v, const struct jargs *args)
{
	const struct jstr *chars = NULL;
	struct jv a;

	jargs_check(r, args, "trim", 0, 1, "chars,");
	if (jarg(args, 0, "chars", &a) && a.kind != J_NONE)
		chars = jv_need_str(r, a, "the argument of trim");
	return jv_str(jstr_strip(r, jv_to_str(r, v), chars, 3), v.safe);
}

static struct jv
filter_string(struct jrun *r, struct jv v, const struct jargs *args)
{
	jargs_check(r, args, "string", 0, 0, "");
	return soft_str(r, v);
}

static struct jv
filter_safe(struct jrun *r, struct jv v, const struct jargs *args)
{
	jargs_check(r, args, "safe", 0, 0, "");
	return jv_str(jv_to_str(r, v), 1);
}

static struct jv
filter_escape(struct jrun *r, struct jv v, const struct jargs *args)
{
	jargs_check(r, args, "escape", 0, 0, "");
	if (v.kind == J_STRING && v.safe)
		return v;
	return jv_str(jstr_escape(r, jv_to_str(r, v)), 1);
}

static struct jv
filter_replace(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv from, to, count;
	int64_t n = -1;

	jargs_check(r, args, "replace", 2, 3, "old,new,count,");
	if (!jarg(args, 0, "old", &from) || !jarg(args, 1, "new", &to))
		jfail(r, -EINVAL, "replace needs old and new");
	if (jarg(args, 2, "count", &count) && count.kind != J_NONE)
		n = jv_int(r, count, "the count of replace");
	return jv_str(jstr_replace(r, jv_to_str(r, v), jv_to_str(r, from),
	    jv_to_str(r, to), n), 0);
}

static struct jv
filter_center(struct jrun *r, struct jv v, const struct jargs *args)
{
	const struct jstr *s = jv_to_str(r, v);
	int64_t width = 80, pad, left;
	struct jv a;

	jargs_check(r, args, "center", 0, 1, "width,");
	if (jarg(args, 0, "width", &a))
		width = jv_int(r, a, "the width of center");
	pad = width - (int64_t)jstr_nchars(r, s);
	left = pad / 2 + (pad & width & 1);
	if (pad <= 0)
		return jv_str(s, v.safe);
	return jv_str(jstr_pad(r, s, left, pad - left,
	    jv_s(jv_cstr(r, " "))), v.safe);
}

/* Whether a line of s[from, to) is more than white space. */
static int
is_blank(const struct jstr *s, size_t from, size_t to)
{
	return from == to || (to - from == 1 && s->s[from] == '\n');
}

/* indent(width=4, first=False, blank=False): width is a number or a text. */
static struct jv
filter_indent(struct jrun *r, struct jv v, const struct jargs *args)
{
	const struct jstr *s = jv_need_str(r, v, "the value of indent"), *pad;
	struct jbuf b = { .r = r };
	struct jv a, width = jinja_int(4, JINJA_TEMPLATE);
	int first, blank;
	size_t from, to, at = 0;

	jargs_check(r, args, "indent", 0, 3, "width,first,blank,");
	jarg(args, 0, "width", &width);
	pad = width.kind == J_STRING ? jv_s(width) : jstr_repeat(r,
	    jv_s(jv_cstr(r, " ")), jv_int(r, width, "the width of indent"));
	first = jarg(args, 1, "first", &a) && jv_true(r, a);
	blank = jarg(args, 2, "blank", &a) && jv_true(r, a);
	for (from = 0; from < s->n || from == 0; from = to) {
		for (to = from; to < s->n && s->s[to] != '\n'; to++)
			;
		at = to;
		if (to < s->n)
			to++;
		jstep(r, 1);
		if (from == 0 ? first : blank || !is_blank(s, from, to))
			jbuf_str(&b, pad);
		jbuf_part(&b, s, from, to);
		if (to == 0)
			break;
	}
	/* Behind a last newline there is a line without anything. */
	if (s->n > 0 && at < s->n && blank)
		jbuf_str(&b, pad);
	return jv_str(jbuf_end(&b), v.safe);
}

/* Copy s without white space around it and without _ between digits; 0: too long. */
static int
plain_number(struct jrun *r, const struct jstr *s, char *to)
{
	const struct jstr *t = jstr_strip(r, s, NULL, 3);
	size_t i, k = 0;

	if (t->n == 0 || t->n >= INT_TEXT_BYTES)
		return 0;
	for (i = 0; i < t->n; i++) {
		if (t->s[i] == '_' && i > 0 && i + 1 < t->n &&
		    t->s[i - 1] != '_')
			continue;
		/* strtod() takes hexadecimal numbers, Python does not. */
		if (t->s[i] == '\0' || t->s[i] == ' ' || t->s[i] == '_' ||
		    t->s[i] == '\t')
			return 0;
		to[k++] = t->s[i];
	}
	to[k] = '\0';
	return 1;
}

static int
text_to_int(struct jrun *r, const struct jstr *s, int base, int64_t *ret)
{
	char text[INT_TEXT_BYTES], *end;

	if (!plain_number(r, s, text) || (base != 0 && (base < 2 || base > 36)))
		return 0;
	errno = 0;
	*ret = strtoll(text, &end, base);
	if (end == text || *end != '\0')
		return 0;
	if (errno == ERANGE)
		jfail(r, -EINVAL, "integer overflow: numbers beyond 64 bits are "
		    "not supported");
	return 1;
}

static int
text_to_float(struct jrun *r, const struct jstr *s, double *ret)
{
	char text[INT_TEXT_BYTES], *end;

	if (!plain_number(r, s, text) || strpbrk(text, "xXpP(") != NULL)
		return 0;
	*ret = strtod(text, &end);
	return end != text && *end == '\0';
}

/* int(default=0, base=10) */
static struct jv
filter_int(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv a, other = jinja_int(0, JINJA_TEMPLATE);
	int64_t base = 10, i;
	double f;

	jargs_check(r, args, "int", 0, 2, "default,base,");
	jarg(args, 0, "default", &other);
	if (jarg(args, 1, "base", &a))
		base = jv_int(r, a, "the base of int");
	jv_need(r, v);
	if (v.kind == J_INT || v.kind == J_BOOL)
		return jinja_int(v.u.i, v.by);
	if (v.kind == J_STRING) {
		unsigned mark = jv_s(v)->n > 0 ? jstr_mark(jv_s(v), 0) : 0;

		if (text_to_int(r, jv_s(v), (int)MIN(base, 99), &i))
			return jinja_int(i, mark);
		if (!text_to_float(r, jv_s(v), &f))
			return other;
		v = jinja_float(f, mark);
	}
	if (v.kind != J_FLOAT || !isfinite(v.u.f))
		return other;
	if (fabs(v.u.f) >= 9223372036854775808.0)
		jfail(r, -EINVAL, "integer overflow: numbers beyond 64 bits are "
		    "not supported");
	return jinja_int((int64_t)v.u.f, v.by);
}

static struct jv
filter_float(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct jv other = jinja_float(0, JINJA_TEMPLATE);
	double f;

	jargs_check(r, args, "float", 0, 1, "default,");
	jarg(args, 0, "default", &other);
	jv_need(r, v);
	if (v.kind == J_FLOAT)
		return v;
	if (v.kind == J_INT || v.kind == J_BOOL)
		return jinja_float((double)v.u.i, v.by);
	if (v.kind == J_STRING && text_to_float(r, jv_s(v), &f))
		return jinja_float(f, jstr_mark(jv_s(v), 0));
	return other;
}

static struct jv
filter_abs(struct jrun *r, struct jv v, const struct jargs *args)
{
	jargs_check(r, args, "abs", 0, 0, "");
	jv_need(r, v);
	if (v.kind == J_FLOAT)
		return jinja_float(fabs(v.u.f), v.by);
	return jop_negate(r, v, jv_is_number(v) && v.u.i < 0 ? -1 : 1);
}

/* round(precision=0, method='common'): a float. */
static struct jv
filter_round(struct jrun *r, struct jv v, const struct jargs *args)
{
	const struct jstr *method = NULL;
	int64_t precision = 0;
	double f, scale;
	char text[512];
	struct jv a;

	jargs_check(r, args, "round", 0, 2, "precision,method,");
	if (jarg(args, 0, "precision", &a))
		precision = jv_int(r, a, "the precision of round");
	if (jarg(args, 1, "method", &a))
		method = jv_need_str(r, a, "the method of round");
	jv_need(r, v);
	if (!jv_is_number(v) || precision < -20 || precision > 20)
		jfail(r, -EINVAL, "round cannot round this '%s'", jv_type(v));
	f = v.kind == J_FLOAT ? v.u.f : (double)v.u.i;
	scale = pow(10, (double)precision);
	if (method != NULL && jstr_is(method, "ceil"))
		f = ceil(f * scale) / scale;
	else if (method != NULL && jstr_is(method, "floor"))
		f = floor(f * scale) / scale;
	else if (method != NULL && !jstr_is(method, "common"))
		jfail(r, -EINVAL, "method must be common, ceil or floor");
	else if (v.kind != J_FLOAT && precision >= 0)
		return jinja_int(v.u.i, v.by);
	else if (precision >= 0) {
		snprintf(text, sizeof(text), "%.*f", (int)precision, f);
		f = strtod(text, NULL);
	} else
		f = rint(f * scale) / scale;
	return v.kind == J_FLOAT || method != NULL ? jinja_float(f, v.by) :
	    jinja_int((int64_t)f, v.by);
}

static struct jv
filter_tojson(struct jrun *r, struct jv v, const struct jargs *args)
{
	return jv_tojson(r, v, args);
}

static struct jv
filter_format(struct jrun *r, struct jv v, const struct jargs *args)
{
	if (args->nkw > 0)
		jfail(r, -EINVAL, "format with named arguments is not supported");
	return jop_format(r, jv_to_str(r, v), args->v, args->n);
}

/* Runs of letters, digits and _. */
static struct jv
filter_wordcount(struct jrun *r, struct jv v, const struct jargs *args)
{
	const struct jstr *s = jv_to_str(r, v);
	int64_t n = 0;
	int in_word = 0, is_word;
	size_t at;
	uint32_t c;

	jargs_check(r, args, "wordcount", 0, 0, "");
	jstep(r, s->n / 8);
	for (at = 0; at < s->n; in_word = is_word) {
		at += uc_get(s->s + at, s->n - at, &c);
		is_word = c == '_' || (uc_flags(c) & (UC_ALPHA | UC_NUMERIC));
		n += is_word && !in_word;
	}
	return jinja_int(n, JINJA_TEMPLATE);
}

/* truncate(length=255, killwords=False, end='...', leeway=5) */
static struct jv
filter_truncate(struct jrun *r, struct jv v, const struct jargs *args)
{
	const struct jstr *s, *end, *space, *cut;
	int64_t length = 255, leeway = 5, n = (int64_t)jv_length(r, v), keep;
	struct jv a;
	size_t at;
	int kill;

	jargs_check(r, args, "truncate", 0, 4, "length,killwords,end,leeway,");
	if (jarg(args, 0, "length", &a))
		length = jv_int(r, a, "the length of truncate");
	kill = jarg(args, 1, "killwords", &a) && jv_true(r, a);
	end = jarg(args, 2, "end", &a) ? jv_need_str(r, a, "the end of truncate") :
	    jv_s(jv_cstr(r, "..."));
	if (jarg(args, 3, "leeway", &a) && a.kind != J_NONE)
		leeway = jv_int(r, a, "the leeway of truncate");
	keep = length - (int64_t)jstr_nchars(r, end);
	if (keep < 0 || leeway < 0)
		jfail(r, -EINVAL, "expected length >= %lld, got %lld",
		    (long long)(length - keep), (long long)length);
	if (n - leeway <= length)
		return v;
	s = jv_need_str(r, v, "the value of truncate");
	cut = jstr_part(r, s, 0, jstr_offset(r, s, (size_t)keep));
	space = jv_s(jv_cstr(r, " "));
	if (!kill && (at = jstr_rfind(r, cut, space, 0, cut->n)) != SIZE_MAX)
		cut = jstr_part(r, cut, 0, at);
	return jv_str(jstr_cat(r, cut, end), 0);
}

const struct jfilter jfilters_text[] = {
	{ "abs", filter_abs }, { "capitalize", filter_capitalize },
	{ "center", filter_center }, { "e", filter_escape },
	{ "escape", filter_escape }, { "float", filter_float },
	{ "format", filter_format }, { "indent", filter_indent },
	{ "int", filter_int }, { "lower", filter_lower },
	{ "replace", filter_replace }, { "round", filter_round },
	{ "safe", filter_safe }, { "string", filter_string },
	{ "title", filter_title }, { "tojson", filter_tojson },
	{ "trim", filter_trim }, { "truncate", filter_truncate },
	{ "upper", filter_upper }, { "wordcount", filter_wordcount }
};
const size_t njfilters_text = NITEMS(jfilters_text);

/* --- the table --- */

unsigned
jfilter_index(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < njfilters_text + njfilters_list; i++) {
		const char *name = i < njfilters_text ? jfilters_text[i].name :
		    jfilters_list[i - njfilters_text].name;

		if (strlen(name) == n && memcmp(name, s, n) == 0)
			return (unsigned)i;
	}
	return JNO_INDEX;
}

struct jv
jfilter_apply(struct jrun *r, unsigned index, struct jv v,
    const struct jargs *args)
{
	struct jv out;

	jenter(r);
	if (index < njfilters_text)
		out = jfilters_text[index].fn(r, v, args);
	else
		out = jfilters_list[index - njfilters_text].fn(r, v, args);
	jleave(r);
	return out;
}
