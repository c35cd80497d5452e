/* coordinator/text/jinja/tojson.c - values as JSON, as Python's json.dumps() writes
 * them for chat templates: tojson(ensure_ascii=False, indent=None, separators=None,
 * sort_keys=False). */
#include "impl.h"

#include <math.h>
#include <stdio.h>

struct dump {
	struct jbuf b;
	struct jrun *r;
	int ascii, sorted;
	const struct jstr *indent;	/* NULL: all in one line */
	const struct jstr *comma, *colon;
	unsigned level;
};

static void dump_value(struct dump *d, struct jv v);

static void
dump_char(struct dump *d, const struct jstr *s, size_t at, unsigned len,
    uint32_t c)
{
	static const char from[] = "\"\\\n\r\t\f\b", into[] = "\"\\nrtfb";
	unsigned mark = jstr_mark(s, at);
	const char *p = c != 0 && c < 0x80 ? strchr(from, (int)c) : NULL;
	char text[16];

	if (p != NULL)
		snprintf(text, sizeof(text), "\\%c", into[p - from]);
	else if (c < ' ' || (d->ascii && c > '~' && c < 0x10000))
		snprintf(text, sizeof(text), "\\u%04x", c);
	else if (d->ascii && c > '~')
		snprintf(text, sizeof(text), "\\u%04x\\u%04x",
		    0xd800 + ((c - 0x10000) >> 10),
		    0xdc00 + ((c - 0x10000) & 0x3ff));
	else {
		jbuf_part(&d->b, s, at, at + len);
		return;
	}
	jbuf_puts(&d->b, text, mark);
}

static void
dump_string(struct dump *d, const struct jstr *s)
{
	unsigned len, mark = s->n > 0 ? jstr_mark(s, 0) : s->mark;
	size_t at, plain = 0;
	uint32_t c;

	jstep(d->r, s->n / 16);
	jbuf_puts(&d->b, "\"", mark);
	for (at = 0; at < s->n; at += len) {
		len = uc_get(s->s + at, s->n - at, &c);
		if (c >= ' ' && c != '"' && c != '\\' &&
		    (!d->ascii || c <= '~'))
			continue;
		jbuf_part(&d->b, s, plain, at);
		dump_char(d, s, at, len, c);
		plain = at + len;
	}
	jbuf_part(&d->b, s, plain, s->n);
	jbuf_puts(&d->b, "\"", mark);
}

static void
dump_float(struct dump *d, struct jv v)
{
	char text[JFLOAT_BYTES];

	if (isnan(v.u.f))
		strcpy(text, "NaN");
	else if (isinf(v.u.f))
		strcpy(text, v.u.f < 0 ? "-Infinity" : "Infinity");
	else
		jfloat_text(v.u.f, text);
	jbuf_puts(&d->b, text, v.by);
}

static void
new_line(struct dump *d, unsigned mark)
{
	unsigned i;

	if (d->indent == NULL)
		return;
	jbuf_puts(&d->b, "\n", mark);
	for (i = 0; i < d->level; i++) {
		jstep(d->r, 1);
		jbuf_add(&d->b, d->indent->s, d->indent->n, mark);
	}
}

/* Before item i of a list or dict. */
static void
separate(struct dump *d, size_t i, unsigned mark)
{
	if (i > 0)
		jbuf_add(&d->b, d->comma->s, d->comma->n, mark);
	new_line(d, mark);
}

static void
dump_list(struct dump *d, struct jv v)
{
	const struct jlist *l = jv_l(v);
	size_t i;

	jbuf_puts(&d->b, "[", v.by);
	d->level++;
	for (i = 0; i < l->n; i++) {
		separate(d, i, v.by);
		dump_value(d, l->v[i]);
	}
	d->level--;
	if (l->n > 0)
		new_line(d, v.by);
	jbuf_puts(&d->b, "]", v.by);
}

static void
dump_key(struct dump *d, struct jv key)
{
	if (key.kind == J_STRING) {
		dump_string(d, jv_s(key));
		return;
	}
	if (!jv_is_number(key) && key.kind != J_NONE)
		jfail(d->r, -EINVAL, "keys must be str, int, float, bool or "
		    "None, not %s", jv_type(key));
	jbuf_puts(&d->b, "\"", key.by);
	dump_value(d, key);
	jbuf_puts(&d->b, "\"", key.by);
}

/* The items of a dict in the order of their keys. */
static struct jdict *
sort_keys(struct dump *d, const struct jdict *from)
{
	struct jdict *to = jzalloc(d->r, 1, sizeof(*to));
	struct jv list = jv_list(d->r, J_LIST), keys = jv_list(d->r, J_LIST);
	size_t i;

	for (i = 0; i < from->n; i++) {
		jlist_add(d->r, jv_l(keys), from->v[i].key);
		jlist_add(d->r, jv_l(list), jv_pair(d->r, from->v[i].key,
		    from->v[i].value));
	}
	jlist_sort(d->r, jv_l(list), jv_l(keys), 1, 0);
	for (i = 0; i < from->n; i++) {
		struct jlist *pair = jv_l(jv_l(list)->v[i]);

		jdict_put(d->r, to, pair->v[0], pair->v[1]);
	}
	return to;
}

static void
dump_dict(struct dump *d, struct jv v)
{
	const struct jdict *dict = jv_d(v);
	size_t i;

	if (d->sorted)
		dict = sort_keys(d, dict);
	jbuf_puts(&d->b, "{", v.by);
	d->level++;
	for (i = 0; i < dict->n; i++) {
		separate(d, i, v.by);
		dump_key(d, dict->v[i].key);
		jbuf_add(&d->b, d->colon->s, d->colon->n, v.by);
		dump_value(d, dict->v[i].value);
	}
	d->level--;
	if (dict->n > 0)
		new_line(d, v.by);
	jbuf_puts(&d->b, "}", v.by);
}

static void
dump_value(struct dump *d, struct jv v)
{
	jstep(d->r, 1);
	jenter(d->r);
	switch (v.kind) {
	case J_NONE:
		jbuf_puts(&d->b, "null", v.by);
		break;
	case J_BOOL:
		jbuf_puts(&d->b, v.u.i ? "true" : "false", v.by);
		break;
	case J_INT:
		jv_repr(&d->b, v);
		break;
	case J_FLOAT:
		dump_float(d, v);
		break;
	case J_STRING:
		dump_string(d, jv_s(v));
		break;
	case J_LIST:
	case J_TUPLE:
		dump_list(d, v);
		break;
	case J_DICT:
		dump_dict(d, v);
		break;
	default:
		jfail(d->r, -EINVAL, "Object of type %s is not JSON serializable",
		    jv_type(v));
	}
	jleave(d->r);
}

static const struct jstr *
indent_of(struct dump *d, struct jv v)
{
	if (v.kind == J_NONE)
		return NULL;
	if (v.kind == J_STRING)
		return jv_s(v);
	return jstr_repeat(d->r, jv_s(jv_cstr(d->r, " ")),
	    jv_int(d->r, v, "indent"));
}

struct jv
jv_tojson(struct jrun *r, struct jv v, const struct jargs *args)
{
	struct dump d = { .b = { .r = r }, .r = r };
	struct jv a;

	jargs_check(r, args, "tojson", 0, 4,
	    "ensure_ascii,indent,separators,sort_keys,");
	if (jarg(args, 0, "ensure_ascii", &a))
		d.ascii = jv_true(r, a);
	if (jarg(args, 1, "indent", &a))
		d.indent = indent_of(&d, a);
	d.comma = jv_s(jv_cstr(r, d.indent != NULL ? "," : ", "));
	d.colon = jv_s(jv_cstr(r, ": "));
	if (jarg(args, 2, "separators", &a) && a.kind != J_NONE) {
		a = jv_to_list(r, a);
		if (jv_l(a)->n != 2)
			jfail(r, -EINVAL, "separators must be two strings");
		d.comma = jv_need_str(r, jv_l(a)->v[0], "a separator");
		d.colon = jv_need_str(r, jv_l(a)->v[1], "a separator");
	}
	if (jarg(args, 3, "sort_keys", &a))
		d.sorted = jv_true(r, a);
	dump_value(&d, v);
	return jv_str(jbuf_end(&d.b), 0);
}
