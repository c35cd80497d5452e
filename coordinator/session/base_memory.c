/* coordinator/session/base_memory.c - measures an empty worker. */
#include "base_memory.h"

#include <stdlib.h>

#include "config/meminfo.h"
#include "session.h"

/* Pages first touched after the measurement: tables of extents and operations, code of
 * the loader and the kernels.  A group does not pay for code, which is cached; where
 * VmHWM counts it, the kernel also maps the cached pages of the 64 KiB around each
 * fault.  Both are measured in tests/MEASURED.md. */
#define LATE_PAGES_BYTES	(MIB / 2)
#define LATE_SHARED_BYTES	(3 * MIB / 4)
/* The part that each further session of a worker touches: tables only. */
#define LATE_TABLES_BYTES	(MIB / 8)

static struct {
	unsigned n;
	struct {
		unsigned threads, nsessions;
		uint64_t nbytes;
		/* VmSize and VmData; 0 = unknown */
		uint64_t size_bytes, data_bytes;
	} of[MAX_SESSIONS];
} measured;

/* Address space beside the planned buffers: their alignment, and the rings of
 * the neighbours, which the plan charges to them. */
#define MAPPED_BESIDE_BYTES	(16 * MIB)

void
base_memory_room(unsigned threads, struct room *ret)
{
	unsigned i;

	room_rlimits(0, 0, ret);
	for (i = 0; i < measured.n; i++) {
		if (measured.of[i].threads != threads)
			continue;
		/* The plan counts base memory; it is part of both sizes. */
		room_rlimits(measured.of[i].size_bytes + MAPPED_BESIDE_BYTES,
		    measured.of[i].data_bytes + MAPPED_BESIDE_BYTES, ret);
		if (ret->cap_bytes != UINT64_MAX)
			ret->cap_bytes += measured.of[i].nbytes;
	}
}

uint64_t
base_memory_shared(void *arg, unsigned threads, unsigned nsessions)
{
	unsigned i;

	(void)arg;
	for (i = 0; i < measured.n; i++)
		if (measured.of[i].threads == threads &&
		    measured.of[i].nsessions == nsessions)
			return measured.of[i].nbytes;
	return 0;
}

uint64_t
base_memory_bytes(void *arg, unsigned threads)
{
	return base_memory_shared(arg, threads, 1);
}

/* Measure a worker of n sessions. */
static int
measure_worker(const struct plan_session *ps, unsigned n,
    const struct plan_worker *w, const struct conf *c, int signal_fd,
    struct err *reterr)
{
	struct session *s = calloc(n, sizeof(*s));
	struct enforce_peak peak;
	struct enforce e;
	uint64_t rss = 0;
	unsigned i;
	int rc;

	if (s == NULL)
		return err_nomem(reterr, "the sessions of a worker");
	enforce_open(&e, "probe", UINT64_MAX);
	rc = session_probe_retry(ps, n, c, &e, signal_fd, s, reterr);
	if (rc == 0) {
		for (i = 0; i < n; i++)
			rss = MAX(rss, s[i].hello.rss_bytes);
		enforce_read_peak(&e, rss, &peak);
		measured.of[measured.n].threads = w->threads;
		measured.of[measured.n].nsessions = n;
		meminfo_read_process(s[0].proc->child.pid, "VmSize",
		    &measured.of[measured.n].size_bytes);
		meminfo_read_process(s[0].proc->child.pid, "VmData",
		    &measured.of[measured.n].data_bytes);
		measured.of[measured.n++].nbytes = ALIGN_UP(peak.nbytes,
		    BASE_MEMORY_ROUND) + LATE_PAGES_BYTES +
		    (peak.shared ? LATE_SHARED_BYTES : 0) +
		    (n - 1) * LATE_TABLES_BYTES;
		for (i = 0; i < n; i++)
			session_close(&s[i]);
	}
	enforce_close(&e);
	free(s);
	return rc;
}

/* The worker whose first session is `first`. */
static int
measure_of(const struct conf *c, unsigned first, const struct plan_worker *w,
    int signal_fd, struct err *reterr)
{
	struct plan_session *ps = calloc(w->n, sizeof(*ps));
	unsigned i, n = 0;
	int rc;

	if (ps == NULL)
		return err_nomem(reterr, "the plan of a worker");
	for (i = first; i < (unsigned)c->nsessions; i++) {
		if (!conf_shares_worker(&c->session[i], &c->session[first]))
			continue;
		ps[n] = plan_empty_session(&c->session[i],
		    plan_threads(&c->session[i]));
		ps[n++].own_cores = plan_own_cores(c, i);
	}
	rc = measure_worker(ps, n, w, c, signal_fd, reterr);
	free(ps);
	return rc;
}

int
base_memory_measure(const struct conf *c, int signal_fd, struct err *reterr)
{
	struct plan_worker w;
	unsigned i;
	int rc;

	for (i = 0; i < (unsigned)c->nsessions; i++) {
		w = plan_worker_of(c, i);
		if (w.first != i || measured.n == NITEMS(measured.of) ||
		    base_memory_shared(NULL, w.threads, w.n) != 0)
			continue;
		if ((rc = measure_of(c, i, &w, signal_fd, reterr)) < 0)
			return rc;
	}
	return 0;
}
