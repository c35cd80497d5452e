/* worker/ascend/shapes.c - see shapes.h. */
#include "shapes.h"

#include <stdio.h>
#include <string.h>

static const struct acl_shape *
find(const struct acl_shape *s, uint32_t n_shapes, uint32_t kind, uint32_t n,
    uint32_t k)
{
	uint32_t i;

	for (i = 0; i < n_shapes; i++)
		if (s[i].kind == kind && s[i].n == n && s[i].k == k)
			return &s[i];
	return NULL;
}

const struct acl_shape *
acl_shapes_find(const struct acl_shapes *s, uint32_t kind, uint32_t n,
    uint32_t k)
{
	return find(s->shape, s->n, kind, n, k);
}

int
acl_shapes_take(struct acl_shapes *s, struct acl_shape *shape)
{
	const struct acl_shape *found = acl_shapes_find(s, shape->kind,
	    shape->n, shape->k);
	uint32_t i;

	if (found == NULL)
		return 0;
	shape->outcome = found->outcome;
	i = (uint32_t)(found - s->shape);
	memmove(&s->shape[i], &s->shape[i + 1], (--s->n - i) *
	    sizeof(*shape));
	s->shape[s->n++] = *shape;
	return 1;
}

void
acl_shapes_add(struct acl_shapes *s, const struct acl_shape *shape)
{
	if (s->n == ACL_MOST_SHAPES)
		memmove(s->shape, s->shape + 1, --s->n * sizeof(*shape));
	s->shape[s->n++] = *shape;
}

static int
are_sound(const struct acl_shape *s, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (s[i].kind >= ACL_SHAPE_KINDS || s[i].n < 1 ||
		    acl_fn_outcome(s[i].outcome) >= ACL_FN_OUTCOMES ||
		    find(s, i, s[i].kind, s[i].n, s[i].k) != NULL)
			return 0;
	return 1;
}

int
acl_shapes_are_sound(const struct acl_shapes *s)
{
	return s->n <= ACL_MOST_SHAPES && are_sound(s->shape, s->n);
}

int
acl_unfit_is_sound(const struct acl_unfit *u)
{
	return u->n <= ACL_MOST_UNFIT && u->kinds < 1 << ACL_SHAPE_KINDS &&
	    are_sound(u->shape, u->n);
}

int
acl_outcome_is_unfit(enum acl_fn_outcome o)
{
	return o == ACL_FN_LATE || o == ACL_FN_WRONG || o == ACL_FN_COMPANY ||
	    o == ACL_FN_ENDS || o == ACL_FN_HANGS;
}

void
acl_unfit_add(struct acl_unfit *u, const struct acl_shape *shape)
{
	if (!acl_outcome_is_unfit(acl_fn_outcome(shape->outcome)))
		return;
	if (u->n == ACL_MOST_UNFIT)
		u->kinds |= (uint8_t)(1u << shape->kind);
	else
		u->shape[u->n++] = *shape;
}

static void
name(uint32_t kind, uint32_t n, uint32_t k, char *ret, size_t len)
{
	if (kind == ACL_SHAPE_NORM)
		snprintf(ret, len, "norms of %u numbers", n);
	else if (kind == ACL_SHAPE_GATE)
		snprintf(ret, len, "SwiGLU of %u numbers", n);
	else if (kind == ACL_SHAPE_SUM)
		snprintf(ret, len, "residual sums of %u numbers", n);
	else
		snprintf(ret, len, "products of %u x %u", n, k);
}

static const char *
are(const struct acl_shape *shape)
{
	return shape->kind == ACL_SHAPE_GATE ? "is" : "are";
}

void
acl_shape_text(const struct acl_shape *shape, char *ret, size_t len)
{
	const enum acl_fn_outcome o = acl_fn_outcome(shape->outcome);
	const unsigned code = shape->outcome & ((1u << ACL_FN_CODE_BITS) - 1);
	char text[64];

	name(shape->kind, shape->n, shape->k, text, sizeof(text));
	if (o == ACL_FN_COMPANY)
		snprintf(ret, len, "a row depends on others in %s", text);
	else if (o == ACL_FN_WRONG)
		snprintf(ret, len, "%s %s wrong", text, are(shape));
	else if (o == ACL_FN_LATE)
		snprintf(ret, len, "%s fail%s on the processor with %u", text,
		    shape->kind == ACL_SHAPE_GATE ? "s" : "", code);
	else if (o == ACL_FN_ENDS || o == ACL_FN_HANGS)
		snprintf(ret, len, "the trial of %s %s", text, o ==
		    ACL_FN_ENDS ? "ends its process" : "never returns");
	else if (o == ACL_FN_RIGHT)
		snprintf(ret, len, "%s %s right", text, are(shape));
	else
		snprintf(ret, len, "%s %s %s", text, are(shape), o ==
		    ACL_FN_UNTRIED ? "not tried" : "refused");
}

int
acl_unfit_allows(const struct acl_unfit *u, uint32_t kind, uint32_t n,
    uint32_t k, char *ret, size_t len)
{
	const struct acl_shape *s = find(u->shape, MIN(u->n,
	    (uint32_t)ACL_MOST_UNFIT), kind, n, k);

	if (s != NULL)
		acl_shape_text(s, ret, len);
	else if (u->kinds >> kind & 1)
		snprintf(ret, len, "%s", kind == ACL_SHAPE_NORM ?
		    "too many norms of the model are wrong" : kind ==
		    ACL_SHAPE_GATE ? "SwiGLU of the model is wrong" :
		    kind == ACL_SHAPE_SUM ?
		    "residual sums of the model are wrong" :
		    "too many products of this format are wrong");
	return s == NULL && !(u->kinds >> kind & 1);
}
