/* coordinator/text/jinja/exec.c - runs statements; renders a program.
 *
 * A scope is opened by each round of a for, by macros, by set, filter, with and
 * generation blocks, not by an if.  A name is looked up outwards and set in the
 * innermost scope.  A macro's scope lies within the one that defined it. */
#include "impl.h"

#include <stdlib.h>

struct jscope *
jscope_new(struct jrun *r, struct jscope *parent)
{
	struct jscope *s = jzalloc(r, 1, sizeof(*s));

	s->parent = parent;
	return s;
}

void
jset(struct jrun *r, const struct jstr *name, struct jv v)
{
	struct jbind *b;
	uint64_t looked = 0;

	for (b = r->scope->binds; b != NULL; b = b->next, looked++)
		if (b->name == name) {
			b->v = v;
			break;
		}
	jstep(r, looked / 16);
	if (b != NULL)
		return;
	b = jalloc(r, sizeof(*b));
	*b = (struct jbind){ .next = r->scope->binds, .name = name, .v = v };
	r->scope->binds = b;
}

static void
assign_attr(struct jrun *r, const struct jnode *target, struct jv v)
{
	struct jnode name = *target;
	struct jv ns;

	name.kind = E_NAME;
	ns = jeval(r, &name);
	if (ns.kind != J_NAMESPACE)
		jfail(r, -EINVAL, "cannot assign attribute on non-namespace "
		    "object");
	jdict_put(r, jv_d(ns), target->v, v);
}

void
jassign(struct jrun *r, const struct jnode *target, struct jv v)
{
	const struct jnode *c;
	struct jv list;
	size_t i = 0, n = 0;

	if (target->kind == E_NAME) {
		jset(r, target->name, v);
		return;
	}
	if (target->kind == E_NSREF) {
		assign_attr(r, target, v);
		return;
	}
	for (c = target->a; c != NULL; c = c->next)
		n++;
	if (v.kind == J_UNDEFINED)
		jv_need(r, v);
	list = jv_to_list(r, v);
	if (jv_l(list)->n != n)
		jfail(r, -EINVAL, "cannot unpack %zu values into %zu names",
		    jv_l(list)->n, n);
	jenter(r);
	for (c = target->a; c != NULL; c = c->next)
		jassign(r, c, jv_l(list)->v[i++]);
	jleave(r);
}

const struct jstr *
jcapture(struct jrun *r, const struct jnode *body, struct jscope *scope)
{
	struct jbuf b = { .r = r }, *out = r->out;
	struct jscope *old = r->scope;
	int was_captured = r->is_captured;

	r->out = &b;
	r->is_captured = 1;
	r->scope = scope;
	jexec(r, body);
	r->scope = old;
	r->is_captured = was_captured;
	r->out = out;
	return jbuf_end(&b);
}

static void
print_value(struct jrun *r, struct jv v)
{
	jv_print(r->out, v);
	if (!r->is_captured && r->out->n > r->limits->output_bytes)
		jfail(r, -E2BIG, "the template exceeds its limit of %zu bytes of "
		    "output", r->limits->output_bytes);
}

/* --- loops --- */

/* The items for which the loop's condition holds. */
static struct jv
filter_items(struct jrun *r, const struct jnode *n, struct jscope *scope,
    struct jv items)
{
	struct jv kept = jv_list(r, J_LIST), v;
	struct jiter it;

	jiter_open(r, &it, items);
	while (jiter_next(r, &it, &v)) {
		r->scope = jscope_new(r, scope);
		jassign(r, n->a, v);
		if (jv_true(r, jeval(r, n->e)))
			jlist_add(r, jv_l(kept), v);
	}
	r->scope = scope;
	return kept;
}

static struct jv
loop_item(const struct jloop *l, size_t i)
{
	const struct jrange *g = l->items.u.p;

	if (l->items.kind == J_RANGE)
		return jinja_int(g->from + (int64_t)i * g->step,
		    JINJA_TEMPLATE);
	return jv_l(l->items)->v[i];
}

/* Run the loop's body for each item, its else where there is none. */
static void
run_loop(struct jrun *r, struct jloop *l)
{
	struct jscope *inner = jscope_new(r, l->scope);
	struct jv self = { .kind = J_LOOP };

	self.u.p = l;
	r->scope = inner;
	jset(r, r->p->loop, self);
	for (l->i = 0; l->i < (l->n = jv_length(r, l->items)); l->i++) {
		jstep(r, 1);
		r->scope = jscope_new(r, inner);
		jassign(r, l->node->a, loop_item(l, l->i));
		if (jexec(r, l->node->c) == JFLOW_BREAK)
			break;
	}
	r->scope = jscope_new(r, l->scope);
	if (l->n == 0 && l->node->d != NULL)
		jexec(r, l->node->d);
	r->scope = l->scope;
}

static void
start_loop(struct jrun *r, const struct jnode *n, struct jscope *scope,
    struct jv items, unsigned depth0)
{
	struct jloop *l = jzalloc(r, 1, sizeof(*l));
	struct jscope *old = r->scope;

	jenter(r);
	r->scope = scope;
	if (n->e != NULL)
		items = filter_items(r, n, scope, items);
	else if (!jv_is_sequence(items))
		items = jv_to_list(r, items);
	*l = (struct jloop){ .node = n, .scope = scope, .items = items,
	    .depth0 = depth0 };
	run_loop(r, l);
	r->scope = old;
	jleave(r);
}

/* loop(items) in a recursive loop. */
struct jv
jexec_loop(struct jrun *r, struct jloop *outer, struct jv items)
{
	struct jbuf b = { .r = r }, *out = r->out;
	int was_captured = r->is_captured;

	if (!outer->node->flag)
		jfail(r, -EINVAL, "The loop must have the 'recursive' marker to "
		    "be called recursively.");
	if (++r->macro_depth > r->limits->macro_depth)
		jfail(r, -E2BIG, "the template exceeds its limit of %u for "
		    "recursive loops", r->limits->macro_depth);
	r->out = &b;
	r->is_captured = 1;
	start_loop(r, outer->node, outer->scope, items, outer->depth0 + 1);
	r->is_captured = was_captured;
	r->out = out;
	r->macro_depth--;
	return jv_str(jbuf_end(&b), 0);
}

struct jv
jloop_attr(struct jrun *r, struct jloop *l, const struct jstr *name)
{
	static const char *const methods[] = { "cycle", "changed" };
	struct jv v = { .kind = J_METHOD };
	struct jmethod *m;
	size_t i = l->i, n = l->n;
	int64_t number = -1;

	if (jstr_is(name, "first"))
		return jinja_bool(i == 0, JINJA_TEMPLATE);
	if (jstr_is(name, "last"))
		return jinja_bool(i + 1 >= n, JINJA_TEMPLATE);
	if (jstr_is(name, "previtem"))
		return i > 0 ? loop_item(l, i - 1) :
		    jv_undefined(r, "there is no previous item");
	if (jstr_is(name, "nextitem"))
		return i + 1 < n ? loop_item(l, i + 1) :
		    jv_undefined(r, "there is no next item");
	number = jstr_is(name, "index0") ? (int64_t)i :
	    jstr_is(name, "index") ? (int64_t)i + 1 :
	    jstr_is(name, "length") ? (int64_t)n :
	    jstr_is(name, "revindex") ? (int64_t)(n - i) :
	    jstr_is(name, "revindex0") ? (int64_t)(n - i) - 1 :
	    jstr_is(name, "depth0") ? (int64_t)l->depth0 :
	    jstr_is(name, "depth") ? (int64_t)l->depth0 + 1 : INT64_MIN;
	if (number != INT64_MIN)
		return jinja_int(number, JINJA_TEMPLATE);
	for (i = 0; i < NITEMS(methods); i++)
		if (jstr_is(name, methods[i])) {
			m = jzalloc(r, 1, sizeof(*m));
			m->self.kind = J_LOOP;
			m->self.u.p = l;
			m->id = (unsigned)i;
			v.u.p = m;
			return v;
		}
	return jv_undefined(r, "'LoopContext object' has no attribute '%.100s'",
	    name->s);
}

/* --- statements --- */

static enum jflow
exec_if(struct jrun *r, const struct jnode *n)
{
	const struct jnode *b;

	for (b = n->a; b != NULL; b = b->next)
		if (b->a == NULL || jv_true(r, jeval(r, b->a)))
			return jexec(r, b->b);
	return JFLOW_NEXT;
}

/* Apply a chain of filters without a value at its head to v. */
static struct jv
apply_chain(struct jrun *r, const struct jnode *chain, struct jv v)
{
	struct jargs args;

	if (chain == NULL)
		return v;
	jenter(r);
	v = apply_chain(r, chain->a, v);
	jleave(r);
	jat(r, chain);
	if (chain->op == JNO_INDEX)
		jfail(r, -EINVAL, "No filter named '%.100s'.", chain->name->s);
	jeval_args(r, chain->b, &args);
	return jfilter_apply(r, chain->op, v, &args);
}

static struct jv
captured_block(struct jrun *r, const struct jnode *n)
{
	const struct jstr *s = jcapture(r, n->c, jscope_new(r, r->scope));

	return apply_chain(r, n->b, jv_str(s, 0));
}

static struct jv
make_macro(struct jrun *r, const struct jnode *n)
{
	struct jv v = { .kind = J_MACRO };
	struct jmacro *m = jalloc(r, sizeof(*m));

	*m = (struct jmacro){ n, r->scope };
	v.u.p = m;
	return v;
}

/* {% call f(x) %}body{% endcall %}: f gets the body as caller. */
static void
exec_call(struct jrun *r, const struct jnode *n)
{
	struct jv callee = jeval(r, n->a->a);
	struct jargs args, more;
	size_t i;

	jeval_args(r, n->a->b, &args);
	more = args;
	more.name = jzalloc(r, args.nkw + 1, sizeof(*more.name));
	more.kw = jzalloc(r, args.nkw + 1, sizeof(*more.kw));
	for (i = 0; i < args.nkw; i++) {
		more.name[i] = args.name[i];
		more.kw[i] = args.kw[i];
	}
	more.name[i] = r->p->caller;
	more.kw[i] = make_macro(r, n->b);
	more.nkw++;
	jat(r, n);
	print_value(r, jcall(r, callee, &more));
}

static enum jflow
exec_with(struct jrun *r, const struct jnode *n)
{
	struct jscope *old = r->scope, *scope = jscope_new(r, old);
	const struct jnode *c;
	enum jflow flow;
	struct jv v;

	for (c = n->a; c != NULL; c = c->next->next) {
		v = jeval(r, c->next);
		r->scope = scope;
		jset(r, c->name, v);
		r->scope = old;
	}
	r->scope = scope;
	flow = jexec(r, n->c);
	r->scope = old;
	return flow;
}

static enum jflow
exec_one(struct jrun *r, const struct jnode *n)
{
	switch (n->kind) {
	case S_TEXT:
		print_value(r, n->v);
		break;
	case S_PRINT:
		print_value(r, jeval(r, n->a));
		break;
	case S_IF:
		return exec_if(r, n);
	case S_FOR:
		start_loop(r, n, r->scope, jeval(r, n->b), 0);
		break;
	case S_SET:
		jassign(r, n->a, jeval(r, n->b));
		break;
	case S_SETBLOCK:
		jassign(r, n->a, captured_block(r, n));
		break;
	case S_MACRO:
		jset(r, n->name, make_macro(r, n));
		break;
	case S_CALL:
		exec_call(r, n);
		break;
	case S_FILTER:
		print_value(r, captured_block(r, n));
		break;
	case S_WITH:
	case S_SCOPE:
		return exec_with(r, n);
	case S_BREAK:
		return JFLOW_BREAK;
	case S_CONTINUE:
		return JFLOW_CONTINUE;
	default:
		break;
	}
	return JFLOW_NEXT;
}

enum jflow
jexec(struct jrun *r, const struct jnode *n)
{
	enum jflow flow = JFLOW_NEXT;

	jenter(r);
	for (; n != NULL && flow == JFLOW_NEXT; n = n->next) {
		jstep(r, 1);
		jat(r, n);
		flow = exec_one(r, n);
	}
	jleave(r);
	return flow;
}

/* --- rendering --- */

static void
set_variables(struct jrun *r, const struct jinja_data *d)
{
	const struct jvar *v;
	const struct jstr *name;

	for (v = d->vars; v != NULL; v = v->next)
		/* A name that the template does not have needs no variable. */
		if ((name = jintern_find(r->p, v->name, strlen(v->name))) !=
		    NULL)
			jset(r, name, v->v);
}

int
jinja_render(const struct jinja_program *p, struct jinja_data *d,
    const struct tm *now, jinja_sink *sink, void *arg, struct err *reterr)
{
	struct jbuf out = { .n = 0 };
	struct jrun *r;
	int rc;

	if (d->failed != 0)
		return err_set(reterr, ERR_RUN, d->failed, d->failed == -ENOMEM ?
		    "no memory for the variables of the template" :
		    "the variables of the template need more than its limit of "
		    "%zu bytes of memory", d->limits.memory_bytes);
	if ((r = calloc(1, sizeof(*r))) == NULL)
		return err_nomem(reterr, "rendering a template");
	r->err = reterr;
	r->arena = &d->arena;
	r->limits = &d->limits;
	r->p = p;
	r->now = now;
	r->out = &out;
	r->line = r->col = 1;
	out.r = r;
	if (setjmp(r->leave) == 0) {
		jstart_clock(r);
		r->scope = r->root = jscope_new(r, NULL);
		set_variables(r, d);
		jexec(r, p->body);
	}
	rc = r->rc;
	free(r);
	return rc < 0 ? rc : jbuf_send(&out, sink, arg);
}
