/* layers/rope.h - by how much each pair of a head turns from one position to
 * the next.  Called by whoever makes the tables of OP_ROPE_TABLE. */
#ifndef LAYERS_ROPE_H
#define LAYERS_ROPE_H

#include "arch.h"

/* ret (n_rot / 2), radians per position: of local or of other layers.  factors
 * (n_rot / 2) divide them (NULL = none); local layers of a base of their own
 * are not scaled at all. */
void rope_inv_freq(const struct hparams *hp, int local, const float *factors,
    float *ret);

/* By what cosines and sines are multiplied. */
float rope_magnitude(const struct hparams *hp, int local);

#endif
