/* coordinator/engine/pipeline.h - batches into the first ring, logits out of the last.
 * Owns: the producer side of the one and the consumer side of the other, and
 * the journal of what went in.
 * Called by the commands that compute.  Never blocks on the first ring: it
 * takes a batch or says -EAGAIN, so that results can always be drained. */
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
	/* Of this epoch. */
	uint32_t epoch;
	uint64_t number;	/* of the next batch */
	uint32_t sent;		/* of those in flight, the oldest first */
	uint64_t oldest;	/* its number: results come in order */
	uint32_t got;		/* its rows of logits so far */
	uint32_t at;		/* its rows behind the last of those */
	uint32_t had;		/* of those, the caller's, in any epoch */
	struct batch_row *rows;	/* [batch_rows], of a replay or a result */
	struct watchdog empty;	/* how long no ring has held anything */
};

/* One slot of the last ring. */
struct result {
	struct batch_hdr hdr;		/* checked copy */
	const struct batch_row *rows;	/* [hdr.nrows], as they were sent */
	const float *logits;		/* (hdr.nrows, n_vocab), in the slot */
	uint64_t ld;			/* floats from row to row */
	int last;			/* the batch is done with this */
};

int pipeline_open(struct sessions *ss, struct pipeline **ret,
    struct err *reterr);
void pipeline_close(struct pipeline *p);

/* Will the first ring take a batch now? */
int pipeline_has_room(struct pipeline *p);
/* Send rows.  -EAGAIN: there is no room, take results first. */
int pipeline_submit(struct pipeline *p, const struct batch_row *rows,
    uint32_t nrows);
/* Control in order with the data: BATCH_FORGET (seq from pos on), BATCH_STOP.
 * Comes back as a result of its own. */
int pipeline_control(struct pipeline *p, enum batch_kind kind, uint32_t seq,
    uint32_t pos);

/* The next result, waiting for it; an error when a signal comes (-EINTR).  The
 * loss of a worker shows in the time only, until there is one too many; one
 * that writes nonsense into a ring of ours is lost as well.  A result is of the
 * oldest batch, and its rows are the next that were to have logits: what those
 * are is all that the worker is believed. */
int pipeline_next(struct pipeline *p, struct result *ret, struct err *reterr);
/* Give the result's slot back. */
void pipeline_done(struct pipeline *p);

/* Drain what is in flight, then let every stage leave its loop. */
int pipeline_stop(struct pipeline *p, struct err *reterr);

/* After a loss (-ECHILD) that was noticed elsewhere. */
int pipeline_recover(struct pipeline *p, struct err *reterr);

/* Nobody will ask for more of this sequence before it is forgotten. */
void pipeline_over(struct pipeline *p, uint32_t seq);

/* Drop what sequence seq holds from position pos on, and wait until it is
 * dropped; windows must reach back so far: kv_reaches(). */
int pipeline_cut(struct pipeline *p, uint32_t seq, uint32_t pos,
    struct err *reterr);

#endif
