/* coordinator/bench/series.h - numbers that were measured, and what is said of them.
 * Called by roofline and bench.  Knows no unit. */
#ifndef COORDINATOR_BENCH_SERIES_H
#define COORDINATOR_BENCH_SERIES_H

#include "config/err.h"

/* Zeroed is empty. */
struct series {
	double *v;		/* [n], in the order measured */
	unsigned n, room;
};

int series_add(struct series *s, double x, struct err *reterr);
void series_free(struct series *s);

/* 0 of an empty series.  Of an even number, the median is the mean of the two
 * in the middle. */
double series_mean(const struct series *s);
double series_median(const struct series *s);
/* Of the sample (n - 1); 0 below two values. */
double series_sd(const struct series *s);

#endif
