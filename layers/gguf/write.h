/* layers/gguf/write.h - a GGUF file's header made from another's.
 * Owns: the new header's bytes, and where each tensor goes.  Called by the
 * quantizer and by tests.  Knows the format, no model; writes no file. */
#ifndef LAYERS_GGUF_WRITE_H
#define LAYERS_GGUF_WRITE_H

#include "gguf.h"

/* A number to be put into the metadata, behind the others; a value that the key
 * had is left out. */
struct gguf_set {
	const char *key;
	uint32_t value;
};

/* The tensors of the new file are those of the old one in the same order, each
 * with its type, offset and nbytes there (file 0); behind each, and before
 * the first, zeros up to the alignment. */
struct gguf_out {
	char *header;		/* up to the data section */
	size_t header_bytes;
	struct gguf_tensor *tensor;	/* [ntensors of g] */
	uint64_t ntensors;
	uint64_t file_bytes;
};

/* Lay out g (all its parts as one) with tensor i of type[i], in version 3 and
 * g's alignment.  All metadata are kept but those of the split and of set[].
 * type[i] must have blocks that divide the rows.  0, or -errno with a message
 * that names g's file; ret is to be freed in both cases. */
int gguf_out_make(const struct gguf *g, const uint32_t *type,
    const struct gguf_set *set, unsigned nset, struct gguf_out *ret,
    struct err *reterr);
void gguf_out_free(struct gguf_out *o);

#endif
