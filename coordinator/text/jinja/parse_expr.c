/* coordinator/text/jinja/parse_expr.c - expressions to trees, with the precedence of
 * Jinja: if, or, and, not, comparisons, + -, ~, * / // %, **, signs, filters. */
#include "impl.h"

static struct jnode *parse_or(struct jparser *p);

struct jnode *
jnode_new(struct jparser *p, enum jnode_kind kind)
{
	struct jnode *n = jzalloc(p->r, 1, sizeof(*n));

	n->kind = (uint8_t)kind;
	n->line = p->t.line;
	n->col = p->t.col;
	return n;
}

struct jnode *
jnode_done(struct jparser *p, struct jnode *n)
{
	const struct jnode *const child[] = { n->a, n->b, n->c, n->d, n->e };
	const struct jnode *c;
	size_t i;

	n->depth = 0;
	for (i = 0; i < NITEMS(child); i++)
		for (c = child[i]; c != NULL; c = c->next)
			n->depth = MAX(n->depth, c->depth);
	if (++n->depth > p->r->limits->nesting) {
		jat(p->r, n);
		jfail(p->r, -E2BIG, "the template exceeds its limit of %u for "
		    "nesting", p->r->limits->nesting);
	}
	return n;
}

static struct jnode *
binary(struct jparser *p, enum jnode_kind kind, enum jop op, struct jnode *a,
    struct jnode *b)
{
	struct jnode *n = jnode_new(p, kind);

	jat(p->r, a);
	n->line = a->line;
	n->col = a->col;
	n->op = op;
	n->a = a;
	n->b = b;
	return jnode_done(p, n);
}

static struct jnode *
constant(struct jparser *p, struct jv v)
{
	struct jnode *n = jnode_new(p, E_CONST);

	n->v = v;
	return jnode_done(p, n);
}

/* Append n to the list that *tail ends. */
static struct jnode **
append(struct jnode **tail, struct jnode *n)
{
	*tail = n;
	return &n->next;
}

static struct jnode *
parse_list(struct jparser *p)
{
	struct jnode *n = jnode_new(p, E_LIST), **tail = &n->a;

	jparser_next(p);
	while (!jparser_is_op(p, OP_RBRACKET)) {
		if (n->a != NULL)
			jparser_expect_op(p, OP_COMMA, "','");
		if (jparser_is_op(p, OP_RBRACKET))
			break;
		tail = append(tail, jparse_expr(p));
	}
	jparser_expect_op(p, OP_RBRACKET, "']'");
	return jnode_done(p, n);
}

static struct jnode *
parse_dict(struct jparser *p)
{
	struct jnode *n = jnode_new(p, E_DICT), **tail = &n->a;

	jparser_next(p);
	while (!jparser_is_op(p, OP_RBRACE)) {
		if (n->a != NULL)
			jparser_expect_op(p, OP_COMMA, "','");
		if (jparser_is_op(p, OP_RBRACE))
			break;
		tail = append(tail, jparse_expr(p));
		jparser_expect_op(p, OP_COLON, "':'");
		tail = append(tail, jparse_expr(p));
	}
	jparser_expect_op(p, OP_RBRACE, "'}'");
	return jnode_done(p, n);
}

static struct jnode *
parse_strings(struct jparser *p)
{
	struct jbuf b = { .r = p->r };
	struct jnode *n = jnode_new(p, E_CONST);

	while (p->t.kind == T_STRING) {
		jbuf_add(&b, p->t.s, p->t.n, JINJA_TEMPLATE);
		jparser_next(p);
	}
	n->v = jv_str(jbuf_end(&b), 0);
	return jnode_done(p, n);
}

/* Remember that a macro's body uses a name that its call has to bind. */
static void
note_use(struct jparser *p, const struct jstr *name)
{
	const struct jinja_program *prog = p->r->program;

	p->macro_uses |= name == prog->caller ? JM_CALLER :
	    name == prog->varargs ? JM_VARARGS :
	    name == prog->kwargs ? JM_KWARGS : 0;
}

static struct jnode *
parse_name(struct jparser *p)
{
	struct jnode *n = NULL;

	if (jparser_is_name(p, "true") || jparser_is_name(p, "True"))
		n = constant(p, jinja_bool(1, JINJA_TEMPLATE));
	else if (jparser_is_name(p, "false") || jparser_is_name(p, "False"))
		n = constant(p, jinja_bool(0, JINJA_TEMPLATE));
	else if (jparser_is_name(p, "none") || jparser_is_name(p, "None"))
		n = constant(p, jinja_none(JINJA_TEMPLATE));
	else {
		n = jnode_new(p, E_NAME);
		n->name = jintern(p->r, p->r->program, p->t.s, p->t.n);
		note_use(p, n->name);
		jnode_done(p, n);
	}
	jparser_next(p);
	return n;
}

static struct jnode *
parse_primary(struct jparser *p)
{
	struct jnode *n = NULL;
	struct jv v;

	switch (p->t.kind) {
	case T_NAME:
		return parse_name(p);
	case T_STRING:
		return parse_strings(p);
	case T_INT:
	case T_FLOAT:
		v = p->t.kind == T_INT ? jinja_int(p->t.i, JINJA_TEMPLATE) :
		    jinja_float(p->t.f, JINJA_TEMPLATE);
		n = constant(p, v);
		jparser_next(p);
		return n;
	default:
		break;
	}
	if (jparser_is_op(p, OP_LBRACKET))
		return parse_list(p);
	if (jparser_is_op(p, OP_LBRACE))
		return parse_dict(p);
	if (!jparser_take_op(p, OP_LPAREN))
		jparser_fail(p, "an expression");
	n = jparse_tuple(p, JP_PARENS);
	jparser_expect_op(p, OP_RPAREN, "')'");
	return n;
}

/* The arguments of a call: p->t is the bracket. */
static struct jnode *
parse_args(struct jparser *p)
{
	struct jnode *first = NULL, **tail = &first, *n;
	int is_named = 0, has_star = 0;

	jparser_expect_op(p, OP_LPAREN, "'('");
	while (!jparser_is_op(p, OP_RPAREN)) {
		if (first != NULL)
			jparser_expect_op(p, OP_COMMA, "','");
		if (jparser_is_op(p, OP_RPAREN))
			break;
		if (jparser_is_op(p, OP_MUL) || jparser_is_op(p, OP_POW)) {
			has_star = 1;
			n = jnode_new(p, p->t.op == OP_MUL ? E_STAR :
			    E_STARSTAR);
			jparser_next(p);
			n->a = jparse_expr(p);
		} else if (p->t.kind == T_NAME && p->ahead.kind == T_OP &&
		    p->ahead.op == OP_ASSIGN) {
			is_named = 1;
			n = jnode_new(p, E_KEYWORD);
			n->name = jintern(p->r, p->r->program, p->t.s, p->t.n);
			jparser_next(p);
			jparser_next(p);
			n->a = jparse_expr(p);
		} else {
			if (is_named || has_star)
				jparser_fail(p, "a named argument");
			n = jparse_expr(p);
			tail = append(tail, n);
			continue;
		}
		tail = append(tail, jnode_done(p, n));
	}
	jparser_expect_op(p, OP_RPAREN, "')'");
	return first;
}

/* One index, or a slice. */
static struct jnode *
parse_subscript(struct jparser *p)
{
	struct jnode *n = jnode_new(p, E_SLICE);

	if (!jparser_is_op(p, OP_COLON)) {
		n->a = jparse_expr(p);
		if (!jparser_is_op(p, OP_COLON))
			return n->a;
	}
	jparser_next(p);
	if (!jparser_is_op(p, OP_COLON) && !jparser_is_op(p, OP_RBRACKET) &&
	    !jparser_is_op(p, OP_COMMA))
		n->b = jparse_expr(p);
	if (jparser_take_op(p, OP_COLON) && !jparser_is_op(p, OP_RBRACKET) &&
	    !jparser_is_op(p, OP_COMMA))
		n->c = jparse_expr(p);
	return jnode_done(p, n);
}

static struct jnode *
parse_dot(struct jparser *p, struct jnode *base)
{
	struct jnode *n = jnode_new(p, E_ATTR);

	jparser_next(p);
	n->a = base;
	if (p->t.kind == T_INT) {
		n->kind = E_ITEM;
		n->b = constant(p, jinja_int(p->t.i, JINJA_TEMPLATE));
		jparser_next(p);
	} else
		n->name = jparser_expect_ident(p);
	return jnode_done(p, n);
}

static struct jnode *
parse_brackets(struct jparser *p, struct jnode *base)
{
	struct jnode *n = jnode_new(p, E_ITEM), *tuple, **tail;

	jparser_next(p);
	n->a = base;
	if (jparser_is_op(p, OP_RBRACKET))
		jparser_fail(p, "an index");
	n->b = parse_subscript(p);
	if (jparser_is_op(p, OP_COMMA)) {
		tuple = jnode_new(p, E_TUPLE);
		tail = append(&tuple->a, n->b);
		while (jparser_take_op(p, OP_COMMA))
			tail = append(tail, parse_subscript(p));
		n->b = jnode_done(p, tuple);
	}
	jparser_expect_op(p, OP_RBRACKET, "']'");
	return jnode_done(p, n);
}

static struct jnode *
parse_call(struct jparser *p, struct jnode *base)
{
	struct jnode *n = jnode_new(p, E_CALL);

	n->a = base;
	n->b = parse_args(p);
	return jnode_done(p, n);
}

static struct jnode *
parse_postfix(struct jparser *p, struct jnode *n)
{
	for (;;) {
		if (jparser_is_op(p, OP_DOT))
			n = parse_dot(p, n);
		else if (jparser_is_op(p, OP_LBRACKET))
			n = parse_brackets(p, n);
		else if (jparser_is_op(p, OP_LPAREN))
			n = parse_call(p, n);
		else
			return n;
	}
}

/* at_name: p->t is a filter's name already, as in {% filter NAME %}. */
struct jnode *
jparse_filters(struct jparser *p, struct jnode *base, int at_name)
{
	struct jnode *n;

	while (at_name || jparser_is_op(p, OP_PIPE)) {
		if (!at_name)
			jparser_next(p);
		at_name = 0;
		n = jnode_new(p, E_FILTER);
		n->a = base;
		n->name = jparser_expect_ident(p);
		n->op = jfilter_index(n->name->s, n->name->n);
		if (jparser_is_op(p, OP_LPAREN))
			n->b = parse_args(p);
		base = jnode_done(p, n);
	}
	return base;
}

/* Whether the current token begins an argument of a test without brackets. */
static int
begins_test_arg(const struct jparser *p)
{
	switch (p->t.kind) {
	case T_NAME:
		return !jparser_is_name(p, "else") &&
		    !jparser_is_name(p, "or") && !jparser_is_name(p, "and");
	case T_STRING:
	case T_INT:
	case T_FLOAT:
		return 1;
	default:
		return jparser_is_op(p, OP_LBRACKET) ||
		    jparser_is_op(p, OP_LBRACE);
	}
}

static struct jnode *
parse_test(struct jparser *p, struct jnode *base)
{
	struct jnode *n = jnode_new(p, E_TEST), *not;
	int negated;

	jparser_next(p);
	negated = jparser_take_name(p, "not");
	n->a = base;
	n->name = jparser_expect_ident(p);
	n->op = jtest_index(n->name->s, n->name->n);
	if (jparser_is_op(p, OP_LPAREN))
		n->b = parse_args(p);
	else if (begins_test_arg(p)) {
		if (jparser_is_name(p, "is"))
			jparser_fail(p, "no second test: tests cannot be "
			    "chained");
		n->b = parse_postfix(p, parse_primary(p));
	}
	jnode_done(p, n);
	if (!negated)
		return n;
	not = jnode_new(p, E_NOT);
	not->a = n;
	return jnode_done(p, not);
}

struct jnode *
jparse_unary(struct jparser *p, int with_filter)
{
	struct jnode *n;

	jparser_deeper(p);
	if (jparser_is_op(p, OP_SUB) || jparser_is_op(p, OP_ADD)) {
		n = jnode_new(p, p->t.op == OP_SUB ? E_NEG : E_POS);
		jparser_next(p);
		n->a = jparse_unary(p, 0);
		jnode_done(p, n);
	} else
		n = parse_primary(p);
	n = parse_postfix(p, n);
	while (with_filter) {
		if (jparser_is_op(p, OP_PIPE))
			n = jparse_filters(p, n, 0);
		else if (jparser_is_name(p, "is"))
			n = parse_test(p, n);
		else if (jparser_is_op(p, OP_LPAREN))
			n = parse_call(p, n);
		else
			break;
	}
	p->depth--;
	return n;
}

static struct jnode *
parse_pow(struct jparser *p)
{
	struct jnode *n = jparse_unary(p, 1);

	while (jparser_take_op(p, OP_POW))
		n = binary(p, E_BINARY, OP_POW, n, jparse_unary(p, 1));
	return n;
}

static struct jnode *
parse_product(struct jparser *p)
{
	struct jnode *n = parse_pow(p);
	enum jop op;

	while (jparser_is_op(p, OP_MUL) || jparser_is_op(p, OP_DIV) ||
	    jparser_is_op(p, OP_FLOORDIV) || jparser_is_op(p, OP_MOD)) {
		op = p->t.op;
		jparser_next(p);
		n = binary(p, E_BINARY, op, n, parse_pow(p));
	}
	return n;
}

static struct jnode *
parse_concat(struct jparser *p)
{
	struct jnode *n = parse_product(p), *cat, **tail;

	if (!jparser_is_op(p, OP_TILDE))
		return n;
	cat = jnode_new(p, E_CONCAT);
	tail = append(&cat->a, n);
	while (jparser_take_op(p, OP_TILDE))
		tail = append(tail, parse_product(p));
	return jnode_done(p, cat);
}

static struct jnode *
parse_sum(struct jparser *p)
{
	struct jnode *n = parse_concat(p);
	enum jop op;

	while (jparser_is_op(p, OP_ADD) || jparser_is_op(p, OP_SUB)) {
		op = p->t.op;
		jparser_next(p);
		n = binary(p, E_BINARY, op, n, parse_concat(p));
	}
	return n;
}

/* The comparison at the current token; OP_NONE: there is none.  Takes it. */
static enum jop
take_comparison(struct jparser *p)
{
	enum jop op = OP_NONE;

	if (p->t.kind == T_OP && p->t.op >= OP_EQ && p->t.op <= OP_LE)
		op = p->t.op;
	else if (jparser_is_name(p, "in"))
		op = OP_IN;
	else if (jparser_is_name(p, "not") && p->ahead.kind == T_NAME &&
	    p->ahead.n == 2 && memcmp(p->ahead.s, "in", 2) == 0) {
		op = OP_NOTIN;
		jparser_next(p);
	}
	if (op != OP_NONE)
		jparser_next(p);
	return op;
}

static struct jnode *
parse_compare(struct jparser *p)
{
	struct jnode *n = parse_sum(p), *cmp = NULL, **tail = NULL, *o;
	enum jop op;

	while ((op = take_comparison(p)) != OP_NONE) {
		if (cmp == NULL) {
			cmp = jnode_new(p, E_COMPARE);
			cmp->a = n;
			tail = &cmp->b;
		}
		o = jnode_new(p, E_OPERAND);
		o->op = op;
		o->a = parse_sum(p);
		tail = append(tail, jnode_done(p, o));
	}
	return cmp != NULL ? jnode_done(p, cmp) : n;
}

static struct jnode *
parse_not(struct jparser *p)
{
	struct jnode *n;

	if (!jparser_is_name(p, "not"))
		return parse_compare(p);
	jparser_deeper(p);
	n = jnode_new(p, E_NOT);
	jparser_next(p);
	n->a = parse_not(p);
	p->depth--;
	return jnode_done(p, n);
}

static struct jnode *
parse_and(struct jparser *p)
{
	struct jnode *n = parse_not(p);

	while (jparser_take_name(p, "and"))
		n = binary(p, E_AND, OP_NONE, n, parse_not(p));
	return n;
}

static struct jnode *
parse_or(struct jparser *p)
{
	struct jnode *n = parse_and(p);

	while (jparser_take_name(p, "or"))
		n = binary(p, E_OR, OP_NONE, n, parse_and(p));
	return n;
}

static struct jnode *
parse_cond(struct jparser *p)
{
	struct jnode *n = parse_or(p), *c;

	while (jparser_is_name(p, "if")) {
		c = jnode_new(p, E_COND);
		jparser_next(p);
		c->a = n;
		c->b = parse_or(p);
		if (jparser_take_name(p, "else")) {
			jparser_deeper(p);
			c->c = parse_cond(p);
			p->depth--;
		}
		n = jnode_done(p, c);
	}
	return n;
}

struct jnode *
jparse_expr(struct jparser *p)
{
	struct jnode *n;

	jparser_deeper(p);
	n = parse_cond(p);
	p->depth--;
	return n;
}

static int
is_tuple_end(const struct jparser *p, unsigned flags)
{
	return p->t.kind == T_VAR_END || p->t.kind == T_BLOCK_END ||
	    jparser_is_op(p, OP_RPAREN) || ((flags & JP_IN_ENDS) &&
	    (jparser_is_name(p, "in") || jparser_is_name(p, "recursive")));
}

struct jnode *
jparse_tuple(struct jparser *p, unsigned flags)
{
	struct jnode *tuple = jnode_new(p, E_TUPLE), **tail = &tuple->a;
	int is_tuple = 0;

	jparser_deeper(p);
	for (;;) {
		if (is_tuple_end(p, flags))
			break;
		tail = append(tail, flags & JP_NO_COND ? parse_or(p) :
		    jparse_expr(p));
		if (!jparser_take_op(p, OP_COMMA))
			break;
		is_tuple = 1;
	}
	p->depth--;
	if (!is_tuple && tuple->a != NULL)
		return tuple->a;
	if (!is_tuple && !(flags & JP_PARENS))
		jparser_fail(p, "an expression");
	return jnode_done(p, tuple);
}
