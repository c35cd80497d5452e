/* coordinator/bench/series.c - mean, median and standard deviation. */
#include "series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int
series_add(struct series *s, double x, struct err *reterr)
{
	unsigned room = s->room > 0 ? 2 * s->room : 8;
	double *v;

	if (s->n == s->room) {
		v = reallocarray(s->v, room, sizeof(*v));
		if (v == NULL)
			return err_nomem(reterr, "%u values", room);
		s->v = v;
		s->room = room;
	}
	s->v[s->n++] = x;
	return 0;
}

void
series_free(struct series *s)
{
	free(s->v);
	*s = (struct series){ 0 };
}

double
series_mean(const struct series *s)
{
	double sum = 0;
	unsigned i;

	for (i = 0; i < s->n; i++)
		sum += s->v[i];
	return s->n > 0 ? sum / s->n : 0;
}

double
series_sd(const struct series *s)
{
	double mean = series_mean(s), sum = 0;
	unsigned i;

	for (i = 0; i < s->n; i++)
		sum += (s->v[i] - mean) * (s->v[i] - mean);
	return s->n > 1 ? sqrt(sum / (s->n - 1)) : 0;
}

/* Count the values below x and those equal to x. */
static void
rank_value(const struct series *s, double x, unsigned *ret_below,
    unsigned *ret_same)
{
	unsigned i;

	*ret_below = *ret_same = 0;
	for (i = 0; i < s->n; i++) {
		*ret_below += s->v[i] < x;
		*ret_same += s->v[i] == x;
	}
}

/* The k-th smallest value.  Quadratic, but series are short and no copy is
 * needed. */
static double
find_kth(const struct series *s, unsigned k)
{
	unsigned i, below, same;

	for (i = 0; i < s->n; i++) {
		rank_value(s, s->v[i], &below, &same);
		if (below <= k && k < below + same)
			return s->v[i];
	}
	return NAN;		/* only if some value is NaN */
}

double
series_max(const struct series *s)
{
	double max = 0;
	unsigned i;

	for (i = 0; i < s->n; i++)
		max = i == 0 || s->v[i] > max ? s->v[i] : max;
	return max;
}

double
series_median(const struct series *s)
{
	if (s->n == 0)
		return 0;
	return (find_kth(s, (s->n - 1) / 2) + find_kth(s, s->n / 2)) / 2;
}
