/* tests/support/reference.h - a model's logits in double, straight from its file.
 * Owns: a second writing of every family's formulas, in the order of the
 * papers: no batches, no cache, no blocks, nothing of layers/ but the parser.
 * Called by the tests that hold stages against it. */
#ifndef TESTS_SUPPORT_REFERENCE_H
#define TESTS_SUPPORT_REFERENCE_H

#include "layers/gguf/gguf.h"

/* Logits (n x vocabulary) of tokens at positions 0, 1, ...; the caller frees
 * them.  ctx is what the session was opened for. */
double *reference_logits(const struct gguf *g, const uint32_t *token,
    uint32_t n, uint32_t ctx);

#endif
