/* tests/support/gguf_walk.h - invariants of the GGUF reader, for any file.
 * Called by the tests and the fuzzer of GGUF files. */
#ifndef TESTS_SUPPORT_GGUF_WALK_H
#define TESTS_SUPPORT_GGUF_WALK_H

#include "layers/gguf/gguf.h"

/* Read every byte of g and check the guarantees of gguf.h.  Returns NULL, or
 * the guarantee that is broken. */
const char *gguf_walk(const struct gguf *g);

/* The same for a view of a block (layers/gguf/flat.h). */
const char *gguf_walk_view(const struct gguf *g, const void *block,
    uint64_t nbytes);

/* The same for a refused file: checks error code, kind and message. */
const char *gguf_walk_refusal(const char *path, int rc,
    const struct gguf *g, const struct err *e);

#endif
