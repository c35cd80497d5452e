/* coordinator/text/jinja/print.c - values as text, as Python's str() and repr()
 * write them. */
#include "impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The digits and the exponent of the shortest form that reads back as f. */
static int
shortest(double f, char *digits)
{
	char text[JFLOAT_BYTES];
	int precision, exponent;
	char *e, *s;

	for (precision = 0; precision < 17; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, f);
		if (strtod(text, NULL) == f)
			break;
	}
	e = strchr(text, 'e');
	exponent = atoi(e + 1);
	for (s = text; s < e; s++)
		if (*s >= '0' && *s <= '9')
			*digits++ = *s;
	*digits = '\0';
	return exponent;
}

/* As Python's repr(): an exponent below -4 and from 16 on. */
void
jfloat_text(double f, char *to)
{
	char digits[JFLOAT_BYTES];
	int exponent, n, i;

	if (!isfinite(f)) {
		strcpy(to, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
		return;
	}
	exponent = shortest(fabs(f), digits);
	n = (int)strlen(digits);
	while (n > 1 && digits[n - 1] == '0')
		digits[--n] = '\0';
	if (signbit(f))
		*to++ = '-';
	if (exponent < -4 || exponent >= 16) {
		*to++ = digits[0];
		if (n > 1) {
			*to++ = '.';
			to = stpcpy(to, digits + 1);
		}
		sprintf(to, "e%c%02d", exponent < 0 ? '-' : '+',
		    abs(exponent));
		return;
	}
	if (exponent < 0) {
		to = stpcpy(to, "0.");
		for (i = -1; i > exponent; i--)
			*to++ = '0';
		strcpy(to, digits);
		return;
	}
	for (i = 0; i <= exponent; i++)
		*to++ = i < n ? digits[i] : '0';
	*to++ = '.';
	strcpy(to, n > exponent + 1 ? digits + exponent + 1 : "0");
}

static void
repr_char(struct jbuf *b, uint32_t c, char quote, const struct jstr *s,
    size_t at, unsigned len)
{
	unsigned mark = jstr_mark(s, at);
	char text[16];

	if (c == (uint8_t)quote || c == '\\') {
		jbuf_puts(b, "\\", mark);
		jbuf_part(b, s, at, at + len);
	} else if (c == '\n' || c == '\r' || c == '\t')
		jbuf_puts(b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t",
		    mark);
	else if ((len == 1 && c >= 0x80) || !(uc_flags(c) & UC_PRINT)) {
		snprintf(text, sizeof(text), c < 0x100 ? "\\x%02x" :
		    c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
		jbuf_puts(b, text, mark);
	} else
		jbuf_part(b, s, at, at + len);
}

static void
repr_str(struct jbuf *b, const struct jstr *s)
{
	int has_single = s->n > 0 && memchr(s->s, '\'', s->n) != NULL;
	int has_double = s->n > 0 && memchr(s->s, '"', s->n) != NULL;
	char quote[2] = { has_single && !has_double ? '"' : '\'', 0 };
	unsigned len, mark = s->n > 0 ? jstr_mark(s, 0) : s->mark;
	uint32_t c;
	size_t at;

	jstep(b->r, s->n / 8);
	jbuf_puts(b, quote, mark);
	for (at = 0; at < s->n; at += len) {
		len = uc_get(s->s + at, s->n - at, &c);
		repr_char(b, c, quote[0], s, at, len);
	}
	jbuf_puts(b, quote, mark);
}

static void
repr_list(struct jbuf *b, struct jv v)
{
	const struct jlist *l = jv_l(v);
	size_t i;

	if (v.kind == J_VIEW) {
		jbuf_puts(b, l->view, v.by);
		jbuf_puts(b, "(", v.by);
	}
	jbuf_puts(b, v.kind == J_TUPLE ? "(" : "[", v.by);
	for (i = 0; i < l->n; i++) {
		if (i > 0)
			jbuf_puts(b, ", ", v.by);
		jv_repr(b, l->v[i]);
	}
	if (v.kind == J_TUPLE)
		jbuf_puts(b, l->n == 1 ? ",)" : ")", v.by);
	else
		jbuf_puts(b, v.kind == J_VIEW ? "])" : "]", v.by);
}

static void
repr_dict(struct jbuf *b, struct jv v)
{
	const struct jdict *d = jv_d(v);
	size_t i;

	if (v.kind == J_NAMESPACE)
		jbuf_puts(b, "<Namespace ", v.by);
	jbuf_puts(b, "{", v.by);
	for (i = 0; i < d->n; i++) {
		if (i > 0)
			jbuf_puts(b, ", ", v.by);
		jv_repr(b, d->v[i].key);
		jbuf_puts(b, ": ", v.by);
		jv_repr(b, d->v[i].value);
	}
	jbuf_puts(b, v.kind == J_NAMESPACE ? "}>" : "}", v.by);
}

static void
repr_other(struct jbuf *b, struct jv v)
{
	const struct jrange *g = v.u.p;
	const struct jloop *l = v.u.p;
	const char *text;
	struct jrun *r = b->r;

	if (v.kind == J_RANGE && g->step != 1)
		text = jformat(r, "range(%lld, %lld, %lld)",
		    (long long)g->from, (long long)(g->from +
		    (int64_t)g->n * g->step), (long long)g->step);
	else if (v.kind == J_RANGE)
		text = jformat(r, "range(%lld, %lld)", (long long)g->from,
		    (long long)(g->from + (int64_t)g->n));
	else if (v.kind == J_LOOP)
		text = jformat(r, "<LoopContext %zu/%zu>", l->i + 1, l->n);
	else if (v.kind == J_MACRO)
		text = jformat(r, "<Macro '%.100s'>",
		    ((struct jmacro *)v.u.p)->node->name->s);
	else
		text = jformat(r, "<%s object>", jv_type(v));
	jbuf_puts(b, text, v.by);
}

void
jv_repr(struct jbuf *b, struct jv v)
{
	char text[JFLOAT_BYTES];

	jstep(b->r, 1);
	jenter(b->r);
	switch (v.kind) {
	case J_UNDEFINED:
		jbuf_puts(b, "Undefined", v.by);
		break;
	case J_NONE:
		jbuf_puts(b, "None", v.by);
		break;
	case J_BOOL:
		jbuf_puts(b, v.u.i ? "True" : "False", v.by);
		break;
	case J_INT:
		snprintf(text, sizeof(text), "%lld", (long long)v.u.i);
		jbuf_puts(b, text, v.by);
		break;
	case J_FLOAT:
		jfloat_text(v.u.f, text);
		jbuf_puts(b, text, v.by);
		break;
	case J_STRING:
		if (v.safe)
			jbuf_puts(b, "Markup(", v.by);
		repr_str(b, jv_s(v));
		if (v.safe)
			jbuf_puts(b, ")", v.by);
		break;
	case J_LIST:
	case J_TUPLE:
	case J_VIEW:
		repr_list(b, v);
		break;
	case J_DICT:
	case J_NAMESPACE:
		repr_dict(b, v);
		break;
	default:
		repr_other(b, v);
	}
	jleave(b->r);
}

void
jv_print(struct jbuf *b, struct jv v)
{
	if (v.kind == J_STRING)
		jbuf_str(b, jv_s(v));
	else if (v.kind != J_UNDEFINED)
		jv_repr(b, v);
}

const struct jstr *
jv_to_str(struct jrun *r, struct jv v)
{
	struct jbuf b = { .r = r };

	if (v.kind == J_STRING)
		return jv_s(v);
	jv_print(&b, v);
	return jbuf_end(&b);
}
