/* coordinator/engine/parts.h - the parts of an engine, for stress, which
 * starts them one at a time and breaks them on purpose.  Nothing else includes
 * this. */
#ifndef COORDINATOR_ENGINE_PARTS_H
#define COORDINATOR_ENGINE_PARTS_H

#include "coordinator/session/sessions.h"
#include "engine.h"
#include "pipeline.h"

/* engine_start() in two steps: start the workers; load them, and open the
 * pipeline.  tick as in sessions_load(). */
int engine_spawn(struct engine *eng, struct err *reterr);
int engine_load(struct engine *eng, sessions_tick_fn *tick, void *arg,
    struct err *reterr);

/* NULL before the step that opens it. */
struct sessions *engine_sessions_of(struct engine *eng);
struct pipeline *engine_pipeline_of(struct engine *eng);

#endif
