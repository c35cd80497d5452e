/* layers/build.h - builds the program of a stage.
 * Owns: the order of a stage's blocks and the layout of its scratch.  Called by
 * the plan (for sizes) and by the stage.  Does not depend on devices or
 * files. */
#ifndef LAYERS_BUILD_H
#define LAYERS_BUILD_H

#include "program.h"

/* Append the operations of every sublayer in env, quantizing activations where
 * the kernels want it, assign operations to threads, and lay out the scratch.
 * Equal inputs give equal programs.  ERR_MODEL: a weight is missing. */
int
program_build(const struct program_env *env, struct program **ret,
    struct err *reterr);

#endif
