/* coordinator/bench/series.c - mean, median and deviation. */
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
			return err_set(reterr, ERR_RUN, -ENOMEM,
			    "out of memory");
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

/* How many of s are below x, and how many are x. */
static void
rank(const struct series *s, double x, unsigned *ret_below, unsigned *ret_same)
{
	unsigned i;

	*ret_below = *ret_same = 0;
	for (i = 0; i < s->n; i++) {
		*ret_below += s->v[i] < x;
		*ret_same += s->v[i] == x;
	}
}

/* The k-th smallest, without a sorted copy: series are short. */
static double
kth(const struct series *s, unsigned k)
{
	unsigned i, below, same;

	for (i = 0; i < s->n; i++) {
		rank(s, s->v[i], &below, &same);
		if (below <= k && k < below + same)
			return s->v[i];
	}
	return NAN;		/* only where a value is none */
}

double
series_median(const struct series *s)
{
	if (s->n == 0)
		return 0;
	return (kth(s, (s->n - 1) / 2) + kth(s, s->n / 2)) / 2;
}
