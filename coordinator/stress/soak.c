/* coordinator/stress/soak.c - a long run: texts come and go, workers are lost,
 * whole pipelines end and start.  The resources of all processes, counted when
 * nothing is in flight, must not grow.
 *
 * The time is divided into quarters, each of which has at least one round,
 * however slow the machine is.  The first quarter warms up; the maximum of the
 * second is compared with that of the last. */
#include "stress.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/event.h"

enum { QUARTERS = 4, ROUNDS_PER_PIPELINE = 64, LONG_S = 120 };

/* Allowed growth: the kernel may add a huge page, and heaps vary a little. */
#define WORKER_SLACK	(2 * MIB)
#define OWN_SLACK	(MIB / 2)

struct resources {
	unsigned ncounts;
	uint64_t fds, maps, own_bytes;
	uint64_t worker_bytes[MAX_SESSIONS], worker_fds[MAX_SESSIONS];
};

struct soak {
	struct stress *x;
	uint64_t t0, end;
	struct resources most[QUARTERS];
	unsigned quarter;		/* of the next count */
	unsigned rounds, pipelines, losses, hangs;
	double recover_s;
};

/* Sum of the fields a and b of /proc/PID/status; 0 = unknown. */
static unsigned long long
sum_status_fields(pid_t pid, const char *a, const char *b)
{
	char path[64], line[128], *colon;
	unsigned long long sum = 0;
	FILE *fp;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if ((fp = fopen(path, "re")) == NULL)
		return 0;
	while (fgets(line, sizeof(line), fp) != NULL) {
		if ((colon = strchr(line, ':')) == NULL)
			continue;
		*colon = '\0';
		if (strcmp(line, a) == 0 || strcmp(line, b) == 0)
			sum += strtoull(colon + 1, NULL, 10);
	}
	fclose(fp);
	return sum;
}

/* Private and shared memory of a process, in bytes; 0 = unknown. */
static uint64_t
read_memory(pid_t pid)
{
	return sum_status_fields(pid, "RssAnon", "RssShmem") * KIB;
}

/* Size of a process's descriptor table.  Unlike the descriptors themselves, any
 * user may read it. */
static uint64_t
read_fd_table_size(pid_t pid)
{
	return sum_status_fields(pid, "FDSize", "");
}

static int
is_over(const struct soak *s)
{
	return event_now_ns() >= s->end && s->most[QUARTERS - 1].ncounts > 0;
}

/* Count all resources and keep the quarter's maxima. */
static void
count_resources(struct soak *s)
{
	const struct sessions *ss = s->x->ss;
	uint64_t now = event_now_ns();
	struct resources *h;
	unsigned i;

	if ((now - s->t0) * QUARTERS / (s->end - s->t0) > s->quarter &&
	    s->quarter < QUARTERS - 1 && s->most[s->quarter].ncounts > 0)
		s->quarter++;
	h = &s->most[s->quarter];
	h->ncounts++;
	h->fds = MAX(h->fds, stress_count_fds());
	h->maps = MAX(h->maps, stress_count_maps());
	h->own_bytes = MAX(h->own_bytes, read_memory(getpid()));
	for (i = 0; i < ss->n; i++) {
		pid_t pid = ss->s[i].proc->child.pid;

		h->worker_bytes[i] = MAX(h->worker_bytes[i], read_memory(pid));
		h->worker_fds[i] = MAX(h->worker_fds[i], read_fd_table_size(pid));
	}
}

/* Choose the round's signal; 0 = none, in half of the rounds.  A long soak also
 * hangs a worker in one of fifty rounds, which costs seconds. */
static int
choose_signal(struct soak *s, const struct work *once, struct timed_signal *k)
{
	static const int signals[] = { SIGKILL, SIGSEGV, SIGTERM };
	struct stress *x = s->x;
	int sig = signals[stress_random(x, NITEMS(signals))];

	if (stress_random(x, 2) == 0)
		return 0;
	if (x->soak_s >= LONG_S && stress_random(x, 25) == 0)
		sig = SIGSTOP;
	stress_choose_signal(x, once, stress_random(x, 2) ? IN_PREFILL :
	    IN_DECODE, sig, k);
	k->victim = stress_random(x, x->ss->n);
	s->hangs += sig == SIGSTOP;
	return 1;
}

/* Start a pipeline, run ROUNDS_PER_PIPELINE rounds, stop it. */
static int
run_pipeline(struct soak *s, struct work *once, struct err *reterr)
{
	struct stress *x = s->x;
	struct work again;
	struct timed_signal k;
	unsigned n, before;
	uint64_t t0;
	int rc;

	if ((rc = stress_start(x, reterr)) < 0)
		return rc;
	if (s->rounds == 0) {
		stress_work_init(x, once);
		if ((rc = stress_run_work(x, once, reterr)) < 0)
			return rc;
	}
	for (n = 0; n < ROUNDS_PER_PIPELINE && !is_over(s); n++) {
		again = *once;
		before = x->ss->retry.losses;
		t0 = x->ss->recovery_ns;
		again.signal = choose_signal(s, once, &k) ? &k : NULL;
		if ((rc = stress_repeat_work(x, &again, reterr)) < 0)
			return rc;
		stress_compare(x, once, &again, "in the soak");
		stress_check(x, x->ss->retry.losses - before ==
		    (again.signal != NULL), "%u losses for %d signals",
		    x->ss->retry.losses - before, again.signal != NULL);
		s->recover_s = MAX(s->recover_s,
		    (double)(x->ss->recovery_ns - t0) / 1e9);
		s->rounds++;
		count_resources(s);
	}
	s->losses += x->ss->retry.losses;
	s->pipelines++;
	if ((rc = stress_stop(x, reterr)) == 0)
		stress_close(x);
	return rc;
}

/* Compare the last quarter with the second. */
static void
judge_growth(struct soak *s, unsigned n)
{
	const struct resources *a = &s->most[1], *b = &s->most[QUARTERS - 1];
	struct stress *x = s->x;
	int64_t worst = INT64_MIN, grown;
	unsigned i;
	int judged;

	stress_check(x, b->fds <= a->fds, "the coordinator's descriptors grew "
	    "from %" PRIu64 " to %" PRIu64, a->fds, b->fds);
	stress_check(x, b->maps <= a->maps, "the coordinator's shared maps "
	    "grew from %" PRIu64 " to %" PRIu64, a->maps, b->maps);
	/* A sanitizer keeps freed memory for a while. */
	judged = x->by != ENFORCE_LEDGER;
	stress_check(x, !judged || b->own_bytes <= a->own_bytes + OWN_SLACK,
	    "the coordinator's memory grew from %" PRIu64 " to %" PRIu64
	    " bytes", a->own_bytes, b->own_bytes);
	for (i = 0; i < n; i++) {
		grown = (int64_t)(b->worker_bytes[i] - a->worker_bytes[i]);
		worst = MAX(worst, grown);
		stress_check(x, !judged || grown <= (int64_t)WORKER_SLACK,
		    "session %s: its memory grew from %" PRIu64 " to %" PRIu64
		    " bytes", x->name[i], a->worker_bytes[i],
		    b->worker_bytes[i]);
		stress_check(x, b->worker_fds[i] <= a->worker_fds[i],
		    "session %s: its descriptors grew", x->name[i]);
	}
	stress_note(x, "from the second quarter to the last: descriptors %"
	    PRIu64 " to %" PRIu64 ", shared maps %" PRIu64 " to %" PRIu64
	    ", coordinator %" PRIu64 " to %" PRIu64 " KiB, workers %+" PRId64
	    " KiB at most", a->fds, b->fds, a->maps, b->maps,
	    a->own_bytes / KIB, b->own_bytes / KIB, worst / (int64_t)KIB);
	if (!judged)
		stress_note(x, "memory growth was not checked: the kernel "
		    "enforces no caps here");
}

int
stress_soak(struct stress *x, struct err *reterr)
{
	struct soak s = { .x = x, .t0 = event_now_ns() };
	struct work once;
	int rc;

	s.end = s.t0 + (uint64_t)x->soak_s * UINT64_C(1000000000);
	do {
		if ((rc = run_pipeline(&s, &once, reterr)) < 0)
			return rc;
	} while (!is_over(&s));
	stress_note(x, "%d s: %u rounds in %u pipelines, %u losses, of them %u "
	    "by hanging; the same logits; recovered in %.3f s at most",
	    x->soak_s, s.rounds, s.pipelines, s.losses, s.hangs, s.recover_s);
	judge_growth(&s, (unsigned)x->given->nsessions);
	return 0;
}
