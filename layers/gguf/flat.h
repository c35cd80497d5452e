/* layers/gguf/flat.h - a parsed directory as one block without pointers, and a
 * checked view of such a block.
 * Owns: the block's format.  The process that parses writes the block; another
 * process, which opened the files, gets it in sealed memory and looks at the
 * view.  The block has no path, no identity of a file, and no array's elements.
 *
 * Guarantee: a block may hold anything.  gguf_flat_open() checks every count,
 * length, type, name and offset once against the block and the files, so that
 * what it accepts satisfies gguf.h.  The block must not change after that. */
#ifndef LAYERS_GGUF_FLAT_H
#define LAYERS_GGUF_FLAT_H

#include "gguf.h"

/* Larger headers cannot be handed over; real ones are far below. */
enum {
	GGUF_FLAT_MAX_KV = 65536,
	GGUF_FLAT_MAX_TENSORS = 131072,
	GGUF_FLAT_MAX_BYTES = 32 << 20,
	GGUF_FLAT_ALIGN = 8		/* of the block in memory */
};

/* The size of g's block, a multiple of GGUF_FLAT_ALIGN.  -ENOTSUP with
 * ERR_MODEL if g exceeds a limit; the message names file, number and limit. */
int gguf_flat_bytes(const struct gguf *g, uint64_t *ret, struct err *reterr);
/* Write all of the block. */
void gguf_flat_write(const struct gguf *g, void *block);

/* Open a view of block, which must stay as it is until gguf_close().  `file`
 * [nfiles] are the caller's own open files, in order, with their sizes and
 * identities; on success the view owns them, with data_off and version from the
 * block, and their fd is -1.  The array itself stays the caller's.
 *
 * The view serves gguf_find(), gguf_get_*(), gguf_find_tensor(),
 * gguf_check_unchanged() and gguf_close().  v.a.data of an array is NULL.
 * -EBADMSG with ERR_RUN: "the reader's image: ...". */
int gguf_flat_open(const void *block, uint64_t nbytes, struct gguf_file *file,
    uint32_t nfiles, struct gguf **ret, struct err *reterr);

#endif
