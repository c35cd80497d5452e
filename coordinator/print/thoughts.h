/* coordinator/print/thoughts.h - a model's thoughts on stdout, told apart from its
 * answer.
 * Owns: whether the last text printed was thoughts.  Called by run and chat. */
#ifndef COORDINATOR_PRINT_THOUGHTS_H
#define COORDINATOR_PRINT_THOUGHTS_H

#include <stddef.h>
#include <stdint.h>

/* Begins as { 0 }. */
struct thoughts_frame {
	int is_open;
};

/* Print thoughts, with <think> in a line of its own in front of the first, whatever
 * markers the model has.  0, or -errno of the output. */
int thoughts_show(struct thoughts_frame *f, const char *bytes, size_t nbytes);
/* In front of an answer, and at its end: print what closes thoughts that are
 * open. */
int thoughts_leave(struct thoughts_frame *f);

/* Say how many tokens of thoughts were made but not shown; 0: say nothing. */
void thoughts_note(uint32_t ntokens);

#endif
