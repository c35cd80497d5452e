/* config/user.h - the user that root becomes, for good.
 * Owns: who that is, and whether it has happened.  Called by config/rights.c;
 * others ask for the name, for messages.  Does not know capabilities.
 *
 * It happens in two steps.  First only the real user changes: files are still
 * opened as root, but signals and limits may be sent to children, which are the
 * user's from their start.  Then everything does, with no way back. */
#ifndef CONFIG_USER_H
#define CONFIG_USER_H

#include "err.h"

#define USER_DEFAULT	"straddle"

/* Find the user: name, or NULL for USER_DEFAULT where /etc/passwd has it.
 * Nothing is to change for "root", and for a plain user who names itself.
 * -EPERM, -ENOENT with ERR_USAGE. */
int user_choose(const char *name, struct err *reterr);

/* The first step: real user and groups, and HOME. */
int user_begin(struct err *reterr);

/* In a child: all of it.  Async-signal-safe; 0 or -errno. */
int user_of_child(void);

/* The last step.  It is checked that there is no way back. */
int user_end(struct err *reterr);

/* The one that was chosen; NULL = none, this process stays who it is. */
const char *user_name(void);

/* After user_end(): ends a message about a file that could not be opened, with
 * error rc.  "" where another user could not have opened it either. */
const char *user_hint(int rc);

#endif
