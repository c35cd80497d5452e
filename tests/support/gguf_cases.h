/* tests/support/gguf_cases.h - small GGUF files, and what the reader must say of each.
 * Called by test_gguf, which checks them, and by fuzz_gguf, whose seeds they
 * are. */
#ifndef TESTS_SUPPORT_GGUF_CASES_H
#define TESTS_SUPPORT_GGUF_CASES_H

#include "gguf_writer.h"

struct gguf_case {
	const char *name;
	void (*build)(struct gguf_writer *w);
	const char *refusal;	/* part of the message; NULL = accepted */
};

extern const struct gguf_case gguf_case[];
extern const unsigned gguf_ncases;

/* Write the case to folder/name.gguf; its path, static. */
const char *gguf_case_save(const struct gguf_case *c, const char *folder);

#endif
