/* coordinator/engine/seed.h - the seed of a run that was given none.
 * Called by run and chat. */
#ifndef COORDINATOR_ENGINE_SEED_H
#define COORDINATOR_ENGINE_SEED_H

#include "config/conf.h"

/* A seed that nobody gave is drawn. */
void seed_draw(struct conf *c);
/* And shown, so that the run can be had again. */
void seed_show(const struct conf *c);

#endif
