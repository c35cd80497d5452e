/* coordinator/session/retry.c - the one retry loop: bounds and back-off. */
#include "retry.h"

#include <errno.h>
#include <stdio.h>

#include "config/log.h"
#include "wait.h"

/* The first two attempts follow at once; the back-off then doubles up to its
 * maximum.  Sixteen losses in a row take nine seconds. */
enum { ATTEMPTS_AT_ONCE = 2 };
#define BACKOFF_NS	UINT64_C(20000000)
#define BACKOFF_MAX_NS	UINT64_C(1000000000)

static uint64_t
backoff_ns(unsigned attempts)
{
	if (attempts <= ATTEMPTS_AT_ONCE)
		return 0;
	return MIN(BACKOFF_NS << MIN(attempts - ATTEMPTS_AT_ONCE - 1, 16),
	    BACKOFF_MAX_NS);
}

int
retry_count_loss(struct retry *r, struct err *reterr)
{
	struct err e = *reterr;

	if (r->losses < r->max_losses) {
		r->losses++;
		snprintf(r->last_loss, sizeof(r->last_loss), "%.255s", e.msg);
		log_warnx("%s; restarting it (loss %u of at most %u)", e.msg,
		    r->losses, r->max_losses);
		return 0;
	}
	/* With --recover 0 the message does not mention recovery. */
	if (r->max_losses == 0)
		return -ENOTRECOVERABLE;
	return err_set(reterr, e.kind, -ENOTRECOVERABLE, "%s; giving up after "
	    "%u restarts (--recover)", e.msg, r->max_losses);
}

int
retry_after_loss(struct retry *r, int signal_fd, struct err *reterr)
{
	int rc;

	if ((rc = wait_sleep(signal_fd, 0, reterr)) < 0 ||
	    (rc = retry_count_loss(r, reterr)) < 0)
		return rc;
	return wait_sleep(signal_fd, backoff_ns(++r->attempts), reterr);
}

int
retry_run(struct retry *r, int signal_fd, retry_attempt_fn *attempt,
    void *arg, struct err *reterr)
{
	int rc;

	while ((rc = attempt(arg, reterr)) == -ECHILD &&
	    (rc = retry_after_loss(r, signal_fd, reterr)) == 0)
		;
	return rc;
}
