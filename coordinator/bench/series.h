/* coordinator/bench/series.h - a list of measured values and its statistics.
 * Owns: the values.  Called by the files of bench/.  Does not know units. */
#ifndef COORDINATOR_BENCH_SERIES_H
#define COORDINATOR_BENCH_SERIES_H

#include "config/err.h"

/* All zero = empty. */
struct series {
	double *v;		/* [n], in the order measured */
	unsigned n, room;
};

int series_add(struct series *s, double x, struct err *reterr);
void series_free(struct series *s);

/* 0 for an empty series.  With an even number of values, the median is the mean
 * of the middle two. */
double series_mean(const struct series *s);
double series_median(const struct series *s);
double series_max(const struct series *s);
/* Sample standard deviation (n - 1); 0 below two values. */
double series_sd(const struct series *s);

#endif
