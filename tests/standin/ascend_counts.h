/* tests/standin/ascend_counts.h - functions of the stand-in for libascendcl.so
 * that the library does not have; tests find them by dlsym(). */
#ifndef TESTS_STANDIN_ASCEND_COUNTS_H
#define TESTS_STANDIN_ASCEND_COUNTS_H

#include <stdint.h>

struct ascend_standin_counts {
	/* Mistakes that the libraries would not notice, or not survive: memory
	 * freed while a task needs it, an executor used twice, a context of
	 * another thread, objects left at aclFinalize(), ... */
	unsigned misuses;
	char first_misuse[160];
	/* Not destroyed yet. */
	unsigned blocks;		/* of memory */
	unsigned tensors;		/* and scalars, arrays, lists,
					 * descriptions, data buffers */
	unsigned executors, streams, events, contexts, graphs;
	/* Memory in use: by the program's words, and as the device counts it. */
	uint64_t asked_bytes, device_bytes, peak_bytes;
	uint64_t host_bytes, host_peak_bytes;	/* pinned; 0 in RC mode */
	uint64_t tasks;			/* run by streams */
	uint64_t products;		/* among them */
	uint64_t replays;		/* of captured graphs */
	uint64_t allocations;		/* calls that succeeded */
};

void ascend_standin_counts(struct ascend_standin_counts *ret);

#endif
