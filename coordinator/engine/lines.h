/* coordinator/engine/lines.h - results in the order of their prompts.
 * Owns: the results of --prompts until they are printed; one that is complete
 * waits for those before it.  Called by prompts.c. */
#ifndef COORDINATOR_ENGINE_LINES_H
#define COORDINATOR_ENGINE_LINES_H

#include <jansson.h>
#include <sys/queue.h>

#include "coordinator/print/source.h"

struct line {
	STAILQ_ENTRY(line) next;
	uint32_t index;
	struct source prompt;	/* points into the file */
	struct source text, thoughts;
	json_t *result;		/* the line to print; NULL = not complete */
};

struct lines {
	STAILQ_HEAD(, line) head;	/* in order */
};

void lines_init(struct lines *l);
/* Append a line; NULL = out of memory. */
struct line *lines_add(struct lines *l, uint32_t index,
    const struct source *prompt);
/* Print the results that are complete, in order, up to the first one that is
 * not, and remove their lines.  print() takes over the result. */
typedef int line_print_fn(void *arg, json_t *result, struct err *reterr);
int lines_print(struct lines *l, line_print_fn *print, void *arg,
    struct err *reterr);
/* Free the remaining lines. */
void lines_done(struct lines *l);

#endif
