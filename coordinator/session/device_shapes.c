/* coordinator/session/device_shapes.c - see device_shapes.h. */
#include "device_shapes.h"

#include <string.h>

#include "layers/bind.h"

static void
add_matrix(struct device_shapes *s, const struct extent *e)
{
	struct device_matrix m = { .n = e->nrows, .k = e->ncols,
	    .type = e->type };
	uint32_t i;

	for (i = 0; i < s->nmatrices; i++)
		if (memcmp(&s->matrix[i], &m, sizeof(m)) == 0)
			return;
	if (s->nmatrices < DEVICE_MATRICES)
		s->matrix[s->nmatrices++] = m;
}

static void
add_cols(uint32_t *cols, uint32_t *n, uint32_t most, uint32_t value)
{
	uint32_t i;

	for (i = 0; i < *n; i++)
		if (cols[i] == value)
			return;
	if (*n < most)
		cols[(*n)++] = value;
}

void
device_shapes_of(const struct model *m, struct device_shapes *ret)
{
	const struct extent *e;

	*ret = (struct device_shapes){ .eps = m->hp.rms_eps };
	for (e = m->ext; e < m->ext + m->next; e++) {
		if (role_info(e->role)->use == USE_MATRIX &&
		    !weight_is_for_host(e))
			add_matrix(ret, e);
		if (e->role == ROLE_ATTN_NORM || e->role == ROLE_FFN_NORM ||
		    e->role == ROLE_OUTPUT_NORM)
			add_cols(ret->norm, &ret->nnorms, DEVICE_NORMS,
			    e->ncols);
		if (e->role == ROLE_FFN_UP)
			add_cols(ret->gate, &ret->ngates, DEVICE_GATES,
			    e->nrows);
	}
}
