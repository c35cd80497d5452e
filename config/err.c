/* config/err.c - fills struct err. */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

/* The end of a message of err_nomem(); set once, before threads start. */
static char memory_remedy[ERR_REMEDY_LEN];

/* Name the limit that can be raised, unless the message does.  No system call: a
 * confined worker may fail here. */
static void
add_remedy(char *msg, size_t len, int rc)
{
	const char *text = rc == -EMFILE ? "; raise the number of open files "
	    "of a process with `ulimit -n`" : rc == -ENFILE ? "; raise the "
	    "number of open files of the machine with `sysctl -w fs.file-max=N`" :
	    NULL;

	if (text != NULL && strstr(msg, text) == NULL)
		strlcat(msg, text, len);
}

const char *
err_tasks_remedy(int rc)
{
	return rc == -EAGAIN || rc == -ENOMEM ? ": raise `ulimit -u` (tasks of "
	    "this user) or pids.max of its group, or lower `ulimit -s` (the "
	    "stack of a thread)" : "";
}

int
err_set(struct err *e, enum err_kind kind, int rc, const char *fmt, ...)
{
	char msg[sizeof(e->msg)];
	va_list ap;

	if (e == NULL)
		return rc;
	/* Running out of a resource is not an error in the arguments, config
	 * or model that were being read. */
	if ((kind == ERR_USAGE || kind == ERR_MODEL) &&
	    (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE))
		kind = ERR_RUN;
	/* Into a copy first, because the arguments may point into e->msg. */
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	memcpy(e->msg, msg, sizeof(e->msg));
	e->kind = kind;
	add_remedy(e->msg, sizeof(e->msg), rc);
	return rc;
}

void
err_set_memory_remedy(const char *text)
{
	strlcpy(memory_remedy, text, sizeof(memory_remedy));
}

int
err_nomem(struct err *e, const char *fmt, ...)
{
	char msg[sizeof(e->msg)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_RUN, -ENOMEM, "no memory for %s%s", msg,
	    memory_remedy);
}

void
err_prefix(struct err *e, const char *fmt, ...)
{
	char msg[sizeof(e->msg)];
	va_list ap;

	if (e == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	strlcat(msg, ": ", sizeof(msg));
	strlcat(msg, e->msg, sizeof(msg));
	memcpy(e->msg, msg, sizeof(e->msg));
}

int
err_exit(const struct err *e, int rc)
{
	if (rc >= 0)
		return 0;
	return e != NULL && e->kind != ERR_NONE ? (int)e->kind : ERR_RUN;
}
