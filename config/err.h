/* config/err.h - an error: a return code, an exit code and one sentence.
 * Owns: struct err.  Called by every function whose failure a user will see.
 * Does not log: only main files and event loops do. */
#ifndef CONFIG_ERR_H
#define CONFIG_ERR_H

#include "base.h"

/* The program's exit codes; scripts rely on them. */
enum err_kind {
	ERR_NONE = 0,
	ERR_RUN = 1,		/* failed while running */
	ERR_USAGE = 2,		/* bad usage or config */
	ERR_FIT = 3,		/* cannot fit under the caps */
	ERR_MODEL = 4		/* bad model file */
};

struct err {
	enum err_kind kind;
	char msg[1024];		/* one sentence, no newline at the end */
};

enum { ERR_REMEDY_LEN = 128 };

/* Fill e (may be NULL) and return rc, so that callers write
 *	return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: ...", path);
 * A later error replaces an earlier one.  With rc -EMFILE or -ENFILE, the limit
 * to raise is added.  With rc -ENOMEM, -EMFILE or -ENFILE, kinds ERR_USAGE and
 * ERR_MODEL become ERR_RUN. */
int
err_set(struct err *e, enum err_kind kind, int rc, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* A remedy for the error of fork() or pthread_create(): the limits behind
 * -EAGAIN and -ENOMEM; "" for any other. */
const char *err_tasks_remedy(int rc);

/* ERR_RUN, "no memory for ...": fmt names what the allocation was for, with its
 * size if that is what a user can lower.  Returns -ENOMEM. */
int
err_nomem(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Text that err_nomem() adds from now on: the limit that an allocation in this
 * process meets first. */
void err_set_memory_remedy(const char *text);

/* Put "text: " in front of what e says; keeps the kind. */
void
err_prefix(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The process's exit code for e: its kind, ERR_RUN if rc < 0 without one. */
int
err_exit(const struct err *e, int rc);

#endif
