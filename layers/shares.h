/* layers/shares.h - divides ops among threads and places the barriers.
 * Owns: share, group and barrier_before of a program's ops.  Called by
 * program_build() and by the device that runs the ops on threads.  Knows what
 * each op reads and writes, not what it computes. */
#ifndef LAYERS_SHARES_H
#define LAYERS_SHARES_H

#include "par.h"
#include "program.h"

/* Set share, group and barrier_before of all ops, and p->group.
 *
 * An op needs no barrier if each thread uses only data that it wrote itself
 * since the last barrier: both ops are divided by rows, or by the columns of
 * the same group.  Tensors used between two barriers must therefore not overlap
 * in memory; program_build() keeps them alive until the second one.  Every
 * sublayer starts with a barrier. */
void shares_assign(struct program *p);

/* The first op since the last barrier at or before op i. */
uint32_t shares_first(const struct program *p, uint32_t i);

/* Fill ret_cut, [ngroups * (nthreads + 1)]: thread t does columns
 * [cut[g * (n + 1) + t], cut[g * (n + 1) + t + 1]) of group g.  Groups between
 * the same two barriers are balanced together, by their weight bytes over the
 * threads' speeds, so that the slowest thread ends as early as whole units
 * allow.  -ENOMEM. */
int shares_cut(const struct program *p, const struct par *par,
    uint32_t *ret_cut);

/* Water filling: the level that n > 0 loads reach when cost is distributed to
 * make load[i] / width[i] equal; loads above the level get nothing. */
double shares_level(const double *load, const double *width, unsigned n,
    double cost);

#endif
