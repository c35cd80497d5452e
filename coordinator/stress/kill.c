/* coordinator/stress/kill.c - cases in which processes are killed: one worker,
 * all workers, the coordinator. */
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

/* The load is slowed down by this time, so that a signal can come during it.
 * If the load ends before the signal, it is repeated with twice the time. */
#define LOAD_NS		UINT64_C(300000000)
enum { LOAD_TRIES = 8 };

/* The losses of a case. */
struct losses {
	unsigned n;
	double least_s, most_s;		/* time to recover */
	char last[256];			/* how the last one was reported */
};

/* One round for each worker.  Detecting a hang takes seconds, so SIGSTOP has
 * two rounds only: one worker, and then all at once. */
static unsigned
count_rounds(const struct stress *x)
{
	return x->current->sig == SIGSTOP ? 2 : x->ss->n;
}

static void
choose_victim(struct stress *x, unsigned round, struct timed_signal *k)
{
	k->sig = x->current->sig;
	k->all = x->current->sig == SIGSTOP && round == 1;
	k->victim = x->current->sig == SIGSTOP ? stress_random(x,
	    (uint32_t)x->conf->nsessions) : round;
}

/* Check that the loss was detected and reported with its cause. */
static void
check_loss(struct stress *x, struct losses *t, const struct timed_signal *k,
    unsigned losses, double s)
{
	const struct sessions *ss = x->ss;
	const char *name = ss->s[k->victim].name;
	unsigned want = k->all ? sessions_workers(ss) : 1;
	char how[64];

	snprintf(how, sizeof(how), x->current->sig == SIGSTOP ? "hangs" :
	    "signal %d ", x->current->sig);
	stress_check(x, losses == want, "session %s: %u losses, not %u", name,
	    losses, want);
	stress_check(x, strstr(ss->retry.last_loss, how) != NULL && (k->all || strstr(
	    ss->retry.last_loss, name) != NULL), "session %s: its loss was "
	    "reported as \"%.150s\"", name,
	    ss->retry.last_loss);
	t->least_s = t->n == 0 ? s : MIN(t->least_s, s);
	t->most_s = MAX(t->most_s, s);
	t->n += losses;
	snprintf(t->last, sizeof(t->last), "%s", ss->retry.last_loss);
}

static void
note_losses(struct stress *x, const struct losses *t)
{
	stress_note(x, "%u losses, like \"%.200s\"; the same logits, "
	    "recovered in %.3f to %.3f s", t->n, t->last, t->least_s,
	    t->most_s);
}

/* --- in prefill and decode --- */

static int
signal_each_at_work(struct stress *x, struct losses *t, struct err *reterr)
{
	struct work once, again;
	unsigned i, before;
	struct timed_signal k;
	uint64_t t0;
	int rc;

	if ((rc = stress_start_work(x, &once, reterr)) < 0)
		return rc;
	for (i = 0; i < count_rounds(x); i++) {
		stress_choose_signal(x, &once, x->current->when, x->current->sig, &k);
		choose_victim(x, i, &k);
		again = once;
		again.signal = &k;
		before = x->ss->retry.losses;
		t0 = x->ss->recovery_ns;
		if ((rc = stress_repeat_work(x, &again, reterr)) < 0)
			return rc;
		stress_compare(x, &once, &again, x->ss->s[k.victim].name);
		check_loss(x, t, &k, x->ss->retry.losses - before,
		    (double)(x->ss->recovery_ns - t0) / 1e9);
	}
	return stress_stop(x, reterr);
}

/* --- in the load --- */

struct load_signal {
	struct stress *x;
	struct timed_signal k;
};

static void
send_in_load(const struct sessions *ss, void *arg)
{
	struct load_signal *a = arg;

	if (!a->k.done && ss->s[a->k.victim].state == SESSION_LOADING)
		stress_send_signal(a->x, &a->k);
}

/* Start a pipeline whose load takes ns longer, and send the signal during
 * it. */
static int
load_with_signal(struct stress *x, unsigned round, uint64_t ns,
    struct load_signal *a, struct err *reterr)
{
	static const struct load_conf lc = LOAD_CONF_DEFAULT;
	uint64_t nreads;
	unsigned i;
	int rc;

	if ((rc = stress_plan(x, reterr)) < 0 ||
	    (rc = stress_spawn(x, reterr)) < 0)
		return rc;
	*a = (struct load_signal){ .x = x, .k = { .wait_ns = stress_random(x,
	    LOAD_NS / 4) } };
	choose_victim(x, round, &a->k);
	for (i = 0; i < x->ss->n; i++) {
		nreads = x->plan->session[i].file_bytes / lc.block_bytes + 1;
		if ((a->k.all || i == a->k.victim) && (rc = stress_send_drill(x, i,
		    DRILL_SLOW, ns / nreads, reterr)) < 0)
			return rc;
	}
	return stress_load(x, send_in_load, a, reterr);
}

/* On a busy machine the signal may come after the load: repeat it then. */
static int
load_until_signalled(struct stress *x, unsigned round, struct load_signal *a,
    struct err *reterr)
{
	unsigned k;
	int rc;

	for (k = 0; k < LOAD_TRIES; k++) {
		stress_close(x);
		if ((rc = load_with_signal(x, round, LOAD_NS << k, a, reterr)) < 0 ||
		    a->k.done)
			return rc;
	}
	stress_check(x, 0, "session %s had loaded before the signal was sent",
	    x->ss->s[a->k.victim].name);
	return 0;
}

static int
signal_each_in_load(struct stress *x, struct losses *t, struct err *reterr)
{
	struct work once, again;
	struct engine_numbers nums;
	struct load_signal a;
	unsigned i, n;
	int rc;

	if ((rc = stress_start_work(x, &once, reterr)) < 0)
		return rc;
	n = count_rounds(x);
	for (i = 0; i < n; i++) {
		if ((rc = load_until_signalled(x, i, &a, reterr)) < 0)
			return rc;
		again = once;
		if ((rc = stress_run_work(x, &again, reterr)) < 0 ||
		    (rc = stress_stop(x, reterr)) < 0)
			return rc;
		stress_compare(x, &once, &again,
		    x->ss->s[a.k.victim].name);
		engine_numbers(x->eng, &nums);
		check_loss(x, t, &a.k, nums.losses, (double)nums.load_ns / 1e9);
	}
	return 0;
}

int
stress_signal(struct stress *x, struct err *reterr)
{
	struct losses t = { 0 };
	int rc;

	if (x->current->sig == SIGSEGV && enforce_best(NULL) == ENFORCE_LEDGER) {
		stress_note(x, "a sanitizer takes signal %d itself", SIGSEGV);
		return STRESS_SKIP;
	}
	rc = x->current->when == IN_LOAD ? signal_each_in_load(x, &t, reterr) :
	    signal_each_at_work(x, &t, reterr);
	if (rc == 0)
		note_losses(x, &t);
	return rc;
}

/* The replacement of a worker must fit into the same cap. */
int
stress_signal_tight(struct stress *x, struct err *reterr)
{
	int rc = stress_tighten_caps(x, 0, reterr);

	return rc < 0 ? rc : stress_signal(x, reterr);
}

int
stress_all_at_once(struct stress *x, struct err *reterr)
{
	struct work once, again;
	struct timed_signal k;
	unsigned n;
	int rc;

	if ((rc = stress_start_work(x, &once, reterr)) < 0)
		return rc;
	stress_choose_signal(x, &once, IN_DECODE, x->current->sig, &k);
	k.all = 1;
	again = once;
	again.signal = &k;
	if ((rc = stress_repeat_work(x, &again, reterr)) < 0 ||
	    (rc = stress_stop(x, reterr)) < 0)
		return rc;
	stress_compare(x, &once, &again, "all at once");
	n = sessions_workers(x->ss);
	stress_check(x, x->ss->retry.losses == n, "%u losses of %u workers",
	    x->ss->retry.losses, n);
	stress_note(x, "%u workers lost to signal %d; the same logits, %.3f "
	    "s instead of %.3f s", x->ss->retry.losses, x->current->sig, again.s,
	    once.s);
	return 0;
}

/* --- the coordinator --- */

/* A second coordinator, in a process of its own.  It writes its workers'
 * pids and groups to fd, and works until it is killed. */
static NORETURN void
run_other_coordinator(struct stress *x, int fd)
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
		pid[i] = x->ss->s[i].proc->child.pid;
		snprintf(dirs[i], sizeof(dirs[i]), "%s",
		    x->ss->enforce[i].group.dir);
	}
	if (write(fd, pid, sizeof(pid)) != sizeof(pid) ||
	    write(fd, dirs, sizeof(dirs)) != sizeof(dirs))
		_exit(1);
	stress_work_init(x, &w);
	while (stress_repeat_work(x, &w, &e) == 0)
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

/* Has the process ended?  A zombie that nobody has waited for counts. */
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

/* Memory that is still charged to an empty group, such as shared memory. */
static uint64_t
read_group_bytes(const char *dir)
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
	} while (left > 0 && event_now_ns() - t0 < stress_timeout_ns(x));
	stress_check(x, left == 0, "%u of %u workers are still running", left, i);
	return (double)(event_now_ns() - t0) / 1e9;
}

static void
check_groups_empty(struct stress *x, char dirs[][CGROUP_PATH])
{
	uint64_t end = event_now_ns() + stress_timeout_ns(x), sum = 0, left;
	unsigned i, n = 0;
	int rc;

	for (i = 0; i < MAX_SESSIONS && dirs[i][0] != '\0'; i++, n++) {
		/* The kernel frees pages that io_uring had pinned late. */
		while (read_group_bytes(dirs[i]) >= MIB && event_now_ns() < end)
			poll(NULL, 0, 10);
		left = read_group_bytes(dirs[i]);
		sum += left;
		/* The kernel keeps some pages of its own for a while. */
		stress_check(x, left < MIB, "group %s still holds %llu bytes",
		    dirs[i], (unsigned long long)left);
		while ((rc = enforce_remove(dirs[i])) == -EBUSY &&
		    event_now_ns() < end)
			poll(NULL, 0, 10);
		stress_check(x, access(dirs[i], F_OK) < 0, "group %s cannot "
		    "be removed: %s", dirs[i], strerror(-rc));
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
		run_other_coordinator(x, p[1]);
	close(p[1]);
	rc = other < 0 ? -EAGAIN : 0;
	if (rc == 0 && ((rc = read_all(p[0], pid, sizeof(pid))) < 0 ||
	    (rc = read_all(p[0], dirs, sizeof(dirs))) < 0))
		err_set(reterr, ERR_RUN, rc, "another coordinator could not "
		    "start");
	close(p[0]);
	if (other > 0) {
		poll(NULL, 0, (int)stress_random(x, 200));
		kill(other, SIGKILL);
		waitpid(other, NULL, 0);
	}
	if (rc < 0)
		return rc;
	while (n < MAX_SESSIONS && pid[n] > 0)
		n++;
	stress_note(x, "kill -9 of a coordinator at work; its %u workers, "
	    "and with them all holders of shared memory, ended within "
	    "%.3f s", n, wait_for_orphans(x, pid));
	check_groups_empty(x, dirs);
	return 0;
}
