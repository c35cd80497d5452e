/* coordinator/print/columns.h - a table whose columns are cut into blocks that
 * fit a terminal.
 * Owns: the cells' text.  Called by what prints tables; allocates nothing.
 * Columns that do not fit beside the others follow in a block of their own,
 * which begins with the first column again. */
#ifndef COORDINATOR_PRINT_COLUMNS_H
#define COORDINATOR_PRINT_COLUMNS_H

#include <stdio.h>

#include "config/base.h"

/* Rows: all sessions. */
enum { COLUMNS_MAX = 16, COLUMNS_WIDTH = 80, CELL_LEN = 64,
	COLUMNS_ROWS = MAX_SESSIONS };

struct column {
	const char *head;
	const char *unit;	/* printed below the head where units differ */
	int right;		/* numbers are right-aligned */
	int heads_group;	/* it and what follows stay together */
	char cell[COLUMNS_ROWS][CELL_LEN];
};

/* Large: static in what prints it. */
struct columns {
	unsigned n, nrows;
	struct column col[COLUMNS_MAX];
};

/* A table of nrows rows, at most COLUMNS_ROWS, without columns. */
void columns_init(struct columns *t, unsigned nrows);
/* A new column on the right; there may be COLUMNS_MAX. */
struct column *columns_add(struct columns *t, const char *head, int right);
/* Print t, at most width columns wide (0 = any width).  title is the first line:
 * "memory", with the unit if all columns have the same. */
void columns_print(FILE *fp, const struct columns *t, const char *title,
    size_t width);

#endif
