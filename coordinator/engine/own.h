/* coordinator/engine/own.h - the coordinator's own cap, once there is a plan.
 * Owns: how long a text may be under it.  Called by engine.c.
 * The formula is plan/own_need.c's, the limit config/own_cap.c's. */
#ifndef COORDINATOR_ENGINE_OWN_H
#define COORDINATOR_ENGINE_OWN_H

#include "coordinator/cap/process.h"
#include "coordinator/plan/own_need.h"

struct own {
	struct own_need need;
	uint64_t text_bytes;	/* the longest text of a request */
};

/* Hold this process to c's cap, or to what the plan needs.  -ENOSPC with ERR_FIT:
 * c's is too small. */
int own_open(struct own *o, const struct conf *c, const struct plan *p,
    struct err *reterr);

/* Append the row.  started: there is a peak. */
void own_add_row(const struct own *o, int started, struct process_list *l);
/* The keeper of groups (cap/keeper.h) is forked from this process, and keeps its
 * limit. */
void own_add_keeper(pid_t pid, struct process_list *l);

#endif
