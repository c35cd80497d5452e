/* coordinator/plan/split.c - dynamic programming over (session, unit). */
#include "split.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The best way to put units [0, u) on sessions [0, s]. */
struct cell {
	double worst, second;	/* smaller is better, worst first */
	uint32_t from;		/* first unit of session s */
};

struct split {
	const struct split_in *in;
	struct cell *cell;	/* [nsessions][nunits + 1] */
};

static struct cell *
cell_at(const struct split *sp, unsigned s, uint32_t u)
{
	return &sp->cell[(size_t)s * (sp->in->nunits + 1) + u];
}

/* Cost of one session's range.  The largest `worst` of all sessions is
 * minimised; among equal cuts, the sum of `second`. */
struct value {
	double worst, second;
};

/* worst: time, infinite when it does not fit; second: fill squared. */
static struct value
time_value(const struct split *sp, unsigned s, uint32_t u0, uint32_t u1)
{
	const struct split_in *in = sp->in;
	uint64_t bytes = in->bytes(in->arg, s, u0, u1);
	double fill = (double)bytes / (double)in->cap_bytes[s];

	if (bytes > in->cap_bytes[s])
		return (struct value){ INFINITY, INFINITY };
	return (struct value){ in->cost(in->arg, u0, u1) / in->speed[s],
	    fill * fill };
}

/* worst: bytes over the cap, 0 when it fits; second: their square. */
static struct value
lack_value(const struct split *sp, unsigned s, uint32_t u0, uint32_t u1)
{
	uint64_t bytes = sp->in->bytes(sp->in->arg, s, u0, u1);
	uint64_t cap = sp->in->cap_bytes[s];
	double lack = bytes > cap ? (double)(bytes - cap) : 0;

	return (struct value){ lack, lack * lack };
}

typedef struct value value_fn(const struct split *sp, unsigned s, uint32_t u0,
    uint32_t u1);

/* Fill the table, minimising the largest `worst`, or, with limit, the sum of
 * `second` among the cuts whose `worst` is at most *limit.  Returns `worst` of
 * the last cell, where the best cut ends. */
static double
solve(struct split *sp, value_fn *value, const double *limit)
{
	const uint32_t n = sp->in->nunits;
	const unsigned ns = sp->in->nsessions;
	struct cell c, *best;
	const struct cell *left;
	unsigned s;
	struct value x;
	uint32_t u, v;

	for (s = 0; s < ns; s++) {
		/* Leave a unit for each session before and after. */
		for (u = s + 1; u <= n - (ns - 1 - s); u++) {
			best = cell_at(sp, s, u);
			*best = (struct cell){ INFINITY, INFINITY, s };
			for (v = s; v < u; v++) {
				if (s == 0 && v > 0)
					break;
				x = value(sp, s, v, u);
				if (limit != NULL)
					x.worst = x.worst <= *limit ? 0 :
					    INFINITY;
				c = (struct cell){ x.worst, x.second, v };
				if (s > 0) {
					left = cell_at(sp, s - 1, v);
					c.worst = fmax(c.worst, left->worst);
					c.second += left->second;
				}
				if (c.worst < best->worst ||
				    (c.worst == best->worst &&
				    c.second < best->second))
					*best = c;
			}
		}
	}
	return cell_at(sp, ns - 1, n)->worst;
}

static void
read_cuts(const struct split *sp, uint32_t *ret_cut)
{
	unsigned s = sp->in->nsessions;
	uint32_t u = sp->in->nunits;

	ret_cut[s] = u;
	while (s-- > 0) {
		u = cell_at(sp, s, u)->from;
		ret_cut[s] = u;
	}
}

/* The session that lacks most under this cut, and how much. */
static void
find_worst_lack(const struct split *sp, const uint32_t *cut,
    unsigned *ret_session, uint64_t *ret_short)
{
	unsigned s;
	uint64_t bytes, cap;

	*ret_short = 0;
	*ret_session = 0;
	for (s = 0; s < sp->in->nsessions; s++) {
		bytes = sp->in->bytes(sp->in->arg, s, cut[s], cut[s + 1]);
		cap = sp->in->cap_bytes[s];
		if (bytes > cap && bytes - cap > *ret_short) {
			*ret_short = bytes - cap;
			*ret_session = s;
		}
	}
}

int
split_units(const struct split_in *in, uint32_t *ret_cut,
    unsigned *reterr_session, uint64_t *reterr_short)
{
	struct split sp = { .in = in };
	value_fn *value = time_value;
	double worst;
	int rc = 0;

	sp.cell = calloc((size_t)in->nsessions * (in->nunits + 1),
	    sizeof(*sp.cell));
	if (sp.cell == NULL)
		return -ENOMEM;
	if (isinf(worst = solve(&sp, value, NULL)))
		rc = -ENOSPC;
	if (ret_cut == NULL)
		goto done;
	if (rc < 0) {
		value = lack_value;
		worst = solve(&sp, value, NULL);
	}
	/* Once more with the best `worst` as the limit: a prefix that is better
	 * than needed may have cost a larger sum of `second`. */
	solve(&sp, value, &worst);
	read_cuts(&sp, ret_cut);
	if (rc < 0)
		find_worst_lack(&sp, ret_cut, reterr_session, reterr_short);
done:
	free(sp.cell);
	return rc;
}
