/* worker/ascend/memo.c - see memo.h. */
#include "memo.h"

#include <signal.h>
#include <stddef.h>
#include <stdatomic.h>

#include "shm/event.h"

/* The memo of this process's one session, for its last moment. */
static struct acl_memo *_Atomic noted;
static _Atomic uint64_t *called;	/* or NULL */

/* The signal's default action follows: abort() raises it again, and a fault
 * occurs again. */
static void
on_signal(int sig)
{
	struct acl_memo *m = noted;

	(void)sig;
	if (m == NULL)
		return;
	m->losses++;
	m->is_calling = 0;
}

static void
note_call(uint64_t at_ns)
{
	if (called != NULL)
		atomic_store_explicit(called, at_ns, memory_order_relaxed);
}

void
acl_memo_open(struct acl_memo *m, _Atomic uint64_t *call_ns, int after_hang)
{
	static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGILL,
	    SIGFPE };
	struct sigaction sa = { .sa_handler = on_signal,
	    .sa_flags = (int)SA_RESETHAND }, old;
	unsigned i;

	if (m->magic != ACL_MEMO)
		*m = (struct acl_memo){ .magic = ACL_MEMO };
	if (m->is_calling && after_hang)
		m->losses++;
	m->is_calling = 0;
	noted = m;
	called = call_ns;
	note_call(0);
	for (i = 0; i < NITEMS(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    old.sa_handler == SIG_DFL)
			(void)sigaction(signals[i], &sa, NULL);
}

void
acl_memo_close(void)
{
	noted = NULL;
	note_call(0);
	called = NULL;
}

void
acl_memo_call(struct acl_memo *m)
{
	m->is_calling = 1;
	note_call(event_now_ns());
}

void
acl_memo_return(struct acl_memo *m)
{
	note_call(0);
	m->is_calling = 0;
}

void
acl_memo_next_call(void)
{
	if (noted != NULL && noted->is_calling)
		note_call(event_now_ns());
}

void
acl_memo_long_call(void)
{
	note_call(0);
}
