/* coordinator/text/jinja/impl.h - what the engine's files share.
 * Owns: values, syntax trees, the state of a compilation or a rendering.
 *
 * Errors leave through jfail(), which jumps to the entry point (longjmp): all memory
 * lies in an arena, so nothing has to be released on the way, and no function returns
 * an error that its caller could forget. */
#ifndef COORDINATOR_TEXT_JINJA_IMPL_H
#define COORDINATOR_TEXT_JINJA_IMPL_H

#include <errno.h>
#include <setjmp.h>
#include <string.h>

#include "jinja.h"
#include "unicode.h"

/* --- memory --- */

struct jblock;

struct jarena {
	struct jblock *blocks;
	char *at, *end;
	size_t used_bytes, limit_bytes;
};

/* NULL: beyond the limit, or (*ret_host) the process has no more. */
void *jarena_alloc(struct jarena *a, size_t n, int *ret_host);
void jarena_free(struct jarena *a);

/* --- values --- */

enum jkind {
	J_UNDEFINED,		/* p: struct jundef, or NULL */
	J_NONE, J_BOOL, J_INT, J_FLOAT,
	J_STRING,		/* p: struct jstr */
	J_LIST, J_TUPLE,	/* p: struct jlist */
	J_GENERATOR,		/* the same; can be read once */
	J_VIEW,			/* the same; of a dict */
	J_RANGE,		/* p: struct jrange */
	J_DICT, J_NAMESPACE,	/* p: struct jdict */
	J_MACRO,		/* p: struct jmacro */
	J_METHOD,		/* p: struct jmethod */
	J_FUNCTION,		/* extra: enum jfunction */
	J_LOOP,			/* p: struct jloop */
	J_CYCLER, J_JOINER	/* p: struct jlist; extra of its values */
};

/* A string never changes.  by: a mark for each byte, or NULL: all are `mark`. */
struct jstr {
	const char *s;
	const uint8_t *by;
	size_t n;
	size_t nchars;		/* SIZE_MAX: not counted yet */
	struct jroom *room;	/* that s lies at the beginning of, or NULL */
	uint8_t mark;
};

/* Room behind a long sum of strings.  The string that ends where the room's content
 * ends can be added to in place; shorter ones before it do not notice. */
struct jroom {
	char *s;
	uint8_t *by;
	size_t n, cap;
};

struct jlist {
	struct jv *v;
	size_t n, cap;
	size_t at;		/* J_GENERATOR: next; J_CYCLER: current */
	const char *view;	/* J_VIEW: its Python name; J_GENERATOR: why it
				 * fails, or NULL */
};

struct jpair { struct jv key, value; };

struct jdict {
	struct jpair *v;
	size_t n, cap;
};

struct jrange { int64_t from, step; size_t n; };

/* The message of an undefined value that is used. */
struct jundef { const char *text; };

struct jmethod {
	struct jv self;
	unsigned id;		/* of its type's table */
};

struct jmacro {
	const struct jnode *node;
	struct jscope *scope;
};

enum jfunction {
	JF_RANGE, JF_DICT, JF_NAMESPACE, JF_CYCLER, JF_JOINER, JF_RAISE,
	JF_STRFTIME, JF_NFUNCTIONS
};

/* --- syntax --- */

enum jnode_kind {
	E_CONST, E_NAME, E_LIST, E_TUPLE, E_DICT, E_ATTR, E_ITEM, E_SLICE,
	E_CALL, E_KEYWORD, E_STAR, E_STARSTAR, E_FILTER, E_TEST, E_NOT, E_NEG,
	E_POS, E_BINARY, E_AND, E_OR, E_CONCAT, E_COMPARE, E_OPERAND, E_COND,
	E_NSREF, E_PARAM,
	S_TEXT, S_PRINT, S_IF, S_BRANCH, S_FOR, S_SET, S_SETBLOCK, S_MACRO,
	S_CALL, S_FILTER, S_WITH, S_SCOPE, S_BREAK, S_CONTINUE
};

/* Children: E_COND a if b else c; E_SLICE a:b:c; E_CALL a(b...); E_FILTER a|name(b...),
 * a NULL at the head of a filter block's chain; S_IF a: S_BRANCHes (a: condition or NULL,
 * b: body); S_FOR a in b: c, else d, e: the condition; S_SET a = b; S_SETBLOCK a, filters
 * b, c: body; S_MACRO a: E_PARAMs (a: default), c: body; S_CALL a: the call, b: S_MACRO of
 * the caller; S_WITH a: target, value, ..., c: body; S_FILTER b: chain, c: body. */
struct jnode {
	uint8_t kind;
	uint8_t flag;		/* S_FOR: recursive; S_MACRO: JM_* */
	uint16_t depth;
	uint32_t line, col;
	unsigned op;		/* enum jop; index of a filter, test or attribute */
	const struct jstr *name;	/* interned: equal names, equal pointers */
	struct jnode *a, *b, *c, *d, *e;
	struct jnode *next;
	struct jv v;		/* E_CONST, S_TEXT; E_NSREF: attribute */
};

enum { JM_VARARGS = 1, JM_KWARGS = 2, JM_CALLER = 4 };

enum jtoken_kind {
	T_EOF, T_DATA, T_VAR_BEGIN, T_VAR_END, T_BLOCK_BEGIN, T_BLOCK_END,
	T_NAME, T_STRING, T_INT, T_FLOAT, T_OP
};

enum jop {
	OP_NONE, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD, OP_POW,
	OP_TILDE, OP_LPAREN, OP_RPAREN, OP_LBRACKET, OP_RBRACKET, OP_LBRACE,
	OP_RBRACE, OP_EQ, OP_NE, OP_GT, OP_GE, OP_LT, OP_LE, OP_ASSIGN, OP_DOT,
	OP_COLON, OP_PIPE, OP_COMMA, OP_SEMICOLON, OP_IN, OP_NOTIN
};

struct jtoken {
	enum jtoken_kind kind;
	enum jop op;
	uint32_t line, col;
	const char *s;		/* T_DATA, T_NAME, T_STRING: [n] */
	size_t n;
	int64_t i;
	double f;
};

struct jintern {
	struct jintern *next;
	struct jstr s;
};

enum { JINTERN_HEADS = 1024, JNO_INDEX = 0xffff };

struct jinja_program {
	struct jarena arena;
	struct jinja_limits limits;
	struct jnode *body;
	struct jintern *names[JINTERN_HEADS];
	/* Names that the interpreter binds itself. */
	const struct jstr *loop, *caller, *varargs, *kwargs;
};

struct jvar {
	struct jvar *next;
	const char *name;
	struct jv v;
};

struct jinja_data {
	struct jarena arena;
	struct jinja_limits limits;
	struct jvar *vars;
	int failed;		/* 0, or a value did not fit */
};

/* --- the state of a compilation or a rendering --- */

struct jbind {
	struct jbind *next;
	const struct jstr *name;
	struct jv v;
};

struct jscope {
	struct jscope *parent;
	struct jbind *binds;
};

struct jloop {
	const struct jnode *node;
	struct jscope *scope;	/* around the loop */
	struct jv items;	/* list, tuple or range */
	struct jv changed;	/* loop.changed(): arguments of the last call */
	size_t i, n;
	unsigned depth0;
	int has_changed;
};

struct jrun {
	jmp_buf leave;
	int rc;
	struct err *err;
	struct jarena *arena;
	const struct jinja_limits *limits;
	uint32_t line, col;	/* where a message points to */
	uint64_t steps, checked_steps;
	uint64_t deadline_ns;	/* 0: none */
	unsigned depth, macro_depth;
	struct jinja_program *program;	/* being built, or NULL */

	/* rendering */
	const struct jinja_program *p;
	const struct tm *now;
	struct jscope *scope, *root;
	struct jloop *loop;	/* innermost */
	struct jbuf *out;
	int is_captured;	/* out is not the rendering's own */
};

/* Arguments of a call. */
struct jargs {
	struct jv *v;
	size_t n;
	const struct jstr **name;	/* [nkw] */
	struct jv *kw;
	size_t nkw;
};

/* error.c */
NORETURN void
jfail(struct jrun *r, int rc, const char *fmt, ...) PRINTF_LIKE(3, 4);
void *jalloc(struct jrun *r, size_t n);
/* n elements, zeroed. */
void *jzalloc(struct jrun *r, size_t n, size_t size);
void jstep(struct jrun *r, uint64_t n);
void jenter(struct jrun *r);		/* one level deeper */
void jstart_clock(struct jrun *r);
const char *
jformat(struct jrun *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline void
jleave(struct jrun *r)
{
	r->depth--;
}
static inline void
jat(struct jrun *r, const struct jnode *n)
{
	r->line = n->line;
	r->col = n->col;
}

/* lex.c */
struct jlexer;
size_t jlexer_size(void);
void
jlex_open(struct jrun *r, struct jlexer *x, const char *s, size_t n);
void jlex_next(struct jlexer *x, struct jtoken *ret);

/* parse.c, parse_expr.c */
struct jparser {
	struct jrun *r;
	struct jlexer *x;
	struct jtoken t, ahead;	/* current and next */
	unsigned depth;
	unsigned macro_uses;	/* JM_*: names that occurred */
	unsigned loops;		/* around this place, for break */
};
struct jnode *jparse_template(struct jparser *p);
void jparser_next(struct jparser *p);
int jparser_is_op(const struct jparser *p, enum jop op);
int jparser_is_name(const struct jparser *p, const char *name);
int jparser_take_op(struct jparser *p, enum jop op);
int jparser_take_name(struct jparser *p, const char *name);
void jparser_expect_op(struct jparser *p, enum jop op, const char *what);
const struct jstr *jparser_expect_ident(struct jparser *p);
NORETURN void jparser_fail(struct jparser *p, const char *what);
void jparser_deeper(struct jparser *p);
struct jnode *jnode_new(struct jparser *p, enum jnode_kind kind);
/* Give n its depth; a and the rest may be NULL. */
struct jnode *jnode_done(struct jparser *p, struct jnode *n);
enum { JP_NO_COND = 1, JP_PARENS = 2, JP_IN_ENDS = 4 };
struct jnode *jparse_tuple(struct jparser *p, unsigned flags);
struct jnode *jparse_expr(struct jparser *p);
struct jnode *jparse_unary(struct jparser *p, int with_filter);
struct jnode *jparse_filters(struct jparser *p, struct jnode *base, int at_name);
struct jnode *jparse_target(struct jparser *p, unsigned flags);
const struct jstr *
jintern(struct jrun *r, struct jinja_program *p, const char *s, size_t n);
const struct jstr *
jintern_find(const struct jinja_program *p, const char *s, size_t n);

/* text.c: strings and the buffer that makes them */
struct jchunk;
struct jbuf {
	struct jrun *r;
	struct jchunk *first, *last;
	size_t n;
	unsigned seen;		/* bits of the marks so far */
};
void jbuf_add(struct jbuf *b, const char *s, size_t n, unsigned mark);
void jbuf_puts(struct jbuf *b, const char *s, unsigned mark);
void jbuf_char(struct jbuf *b, uint32_t c, unsigned mark);
void
jbuf_part(struct jbuf *b, const struct jstr *s, size_t from, size_t to);
static inline void
jbuf_str(struct jbuf *b, const struct jstr *s)
{
	jbuf_part(b, s, 0, s->n);
}
const struct jstr *jbuf_end(struct jbuf *b);
/* Give the content to sink in pieces of one origin each. */
int jbuf_send(const struct jbuf *b, jinja_sink *sink, void *arg);

struct jv jv_str(const struct jstr *s, unsigned safe);
struct jv jv_text(struct jrun *r, const char *s, size_t n, unsigned mark);
struct jv jv_cstr(struct jrun *r, const char *s);
const struct jstr *
jstr_part(struct jrun *r, const struct jstr *s, size_t from, size_t to);
enum { JLONG_BYTES = 256 };	/* sums of such strings are made in place */
const struct jstr *
jstr_cat(struct jrun *r, const struct jstr *a, const struct jstr *b);
const struct jstr *
jstr_repeat(struct jrun *r, const struct jstr *s, int64_t times);
size_t jstr_nchars(struct jrun *r, const struct jstr *s);
/* The byte where character i begins; i <= nchars. */
size_t jstr_offset(struct jrun *r, const struct jstr *s, size_t i);
static inline unsigned
jstr_mark(const struct jstr *s, size_t i)
{
	return s->by != NULL ? s->by[i] : s->mark;
}
int jstr_eq(const struct jstr *a, const struct jstr *b);
int jstr_is(const struct jstr *a, const char *s);
/* The first or last place of b in a[from, to); SIZE_MAX: none. */
size_t
jstr_find(struct jrun *r, const struct jstr *a, const struct jstr *b,
    size_t from, size_t to);
size_t
jstr_rfind(struct jrun *r, const struct jstr *a, const struct jstr *b,
    size_t from, size_t to);
/* chars NULL: white space.  sides: 1 left, 2 right. */
const struct jstr *
jstr_strip(struct jrun *r, const struct jstr *s, const struct jstr *chars,
    unsigned sides);
const struct jstr *
jstr_case(struct jrun *r, const struct jstr *s, enum unicode_case to);
const struct jstr *
jstr_capitalize(struct jrun *r, const struct jstr *s);
const struct jstr *
jstr_replace(struct jrun *r, const struct jstr *s, const struct jstr *from,
    const struct jstr *to, int64_t count);
const struct jstr *jstr_escape(struct jrun *r, const struct jstr *s);
const struct jstr *
jstr_pad(struct jrun *r, const struct jstr *s, int64_t left, int64_t right,
    const struct jstr *fill);

/* value.c: lists, dicts, truth, order */
static inline const struct jstr *
jv_s(struct jv v)
{
	return v.u.p;
}
static inline struct jlist *
jv_l(struct jv v)
{
	return v.u.p;
}
static inline struct jdict *
jv_d(struct jv v)
{
	return v.u.p;
}
struct jv jv_undefined(struct jrun *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct jv jv_list(struct jrun *r, enum jkind kind);
struct jv jv_dict(struct jrun *r, enum jkind kind);
struct jv jv_pair(struct jrun *r, struct jv a, struct jv b);
void jlist_add(struct jrun *r, struct jlist *l, struct jv v);
struct jv *jdict_find(struct jrun *r, struct jdict *d, struct jv key);
struct jv *jdict_find_str(struct jrun *r, struct jdict *d, const struct jstr *key);
void jdict_put(struct jrun *r, struct jdict *d, struct jv key, struct jv v);
const char *jv_type(struct jv v);	/* Python's name */
int jv_true(struct jrun *r, struct jv v);
int jv_eq(struct jrun *r, struct jv a, struct jv b);
int jv_same(struct jv a, struct jv b);
/* Fails where Python does. */
int jv_compare(struct jrun *r, struct jv a, struct jv b, const char *op);
int jv_in(struct jrun *r, struct jv item, struct jv in);
size_t jv_length(struct jrun *r, struct jv v);
int jv_is_number(struct jv v);		/* bool, too */
int jv_is_sequence(struct jv v);	/* list, tuple, range */
/* Fail if v is undefined. */
void jv_need(struct jrun *r, struct jv v);
int64_t jv_int(struct jrun *r, struct jv v, const char *what);
const struct jstr *jv_need_str(struct jrun *r, struct jv v, const char *what);

struct jiter {
	struct jv v;
	size_t i;
};
void jiter_open(struct jrun *r, struct jiter *it, struct jv v);
int jiter_next(struct jrun *r, struct jiter *it, struct jv *ret);
/* All that v gives, as a new list. */
struct jv jv_to_list(struct jrun *r, struct jv v);
/* Sort l in place by keys, one for each item; stable.  with_case 0: strings without
 * their case. */
void
jlist_sort(struct jrun *r, struct jlist *l, const struct jlist *keys,
    int with_case, int reverse);
struct jv jv_fold(struct jrun *r, struct jv v);	/* strings in lower case */

/* print.c, tojson.c */
const struct jstr *jv_to_str(struct jrun *r, struct jv v);
void jv_print(struct jbuf *b, struct jv v);
void jv_repr(struct jbuf *b, struct jv v);
enum { JFLOAT_BYTES = 40 };
void jfloat_text(double f, char *to);
struct jv jv_tojson(struct jrun *r, struct jv v, const struct jargs *args);

/* ops.c */
struct jv
jop_binary(struct jrun *r, enum jop op, struct jv a, struct jv b);
struct jv jop_negate(struct jrun *r, struct jv v, int sign);
struct jv jop_attr(struct jrun *r, struct jv v, const struct jstr *name);
struct jv jop_item(struct jrun *r, struct jv v, struct jv key);
struct jv
jop_slice(struct jrun *r, struct jv v, struct jv from, struct jv to,
    struct jv step);
struct jv
jop_format(struct jrun *r, const struct jstr *fmt, const struct jv *v, size_t n);

/* eval.c, call.c, exec.c */
struct jv jeval(struct jrun *r, const struct jnode *n);
void
jeval_args(struct jrun *r, const struct jnode *args, struct jargs *ret);
/* Argument i, or the one of this name; 0: there is none. */
int
jarg(const struct jargs *a, size_t i, const char *name, struct jv *ret);
/* Fail with more than max arguments, or an unknown name of names (each ended by
 * a comma). */
void
jargs_check(struct jrun *r, const struct jargs *a, const char *what, size_t min,
    size_t max, const char *names);
struct jv jcall(struct jrun *r, struct jv callee, const struct jargs *args);
int jfunction_find(const struct jstr *name);
enum jflow { JFLOW_NEXT, JFLOW_BREAK, JFLOW_CONTINUE };
enum jflow jexec(struct jrun *r, const struct jnode *n);
void jset(struct jrun *r, const struct jstr *name, struct jv v);
void jassign(struct jrun *r, const struct jnode *target, struct jv v);
/* Run body in a new scope below parent, its output as a string. */
const struct jstr *
jcapture(struct jrun *r, const struct jnode *body, struct jscope *scope);
struct jscope *jscope_new(struct jrun *r, struct jscope *parent);
struct jv
jexec_loop(struct jrun *r, struct jloop *outer, struct jv items);
struct jv jloop_attr(struct jrun *r, struct jloop *l, const struct jstr *name);
struct jv jmacro_call(struct jrun *r, struct jmacro *m, const struct jargs *args);

/* filters.c, filters_list.c, tests.c */
typedef struct jv
jfilter_fn(struct jrun *r, struct jv v, const struct jargs *args);
struct jfilter {
	const char *name;
	jfilter_fn *fn;
};
extern const struct jfilter jfilters_text[], jfilters_list[];
extern const size_t njfilters_text, njfilters_list;
unsigned jfilter_index(const char *s, size_t n);	/* JNO_INDEX: none */
struct jv
jfilter_apply(struct jrun *r, unsigned index, struct jv v,
    const struct jargs *args);
unsigned jtest_index(const char *s, size_t n);
int
jtest_apply(struct jrun *r, unsigned index, struct jv v,
    const struct jargs *args);

/* methods.c, methods_data.c */
typedef struct jv
jmethod_fn(struct jrun *r, struct jv self, const struct jargs *args);
struct jmethod_row {
	const char *name;
	jmethod_fn *fn;		/* NULL: exists in Python, is refused here */
};
extern const struct jmethod_row jmethods_str[], jmethods_list[],
    jmethods_tuple[], jmethods_dict[];
/* Whether v has the method; *ret becomes it, bound to v. */
int
jmethod_find(struct jrun *r, struct jv v, const struct jstr *name,
    struct jv *ret);
struct jv
jmethod_call(struct jrun *r, const struct jmethod *m, const struct jargs *args);

#endif
