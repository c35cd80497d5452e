/* worker/ascend/fastest.c - see fastest.h. */
#include "fastest.h"

#include <string.h>

/* Tokens that are generated for each ASCEND_ROWS tokens of a prompt, in costs. */
enum { GENERATED = 16 };

int
acl_is_faster(uint64_t ns, uint64_t than_ns)
{
	return ns < than_ns - than_ns / 5;
}

static int
is_twin(const struct acl_candidate *c, const struct acl_timing *t, unsigned i,
    unsigned j)
{
	return t[j].is_right && c[i].nz == c[j].nz && t[i].bits == t[j].bits;
}

/* The way for class k where candidate i is chosen: i, or a faster twin. */
static unsigned
way_for(const struct acl_candidate *c, const struct acl_timing *t, unsigned n,
    unsigned i, unsigned k)
{
	unsigned best = i, j;

	for (j = 0; j < n; j++)
		if (is_twin(c, t, i, j) && acl_is_faster(t[j].ns[k],
		    t[best].ns[k]))
			best = j;
	return best;
}

static uint64_t
cost(const struct acl_form *f, const struct acl_candidate *c,
    const struct acl_timing *t, unsigned n, unsigned i)
{
	const unsigned last = f->nclasses - 1u;

	return t[way_for(c, t, n, i, 0)].ns[0] * GENERATED +
	    t[way_for(c, t, n, i, last)].ns[last] * (ASCEND_ROWS /
	    f->rows[last]);
}

int
acl_fastest(const struct acl_form *f, const struct acl_candidate *c,
    const struct acl_timing *t, unsigned n, struct acl_shape_way *ret)
{
	unsigned best = n, way, i, k, other;
	int has_twin = 0;

	for (i = 0; i < n; i++)
		if (t[i].is_right && (best == n || acl_is_faster(cost(f, c, t, n,
		    i), cost(f, c, t, n, best))))
			best = i;
	if (best == n)
		return 0;
	/* Among ways with the same bits, the one for most rows has the name. */
	way = way_for(c, t, n, best, f->nclasses - 1u);
	ret->way = c[way].way;
	ret->nz = c[way].nz;
	memset(ret->twin, 0, sizeof(ret->twin));
	for (k = 0; k < f->nclasses; k++) {
		other = way_for(c, t, n, best, k);
		if (other == way)
			continue;
		ret->twin[k] = c[other].way;
		has_twin = 1;
	}
	return way > 0 || has_twin;
}
