/* coordinator/engine/seed.h - a random seed where the user gave none.
 * Called by run and chat.  Owns nothing. */
#ifndef COORDINATOR_ENGINE_SEED_H
#define COORDINATOR_ENGINE_SEED_H

#include "config/conf.h"

/* Draw a seed, if sampling needs one and none was given. */
void seed_draw(struct conf *c);
/* Log a drawn seed, so that the run can be repeated. */
void seed_show(const struct conf *c);

#endif
