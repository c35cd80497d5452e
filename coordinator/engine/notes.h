/* coordinator/engine/notes.h - what the user should know of a model or a plan
 * that is no error.  Called by engine.c.  Owns nothing. */
#ifndef COORDINATOR_ENGINE_NOTES_H
#define COORDINATOR_ENGINE_NOTES_H

#include "coordinator/plan/plan.h"

/* Warn of tensors that the model's architecture does not use: a layer that
 * block_count leaves out, or weights of another architecture. */
void notes_unused_tensors(const struct gguf *g, const struct model *m);

/* Overcommitted caps (free_bytes 0 = unknown), an end of the pipeline that
 * stands alone because its neighbour's device cannot map it, a context beyond
 * the trained one. */
void notes_plan(const struct plan *p, uint64_t free_bytes);

/* Default numbers of threads that the CPU quota made smaller, and given ones
 * that exceed it. */
void notes_quota(const struct conf *c, const struct plan *p);

#endif
