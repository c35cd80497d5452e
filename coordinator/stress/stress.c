/* coordinator/stress/stress.c - the pipeline of a case, from its settings to
 * the check that nothing is left of it. */
#include "stress.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bsd/string.h>

#include "shm/event.h"
#include "shm/ring.h"
#include "config/words.h"

#define CHECK_NS		UINT64_C(250000000)

/* Timeout of an expected event: a minute, and ten times the longest load or
 * work. */
#define MIN_TIMEOUT_NS	UINT64_C(60000000000)
enum { TIMEOUT_FACTOR = 10 };

/* --- notes and checks --- */

void
stress_note(struct stress *x, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	words_vadd(x->detail, sizeof(x->detail), "; ", fmt, ap);
	va_end(ap);
}

void
stress_check(struct stress *x, int ok, const char *fmt, ...)
{
	va_list ap;

	if (ok)
		return;
	va_start(ap, fmt);
	words_vadd(x->failure, sizeof(x->failure), "; ", fmt, ap);
	va_end(ap);
}

uint32_t
stress_random(struct stress *x, uint32_t n)
{
	return n > 0 ? rng_next(&x->rng) % n : 0;
}

/* --- resources of this process --- */

unsigned
stress_count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	if (d == NULL)
		return 0;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

unsigned
stress_count_maps(void)
{
	FILE *fp = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	if (fp == NULL)
		return 0;
	while (fgets(line, sizeof(line), fp) != NULL)
		n += strstr(line, "/memfd:straddle") != NULL;
	fclose(fp);
	return n;
}

/* --- starting --- */

int
stress_plan(struct stress *x, struct err *reterr)
{
	int rc;

	x->nfds = stress_count_fds();
	x->nmaps = stress_count_maps();
	x->is_open = 1;
	if ((rc = engine_open(x->conf, &x->eng, reterr)) < 0)
		return rc;
	x->plan = engine_plan_of(x->eng);
	return engine_plan(x->eng, reterr);
}

int
stress_spawn(struct stress *x, struct err *reterr)
{
	int rc = engine_spawn(x->eng, reterr);

	x->ss = engine_sessions_of(x->eng);
	return rc;
}

int
stress_load(struct stress *x, sessions_tick_fn *tick, void *arg,
    struct err *reterr)
{
	struct engine_numbers n;
	int rc = engine_load(x->eng, tick, arg, reterr);

	x->pipe = engine_pipeline_of(x->eng);
	engine_numbers(x->eng, &n);
	x->took_ns = MAX(x->took_ns, n.load_ns);
	return rc;
}

int
stress_start(struct stress *x, struct err *reterr)
{
	int rc;

	if ((rc = stress_plan(x, reterr)) < 0 ||
	    (rc = stress_spawn(x, reterr)) < 0)
		return rc;
	return stress_load(x, NULL, NULL, reterr);
}

int
stress_tighten_caps(struct stress *x, int64_t slack, struct err *reterr)
{
	uint64_t cap[MAX_SESSIONS], most;
	unsigned i, n = 0;
	int rc = stress_plan(x, reterr);

	for (; rc == 0 && n < x->plan->nsessions; n++) {
		most = x->plan->session[n].total_bytes + (uint64_t)slack;
		cap[n] = MIN(x->plan->session[n].cap_bytes, most);
	}
	stress_close(x);
	for (i = 0; i < n; i++)
		x->conf->session[i].cap_bytes = cap[i];
	return rc;
}

/* --- misbehaviour --- */

int
stress_send_drill(struct stress *x, unsigned i, enum drill_kind kind,
    uint64_t n, struct err *reterr)
{
	struct wire_drill d = { .kind = kind, .n = n };
	struct sessions *ss = x->ss;
	int rc = session_send(&ss->s[i], WIRE_DRILL, &d, sizeof(d), NULL, 0,
	    reterr);

	if (rc < 0)
		return rc;
	atomic_fetch_add_explicit(&ss->s[i].status->call, 1,
	    memory_order_release);				/* S1 */
	ring_wake(&ss->ring[i]);
	ring_wake(&ss->ring[i + 1]);
	return 0;
}

uint64_t
stress_timeout_ns(const struct stress *x)
{
	return MIN_TIMEOUT_NS + TIMEOUT_FACTOR * x->took_ns;
}

int
stress_wait_failure(struct stress *x, struct err *reterr)
{
	uint64_t ns = stress_timeout_ns(x), deadline = event_now_ns() + ns;
	int rc;

	do {
		rc = sessions_wait(x->ss, 0, event_now_ns() + CHECK_NS,
		    reterr);
	} while ((rc == 0 || rc == -ETIMEDOUT) && event_now_ns() < deadline);
	return rc < 0 && rc != -ETIMEDOUT ? rc : err_set(reterr, ERR_RUN,
	    -ETIMEDOUT, "no failure was detected within %.0f s", (double)ns / 1e9);
}

/* --- ending --- */

/* Read each session's peak as counted by the kernel.  Without the worker's
 * final report (with_stats 0), only a group's own peak is known. */
static void
take_peaks(struct stress *x, int with_stats)
{
	const struct sessions *ss = x->ss;
	const struct session *s;
	struct enforce_peak p;
	struct stress_peak *k;
	unsigned i;

	for (i = 0; ss != NULL && i < ss->n; i++) {
		s = &ss->s[i];
		k = &x->peak[i];
		if (!session_is_first(s))
			continue;
		x->by = s->proc->enforce->by;
		strlcpy(x->name[i], s->name, sizeof(x->name[i]));
		if (with_stats)
			p = s->peak;
		else if (x->by == ENFORCE_CGROUP)
			enforce_read_peak(s->proc->enforce, 0, &p);
		else
			continue;
		if (with_stats) {
			k->ledger_bytes = session_worker_ledger(s);
			k->unaccounted = session_worker_unaccounted(s);
		}
		k->known = 1;
		k->cap_bytes = session_worker_cap(s);
		k->peak_bytes = MAX(k->peak_bytes, p.nbytes);
		/* With the ledger alone, the peak may include a sanitizer's
		 * shadow memory. */
		stress_check(x, x->by == ENFORCE_LEDGER || p.nbytes <=
		    k->cap_bytes, "session %s: peak of %" PRIu64 " bytes over "
		    "its cap of %" PRIu64, s->name, p.nbytes, k->cap_bytes);
	}
}

int
stress_stop(struct stress *x, struct err *reterr)
{
	int rc = engine_stop(x->eng, reterr);

	if (rc == 0)
		take_peaks(x, 1);
	return rc;
}

/* Check for leaked groups, descriptors, shared maps and processes. */
static void
check_nothing_left(struct stress *x, const char *dirs, unsigned ndirs)
{
	unsigned i, n = stress_count_fds();
	siginfo_t si = { 0 };

	stress_check(x, n <= x->nfds, "%u descriptors are left open",
	    n - x->nfds);
	n = stress_count_maps();
	stress_check(x, n <= x->nmaps, "%u shared maps are left",
	    n - x->nmaps);
	stress_check(x, waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) <
	    0 && errno == ECHILD, "a worker is left");
	for (i = 0; i < ndirs; i++, dirs += CGROUP_PATH)
		stress_check(x, dirs[0] == '\0' || access(dirs, F_OK) < 0,
		    "group %s is left", dirs);
}

void
stress_close(struct stress *x)
{
	static char dirs[MAX_SESSIONS][CGROUP_PATH];
	unsigned i, n = 0;

	if (!x->is_open)
		return;
	if (x->ss != NULL) {
		take_peaks(x, 0);
		for (n = x->ss->n, i = 0; i < n; i++)
			strlcpy(dirs[i], x->ss->enforce[i].group.dir,
			    sizeof(dirs[i]));
	}
	engine_close(x->eng);
	x->eng = NULL;
	x->plan = NULL;
	x->ss = NULL;
	x->pipe = NULL;
	x->is_open = 0;
	check_nothing_left(x, dirs[0], n);
}
