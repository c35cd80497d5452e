/* worker/ascend/shapes.h - shapes of a model that an Ascend processor was tried
 * with, and their outcomes.
 * Owns: lists of bounded length.  Called by the probe, which fills them, and by the
 * device, which must not use some of them. */
#ifndef WORKER_ASCEND_SHAPES_H
#define WORKER_ASCEND_SHAPES_H

#include "kernels/ascend/work.h"
#include "shm/layout.h"
#include "ops.h"

/* A product of a format (enum ascend_format), or operators on rows. */
enum { ACL_SHAPE_NORM = ASCEND_FORMATS, ACL_SHAPE_GATE, ACL_SHAPE_SUM,
	ACL_SHAPE_KINDS };

struct acl_shape {
	uint32_t kind;
	uint32_t n, k;			/* NORM, GATE, SUM: columns, 0 */
	uint32_t outcome;		/* packed (ops.h) */
};

/* In a verdict: all that were tried, those that were used last at the end. */
enum { ACL_MOST_SHAPES = DEVICE_MATRICES + 2 * DEVICE_NORMS +
	DEVICE_GATES };
struct acl_shapes {
	uint32_t n;
	struct acl_shape shape[ACL_MOST_SHAPES];
};

/* Shapes of the sessions' model that must not run, though the library takes them. */
enum { ACL_MOST_UNFIT = 8 };
struct acl_unfit {
	uint8_t n;
	uint8_t kinds;			/* a bit for each kind of which none
					 * runs: there are too many */
	uint16_t tried;			/* shapes of the model that were tried,
					 * also by an earlier probe */
	struct acl_shape shape[ACL_MOST_UNFIT];
};

/* NULL = it is not in the list. */
const struct acl_shape *acl_shapes_find(const struct acl_shapes *s,
    uint32_t kind, uint32_t n, uint32_t k);

/* Take the outcome of this shape, and note that it was used, if it is in the list.
 * Returns whether it is. */
int acl_shapes_take(struct acl_shapes *s, struct acl_shape *shape);

/* Append a shape that is not in the list; the first one makes room. */
void acl_shapes_add(struct acl_shapes *s, const struct acl_shape *shape);

/* Are numbers and kinds in bounds, and is no shape there twice? */
int acl_shapes_are_sound(const struct acl_shapes *s);
int acl_unfit_is_sound(const struct acl_unfit *u);

/* Must a shape with this outcome not run, though the library takes it? */
int acl_outcome_is_unfit(enum acl_fn_outcome o);

/* Add a shape to those that must not run, if it is one. */
void acl_unfit_add(struct acl_unfit *u, const struct acl_shape *shape);

/* May this shape run?  Otherwise 0, and ret says why. */
int acl_unfit_allows(const struct acl_unfit *u, uint32_t kind, uint32_t n,
    uint32_t k, char *ret, size_t len);

/* "a row depends on others in products of 4096 x 14336" */
void acl_shape_text(const struct acl_shape *shape, char *ret, size_t len);

#endif
