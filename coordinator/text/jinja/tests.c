/* coordinator/text/jinja/tests.c - what `is` can ask of a value. */
#include "impl.h"

enum test {
	IS_DEFINED, IS_UNDEFINED, IS_NONE, IS_BOOLEAN, IS_TRUE, IS_FALSE, IS_INTEGER,
	IS_FLOATING, IS_NUMBER, IS_TEXT, IS_MAPPING, IS_SEQUENCE, IS_ITERABLE,
	IS_CALLABLE, IS_ESCAPED, IS_ODD, IS_EVEN, IS_LOWER, IS_UPPER, IS_DIVISIBLE,
	IS_SAME, IS_FILTER, IS_TEST, IS_IN, IS_EQ, IS_NE, IS_LT, IS_LE, IS_GT, IS_GE
};

static const struct { const char *name; enum test test; } tests[] = {
	{ "defined", IS_DEFINED }, { "undefined", IS_UNDEFINED },
	{ "none", IS_NONE }, { "boolean", IS_BOOLEAN }, { "true", IS_TRUE },
	{ "false", IS_FALSE }, { "integer", IS_INTEGER },
	{ "float", IS_FLOATING }, { "number", IS_NUMBER }, { "string", IS_TEXT },
	{ "mapping", IS_MAPPING }, { "sequence", IS_SEQUENCE },
	{ "iterable", IS_ITERABLE }, { "callable", IS_CALLABLE },
	{ "escaped", IS_ESCAPED }, { "odd", IS_ODD }, { "even", IS_EVEN },
	{ "lower", IS_LOWER }, { "upper", IS_UPPER },
	{ "divisibleby", IS_DIVISIBLE }, { "sameas", IS_SAME },
	{ "filter", IS_FILTER }, { "test", IS_TEST }, { "in", IS_IN },
	{ "eq", IS_EQ }, { "equalto", IS_EQ }, { "==", IS_EQ },
	{ "ne", IS_NE }, { "!=", IS_NE },
	{ "lt", IS_LT }, { "lessthan", IS_LT }, { "<", IS_LT },
	{ "le", IS_LE }, { "<=", IS_LE },
	{ "gt", IS_GT }, { "greaterthan", IS_GT }, { ">", IS_GT },
	{ "ge", IS_GE }, { ">=", IS_GE }
};

unsigned
jtest_index(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < NITEMS(tests); i++)
		if (strlen(tests[i].name) == n &&
		    memcmp(tests[i].name, s, n) == 0)
			return (unsigned)i;
	return JNO_INDEX;
}

static int
is_iterable(struct jv v)
{
	return v.kind == J_UNDEFINED || v.kind == J_LOOP ||
	    (v.kind >= J_STRING && v.kind <= J_DICT);
}

static int
is_callable(struct jv v)
{
	return v.kind == J_UNDEFINED || v.kind == J_MACRO || v.kind == J_METHOD ||
	    v.kind == J_FUNCTION || v.kind == J_JOINER || v.kind == J_LOOP;
}

/* str.islower(), str.isupper(): has letters with a case, and none of the other. */
static int
has_case(struct jrun *r, struct jv v, int upper)
{
	const struct jstr *s = jv_to_str(r, v);
	const struct jstr *other = jstr_case(r, s, upper ? UC_LOWER : UC_UPPER);

	return jstr_eq(jstr_case(r, s, upper ? UC_UPPER : UC_LOWER), s) &&
	    !jstr_eq(other, s);
}

/* The tests of one value. */
static int
test_kind(struct jrun *r, enum test test, struct jv v)
{
	switch (test) {
	case IS_DEFINED:
		return v.kind != J_UNDEFINED;
	case IS_UNDEFINED:
		return v.kind == J_UNDEFINED;
	case IS_NONE:
		return v.kind == J_NONE;
	case IS_BOOLEAN:
		return v.kind == J_BOOL;
	case IS_TRUE:
		return v.kind == J_BOOL && v.u.i;
	case IS_FALSE:
		return v.kind == J_BOOL && !v.u.i;
	case IS_INTEGER:
		return v.kind == J_INT;
	case IS_FLOATING:
		return v.kind == J_FLOAT;
	case IS_NUMBER:
		return jv_is_number(v);
	case IS_TEXT:
		return v.kind == J_STRING;
	case IS_MAPPING:
		return v.kind == J_DICT;
	case IS_SEQUENCE:
		return v.kind == J_STRING || v.kind == J_DICT ||
		    jv_is_sequence(v) || v.kind == J_UNDEFINED;
	case IS_ITERABLE:
		return is_iterable(v);
	case IS_CALLABLE:
		return is_callable(v);
	case IS_ESCAPED:
		return v.kind == J_STRING && v.safe;
	case IS_LOWER:
	case IS_UPPER:
		return has_case(r, v, test == IS_UPPER);
	default:
		v = jop_binary(r, OP_MOD, v, jinja_int(2, JINJA_TEMPLATE));
		return jv_eq(r, v, jinja_int(test == IS_ODD, JINJA_TEMPLATE));
	}
}

/* The tests of a value with another. */
static int
test_pair(struct jrun *r, enum test test, struct jv v, struct jv a)
{
	const struct jstr *name;

	switch (test) {
	case IS_DIVISIBLE:
		return !jv_true(r, jop_binary(r, OP_MOD, v, a));
	case IS_SAME:
		return jv_same(v, a);
	case IS_IN:
		return jv_in(r, v, a);
	case IS_EQ:
		return jv_eq(r, v, a);
	case IS_NE:
		return !jv_eq(r, v, a);
	case IS_LT:
		return jv_compare(r, v, a, "<") < 0;
	case IS_LE:
		return jv_compare(r, v, a, "<=") <= 0;
	case IS_GT:
		return jv_compare(r, v, a, ">") == 1;
	case IS_GE:
		return (jv_compare(r, v, a, ">=") & ~1) == 0;
	default:
		name = jv_need_str(r, v, "a name");
		return (test == IS_FILTER ? jfilter_index(name->s, name->n) :
		    jtest_index(name->s, name->n)) != JNO_INDEX;
	}
}

int
jtest_apply(struct jrun *r, unsigned index, struct jv v,
    const struct jargs *args)
{
	enum test test = tests[index].test;
	size_t n = test >= IS_DIVISIBLE && test != IS_FILTER && test != IS_TEST;
	int holds;

	if (args->n + args->nkw != n)
		jfail(r, -EINVAL, "the test %s takes %zu arguments, %zu given",
		    tests[index].name, n, args->n + args->nkw);
	jenter(r);
	holds = test < IS_DIVISIBLE ? test_kind(r, test, v) : test_pair(r, test,
	    v, n == 0 ? v : args->n > 0 ? args->v[0] : args->kw[0]);
	jleave(r);
	return holds;
}
