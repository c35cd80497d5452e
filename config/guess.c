/* config/guess.c - the optimal string alignment distance: letters added, lost,
 * changed or swapped between two words. */
#include "guess.h"

#include <string.h>

#include "base.h"

enum { MAX_WORD = 32 };

static unsigned
distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned d[MAX_WORD + 1][MAX_WORD + 1], other;
	size_t i, j;

	for (i = 0; i <= na; i++)
		for (j = 0; j <= nb; j++) {
			if (i == 0 || j == 0) {
				d[i][j] = (unsigned)(i + j);
				continue;
			}
			other = a[i - 1] != b[j - 1];
			d[i][j] = MIN(d[i - 1][j - 1] + other,
			    MIN(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[na][nb];
}

void
guess_try(struct guess *g, const char *name)
{
	size_t na = strlen(g->typed), nb = strlen(name);
	unsigned d;

	if (na > MAX_WORD || nb > MAX_WORD)
		return;
	/* At most one mistake in three letters. */
	d = distance(g->typed, na, name, nb);
	if (d > MAX(MAX(na, nb) / 3, 1) || d >= nb ||
	    (g->best != NULL && d >= g->distance))
		return;
	g->best = name;
	g->distance = d;
}
