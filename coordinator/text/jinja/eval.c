/* coordinator/text/jinja/eval.c - evaluates expressions.
 * Each level of a tree takes one level of the run's depth. */
#include "impl.h"

static struct jv eval_node(struct jrun *r, const struct jnode *n);

struct jv
jeval(struct jrun *r, const struct jnode *n)
{
	struct jv v;

	jstep(r, 1);
	jat(r, n);
	jenter(r);
	v = eval_node(r, n);
	jleave(r);
	jat(r, n);
	return v;
}

static struct jv
eval_optional(struct jrun *r, const struct jnode *n)
{
	return n != NULL ? jeval(r, n) : jinja_none(JINJA_TEMPLATE);
}

static struct jv
eval_name(struct jrun *r, const struct jnode *n)
{
	const struct jscope *s;
	const struct jbind *b;
	struct jv v = { .kind = J_FUNCTION };
	uint64_t looked = 0;
	int f;

	for (s = r->scope; s != NULL; s = s->parent)
		for (b = s->binds; b != NULL; b = b->next, looked++)
			if (b->name == n->name) {
				jstep(r, looked / 16);
				return b->v;
			}
	jstep(r, looked / 16);
	f = jfunction_find(n->name);
	if (f < 0 || (f == JF_STRFTIME && r->now == NULL))
		return jv_undefined(r, "'%.100s' is undefined", n->name->s);
	v.extra = (uint32_t)f;
	return v;
}

static struct jv
eval_list(struct jrun *r, const struct jnode *n)
{
	struct jv v = jv_list(r, n->kind == E_TUPLE ? J_TUPLE : J_LIST);
	const struct jnode *c;

	for (c = n->a; c != NULL; c = c->next)
		jlist_add(r, jv_l(v), jeval(r, c));
	return v;
}

static struct jv
eval_dict(struct jrun *r, const struct jnode *n)
{
	struct jv v = jv_dict(r, J_DICT), key;
	const struct jnode *c;

	for (c = n->a; c != NULL; c = c->next->next) {
		key = jeval(r, c);
		jdict_put(r, jv_d(v), key, jeval(r, c->next));
	}
	return v;
}

static struct jv
eval_concat(struct jrun *r, const struct jnode *n)
{
	struct jv v = jeval(r, n->a);
	struct jbuf b = { .r = r };
	const struct jnode *c;
	const struct jstr *s;

	if (v.kind == J_STRING && jv_s(v)->n >= JLONG_BYTES) {
		s = jv_s(v);
		for (c = n->a->next; c != NULL; c = c->next)
			s = jstr_cat(r, s, jv_to_str(r, jeval(r, c)));
		return jv_str(s, 0);
	}
	jv_print(&b, v);
	for (c = n->a->next; c != NULL; c = c->next)
		jv_print(&b, jeval(r, c));
	return jv_str(jbuf_end(&b), 0);
}

static int
holds(struct jrun *r, enum jop op, struct jv a, struct jv b)
{
	int c;

	switch (op) {
	case OP_EQ:
		return jv_eq(r, a, b);
	case OP_NE:
		return !jv_eq(r, a, b);
	case OP_IN:
		return jv_in(r, a, b);
	case OP_NOTIN:
		return !jv_in(r, a, b);
	case OP_LT:
		return jv_compare(r, a, b, "<") < 0;
	case OP_LE:
		return jv_compare(r, a, b, "<=") <= 0;
	case OP_GT:
		return jv_compare(r, a, b, ">") == 1;
	default:
		c = jv_compare(r, a, b, ">=");
		return c == 0 || c == 1;
	}
}

static struct jv
eval_compare(struct jrun *r, const struct jnode *n)
{
	struct jv left = jeval(r, n->a), right;
	const struct jnode *o;

	for (o = n->b; o != NULL; o = o->next) {
		right = jeval(r, o->a);
		jat(r, n);
		if (!holds(r, o->op, left, right))
			return jinja_bool(0, JINJA_TEMPLATE);
		left = right;
	}
	return jinja_bool(1, JINJA_TEMPLATE);
}

static struct jv
eval_item(struct jrun *r, const struct jnode *n)
{
	struct jv v = jeval(r, n->a), from, to, step;

	if (n->b->kind != E_SLICE) {
		from = jeval(r, n->b);
		jat(r, n);
		return jop_item(r, v, from);
	}
	from = eval_optional(r, n->b->a);
	to = eval_optional(r, n->b->b);
	step = eval_optional(r, n->b->c);
	jat(r, n);
	return jop_slice(r, v, from, to, step);
}

static struct jv
eval_call(struct jrun *r, const struct jnode *n)
{
	struct jv callee = jeval(r, n->a);
	struct jargs args;

	jeval_args(r, n->b, &args);
	jat(r, n);
	return jcall(r, callee, &args);
}

static struct jv
eval_filter(struct jrun *r, const struct jnode *n)
{
	struct jv v = jeval(r, n->a);
	struct jargs args;

	if (n->op == JNO_INDEX)
		jfail(r, -EINVAL, "No filter named '%.100s'.", n->name->s);
	jeval_args(r, n->b, &args);
	jat(r, n);
	return jfilter_apply(r, n->op, v, &args);
}

static struct jv
eval_test(struct jrun *r, const struct jnode *n)
{
	struct jv v = jeval(r, n->a);
	struct jargs args;

	if (n->op == JNO_INDEX)
		jfail(r, -EINVAL, "No test named '%.100s'.", n->name->s);
	jeval_args(r, n->b, &args);
	jat(r, n);
	return jinja_bool(jtest_apply(r, n->op, v, &args), JINJA_TEMPLATE);
}

static struct jv
eval_cond(struct jrun *r, const struct jnode *n)
{
	if (jv_true(r, jeval(r, n->b)))
		return jeval(r, n->a);
	if (n->c != NULL)
		return jeval(r, n->c);
	return jv_undefined(r, "the inline if-expression on line %u evaluated to "
	    "false and no else section was defined.", n->line);
}

static struct jv
eval_binary(struct jrun *r, const struct jnode *n)
{
	struct jv a = jeval(r, n->a), b = jeval(r, n->b);

	jat(r, n);
	return jop_binary(r, n->op, a, b);
}

static struct jv
eval_logic(struct jrun *r, const struct jnode *n)
{
	struct jv a = jeval(r, n->a);

	if (jv_true(r, a) == (n->kind == E_OR))
		return a;
	return jeval(r, n->b);
}

static struct jv
eval_node(struct jrun *r, const struct jnode *n)
{
	switch (n->kind) {
	case E_CONST:
		return n->v;
	case E_NAME:
		return eval_name(r, n);
	case E_LIST:
	case E_TUPLE:
		return eval_list(r, n);
	case E_DICT:
		return eval_dict(r, n);
	case E_ATTR:
		return jop_attr(r, jeval(r, n->a), n->name);
	case E_ITEM:
		return eval_item(r, n);
	case E_CALL:
		return eval_call(r, n);
	case E_FILTER:
		return eval_filter(r, n);
	case E_TEST:
		return eval_test(r, n);
	case E_NOT:
		return jinja_bool(!jv_true(r, jeval(r, n->a)), JINJA_TEMPLATE);
	case E_NEG:
	case E_POS:
		return jop_negate(r, jeval(r, n->a), n->kind == E_NEG ? -1 : 1);
	case E_BINARY:
		return eval_binary(r, n);
	case E_AND:
	case E_OR:
		return eval_logic(r, n);
	case E_CONCAT:
		return eval_concat(r, n);
	case E_COMPARE:
		return eval_compare(r, n);
	case E_COND:
		return eval_cond(r, n);
	default:
		jfail(r, -EINVAL, "a slice cannot stand here");
	}
}

/* --- arguments --- */

static void
add_named(struct jrun *r, struct jargs *a, size_t *cap, const struct jstr *name,
    struct jv v)
{
	const struct jstr **names;
	struct jv *kw;

	if (a->nkw == *cap) {
		*cap = *cap > 0 ? *cap * 2 : 4;
		names = jzalloc(r, *cap, sizeof(*names));
		kw = jzalloc(r, *cap, sizeof(*kw));
		if (a->nkw > 0) {
			memcpy(names, a->name, a->nkw * sizeof(*names));
			memcpy(kw, a->kw, a->nkw * sizeof(*kw));
		}
		a->name = names;
		a->kw = kw;
	}
	a->name[a->nkw] = name;
	a->kw[a->nkw++] = v;
}

static void
add_dict(struct jrun *r, struct jargs *a, size_t *cap, struct jv v)
{
	const struct jdict *d = jv_d(v);
	const struct jstr *key, *name;
	size_t i;

	if (v.kind != J_DICT)
		jfail(r, -EINVAL, "argument after ** must be a mapping, not %s",
		    jv_type(v));
	for (i = 0; i < d->n; i++) {
		key = jv_need_str(r, d->v[i].key, "the name of an argument");
		name = jintern_find(r->p, key->s, key->n);
		add_named(r, a, cap, name != NULL ? name : key, d->v[i].value);
	}
}

void
jeval_args(struct jrun *r, const struct jnode *args, struct jargs *ret)
{
	struct jlist list = { .n = 0 };
	const struct jnode *c;
	struct jiter it;
	struct jv v;
	size_t cap = 0;

	*ret = (struct jargs){ .n = 0 };
	for (c = args; c != NULL; c = c->next) {
		if (c->kind == E_KEYWORD)
			add_named(r, ret, &cap, c->name, jeval(r, c->a));
		else if (c->kind == E_STARSTAR)
			add_dict(r, ret, &cap, jeval(r, c->a));
		else if (c->kind == E_STAR) {
			jiter_open(r, &it, jeval(r, c->a));
			while (jiter_next(r, &it, &v))
				jlist_add(r, &list, v);
		} else
			jlist_add(r, &list, jeval(r, c));
	}
	ret->v = list.v;
	ret->n = list.n;
}

int
jarg(const struct jargs *a, size_t i, const char *name, struct jv *ret)
{
	size_t k;

	if (i < a->n) {
		*ret = a->v[i];
		return 1;
	}
	for (k = 0; k < a->nkw; k++)
		if (jstr_is(a->name[k], name)) {
			*ret = a->kw[k];
			return 1;
		}
	return 0;
}

/* Whether names, each ended by a comma, has s. */
static int
is_named(const char *names, const struct jstr *s)
{
	const char *end;

	for (; (end = strchr(names, ',')) != NULL; names = end + 1)
		if ((size_t)(end - names) == s->n &&
		    memcmp(names, s->s, s->n) == 0)
			return 1;
	return 0;
}

void
jargs_check(struct jrun *r, const struct jargs *a, const char *what, size_t min,
    size_t max, const char *names)
{
	size_t k;

	if (a->n > max)
		jfail(r, -EINVAL, "%s takes at most %zu arguments, %zu given",
		    what, max, a->n);
	for (k = 0; k < a->nkw; k++)
		if (!is_named(names, a->name[k]))
			jfail(r, -EINVAL, "%s has no argument '%.*s'", what,
			    (int)MIN(a->name[k]->n, (size_t)100),
			    a->name[k]->s);
	if (a->n + a->nkw < min)
		jfail(r, -EINVAL, "%s needs %zu arguments, %zu given", what, min,
		    a->n + a->nkw);
}
