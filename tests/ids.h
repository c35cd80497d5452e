/* tests/ids.h - what a text must become; shared by the tokenizer's tests. */
#ifndef TESTS_IDS_H
#define TESTS_IDS_H

#include "../coordinator/tokenizer.h"

/* text, without a beginning-of-sequence token, is exactly these n ids. */
void check_ids(const struct tokenizer *t, const char *text, int special,
    size_t n, const uint32_t *want);

/* The last two arguments. */
#define IDS(...) \
	NITEMS(((uint32_t[]){ __VA_ARGS__ })), (uint32_t[]){ __VA_ARGS__ }

#endif
