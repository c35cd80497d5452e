/* coordinator/cap/keeper.h - makes and removes memory groups for a coordinator
 * that is not root any more.
 * Owns: a process that stays root, without capabilities, and the groups that it
 * made.  Called by enforce.c.  Does not know sessions.
 *
 * It takes two orders, over a socket: make a group with a limit, remove one that
 * it has made.  It answers with the group's folder and with cgroup.procs, open:
 * the kernel judges whoever moves into a group by who opened that.  The limits
 * stay root's.  When the coordinator ends, however it does, it removes all
 * groups and ends. */
#ifndef COORDINATOR_CAP_KEEPER_H
#define COORDINATOR_CAP_KEEPER_H

#include "cgroup.h"

/* Start it for the groups of a tree.  has_foreign_groups: config/rights.h. */
int keeper_start(const struct cgroup_tree *t, int has_foreign_groups,
    struct err *reterr);

/* Is there one?  Its process; 0 = there is none. */
int keeper_runs(void);
pid_t keeper_pid(void);

/* cgroup_open() and cgroup_close(), done by it. */
int keeper_open(const struct cgroup_tree *t, const char *name,
    uint64_t limit_bytes, struct cgroup *ret, struct err *reterr);
void keeper_close(struct cgroup *g);
/* Remove the group in dir, of a coordinator that has ended. */
int keeper_remove(const char *dir);

/* End it: it removes what there still is, before this returns.
 * Async-signal-safe. */
void keeper_stop(void);

#endif
