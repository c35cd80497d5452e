/* layers/gguf/write.h - makes a GGUF header from another file's.
 * Owns: the bytes of the new header and the place of each tensor.  Called by
 * the quantizer and by tests.  Knows the format, not models; writes no file. */
#ifndef LAYERS_GGUF_WRITE_H
#define LAYERS_GGUF_WRITE_H

#include "gguf.h"

/* A number to append to the metadata; it replaces the key's old value. */
struct gguf_set {
	const char *key;
	uint32_t value;
};

/* The new file's tensors have the order of the old one's; type, offset, nbytes
 * and file = 0 are those in the new file.  The writer pads with zeros up to the
 * alignment after the header and after each tensor. */
struct gguf_out {
	char *header;		/* up to the data section */
	size_t header_bytes;
	struct gguf_tensor *tensor;	/* [ntensors of g] */
	uint64_t ntensors;
	uint64_t file_bytes;
};

/* Lay out all parts of g as one file, with tensor i of type[i], in version 3
 * and g's alignment.  All metadata are kept, except the keys of the split and
 * of set[].  The block of type[i] must divide the row length; a tensor of an
 * unknown type must keep it.  On failure,
 * -errno and a message with g's file.  Free ret in both cases. */
int gguf_out_make(const struct gguf *g, const uint32_t *type,
    const struct gguf_set *set, unsigned nset, struct gguf_out *ret,
    struct err *reterr);
void gguf_out_free(struct gguf_out *o);

#endif
