/* layers/bind.h - layout of a stage's weights in memory.
 * Owns: offset and kernel of every extent and, once there is an arena, the
 * pointers, found by role and layer.  Called by the plan for the sizes and by
 * the worker for the real arena.  Reads no file. */
#ifndef LAYERS_BIND_H
#define LAYERS_BIND_H

#include "config/err.h"
#include "kernels/kernels.h"
#include "arch.h"
#include "extent.h"

enum { WEIGHT_ALIGN = 128 };	/* widest vector: Hexagon */

struct weight {
	struct extent ext;
	const struct mat_kernel *kern;	/* NULL for a vector */
	uint64_t offset, nbytes;	/* in the arena; aligned to WEIGHT_ALIGN
				 * unless it follows an expert with an extent
				 * of its own */
	struct mat mat;		/* the first of ext.nmats matrices, or of all
				 * experts; .data set by weights_place() */
	uint64_t mat_bytes;	/* distance between these matrices */
	const float *vec;	/* (ncols), vectors */
};

struct weights {
	struct weight *w;	/* [n] */
	uint32_t n;
	uint64_t nbytes;	/* size of the arena */
};

/* Lay out n extents for these kernels.  -ENOTSUP with ERR_MODEL: the message
 * names a tensor whose type has no kernel, and the supported types. */
int weights_layout(const struct extent *ext, uint32_t n,
    const struct kernels *k, struct weights *ret, struct err *reterr);
void weights_free(struct weights *ws);

/* Point every weight into the arena at base (ws->nbytes). */
void weights_place(struct weights *ws, void *base);

/* Matrix i of a stack; there need be no arena yet. */
static inline struct mat
weight_mat(const struct weight *w, uint32_t i)
{
	struct mat m = w->mat;

	m.data = (const void *)((uintptr_t)m.data + i * w->mat_bytes);
	return m;
}

/* 1 if a weight keeps the format of the host's kernels, so that no device with a
 * layout of its own multiplies it: experts and their router, whose choice may
 * hinge on the last digits of near scores, and what is never multiplied. */
int weight_is_for_host(const struct extent *e);

/* Row granularity at which weights_store() can be called: a panel, or a whole
 * matrix if the matrices of a stack do not end on panels. */
uint32_t weight_row_step(const struct weight *w);

/* Pack rows [row0, row0 + nrows) of weight i, in the file's format at src, into
 * the arena at base. */
void weights_store(const struct weights *ws, void *base, uint32_t i,
    uint32_t row0, uint32_t nrows, const void *src);

/* NULL if the stage does not hold it.  layer = -1 for weights of no layer. */
const struct weight *weights_find(const struct weights *ws, enum role role,
    int layer);

#endif
