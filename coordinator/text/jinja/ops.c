/* coordinator/text/jinja/ops.c - operators, attributes, items and slices.
 * Integers have 64 bits; a result beyond them fails, where Python's grow. */
#include "impl.h"

#include <math.h>
#include <stdio.h>

static const char *
sign_of(enum jop op)
{
	static const char *const signs[] = { "", "+", "-", "*", "/", "//", "%",
	    "**" };

	return op <= OP_POW ? signs[op] : "?";
}

NORETURN static void
refuse(struct jrun *r, enum jop op, struct jv a, struct jv b)
{
	jfail(r, -EINVAL, "unsupported operand type(s) for %s: '%s' and '%s'",
	    sign_of(op), jv_type(a), jv_type(b));
}

NORETURN static void
overflow(struct jrun *r)
{
	jfail(r, -EINVAL, "integer overflow: numbers beyond 64 bits are not "
	    "supported");
}

static int64_t
floor_div(struct jrun *r, int64_t a, int64_t b)
{
	int64_t q;

	if (b == 0)
		jfail(r, -EINVAL, "integer division or modulo by zero");
	if (a == INT64_MIN && b == -1)
		overflow(r);
	q = a / b;
	return q - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t
int_pow(struct jrun *r, int64_t base, int64_t exp)
{
	int64_t v = 1;

	while (exp > 0) {
		if ((exp & 1) && __builtin_mul_overflow(v, base, &v))
			overflow(r);
		exp >>= 1;
		if (exp > 0 && __builtin_mul_overflow(base, base, &base))
			overflow(r);
	}
	return v;
}

static struct jv
int_op(struct jrun *r, enum jop op, int64_t a, int64_t b, unsigned by)
{
	int64_t v = 0;
	int over = 0;

	switch (op) {
	case OP_ADD:
		over = __builtin_add_overflow(a, b, &v);
		break;
	case OP_SUB:
		over = __builtin_sub_overflow(a, b, &v);
		break;
	case OP_MUL:
		over = __builtin_mul_overflow(a, b, &v);
		break;
	case OP_FLOORDIV:
		v = floor_div(r, a, b);
		break;
	case OP_MOD:
		v = b == -1 ? 0 : a - floor_div(r, a, b) * b;
		break;
	case OP_POW:
		if (b < 0 && a == 0)
			jfail(r, -EINVAL, "0.0 cannot be raised to a negative "
			    "power");
		if (b < 0)
			return jinja_float(pow((double)a, (double)b), by);
		v = int_pow(r, a, b);
		break;
	default:
		if (b == 0)
			jfail(r, -EINVAL, "division by zero");
		return jinja_float((double)a / (double)b, by);
	}
	if (over)
		overflow(r);
	return jinja_int(v, by);
}

static double
float_mod(double a, double b)
{
	double m = fmod(a, b);

	if (m != 0 && (m < 0) != (b < 0))
		m += b;
	return m == 0 ? copysign(0, b) : m;
}

static struct jv
float_op(struct jrun *r, enum jop op, double a, double b, unsigned by)
{
	double v = 0;

	if ((op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD) && b == 0)
		jfail(r, -EINVAL, "float division by zero");
	switch (op) {
	case OP_ADD:
		v = a + b;
		break;
	case OP_SUB:
		v = a - b;
		break;
	case OP_MUL:
		v = a * b;
		break;
	case OP_DIV:
		v = a / b;
		break;
	case OP_FLOORDIV:
		v = floor((a - float_mod(a, b)) / b + 0.5);
		if (v == 0)
			v = copysign(0, a / b);
		break;
	case OP_MOD:
		v = float_mod(a, b);
		break;
	default:
		v = pow(a, b);
	}
	return jinja_float(v, by);
}

static double
as_double(struct jv v)
{
	return v.kind == J_FLOAT ? v.u.f : (double)v.u.i;
}

/* a|safe + text: the text is escaped, unless it is safe itself. */
static struct jv
add_strings(struct jrun *r, struct jv a, struct jv b)
{
	const struct jstr *x = jv_s(a), *y = jv_s(b);

	if (a.safe && !b.safe)
		y = jstr_escape(r, y);
	if (b.safe && !a.safe)
		x = jstr_escape(r, x);
	return jv_str(jstr_cat(r, x, y), a.safe || b.safe);
}

static struct jv
add_lists(struct jrun *r, struct jv a, struct jv b)
{
	struct jv v = jv_list(r, a.kind);
	size_t i;

	v.by = a.by;
	jstep(r, jv_l(a)->n + jv_l(b)->n);
	for (i = 0; i < jv_l(a)->n; i++)
		jlist_add(r, jv_l(v), jv_l(a)->v[i]);
	for (i = 0; i < jv_l(b)->n; i++)
		jlist_add(r, jv_l(v), jv_l(b)->v[i]);
	return v;
}

static struct jv
repeat_list(struct jrun *r, struct jv a, int64_t times)
{
	struct jv v = jv_list(r, a.kind);
	size_t i, n = jv_l(a)->n;

	v.by = a.by;
	for (; times > 0 && n > 0; times--)
		for (i = 0; i < n; i++) {
			jstep(r, 1);
			jlist_add(r, jv_l(v), jv_l(a)->v[i]);
		}
	return v;
}

static int
is_int(struct jv v)
{
	return v.kind == J_INT || v.kind == J_BOOL;
}

static struct jv
sequence_op(struct jrun *r, enum jop op, struct jv a, struct jv b)
{
	if (op == OP_ADD && a.kind == J_STRING && b.kind == J_STRING)
		return add_strings(r, a, b);
	if (op == OP_ADD && a.kind == b.kind &&
	    (a.kind == J_LIST || a.kind == J_TUPLE))
		return add_lists(r, a, b);
	if (op == OP_ADD && a.kind == J_STRING)
		jfail(r, -EINVAL, "can only concatenate str (not \"%s\") to "
		    "str", jv_type(b));
	if (op == OP_MUL && is_int(a))
		return sequence_op(r, op, b, a);
	if (op == OP_MUL && is_int(b) && a.kind == J_STRING)
		return jv_str(jstr_repeat(r, jv_s(a), b.u.i), a.safe);
	if (op == OP_MUL && is_int(b) &&
	    (a.kind == J_LIST || a.kind == J_TUPLE))
		return repeat_list(r, a, b.u.i);
	if (op == OP_MOD && a.kind == J_STRING) {
		if (b.kind == J_TUPLE)
			return jop_format(r, jv_s(a), jv_l(b)->v, jv_l(b)->n);
		return jop_format(r, jv_s(a), &b, 1);
	}
	refuse(r, op, a, b);
}

struct jv
jop_binary(struct jrun *r, enum jop op, struct jv a, struct jv b)
{
	unsigned by;

	jv_need(r, a);
	if (op != OP_MOD || a.kind != J_STRING)
		jv_need(r, b);
	if (!jv_is_number(a) || !jv_is_number(b)) {
		if (is_int(a) && is_int(b))
			refuse(r, op, a, b);
		return sequence_op(r, op, a, b);
	}
	by = a.by | b.by;
	if (a.kind != J_FLOAT && b.kind != J_FLOAT)
		return int_op(r, op, a.u.i, b.u.i, by);
	return float_op(r, op, as_double(a), as_double(b), by);
}

struct jv
jop_negate(struct jrun *r, struct jv v, int sign)
{
	jv_need(r, v);
	if (!jv_is_number(v))
		jfail(r, -EINVAL, "bad operand type for unary %c: '%s'",
		    sign < 0 ? '-' : '+', jv_type(v));
	if (v.kind == J_FLOAT) {
		v.u.f *= sign;
		return v;
	}
	v.kind = J_INT;
	if (sign < 0 && __builtin_sub_overflow(0, v.u.i, &v.u.i))
		overflow(r);
	return v;
}

static const char *
describe(struct jv v)
{
	return v.kind == J_NONE ? "None" : jv_type(v);
}

struct jv
jop_attr(struct jrun *r, struct jv v, const struct jstr *name)
{
	struct jv *have = NULL, m;

	jv_need(r, v);
	if (v.kind == J_LOOP)
		return jloop_attr(r, v.u.p, name);
	if (v.kind == J_CYCLER && jstr_is(name, "current"))
		return jv_l(v)->v[jv_l(v)->at % jv_l(v)->n];
	if (v.kind == J_NAMESPACE)
		have = jdict_find_str(r, jv_d(v), name);
	else if (jmethod_find(r, v, name, &m))
		return m;
	else if (v.kind == J_DICT)
		have = jdict_find_str(r, jv_d(v), name);
	if (have != NULL)
		return *have;
	return jv_undefined(r, "'%s%s' has no attribute '%.100s'", describe(v),
	    v.kind == J_NONE ? "" : " object", name->s);
}

/* Item i of a sequence of n, from its end if it is negative; 0: none. */
static int
find_index(struct jv key, size_t n, size_t *ret)
{
	int64_t i = key.u.i;

	if (i < 0)
		i += (int64_t)n;
	*ret = (size_t)i;
	return i >= 0 && (size_t)i < n;
}

static int
indexed(struct jrun *r, struct jv v, struct jv key, struct jv *ret)
{
	const struct jrange *g = v.u.p;
	size_t i, at, end;

	if (!is_int(key) || (v.kind != J_STRING && !jv_is_sequence(v)) ||
	    !find_index(key, jv_length(r, v), &i))
		return 0;
	if (v.kind == J_STRING) {
		at = jstr_offset(r, jv_s(v), i);
		end = at + jstr_offset(r, &(struct jstr){ .s = jv_s(v)->s + at,
		    .n = jv_s(v)->n - at, .nchars = SIZE_MAX }, 1);
		*ret = jv_str(jstr_part(r, jv_s(v), at, end), v.safe);
	} else if (v.kind == J_RANGE)
		*ret = jinja_int(g->from + (int64_t)i * g->step,
		    JINJA_TEMPLATE);
	else
		*ret = jv_l(v)->v[i];
	return 1;
}

struct jv
jop_item(struct jrun *r, struct jv v, struct jv key)
{
	struct jv *have, item;

	jv_need(r, v);
	if (v.kind == J_DICT && key.kind != J_LIST && key.kind != J_DICT &&
	    (have = jdict_find(r, jv_d(v), key)) != NULL)
		return *have;
	if (indexed(r, v, key, &item))
		return item;
	if (key.kind == J_STRING) {
		const struct jstr *name = jv_s(key);

		if (v.kind == J_DICT)
			return jmethod_find(r, v, name, &item) ? item :
			    jv_undefined(r, "'dict object' has no attribute "
			    "'%.*s'", (int)MIN(name->n, (size_t)100), name->s);
		return jop_attr(r, v, name);
	}
	if (key.kind == J_INT)
		return jv_undefined(r, "%s%s has no element %lld", describe(v),
		    v.kind == J_NONE ? "" : " object", (long long)key.u.i);
	return jv_undefined(r, "%s%s has no such element", describe(v),
	    v.kind == J_NONE ? "" : " object");
}

/* Python's slice.indices(): the first index, and the number of them. */
static int64_t
slice_start(struct jrun *r, struct jv from, struct jv to, int64_t step,
    int64_t len, size_t *ret_n)
{
	int64_t low = step < 0 ? -1 : 0, high = step < 0 ? len - 1 : len;
	int64_t a = step < 0 ? high : low, b = step < 0 ? low : high;

	if (from.kind != J_NONE) {
		a = jv_int(r, from, "a slice's index");
		a = a < 0 ? MAX(a + len, low) : MIN(a, high);
	}
	if (to.kind != J_NONE) {
		b = jv_int(r, to, "a slice's index");
		b = b < 0 ? MAX(b + len, low) : MIN(b, high);
	}
	if (step > 0)
		*ret_n = a < b ? (uint64_t)(b - a - 1) / (uint64_t)step + 1 : 0;
	else
		*ret_n = b < a ? (uint64_t)(a - b - 1) / (0 - (uint64_t)step) +
		    1 : 0;
	return a;
}

static struct jv
slice_string(struct jrun *r, struct jv v, int64_t from, int64_t step, size_t n)
{
	const struct jstr *s = jv_s(v);
	struct jbuf b = { .r = r };
	size_t at, i;
	uint32_t c;

	if (n == 0)
		return jv_str(jbuf_end(&b), v.safe);
	at = jstr_offset(r, s, (size_t)from);
	if (step == 1)
		return jv_str(jstr_part(r, s, at, jstr_offset(r, s,
		    (size_t)from + n)), v.safe);
	if (step == -1) {
		at += uc_get(s->s + at, s->n - at, &c);
		for (i = 0; i < n; i++) {
			unsigned len = uc_back(s->s, at, &c);

			jstep(r, 1);
			jbuf_part(&b, s, at - len, at);
			at -= len;
		}
		return jv_str(jbuf_end(&b), v.safe);
	}
	for (i = 0; i < n; i++) {
		at = jstr_offset(r, s, (size_t)(from + (int64_t)i * step));
		jstep(r, 1 + at / 16);
		jbuf_part(&b, s, at, at + uc_get(s->s + at, s->n - at, &c));
	}
	return jv_str(jbuf_end(&b), v.safe);
}

struct jv
jop_slice(struct jrun *r, struct jv v, struct jv from, struct jv to,
    struct jv step)
{
	struct jv list;
	int64_t by = 1, at;
	size_t n, i;

	jv_need(r, v);
	if (v.kind != J_STRING && !jv_is_sequence(v))
		jfail(r, -EINVAL, "'%s' object is not subscriptable with a slice",
		    jv_type(v));
	if (step.kind != J_NONE && (by = jv_int(r, step, "a slice's step")) == 0)
		jfail(r, -EINVAL, "slice step cannot be zero");
	at = slice_start(r, from, to, by, (int64_t)jv_length(r, v), &n);
	if (v.kind == J_STRING)
		return slice_string(r, v, at, by, n);
	list = jv_list(r, v.kind == J_TUPLE ? J_TUPLE : J_LIST);
	list.by = v.by;
	if (v.kind == J_RANGE)
		v = jv_to_list(r, v);
	jstep(r, n);
	for (i = 0; i < n; i++)
		jlist_add(r, jv_l(list), jv_l(v)->v[at + (int64_t)i * by]);
	return list;
}

/* One conversion of a format: %s, %r, %d, %i, %x, %f, %g, %%. */
static void
convert(struct jbuf *b, const char *flags, char kind, struct jv v)
{
	struct jrun *r = b->r;
	struct jbuf text = { .r = r };
	char fmt[48], out[512];

	if (kind == 's' || kind == 'r') {
		if (*flags != '\0')
			jfail(r, -EINVAL, "a width of %%%c is not supported",
			    kind);
		if (kind == 's')
			jv_print(&text, v);
		else
			jv_repr(&text, v);
		jbuf_str(b, jbuf_end(&text));
		return;
	}
	jv_need(r, v);
	if (!jv_is_number(v))
		jfail(r, -EINVAL, "%%%c format: a real number is required, not "
		    "%s", kind, jv_type(v));
	if (kind == 'd' || kind == 'i' || kind == 'x') {
		int64_t i = v.kind == J_FLOAT ? (fabs(v.u.f) < 9e18 ?
		    (int64_t)v.u.f : 0) : v.u.i;

		snprintf(fmt, sizeof(fmt), "%%%s%s", flags, kind == 'x' ?
		    "llx" : "lld");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(out, sizeof(out), fmt, (long long)i);
	} else {
		snprintf(fmt, sizeof(fmt), "%%%s%c", flags, kind);
		snprintf(out, sizeof(out), fmt, as_double(v));
#pragma GCC diagnostic pop
	}
	jbuf_puts(b, out, v.by);
}

/* Copy the flags, width and precision at i: up to two digits each. */
static size_t
read_flags(struct jrun *r, const struct jstr *fmt, size_t i, char *flags)
{
	size_t k = 0, digits = 0;

	for (; i < fmt->n && fmt->s[i] != '\0' &&
	    strchr("-+ 0123456789.", fmt->s[i]) != NULL; i++) {
		digits = fmt->s[i] == '.' ? 0 : digits + 1;
		if (k == 8 || digits > 2)
			jfail(r, -EINVAL, "a format's width is too large");
		flags[k++] = fmt->s[i];
	}
	flags[k] = '\0';
	return i;
}

struct jv
jop_format(struct jrun *r, const struct jstr *fmt, const struct jv *v, size_t n)
{
	struct jbuf b = { .r = r };
	size_t i, used = 0;
	char flags[16];

	for (i = 0; i < fmt->n; i++) {
		jstep(r, 1);
		if (fmt->s[i] != '%') {
			jbuf_part(&b, fmt, i, i + 1);
			continue;
		}
		i = read_flags(r, fmt, i + 1, flags);
		if (i >= fmt->n)
			jfail(r, -EINVAL, "incomplete format");
		if (fmt->s[i] == '%') {
			jbuf_part(&b, fmt, i, i + 1);
			continue;
		}
		if (fmt->s[i] == '\0' || strchr("srdixfg", fmt->s[i]) == NULL)
			jfail(r, -EINVAL, "unsupported format character");
		if (used == n)
			jfail(r, -EINVAL, "not enough arguments for format "
			    "string");
		convert(&b, flags, fmt->s[i], v[used++]);
	}
	/* Python takes all that has items for a mapping, by name. */
	if (used < n && !(n == 1 && (v[0].kind == J_DICT ||
	    v[0].kind == J_LIST || v[0].kind == J_RANGE ||
	    v[0].kind == J_UNDEFINED)))
		jfail(r, -EINVAL, "not all arguments converted during string "
		    "formatting");
	return jv_str(jbuf_end(&b), 0);
}
