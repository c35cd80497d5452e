/* coordinator/engine/lines.h - results in the order of their prompts.
 * Owns: the texts of --prompts from their beginning until they are printed;
 * one that ends early waits for those before it.  Called by run. */
#ifndef COORDINATOR_ENGINE_LINES_H
#define COORDINATOR_ENGINE_LINES_H

#include <jansson.h>
#include <sys/queue.h>

#include "coordinator/print/source.h"

struct line {
	STAILQ_ENTRY(line) next;
	uint32_t index;
	struct source prompt;	/* its bytes are the file's */
	struct source text;
	json_t *result;		/* what is printed; NULL = not known yet */
};

struct lines {
	STAILQ_HEAD(, line) head;	/* in order */
};

void lines_init(struct lines *l);
/* The next line; NULL = out of memory. */
struct line *lines_add(struct lines *l, uint32_t index,
    const struct source *prompt);
/* Give out, in order, each result that none before it holds back; then the
 * line is gone.  print owns the result from then on. */
typedef int line_print_fn(void *arg, json_t *result, struct err *reterr);
int lines_print(struct lines *l, line_print_fn *print, void *arg,
    struct err *reterr);
/* Drop what is left. */
void lines_done(struct lines *l);

#endif
