/* tests/support/reference.h - computes the logits of a model file in double.
 * A second implementation of every family's formulas, in the order of the
 * papers: no batches, no cache, no blocks; uses only the parser of layers/.
 * Called by tests that compare stages with it. */
#ifndef TESTS_SUPPORT_REFERENCE_H
#define TESTS_SUPPORT_REFERENCE_H

#include "layers/gguf/gguf.h"

/* Logits (n x vocabulary) of tokens at positions 0 to n - 1; the caller frees
 * them.  ctx is the context length of the session. */
double *reference_logits(const struct gguf *g, const uint32_t *token,
    uint32_t n, uint32_t ctx);

#endif
