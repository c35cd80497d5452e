/* coordinator/engine/notes.h - what the user should know of a model or a plan
 * that is no error.  Called by engine.c.  Owns nothing. */
#ifndef COORDINATOR_ENGINE_NOTES_H
#define COORDINATOR_ENGINE_NOTES_H

#include "coordinator/plan/plan.h"
#include "coordinator/session/sessions.h"

/* Warn of tensors that the model's architecture does not use: a layer that
 * block_count leaves out, or weights of another architecture. */
void notes_unused_tensors(const struct gguf *g, const struct model *m);

/* A session whose keys or values exceeded the range of F16, NULL = none.  Only
 * the host tells, not a device of its own memory. */
const struct session *notes_kv_overflow(const struct sessions *ss);
/* Warn of such a session. */
void notes_kv(const struct sessions *ss);

/* Caps, or with --overcommit sessions, that need more than is free in room (NULL
 * = unknown); caps that were lowered; an end of the pipeline that
 * stands alone because its neighbour's device cannot map it, a context beyond
 * the trained one. */
void notes_plan(const struct plan *p, const struct room *room);

/* Default numbers of threads that the CPU quota made smaller, and given ones
 * that exceed it. */
void notes_quota(const struct conf *c, const struct plan *p);

#endif
