/* coordinator/stress/soak.c - the same for a long time: texts come and go,
 * workers are lost, whole pipelines end and begin.  What the processes hold is
 * counted whenever nothing is under way, and must not grow.
 *
 * The time is cut into quarters, each of which lasts until there was a round in
 * it, however slow the machine.  The first warms up; what is held at most in the
 * second is compared with what is held at most in the last. */
#include "stress.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/event.h"

enum { QUARTERS = 4, LIFE = 64, LONG_S = 120 };

/* A huge page more or less is the kernel's choice; a heap has some play. */
#define WORKER_PLAY	(2 * MIB)
#define OWN_PLAY	(MIB / 2)

struct held {
	unsigned nlooks;
	uint64_t fds, maps, own_bytes;
	uint64_t worker_bytes[MAX_SESSIONS], worker_fds[MAX_SESSIONS];
};

struct soak {
	struct stress *x;
	uint64_t t0, end;
	struct held most[QUARTERS];
	unsigned quarter;		/* of the next look */
	unsigned rounds, lives, losses, hangs;
	double recover_s;
};

/* Private and shared memory of a process; 0 = unknown. */
static uint64_t
memory_of(pid_t pid)
{
	char path[64], line[128];
	unsigned long long kib, sum = 0;
	FILE *fp;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if ((fp = fopen(path, "re")) == NULL)
		return 0;
	while (fgets(line, sizeof(line), fp) != NULL)
		if (sscanf(line, "RssAnon: %llu", &kib) == 1 ||
		    sscanf(line, "RssShmem: %llu", &kib) == 1)
			sum += kib;
	fclose(fp);
	return (uint64_t)sum * KIB;
}

/* Descriptors that a process has room for: FDSize, which anyone may read. */
static uint64_t
room_of_fds(pid_t pid)
{
	char path[64], line[128];
	unsigned long long n = 0;
	FILE *fp;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if ((fp = fopen(path, "re")) == NULL)
		return 0;
	while (n == 0 && fgets(line, sizeof(line), fp) != NULL)
		if (sscanf(line, "FDSize: %llu", &n) != 1)
			n = 0;
	fclose(fp);
	return n;
}

static int
is_over(const struct soak *s)
{
	return event_now_ns() >= s->end && s->most[QUARTERS - 1].nlooks > 0;
}

static void
look(struct soak *s)
{
	const struct sessions *ss = s->x->ss;
	uint64_t now = event_now_ns();
	struct held *h;
	unsigned i;

	if ((now - s->t0) * QUARTERS / (s->end - s->t0) > s->quarter &&
	    s->quarter < QUARTERS - 1 && s->most[s->quarter].nlooks > 0)
		s->quarter++;
	h = &s->most[s->quarter];
	h->nlooks++;
	h->fds = MAX(h->fds, stress_count_fds());
	h->maps = MAX(h->maps, stress_count_maps());
	h->own_bytes = MAX(h->own_bytes, memory_of(getpid()));
	for (i = 0; i < ss->n; i++) {
		pid_t pid = ss->s[i].child.pid;

		h->worker_bytes[i] = MAX(h->worker_bytes[i], memory_of(pid));
		h->worker_fds[i] = MAX(h->worker_fds[i], room_of_fds(pid));
	}
}

/* A signal in half of the rounds; where there are minutes, one in fifty hangs,
 * which costs seconds. */
static int
aim(struct soak *s, const struct work *once, struct strike *k)
{
	static const int signals[] = { SIGKILL, SIGSEGV, SIGTERM };
	struct stress *x = s->x;
	int sig = signals[stress_below(x, NITEMS(signals))];

	if (stress_below(x, 2) == 0)
		return 0;
	if (x->soak_s >= LONG_S && stress_below(x, 25) == 0)
		sig = SIGSTOP;
	stress_aim(x, once, stress_below(x, 2) ? IN_PREFILL : IN_DECODE, sig,
	    k);
	k->victim = stress_below(x, x->ss->n);
	s->hangs += sig == SIGSTOP;
	return 1;
}

/* One pipeline, LIFE rounds long. */
static int
life(struct soak *s, struct work *once, struct err *reterr)
{
	struct stress *x = s->x;
	struct work again;
	struct strike k;
	unsigned n, before;
	uint64_t t0;
	int rc;

	if ((rc = stress_start(x, reterr)) < 0)
		return rc;
	if (s->rounds == 0) {
		stress_work_init(x, once);
		if ((rc = stress_work(x, once, reterr)) < 0)
			return rc;
	}
	for (n = 0; n < LIFE && !is_over(s); n++) {
		again = *once;
		before = x->ss->retry.losses;
		t0 = x->ss->recovery_ns;
		again.strike = aim(s, once, &k) ? &k : NULL;
		if ((rc = stress_again(x, &again, reterr)) < 0)
			return rc;
		stress_same(x, once, &again, "in the soak");
		stress_want(x, x->ss->retry.losses - before ==
		    (again.strike != NULL), "%u losses for %d signals",
		    x->ss->retry.losses - before, again.strike != NULL);
		s->recover_s = MAX(s->recover_s,
		    (double)(x->ss->recovery_ns - t0) / 1e9);
		s->rounds++;
		look(s);
	}
	s->losses += x->ss->retry.losses;
	s->lives++;
	if ((rc = stress_stop(x, reterr)) == 0)
		stress_close(x);
	return rc;
}

static void
verdict(struct soak *s, unsigned n)
{
	const struct held *a = &s->most[1], *b = &s->most[QUARTERS - 1];
	struct stress *x = s->x;
	int64_t worst = INT64_MIN, grown;
	unsigned i;
	int judged;

	stress_want(x, b->fds <= a->fds, "the coordinator's descriptors grew "
	    "from %" PRIu64 " to %" PRIu64, a->fds, b->fds);
	stress_want(x, b->maps <= a->maps, "the coordinator's shared maps "
	    "grew from %" PRIu64 " to %" PRIu64, a->maps, b->maps);
	/* A sanitizer keeps what is freed for a while. */
	judged = x->by != ENFORCE_LEDGER;
	stress_want(x, !judged || b->own_bytes <= a->own_bytes + OWN_PLAY,
	    "the coordinator's memory grew from %" PRIu64 " to %" PRIu64
	    " bytes", a->own_bytes, b->own_bytes);
	for (i = 0; i < n; i++) {
		grown = (int64_t)(b->worker_bytes[i] - a->worker_bytes[i]);
		worst = MAX(worst, grown);
		stress_want(x, !judged || grown <= (int64_t)WORKER_PLAY,
		    "session %s: its memory grew from %" PRIu64 " to %" PRIu64
		    " bytes", x->name[i], a->worker_bytes[i],
		    b->worker_bytes[i]);
		stress_want(x, b->worker_fds[i] <= a->worker_fds[i],
		    "session %s: its descriptors grew", x->name[i]);
	}
	stress_note(x, "from the second quarter to the last: descriptors %"
	    PRIu64 " to %" PRIu64 ", shared maps %" PRIu64 " to %" PRIu64
	    ", coordinator %" PRIu64 " to %" PRIu64 " KiB, workers %+" PRId64
	    " KiB at most", a->fds, b->fds, a->maps, b->maps,
	    a->own_bytes / KIB, b->own_bytes / KIB, worst / (int64_t)KIB);
	if (!judged)
		stress_note(x, "memory was not judged: nothing of the kernel "
		    "holds the caps here");
}

int
stress_soak(struct stress *x, struct err *reterr)
{
	struct soak s = { .x = x, .t0 = event_now_ns() };
	struct work once;
	int rc;

	s.end = s.t0 + (uint64_t)x->soak_s * UINT64_C(1000000000);
	do {
		if ((rc = life(&s, &once, reterr)) < 0)
			return rc;
	} while (!is_over(&s));
	stress_note(x, "%d s: %u rounds in %u pipelines, %u losses, of them %u "
	    "by hanging; the same logits; recovered in %.3f s at most",
	    x->soak_s, s.rounds, s.lives, s.losses, s.hangs, s.recover_s);
	verdict(&s, (unsigned)x->c->nsessions);
	return 0;
}
