/* layers/rope.h - rotary frequencies of each pair of a head.
 * Called by the devices, which fill the tables of OP_ROPE_TABLE. */
#ifndef LAYERS_ROPE_H
#define LAYERS_ROPE_H

#include "arch.h"

/* Fill ret (n_rot / 2) with radians per position, for local or global layers,
 * divided by factors (n_rot / 2; NULL = none).  Local layers with a base of
 * their own are not scaled. */
void rope_inv_freq(const struct hparams *hp, int local, const float *factors,
    float *ret);

/* Factor of cosines and sines. */
float rope_magnitude(const struct hparams *hp, int local);

#endif
