/* coordinator/engine/engine.h - what the commands that compute have in common, in the
 * order it happens: model, plan, sessions, load, pipeline, and the end.
 * Owns: all of it.  Each step needs the one before. */
#ifndef COORDINATOR_ENGINE_ENGINE_H
#define COORDINATOR_ENGINE_ENGINE_H

#include <signal.h>

#include "batch.h"
#include "pipeline.h"
#include "coordinator/text/tokenizer.h"

struct engine {
	const struct conf *c;
	struct gguf *g;
	struct model *m;
	struct tokenizer *t;		/* NULL until engine_tokenizer() */
	struct kernels kernels;		/* what a session on this CPU has */
	struct plan plan;
	struct conf *fitted;		/* plan --fit: the settings planned */
	char fit_why[PLAN_WHY_LEN];	/* "" = nothing was chosen */
	struct sessions *ss;
	struct pipeline *p;
	int signal_fd;
	struct batch_row *rows;		/* [batch_rows], of the batch to send */
	uint64_t load_ns;		/* all sessions, wall clock */
	uint64_t file_bytes;		/* read by all of them */
};

/* File and model.  j is zeroed by this function; engine_close() ends any state. */
int engine_open(struct engine *j, const struct conf *c, struct err *reterr);
int engine_tokenizer(struct engine *j, struct err *reterr);
int engine_plan(struct engine *j, struct err *reterr);
/* What ends a command from outside; not a hangup that the user has it ignore
 * (nohup), which a signalfd would read all the same. */
void engine_signals(sigset_t *ret);
/* -EINTR where one has come since they are caught; does not wait. */
int engine_interrupted(struct err *reterr);
/* Sessions; load, and pipeline. */
int engine_spawn(struct engine *j, struct err *reterr);
int engine_load(struct engine *j, sessions_tick_fn *tick, void *arg,
    struct err *reterr);
/* Both, with progress. */
int engine_start(struct engine *j, struct err *reterr);
/* Every stage leaves its loop and tells its numbers. */
int engine_stop(struct engine *j, struct err *reterr);
void engine_close(struct engine *j);

/* A row of one batch. */
static inline struct batch_row
engine_row(uint32_t seq, uint32_t pos, uint32_t token, int logits)
{
	return (struct batch_row){ .seq = seq, .pos = pos, .token = token,
	    .flags = logits ? ROW_LOGITS : 0 };
}

/* --- feeding: what it is made of --- */

/* Whoever feeds the pipeline.  Each returns a negative error to end it. */
struct engine_flow {
	/* Fill in what to send: 1; 0 = nothing until more has come back. */
	int (*next)(void *arg, struct batch_out *b, struct err *reterr);
	/* A row that wanted logits, in the order sent.  row is as the last
	 * stage gave it: what relies on it checks it. */
	int (*row)(void *arg, const struct batch_row *row,
	    const float *logits, struct err *reterr);
	/* A batch has ended: all its rows have been given. */
	int (*done)(void *arg, enum batch_kind kind, struct err *reterr);
	void *arg;
};

/* Send while there is something and the first ring has room, take what comes
 * back, until nothing is left of either. */
int engine_flow(struct engine *j, const struct engine_flow *f, struct err *reterr);

/* Rows of the next batch for prompts of n rows, of which `left` are yet to be
 * sent: whole batches, or pieces that stages with cores of their own work on side
 * by side. */
uint32_t engine_chunk(const struct engine *j, uint32_t n, uint32_t left);

/* --- feeding: the usual ways --- */

/* Which of [0, n) positions want logits. */
enum engine_want { WANT_LAST, WANT_ALL };

/* One row of logits, in order of position; a negative return ends the feed. */
typedef int engine_row_fn(void *arg, uint32_t index, const float *logits,
    struct err *reterr);

/* Put n ids through as sequence seq from position pos0 on, in batches with as
 * many in flight as the rings take.  fn (may be NULL) gets each wanted row. */
int engine_feed(struct engine *j, uint32_t seq, uint32_t pos0, const uint32_t *ids,
    uint32_t n, enum engine_want want, engine_row_fn *fn, void *arg,
    struct err *reterr);

/* Put n rows through, each of any sequence: together in one batch, or as many
 * as --batch asks for.  The rows of a sequence continue it, in order.  fn (may
 * be NULL) gets each row made with logits, in the order of rows. */
int engine_feed_rows(struct engine *j, const struct batch_row *rows, uint32_t n,
    engine_row_fn *fn, void *arg, struct err *reterr);

#endif
