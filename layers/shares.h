/* layers/shares.h - which thread does which part of an op, and where all of
 * them must meet.
 * Owns: the share, group and meet of a program's ops.  Called by
 * program_build() and by the device that runs the ops on threads.  Knows what
 * each op reads and writes, nothing of what it computes. */
#ifndef LAYERS_SHARES_H
#define LAYERS_SHARES_H

#include "par.h"
#include "program.h"

/* Fill share, group and meet of all ops, and p->group.
 *
 * An op needs no meeting before it when, of all that was done since the last
 * one, each thread touches only what it wrote itself: both ops are shared by
 * rows, or by the columns of one group.  Tensors that are touched between two
 * meetings must therefore not lie in each other's memory: program_build() lets
 * them live until the second.  Halves of layers begin with a meeting. */
void shares_find(struct program *p);

/* First op between the same two meetings as op i. */
uint32_t shares_first(const struct program *p, uint32_t i);

/* Columns of group g that thread t of n does: [cut[g * (n + 1) + t], cut[... +
 * t + 1]).  Groups between the same two meetings are balanced together, by the
 * bytes of their weights over the threads' speeds, so that the last thread has
 * as little as whole units allow.  ret_cut: [ngroups * (nthreads + 1)].
 * -ENOMEM. */
int shares_cut(const struct program *p, const struct par *par,
    uint32_t *ret_cut);

/* The level to which cost, all of it, fills up the n loads, each as high as it
 * is over its width; those beyond it stay as they are.  n > 0. */
double shares_level(const double *load, const double *width, unsigned n,
    double cost);

#endif
