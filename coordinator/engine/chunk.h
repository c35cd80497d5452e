/* coordinator/engine/chunk.h - the size of a prompt's chunks.  Pure arithmetic;
 * called by feed.c. */
#ifndef COORDINATOR_ENGINE_CHUNK_H
#define COORDINATOR_ENGINE_CHUNK_H

#include <stdint.h>

/* Rows of the next chunk of a prompt of n rows with `left` (1 to n) still to
 * send, through nstages stages that work at the same time.  last: the last
 * stage's time over the slowest one's.  Returns 1 to MIN(left, max_rows). */
uint32_t chunk_rows(uint32_t n, uint32_t left, unsigned nstages, double last,
    uint32_t max_rows);

#endif
