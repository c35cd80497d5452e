/* coordinator/engine/engine.h - the facade over model, plan, sessions and
 * pipeline: all that a command or a server sees of them.
 * Owns: all four.  Called by cmd, bench and stress, by one thread.  Does
 * not depend on commands; prints nothing but notes and the progress of the load.
 *
 * The order of calls: engine_open(), engine_open_tokenizer() where text is
 * needed, engine_plan(), engine_start(), feed or flow, engine_stop(),
 * engine_close().  engine_close() may follow any of them. */
#ifndef COORDINATOR_ENGINE_ENGINE_H
#define COORDINATOR_ENGINE_ENGINE_H

#include "batch.h"
#include "coordinator/plan/plan.h"

struct engine;
struct form;
struct process_list;
struct sessions;
struct tokenizer;

/* Open and check the model file; meanwhile start a short-lived worker to measure
 * what a process needs.  c must outlive the engine.  On failure *ret is not
 * touched. */
int engine_open(const struct conf *c, struct engine **ret, struct err *reterr);
/* Load the vocabulary: engine_vocab() is NULL before. */
int engine_open_tokenizer(struct engine *eng, struct err *reterr);
/* Split the model over the sessions, and hold this process to its own cap.
 * Starts short-lived workers to ask what a device offers.  On -ENOSPC
 * engine_plan_of() is the nearest plan, to be shown but not started. */
int engine_plan(struct engine *eng, struct err *reterr);
/* All files that root may have to open are open: root gives up its rights
 * (config/rights.h).  engine_start() does so where it was not called before. */
int engine_settle(struct engine *eng, struct err *reterr);
/* Start the sessions, load them with progress on stderr, open the pipeline. */
int engine_start(struct engine *eng, struct err *reterr);
/* Drain the pipeline and collect every session's statistics. */
int engine_stop(struct engine *eng, struct err *reterr);
/* End whatever is open; accepts NULL. */
void engine_close(struct engine *eng);

/* Undo what this process changed outside itself (its memory group).  Called
 * once, at the end of the program. */
void engine_cleanup(void);

/* Keep this program's file for the workers, and clean up at fatal signals; call
 * it first. */
void engine_init(void);

/* --- what it holds: owned by the engine, valid until engine_close() --- */

const struct conf *engine_conf(const struct engine *eng);
const struct gguf *engine_file(const struct engine *eng);
const struct model *engine_model(const struct engine *eng);
/* The kernels that a CPU session of this machine uses. */
const struct kernels *engine_kernels(const struct engine *eng);
const struct tokenizer *engine_vocab(const struct engine *eng);
/* The chat template; NULL where the command has no conversations. */
const struct form *engine_form(const struct engine *eng);
/* Zeroed before engine_plan(). */
const struct plan *engine_plan_of(const struct engine *eng);
/* The settings that plan --fit chose, and why in words; "" = none chosen. */
const struct conf *engine_fit_conf(const struct engine *eng);
const char *engine_fit_reason(const struct engine *eng);
/* For print/ to show; NULL before engine_start(). */
const struct sessions *engine_sessions(const struct engine *eng);
/* Rows of the processes that are no sessions, for print/ to show: as planned
 * before engine_start(), then with their peaks until now. */
const struct process_list *engine_processes(struct engine *eng);
/* The longest text of a request, once there are a plan and a vocabulary; and what
 * limits it, for messages.  Returns buf. */
enum { ENGINE_WHY_LEN = 256 };
size_t engine_text_bytes(const struct engine *eng);
const char *engine_text_why(const struct engine *eng,
    char buf[ENGINE_WHY_LEN]);
/* Readable when a signal asks for the end; -1 before engine_start(). */
int engine_signal_fd(const struct engine *eng);
/* Give SIGINT a descriptor of its own, which the caller reads and closes: it ends
 * nothing in the engine any more.  After engine_start(). */
int engine_split_sigint(struct engine *eng, struct err *reterr);

struct engine_numbers {
	uint64_t load_ns;	/* all sessions, wall clock */
	uint64_t file_bytes;	/* read by all sessions together */
	uint64_t read_ns;	/* part of load_ns: while any session read */
	uint64_t reserve_ns;	/* until the slowest session had its memory */
	unsigned losses;	/* workers lost and replaced */
	uint64_t lost_ns;	/* spent on recovery, in sum */
};

void engine_numbers(const struct engine *eng, struct engine_numbers *ret);

/* Set an error: the logits at position pos (-1 = not said) are not numbers, why,
 * and the remedy where keys or values exceeded the range of their KV type.
 * Returns -EDOM. */
int engine_refuse_logits(const struct engine *eng, int64_t pos,
    struct err *reterr);

/* Memory free for sessions now; 0 = unknown. */
uint64_t engine_free_bytes(void);

/* The memory of this machine, as it was when the plan was made; NULL = the plan
 * is for another machine. */
const struct room *engine_room(const struct engine *eng);

/* --- flow: a producer and a consumer of batches --- */

/* One row of a batch. */
static inline struct batch_row
engine_row(uint32_t seq, uint32_t pos, uint32_t token, int logits)
{
	return (struct batch_row){ .seq = seq, .pos = pos, .token = token,
	    .flags = logits ? ROW_LOGITS : 0 };
}

/* Callbacks of a pipeline producer.  A negative return ends the flow. */
struct engine_flow {
	/* Fill in the next batch: 1; 0 = nothing until more comes back. */
	int (*next)(void *arg, struct batch_out *b, struct err *reterr);
	/* A row with logits, in the order sent.  Its fields are as the last
	 * stage returned them: check them before use. */
	int (*row)(void *arg, const struct batch_row *row,
	    const float *logits, struct err *reterr);
	/* A batch has ended: all its rows were given.  May be NULL. */
	int (*done)(void *arg, enum batch_kind kind, struct err *reterr);
	void *arg;
};

/* Send batches while the first ring has room and take results, until nothing
 * is left to send and nothing is in flight. */
int engine_flow(struct engine *eng, const struct engine_flow *f,
    struct err *reterr);

/* Rows of the next batch of a prompt of n rows with `left` still to send: full
 * batches, or smaller ones that let stages with own cores overlap. */
uint32_t engine_chunk(const struct engine *eng, uint32_t n, uint32_t left);

/* --- feed: the usual flows --- */

/* Which of [0, n) positions want logits. */
enum engine_want { WANT_LAST, WANT_ALL };

/* One row of logits, in order of position; a negative return ends the feed. */
typedef int engine_row_fn(void *arg, uint32_t index, const float *logits,
    struct err *reterr);

/* Run ids [n] as sequence seq from position pos0 on, with as many batches in
 * flight as the rings hold.  fn (may be NULL) gets each wanted row.
 * -E2BIG: they do not fit into the context. */
int engine_feed(struct engine *eng, uint32_t seq, uint32_t pos0,
    const uint32_t *ids, uint32_t n, enum engine_want want, engine_row_fn *fn,
    void *arg, struct err *reterr);

/* The same for a long text, with the logits of its last row.  tick is called
 * before each batch but the first, with the rows sent; 1 = send no more.
 * *ret_sent rows were; fn gets the logits if these are all. */
typedef int engine_tick_fn(void *arg, uint32_t sent, uint32_t n);
int engine_feed_ticking(struct engine *eng, uint32_t seq, uint32_t pos0,
    const uint32_t *ids, uint32_t n, engine_row_fn *fn, engine_tick_fn *tick,
    void *arg, uint32_t *ret_sent, struct err *reterr);

/* Run rows [n] of any sequences, in batches of at most --batch rows.  The rows
 * of a sequence continue it, in order.  fn (may be NULL) gets each row of
 * logits, in the order of rows. */
int engine_feed_rows(struct engine *eng, const struct batch_row *rows,
    uint32_t n, engine_row_fn *fn, void *arg, struct err *reterr);

/* --- sequences --- */

/* Can a sequence that has stored `high` positions be cut back to pos?  Not
 * where a window layer has overwritten what pos needs. */
int engine_can_cut(const struct engine *eng, uint32_t high, uint32_t pos);
/* Drop what sequence seq holds from position pos on; 0 = forget it all.
 * Waits until every stage has done so. */
int engine_cut(struct engine *eng, uint32_t seq, uint32_t pos,
    struct err *reterr);

#endif
