/* config/rights.h - what a process that root started keeps of root's rights:
 * the capabilities that it needs, and its user until it becomes another.
 * Owns: which are kept, for how long, and what for.  Called by the
 * coordinator's main, its commands, and where it starts children.  For anyone
 * but root nothing is done. */
#ifndef CONFIG_RIGHTS_H
#define CONFIG_RIGHTS_H

#include "conf.h"

/* Drop what this command never needs, and note what its children may have.  From
 * here on these have the user of the settings. */
int rights_begin(const struct conf *c, struct err *reterr);

/* Model and input files are open: become that user, or drop what only opening
 * needed.  has_foreign_groups: memory groups are made and removed in the group of
 * a user other than this process's.  Later calls do nothing. */
int rights_settle(int has_foreign_groups, struct err *reterr);

/* Is there a user that rights_settle() will become? */
int rights_change_user(void);

/* In a new child, before it executes the program: a worker may have more than
 * other children, until it is confined.  Async-signal-safe; 0 or -errno. */
int rights_of_child(int is_worker);

/* In the keeper of memory groups, which stays root (coordinator/cap/keeper.h). */
int rights_of_keeper(int has_foreign_groups);

#endif
