/* layers/bind.h - a stage's weights: how the extents lie in memory.
 * Owns: the layout (offset and kernel of every extent) and, once an arena is
 * given, the pointers named by meaning.  Called by the plan (bytes only) and
 * by the worker (the same bytes, then real).  Reads no file. */
#ifndef LAYERS_BIND_H
#define LAYERS_BIND_H

#include "config/err.h"
#include "kernels/kernels.h"
#include "arch.h"
#include "extent.h"

enum { WEIGHT_ALIGN = 128 };	/* the widest vector: Hexagon's */

struct weight {
	struct extent ext;
	const struct mat_kernel *kern;	/* NULL for a vector */
	uint64_t offset, nbytes;	/* in the arena, WEIGHT_ALIGNed but
				 * behind an expert that is an extent alone */
	struct mat mat;		/* .data set by weights_place(); the first of
				 * ext.nmats matrices, or of all experts, */
	uint64_t mat_bytes;	/* which lie so far apart */
	const float *vec;	/* (ncols), vectors */
};

struct weights {
	struct weight *w;	/* [n] */
	uint32_t n;
	uint64_t nbytes;	/* of the whole arena */
};

/* Lay out n extents under these kernels.  -ENOTSUP with ERR_MODEL names a
 * tensor whose type has no kernel, and the types that have one. */
int weights_layout(const struct extent *ext, uint32_t n,
    const struct kernels *k, struct weights *ret, struct err *reterr);
void weights_free(struct weights *ws);

/* Point every weight into the arena at base (ws->nbytes). */
void weights_place(struct weights *ws, void *base);

/* Matrix i of those that w is made of. */
static inline struct mat
weight_mat(const struct weight *w, uint32_t i)
{
	struct mat m = w->mat;

	m.data = (const uint8_t *)m.data + i * w->mat_bytes;
	return m;
}

/* Rows at which a reader may cut this weight: its panel's height, or a whole
 * matrix where several do not end on panels. */
uint32_t weight_row_step(const struct weight *w);

/* Put file rows [row0, row0 + nrows) of weight i, as they lie in the file at
 * src, into the arena at base. */
void weights_store(const struct weights *ws, void *base, uint32_t i,
    uint32_t row0, uint32_t nrows, const void *src);

/* NULL when the stage does not hold it.  layer -1 for the model's own. */
const struct weight *weights_find(const struct weights *ws, enum role role,
    int layer);

#endif
