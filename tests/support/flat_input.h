/* tests/support/flat_input.h - a flat directory with the files that it is about,
 * as one input of a fuzzer.
 * Called by fuzz/flat.c, by gguf_seeds, which writes such inputs, and by
 * unit/gguf_flat.c, which reads those that are kept in corpus/flat. */
#ifndef TESTS_SUPPORT_FLAT_INPUT_H
#define TESTS_SUPPORT_FLAT_INPUT_H

#include "layers/gguf/gguf.h"

/* number of files: u64; size of each: u64; the block (layers/gguf/flat.h). */
enum { FLAT_INPUT_FILES = 3 };		/* at most; a larger number wraps */

/* Open a view of the input and check it, or its refusal.  Returns NULL, or the
 * guarantee that is broken; *ret_rc is what gguf_flat_open() returned. */
const char *flat_input_try(const uint8_t *data, size_t n, int *ret_rc);

/* Write g's directory and the sizes of its files to path. */
void flat_input_save(const struct gguf *g, const char *path);

#endif
