/* coordinator/engine/chunk.h - how many rows of a prompt travel together. */
#ifndef COORDINATOR_ENGINE_CHUNK_H
#define COORDINATOR_ENGINE_CHUNK_H

#include <stdint.h>

/* Rows of the next chunk of n rows, of which `left` (1 to n) are yet to be sent
 * through nstages stages that work side by side, the last of which takes `last`
 * times as long as the slowest; 1 to MIN(left, most). */
uint32_t chunk_rows(uint32_t n, uint32_t left, unsigned nstages, double last,
    uint32_t most);

#endif
