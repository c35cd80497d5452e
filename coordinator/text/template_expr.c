/* coordinator/text/template_expr.c - the expressions of a chat template.
 * Order of precedence: "Expressions" of Jinja's template documentation; filters
 * and tests bind closest, then unary minus, * % /, ~, + -, comparisons, not,
 * and, or, if. */
#include "template_expr.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_DEPTH = 64 };	/* of nested expressions */

static const struct value opaque = { .kind = V_OPAQUE };

static int
take_op(struct reader *r, const char *op)
{
	return reader_take(r, TT_OP, op);
}

static int
take_name(struct reader *r, const char *name)
{
	return reader_take(r, TT_NAME, name);
}

/* Go one level deeper: every function that calls itself does, or the template
 * decides how much stack its reading takes. */
static void
enter(struct reader *r)
{
	if (r->depth++ > MAX_DEPTH)
		reader_fail(r, "an expression that is too deep");
}

/* --- calls --- */

enum { MAX_ARGS = 4 };

struct args {
	struct value v[MAX_ARGS];
	unsigned n;
};

/* The arguments up to the parenthesis.  space: those with names become its
 * attributes. */
static void
read_args(struct reader *r, struct args *a, long space)
{
	*a = (struct args){ 0 };
	while (!r->failed && !take_op(r, ")")) {
		const struct template_token *name = NULL;
		struct value v;

		if (reader_is(r, r->at, TT_NAME, NULL) &&
		    reader_is(r, r->at + 1, TT_OP, "=")) {
			name = &r->t->tok[r->at];
			r->at += 2;
		}
		v = read_expr(r);
		if (name != NULL && space >= 0)
			space_set(r, space, name->s, name->n, v);
		if (a->n < MAX_ARGS)
			a->v[a->n++] = name != NULL ? opaque : v;
		if (!take_op(r, ",") && !reader_is(r, r->at, TT_OP, ")"))
			reader_fail(r, "a call");
	}
}

/* Append the part of the date that %c stands for; 0 = not known. */
static size_t
put_date(char *to, size_t room, char c, const struct tm *tm)
{
	switch (c) {
	case 'd':
		return strftime(to, room, "%d", tm);
	case 'e':
		return strftime(to, room, "%e", tm);
	case 'm':
		return strftime(to, room, "%m", tm);
	case 'b':
		return strftime(to, room, "%b", tm);
	case 'B':
		return strftime(to, room, "%B", tm);
	case 'Y':
		return strftime(to, room, "%Y", tm);
	case 'a':
		return strftime(to, room, "%a", tm);
	case 'A':
		return strftime(to, room, "%A", tm);
	default:
		return 0;
	}
}

/* strftime_now(FORMAT).  Only dates are known: with the time of the day, every
 * run would have another prompt. */
static struct value
now_text(struct reader *r, const struct args *a)
{
	const size_t room = sizeof(r->date) - r->ndate;
	char *to = r->date + r->ndate;
	struct tm tm;
	size_t n = 0, len = 0, more, i;
	const char *s = a->n == 1 ? value_text(r, &a->v[0], &n) : NULL;

	if (s == NULL || n >= room / 4 ||
	    localtime_r(&r->vars->now, &tm) == NULL)
		return opaque;
	for (i = 0; i < n; i++) {
		if (len + 1 >= room)
			return opaque;
		if (s[i] != '%') {
			to[len++] = s[i];
			continue;
		}
		more = i + 1 < n ? put_date(to + len, room - len,
		    s[++i], &tm) : 0;
		if (more == 0)
			return opaque;
		len += more;
	}
	r->ndate += len;
	return value_literal(r, to, len);
}

static struct value
call_function(struct reader *r, const struct value *f)
{
	struct args a;
	long space = word_is(f->s, f->len, "namespace") ? r->nspaces++ : -1;

	read_args(r, &a, space);
	if (space >= 0)
		return value_make(V_SPACE, space);
	if (word_is(f->s, f->len, "strftime_now"))
		return now_text(r, &a);
	if (!r->is_skipping) {
		r->refused = 1;
		reader_fail(r, "an error that the template raises");
	}
	return opaque;
}

static struct value
strip_method(struct reader *r, const struct value *v, const struct args *a,
    int left, int right)
{
	if (a->n > 1 || (a->n == 1 && !value_is_text(r, &a->v[0], "\n")))
		return opaque;
	return value_strip(r, v, left, right, a->n == 1);
}

static struct value
call_method(struct reader *r, const struct value *v,
    const struct template_token *name)
{
	struct args a;
	const char *s;
	size_t n = 0;

	read_args(r, &a, -1);
	s = a.n > 0 ? value_text(r, &a.v[0], &n) : NULL;
	if (v->kind == V_MESSAGE && word_is(name->s, name->n, "get") &&
	    s != NULL) {
		struct value got = value_attribute(r, v, s, n);

		if (got.kind == V_UNDEFINED)
			return a.n > 1 ? a.v[1] : value_make(V_NONE, 0);
		return got;
	}
	if (v->kind != V_TEXT)
		return opaque;
	if (word_is(name->s, name->n, "strip"))
		return strip_method(r, v, &a, 1, 1);
	if (word_is(name->s, name->n, "lstrip"))
		return strip_method(r, v, &a, 1, 0);
	if (word_is(name->s, name->n, "rstrip"))
		return strip_method(r, v, &a, 0, 1);
	if (a.n == 0)
		return value_case(r, v, name->s, name->n);
	if (s == NULL || n == 0)
		return opaque;
	if (word_is(name->s, name->n, "startswith"))
		return value_of_truth(value_begins_with(r, v, s, n, 0));
	if (word_is(name->s, name->n, "endswith"))
		return value_of_truth(value_begins_with(r, v, s, n, 1));
	if (word_is(name->s, name->n, "split") && a.n == 1 &&
	    value_contains(r, v, s, n) >= 0)
		return (struct value){ .kind = V_SPLIT, .first = v->first,
		    .count = v->count, .s = s, .len = n };
	return opaque;
}

/* --- operands --- */

/* Behind an opening bracket that is of no interest. */
static void
skip_brackets(struct reader *r)
{
	unsigned open = 1;

	while (!r->failed && open > 0) {
		const struct template_token *t = &r->t->tok[r->at];

		if (r->at >= r->t->n || t->type == TT_CLOSE) {
			reader_fail(r, "a bracket");
			return;
		}
		if (t->type == TT_OP && strchr("([{", *t->s) != NULL)
			open++;
		if (t->type == TT_OP && strchr(")]}", *t->s) != NULL)
			open--;
		r->at++;
	}
}

static struct value
read_slice(struct reader *r, const struct value *v, const struct value *from)
{
	struct value to = value_make(V_NONE, 0), step = to, ret = *v;
	long count = v->n - v->from;

	if (!reader_is(r, r->at, TT_OP, "]") &&
	    !reader_is(r, r->at, TT_OP, ":"))
		to = read_expr(r);
	if (take_op(r, ":") && !reader_is(r, r->at, TT_OP, "]"))
		step = read_expr(r);
	if (v->kind != V_LIST || v->reversed ||
	    (from->kind != V_NONE && from->kind != V_INT) ||
	    (to.kind != V_NONE && to.kind != V_INT))
		return opaque;
	if (step.kind != V_NONE && (step.kind != V_INT || step.n != -1 ||
	    from->kind != V_NONE || to.kind != V_NONE))
		return opaque;
	ret.reversed = step.kind == V_INT;
	if (from->kind == V_INT)
		ret.from = v->from + MIN(MAX(from->n < 0 ? from->n + count :
		    from->n, 0), count);
	if (to.kind == V_INT)
		ret.n = v->from + MIN(MAX(to.n < 0 ? to.n + count : to.n, 0),
		    count);
	ret.n = MAX(ret.n, ret.from);
	return ret;
}

static struct value
read_index(struct reader *r, const struct value *v)
{
	struct value i = value_make(V_NONE, 0);
	const char *s;
	size_t n;

	if (!reader_is(r, r->at, TT_OP, ":"))
		i = read_expr(r);
	if (take_op(r, ":"))
		return read_slice(r, v, &i);
	if ((s = value_text(r, &i, &n)) != NULL)
		return value_attribute(r, v, s, n);
	return i.kind == V_INT ? value_item(r, v, i.n) : opaque;
}

static struct value
read_bracket(struct reader *r)
{
	struct value v;

	if (take_op(r, "(")) {
		v = read_expr(r);
		if (take_op(r, ")"))
			return v;
		skip_brackets(r);	/* a tuple */
		return opaque;
	}
	if (take_op(r, "[")) {
		if (take_op(r, "]"))
			return value_make(V_EMPTY, 0);
		skip_brackets(r);
		return opaque;
	}
	if (take_op(r, "{")) {
		if (take_op(r, "}"))
			return value_make(V_EMPTY, 0);
		skip_brackets(r);
		return opaque;
	}
	reader_fail(r, "an expression");
	return opaque;
}

static struct value
read_primary(struct reader *r)
{
	const struct template_token *t = &r->t->tok[r->at];
	struct value v, next;

	if (r->at >= r->t->n || !reader_work(r, 1)) {
		reader_fail(r, "an expression");
		return opaque;
	}
	switch (t->type) {
	case TT_STRING:
		v = value_literal(r, t->s, t->n);
		r->at++;
		while (reader_is(r, r->at, TT_STRING, NULL)) {
			t = &r->t->tok[r->at++];
			next = value_literal(r, t->s, t->n);
			v = value_concat(r, &v, &next);
		}
		return v;
	case TT_INT:
		r->at++;
		return t->n < 9 ? value_make(V_INT, strtol(t->s, NULL, 10)) :
		    opaque;
	case TT_NAME:
		r->at++;
		return value_of_name(r, t);
	default:
		return read_bracket(r);
	}
}

static struct value
read_postfix(struct reader *r)
{
	struct value v = read_primary(r);

	for (;;) {
		if (take_op(r, ".")) {
			const struct template_token *t = &r->t->tok[r->at];

			if (!reader_take(r, TT_NAME, NULL)) {
				reader_fail(r, "an attribute");
				return opaque;
			}
			v = take_op(r, "(") ? call_method(r, &v, t) :
			    value_attribute(r, &v, t->s, t->n);
		} else if (take_op(r, "[")) {
			v = read_index(r, &v);
			if (!take_op(r, "]"))
				reader_fail(r, "an index");
		} else if (take_op(r, "(")) {
			struct args a;

			if (v.kind == V_FUNCTION) {
				v = call_function(r, &v);
			} else {
				read_args(r, &a, -1);
				v = opaque;
			}
		} else {
			return v;
		}
	}
}

static struct value
length_of(const struct reader *r, const struct value *v)
{
	size_t n;

	if (v->kind == V_LIST)
		return value_make(V_INT, v->n - v->from);
	if (v->kind == V_EMPTY || v->kind == V_UNDEFINED)
		return value_make(V_INT, 0);
	if (v->kind != V_TEXT)
		return opaque;
	return value_text(r, v, &n) != NULL && n == 0 ? value_make(V_INT, 0) :
	    value_make(V_LENGTH, 1);
}

static struct value
read_filter(struct reader *r, const struct value *v)
{
	const struct template_token *t = &r->t->tok[r->at];
	struct args a = { 0 };

	if (!reader_take(r, TT_NAME, NULL)) {
		reader_fail(r, "a filter");
		return opaque;
	}
	if (take_op(r, "("))
		read_args(r, &a, -1);
	if (word_is(t->s, t->n, "trim") && a.n == 0)
		return v->kind == V_UNDEFINED ? value_make(V_TEXT, 0) :
		    value_strip(r, v, 1, 1, 0);
	if (word_is(t->s, t->n, "string") && v->kind == V_TEXT)
		return *v;
	if (word_is(t->s, t->n, "length") || word_is(t->s, t->n, "count"))
		return length_of(r, v);
	if (word_is(t->s, t->n, "list") && v->kind == V_LIST)
		return *v;
	if (word_is(t->s, t->n, "first") || word_is(t->s, t->n, "last"))
		return value_item(r, v, t->n == 5 ? 0 : -1);
	if ((word_is(t->s, t->n, "default") || word_is(t->s, t->n, "d")) &&
	    a.n > 0) {
		int replace = v->kind == V_UNDEFINED;

		if (a.n > 1 && value_truth(r, &a.v[1]) != 0)
			replace = value_truth(r, &a.v[1]) < 0 ? -1 :
			    value_truth(r, v) < 0 ? -1 : !value_truth(r, v);
		return v->kind == V_OPAQUE || replace < 0 ? opaque :
		    replace ? a.v[0] : *v;
	}
	return a.n == 0 ? value_case(r, v, t->s, t->n) : opaque;
}

/* 1, 0 or -1. */
static int
test_value(const struct value *v, const char *name, size_t n)
{
	const int list = v->kind == V_LIST || v->kind == V_EMPTY;

	if (word_is(name, n, "defined"))
		return v->kind != V_UNDEFINED;
	if (word_is(name, n, "undefined"))
		return v->kind == V_UNDEFINED;
	if (v->kind == V_OPAQUE || v->kind == V_SPLIT)
		return -1;
	if (word_is(name, n, "none") || word_is(name, n, "None"))
		return v->kind == V_NONE;
	if (word_is(name, n, "string"))
		return v->kind == V_TEXT;
	if (word_is(name, n, "mapping"))
		return v->kind == V_EMPTY ? -1 : v->kind == V_MESSAGE;
	if (word_is(name, n, "iterable") || word_is(name, n, "sequence"))
		return list || v->kind == V_TEXT || v->kind == V_UNDEFINED ||
		    v->kind == V_MESSAGE;
	if (word_is(name, n, "boolean"))
		return v->kind == V_BOOL;
	if (word_is(name, n, "true") || word_is(name, n, "True"))
		return v->kind == V_BOOL && v->n == 1;
	if (word_is(name, n, "false") || word_is(name, n, "False"))
		return v->kind == V_BOOL && v->n == 0;
	return -1;
}

static struct value
read_test(struct reader *r, const struct value *v)
{
	int not = take_name(r, "not"), holds;
	const struct template_token *t = &r->t->tok[r->at];

	if (!reader_take(r, TT_NAME, NULL)) {
		reader_fail(r, "a test");
		return opaque;
	}
	/* Tests with an argument are not known. */
	if (take_op(r, "(")) {
		skip_brackets(r);
		return opaque;
	}
	holds = test_value(v, t->s, t->n);
	/* An opaque value is one that a loop or a call gave: it is defined,
	 * but this is not sure. */
	if (v->kind == V_OPAQUE)
		holds = -1;
	return holds < 0 ? opaque : value_make(V_BOOL, holds != not);
}

static struct value
read_filtered(struct reader *r)
{
	struct value v = read_postfix(r);

	for (;;) {
		if (take_op(r, "|"))
			v = read_filter(r, &v);
		else if (take_name(r, "is"))
			v = read_test(r, &v);
		else
			return v;
	}
}

/* a + b, or a - b where sign is -1.  Jinja's integers have no limit. */
static struct value
add_ints(const struct value *a, const struct value *b, long sign)
{
	long n;

	if (a->kind != V_INT || b->kind != V_INT ||
	    __builtin_mul_overflow(b->n, sign, &n) ||
	    __builtin_add_overflow(a->n, n, &n))
		return opaque;
	return value_make(V_INT, n);
}

static struct value
read_unary(struct reader *r)
{
	const struct value zero = value_make(V_INT, 0);
	struct value v;

	if (!take_op(r, "-"))
		return read_filtered(r);
	v = read_filtered(r);
	return add_ints(&zero, &v, -1);
}

static struct value
read_product(struct reader *r)
{
	struct value v = read_unary(r), right;

	for (;;) {
		if (take_op(r, "%")) {
			right = read_unary(r);
			v = v.kind == V_INT && right.kind == V_INT &&
			    v.n >= 0 && right.n > 0 ?
			    value_make(V_INT, v.n % right.n) : opaque;
		} else if (take_op(r, "*") || take_op(r, "/") ||
		    take_op(r, "//") || take_op(r, "**")) {
			read_unary(r);
			v = opaque;
		} else {
			return v;
		}
	}
}

/* The operand of ~ as a text. */
static struct value
to_text(struct reader *r, const struct value *v)
{
	return v->kind == V_UNDEFINED ? value_literal(r, "", 0) : *v;
}

static struct value
read_joined(struct reader *r)
{
	struct value v = read_product(r), right;

	while (take_op(r, "~")) {
		right = read_product(r);
		right = to_text(r, &right);
		v = to_text(r, &v);
		v = value_concat(r, &v, &right);
	}
	return v;
}

static struct value
read_sum(struct reader *r)
{
	struct value v = read_joined(r), right;

	for (;;) {
		if (take_op(r, "+")) {
			right = read_joined(r);
			v = v.kind == V_INT ? add_ints(&v, &right, 1) :
			    value_concat(r, &v, &right);
		} else if (take_op(r, "-")) {
			right = read_joined(r);
			v = add_ints(&v, &right, -1);
		} else {
			return v;
		}
	}
}

/* --- comparisons --- */

/* Is `needle` in what follows?  Of a list in brackets the items are read
 * here. */
static int
read_in(struct reader *r, const struct value *needle)
{
	struct value v;
	const char *s;
	size_t n;
	int found = 0, equal;

	if (take_op(r, "[") || (reader_is(r, r->at, TT_OP, "(") &&
	    reader_is(r, r->at + 2, TT_OP, ",") && r->at++ > 0)) {
		while (!r->failed && !take_op(r, "]") && !take_op(r, ")")) {
			v = read_expr(r);
			equal = value_equals(r, needle, &v);
			found = found == 1 || equal == 1 ? 1 :
			    MIN(found, equal);
			take_op(r, ",");
		}
		return found;
	}
	v = read_sum(r);
	s = value_text(r, needle, &n);
	if (v.kind == V_EMPTY || v.kind == V_UNDEFINED)
		return 0;
	if (s == NULL)
		return -1;
	if (v.kind == V_MESSAGE)
		return word_is(s, n, "role") || word_is(s, n, "content");
	return v.kind == V_TEXT ? value_contains(r, &v, s, n) : -1;
}

static struct value
read_comparison(struct reader *r)
{
	static const char *const ops[] = { "<", "<=", ">", ">=" };
	struct value v = read_sum(r), right;
	int holds, order;
	size_t i;

	if (take_op(r, "==") || take_op(r, "!=")) {
		int not = *r->t->tok[r->at - 1].s == '!';

		right = read_sum(r);
		holds = value_equals(r, &v, &right);
		return value_of_truth(holds < 0 ? -1 : holds != not);
	}
	if (take_name(r, "in"))
		return value_of_truth(read_in(r, &v));
	if (reader_is(r, r->at, TT_NAME, "not") &&
	    reader_is(r, r->at + 1, TT_NAME, "in")) {
		r->at += 2;
		holds = read_in(r, &v);
		return value_of_truth(holds < 0 ? -1 : !holds);
	}
	for (i = 0; i < NITEMS(ops); i++) {
		if (!take_op(r, ops[i]))
			continue;
		right = read_sum(r);
		if ((order = value_order(&v, &right)) == 2)
			return opaque;
		return value_make(V_BOOL, i == 0 ? order < 0 : i == 1 ?
		    order <= 0 : i == 2 ? order > 0 : order >= 0);
	}
	return v;
}

static struct value
read_not(struct reader *r)
{
	struct value v;
	int truth;

	if (!take_name(r, "not"))
		return read_comparison(r);
	enter(r);
	v = read_not(r);
	r->depth--;
	truth = value_truth(r, &v);
	return value_of_truth(truth < 0 ? -1 : !truth);
}

/* a and b, a or b: the right operand counts only where the left one leaves it
 * open. */
static struct value
read_logic(struct reader *r, int is_or)
{
	struct value v = is_or ? read_logic(r, 0) : read_not(r), right;
	int truth, skip = r->is_skipping;

	while (take_name(r, is_or ? "or" : "and")) {
		truth = value_truth(r, &v);
		r->is_skipping = skip || truth == is_or;
		right = is_or ? read_logic(r, 0) : read_not(r);
		r->is_skipping = skip;
		if (truth == is_or)
			continue;
		/* "unknown and false" is false, "unknown or true" true. */
		if (truth < 0 && value_truth(r, &right) != is_or)
			v = opaque;
		else
			v = right;
	}
	return v;
}

struct value
read_operand(struct reader *r)
{
	struct value v = opaque;

	enter(r);
	if (!r->failed)
		v = read_logic(r, 1);
	r->depth--;
	return v;
}

struct value
read_expr(struct reader *r)
{
	struct value v = read_operand(r), cond;
	struct value other = value_make(V_UNDEFINED, 0);
	int truth;

	if (!take_name(r, "if"))
		return v;
	cond = read_operand(r);
	if (take_name(r, "else")) {
		enter(r);
		other = read_expr(r);
		r->depth--;
	}
	truth = value_truth(r, &cond);
	return truth < 0 ? opaque : truth ? v : other;
}
