/* layers/gguf/parse.h - the private part of struct gguf.
 * Owns: the memory of parsed metadata and the indexes by name.  Used by
 * parse.c, open.c, lookup.c and write.c; everybody else sees gguf.h. */
#ifndef LAYERS_GGUF_PARSE_H
#define LAYERS_GGUF_PARSE_H

#include "gguf.h"

/* Strings and arrays of the metadata; freed all at once. */
struct gguf_chunk {
	struct gguf_chunk *next;
	uint64_t used_bytes, nbytes;
	_Alignas(16) char data[];
};

struct gguf_priv {
	struct gguf_chunk *pool;
	uint64_t *declared;	/* [ntensors]: header offset, for messages */
	const struct gguf_kv **by_key;		/* [nkv], sorted */
	const struct gguf_tensor **by_name;	/* [ntensors], sorted */
};

/* Bytes of a number; 0 for strings and arrays. */
extern const uint8_t gguf_type_bytes[GGUF_NTYPES];

/* Open one file and parse its header with all checks.  Only the index of keys
 * is built.  *ret is NULL on failure. */
int gguf_parse_file(const char *path, struct gguf **ret, struct err *reterr);

/* lookup.c: sort the keys for gguf_find(), the tensors for gguf_find_tensor();
 * duplicates are an error. */
int gguf_index_keys(struct gguf *g, struct err *reterr);
int gguf_index_tensors(struct gguf *g, struct err *reterr);

#endif
