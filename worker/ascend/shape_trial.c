/* worker/ascend/shape_trial.c - see shape_trial.h. */
#include "shape_trial.h"

#include "shm/event.h"
#include "matrix_trial.h"
#include "ops_trial.h"
#include "trial.h"

/* A shape of the model that is not the device's. */
enum { NO_SHAPE = ACL_SHAPE_KINDS };

/* Are results of 16 bits converted for SwiGLU? */
static int
converts(const struct acl_choice *c)
{
	unsigned f;

	for (f = 0; f <= c->chip.groups; f++)
		if (c->form[f].c_type == ACL_FLOAT16 && acl_fn_outcome(
		    c->fn[ACL_FN_TO_FLOAT]) == ACL_FN_RIGHT)
			return 1;
	return 0;
}

static void
list_shape(struct acl_shapes *ret, int is_used, uint32_t kind, uint32_t n,
    uint32_t k)
{
	if (!is_used || !ascend_takes(kind < ASCEND_FORMATS ? n : 1,
	    kind < ASCEND_FORMATS ? k : n) ||
	    acl_shapes_find(ret, kind, n, k) != NULL)
		kind = NO_SHAPE;
	ret->shape[ret->n++] = (struct acl_shape){ .kind = kind, .n = n,
	    .k = k };
}

/* A place for each shape of the model, so that its number, which is noted, depends on
 * nothing else. */
static void
list_shapes(const struct acl_choice *c, const struct device_shapes *want,
    struct acl_shapes *ret)
{
	const struct device_matrix *m = want->matrix;
	enum ascend_format f;
	uint32_t i;

	ret->n = 0;
	for (; m < want->matrix + want->nmatrices; m++) {
		f = ascend_format(c->chip.groups, m->type, m->k);
		list_shape(ret, c->form[f].way != ACL_WAY_NONE, f, m->n, m->k);
	}
	for (i = 0; i < want->nnorms; i++)
		list_shape(ret, c->chip.fns & ASCEND_FN_NORMS, ACL_SHAPE_NORM,
		    want->norm[i], 0);
	for (i = 0; i < want->ngates; i++)
		list_shape(ret, c->chip.fns & ASCEND_FN_SWIGLU,
		    ACL_SHAPE_GATE, want->gate[i], 0);
	/* The residual is as wide as the norms of it. */
	for (i = 0; i < want->nnorms; i++)
		list_shape(ret, c->chip.fns & ASCEND_FN_ADDS, ACL_SHAPE_SUM,
		    want->norm[i], 0);
}

/* Fill ret with the operators of a residual sum; returns their number. */
static unsigned
sum_fns(const struct acl_choice *c, enum acl_fn ret[5])
{
	unsigned n = 0;

	ret[n++] = ACL_FN_SCALE_ROWS;
	ret[n++] = ACL_FN_SCALE;
	ret[n++] = acl_fn_outcome(c->fn[ACL_FN_ADD]) == ACL_FN_RIGHT ?
	    ACL_FN_ADD : ACL_FN_ADD_TO;
	if (c->chip.fns & ASCEND_FN_ADD_NORMS)
		ret[n++] = ACL_FN_ADD_NORM;
	if (converts(c))
		ret[n++] = ACL_FN_TO_FLOAT;
	return n;
}

/* 0 or -EAGAIN. */
static int
try_rows(struct acl_matrix_trial *t, uint32_t kind, uint32_t cols, float eps,
    uint32_t *ret)
{
	static const enum acl_fn norm[] = { ACL_FN_NORM, ACL_FN_TO_HALF };
	static const enum acl_fn gate[] = { ACL_FN_SCALE, ACL_FN_SILU,
	    ACL_FN_MUL, ACL_FN_TO_FLOAT };
	const struct acl_choice *c = t->p.choice;
	const struct acl_fn_rows rows = { cols, c->chip.cut_k ?
	    ASCEND_SEGMENT : 0, eps, c->chip.workspace_bytes };
	enum acl_fn sum[5];

	if (kind == ACL_SHAPE_SUM)
		return acl_try_fns_at(t->p.s, t->notes, sum, sum_fns(c, sum),
		    &rows, ret);
	return kind == ACL_SHAPE_NORM ? acl_try_fns_at(t->p.s, t->notes, norm,
	    NITEMS(norm), &rows, ret) : acl_try_fns_at(t->p.s, t->notes, gate,
	    NITEMS(gate) - !converts(c), &rows, ret);
}

/* Try a shape, unless it ended an earlier process, or no time is left.  0 or
 * -EAGAIN. */
static int
try_shape(struct acl_matrix_trial *t, struct acl_choice *c,
    const struct acl_candidates *ways, struct acl_shape *s, float eps,
    unsigned note)
{
	const struct acl_matrix m = { .n = s->n, .k = s->k,
	    .format = (enum ascend_format)s->kind };
	const unsigned shortages = acl_shortages();
	struct acl_notes *notes = t->notes;
	int rc = 0;

	if (notes->outcome[note] != ACL_FINE) {
		s->outcome = acl_fn_pack(notes->outcome[note] == ACL_HANGS ?
		    ACL_FN_HANGS : ACL_FN_ENDS, 0);
	} else if (!notes->is_late && event_now_ns() <= t->end_ns) {
		notes->steps++;
		notes->trying = 1 + note;
		rc = s->kind >= ASCEND_FORMATS ? try_rows(t, s->kind, s->n,
		    eps, &s->outcome) : acl_matrix_try(t, c, ways, &m,
		    &s->outcome);
		if (rc == 0)
			notes->trying = 0;
		/* It is tried again where there is memory. */
		if (acl_shortages() > shortages && acl_fn_outcome(
		    s->outcome) != ACL_FN_RIGHT)
			s->outcome = acl_fn_pack(ACL_FN_UNTRIED, 0);
	}
	return rc;
}

/* Drop the places of shapes that are not the device's. */
static void
drop_places(struct acl_shapes *s)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->n; i++)
		if (s->shape[i].kind != NO_SHAPE)
			s->shape[n++] = s->shape[i];
	s->n = n;
}

/* Is there a matrix of 16-bit floats in list that is not known? */
static int
has_new_halves(const struct acl_shapes *list, const struct acl_shapes *known)
{
	uint32_t i;

	for (i = 0; i < list->n; i++)
		if (list->shape[i].kind == ASCEND_HALF &&
		    acl_shapes_find(known, ASCEND_HALF, list->shape[i].n,
		    list->shape[i].k) == NULL)
			return 1;
	return 0;
}

/* Ways of shapes that nobody remembers make room. */
static void
drop_ways(struct acl_choice *c, const struct acl_shapes *known)
{
	uint32_t i = 0;

	while (i < c->nshapes)
		if (acl_shapes_find(known, ASCEND_HALF, c->shape[i].n,
		    c->shape[i].k) == NULL)
			acl_matrix_remove_way(c, c->shape[i].n, c->shape[i].k);
		else
			i++;
}

int
acl_try_model(struct acl_session *s, struct acl_notes *notes,
    struct acl_choice *c, const struct device_shapes *want, uint64_t end_ns,
    struct acl_shapes *known, struct acl_shapes *ret)
{
	struct acl_candidates ways = { 0 };
	struct acl_matrix_trial t = { .notes = notes, .p = { .s = s, .choice = c,
	    .steps = &notes->steps, .compile_by_ns = end_ns },
	    .end_ns = end_ns };
	struct acl_shape *shape;
	uint32_t i;
	int rc = 0;

	list_shapes(c, want, ret);
	if (has_new_halves(ret, known) && notes->outcome[ACL_NOTE_OTHERS] ==
	    ACL_FINE && !notes->is_late) {
		drop_ways(c, known);
		rc = acl_other_ways(s, notes, c, &ways);
	}
	/* First those that are known, so that new ones do not replace them. */
	for (i = 0; i < ret->n; i++)
		acl_shapes_take(known, &ret->shape[i]);
	for (i = 0; i < ret->n && rc == 0; i++) {
		shape = &ret->shape[i];
		if (shape->kind == NO_SHAPE || acl_shapes_find(known,
		    shape->kind, shape->n, shape->k) != NULL)
			continue;
		rc = try_shape(&t, c, &ways, shape, want->eps,
		    ACL_NOTE_SHAPE + i);
		if (acl_fn_outcome(shape->outcome) != ACL_FN_UNTRIED)
			acl_shapes_add(known, shape);
	}
	acl_matrix_trial_end(&t);
	drop_places(ret);
	return rc;
}
