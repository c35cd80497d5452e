/* coordinator/stress/stress.h - the cases of `straddle stress`, and their
 * tools.
 * Owns: the state of the running case: settings, pipeline, observations.
 * Called by cmd/stress.c and the files of cases.
 *
 * A case runs real workers with the given config.  It records observations with
 * stress_note() and failed expectations with stress_check().  An error that it
 * did not provoke is a failure, too. */
#ifndef COORDINATOR_STRESS_STRESS_H
#define COORDINATOR_STRESS_STRESS_H

#include <jansson.h>

#include "coordinator/engine/parts.h"
#include "coordinator/engine/sample.h"

struct stress;

/* Run a case.  Returns 0; STRESS_SKIP with the reason as a note; or an error,
 * which makes the case fail, but for -EINTR: the user interrupted it. */
typedef int stress_fn(struct stress *x, struct err *reterr);
enum { STRESS_SKIP = 1 };

enum moment { IN_LOAD, IN_PREFILL, IN_DECODE };

struct stress_case {
	const char *name;
	stress_fn *fn;
	int sig;		/* signal that the case sends; 0 = none */
	enum moment when;	/* when it is sent */
};

/* Peak memory of a session over all pipelines of a case. */
struct stress_peak {
	uint64_t cap_bytes, peak_bytes, ledger_bytes;
	int64_t unaccounted;	/* from the last worker that reported */
	int known;
};

struct stress {
	const struct conf *given;	/* the user's settings, but quiet */
	struct conf *conf;		/* the case's copy, which it may change */
	const struct stress_case *current;
	struct rng rng;
	int soak_s;
	struct engine *eng;		/* NULL = not open */
	const struct plan *plan;	/* the engine's; NULL = not yet */
	struct sessions *ss;
	struct pipeline *pipe;
	int is_open;
	uint64_t took_ns;		/* longest load or work so far */
	unsigned nfds, nmaps;		/* before the engine was opened */
	char detail[1024];		/* notes */
	char failure[512];		/* failed checks; "" = the case held */
	struct stress_peak peak[MAX_SESSIONS];
	char name[MAX_SESSIONS][MAX_NAME];
	enum enforce_by by;
};

/* Record an observation, which is printed with the result. */
void stress_note(struct stress *x, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Unless ok, the case fails with this reason. */
void stress_check(struct stress *x, int ok, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* A random number below n; 0 for n = 0. */
uint32_t stress_random(struct stress *x, uint32_t n);

/* --- a pipeline with the case's settings, in the order of its life --- */

/* Open the engine and plan, spawn the workers, load the model. */
int stress_plan(struct stress *x, struct err *reterr);
int stress_spawn(struct stress *x, struct err *reterr);
int stress_load(struct stress *x, sessions_tick_fn *tick, void *arg,
    struct err *reterr);
/* stress_plan(), stress_spawn() and stress_load(). */
int stress_start(struct stress *x, struct err *reterr);
/* Stop the workers in order.  Their reported peaks must be within the caps. */
int stress_stop(struct stress *x, struct err *reterr);
/* End what is still running and check that no descriptor, map, process or group
 * is left.  Call it after stress_stop() and after any error; a no-op when
 * nothing is open. */
void stress_close(struct stress *x);

/* Lower the case's caps to at most `slack` bytes above the plan, so that
 * filling them does not endanger the machine. */
int stress_tighten_caps(struct stress *x, int64_t slack, struct err *reterr);

/* Tell the worker of session i to misbehave, at once or during its load. */
int stress_send_drill(struct stress *x, unsigned i, enum drill_kind kind,
    uint64_t n, struct err *reterr);
/* Timeout for an event that must come: a multiple of the longest time that the
 * case has measured, and long enough for a slow machine. */
uint64_t stress_timeout_ns(const struct stress *x);
/* Wait until the sessions report an error.  Returns that error, or -ETIMEDOUT;
 * never 0. */
int stress_wait_failure(struct stress *x, struct err *reterr);

/* --- work (work.c) --- */

/* A signal to the worker of one session, or to all, during the work. */
struct timed_signal {
	int sig;
	unsigned victim;	/* session index */
	int all;
	uint32_t at;		/* send it after this number of batches, */
	uint64_t wait_ns;	/* and after this time */
	int done;		/* it was sent */
};

/* Several texts at once: each sequence gets a prompt of its own and then greedy
 * tokens.  The same work gives the same logits. */
struct work {
	uint32_t nseqs, nprompt, ndecode;
	uint32_t text;			/* number of the first text */
	struct timed_signal *signal;	/* NULL = none */
	uint64_t hash[MAX_SEQS];	/* [nseqs], of all logits */
	uint32_t token[MAX_SEQS];	/* [nseqs], the next token */
	uint32_t nprefill, nbatches;	/* batches of prompts, and in all */
	double s;			/* duration */
	/* Private to work.c. */
	struct stress *x;
	const struct batch_row *rows;	/* [nrows] to send */
	uint32_t nrows, sent, chunk;
};

/* Choose the size of the work: in every sequence, a prompt of several batches
 * and a few tokens. */
void stress_work_init(const struct stress *x, struct work *w);
/* Run the work in stages whose sequences are empty. */
int stress_run_work(struct stress *x, struct work *w, struct err *reterr);
/* Start a pipeline and run the work undisturbed, as the reference. */
int stress_start_work(struct stress *x, struct work *w, struct err *reterr);
/* Clear every sequence, then run the work again. */
int stress_repeat_work(struct stress *x, struct work *w, struct err *reterr);
/* Choose a random moment for a signal.  w has been run once. */
void stress_choose_signal(struct stress *x, const struct work *w,
    enum moment when, int sig, struct timed_signal *ret);
/* Wait k->wait_ns, then send the signal. */
void stress_send_signal(struct stress *x, struct timed_signal *k);
/* Check that both have the same logits. */
void stress_compare(struct stress *x, const struct work *want,
    const struct work *got, const char *what);

/* --- cases --- */

stress_fn stress_exact_caps, stress_one_less, stress_one_more,
    stress_all_full, stress_past_ledger, stress_full_context,
    stress_short_texts, stress_pressure;
stress_fn stress_signal, stress_signal_tight, stress_all_at_once,
    stress_no_coordinator;
stress_fn stress_short_reads, stress_disk_error, stress_file_ends,
    stress_ring_counters, stress_ring_batches, stress_ring_results;
stress_fn stress_soak;

/* Descriptors and shared maps of this process, as the kernel counts them. */
unsigned stress_count_fds(void);
unsigned stress_count_maps(void);

#endif
