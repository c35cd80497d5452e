/* coordinator/engine/journal.h - what the stages know, and what is on its way to them.
 * Owns: the tokens of every sequence, and the batches that have not come back.
 * Called by pipeline.  Pure: no processes, no clock, no logits.
 *
 * A stage that is lost takes with it its part of every sequence.  All of it
 * follows from tokens, and these are here: what has come back, by sequence, and
 * after it the batches under way, as they were sent. */
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
	uint32_t len[MAX_SEQS];		/* of it known to the stages */
	uint8_t over[MAX_SEQS];		/* nobody asks for more of it */
	struct journal_batch *batch;	/* [nbatches], a circle */
	struct batch_row *row;		/* [nbatches][batch_rows] */
	uint32_t nbatches, head, n;	/* the oldest; how many */
};

/* Room for nbatches under way.  All that is ever taken is taken here. */
int journal_open(struct journal *j, uint32_t nseqs, uint32_t ctx_tok,
    uint32_t batch_rows, uint32_t nbatches, struct err *reterr);
void journal_close(struct journal *j);

/* A batch is sent: 0, -EAGAIN when no room is left, -EINVAL for rows that no
 * stage would take. */
int journal_push(struct journal *j, const struct batch_hdr *hdr,
    const struct batch_row *rows);
/* The i-th of those under way, 0 is the oldest. */
const struct journal_batch *journal_at(const struct journal *j, uint32_t i);
/* Are these the rows of b, from *at on, that come back next: those that were to
 * have logits, in their order, the last of them if they are said to be?  Then
 * *at moves behind them.  Begins with 0. */
int journal_answers(const struct journal_batch *b, uint32_t *at,
    const struct batch_row *rows, uint32_t nrows, int last);
/* The oldest has come back: its rows belong to their sequences now. */
void journal_pop(struct journal *j);

/* Nobody will ask for more of a sequence, until it is forgotten and begins
 * anew: it need not be replayed. */
void journal_over(struct journal *j, uint32_t seq);

/* Most rows of any batch under way. */
uint32_t journal_rows(const struct journal *j);
/* Tokens and sequences that a replay is made of. */
uint64_t journal_tokens(const struct journal *j, uint32_t *ret_seqs);

/* The next rows of a replay, none with logits, at most `most`; 0 = that was
 * all.  Begins with a cursor { 0 }. */
struct journal_cursor {
	uint32_t seq, pos;
};
uint32_t journal_replay(const struct journal *j, struct journal_cursor *c,
    struct batch_row *rows, uint32_t most);

#endif
