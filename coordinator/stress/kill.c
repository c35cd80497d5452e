/* coordinator/stress/kill.c - cases about processes that end: a worker, all of
 * them, the coordinator. */
#include "stress.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layers/staging.h"
#include "shm/event.h"

/* A load is made to take so much longer, so that there is a middle to strike in;
 * twice as long whenever it was over too soon, as often as this. */
#define LOAD_NS		UINT64_C(300000000)
enum { LOAD_TRIES = 8 };

/* What the losses of a case took. */
struct toll {
	unsigned losses;
	double least_s, most_s;		/* to be as before */
	char last[256];
};

/* Each worker in turn, alone.  One that hangs costs seconds, for so long
 * nothing may move: there one is struck alone, and then all at once. */
static unsigned
rounds(const struct stress *x)
{
	return x->the->sig == SIGSTOP ? 2 : x->ss->n;
}

static void
choose(struct stress *x, unsigned round, struct strike *k)
{
	k->sig = x->the->sig;
	k->all = x->the->sig == SIGSTOP && round == 1;
	k->victim = x->the->sig == SIGSTOP ? stress_below(x,
	    (uint32_t)x->v->nsessions) : round;
}

/* The loss must have been noticed, for what it was. */
static void
count(struct stress *x, struct toll *t, const struct strike *k,
    unsigned losses, double s)
{
	const struct sessions *ss = x->ss;
	const char *name = ss->s[k->victim].name;
	unsigned want = k->all ? ss->n : 1;
	char how[64];

	snprintf(how, sizeof(how), x->the->sig == SIGSTOP ? "hangs" :
	    "signal %d ", x->the->sig);
	stress_want(x, losses == want, "session %s: %u losses, not %u", name,
	    losses, want);
	stress_want(x, strstr(ss->retry.last_loss, how) != NULL && (k->all || strstr(
	    ss->retry.last_loss, name) != NULL), "session %s: lost as \"%.150s\"", name,
	    ss->retry.last_loss);
	t->least_s = t->losses == 0 ? s : MIN(t->least_s, s);
	t->most_s = MAX(t->most_s, s);
	t->losses += losses;
	snprintf(t->last, sizeof(t->last), "%s", ss->retry.last_loss);
}

static void
say(struct stress *x, const struct toll *t)
{
	stress_note(x, "%u losses, like \"%.200s\"; the same logits, "
	    "recovered in %.3f to %.3f s", t->losses, t->last, t->least_s,
	    t->most_s);
}

/* --- in prefill and decode --- */

static int
each_at_work(struct stress *x, struct toll *t, struct err *reterr)
{
	struct work once, again;
	unsigned i, before;
	struct strike k;
	uint64_t t0;
	int rc;

	if ((rc = stress_begin(x, &once, reterr)) < 0)
		return rc;
	for (i = 0; i < rounds(x); i++) {
		stress_aim(x, &once, x->the->when, x->the->sig, &k);
		choose(x, i, &k);
		again = once;
		again.strike = &k;
		before = x->ss->retry.losses;
		t0 = x->ss->recovery_ns;
		if ((rc = stress_again(x, &again, reterr)) < 0)
			return rc;
		stress_same(x, &once, &again, x->ss->s[k.victim].name);
		count(x, t, &k, x->ss->retry.losses - before,
		    (double)(x->ss->recovery_ns - t0) / 1e9);
	}
	return stress_stop(x, reterr);
}

/* --- in the load --- */

struct ambush {
	struct stress *x;
	struct strike k;
};

static void
tick(const struct sessions *ss, void *arg)
{
	struct ambush *a = arg;

	if (!a->k.done && ss->s[a->k.victim].state == SESSION_LOADING)
		stress_strike(a->x, &a->k);
}

/* A load that takes ns more, and does not end. */
static int
load_struck(struct stress *x, unsigned round, uint64_t ns, struct ambush *a,
    struct err *reterr)
{
	static const struct load_conf lc = LOAD_CONF_DEFAULT;
	uint64_t nreads;
	unsigned i;
	int rc;

	if ((rc = stress_plan(x, reterr)) < 0 ||
	    (rc = stress_spawn(x, reterr)) < 0)
		return rc;
	*a = (struct ambush){ .x = x, .k = { .wait_ns = stress_below(x,
	    LOAD_NS / 4) } };
	choose(x, round, &a->k);
	for (i = 0; i < x->ss->n; i++) {
		nreads = x->plan->session[i].file_bytes / lc.block_bytes + 1;
		if ((a->k.all || i == a->k.victim) && (rc = stress_drill(x, i,
		    DRILL_SLOW, ns / nreads, reterr)) < 0)
			return rc;
	}
	return stress_load(x, tick, a, reterr);
}

/* Who strikes may be too late, where others want the cores. */
static int
load_until_struck(struct stress *x, unsigned round, struct ambush *a,
    struct err *reterr)
{
	unsigned k;
	int rc;

	for (k = 0; k < LOAD_TRIES; k++) {
		stress_close(x);
		if ((rc = load_struck(x, round, LOAD_NS << k, a, reterr)) < 0 ||
		    a->k.done)
			return rc;
	}
	stress_want(x, 0, "session %s had loaded before it was struck",
	    x->ss->s[a->k.victim].name);
	return 0;
}

static int
each_in_load(struct stress *x, struct toll *t, struct err *reterr)
{
	struct work once, again;
	struct engine_numbers nums;
	struct ambush a;
	unsigned i, n;
	int rc;

	if ((rc = stress_begin(x, &once, reterr)) < 0)
		return rc;
	n = rounds(x);
	for (i = 0; i < n; i++) {
		if ((rc = load_until_struck(x, i, &a, reterr)) < 0)
			return rc;
		again = once;
		if ((rc = stress_work(x, &again, reterr)) < 0 ||
		    (rc = stress_stop(x, reterr)) < 0)
			return rc;
		stress_same(x, &once, &again,
		    x->ss->s[a.k.victim].name);
		engine_numbers(x->eng, &nums);
		count(x, t, &a.k, nums.losses, (double)nums.load_ns / 1e9);
	}
	return 0;
}

int
stress_signal(struct stress *x, struct err *reterr)
{
	struct toll t = { 0 };
	int rc;

	if (x->the->sig == SIGSEGV && enforce_best(NULL) == ENFORCE_LEDGER) {
		stress_note(x, "a sanitizer takes signal %d itself", SIGSEGV);
		return STRESS_SKIP;
	}
	rc = x->the->when == IN_LOAD ? each_in_load(x, &t, reterr) :
	    each_at_work(x, &t, reterr);
	if (rc == 0)
		say(x, &t);
	return rc;
}

/* What is started again has no more room than what was lost. */
int
stress_signal_tight(struct stress *x, struct err *reterr)
{
	int rc = stress_tighten(x, 0, reterr);

	return rc < 0 ? rc : stress_signal(x, reterr);
}

int
stress_all_at_once(struct stress *x, struct err *reterr)
{
	struct work once, again;
	struct strike k;
	int rc;

	if ((rc = stress_begin(x, &once, reterr)) < 0)
		return rc;
	stress_aim(x, &once, IN_DECODE, x->the->sig, &k);
	k.all = 1;
	again = once;
	again.strike = &k;
	if ((rc = stress_again(x, &again, reterr)) < 0 ||
	    (rc = stress_stop(x, reterr)) < 0)
		return rc;
	stress_same(x, &once, &again, "all at once");
	stress_want(x, x->ss->retry.losses == x->ss->n, "%u losses of %u "
	    "workers", x->ss->retry.losses, x->ss->n);
	stress_note(x, "%u workers struck by signal %d; the same logits, %.3f "
	    "s instead of %.3f s", x->ss->retry.losses, x->the->sig, again.s,
	    once.s);
	return 0;
}

/* --- the coordinator --- */

/* Another coordinator: tells its workers once they are at work, and works on
 * until it is killed. */
static NORETURN void
other_coordinator(struct stress *x, int fd)
{
	struct err e = { 0 };
	struct work w;
	pid_t pid[MAX_SESSIONS] = { 0 };
	char dirs[MAX_SESSIONS][CGROUP_PATH];
	unsigned i;

	memset(dirs, 0, sizeof(dirs));
	if (stress_start(x, &e) < 0)
		_exit(1);
	for (i = 0; i < x->ss->n; i++) {
		pid[i] = x->ss->s[i].child.pid;
		snprintf(dirs[i], sizeof(dirs[i]), "%s",
		    x->ss->enforce[i].group.dir);
	}
	if (write(fd, pid, sizeof(pid)) != sizeof(pid) ||
	    write(fd, dirs, sizeof(dirs)) != sizeof(dirs))
		_exit(1);
	stress_work_init(x, &w);
	while (stress_again(x, &w, &e) == 0)
		;
	_exit(1);
}

static int
read_all(int fd, void *buf, size_t nbytes)
{
	char *p = buf;
	ssize_t n;

	while (nbytes > 0) {
		if ((n = read(fd, p, nbytes)) <= 0)
			return -EPIPE;
		p += n;
		nbytes -= (size_t)n;
	}
	return 0;
}

/* Not there, or only as an entry that nobody has asked for yet. */
static int
is_gone(pid_t pid)
{
	char path[64], line[256], *end;
	FILE *fp;
	int gone = 1;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if ((fp = fopen(path, "re")) == NULL)
		return 1;
	if (fgets(line, sizeof(line), fp) != NULL &&
	    (end = strrchr(line, ')')) != NULL && end[1] == ' ')
		gone = end[2] == 'Z' || end[2] == 'X';
	fclose(fp);
	return gone;
}

/* What a group counts that nobody is in any more: shared memory, if it was. */
static uint64_t
bytes_of(const char *dir)
{
	static const char *const names[] = { "memory.current",
	    "memory.usage_in_bytes" };
	char path[CGROUP_PATH + 32];
	unsigned long long n = 0;
	unsigned i;
	FILE *fp;

	for (i = 0; i < NITEMS(names); i++) {
		snprintf(path, sizeof(path), "%.1023s/%s", dir, names[i]);
		if ((fp = fopen(path, "re")) == NULL)
			continue;
		if (fscanf(fp, "%llu", &n) != 1)
			n = 0;
		fclose(fp);
	}
	return n;
}

static double
wait_for_orphans(struct stress *x, const pid_t *pid)
{
	uint64_t t0 = event_now_ns();
	unsigned i, left;

	do {
		poll(NULL, 0, 1);
		for (left = i = 0; i < MAX_SESSIONS && pid[i] > 0; i++)
			left += !is_gone(pid[i]);
	} while (left > 0 && event_now_ns() - t0 < stress_patience(x));
	stress_want(x, left == 0, "%u of %u workers live on", left, i);
	return (double)(event_now_ns() - t0) / 1e9;
}

static void
want_groups_empty(struct stress *x, char dirs[][CGROUP_PATH])
{
	uint64_t end = event_now_ns() + stress_patience(x), sum = 0, left;
	unsigned i, n = 0;

	for (i = 0; i < MAX_SESSIONS && dirs[i][0] != '\0'; i++, n++) {
		/* What io_uring had pinned is freed when the kernel likes. */
		while (bytes_of(dirs[i]) >= MIB && event_now_ns() < end)
			poll(NULL, 0, 10);
		left = bytes_of(dirs[i]);
		sum += left;
		/* The kernel keeps some pages of its own for a while. */
		stress_want(x, left < MIB, "group %s still holds %llu bytes",
		    dirs[i], (unsigned long long)left);
		while (rmdir(dirs[i]) < 0 && errno == EBUSY &&
		    event_now_ns() < end)
			poll(NULL, 0, 10);
		stress_want(x, access(dirs[i], F_OK) < 0, "group %s cannot "
		    "be removed: %s", dirs[i], strerror(errno));
	}
	if (n > 0)
		stress_note(x, "%llu bytes left in their %u groups, which "
		    "could be removed", (unsigned long long)sum, n);
}

int
stress_no_coordinator(struct stress *x, struct err *reterr)
{
	static char dirs[MAX_SESSIONS][CGROUP_PATH];
	pid_t other, pid[MAX_SESSIONS] = { 0 };
	unsigned n = 0;
	int p[2], rc;

	if (pipe(p) < 0)
		return err_set(reterr, ERR_RUN, -errno, "pipe: %s",
		    strerror(errno));
	if ((other = fork()) == 0)
		other_coordinator(x, p[1]);
	close(p[1]);
	rc = other < 0 ? -EAGAIN : 0;
	if (rc == 0 && ((rc = read_all(p[0], pid, sizeof(pid))) < 0 ||
	    (rc = read_all(p[0], dirs, sizeof(dirs))) < 0))
		err_set(reterr, ERR_RUN, rc, "another coordinator could not "
		    "start");
	close(p[0]);
	if (other > 0) {
		poll(NULL, 0, (int)stress_below(x, 200));
		kill(other, SIGKILL);
		waitpid(other, NULL, 0);
	}
	if (rc < 0)
		return rc;
	while (n < MAX_SESSIONS && pid[n] > 0)
		n++;
	stress_note(x, "kill -9 of a coordinator at work; its %u workers "
	    "were gone after %.3f s, and with them all that held shared "
	    "memory", n, wait_for_orphans(x, pid));
	want_groups_empty(x, dirs);
	return 0;
}
