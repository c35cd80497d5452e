/* tests/support/gguf_cases.h - small GGUF files with the expected verdict of
 * the reader.
 * Called by unit/gguf.c, which checks them, and by gguf_seeds, which writes
 * them as seeds of the fuzzer. */
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

/* Write the case to folder/name.gguf.  Returns its path, in a static buffer. */
const char *gguf_case_save(const struct gguf_case *c, const char *folder);

#endif
