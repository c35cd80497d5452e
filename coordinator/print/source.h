/* coordinator/print/source.h - where a prompt or text comes from: the bytes of a
 * flag, a file, or stdin ("-"). */
#ifndef COORDINATOR_PRINT_SOURCE_H
#define COORDINATOR_PRINT_SOURCE_H

#include "config/err.h"

struct source {
	char *text;		/* malloc'ed, NUL behind nbytes */
	size_t nbytes;
};

/* text when given, else the exact bytes of path. */
int source_read(const char *text, const char *path, struct source *ret,
    struct err *reterr);
/* Add to a text that began empty, { 0 }. */
int source_append(struct source *s, const char *bytes, size_t nbytes,
    struct err *reterr);
void source_free(struct source *s);

/* "1 2 3" (spaces, commas or line ends between): ids below limit. */
int source_ids(const struct source *text, uint32_t limit, uint32_t **ret_ids,
    size_t *ret_n, struct err *reterr);

#endif
