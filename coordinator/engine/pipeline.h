/* coordinator/engine/pipeline.h - batches into the first ring, logits out of the
 * last.
 * Owns: the producer side of the first ring, the consumer side of the last, and
 * the journal of what was sent.  Called by the engine, and by stress.
 * Never blocks on the first ring: it takes a batch or returns -EAGAIN, so that
 * results can always be drained. */
#ifndef COORDINATOR_ENGINE_PIPELINE_H
#define COORDINATOR_ENGINE_PIPELINE_H

#include "shm/ring.h"
#include "journal.h"
#include "coordinator/session/sessions.h"

struct pipeline {
	struct sessions *ss;
	struct ring first, last;
	struct journal journal;
	unsigned in_flight;	/* batches taken and not yet finished */
	/* In this epoch. */
	uint32_t epoch;
	uint64_t number;	/* of the next batch */
	uint32_t sent;		/* batches in flight that are sent, oldest first */
	uint64_t oldest;	/* number of the oldest: results come in order */
	uint32_t got;		/* rows of logits it has returned */
	uint32_t at;		/* its first row after those */
	uint32_t had;		/* rows of `got` that the caller has, whatever the
				 * epoch */
	struct batch_row *rows;	/* [batch_rows], of a replay or a result */
	struct watchdog empty;	/* how long every ring has been empty */
};

/* One slot of the last ring. */
struct result {
	struct batch_hdr hdr;		/* checked copy */
	const struct batch_row *rows;	/* [hdr.nrows], as sent */
	const float *logits;		/* (hdr.nrows, n_vocab), in the slot */
	uint64_t ld;			/* floats from row to row */
	int last;			/* the batch ends with this */
};

int pipeline_open(struct sessions *ss, struct pipeline **ret,
    struct err *reterr);
void pipeline_close(struct pipeline *p);

/* Does the first ring take a batch now? */
int pipeline_has_room(struct pipeline *p);
/* Send rows.  -EAGAIN: no room, take results first. */
int pipeline_submit(struct pipeline *p, const struct batch_row *rows,
    uint32_t nrows);
/* Control in order with the data: BATCH_FORGET (seq from pos on), BATCH_STOP.
 * Comes back as a result without rows. */
int pipeline_control(struct pipeline *p, enum batch_kind kind, uint32_t seq,
    uint32_t pos);

/* Wait for the next result.  -EINTR on a signal.  A lost worker is replaced
 * here, and the caller notices only the time, until the losses exceed
 * --recover; a worker that corrupts a ring is treated as lost.  Results are
 * checked: each belongs to the oldest batch and has its next rows with logits.
 * Only the logits themselves are taken on trust. */
int pipeline_next(struct pipeline *p, struct result *ret, struct err *reterr);
/* Give the slot of the result back. */
void pipeline_done(struct pipeline *p);

/* Drain the pipeline, then let every stage leave its loop. */
int pipeline_stop(struct pipeline *p, struct err *reterr);

/* Recover from a loss (-ECHILD) that somebody else noticed. */
int pipeline_recover(struct pipeline *p, struct err *reterr);

/* The sequence has ended: it is not replayed after a loss. */
void pipeline_end_sequence(struct pipeline *p, uint32_t seq);

/* Drop what sequence seq holds from position pos on, and wait until every stage
 * has.  Window layers must still hold what pos needs: engine_can_cut(). */
int pipeline_cut(struct pipeline *p, uint32_t seq, uint32_t pos,
    struct err *reterr);

#endif
