/* coordinator/stress/caps.c - cases about memory: caps exact to the byte, full
 * sessions, a worker that exceeds its cap, memory pressure from outside. */
#include "stress.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/own_cap.h"
#include "config/units.h"
#include "shm/event.h"

/* Caps are at most this much above the plan, so that filling them cannot
 * exhaust the user's machine. */
#define SLACK_BYTES	(64 * MIB)

struct context_hash {
	uint32_t n_vocab;
	uint64_t hash;
};

static int
take_row(void *arg, uint32_t index, const float *logits, struct err *reterr)
{
	struct context_hash *w = arg;

	(void)index;
	(void)reterr;
	w->hash = w->hash * 31 + logits_hash(logits, w->n_vocab);
	return 0;
}

/* Feed a full context and hash the logits of every token. */
static int
fill_context(struct stress *x, uint64_t *ret_hash, uint32_t *ret_n,
    struct err *reterr)
{
	struct context_hash w = { .n_vocab = x->plan->model->hp.n_vocab };
	uint32_t n = x->plan->ctx_tok, i;
	uint32_t *ids = calloc(n, sizeof(*ids));
	int rc;

	if (ids == NULL)
		return err_nomem(reterr, "%" PRIu32 " tokens", n);
	for (i = 0; i < n; i++)
		ids[i] = i * 7 % w.n_vocab;
	rc = engine_feed(x->eng, 0, 0, ids, n, WANT_ALL, take_row, &w, reterr);
	free(ids);
	*ret_hash = w.hash;
	*ret_n = n;
	return rc;
}

/* --- exact to the byte --- */

int
stress_exact_caps(struct stress *x, struct err *reterr)
{
	uint64_t hash;
	uint32_t n;
	int rc;

	if ((rc = stress_tighten_caps(x, 0, reterr)) < 0 ||
	    (rc = stress_start(x, reterr)) < 0 ||
	    (rc = fill_context(x, &hash, &n, reterr)) < 0 ||
	    (rc = stress_stop(x, reterr)) < 0)
		return rc;
	stress_note(x, "%u sessions, %u tokens", x->ss->n, n);
	return 0;
}

int
stress_one_less(struct stress *x, struct err *reterr)
{
	unsigned i;
	int rc;

	if ((rc = stress_tighten_caps(x, 0, reterr)) < 0)
		return rc;
	x->conf->session[0].cap_bytes--;
	rc = stress_plan(x, reterr);
	if (rc == -ENOSPC && reterr->kind == ERR_FIT) {
		stress_note(x, "refused: %.300s", reterr->msg);
		return 0;
	}
	if (rc < 0)
		return rc;
	for (i = 0; i < x->plan->nsessions; i++)
		stress_check(x, x->plan->session[i].total_bytes <=
		    x->plan->session[i].cap_bytes, "session %s is planned "
		    "over its cap", x->plan->session[i].conf->name);
	stress_note(x, "split in another way; every session is within its cap");
	return 0;
}

/* In each session in turn: the ledger grants all bytes up to the cap, and refuses
 * one more. */
int
stress_one_more(struct stress *x, struct err *reterr)
{
	unsigned i = 0, n;
	int rc;

	if ((rc = stress_tighten_caps(x, (int64_t)SLACK_BYTES, reterr)) < 0)
		return rc;
	do {
		if ((rc = stress_start(x, reterr)) < 0 ||
		    (rc = stress_send_drill(x, i, DRILL_FILL, UINT64_MAX,
		    reterr)) < 0 ||
		    (rc = stress_send_drill(x, i, DRILL_CHARGE, 1, reterr)) < 0)
			return rc;
		if ((rc = stress_wait_failure(x, reterr)) == -EINTR)
			return rc;
		n = x->ss->n;
		stress_check(x, rc == -ENOMEM && strstr(reterr->msg,
		    "drill needs 1 bytes (compute), but only 0 of") != NULL &&
		    strstr(reterr->msg, x->ss->s[i].name) != NULL,
		    "one byte more than session %s has: %.200s",
		    x->ss->s[i].name, reterr->msg);
		if (i == 0)
			stress_note(x, "%.250s", reterr->msg);
		stress_close(x);
	} while (++i < n);
	stress_note(x, "the same in each of %u sessions", n);
	return 0;
}

/* The kernel frees the pages that io_uring pinned for the load late.  Until
 * then, filling the ledger would exceed the group's limit. */
static void
wait_for_staging(const struct stress *x, unsigned i)
{
	const struct session *s = &x->ss->s[i];
	uint64_t end = event_now_ns() + stress_timeout_ns(x);
	uint64_t most = session_worker_bytes(s, MEM_NTAGS) -
	    session_worker_bytes(s, MEM_STAGING);

	while (event_now_ns() < end &&
	    enforce_now_bytes(s->proc->enforce) > most)
		poll(NULL, 0, 10);
}

int
stress_all_full(struct stress *x, struct err *reterr)
{
	struct work once, again;
	const struct session *s;
	uint64_t sum = 0;
	unsigned i;
	int rc;

	if ((rc = stress_tighten_caps(x, (int64_t)SLACK_BYTES, reterr)) < 0 ||
	    (rc = stress_start_work(x, &once, reterr)) < 0)
		return rc;
	again = once;
	for (i = 0; i < x->ss->n; i++)
		if (session_is_first(&x->ss->s[i]))
			wait_for_staging(x, i);
	for (i = 0; i < x->ss->n; i++) {
		if ((rc = stress_send_drill(x, i, DRILL_FILL, 0, reterr)) < 0)
			return rc;
	}
	if ((rc = stress_repeat_work(x, &again, reterr)) < 0 ||
	    (rc = stress_stop(x, reterr)) < 0)
		return rc;
	stress_compare(x, &once, &again, "full");
	stress_check(x, x->ss->retry.losses == 0, "%u workers were lost",
	    x->ss->retry.losses);
	for (i = 0; i < x->ss->n; i++) {
		s = &x->ss->s[i];
		stress_check(x, s->stats.ledger_peak == s->plan->cap_bytes,
		    "session %s: %" PRIu64 " bytes in the ledger", s->name,
		    s->stats.ledger_peak);
		sum += s->plan->cap_bytes;
	}
	stress_note(x, "%u ledgers full to the byte, %" PRIu64 " bytes in "
	    "all; the same logits", x->ss->n, sum);
	return 0;
}

/* --- past the ledger --- */

/* Worker i takes more than its cap.  Its group must kill it or, without a
 * group, the kernel must refuse the memory.  The replacement gives the same
 * logits. */
static int
check_eater_stopped(struct stress *x, unsigned i, const struct work *want,
    struct err *reterr)
{
	const struct session *s = &x->ss->s[i];
	const char *words = s->proc->enforce->by == ENFORCE_CGROUP ?
	    ", for memory: its group reached the limit" :
	    "the kernel refused";
	struct work again = *want;
	int rc;

	if ((rc = stress_send_drill(x, i, DRILL_EAT,
	    session_worker_cap(s) + 4 * MIB, reterr)) < 0 ||
	    (rc = stress_wait_failure(x, reterr)) != -ECHILD)
		return rc;
	stress_check(x, strstr(reterr->msg, words) != NULL, "session %s: "
	    "%.200s", x->ss->s[i].name, reterr->msg);
	if (i == 0)
		stress_note(x, "%.250s", reterr->msg);
	if ((rc = pipeline_recover(x->pipe, reterr)) < 0 ||
	    (rc = stress_repeat_work(x, &again, reterr)) < 0)
		return rc;
	stress_compare(x, want, &again, x->ss->s[i].name);
	return 0;
}

/* A later plain kill must not be reported as a loss for memory. */
static int
check_plain_kill(struct stress *x, const struct work *once, struct err *reterr)
{
	struct work again = *once;
	struct timed_signal k;
	int rc;

	stress_choose_signal(x, once, IN_DECODE, SIGKILL, &k);
	again.signal = &k;
	if ((rc = stress_repeat_work(x, &again, reterr)) < 0)
		return rc;
	stress_check(x, strstr(x->ss->retry.last_loss, "signal 9") != NULL &&
	    strstr(x->ss->retry.last_loss, "for memory") == NULL, "after a plain kill "
	    "-9: \"%.150s\"", x->ss->retry.last_loss);
	return 0;
}

int
stress_past_ledger(struct stress *x, struct err *reterr)
{
	struct work once;
	unsigned i;
	int rc;

	if ((rc = stress_tighten_caps(x, (int64_t)SLACK_BYTES, reterr)) < 0 ||
	    (rc = stress_start(x, reterr)) < 0)
		return rc;
	if (x->ss->enforce[0].by == ENFORCE_LEDGER) {
		stress_note(x, "the kernel enforces no caps here: "
		    "%.200s", x->ss->enforce[0].why);
		return STRESS_SKIP;
	}
	stress_work_init(x, &once);
	if ((rc = stress_run_work(x, &once, reterr)) < 0)
		return rc;
	for (i = 0; i < x->ss->n; i++)
		if ((rc = check_eater_stopped(x, i, &once, reterr)) < 0)
			return rc;
	stress_note(x, "the same in each of %u sessions; afterwards the same "
	    "logits",
	    x->ss->n);
	if ((rc = check_plain_kill(x, &once, reterr)) < 0)
		return rc;
	return stress_stop(x, reterr);
}

/* --- the largest settings that fit --- */

/* Plan with the largest value of a setting that fits: most, most / 2, ... */
static int
plan_largest(struct stress *x, int *setting, int most, int least,
    struct err *reterr)
{
	int rc = -ENOSPC;

	for (*setting = most; *setting >= least; *setting /= 2) {
		stress_close(x);
		if ((rc = stress_plan(x, reterr)) != -ENOSPC)
			break;
	}
	return rc;
}

int
stress_full_context(struct stress *x, struct err *reterr)
{
	uint64_t usual, large;
	uint32_t n;
	int rc;

	if ((rc = stress_start(x, reterr)) < 0 ||
	    (rc = fill_context(x, &usual, &n, reterr)) < 0 ||
	    (rc = stress_stop(x, reterr)) < 0)
		return rc;
	stress_note(x, "%u tokens in batches of %u", n, x->plan->batch_rows);
	if ((rc = plan_largest(x, &x->conf->batch_rows, MIN(MAX_BATCH, (int)n), 1,
	    reterr)) < 0 || (rc = stress_spawn(x, reterr)) < 0 ||
	    (rc = stress_load(x, NULL, NULL, reterr)) < 0 ||
	    (rc = fill_context(x, &large, &n, reterr)) < 0 ||
	    (rc = stress_stop(x, reterr)) < 0)
		return rc;
	stress_check(x, usual == large, "other logits in batches of %u",
	    x->plan->batch_rows);
	stress_note(x, "and of %u: the same logits of every token",
	    x->plan->batch_rows);
	return 0;
}

/* Hundreds of texts at once, twice.  A sample of them must have the same logits
 * when run alone. */
int
stress_short_texts(struct stress *x, struct err *reterr)
{
	enum { WAVES = 2, SAMPLES = 8 };
	struct work all, want, alone;
	uint32_t k, i;
	int rc;

	x->conf->ctx_tok = MIN(32, x->conf->ctx_tok > 0 ? x->conf->ctx_tok : 32);
	if ((rc = plan_largest(x, &x->conf->parallel, MAX_SEQS, 1, reterr)) < 0 ||
	    (rc = stress_spawn(x, reterr)) < 0 ||
	    (rc = stress_load(x, NULL, NULL, reterr)) < 0)
		return rc;
	for (k = 0; k < WAVES; k++) {
		stress_work_init(x, &all);
		all.nprompt = 3 + k;
		all.ndecode = MIN(6, x->plan->ctx_tok - all.nprompt);
		all.text = k * MAX_SEQS;
		if ((rc = stress_repeat_work(x, &all, reterr)) < 0)
			return rc;
		for (i = 0; i < SAMPLES; i++) {
			alone = all;
			alone.nseqs = 1;
			alone.text += stress_random(x, all.nseqs);
			if ((rc = stress_repeat_work(x, &alone, reterr)) < 0)
				return rc;
			want = alone;
			want.hash[0] = all.hash[alone.text - all.text];
			stress_compare(x, &want, &alone, "alone");
		}
	}
	stress_note(x, "%u texts, %u at once; %u of them alone: the same "
	    "logits", WAVES * x->plan->nseqs, x->plan->nseqs,
	    WAVES * SAMPLES);
	return stress_stop(x, reterr);
}

/* --- pressure from outside --- */

enum { PRESSED = 8 };		/* repetitions of the work under pressure */

/* Allocate memory and keep writing to all of it. */
static NORETURN void
run_hog(uint64_t nbytes, uint64_t most_ns)
{
	volatile uint8_t *p;
	uint64_t i;

	own_cap_release();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm((unsigned)(most_ns / 1000000000));  /* if nobody kills it */
	p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE |
	    MAP_ANONYMOUS, -1, 0);
	for (;;)
		for (i = 0; p != MAP_FAILED && i < nbytes; i += 4096)
			p[i]++;
}

/* Start one hog in this process's group and, where groups are available, one in
 * the group `small`, which allows a quarter of the memory that it needs: the
 * kernel has to kill it. */
static int
start_hogs(const struct enforce *small, uint64_t nbytes, uint64_t most_ns,
    pid_t pid[2])
{
	struct err e;
	int fd = -1, k;

	for (k = 0; k < 2; k++) {
		if (k == 1 && (small->by != ENFORCE_CGROUP ||
		    enforce_open_procs(small, &fd, &e) < 0))
			break;
		if ((pid[k] = fork()) != 0)
			continue;
		if (k == 1 && write(fd, "0", 1) != 1)
			_exit(1);
		run_hog(k == 0 ? nbytes : 4 * small->limit_bytes, most_ns);
	}
	if (fd >= 0)
		close(fd);
	return 0;
}

int
stress_pressure(struct stress *x, struct err *reterr)
{
	uint64_t nbytes = MIN(enforce_free_bytes() / 4, GIB);
	char human[UNITS_BYTES_LEN];
	struct work once, again;
	struct enforce small;
	pid_t pid[2] = { 0 };
	int rc, k, status = 0;

	if ((rc = stress_start_work(x, &once, reterr)) < 0)
		return rc;
	again = once;
	enforce_open(&small, "neighbour", 16 * MIB);
	start_hogs(&small, nbytes, PRESSED * stress_timeout_ns(x), pid);
	for (k = 0; rc == 0 && k < PRESSED; k++)
		if ((rc = stress_repeat_work(x, &again, reterr)) == 0)
			stress_compare(x, &once, &again, "under pressure");
	for (k = 0; k < 2; k++)
		if (pid[k] > 0 && waitpid(pid[k], &status, k == 0 ?
		    WNOHANG : 0) == 0) {
			kill(pid[k], SIGKILL);
			waitpid(pid[k], NULL, 0);
		}
	enforce_close(&small);
	if (rc < 0)
		return rc;
	stress_check(x, x->ss->retry.losses == 0, "%u workers were lost",
	    x->ss->retry.losses);
	stress_note(x, "another process took %s", units_human_bytes(
	    nbytes, human));
	if (pid[1] > 0) {
		stress_check(x, WIFSIGNALED(status) && WTERMSIG(status) ==
		    SIGKILL, "nothing stopped the neighbour");
		stress_note(x, "a neighbour killed at its own limit of 16 "
		    "MiB");
	}
	stress_note(x, "no worker lost, the same logits, %.3f s instead of "
	    "%.3f s", again.s, once.s);
	return stress_stop(x, reterr);
}
