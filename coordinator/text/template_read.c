/* coordinator/text/template_read.c - the literal texts that a chat template puts
 * around the messages of a conversation: statements and output.  Expressions:
 * template_expr.c. */
#include "template_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template_expr.h"

/* Limits of one shape.  Real templates stay far below them. */
enum { MAX_BLOCKS = 64, MAX_OUT_BYTES = 1 << 20 };

static void read_block(struct reader *r, unsigned depth);

/* --- output --- */

static void
emit_text(struct reader *r, const struct value *v)
{
	uint32_t i;

	for (i = 0; i < v->count; i++) {
		if (r->nout == NITEMS(r->out)) {
			reader_fail(r, "too many texts");
			return;
		}
		r->out[r->nout++] = r->piece[v->first + i];
		r->out_bytes += r->piece[v->first + i].n;
		if (r->out_bytes > MAX_OUT_BYTES)
			reader_fail(r, "too long a text");
	}
}

static void
emit_value(struct reader *r, struct value v)
{
	if (r->failed)
		return;
	switch (v.kind) {
	case V_TEXT:
		emit_text(r, &v);
		break;
	case V_UNDEFINED:
		break;
	case V_NONE:
		v = value_literal(r, "None", 4);
		emit_text(r, &v);
		break;
	default:
		reader_fail(r, "what it writes");
	}
}

/* --- statements --- */

static int
at_keyword(const struct reader *r, size_t at, const char *word)
{
	const struct template_token *t = &r->t->tok[at];

	return at + 1 < r->t->n && t->type == TT_STMT &&
	    reader_is(r, at + 1, TT_NAME, word);
}

/* Is the set statement at `at` one with a body of its own? */
static int
is_block_set(const struct reader *r, size_t at)
{
	for (; at < r->t->n && r->t->tok[at].type != TT_CLOSE; at++)
		if (reader_is(r, at, TT_OP, "="))
			return 0;
	return 1;
}

static int
opens_block(const struct reader *r, size_t at)
{
	static const char *const words[] = { "if", "for", "macro", "filter",
	    "generation", "call", "raw", "with" };
	size_t i;

	for (i = 0; i < NITEMS(words); i++)
		if (at_keyword(r, at, words[i]))
			return 1;
	return at_keyword(r, at, "set") && is_block_set(r, at);
}

static int
closes_block(const struct reader *r, size_t at)
{
	const struct template_token *t = &r->t->tok[at + 1];

	return r->t->tok[at].type == TT_STMT && at + 1 < r->t->n &&
	    t->type == TT_NAME && t->n > 3 && memcmp(t->s, "end", 3) == 0;
}

/* Move behind the current body, to its elif, else or end. */
static void
skip_body(struct reader *r)
{
	unsigned depth = 0;

	for (; r->at < r->t->n && reader_work(r, 1); r->at++) {
		if (opens_block(r, r->at)) {
			depth++;
		} else if (closes_block(r, r->at)) {
			if (depth-- == 0)
				return;
		} else if (depth == 0 && (at_keyword(r, r->at, "elif") ||
		    at_keyword(r, r->at, "else"))) {
			return;
		}
	}
	reader_fail(r, "a block without an end");
}

/* Behind the tag that begins at r->at. */
static void
skip_tag(struct reader *r)
{
	while (r->at < r->t->n && r->t->tok[r->at].type != TT_CLOSE)
		r->at++;
	if (r->at < r->t->n)
		r->at++;
}

static void
skip_to_end(struct reader *r)
{
	while (!r->failed && !closes_block(r, r->at)) {
		skip_tag(r);
		skip_body(r);
	}
	if (!r->failed)
		skip_tag(r);
}

static void
close_tag(struct reader *r)
{
	if (!reader_take(r, TT_CLOSE, NULL))
		reader_fail(r, "an expression");
}

/* r->at is behind "if". */
static void
read_if(struct reader *r, unsigned depth)
{
	int holds;

	for (;;) {
		struct value v = read_expr(r);

		close_tag(r);
		if (!r->failed && (holds = value_truth(r, &v)) < 0)
			reader_fail(r, "a condition");
		if (r->failed)
			return;
		if (holds) {
			read_block(r, depth + 1);
			skip_to_end(r);
			return;
		}
		skip_body(r);
		if (r->failed)
			return;
		if (at_keyword(r, r->at, "elif")) {
			r->tag = r->at;
			r->at += 2;
			continue;
		}
		if (at_keyword(r, r->at, "else")) {
			r->at += 2;
			close_tag(r);
			read_block(r, depth + 1);
		}
		skip_to_end(r);
		return;
	}
}

/* One round for message i of a list; the names set in it end with it. */
static void
read_round(struct reader *r, const struct template_token *name,
    const struct value *list, long i, unsigned depth)
{
	struct loop outer = r->loop;
	uint32_t nvars = r->nvars;
	struct value v = { .kind = V_MESSAGE };

	v.n = list->reversed ? list->n - 1 - i : list->from + i;
	r->loop = (struct loop){ .is_open = 1, .index0 = i,
	    .length = list->n - list->from, .list = *list };
	reader_set(r, name->s, name->n, v);
	read_block(r, depth + 1);
	r->nvars = nvars;
	r->loop = outer;
}

/* r->at is behind "for". */
static void
read_for(struct reader *r, unsigned depth)
{
	const struct template_token *name = &r->t->tok[r->at];
	struct value list;
	size_t body;
	long i;

	if (!reader_take(r, TT_NAME, NULL) || !reader_take(r, TT_NAME, "in")) {
		reader_fail(r, "a loop");
		return;
	}
	list = read_operand(r);
	close_tag(r);
	if (!r->failed && list.kind != V_LIST && list.kind != V_UNDEFINED)
		reader_fail(r, "a loop");
	body = r->at;
	for (i = 0; !r->failed && list.kind == V_LIST &&
	    i < list.n - list.from; i++) {
		r->at = body;
		read_round(r, name, &list, i, depth);
		if (!r->failed && !at_keyword(r, r->at, "endfor"))
			reader_fail(r, "a loop");
	}
	if (r->failed)
		return;
	r->at = body;
	skip_body(r);
	if (!r->failed && !at_keyword(r, r->at, "endfor"))
		reader_fail(r, "a loop");
	if (!r->failed)
		skip_tag(r);
}

/* r->at is behind "set". */
static void
read_set(struct reader *r)
{
	const struct template_token *name = &r->t->tok[r->at], *attr = NULL;
	struct value v;

	if (reader_take(r, TT_NAME, NULL) && reader_take(r, TT_OP, ".")) {
		attr = &r->t->tok[r->at];
		if (!reader_take(r, TT_NAME, NULL))
			reader_fail(r, "an assignment");
	}
	if (!r->failed && !reader_take(r, TT_OP, "="))
		reader_fail(r, "an assignment");
	v = read_expr(r);
	close_tag(r);
	if (r->failed)
		return;
	if (attr == NULL)
		reader_set(r, name->s, name->n, v);
	else
		reader_set_attr(r, name, attr->s, attr->n, v);
}

static void
read_statement(struct reader *r, unsigned depth)
{
	size_t at = r->at;

	r->at += 2;
	if (at_keyword(r, at, "if")) {
		read_if(r, depth);
	} else if (at_keyword(r, at, "for")) {
		read_for(r, depth);
	} else if (at_keyword(r, at, "set") && !is_block_set(r, at)) {
		read_set(r);
	} else if (at_keyword(r, at, "set")) {
		reader_set(r, r->t->tok[r->at].s, r->t->tok[r->at].n,
		    (struct value){ .kind = V_OPAQUE });
		skip_tag(r);
		skip_body(r);
		skip_to_end(r);
	} else if (at_keyword(r, at, "macro")) {
		/* Its name stays undefined, and a call cannot be read. */
		skip_tag(r);
		skip_body(r);
		skip_to_end(r);
	} else if (at_keyword(r, at, "generation")) {
		close_tag(r);
		read_block(r, depth + 1);
		skip_to_end(r);
	} else {
		reader_fail(r, "a statement");
	}
}

/* Read up to the end of the block, or of the template.  r->at stays at the
 * statement that ends it. */
static void
read_block(struct reader *r, unsigned depth)
{
	if (depth > MAX_BLOCKS)
		reader_fail(r, "too many blocks");
	while (!r->failed && r->at < r->t->n) {
		const struct template_token *t = &r->t->tok[r->at];

		r->tag = r->at;
		if (!reader_work(r, 1))
			return;
		if (t->type == TT_TEXT) {
			struct value v = value_literal(r, t->s, t->n);

			emit_value(r, v);
			r->at++;
		} else if (t->type == TT_OUT) {
			struct value v;

			r->at++;
			v = read_expr(r);
			close_tag(r);
			emit_value(r, v);
		} else if (closes_block(r, r->at) ||
		    at_keyword(r, r->at, "elif") ||
		    at_keyword(r, r->at, "else")) {
			if (depth == 0)
				reader_fail(r, "an end without a block");
			return;
		} else {
			read_statement(r, depth);
		}
	}
}

/* --- the result --- */

static int
append(char **text, const struct piece *p)
{
	size_t n = strlen(*text);
	char *more = realloc(*text, n + p->n + 1);

	if (more == NULL)
		return -ENOMEM;
	memcpy(more + n, p->s, p->n);
	more[n + p->n] = '\0';
	*text = more;
	return 0;
}

static int
collect(const struct reader *r, struct read_result *ret)
{
	uint32_t i;

	if ((ret->text[0] = strdup("")) == NULL)
		return -ENOMEM;
	for (i = 0; i < r->nout; i++) {
		const struct piece *p = &r->out[i];

		if (p->hole < 0) {
			if (append(&ret->text[ret->n], p) < 0)
				return -ENOMEM;
			continue;
		}
		if (ret->n == READ_MAX_MESSAGES) {
			snprintf(ret->why, sizeof(ret->why),
			    "a message is written twice");
			return -ENOTSUP;
		}
		ret->hole[ret->n] = (unsigned)p->hole;
		ret->edit[ret->n++] = p->edit;
		if ((ret->text[ret->n] = strdup("")) == NULL)
			return -ENOMEM;
	}
	return 0;
}

int
template_read(const struct template_tokens *t, const struct read_vars *vars,
    const struct read_shape *shape, struct read_result *ret)
{
	struct reader *r = calloc(1, sizeof(*r));
	int rc;

	*ret = (struct read_result){ 0 };
	if (r == NULL)
		return -ENOMEM;
	r->t = t;
	r->vars = vars;
	r->shape = shape;
	read_block(r, 0);
	if (r->failed) {
		snprintf(ret->why, sizeof(ret->why), "%s", r->why);
		ret->refused = r->refused;
		rc = -ENOTSUP;
	} else {
		rc = collect(r, ret);
	}
	free(r);
	return rc;
}

void
read_result_done(struct read_result *r)
{
	unsigned i;

	for (i = 0; i < NITEMS(r->text); i++)
		free(r->text[i]);
	*r = (struct read_result){ 0 };
}
