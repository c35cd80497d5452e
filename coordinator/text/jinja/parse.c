/* coordinator/text/jinja/parse.c - statements to trees; compiles a template. */
#include "impl.h"

#include <stdlib.h>

static struct jnode *parse_body(struct jparser *p, const char *const *ends);

/* --- names --- */

static unsigned
hash(const char *s, size_t n)
{
	unsigned h = 2166136261U;
	size_t i;

	for (i = 0; i < n; i++)
		h = (h ^ (uint8_t)s[i]) * 16777619U;
	return (h ^ h >> 15) % JINTERN_HEADS;
}

const struct jstr *
jintern_find(const struct jinja_program *p, const char *s, size_t n)
{
	const struct jintern *i;

	for (i = p->names[hash(s, n)]; i != NULL; i = i->next)
		if (i->s.n == n && memcmp(i->s.s, s, n) == 0)
			return &i->s;
	return NULL;
}

const struct jstr *
jintern(struct jrun *r, struct jinja_program *p, const char *s, size_t n)
{
	struct jintern *i;
	char *copy;
	unsigned h = hash(s, n);

	for (i = p->names[h]; i != NULL; i = i->next) {
		jstep(r, 1);	/* names can be chosen to meet here */
		if (i->s.n == n && memcmp(i->s.s, s, n) == 0)
			return &i->s;
	}
	copy = jalloc(r, n + 1);
	memcpy(copy, s, n);
	copy[n] = '\0';
	i = jzalloc(r, 1, sizeof(*i));
	i->s = (struct jstr){ .s = copy, .n = n, .nchars = SIZE_MAX };
	i->next = p->names[h];
	p->names[h] = i;
	return &i->s;
}

/* --- tokens --- */

void
jparser_next(struct jparser *p)
{
	p->t = p->ahead;
	jlex_next(p->x, &p->ahead);
	if (p->t.line > 0) {
		p->r->line = p->t.line;
		p->r->col = p->t.col;
	}
}

int
jparser_is_op(const struct jparser *p, enum jop op)
{
	return p->t.kind == T_OP && p->t.op == op;
}

int
jparser_is_name(const struct jparser *p, const char *name)
{
	return p->t.kind == T_NAME && strlen(name) == p->t.n &&
	    memcmp(name, p->t.s, p->t.n) == 0;
}

int
jparser_take_op(struct jparser *p, enum jop op)
{
	if (!jparser_is_op(p, op))
		return 0;
	jparser_next(p);
	return 1;
}

int
jparser_take_name(struct jparser *p, const char *name)
{
	if (!jparser_is_name(p, name))
		return 0;
	jparser_next(p);
	return 1;
}

void
jparser_fail(struct jparser *p, const char *what)
{
	static const char *const kinds[] = { "the end of the template", "text",
	    "'{{'", "'}}'", "'{%'", "'%}'", "", "a string", "a number",
	    "a number", "an operator" };

	p->r->line = p->t.line;
	p->r->col = p->t.col;
	if (p->t.kind == T_NAME)
		jfail(p->r, -EBADMSG, "expected %s, found '%.*s'", what,
		    (int)MIN(p->t.n, (size_t)64), p->t.s);
	jfail(p->r, -EBADMSG, "expected %s, found %s", what, kinds[p->t.kind]);
}

void
jparser_expect_op(struct jparser *p, enum jop op, const char *what)
{
	if (!jparser_take_op(p, op))
		jparser_fail(p, what);
}

const struct jstr *
jparser_expect_ident(struct jparser *p)
{
	const struct jstr *s;

	if (p->t.kind != T_NAME)
		jparser_fail(p, "a name");
	s = jintern(p->r, p->r->program, p->t.s, p->t.n);
	jparser_next(p);
	return s;
}

static void
expect(struct jparser *p, enum jtoken_kind kind, const char *what)
{
	if (p->t.kind != kind)
		jparser_fail(p, what);
	jparser_next(p);
}

void
jparser_deeper(struct jparser *p)
{
	if (++p->depth > p->r->limits->nesting * 2)
		jfail(p->r, -E2BIG, "the template exceeds its limit of %u for "
		    "nesting", p->r->limits->nesting);
}

/* --- statements --- */

static int
is_reserved(const struct jparser *p)
{
	static const char *const words[] = { "true", "True", "false", "False",
	    "none", "None" };
	size_t i;

	for (i = 0; i < NITEMS(words); i++)
		if (jparser_is_name(p, words[i]))
			return 1;
	return 0;
}

static struct jnode *
parse_target_name(struct jparser *p, int with_namespace)
{
	struct jnode *n = jnode_new(p, E_NAME);

	if (is_reserved(p))
		jparser_fail(p, "the name of a variable");
	n->name = jparser_expect_ident(p);
	if (with_namespace && jparser_take_op(p, OP_DOT)) {
		n->kind = E_NSREF;
		n->v = jv_str(jparser_expect_ident(p), 0);
	}
	return jnode_done(p, n);
}

/* Names, in brackets or not.  JP_IN_ENDS: of a for; else of a set, which takes
 * attributes of namespaces. */
struct jnode *
jparse_target(struct jparser *p, unsigned flags)
{
	struct jnode *tuple = jnode_new(p, E_TUPLE), **tail = &tuple->a, *n;
	int is_tuple = 0;

	jparser_deeper(p);
	for (;;) {
		if (p->t.kind != T_NAME && !jparser_is_op(p, OP_LPAREN) &&
		    is_tuple)
			break;
		if ((flags & JP_IN_ENDS) && jparser_is_name(p, "in"))
			break;
		if (jparser_take_op(p, OP_LPAREN)) {
			n = jparse_target(p, flags);
			jparser_expect_op(p, OP_RPAREN, "')'");
		} else
			n = parse_target_name(p, !(flags & JP_IN_ENDS));
		*tail = n;
		tail = &n->next;
		if (!jparser_take_op(p, OP_COMMA))
			break;
		is_tuple = 1;
	}
	p->depth--;
	if (tuple->a == NULL)
		jparser_fail(p, "the name of a variable");
	return is_tuple ? jnode_done(p, tuple) : tuple->a;
}

static struct jnode *
parse_if(struct jparser *p)
{
	static const char *const ends[] = { "elif", "else", "endif", NULL };
	static const char *const last[] = { "endif", NULL };
	struct jnode *n = jnode_new(p, S_IF), **tail = &n->a, *b;

	for (;;) {
		b = jnode_new(p, S_BRANCH);
		jparser_next(p);	/* if, elif */
		b->a = jparse_tuple(p, JP_NO_COND);
		b->b = parse_body(p, ends);
		*tail = jnode_done(p, b);
		tail = &b->next;
		if (!jparser_is_name(p, "elif"))
			break;
	}
	if (jparser_take_name(p, "else")) {
		b = jnode_new(p, S_BRANCH);
		b->b = parse_body(p, last);
		*tail = jnode_done(p, b);
	}
	jparser_next(p);
	return jnode_done(p, n);
}

static struct jnode *
parse_for(struct jparser *p)
{
	static const char *const ends[] = { "else", "endfor", NULL };
	static const char *const last[] = { "endfor", NULL };
	struct jnode *n = jnode_new(p, S_FOR);

	jparser_next(p);
	n->a = jparse_target(p, JP_IN_ENDS);
	if (!jparser_take_name(p, "in"))
		jparser_fail(p, "'in'");
	n->b = jparse_tuple(p, JP_NO_COND | JP_IN_ENDS);
	if (jparser_take_name(p, "if"))
		n->e = jparse_expr(p);
	n->flag = (uint8_t)jparser_take_name(p, "recursive");
	p->loops++;
	n->c = parse_body(p, ends);
	p->loops--;
	if (jparser_take_name(p, "else"))
		n->d = parse_body(p, last);
	jparser_next(p);
	return jnode_done(p, n);
}

static struct jnode *
parse_set(struct jparser *p)
{
	static const char *const ends[] = { "endset", NULL };
	struct jnode *n = jnode_new(p, S_SET);

	jparser_next(p);
	n->a = jparse_target(p, 0);
	if (jparser_take_op(p, OP_ASSIGN)) {
		n->b = jparse_tuple(p, 0);
		return jnode_done(p, n);
	}
	n->kind = S_SETBLOCK;
	n->b = jparse_filters(p, NULL, 0);
	n->c = parse_body(p, ends);
	jparser_next(p);
	return jnode_done(p, n);
}

/* Parameters, with the opening bracket. */
static struct jnode *
parse_params(struct jparser *p)
{
	struct jnode *first = NULL, **tail = &first, *n;
	int has_default = 0;

	jparser_expect_op(p, OP_LPAREN, "'('");
	while (!jparser_is_op(p, OP_RPAREN)) {
		if (first != NULL)
			jparser_expect_op(p, OP_COMMA, "','");
		n = jnode_new(p, E_PARAM);
		if (is_reserved(p))
			jparser_fail(p, "the name of a parameter");
		n->name = jparser_expect_ident(p);
		if (jparser_take_op(p, OP_ASSIGN)) {
			n->a = jparse_expr(p);
			has_default = 1;
		} else if (has_default)
			jparser_fail(p, "a default: those before have one");
		*tail = jnode_done(p, n);
		tail = &n->next;
	}
	jparser_next(p);
	return first;
}

/* The body of a macro or of a call; its uses of special names go to n->flag. */
static void
parse_macro_body(struct jparser *p, struct jnode *n, const char *const *ends)
{
	unsigned uses = p->macro_uses, loops = p->loops;

	p->macro_uses = p->loops = 0;
	n->c = parse_body(p, ends);
	n->flag = (uint8_t)p->macro_uses;
	p->macro_uses = uses;
	p->loops = loops;
	jparser_next(p);
	jnode_done(p, n);
}

static struct jnode *
parse_macro(struct jparser *p)
{
	static const char *const ends[] = { "endmacro", NULL };
	struct jnode *n = jnode_new(p, S_MACRO);

	jparser_next(p);
	n->name = jparser_expect_ident(p);
	n->a = parse_params(p);
	parse_macro_body(p, n, ends);
	return n;
}

static struct jnode *
parse_call_block(struct jparser *p)
{
	static const char *const ends[] = { "endcall", NULL };
	struct jnode *n = jnode_new(p, S_CALL), *caller;

	jparser_next(p);
	caller = jnode_new(p, S_MACRO);
	caller->name = p->r->program->caller;
	if (jparser_is_op(p, OP_LPAREN))
		caller->a = parse_params(p);
	n->a = jparse_expr(p);
	if (n->a->kind != E_CALL)
		jparser_fail(p, "a call");
	parse_macro_body(p, caller, ends);
	n->b = caller;
	return jnode_done(p, n);
}

static struct jnode *
parse_filter_block(struct jparser *p)
{
	static const char *const ends[] = { "endfilter", NULL };
	struct jnode *n = jnode_new(p, S_FILTER);

	jparser_next(p);
	n->b = jparse_filters(p, NULL, 1);
	n->c = parse_body(p, ends);
	jparser_next(p);
	return jnode_done(p, n);
}

static struct jnode *
parse_with(struct jparser *p)
{
	static const char *const ends[] = { "endwith", NULL };
	struct jnode *n = jnode_new(p, S_WITH), **tail = &n->a;

	jparser_next(p);
	while (p->t.kind != T_BLOCK_END) {
		if (n->a != NULL)
			jparser_expect_op(p, OP_COMMA, "','");
		*tail = parse_target_name(p, 0);
		tail = &(*tail)->next;
		jparser_expect_op(p, OP_ASSIGN, "'='");
		*tail = jparse_expr(p);
		tail = &(*tail)->next;
	}
	n->c = parse_body(p, ends);
	jparser_next(p);
	return jnode_done(p, n);
}

/* {% generation %} of transformers, and {% block NAME %}, which nothing can
 * replace here: a scope. */
static struct jnode *
parse_scope(struct jparser *p)
{
	static const char *const generation[] = { "endgeneration", NULL };
	static const char *const block[] = { "endblock", NULL };
	struct jnode *n = jnode_new(p, S_SCOPE);
	int is_block = jparser_is_name(p, "block");
	const struct jstr *name = NULL;

	jparser_next(p);
	if (is_block)
		name = jparser_expect_ident(p);
	n->c = parse_body(p, is_block ? block : generation);
	jparser_next(p);
	if (name != NULL)
		jparser_take_name(p, name->s);
	return jnode_done(p, n);
}

static struct jnode *
parse_jump(struct jparser *p)
{
	struct jnode *n = jnode_new(p, jparser_is_name(p, "break") ? S_BREAK :
	    S_CONTINUE);

	if (p->loops == 0)
		jfail(p->r, -EBADMSG, "break and continue need a loop around "
		    "them");
	jparser_next(p);
	return jnode_done(p, n);
}

static struct jnode *
parse_statement(struct jparser *p)
{
	static const struct {
		const char *name;
		struct jnode *(*parse)(struct jparser *p);
	} tags[] = {
		{ "if", parse_if }, { "for", parse_for }, { "set", parse_set },
		{ "macro", parse_macro }, { "call", parse_call_block },
		{ "filter", parse_filter_block }, { "with", parse_with },
		{ "generation", parse_scope }, { "block", parse_scope },
		{ "break", parse_jump }, { "continue", parse_jump }
	};
	struct jnode *n;
	size_t i;

	if (p->t.kind != T_NAME)
		jparser_fail(p, "the name of a tag");
	for (i = 0; i < NITEMS(tags); i++)
		if (jparser_is_name(p, tags[i].name)) {
			jparser_deeper(p);
			n = tags[i].parse(p);
			p->depth--;
			return n;
		}
	if (jparser_is_name(p, "include") || jparser_is_name(p, "import") ||
	    jparser_is_name(p, "from") || jparser_is_name(p, "extends"))
		jfail(p->r, -EBADMSG, "a chat template cannot load another "
		    "template");
	jfail(p->r, -EBADMSG, "unknown tag '%.*s'", (int)MIN(p->t.n, (size_t)64),
	    p->t.s);
}

static int
is_end(const struct jparser *p, const char *const *ends)
{
	for (; ends != NULL && *ends != NULL; ends++)
		if (jparser_is_name(p, *ends))
			return 1;
	return 0;
}

static struct jnode *
parse_data(struct jparser *p)
{
	struct jnode *n = jnode_new(p, S_TEXT);

	n->v = jv_text(p->r, p->t.s, p->t.n, JINJA_TEMPLATE);
	jparser_next(p);
	return jnode_done(p, n);
}

/* Statements up to a tag of ends, whose name is the current token then. */
static struct jnode *
parse_list(struct jparser *p, const char *const *ends)
{
	struct jnode *first = NULL, **tail = &first, *n;

	for (;;) {
		if (p->t.kind == T_EOF) {
			if (ends != NULL)
				jparser_fail(p, ends[0]);
			return first;
		}
		if (p->t.kind == T_DATA)
			n = parse_data(p);
		else if (p->t.kind == T_VAR_BEGIN) {
			n = jnode_new(p, S_PRINT);
			jparser_next(p);
			n->a = jparse_tuple(p, 0);
			expect(p, T_VAR_END, "'}}'");
			jnode_done(p, n);
		} else {
			expect(p, T_BLOCK_BEGIN, "'{%'");
			if (is_end(p, ends))
				return first;
			n = parse_statement(p);
			expect(p, T_BLOCK_END, "'%}'");
		}
		*tail = n;
		tail = &n->next;
	}
}

/* From the end of a tag to the name in the tag that ends its body. */
static struct jnode *
parse_body(struct jparser *p, const char *const *ends)
{
	jparser_take_op(p, OP_COLON);
	expect(p, T_BLOCK_END, "'%}'");
	return parse_list(p, ends);
}

struct jnode *
jparse_template(struct jparser *p)
{
	jparser_next(p);
	jparser_next(p);
	return parse_list(p, NULL);
}

/* --- compilation --- */

static void
compile(struct jrun *r, struct jinja_program *p, const char *text, size_t n)
{
	struct jparser parser = { .r = r };

	r->line = r->col = 1;
	jstart_clock(r);
	if (n > p->limits.source_bytes)
		jfail(r, -E2BIG, "the template has %zu bytes, its limit is %zu",
		    n, p->limits.source_bytes);
	if (!uc_valid(text, n))
		jfail(r, -EBADMSG, "the template is not UTF-8");
	p->loop = jintern(r, p, "loop", 4);
	p->caller = jintern(r, p, "caller", 6);
	p->varargs = jintern(r, p, "varargs", 7);
	p->kwargs = jintern(r, p, "kwargs", 6);
	parser.x = jalloc(r, jlexer_size());
	jlex_open(r, parser.x, text, n);
	p->body = jparse_template(&parser);
}

int
jinja_compile(const char *text, size_t n, const struct jinja_limits *limits,
    struct jinja_program **ret, struct err *reterr)
{
	struct jinja_program *p;
	struct jrun *r;
	int rc;

	p = calloc(1, sizeof(*p));
	r = calloc(1, sizeof(*r));
	if (p == NULL || r == NULL) {
		free(p);
		free(r);
		return err_nomem(reterr, "a template of %zu bytes", n);
	}
	p->limits = *limits;
	p->arena.limit_bytes = limits->memory_bytes;
	r->err = reterr;
	r->arena = &p->arena;
	r->limits = &p->limits;
	r->program = p;
	if (setjmp(r->leave) == 0)
		compile(r, p, text, n);
	rc = r->rc;
	free(r);
	if (rc < 0)
		jinja_close(p);
	else
		*ret = p;
	return rc;
}

void
jinja_close(struct jinja_program *p)
{
	if (p == NULL)
		return;
	jarena_free(&p->arena);
	free(p);
}
