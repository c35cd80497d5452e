/* coordinator/engine/journal.h - the tokens that stages hold, and the
 * batches in flight.
 * Owns: the tokens of every sequence, and the batches without a full result.
 * Called by pipeline.  Pure: no processes, no clock, no logits.
 *
 * A lost stage loses its part of every sequence's KV and state.  Both can be
 * rebuilt from the tokens: kept by sequence once their results came back, and
 * before that as batches in flight, as they were sent. */
#ifndef COORDINATOR_ENGINE_JOURNAL_H
#define COORDINATOR_ENGINE_JOURNAL_H

#include "config/base.h"
#include "config/err.h"
#include "shm/layout.h"

struct journal_batch {
	struct batch_hdr hdr;		/* kind, nrows, seq, pos */
	struct batch_row *rows;		/* [hdr.nrows] */
};

struct journal {
	uint32_t nseqs, ctx_tok, batch_rows;
	uint32_t *token;		/* [nseqs][ctx_tok] */
	uint32_t len[MAX_SEQS];		/* tokens that the stages hold */
	uint8_t ended[MAX_SEQS];	/* no more rows until it is forgotten */
	struct journal_batch *batch;	/* [nbatches], a circular buffer */
	struct batch_row *row;		/* [nbatches][batch_rows] */
	uint32_t nbatches, head, n;	/* head = the oldest, n in flight */
};

/* Make room for nbatches in flight.  The only allocation. */
int journal_open(struct journal *j, uint32_t nseqs, uint32_t ctx_tok,
    uint32_t batch_rows, uint32_t nbatches, struct err *reterr);
void journal_close(struct journal *j);

/* Record a batch that is sent.  -EAGAIN: no room; -EINVAL: rows that no stage
 * would accept. */
int journal_push(struct journal *j, const struct batch_hdr *hdr,
    const struct batch_row *rows);
/* The i-th batch in flight; 0 = the oldest. */
const struct journal_batch *journal_at(const struct journal *j, uint32_t i);
/* Are rows [nrows] the next rows of b with logits, from *at on, and b's last ones
 * exactly if `last` is set?  If so, *at moves past them; it starts as 0. */
int journal_take_rows(const struct journal_batch *b, uint32_t *at,
    const struct batch_row *rows, uint32_t nrows, int last);
/* The oldest batch has come back: move its rows to their sequences. */
void journal_pop(struct journal *j);

/* A sequence gets no more rows until it is forgotten: it need not be
 * replayed. */
void journal_end_sequence(struct journal *j, uint32_t seq);

/* Rows of the largest batch in flight. */
uint32_t journal_rows(const struct journal *j);
/* Tokens and sequences that a replay sends. */
uint64_t journal_tokens(const struct journal *j, uint32_t *ret_seqs);

/* Fill in the next rows of a replay, without logits, at most max_rows; 0 = the
 * end.  The cursor begins as { 0 }. */
struct journal_cursor {
	uint32_t seq, pos;
};
uint32_t journal_replay(const struct journal *j, struct journal_cursor *c,
    struct batch_row *rows, uint32_t max_rows);

#endif
