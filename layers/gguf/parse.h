/* layers/gguf/parse.h - the private part of struct gguf.
 * Owns: the memory of parsed metadata and the indexes by name.  Used by this
 * folder's files; everybody else sees gguf.h. */
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
	uint32_t nparts;	/* files that belong to the model */
	int is_view;		/* tensors are in a flat block, not ours */
};

/* Bytes of a number; 0 for strings and arrays. */
extern const uint8_t gguf_type_bytes[GGUF_NTYPES];

/* Parse the header of one open file with all checks.  Only the index of keys is
 * built.  *ret uses the descriptor and the path, which the caller either keeps
 * (nfiles = 0, then gguf_close()) or leaves to it. */
int gguf_parse(const struct gguf_file *file, struct gguf **ret,
    struct err *reterr);

/* lookup.c: sort the keys for gguf_find(), the tensors for gguf_find_tensor().
 * -EEXIST, without a message, if two have the same name; *ret_twice is the later
 * one. */
int gguf_index_keys(struct gguf *g, const struct gguf_kv **ret_twice,
    struct err *reterr);
int gguf_index_tensors(struct gguf *g, const struct gguf_tensor **ret_twice,
    struct err *reterr);

/* check.c: of a directory's entries, whoever wrote them. */
enum { GGUF_WHY_LEN = 128 };
int gguf_is_alignment(uint64_t n);
/* The bytes of text[len] that a name may have, up to the first other one. */
uint64_t gguf_plain_bytes(const char *text, uint64_t len);
/* The bytes of a tensor, from its type and dimensions.  -EBADMSG: why says what
 * is wrong with these. */
int gguf_tensor_bytes(const struct gguf_tensor *t, uint64_t *ret,
    char why[GGUF_WHY_LEN]);

/* Pointers to the tensors that have elements, in the order of their places; the
 * caller frees *ret.  gguf_room() is the distance from sorted[i] to the next one
 * in its file, or to the file's end: a tensor of more bytes overlaps. */
int gguf_sort_by_place(const struct gguf *g, const struct gguf_tensor ***ret,
    uint64_t *ret_n, struct err *reterr);
uint64_t gguf_room(const struct gguf *g,
    const struct gguf_tensor *const *sorted, uint64_t n, uint64_t i);

#endif
