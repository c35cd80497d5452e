/* tests/fuzz/flat.c - fuzzer of gguf_flat_open(): any block must be refused
 * cleanly, or opened as a consistent directory that writes the same block.
 *
 * Input: tests/support/flat_input.h.  A libFuzzer target (fuzz/flat.dict;
 * gguf_seeds writes its seeds); with fuzz/main.c it replays files. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/flat_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *broken;
	int rc;

	if ((broken = flat_input_try(data, n, &rc)) != NULL) {
		fprintf(stderr, "fuzz_flat: broken: %s (rc %d)\n", broken,
		    rc);
		abort();
	}
	return 0;
}
