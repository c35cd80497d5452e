/* config/rights.h - what this process may do that its user may not: it is
 * started by root, keeps the capabilities that it needs and drops the others.
 * Owns: which are kept, for how long, and what for.  Called by the
 * coordinator's main, its commands, and where it starts children.  For anyone
 * but root nothing is done. */
#ifndef CONFIG_RIGHTS_H
#define CONFIG_RIGHTS_H

#include "conf.h"

/* Drop what this command never needs, and note what its children may have. */
void rights_begin(const struct conf *c);

/* Model and input files are open: drop what only opening them needed.
 * has_foreign_groups: memory groups are made and removed in the group of a user
 * other than this process's. */
void rights_settle(int has_foreign_groups);

/* In a new child, before it executes the program: a worker may have more than
 * other children, until it is confined.  Async-signal-safe. */
void rights_of_child(int is_worker);

#endif
