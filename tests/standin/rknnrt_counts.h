/* tests/standin/rknnrt_counts.h - functions of the stand-in for librknnrt.so that
 * the library does not have; tests find them by dlsym(). */
#ifndef TESTS_STANDIN_RKNNRT_COUNTS_H
#define TESTS_STANDIN_RKNNRT_COUNTS_H

#include <stdint.h>

struct rknn_standin_counts {
	unsigned contexts, mems;	/* not destroyed yet */
	/* Mistakes that the library would not notice, or not survive: a context or
	 * memory used after its end, two runs of one context at once, memory of
	 * another domain, a sync without effect, ... */
	unsigned misuses;
	char first_misuse[160];
	uint64_t creates, runs, syncs, binds;	/* that succeeded */
	uint64_t core_runs[3];		/* by core */
	uint64_t switches;		/* of the attached domain */
	uint64_t domain_bytes[16];	/* in use, internal buffers included */
	uint64_t modelled_ns;		/* of all runs, by the time model */
};

void rknn_standin_counts(struct rknn_standin_counts *ret);

#endif
