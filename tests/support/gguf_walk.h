/* tests/support/gguf_walk.h - what must be true of any file that the reader accepts.
 * Called by test_gguf and fuzz_gguf. */
#ifndef TESTS_SUPPORT_GGUF_WALK_H
#define TESTS_SUPPORT_GGUF_WALK_H

#include "layers/gguf/gguf.h"

/* Read every byte that g holds and check what gguf.h promises of it.  NULL, or
 * the promise that is broken. */
const char *gguf_walk(const struct gguf *g);

/* The same for a refusal of path: code, kind and message. */
const char *gguf_walk_refusal(const char *path, int rc,
    const struct gguf *g, const struct err *e);

#endif
