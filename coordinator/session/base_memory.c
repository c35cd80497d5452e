/* coordinator/session/base_memory.c - measures an empty worker. */
#include "base_memory.h"

#include "config/meminfo.h"
#include "session.h"

/* Pages first touched after the measurement: code of the loader and the
 * kernels, tables of extents and operations.  At most 0.2 MiB on x86-64. */
#define LATE_PAGES_BYTES	(MIB / 2)

static struct {
	unsigned n;
	struct {
		unsigned threads;
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
base_memory_bytes(void *arg, unsigned threads)
{
	unsigned i;

	(void)arg;
	for (i = 0; i < measured.n; i++)
		if (measured.of[i].threads == threads)
			return measured.of[i].nbytes;
	return 0;
}

static int
measure_worker(const struct plan_session *ps, const struct conf *c,
    int signal_fd, struct err *reterr)
{
	struct enforce_peak peak;
	struct enforce e;
	struct session s;
	int rc;

	enforce_open(&e, "probe", UINT64_MAX);
	rc = session_probe_retry(ps, c, &e, signal_fd, &s, reterr);
	if (rc == 0) {
		enforce_read_peak(&e, s.hello.rss_bytes, &peak);
		measured.of[measured.n].threads = ps->threads;
		meminfo_read_process(s.proc->child.pid, "VmSize",
		    &measured.of[measured.n].size_bytes);
		meminfo_read_process(s.proc->child.pid, "VmData",
		    &measured.of[measured.n].data_bytes);
		measured.of[measured.n++].nbytes = ALIGN_UP(peak.nbytes,
		    BASE_MEMORY_ROUND) + LATE_PAGES_BYTES;
		session_close(&s);
	}
	enforce_close(&e);
	return rc;
}

int
base_memory_measure(const struct conf *c, int signal_fd, struct err *reterr)
{
	struct plan_session ps;
	unsigned threads;
	int i, rc;

	for (i = 0; i < c->nsessions; i++) {
		threads = plan_threads(&c->session[i]);
		if (base_memory_bytes(NULL, threads) != 0 ||
		    measured.n == NITEMS(measured.of))
			continue;
		ps = plan_empty_session(&c->session[i], threads);
		ps.own_cores = plan_own_cores(c, (unsigned)i);
		if ((rc = measure_worker(&ps, c, signal_fd, reterr)) < 0)
			return rc;
	}
	return 0;
}
