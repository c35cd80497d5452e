/* coordinator/print/columns.c - a table in blocks that fit a terminal. */
#include "columns.h"

#include <assert.h>
#include <string.h>

void
columns_init(struct columns *t, unsigned nrows)
{
	memset(t, 0, sizeof(*t));
	t->nrows = nrows;
}

struct column *
columns_add(struct columns *t, const char *head, int right)
{
	struct column *c = &t->col[t->n];

	assert(t->n < COLUMNS_MAX && t->nrows <= COLUMNS_ROWS);
	c->head = head;
	c->right = right;
	t->n++;
	return c;
}

static size_t
width_of(const struct columns *t, const struct column *c)
{
	size_t width = strlen(c->head);
	unsigned r;

	for (r = 0; r < t->nrows; r++)
		width = MAX(width, strlen(c->cell[r]));
	return width;
}

/* The column after the last one of the block that begins with t->col[from],
 * which follows the first column of the table. */
static unsigned
block_end(const struct columns *t, unsigned from, size_t width)
{
	size_t used = from > 0 ? width_of(t, &t->col[0]) + 1 : 1;
	unsigned i, group = 0;

	for (i = from; i < t->n; i++) {
		used += width_of(t, &t->col[i]) + (i > 0);
		if (width > 0 && used > width && i > from)
			return group > from ? group : i;
		if (t->col[i].heads_group)
			group = i;
	}
	return t->n;
}

static void
print_cell(FILE *fp, const struct columns *t, unsigned i, const char *text,
    int last)
{
	const struct column *c = &t->col[i];
	int width = (int)width_of(t, c);

	if (c->right)
		fprintf(fp, "%*s", width, text);
	else if (last)
		fputs(text, fp);
	else
		fprintf(fp, "%-*s", width, text);
}

/* The text of a row: -2 = the heads, -1 = the units. */
static const char *
text_at(const struct column *c, int row)
{
	if (row >= 0)
		return c->cell[row];
	return row == -2 ? c->head : c->unit != NULL ? c->unit : "";
}

static void
print_row(FILE *fp, const struct columns *t, unsigned from, unsigned end,
    int row)
{
	unsigned i;

	if (from > 0)
		print_cell(fp, t, 0, text_at(&t->col[0], row), 0);
	for (i = from; i < end; i++) {
		if (i + 1 == end && *text_at(&t->col[i], row) == '\0')
			break;
		if (i > 0)
			fputs(i == MAX(from, 1u) ? "  " : " ", fp);
		print_cell(fp, t, i, text_at(&t->col[i], row), i + 1 == end);
	}
	fputc('\n', fp);
}

/* The unit of all columns that have one; NULL = there are several. */
static const char *
only_unit(const struct columns *t)
{
	const char *unit = NULL;
	unsigned i;

	for (i = 0; i < t->n; i++) {
		if (t->col[i].unit == NULL)
			continue;
		if (unit != NULL && strcmp(unit, t->col[i].unit) != 0)
			return NULL;
		unit = t->col[i].unit;
	}
	return unit;
}

void
columns_print(FILE *fp, const struct columns *t, const char *title, size_t width)
{
	const char *unit = only_unit(t);
	unsigned from, end;
	int row;

	fprintf(fp, "%s%s%s\n", title, unit != NULL ? ", " : "",
	    unit != NULL ? unit : "");
	for (from = 0; from < t->n; from = end) {
		end = block_end(t, from, width);
		for (row = -2; row < (int)t->nrows; row++)
			if (row != -1 || unit == NULL)
				print_row(fp, t, from, end, row);
	}
}
