/* coordinator/text/jinja/call.c - calls: macros, the functions that every template
 * has, methods. */
#include "impl.h"

static const char *const function_names[JF_NFUNCTIONS] = {
	[JF_RANGE] = "range", [JF_DICT] = "dict", [JF_NAMESPACE] = "namespace",
	[JF_CYCLER] = "cycler", [JF_JOINER] = "joiner",
	[JF_RAISE] = "raise_exception", [JF_STRFTIME] = "strftime_now"
};

int
jfunction_find(const struct jstr *name)
{
	int i;

	for (i = 0; i < JF_NFUNCTIONS; i++)
		if (jstr_is(name, function_names[i]))
			return i;
	return -1;
}

static struct jv
call_range(struct jrun *r, const struct jargs *a)
{
	struct jv v = { .kind = J_RANGE };
	struct jrange *g = jzalloc(r, 1, sizeof(*g));
	int64_t from = 0, to, step = 1;
	uint64_t span;

	jargs_check(r, a, "range", 1, 3, "");
	to = jv_int(r, a->v[a->n > 1], "an argument of range()");
	if (a->n > 1)
		from = jv_int(r, a->v[0], "an argument of range()");
	if (a->n > 2)
		step = jv_int(r, a->v[2], "an argument of range()");
	if (step == 0)
		jfail(r, -EINVAL, "range() arg 3 must not be zero");
	span = step > 0 ? (uint64_t)to - (uint64_t)from :
	    (uint64_t)from - (uint64_t)to;
	if ((step > 0 && from < to) || (step < 0 && from > to))
		span = (span - 1) / (step > 0 ? (uint64_t)step :
		    0 - (uint64_t)step) + 1;
	else
		span = 0;
	if (span > r->limits->range)
		jfail(r, -E2BIG, "Range too big: the template exceeds its limit "
		    "of %u for a range", r->limits->range);
	*g = (struct jrange){ from, step, span };
	v.u.p = g;
	return v;
}

static void
put_pairs(struct jrun *r, struct jdict *d, struct jv from)
{
	struct jiter it;
	struct jv pair;
	size_t i;

	if (from.kind == J_DICT) {
		for (i = 0; i < jv_d(from)->n; i++)
			jdict_put(r, d, jv_d(from)->v[i].key,
			    jv_d(from)->v[i].value);
		return;
	}
	jiter_open(r, &it, from);
	while (jiter_next(r, &it, &pair)) {
		pair = jv_to_list(r, pair);
		if (jv_l(pair)->n != 2)
			jfail(r, -EINVAL, "a dict is made of pairs");
		jdict_put(r, d, jv_l(pair)->v[0], jv_l(pair)->v[1]);
	}
}

static struct jv
call_dict(struct jrun *r, const struct jargs *a, enum jkind kind)
{
	struct jv v = jv_dict(r, kind);
	size_t i;

	if (a->n > 1)
		jfail(r, -EINVAL, "a dict takes at most one argument, %zu given",
		    a->n);
	if (a->n == 1)
		put_pairs(r, jv_d(v), a->v[0]);
	for (i = 0; i < a->nkw; i++)
		jdict_put(r, jv_d(v), jv_str(a->name[i], 0), a->kw[i]);
	return v;
}

static struct jv
call_cycler(struct jrun *r, const struct jargs *a, enum jkind kind)
{
	struct jv v = jv_list(r, kind), sep;
	size_t i;

	if (kind == J_JOINER)
		jlist_add(r, jv_l(v), jarg(a, 0, "sep", &sep) ? sep :
		    jv_cstr(r, ", "));
	else
		for (i = 0; i < a->n; i++)
			jlist_add(r, jv_l(v), a->v[i]);
	if (jv_l(v)->n == 0)
		jfail(r, -EINVAL, "at least one item has to be provided");
	return v;
}

static struct jv
call_raise(struct jrun *r, const struct jargs *a)
{
	const struct jstr *s;
	struct jv v;

	jargs_check(r, a, "raise_exception", 1, 1, "message,");
	jarg(a, 0, "message", &v);
	s = jv_to_str(r, v);
	jfail(r, -ECANCELED, "%.*s", (int)MIN(s->n, (size_t)1024), s->s);
}

/* Copy the conversion at s, whose first byte is '%', to *to, and return its end.
 * Python's datetime.now() has no zone: %z and %Z are empty.  So is %s here: it and
 * %Z read the time zone's file, which ends a confined process. */
static const char *
copy_conversion(const char *s, char **to)
{
	const char *end = s + 1 + strspn(s + 1, "_-0^#+:123456789");

	end += strspn(end, "EO");
	end += *end != '\0';
	if (strchr("zZs", end[-1]) == NULL)
		*to = mempcpy(*to, s, (size_t)(end - s));
	return end;
}

static struct jv
call_strftime(struct jrun *r, const struct jargs *a)
{
	const struct jstr *s;
	struct jv v;
	char given[256], fmt[256], out[1024], *to = fmt;
	const char *p = given;

	jargs_check(r, a, "strftime_now", 1, 1, "format,");
	jarg(a, 0, "format", &v);
	s = jv_need_str(r, v, "the format of strftime_now()");
	if (s->n >= sizeof(given) || memchr(s->s, '\0', s->n) != NULL)
		jfail(r, -EINVAL, "the format of strftime_now() is too long");
	memcpy(given, s->s, s->n);
	given[s->n] = '\0';
	while (*p != '\0')
		if (*p == '%')
			p = copy_conversion(p, &to);
		else
			*to++ = *p++;
	*to = '\0';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	out[strftime(out, sizeof(out), fmt, r->now)] = '\0';
#pragma GCC diagnostic pop
	return jv_text(r, out, strlen(out), jstr_mark(s, 0));
}

static struct jv
call_function(struct jrun *r, unsigned f, const struct jargs *a)
{
	switch (f) {
	case JF_RANGE:
		return call_range(r, a);
	case JF_DICT:
		return call_dict(r, a, J_DICT);
	case JF_NAMESPACE:
		return call_dict(r, a, J_NAMESPACE);
	case JF_CYCLER:
		return call_cycler(r, a, J_CYCLER);
	case JF_JOINER:
		return call_cycler(r, a, J_JOINER);
	case JF_RAISE:
		return call_raise(r, a);
	default:
		return call_strftime(r, a);
	}
}

/* --- macros --- */

static int
is_param(const struct jmacro *m, const struct jstr *name)
{
	const struct jnode *p;

	for (p = m->node->a; p != NULL; p = p->next)
		if (p->name == name)
			return 1;
	return 0;
}

static void
bind_params(struct jrun *r, const struct jmacro *m, const struct jargs *a)
{
	const struct jnode *p;
	size_t i = 0, k;
	struct jv v;

	for (p = m->node->a; p != NULL; p = p->next, i++) {
		for (k = 0; k < a->nkw && a->name[k] != p->name; k++)
			;
		if (i < a->n) {
			if (k < a->nkw)
				jfail(r, -EINVAL, "macro '%.100s' got multiple "
				    "values for argument '%.100s'",
				    m->node->name->s, p->name->s);
			v = a->v[i];
		} else if (k < a->nkw)
			v = a->kw[k];
		else if (p->a != NULL)
			v = jeval(r, p->a);
		else
			v = jv_undefined(r, "parameter '%.100s' was not "
			    "provided", p->name->s);
		jset(r, p->name, v);
	}
}

/* Positional arguments beyond the parameters. */
static void
bind_varargs(struct jrun *r, const struct jmacro *m, const struct jargs *a)
{
	struct jv list = jv_list(r, J_TUPLE);
	const struct jnode *p;
	size_t n = 0, i;

	for (p = m->node->a; p != NULL; p = p->next)
		n++;
	if (a->n > n && !(m->node->flag & JM_VARARGS))
		jfail(r, -EINVAL, "macro '%.100s' takes not more than %zu "
		    "argument(s)", m->node->name->s, n);
	for (i = n; i < a->n; i++)
		jlist_add(r, jv_l(list), a->v[i]);
	if (m->node->flag & JM_VARARGS)
		jset(r, r->p->varargs, list);
}

/* Named arguments that are no parameters. */
static void
bind_kwargs(struct jrun *r, const struct jmacro *m, const struct jargs *a)
{
	struct jv dict = jv_dict(r, J_DICT), caller = { .kind = J_UNDEFINED };
	size_t k;

	for (k = 0; k < a->nkw; k++) {
		if (is_param(m, a->name[k]))
			continue;
		if (a->name[k] == r->p->caller &&
		    (m->node->flag & JM_CALLER))
			caller = a->kw[k];
		else if (m->node->flag & JM_KWARGS)
			jdict_put(r, jv_d(dict), jv_str(a->name[k], 0),
			    a->kw[k]);
		else
			jfail(r, -EINVAL, "macro '%.100s' takes no keyword "
			    "argument '%.*s'", m->node->name->s,
			    (int)MIN(a->name[k]->n, (size_t)100),
			    a->name[k]->s);
	}
	if (m->node->flag & JM_KWARGS)
		jset(r, r->p->kwargs, dict);
	if ((m->node->flag & JM_CALLER) && !is_param(m, r->p->caller))
		jset(r, r->p->caller, caller.kind != J_UNDEFINED ? caller :
		    jv_undefined(r, "No caller defined"));
}

struct jv
jmacro_call(struct jrun *r, struct jmacro *m, const struct jargs *args)
{
	struct jscope *scope = jscope_new(r, m->scope), *old = r->scope;
	const struct jstr *s;

	if (++r->macro_depth > r->limits->macro_depth)
		jfail(r, -E2BIG, "the template exceeds its limit of %u for macros "
		    "within macros", r->limits->macro_depth);
	r->scope = scope;
	bind_varargs(r, m, args);
	bind_kwargs(r, m, args);
	bind_params(r, m, args);
	s = jcapture(r, m->node->c, scope);
	r->scope = old;
	r->macro_depth--;
	return jv_str(s, 0);
}

static struct jv
call_joiner(struct jrun *r, struct jlist *l)
{
	return l->at++ == 0 ? jv_cstr(r, "") : l->v[0];
}

struct jv
jcall(struct jrun *r, struct jv callee, const struct jargs *args)
{
	jv_need(r, callee);
	switch (callee.kind) {
	case J_MACRO:
		return jmacro_call(r, callee.u.p, args);
	case J_METHOD:
		return jmethod_call(r, callee.u.p, args);
	case J_FUNCTION:
		return call_function(r, callee.extra, args);
	case J_JOINER:
		return call_joiner(r, jv_l(callee));
	case J_LOOP:
		jargs_check(r, args, "loop", 1, 1, "");
		return jexec_loop(r, callee.u.p, args->v[0]);
	default:
		jfail(r, -EINVAL, "'%s' object is not callable",
		    jv_type(callee));
	}
}
