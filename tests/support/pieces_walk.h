/* tests/support/pieces_walk.h - open any bytes as a vocabulary's block, and use
 * everything that opened.
 * Owns: copies of the bytes.  Called by unit/pieces.c and fuzz/pieces.c.  Does not
 * know the block's format. */
#ifndef TESTS_SUPPORT_PIECES_WALK_H
#define TESTS_SUPPORT_PIECES_WALK_H

#include "coordinator/text/pieces.h"

/* Returns NULL, or the guarantee of pieces.h that is broken. */
const char *pieces_walk(const struct pieces *p, const void *block,
    uint64_t nbytes);

/* Open the bytes in memory of exactly their size, and walk through what opened
 * or check the refusal.  *ret_rc is what pieces_open() returned.  Returns as
 * pieces_walk(). */
const char *pieces_try(const void *data, uint64_t nbytes, int *ret_rc,
    struct err *reterr);

/* The block of the vocabulary at path, malloc'ed; an error ends the program. */
void *pieces_make(const char *path, uint64_t *ret_nbytes);

#endif
