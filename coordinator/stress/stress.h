/* coordinator/stress/stress.h - what the cases of `straddle stress` are made of.
 * Owns: the case at hand: its settings, its pipeline, what was seen.  Called by
 * cmd/stress.c and the files of cases.
 *
 * A case is run for real against the given config.  It says what it did and
 * saw (stress_note), and what should have been and was not (stress_want); an
 * error that it did not ask for makes it not hold, too. */
#ifndef COORDINATOR_STRESS_STRESS_H
#define COORDINATOR_STRESS_STRESS_H

#include <jansson.h>

#include "coordinator/engine/parts.h"
#include "coordinator/engine/sample.h"

struct stress;

/* 0; STRESS_SKIP with the reason in detail; or an error, which is what was
 * seen.  -EINTR: the user ended it, which says nothing of the case. */
typedef int stress_fn(struct stress *x, struct err *reterr);
enum { STRESS_SKIP = 1 };

enum moment { IN_LOAD, IN_PREFILL, IN_DECODE };

struct stress_case {
	const char *name;
	stress_fn *fn;
	int sig;		/* for those that are about a signal, */
	enum moment when;	/* and when it comes */
};

/* Of a session, over all pipelines of a case. */
struct stress_peak {
	uint64_t cap_bytes, peak_bytes, ledger_bytes;
	int64_t unaccounted;	/* of the last that told its numbers */
	int known;
};

struct stress {
	const struct conf *c;		/* as given, but quiet */
	struct conf *v;			/* the case's own settings */
	const struct stress_case *the;
	struct rng rng;
	int soak_s;
	struct engine *eng;		/* NULL = not open */
	const struct plan *plan;	/* its parts; NULL = not yet */
	struct sessions *ss;
	struct pipeline *pipe;
	int is_open;
	uint64_t took_ns;		/* the longest load or work so far */
	unsigned nfds, nmaps;		/* before it was opened */
	char detail[1024];		/* what was seen */
	char broke[512];		/* what was not as it should be */
	struct stress_peak peak[MAX_SESSIONS];
	char name[MAX_SESSIONS][MAX_NAME];
	enum enforce_by by;
};

void stress_note(struct stress *x, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* When ok is 0 the case has not held, and this is why. */
void stress_want(struct stress *x, int ok, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
uint32_t stress_below(struct stress *x, uint32_t n);

/* --- a pipeline of the case's settings, in the order it happens --- */

int stress_plan(struct stress *x, struct err *reterr);
int stress_spawn(struct stress *x, struct err *reterr);
int stress_load(struct stress *x, sessions_tick_fn *tick, void *arg,
    struct err *reterr);
/* All of these. */
int stress_start(struct stress *x, struct err *reterr);
/* An orderly end: everyone tells its numbers, which must be within the caps. */
int stress_stop(struct stress *x, struct err *reterr);
/* Whatever there is ends; nothing may be left of it.  After stress_stop() and
 * any error; accepts what was never opened. */
void stress_close(struct stress *x);

/* The case's settings: as given, but caps no more than slack above the plan, so
 * that what fills them is no danger to the machine. */
int stress_tighten(struct stress *x, int64_t slack, struct err *reterr);

/* Session i does something wrong, at once or in its load. */
int stress_drill(struct stress *x, unsigned i, enum drill_kind kind,
    uint64_t n, struct err *reterr);
/* How long something may take that must come: by what the case has measured,
 * and never so little that a slow machine fails. */
uint64_t stress_patience(const struct stress *x);
/* Until something ends it: an error, never 0. */
int stress_await(struct stress *x, struct err *reterr);

/* --- work: stress/work.c --- */

/* A signal in the middle of it: to session victim, or to all. */
struct strike {
	int sig;
	unsigned victim;
	int all;
	uint32_t at;		/* once so many batches have been sent */
	uint64_t wait_ns;	/* and this has passed */
	int done;
};

/* Texts of their own, all at once: prompts, then greedy tokens. */
struct work {
	uint32_t nseqs, nprompt, ndecode;
	uint32_t text;			/* number of the first text */
	struct strike *strike;		/* NULL = none */
	uint64_t hash[MAX_SEQS];	/* of all logits of each */
	uint32_t token[MAX_SEQS];	/* that follows */
	uint32_t nprefill, nbatches;	/* sent for prompts, and in all */
	double s;
	/* Its own. */
	struct stress *x;
	const struct batch_row *rows;	/* [nrows] to send */
	uint32_t nrows, sent, chunk;
};

/* A prompt of some batches, and some tokens, in as many sequences as there
 * are. */
void stress_work_init(const struct stress *x, struct work *w);
/* Do it in stages that know nothing. */
int stress_work(struct stress *x, struct work *w, struct err *reterr);
/* A pipeline, and that work done by it, undisturbed: what others are held
 * against. */
int stress_begin(struct stress *x, struct work *w, struct err *reterr);
/* It again, the stages forgetting what they know first. */
int stress_again(struct stress *x, struct work *w, struct err *reterr);
/* A moment of w's like, at random.  w was done once. */
void stress_aim(struct stress *x, const struct work *w, enum moment when,
    int sig, struct strike *ret);
void stress_strike(struct stress *x, struct strike *k);
/* Both must have the same logits. */
void stress_same(struct stress *x, const struct work *want,
    const struct work *got, const char *what);

/* --- cases --- */

stress_fn stress_exact_caps, stress_one_less, stress_one_more,
    stress_all_full, stress_past_ledger, stress_full_context,
    stress_short_texts, stress_pressure;
stress_fn stress_signal, stress_signal_tight, stress_all_at_once, stress_no_coordinator;
stress_fn stress_short_reads, stress_disk_error, stress_file_ends,
    stress_ring_counters, stress_ring_batches, stress_ring_results;
stress_fn stress_soak;

/* What this process holds, as the kernel tells. */
unsigned stress_count_fds(void);
unsigned stress_count_maps(void);

#endif
