/* coordinator/cmd/stress.c - pushes caps and workers, and reports what held.
 * Lists the cases in the order they run, runs them, and reports.  Each case is a
 * function of coordinator/stress/, run against the given config. */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/log.h"
#include "config/plain.h"
#include "config/rights.h"
#include "config/units.h"
#include "shm/event.h"
#include "cmd.h"
#include "coordinator/print/output.h"
#include "coordinator/stress/stress.h"

#define SIGNALLED(name, sig)						\
	{ name " of each worker in load", stress_signal, sig, IN_LOAD },	\
	{ name " of each worker in prefill", stress_signal, sig, IN_PREFILL }, \
	{ name " of each worker in decode", stress_signal, sig, IN_DECODE }

static const struct stress_case cases[] = {
	{ "caps equal to the plan", stress_exact_caps, 0, 0 },
	{ "one byte less than the plan", stress_one_less, 0, 0 },
	{ "one byte more than the ledger", stress_one_more, 0, 0 },
	{ "every session full at once", stress_all_full, 0, 0 },
	{ "memory past the ledger", stress_past_ledger, 0, 0 },
	{ "largest batch, full context", stress_full_context, 0, 0 },
	{ "hundreds of short texts", stress_short_texts, 0, 0 },
	{ "memory pressure from outside", stress_pressure, 0, 0 },
	SIGNALLED("kill -9", SIGKILL),
	SIGNALLED("SIGSEGV", SIGSEGV),
	SIGNALLED("SIGTERM", SIGTERM),
	SIGNALLED("SIGSTOP", SIGSTOP),
	{ "kill -9 in load, caps equal to the plan", stress_signal_tight,
	    SIGKILL, IN_LOAD },
	{ "kill -9 in decode, caps equal to the plan", stress_signal_tight,
	    SIGKILL, IN_DECODE },
	{ "kill -9 of all workers at once", stress_all_at_once, SIGKILL, 0 },
	{ "kill -9 of the coordinator", stress_no_coordinator, SIGKILL, 0 },
	{ "short reads in the load", stress_short_reads, 0, 0 },
	{ "disk error in the load", stress_disk_error, 0, 0 },
	{ "file truncated in the load", stress_file_ends, 0, 0 },
	{ "impossible counters in each ring", stress_ring_counters, 0, 0 },
	{ "nonsense in the first ring", stress_ring_batches, 0, 0 },
	{ "nonsense in the last ring", stress_ring_results, 0, 0 },
};

static const struct stress_case soak = { "soak", stress_soak, 0, 0 };

struct report {
	json_t *cases;
	unsigned nheld, nbroke, nskipped;
	int interrupted, json;
};

/* --- a case's report --- */

/* Note the session that came closest to its cap. */
static void
note_peaks(struct stress *x)
{
	char peak[UNITS_BYTES_LEN], cap[UNITS_BYTES_LEN], off[32] = "";
	const struct stress_peak *k, *worst = NULL;
	double most = 0, of;
	unsigned i;

	for (i = 0; i < NITEMS(x->peak); i++) {
		k = &x->peak[i];
		of = k->known ? (double)k->peak_bytes / (double)k->cap_bytes :
		    0;
		if (of > most) {
			most = of;
			worst = k;
		}
	}
	if (worst == NULL)
		return;
	if (worst->ledger_bytes > 0)
		snprintf(off, sizeof(off), ", %+.2f MiB unaccounted",
		    (double)worst->unaccounted / (double)MIB);
	stress_note(x, "highest peak %s of %s%s (%s)", units_human_bytes(
	    worst->peak_bytes, peak), units_human_bytes(worst->cap_bytes,
	    cap), off, x->name[worst - x->peak]);
}

static json_t *
json_peaks(const struct stress *x)
{
	json_t *a = json_array();
	const struct stress_peak *k;
	unsigned i;

	for (i = 0; i < NITEMS(x->peak); i++) {
		k = &x->peak[i];
		if (k->known)
			json_array_append_new(a, json_pack("{s:s,s:I,s:I,"
			    "s:I,s:I}", "name", x->name[i], "cap",
			    (json_int_t)k->cap_bytes, "peak",
			    (json_int_t)k->peak_bytes, "ledger_peak",
			    (json_int_t)k->ledger_bytes, "unaccounted",
			    (json_int_t)k->unaccounted));
	}
	return a;
}

static void
report(struct report *r, struct stress *x, int rc, const struct err *e,
    double s)
{
	int skipped = rc == STRESS_SKIP, held;
	char *text = NULL;

	if (rc < 0)
		stress_check(x, 0, "%.400s", e->msg);
	held = !skipped && x->failure[0] == '\0';
	if (held)
		note_peaks(x);
	r->nheld += (unsigned)held;
	r->nskipped += (unsigned)skipped;
	r->nbroke += !held && !skipped;
	if (asprintf(&text, "%s%s%s", x->failure, x->failure[0] != '\0' &&
	    x->detail[0] != '\0' ? "; seen: " : "", x->detail) < 0)
		text = NULL;
	if (!r->json) {
		printf("%-7s %s (%.1f s): %s\n", held ? "held" : skipped ?
		    "skipped" : "BROKE", x->current->name, s, text != NULL ?
		    PLAIN(text) : "no memory for the text");
		fflush(stdout);
	}
	json_array_append_new(r->cases, json_pack("{s:s,s:b,s:b,s:o,s:f,s:b,"
	    "s:o}", "name", x->current->name, "held", held, "skipped", skipped,
	    "detail", output_json_text(text != NULL ? text : "", text != NULL ?
	    strlen(text) : 0), "seconds", s, "unenforced", x->by ==
	    ENFORCE_LEDGER, "sessions", json_peaks(x)));
	free(text);
}

/* --- running --- */

static void
run_case(struct report *r, struct stress *x, const struct stress_case *the,
    uint64_t seed)
{
	struct err e = { 0 };
	uint64_t t0 = event_now_ns();
	uint32_t stream = 0;
	const char *p;
	int rc;

	/* A random stream of its own: a case is the same alone and among others. */
	for (p = the->name; *p != '\0'; p++)
		stream = stream * 31 + (uint8_t)*p;
	rng_seed(&x->rng, seed, stream);
	*x->conf = *x->given;
	x->conf->recover = LIMIT_RECOVER;
	x->current = the;
	x->detail[0] = x->failure[0] = '\0';
	memset(x->peak, 0, sizeof(x->peak));
	x->took_ns = 0;
	rc = the->fn(x, &e);
	stress_close(x);
	if (rc == -EINTR)
		r->interrupted = 1;
	else
		report(r, x, rc, &e, (double)(event_now_ns() - t0) / 1e9);
}

static int
is_wanted(const struct conf *c, const struct stress_case *the)
{
	return c->stress_only == NULL || fnmatch(c->stress_only, the->name,
	    0) == 0;
}

static int
run_cases(struct report *r, struct stress *x, uint64_t seed,
    struct err *reterr)
{
	unsigned i, n;
	int rc = 0;

	if (x->soak_s > 0)
		run_case(r, x, &soak, seed);
	for (i = 0; x->soak_s == 0 && i < NITEMS(cases) && !r->interrupted;
	    i++)
		if (is_wanted(x->given, &cases[i]))
			run_case(r, x, &cases[i], seed);
	n = r->nheld + r->nbroke + r->nskipped;
	if (n == 0 && !r->interrupted)
		return err_set(reterr, ERR_USAGE, -EINVAL, "--only %s: no "
		    "such case; `straddle stress --list` lists them",
		    x->given->stress_only);
	if (r->json)
		rc = output_json(json_pack("{s:O,s:o}", "cases", r->cases,
		    "seed", output_json_u64(seed)), 1, reterr);
	else
		printf("%u held, %u did not, %u skipped; repeat with --seed %"
		    PRIu64 "\n", r->nheld, r->nbroke, r->nskipped,
		    seed);
	if (r->interrupted)
		return err_set(reterr, ERR_RUN, -EINTR, "interrupted after %u "
		    "cases", n);
	if (rc == 0 && r->nbroke > 0)
		rc = err_set(reterr, ERR_RUN, -EIO, "%u of %u cases did not "
		    "hold", r->nbroke, n);
	return rc;
}

/* Before the first case: what becoming another user leaves open must not look
 * like a leak of that case. */
static int
settle(struct stress *x, struct err *reterr)
{
	int rc;

	if (!rights_change_user())
		return 0;
	*x->conf = *x->given;
	if ((rc = stress_plan(x, reterr)) == 0)
		rc = engine_settle(x->eng, reterr);
	stress_close(x);
	return rc;
}

static int
list(void)
{
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++)
		puts(cases[i].name);
	return 0;
}

int
cmd_stress(const struct conf *c, struct err *reterr)
{
	static struct stress x;		/* large */
	struct report r = { .json = c->json };
	struct conf *quiet;
	uint64_t seed = c->sampling.seed_given ? c->sampling.seed :
	    event_now_ns() % 1000000;
	int rc = -ENOMEM;

	if (c->stress_list)
		return list();
	quiet = malloc(sizeof(*quiet));
	x.conf = malloc(sizeof(*x.conf));
	x.soak_s = c->soak_s;
	r.cases = json_array();
	if (quiet == NULL || x.conf == NULL || r.cases == NULL) {
		err_nomem(reterr, "the settings and the report");
	} else {
		*quiet = *c;
		quiet->verbose = 0;
		x.given = quiet;
		/* Losses are expected; each case reports its own. */
		if (c->verbose < 2)
			log_init("straddle", -1);
		if ((rc = settle(&x, reterr)) == 0)
			rc = run_cases(&r, &x, seed, reterr);
		log_init("straddle", c->verbose);
	}
	json_decref(r.cases);
	free(x.conf);
	free(quiet);
	return rc;
}
