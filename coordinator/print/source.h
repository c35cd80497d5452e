/* coordinator/print/source.h - a text from a flag, a file or stdin ("-").
 * Called by commands and prompts.  The caller owns the text. */
#ifndef COORDINATOR_PRINT_SOURCE_H
#define COORDINATOR_PRINT_SOURCE_H

#include "config/err.h"

/* A text from a file or stdin must be shorter: beside it, its ids take up to
 * four times as much.  A prompt is shorter than its context, and of a file of
 * prompts one line is encoded at a time.  Beside its text the ids and copies of
 * it must fit into the coordinator's cap (config/own_cap.h), or it is refused
 * before it is read. */
enum { SOURCE_TEXT_BYTES = 8 << 20, SOURCE_PROMPT_BYTES = 32 << 20 };

struct source {
	char *text;		/* malloc'ed, NUL after nbytes */
	size_t nbytes;
};

/* A copy of text if not NULL, else the exact bytes of path.  -EFBIG: it has
 * SOURCE_TEXT_BYTES or more; -E2BIG: it does not fit into the cap. */
int source_read(const char *text, const char *path, struct source *ret,
    struct err *reterr);
/* The same for a text that is refused if it has more than `most` bytes: reading
 * ends somewhere behind them. */
int source_read_most(const char *text, const char *path, size_t most,
    struct source *ret, struct err *reterr);
/* A file of prompts, one in each line. */
int source_read_prompts(const char *path, struct source *ret,
    struct err *reterr);
/* Remove one line end, "\n" or "\r\n", from the end. */
void source_chomp(struct source *s);
/* Append to a text that began as { 0 }. */
int source_append(struct source *s, const char *bytes, size_t nbytes,
    struct err *reterr);
void source_free(struct source *s);

/* Parse "1 2 3" (separated by white space or commas) into ids below limit,
 * malloc'ed. */
int source_ids(const struct source *text, uint32_t limit, uint32_t **ret_ids,
    size_t *ret_n, struct err *reterr);

#endif
