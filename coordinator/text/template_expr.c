/* coordinator/text/template_expr.c - the expressions of a chat template.
 * Order of precedence: "Expressions" of Jinja's template documentation; filters
 * and tests bind closest, then unary minus, * % /, ~, + -, comparisons, not,
 * and, or, if. */
#include "template_expr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_DEPTH = 64,		/* of nested expressions */
	MAX_WORK = 1 << 24	/* real templates need thousands */
};

static const struct value opaque = { .kind = V_OPAQUE };

static struct value
make(enum value_kind kind, long n)
{
	return (struct value){ .kind = kind, .n = n };
}

/* --- tokens --- */

void
reader_fail(struct reader *r, const char *what)
{
	const char *s;
	int n = 0;

	if (r->failed)
		return;
	r->failed = 1;
	if (r->t->n == 0) {
		snprintf(r->why, sizeof(r->why), "%s", what);
		return;
	}
	/* It is shown on terminals: no control characters, no half ones. */
	for (s = r->t->tok[r->tag].s; n < 40 && s[n] >= ' ' && s[n] <= '~'; n++)
		;
	snprintf(r->why, sizeof(r->why), "%s in \"%.*s\"", what, n, s);
}

int
reader_work(struct reader *r, size_t n)
{
	r->work += n;
	if (r->work > MAX_WORK)
		reader_fail(r, "too much work");
	return !r->failed;
}

int
reader_is(const struct reader *r, size_t at, enum template_token_type type,
    const char *word)
{
	const struct template_token *t = &r->t->tok[at];

	return at < r->t->n && t->type == type && (word == NULL ||
	    (strlen(word) == t->n && memcmp(word, t->s, t->n) == 0));
}

int
reader_take(struct reader *r, enum template_token_type type, const char *word)
{
	if (r->failed || !reader_is(r, r->at, type, word))
		return 0;
	r->at++;
	return 1;
}

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

static int
same(const char *s, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(s, word, n) == 0;
}

/* --- texts --- */

static void
add_piece(struct reader *r, struct value *v, struct piece p)
{
	if (p.hole < 0 && p.n == 0)
		return;
	if (r->npieces == NITEMS(r->piece)) {
		reader_fail(r, "too many texts");
		return;
	}
	if (v->count == 0)
		v->first = r->npieces;
	r->piece[r->npieces++] = p;
	v->count++;
}

struct value
value_literal(struct reader *r, const char *s, size_t n)
{
	struct value v = make(V_TEXT, 0);

	add_piece(r, &v, (struct piece){ .s = s, .n = n, .hole = -1 });
	return v;
}

static struct value
concat(struct reader *r, const struct value *a, const struct value *b)
{
	struct value v = make(V_TEXT, 0);
	uint32_t i;

	if (a->kind != V_TEXT || b->kind != V_TEXT)
		return opaque;
	for (i = 0; i < a->count; i++)
		add_piece(r, &v, r->piece[a->first + i]);
	for (i = 0; i < b->count; i++)
		add_piece(r, &v, r->piece[b->first + i]);
	return v;
}

/* The literal that v is, or NULL. */
static const char *
literal(const struct reader *r, const struct value *v, size_t *ret_n)
{
	*ret_n = 0;
	if (v->kind != V_TEXT || v->count > 1)
		return NULL;
	if (v->count == 0)
		return "";
	if (r->piece[v->first].hole >= 0)
		return NULL;
	*ret_n = r->piece[v->first].n;
	return r->piece[v->first].s;
}

static int
is_literal(const struct reader *r, const struct value *v, const char *word)
{
	size_t n;
	const char *s = literal(r, v, &n);

	return s != NULL && same(s, n, word);
}

static int
is_blank(char c, int lines)
{
	return c == '\n' || (!lines && (c == ' ' || (c >= '\t' && c <= '\r') ||
	    (c >= 0x1c && c <= 0x1f)));
}

/* Strip one end of a text.  A message's text is taken to have more than
 * blanks. */
static void
strip_end(struct reader *r, struct value *v, unsigned edit)
{
	const int left = (edit & (EDIT_LEFT | EDIT_LEFT_LINES)) != 0;
	const int lines = (edit & (EDIT_LEFT_LINES | EDIT_RIGHT_LINES)) != 0;

	while (v->count > 0) {
		struct piece *p = &r->piece[left ? v->first :
		    v->first + v->count - 1];

		if (p->hole >= 0) {
			p->edit |= edit;
			return;
		}
		while (p->n > 0 && is_blank(left ? p->s[0] : p->s[p->n - 1],
		    lines)) {
			p->s += left;
			p->n--;
		}
		if (p->n > 0)
			return;
		v->first += (uint32_t)left;
		v->count--;
	}
}

static struct value
strip(struct reader *r, const struct value *of, int left, int right, int lines)
{
	struct value none = make(V_TEXT, 0), v = concat(r, of, &none);

	if (v.kind != V_TEXT)
		return v;
	if (left)
		strip_end(r, &v, lines ? EDIT_LEFT_LINES : EDIT_LEFT);
	if (right)
		strip_end(r, &v, lines ? EDIT_RIGHT_LINES : EDIT_RIGHT);
	return v;
}

/* Text i of those between the separators: 0, 1, or -1 for the last. */
static struct value
split_part(struct reader *r, const struct value *v, long i)
{
	struct value part = make(V_TEXT, 0);
	long nparts = 1, at = 0;
	uint32_t k;
	int round;

	/* First count the parts, then collect one. */
	for (round = 0; round < 2; round++) {
		if (round == 1 && (i = i < 0 ? nparts - 1 : i) >= nparts)
			return opaque;
		for (k = 0; k < v->count; k++) {
			struct piece p = r->piece[v->first + k];
			const char *sep;

			if (!reader_work(r, p.n + 1))
				return opaque;
			while (p.hole < 0 && (sep = memmem(p.s, p.n, v->s,
			    v->len)) != NULL) {
				struct piece head = p;

				head.n = (size_t)(sep - p.s);
				if (round == 1 && at == i)
					add_piece(r, &part, head);
				p.n -= head.n + v->len;
				p.s = sep + v->len;
				nparts += round == 0;
				at += round == 1;
			}
			if (round == 1 && at == i)
				add_piece(r, &part, p);
		}
	}
	return part;
}

/* Can a message's text have this in it?  Texts are taken to be free of
 * markers. */
static int
is_marker(const char *s, size_t n)
{
	return n > 2 && (*s == '<' || *s == '[');
}

/* Does v contain the literal s[n]?  1, 0 or -1. */
static int
contains(struct reader *r, const struct value *v, const char *s, size_t n)
{
	uint32_t i;
	int holes = 0;

	for (i = 0; i < v->count; i++) {
		const struct piece *p = &r->piece[v->first + i];

		if (!reader_work(r, p->n + 1))
			return -1;
		holes |= p->hole >= 0;
		if (p->hole < 0 && memmem(p->s, p->n, s, n) != NULL)
			return 1;
	}
	return holes && !is_marker(s, n) ? -1 : 0;
}

/* Does v begin, or end, with this literal?  1, 0 or -1. */
static int
begins_with(const struct reader *r, const struct value *v, const char *s,
    size_t n, int at_end)
{
	const struct piece *p;

	if (v->count == 0)
		return n == 0;
	p = &r->piece[at_end ? v->first + v->count - 1 : v->first];
	if (p->hole >= 0)
		return is_marker(s, n) ? 0 : -1;
	if (p->n < n)
		return v->count == 1 ? 0 : -1;
	return memcmp(at_end ? p->s + p->n - n : p->s, s, n) == 0;
}

int
value_truth(const struct reader *r, const struct value *v)
{
	(void)r;
	switch (v->kind) {
	case V_OPAQUE:
		return -1;
	case V_UNDEFINED:
	case V_NONE:
	case V_EMPTY:
		return 0;
	case V_BOOL:
	case V_INT:
	case V_LENGTH:
		return v->n != 0;
	case V_TEXT:
		return v->count > 0;
	case V_LIST:
		return v->n > v->from;
	default:
		return 1;
	}
}

static struct value
truth_value(int truth)
{
	return truth < 0 ? opaque : make(V_BOOL, truth);
}

/* --- names --- */

void
reader_set(struct reader *r, const char *name, size_t n, struct value v)
{
	if (r->nvars == NITEMS(r->var)) {
		reader_fail(r, "too many names");
		return;
	}
	r->var[r->nvars++] = (struct variable){ name, n, 0, v };
}

static struct variable *
find_variable(struct reader *r, const char *name, size_t n)
{
	uint32_t i;

	for (i = r->nvars; i > 0; i--)
		if (r->var[i - 1].n == n &&
		    memcmp(r->var[i - 1].name, name, n) == 0)
			return &r->var[i - 1];
	return NULL;
}

static struct value *
find_attr(struct reader *r, long space, const char *name, size_t n)
{
	uint32_t i;

	for (i = 0; i < r->nattrs; i++)
		if (r->attr[i].space == space && r->attr[i].n == n &&
		    memcmp(r->attr[i].name, name, n) == 0)
			return &r->attr[i].v;
	return NULL;
}

static void
set_attr(struct reader *r, long space, const char *name, size_t n,
    struct value v)
{
	struct value *old = find_attr(r, space, name, n);

	if (old != NULL)
		*old = v;
	else if (r->nattrs == NITEMS(r->attr))
		reader_fail(r, "too many names");
	else
		r->attr[r->nattrs++] = (struct variable){ name, n, space, v };
}

void
reader_set_attr(struct reader *r, const struct template_token *space,
    const char *name, size_t n, struct value v)
{
	struct variable *var = find_variable(r, space->s, space->n);

	if (var == NULL || var->v.kind != V_SPACE)
		reader_fail(r, "an assignment");
	else
		set_attr(r, var->v.n, name, n, v);
}

static struct value
string_value(struct reader *r, const char *s)
{
	return s == NULL ? make(V_UNDEFINED, 0) :
	    value_literal(r, s, strlen(s));
}

static struct value
read_name(struct reader *r, const struct template_token *t)
{
	static const char *const functions[] = { "raise_exception",
	    "namespace", "strftime_now" };
	static const char *const unknown[] = { "range", "dict", "cycler",
	    "joiner", "lipsum" };
	struct variable *v = find_variable(r, t->s, t->n);
	size_t i;

	if (v != NULL)
		return v->v;
	if (same(t->s, t->n, "true") || same(t->s, t->n, "True") ||
	    same(t->s, t->n, "add_generation_prompt"))
		return make(V_BOOL, 1);
	if (same(t->s, t->n, "false") || same(t->s, t->n, "False"))
		return make(V_BOOL, 0);
	if (same(t->s, t->n, "none") || same(t->s, t->n, "None"))
		return make(V_NONE, 0);
	if (same(t->s, t->n, "messages"))
		return make(V_LIST, r->shape->n);
	if (same(t->s, t->n, "bos_token"))
		return string_value(r, r->vars->bos);
	if (same(t->s, t->n, "eos_token"))
		return string_value(r, r->vars->eos);
	if (same(t->s, t->n, "loop") && r->loop.is_open)
		return make(V_LOOP, 0);
	for (i = 0; i < NITEMS(functions); i++)
		if (same(t->s, t->n, functions[i]))
			return (struct value){ .kind = V_FUNCTION, .s = t->s,
			    .len = t->n };
	for (i = 0; i < NITEMS(unknown); i++)
		if (same(t->s, t->n, unknown[i]))
			return opaque;
	return make(V_UNDEFINED, 0);
}

/* --- attributes --- */

static struct value
message_text(struct reader *r, long i)
{
	const struct read_message *m = &r->shape->m[i];
	struct value v = make(V_TEXT, 0);
	const char *end = r->vars->think_end;

	if (m->is_empty)
		return v;
	if (m->thinks) {
		add_piece(r, &v, (struct piece){ .hole = READ_MAX_MESSAGES +
		    (int)i });
		add_piece(r, &v, (struct piece){ .s = end, .n = strlen(end),
		    .hole = -1 });
	}
	add_piece(r, &v, (struct piece){ .hole = (int)i });
	return v;
}

static struct value
message_attr(struct reader *r, long i, const char *name, size_t n)
{
	static const char *const roles[] = { "system", "user", "assistant" };

	if (same(name, n, "role"))
		return string_value(r, roles[r->shape->m[i].role]);
	if (same(name, n, "content"))
		return message_text(r, i);
	return make(V_UNDEFINED, 0);
}

static struct value
list_item(const struct value *list, long i)
{
	const long count = list->n - list->from;

	i = i < 0 ? i + count : i;
	if (i < 0 || i >= count)
		return make(V_UNDEFINED, 0);
	return make(V_MESSAGE, list->reversed ? list->n - 1 - i :
	    list->from + i);
}

static struct value
loop_attr(const struct reader *r, const char *name, size_t n)
{
	const struct loop *l = &r->loop;

	if (same(name, n, "first"))
		return make(V_BOOL, l->index0 == 0);
	if (same(name, n, "last"))
		return make(V_BOOL, l->index0 == l->length - 1);
	if (same(name, n, "index0"))
		return make(V_INT, l->index0);
	if (same(name, n, "index"))
		return make(V_INT, l->index0 + 1);
	if (same(name, n, "length"))
		return make(V_INT, l->length);
	if (same(name, n, "revindex0"))
		return make(V_INT, l->length - 1 - l->index0);
	if (same(name, n, "revindex"))
		return make(V_INT, l->length - l->index0);
	if (same(name, n, "previtem"))
		return l->index0 == 0 ? make(V_UNDEFINED, 0) :
		    list_item(&l->list, l->index0 - 1);
	if (same(name, n, "nextitem"))
		return list_item(&l->list, l->index0 + 1);
	return opaque;
}

static struct value
attribute(struct reader *r, const struct value *v, const char *name, size_t n)
{
	struct value *attr;

	switch (v->kind) {
	case V_MESSAGE:
		return message_attr(r, v->n, name, n);
	case V_LOOP:
		return loop_attr(r, name, n);
	case V_SPACE:
		attr = find_attr(r, v->n, name, n);
		return attr != NULL ? *attr : make(V_UNDEFINED, 0);
	default:
		return opaque;
	}
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
			set_attr(r, space, name->s, name->n, v);
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
	const char *s = a->n == 1 ? literal(r, &a->v[0], &n) : NULL;

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
	long space = same(f->s, f->len, "namespace") ? r->nspaces++ : -1;

	read_args(r, &a, space);
	if (space >= 0)
		return make(V_SPACE, space);
	if (same(f->s, f->len, "strftime_now"))
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
	if (a->n > 1 || (a->n == 1 && !is_literal(r, &a->v[0], "\n")))
		return opaque;
	return strip(r, v, left, right, a->n == 1);
}

static struct value
call_method(struct reader *r, const struct value *v,
    const struct template_token *name)
{
	struct args a;
	const char *s;
	size_t n = 0;

	read_args(r, &a, -1);
	s = a.n > 0 ? literal(r, &a.v[0], &n) : NULL;
	if (v->kind == V_MESSAGE && same(name->s, name->n, "get") &&
	    s != NULL) {
		struct value got = attribute(r, v, s, n);

		if (got.kind == V_UNDEFINED)
			return a.n > 1 ? a.v[1] : make(V_NONE, 0);
		return got;
	}
	if (v->kind != V_TEXT)
		return opaque;
	if (same(name->s, name->n, "strip"))
		return strip_method(r, v, &a, 1, 1);
	if (same(name->s, name->n, "lstrip"))
		return strip_method(r, v, &a, 1, 0);
	if (same(name->s, name->n, "rstrip"))
		return strip_method(r, v, &a, 0, 1);
	if (s == NULL || n == 0)
		return opaque;
	if (same(name->s, name->n, "startswith"))
		return truth_value(begins_with(r, v, s, n, 0));
	if (same(name->s, name->n, "endswith"))
		return truth_value(begins_with(r, v, s, n, 1));
	if (same(name->s, name->n, "split") && a.n == 1 &&
	    contains(r, v, s, n) >= 0)
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
	struct value to = make(V_NONE, 0), step = make(V_NONE, 0), ret = *v;
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
	struct value i = make(V_NONE, 0);
	const char *s;
	size_t n;

	if (!reader_is(r, r->at, TT_OP, ":"))
		i = read_expr(r);
	if (take_op(r, ":"))
		return read_slice(r, v, &i);
	if ((s = literal(r, &i, &n)) != NULL)
		return attribute(r, v, s, n);
	if (i.kind != V_INT)
		return opaque;
	if (v->kind == V_LIST)
		return list_item(v, i.n);
	return v->kind == V_SPLIT && i.n >= -1 ? split_part(r, v, i.n) :
	    opaque;
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
			return make(V_EMPTY, 0);
		skip_brackets(r);
		return opaque;
	}
	if (take_op(r, "{")) {
		if (take_op(r, "}"))
			return make(V_EMPTY, 0);
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
			v = concat(r, &v, &next);
		}
		return v;
	case TT_INT:
		r->at++;
		return t->n < 9 ? make(V_INT, strtol(t->s, NULL, 10)) : opaque;
	case TT_NAME:
		r->at++;
		return read_name(r, t);
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
			    attribute(r, &v, t->s, t->n);
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
		return make(V_INT, v->n - v->from);
	if (v->kind == V_EMPTY || v->kind == V_UNDEFINED)
		return make(V_INT, 0);
	if (v->kind != V_TEXT)
		return opaque;
	return literal(r, v, &n) != NULL && n == 0 ? make(V_INT, 0) :
	    make(V_LENGTH, 1);
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
	if (same(t->s, t->n, "trim") && a.n == 0)
		return v->kind == V_UNDEFINED ? make(V_TEXT, 0) :
		    strip(r, v, 1, 1, 0);
	if (same(t->s, t->n, "string") && v->kind == V_TEXT)
		return *v;
	if (same(t->s, t->n, "length") || same(t->s, t->n, "count"))
		return length_of(r, v);
	if (same(t->s, t->n, "list") && v->kind == V_LIST)
		return *v;
	if ((same(t->s, t->n, "default") || same(t->s, t->n, "d")) &&
	    a.n > 0) {
		int replace = v->kind == V_UNDEFINED;

		if (a.n > 1 && value_truth(r, &a.v[1]) != 0)
			replace = value_truth(r, &a.v[1]) < 0 ? -1 :
			    value_truth(r, v) < 0 ? -1 : !value_truth(r, v);
		return v->kind == V_OPAQUE || replace < 0 ? opaque :
		    replace ? a.v[0] : *v;
	}
	return opaque;
}

/* 1, 0 or -1. */
static int
test_value(const struct value *v, const char *name, size_t n)
{
	const int list = v->kind == V_LIST || v->kind == V_EMPTY;

	if (same(name, n, "defined"))
		return v->kind != V_UNDEFINED;
	if (same(name, n, "undefined"))
		return v->kind == V_UNDEFINED;
	if (v->kind == V_OPAQUE || v->kind == V_SPLIT)
		return -1;
	if (same(name, n, "none") || same(name, n, "None"))
		return v->kind == V_NONE;
	if (same(name, n, "string"))
		return v->kind == V_TEXT;
	if (same(name, n, "mapping"))
		return v->kind == V_EMPTY ? -1 : v->kind == V_MESSAGE;
	if (same(name, n, "iterable") || same(name, n, "sequence"))
		return list || v->kind == V_TEXT || v->kind == V_UNDEFINED ||
		    v->kind == V_MESSAGE;
	if (same(name, n, "boolean"))
		return v->kind == V_BOOL;
	if (same(name, n, "true") || same(name, n, "True"))
		return v->kind == V_BOOL && v->n == 1;
	if (same(name, n, "false") || same(name, n, "False"))
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
	return holds < 0 ? opaque : make(V_BOOL, holds != not);
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

static struct value
read_unary(struct reader *r)
{
	struct value v;

	if (!take_op(r, "-"))
		return read_filtered(r);
	v = read_filtered(r);
	return v.kind == V_INT ? make(V_INT, -v.n) : opaque;
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
			    make(V_INT, v.n % right.n) : opaque;
		} else if (take_op(r, "*") || take_op(r, "/") ||
		    take_op(r, "//") || take_op(r, "**")) {
			read_unary(r);
			v = opaque;
		} else {
			return v;
		}
	}
}

/* What ~ makes of an operand: a text. */
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
		v = concat(r, &v, &right);
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
			v = v.kind == V_INT && right.kind == V_INT ?
			    make(V_INT, v.n + right.n) : concat(r, &v, &right);
		} else if (take_op(r, "-")) {
			right = read_joined(r);
			v = v.kind == V_INT && right.kind == V_INT ?
			    make(V_INT, v.n - right.n) : opaque;
		} else {
			return v;
		}
	}
}

/* --- comparisons --- */

/* Equality of texts: 1, 0 or -1. */
static int
equal_texts(const struct reader *r, const struct value *a,
    const struct value *b)
{
	size_t n, m;
	const char *s = literal(r, a, &n), *t = literal(r, b, &m);

	if (s != NULL && t != NULL)
		return n == m && memcmp(s, t, n) == 0;
	/* A message's text is not empty. */
	if ((s != NULL && n == 0) || (t != NULL && m == 0))
		return 0;
	return -1;
}

static int
equal_values(const struct reader *r, const struct value *a,
    const struct value *b)
{
	if (a->kind == V_OPAQUE || b->kind == V_OPAQUE)
		return -1;
	if (a->kind == V_LENGTH || b->kind == V_LENGTH) {
		const struct value *i = a->kind == V_LENGTH ? b : a;

		return i->kind == V_INT && i->n == 0 ? 0 : -1;
	}
	if (a->kind == V_TEXT && b->kind == V_TEXT)
		return equal_texts(r, a, b);
	if (a->kind != b->kind)
		return a->kind <= V_TEXT && b->kind <= V_TEXT &&
		    !(a->kind == V_BOOL && b->kind == V_INT) &&
		    !(a->kind == V_INT && b->kind == V_BOOL) ? 0 : -1;
	switch (a->kind) {
	case V_UNDEFINED:
	case V_NONE:
		return 1;
	case V_BOOL:
	case V_INT:
		return a->n == b->n;
	default:
		return -1;
	}
}

/* -1, 0, 1 for less, equal, greater; 2: not known. */
static int
order_values(const struct value *a, const struct value *b)
{
	if (a->kind == V_INT && b->kind == V_INT)
		return (a->n > b->n) - (a->n < b->n);
	if (a->kind == V_LENGTH && b->kind == V_INT && b->n == 0)
		return 1;
	return 2;
}

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
			equal = equal_values(r, needle, &v);
			found = found == 1 || equal == 1 ? 1 :
			    MIN(found, equal);
			take_op(r, ",");
		}
		return found;
	}
	v = read_sum(r);
	s = literal(r, needle, &n);
	if (v.kind == V_EMPTY || v.kind == V_UNDEFINED)
		return 0;
	if (s == NULL)
		return -1;
	if (v.kind == V_MESSAGE)
		return same(s, n, "role") || same(s, n, "content");
	return v.kind == V_TEXT ? contains(r, &v, s, n) : -1;
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
		holds = equal_values(r, &v, &right);
		return truth_value(holds < 0 ? -1 : holds != not);
	}
	if (take_name(r, "in"))
		return truth_value(read_in(r, &v));
	if (reader_is(r, r->at, TT_NAME, "not") &&
	    reader_is(r, r->at + 1, TT_NAME, "in")) {
		r->at += 2;
		holds = read_in(r, &v);
		return truth_value(holds < 0 ? -1 : !holds);
	}
	for (i = 0; i < NITEMS(ops); i++) {
		if (!take_op(r, ops[i]))
			continue;
		right = read_sum(r);
		if ((order = order_values(&v, &right)) == 2)
			return opaque;
		return make(V_BOOL, i == 0 ? order < 0 : i == 1 ? order <= 0 :
		    i == 2 ? order > 0 : order >= 0);
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
	if (r->depth++ > MAX_DEPTH)
		reader_fail(r, "an expression that is too deep");
	v = read_not(r);
	r->depth--;
	truth = value_truth(r, &v);
	return truth_value(truth < 0 ? -1 : !truth);
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
	struct value v;

	if (r->failed || r->depth++ > MAX_DEPTH) {
		reader_fail(r, "an expression that is too deep");
		return opaque;
	}
	v = read_logic(r, 1);
	r->depth--;
	return v;
}

struct value
read_expr(struct reader *r)
{
	struct value v = read_operand(r), other = make(V_UNDEFINED, 0), cond;
	int truth;

	if (!take_name(r, "if"))
		return v;
	cond = read_operand(r);
	if (take_name(r, "else"))
		other = read_expr(r);
	truth = value_truth(r, &cond);
	return truth < 0 ? opaque : truth ? v : other;
}
