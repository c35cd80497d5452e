/* coordinator/cmd_stress.c - pushes caps and workers, and reports what held.
 * Each case is run for real against the given config.  These are the first;
 * the kernel's limits and pressure from outside are not here yet. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "output.h"
#include "sample.h"

struct stress {
	const struct conf *c;		/* quiet: each case loads anew */
	struct conf *v;			/* the case's own settings */
	json_t *cases;
	unsigned nheld, nbroke;
	int interrupted, json, verbose;
};

/* rc -EINTR: the user ended it, which says nothing of the case. */
static void
verdict(struct stress *x, const char *name, int rc, int held,
    const char *detail)
{
	if (rc == -EINTR) {
		x->interrupted = 1;
		return;
	}
	x->nheld += held != 0;
	x->nbroke += held == 0;
	if (!x->json)
		printf("%-7s %-24s %s\n", held ? "held" : "BROKE", name,
		    detail);
	json_array_append_new(x->cases, json_pack("{s:s,s:b,s:s}", "name",
	    name, "held", held, "detail", detail));
}

/* Caps of exactly what the plan foresees. */
static int
tighten(struct stress *x, uint64_t less, struct err *reterr)
{
	struct job j;
	unsigned i;
	int rc;

	*x->v = *x->c;
	if ((rc = job_open(&j, x->c, reterr)) == 0 &&
	    (rc = job_plan(&j, reterr)) == 0)
		for (i = 0; i < j.plan.nsessions; i++)
			x->v->session[i].cap_bytes =
			    j.plan.session[i].total_bytes - (i == 0 ? less :
			    0);
	job_close(&j);
	return rc;
}

/* What came back, and whom to kill when the first of it does. */
struct fill {
	uint32_t n_vocab;
	uint64_t hash;		/* of all rows, in their order */
	pid_t victim;		/* 0 = none */
};

static int
take_row(void *arg, uint32_t index, const float *logits, struct err *reterr)
{
	struct fill *f = arg;

	(void)index;
	(void)reterr;
	f->hash = f->hash * 31 + logits_hash(logits, f->n_vocab);
	if (f->victim != 0)
		kill(f->victim, SIGKILL);
	f->victim = 0;
	return 0;
}

/* A full batch and as many more as the context holds, up to four batches. */
static int
fill(struct job *j, struct fill *f, struct err *reterr)
{
	uint32_t n = MIN(j->plan.ctx_tok, 4 * j->plan.batch_rows), i;
	uint32_t *ids = calloc(n, sizeof(*ids));
	int rc;

	if (ids == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	for (i = 0; i < n; i++)
		ids[i] = i % j->m->hp.n_vocab;
	f->n_vocab = j->m->hp.n_vocab;
	rc = job_feed(j, 0, 0, ids, n, WANT_ALL, take_row, f, reterr);
	free(ids);
	return rc;
}

/* Caps equal to the plan: it runs, and no peak is above its cap. */
static void
case_exact_caps(struct stress *x)
{
	char detail[256] = "";
	struct err e = { 0 };
	const struct session *s;
	struct job j = { .signal_fd = -1 };
	struct fill f = { 0 };
	double worst = 0;
	unsigned i;
	int rc, held;

	if ((rc = tighten(x, 0, &e)) == 0 &&
	    (rc = job_open(&j, x->v, &e)) == 0 &&
	    (rc = job_plan(&j, &e)) == 0 && (rc = job_start(&j, &e)) == 0 &&
	    (rc = fill(&j, &f, &e)) == 0)
		rc = job_stop(&j, &e);
	held = rc == 0;
	for (i = 0; rc == 0 && i < j.ss->n; i++) {
		s = &j.ss->s[i];
		held = held && s->peak.nbytes <= s->plan->cap_bytes;
		worst = MAX(worst, (double)s->peak.nbytes /
		    (double)s->plan->cap_bytes);
	}
	if (rc == 0) {
		snprintf(detail, sizeof(detail), "%u sessions, highest peak "
		    "%.2f %% of its cap", j.ss->n, 100 * worst);
		if (x->verbose > 0)
			output_table(stderr, &j.plan, j.ss);
	} else {
		snprintf(detail, sizeof(detail), "%.255s", e.msg);
	}
	job_close(&j);
	verdict(x, "caps equal to the plan", rc, held, detail);
}

/* One byte less on the first session: refused, or cut another way. */
static void
case_one_byte_less(struct stress *x)
{
	char detail[256];
	struct err e = { 0 };
	struct job j = { .signal_fd = -1 };
	unsigned i;
	int rc, held;

	if ((rc = tighten(x, 1, &e)) == 0 &&
	    (rc = job_open(&j, x->v, &e)) == 0)
		rc = job_plan(&j, &e);
	held = rc == -ENOSPC && e.kind == ERR_FIT;
	snprintf(detail, sizeof(detail), "%.255s", held ? "refused" : e.msg);
	if (rc == 0) {
		held = 1;
		for (i = 0; i < j.plan.nsessions; i++)
			held = held && j.plan.session[i].total_bytes <=
			    j.plan.session[i].cap_bytes;
		snprintf(detail, sizeof(detail),
		    "cut another way, every session within its cap");
	}
	job_close(&j);
	verdict(x, "one byte less", rc, held, detail);
}

/* The same ids twice, the second time with a loss while they are under way. */
static int
fill_twice(struct job *j, unsigned victim, struct fill *once,
    struct fill *again, struct err *reterr)
{
	int rc;

	if ((rc = fill(j, once, reterr)) < 0 ||
	    (rc = pipeline_forget(j->p, 0, reterr)) < 0)
		return rc;
	again->victim = j->ss->s[victim].child.pid;
	if ((rc = fill(j, again, reterr)) < 0)
		return rc;
	return job_stop(j, reterr);
}

/* kill -9: the logits are what they are, and no worker stays; with --recover 0
 * the loss is what ends it. */
static void
case_kill(struct stress *x, unsigned victim)
{
	char detail[256], name[64];
	struct err e = { 0 };
	struct job j = { .signal_fd = -1 };
	struct fill once = { 0 }, again = { 0 };
	pid_t pid[2 * MAX_SESSIONS] = { 0 };
	unsigned i, n = 0, k, left = 0, losses = 0;
	int rc, held;

	if ((rc = job_open(&j, x->c, &e)) == 0 &&
	    (rc = job_plan(&j, &e)) == 0 && (rc = job_start(&j, &e)) == 0) {
		for (k = 0; k < j.ss->n; k++)
			pid[n++] = j.ss->s[k].child.pid;
		rc = fill_twice(&j, victim, &once, &again, &e);
		for (k = 0; k < j.ss->n; k++)
			pid[n++] = j.ss->s[k].child.pid;
		losses = j.ss->losses;
	}
	job_close(&j);
	for (i = 0; i < n; i++)
		left += pid[i] > 0 && kill(pid[i], 0) == 0;
	held = left == 0 && (x->c->recover == 0 ? rc == -ENOTRECOVERABLE :
	    rc == 0 && losses > 0 && again.hash == once.hash);
	snprintf(detail, sizeof(detail), "%.200s; %u workers left",
	    rc < 0 ? e.msg : losses == 0 ? "the loss was not noticed" :
	    again.hash != once.hash ? "recovered, with other logits" :
	    "recovered, with the same logits", left);
	snprintf(name, sizeof(name), "kill -9 of session %u", victim);
	verdict(x, name, rc, held, detail);
}

static int
run_cases(struct stress *x, struct err *reterr)
{
	int i, rc = 0;

	case_exact_caps(x);
	if (!x->interrupted)
		case_one_byte_less(x);
	for (i = 0; i < x->c->nsessions && !x->interrupted; i++)
		case_kill(x, (unsigned)i);
	if (x->json)
		rc = output_json(json_pack("{s:O}", "cases", x->cases), 1,
		    reterr);
	if (x->interrupted)
		return err_set(reterr, ERR_RUN, -EINTR, "interrupted after %u "
		    "cases", x->nheld + x->nbroke);
	if (rc == 0 && x->nbroke > 0)
		rc = err_set(reterr, ERR_RUN, -EIO, "%u of %u cases did not "
		    "hold", x->nbroke, x->nheld + x->nbroke);
	return rc;
}

int
cmd_stress(const struct conf *c, struct err *reterr)
{
	struct stress x = { .json = c->json, .verbose = c->verbose };
	struct conf *quiet = malloc(sizeof(*quiet));
	int rc = -ENOMEM;

	x.v = malloc(sizeof(*x.v));
	x.cases = json_array();
	if (quiet == NULL || x.v == NULL || x.cases == NULL) {
		err_set(reterr, ERR_RUN, rc, "out of memory");
	} else {
		*quiet = *c;
		quiet->verbose = 0;
		x.c = quiet;
		rc = run_cases(&x, reterr);
	}
	json_decref(x.cases);
	free(x.v);
	free(quiet);
	return rc;
}
