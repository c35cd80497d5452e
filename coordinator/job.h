/* coordinator/job.h - what the commands that compute have in common, in the
 * order it happens: model, plan, sessions, load, pipeline, and the end.
 * Owns: all of it.  Each step needs the one before. */
#ifndef COORDINATOR_JOB_H
#define COORDINATOR_JOB_H

#include "pipeline.h"
#include "tokenizer.h"

struct job {
	const struct conf *c;
	struct gguf *g;
	struct model *m;
	struct tokenizer *t;		/* NULL until job_tokenizer() */
	struct kernels kernels;		/* what a session on this CPU has */
	struct plan plan;
	struct sessions *ss;
	struct pipeline *p;
	int signal_fd;
	struct batch_row *rows;		/* [batch_rows], of the batch to send */
	uint64_t load_ns;		/* all sessions, wall clock */
	uint64_t file_bytes;		/* read by all of them */
};

/* File and model.  j is zeroed by this function; job_close() ends any state. */
int job_open(struct job *j, const struct conf *c, struct err *reterr);
int job_tokenizer(struct job *j, struct err *reterr);
int job_plan(struct job *j, struct err *reterr);
/* Sessions, load (with progress), pipeline. */
int job_start(struct job *j, struct err *reterr);
/* Every stage leaves its loop and tells its numbers. */
int job_stop(struct job *j, struct err *reterr);
void job_close(struct job *j);

/* A row of one batch. */
static inline struct batch_row
job_row(uint32_t seq, uint32_t pos, uint32_t token, int logits)
{
	return (struct batch_row){ .seq = seq, .pos = pos, .token = token,
	    .flags = logits ? ROW_LOGITS : 0 };
}

/* Which of [0, n) positions want logits. */
enum job_want { WANT_LAST, WANT_ALL };

/* One row of logits, in order of position; a negative return ends the feed. */
typedef int job_row_fn(void *arg, uint32_t index, const float *logits,
    struct err *reterr);

/* Put n ids through as sequence seq from position pos0 on, in batches with as
 * many in flight as the rings take.  fn (may be NULL) gets each wanted row. */
int job_feed(struct job *j, uint32_t seq, uint32_t pos0, const uint32_t *ids,
    uint32_t n, enum job_want want, job_row_fn *fn, void *arg,
    struct err *reterr);

#endif
