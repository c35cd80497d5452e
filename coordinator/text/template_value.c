/* coordinator/text/template_value.c - the values of a chat template's
 * expressions, and the names that stand for them. */
#include "template_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORK = 1 << 20 };	/* real templates need thousands */

static const struct value opaque = { .kind = V_OPAQUE };

struct value
value_make(enum value_kind kind, long n)
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

int
word_is(const char *s, size_t n, const char *word)
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
	struct value v = value_make(V_TEXT, 0);

	add_piece(r, &v, (struct piece){ .s = s, .n = n, .hole = -1 });
	return v;
}

struct value
value_concat(struct reader *r, const struct value *a, const struct value *b)
{
	struct value v = value_make(V_TEXT, 0);
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
const char *
value_text(const struct reader *r, const struct value *v, size_t *ret_n)
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

int
value_is_text(const struct reader *r, const struct value *v, const char *word)
{
	size_t n;
	const char *s = value_text(r, v, &n);

	return s != NULL && word_is(s, n, word);
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
		    lines) && reader_work(r, 1)) {
			p->s += left;
			p->n--;
		}
		if (p->n > 0)
			return;
		v->first += (uint32_t)left;
		v->count--;
	}
}

struct value
value_strip(struct reader *r, const struct value *of, int left, int right,
    int lines)
{
	struct value none = value_make(V_TEXT, 0), v = value_concat(r, of, &none);

	if (v.kind != V_TEXT)
		return v;
	if (left)
		strip_end(r, &v, lines ? EDIT_LEFT_LINES : EDIT_LEFT);
	if (right)
		strip_end(r, &v, lines ? EDIT_RIGHT_LINES : EDIT_RIGHT);
	return v;
}

/* Text i of those between the separators: 0, 1, or -1 for the last. */
struct value
value_split_part(struct reader *r, const struct value *v, long i)
{
	struct value part = value_make(V_TEXT, 0);
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
int
value_contains(struct reader *r, const struct value *v, const char *s, size_t n)
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
int
value_begins_with(struct reader *r, const struct value *v, const char *s,
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
	if (!reader_work(r, n))
		return -1;
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

struct value
value_of_truth(int truth)
{
	return truth < 0 ? opaque : value_make(V_BOOL, truth);
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

/* Is this the variable's name?  Counted, because a loop can look for a long
 * name among many alike. */
static int
has_name(struct reader *r, const struct variable *v, const char *name, size_t n)
{
	return reader_work(r, v->n == n ? n : 1) && v->n == n &&
	    memcmp(v->name, name, n) == 0;
}

static struct variable *
find_variable(struct reader *r, const char *name, size_t n)
{
	uint32_t i;

	for (i = r->nvars; i > 0; i--)
		if (has_name(r, &r->var[i - 1], name, n))
			return &r->var[i - 1];
	return NULL;
}

static struct value *
find_attr(struct reader *r, long space, const char *name, size_t n)
{
	uint32_t i;

	for (i = 0; i < r->nattrs; i++)
		if (r->attr[i].space == space &&
		    has_name(r, &r->attr[i], name, n))
			return &r->attr[i].v;
	return NULL;
}

void
space_set(struct reader *r, long space, const char *name, size_t n,
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
		space_set(r, var->v.n, name, n, v);
}

static struct value
string_value(struct reader *r, const char *s)
{
	return s == NULL ? value_make(V_UNDEFINED, 0) :
	    value_literal(r, s, strlen(s));
}

struct value
value_of_name(struct reader *r, const struct template_token *t)
{
	static const char *const functions[] = { "raise_exception",
	    "namespace", "strftime_now" };
	static const char *const unknown[] = { "range", "dict", "cycler",
	    "joiner", "lipsum" };
	struct variable *v = find_variable(r, t->s, t->n);
	size_t i;

	if (v != NULL)
		return v->v;
	if (word_is(t->s, t->n, "true") || word_is(t->s, t->n, "True") ||
	    word_is(t->s, t->n, "add_generation_prompt"))
		return value_make(V_BOOL, 1);
	if (word_is(t->s, t->n, "false") || word_is(t->s, t->n, "False"))
		return value_make(V_BOOL, 0);
	/* A chat without tools or documents defines these, as none. */
	if (word_is(t->s, t->n, "none") || word_is(t->s, t->n, "None") ||
	    word_is(t->s, t->n, "tools") || word_is(t->s, t->n, "documents"))
		return value_make(V_NONE, 0);
	if (word_is(t->s, t->n, "messages"))
		return value_make(V_LIST, r->shape->n);
	if (word_is(t->s, t->n, "bos_token"))
		return string_value(r, r->vars->bos);
	if (word_is(t->s, t->n, "eos_token"))
		return string_value(r, r->vars->eos);
	if (word_is(t->s, t->n, "loop") && r->loop.is_open)
		return value_make(V_LOOP, 0);
	for (i = 0; i < NITEMS(functions); i++)
		if (word_is(t->s, t->n, functions[i]))
			return (struct value){ .kind = V_FUNCTION, .s = t->s,
			    .len = t->n };
	for (i = 0; i < NITEMS(unknown); i++)
		if (word_is(t->s, t->n, unknown[i]))
			return opaque;
	return value_make(V_UNDEFINED, 0);
}

/* --- attributes --- */

static struct value
message_text(struct reader *r, long i)
{
	const struct read_message *m = &r->shape->m[i];
	struct value v = value_make(V_TEXT, 0);
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

	if (word_is(name, n, "role"))
		return string_value(r, roles[r->shape->m[i].role]);
	if (word_is(name, n, "content"))
		return message_text(r, i);
	return value_make(V_UNDEFINED, 0);
}

struct value
value_list_item(const struct value *list, long i)
{
	const long count = list->n - list->from;

	i = i < 0 ? i + count : i;
	if (i < 0 || i >= count)
		return value_make(V_UNDEFINED, 0);
	return value_make(V_MESSAGE, list->reversed ? list->n - 1 - i :
	    list->from + i);
}

static struct value
loop_attr(const struct reader *r, const char *name, size_t n)
{
	const struct loop *l = &r->loop;

	if (word_is(name, n, "first"))
		return value_make(V_BOOL, l->index0 == 0);
	if (word_is(name, n, "last"))
		return value_make(V_BOOL, l->index0 == l->length - 1);
	if (word_is(name, n, "index0"))
		return value_make(V_INT, l->index0);
	if (word_is(name, n, "index"))
		return value_make(V_INT, l->index0 + 1);
	if (word_is(name, n, "length"))
		return value_make(V_INT, l->length);
	if (word_is(name, n, "revindex0"))
		return value_make(V_INT, l->length - 1 - l->index0);
	if (word_is(name, n, "revindex"))
		return value_make(V_INT, l->length - l->index0);
	if (word_is(name, n, "previtem"))
		return l->index0 == 0 ? value_make(V_UNDEFINED, 0) :
		    value_list_item(&l->list, l->index0 - 1);
	if (word_is(name, n, "nextitem"))
		return value_list_item(&l->list, l->index0 + 1);
	return opaque;
}

struct value
value_attribute(struct reader *r, const struct value *v, const char *name,
    size_t n)
{
	struct value *attr;

	switch (v->kind) {
	case V_MESSAGE:
		return message_attr(r, v->n, name, n);
	case V_LOOP:
		return loop_attr(r, name, n);
	case V_SPACE:
		attr = find_attr(r, v->n, name, n);
		return attr != NULL ? *attr : value_make(V_UNDEFINED, 0);
	default:
		return opaque;
	}
}

/* --- comparisons --- */

/* Equality of texts: 1, 0 or -1. */
static int
equal_texts(struct reader *r, const struct value *a, const struct value *b)
{
	size_t n, m;
	const char *s = value_text(r, a, &n), *t = value_text(r, b, &m);

	if (s != NULL && t != NULL)
		return n == m && reader_work(r, n) && memcmp(s, t, n) == 0;
	/* A message's text is not empty. */
	if ((s != NULL && n == 0) || (t != NULL && m == 0))
		return 0;
	return -1;
}

int
value_equals(struct reader *r, const struct value *a, const struct value *b)
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
int
value_order(const struct value *a, const struct value *b)
{
	if (a->kind == V_INT && b->kind == V_INT)
		return (a->n > b->n) - (a->n < b->n);
	if (a->kind == V_LENGTH && b->kind == V_INT && b->n == 0)
		return 1;
	return 2;
}

/* The name of a role with capitals.  Other texts are not changed here. */
struct value
value_case(struct reader *r, const struct value *v, const char *how, size_t n)
{
	static const char *const roles[][3] = {
		{ "system", "System", "SYSTEM" }, { "user", "User", "USER" },
		{ "assistant", "Assistant", "ASSISTANT" }
	};
	const int upper = word_is(how, n, "upper"),
	    lower = word_is(how, n, "lower");
	size_t i, len;
	const char *s = value_text(r, v, &len);

	if (s == NULL || (!upper && !lower && !word_is(how, n, "title") &&
	    !word_is(how, n, "capitalize")))
		return opaque;
	for (i = 0; i < NITEMS(roles); i++)
		if (word_is(s, len, roles[i][0]))
			return value_literal(r, roles[i][lower ? 0 : 1 +
			    upper], len);
	return opaque;
}

struct value
value_item(struct reader *r, const struct value *v, long i)
{
	if (v->kind == V_LIST)
		return value_list_item(v, i);
	return v->kind == V_SPLIT && i >= -1 ? value_split_part(r, v, i) :
	    opaque;
}
