/* coordinator/engine/batch.h - selects the rows of the next batch.
 * Owns: the state of the live sequences.  Called by generate.  Pure: no
 * processes, no clock, no text, no allocation.
 *
 * A sequence's states, in its slot (its number in the stages):
 *
 *	FREE -> PROMPT -> WAIT -> ASKED -> FREE
 *	                    ^       |
 *	                    +-READY-+
 *
 * PROMPT has ids to send; WAIT has its last row in flight; ASKED has that row's
 * logits; READY has the token that was sampled from them. */
#ifndef COORDINATOR_ENGINE_BATCH_H
#define COORDINATOR_ENGINE_BATCH_H

#include "config/base.h"
#include "shm/layout.h"

/* The next batch to send. */
struct batch_out {
	enum batch_kind kind;	/* BATCH_DATA: rows; else a command on seq */
	uint32_t seq;
	uint32_t nrows;
	struct batch_row *rows;	/* [batch_rows], to fill in */
};

struct batch_conf {
	uint32_t nseqs;		/* slots, 1 to MAX_SEQS */
	uint32_t batch_rows;	/* at most, of any batch */
	uint32_t mixed_rows;	/* of one that mixes prompts and tokens */
	uint32_t groups;	/* batches in flight while tokens are generated */
	/* Rows of a batch when no sequence generates: prompts have n rows, of
	 * which `left` > 0 are still to send. */
	uint32_t (*chunk)(const void *arg, uint32_t n, uint32_t left);
	const void *arg;
};

enum batch_state {
	BATCH_FREE, BATCH_PROMPT, BATCH_WAIT, BATCH_ASKED, BATCH_READY
};

struct batch_seq {
	enum batch_state state;
	int used;		/* the stages hold the slot's last sequence */
	int generates;		/* it is past its prompt */
	const uint32_t *ids;	/* [n], the prompt */
	uint32_t n;
	uint32_t pos;		/* of the next row */
	uint32_t token;		/* READY: the token of that row */
};

struct batch_fifo {
	uint32_t at[MAX_SEQS], head, n;
};

struct batcher {
	struct batch_conf conf;
	struct batch_seq seq[MAX_SEQS];
	struct batch_fifo vacant, forget, prompts, ready;
	uint32_t ngenerating;	/* sequences past their prompts */
	uint32_t pending;	/* rows of prompts to send */
	uint32_t prompt_rows;	/* pending when the last prompt came */
	unsigned in_flight;	/* batches of rows */
};

void batch_init(struct batcher *b, const struct batch_conf *conf);

/* Is there a free slot? */
int batch_has_slot(const struct batcher *b);
/* Begin a sequence with ids [n], n > 0, and return its slot; one must be free.
 * The ids must stay in place until the logits of the last one have come. */
uint32_t batch_start(struct batcher *b, const uint32_t *ids, uint32_t n);

/* Fill in the next batch: 1; 0 = nothing to send until more comes back.
 *
 * Tokens of live sequences come first, the longest waiting before the others.
 * Prompts take the remaining rows, in order of arrival, several in one batch.
 * The last row of a prompt and every token ask for logits. */
int batch_next(struct batcher *b, struct batch_out *out);

/* The logits of this row came back: its slot is ASKED.  -EPROTO if no sequence
 * waits for it. */
int batch_answer(struct batcher *b, const struct batch_row *row);
/* An ASKED slot continues with a token, or ends.  An ended slot is free at once:
 * the stages forget the old sequence before a new one begins. */
void batch_token(struct batcher *b, uint32_t seq, uint32_t token);
void batch_end(struct batcher *b, uint32_t seq);

/* A batch has come back completely.  -EPROTO if none was in flight. */
int batch_done(struct batcher *b, enum batch_kind kind);

#endif
