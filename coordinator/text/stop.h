/* coordinator/text/stop.h - texts that end an answer.
 * Owns: the texts, and per answer the text that may be the beginning of one.
 * Called by engine/decoder.c.
 *
 * The result does not depend on how the answer is cut into pieces: the text
 * that is complete first counts, and of several that end at the same byte the
 * longest. */
#ifndef COORDINATOR_TEXT_STOP_H
#define COORDINATOR_TEXT_STOP_H

#include "config/conf.h"

/* The texts of the user, and one of the chat template. */
enum { STOP_TEXTS = MAX_STOPS + 1 };

struct stops {
	unsigned n;
	struct stop_text {
		const char *s;
		unsigned len;		/* 1 to MAX_STOP_BYTES */
		/* KMP: length of the longest proper prefix that the first
		 * i + 1 bytes end with. */
		uint16_t fail[MAX_STOP_BYTES];
	} text[STOP_TEXTS];
};

struct stop_state {
	uint16_t at[STOP_TEXTS];	/* bytes of each that the text ends
					 * with */
	char held[MAX_STOP_BYTES];	/* [nheld], not shown yet */
	unsigned nheld;
};

/* s outlives st; it has 1 to MAX_STOP_BYTES bytes, beginning with a whole
 * character. */
void stops_add(struct stops *st, const char *s);

/* Append text[n] to the answer.  *ret_n bytes that can be shown go to out,
 * which holds n + MAX_STOP_BYTES.  Returns the number of the text that ends
 * the answer, or -1; then nothing more may be pushed. */
int stops_push(const struct stops *st, struct stop_state *ss,
    const char *text, size_t n, char *out, size_t *ret_n);

#endif
