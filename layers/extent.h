/* layers/extent.h - one contiguous piece of the model file and what it means.
 * Shared by plan, loader and binder; sent over the channel as it is. */
#ifndef LAYERS_EXTENT_H
#define LAYERS_EXTENT_H

#include "kernels/types/quant.h"

enum { EXTENT_NAME = 72 };

struct extent {
	char name[EXTENT_NAME];	/* tensor name for messages, NUL-terminated */
	uint64_t offset;	/* absolute, in file `file` */
	uint64_t nbytes;	/* == nrows * row bytes of (type, ncols) */
	uint32_t file;		/* index of the split part */
	uint32_t role;		/* enum role (arch.h) */
	int32_t layer;		/* -1 = of no layer */
	uint32_t type;		/* enum quant_type */
	uint32_t ncols;		/* k: row length */
	uint32_t nrows;		/* n: product of the other dims */
	uint32_t nmats;		/* stacked matrices (experts), each of nrows /
				 * nmats rows; 1 for other tensors and where
				 * each expert has an extent of its own */
	uint32_t rows_only;	/* 1 = single rows are read, and no product
				 * takes it: an embedding with a head apart */
};
_Static_assert(sizeof(struct extent) == 120, "extent ABI");

#endif
