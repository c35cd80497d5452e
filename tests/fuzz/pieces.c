/* tests/fuzz/pieces.c - fuzzer of pieces_open(): any block must be refused cleanly,
 * or opened as a vocabulary whose every lookup stays within it.
 *
 * Input: a block.  A libFuzzer target (fuzz/pieces.dict; tests/tools/pieces_seeds.c
 * writes its seeds); with fuzz/main.c it replays files. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/pieces_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *broken;
	int rc;

	if ((broken = pieces_try(data, n, &rc, NULL)) != NULL) {
		fprintf(stderr, "fuzz_pieces: broken: %s (rc %d)\n", broken,
		    rc);
		abort();
	}
	return 0;
}
