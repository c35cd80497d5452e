/* coordinator/print/wrap.h - text wrapped at words to fit a terminal.
 * Owns: the column of the line in progress.  Called by what prints prose of any
 * length in lines. */
#ifndef COORDINATOR_PRINT_WRAP_H
#define COORDINATOR_PRINT_WRAP_H

#include <stdio.h>

#include "config/base.h"

enum { WRAP_WIDTH = 79 };

struct wrap {
	FILE *fp;
	size_t column;		/* of the next character */
	size_t indent;		/* of lines after the first */
};

/* Print text as it is, at the beginning of a line.  Words follow it after a
 * blank. */
void wrap_begin(struct wrap *w, FILE *fp, size_t indent, const char *text);
/* Print the words of text, each on a new line where it does not fit.  A word
 * longer than a line is not cut. */
void wrap_words(struct wrap *w, const char *text);
void wrap_end(struct wrap *w);

#endif
