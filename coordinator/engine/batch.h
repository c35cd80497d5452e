/* coordinator/engine/batch.h - which rows make the next batch.
 * Owns: the state of the sequences that are live at once.  Called by whoever
 * generates.  Pure: no processes, no clock, no text, no allocation.
 *
 * A sequence's life, in its slot (the number that the stages know it by):
 *
 *	FREE -> PROMPT -> WAIT -> ASKED -> FREE
 *	                    ^       |
 *	                    +-READY-+
 *
 * PROMPT has ids to send, WAIT has its last row in flight, ASKED has the logits
 * of that row and READY the token that was chosen from them. */
#ifndef COORDINATOR_ENGINE_BATCH_H
#define COORDINATOR_ENGINE_BATCH_H

#include "config/base.h"
#include "shm/layout.h"

/* The next thing to send. */
struct batch_out {
	enum batch_kind kind;	/* BATCH_DATA: rows; else control for seq */
	uint32_t seq;
	uint32_t nrows;
	struct batch_row *rows;	/* [batch_rows], to be filled */
};

struct batch_conf {
	uint32_t nseqs;		/* slots, 1 to MAX_SEQS */
	uint32_t batch_rows;	/* of any batch */
	uint32_t mixed_rows;	/* of one with prompts while texts are made */
	uint32_t groups;	/* batches in flight while texts are made */
	/* Rows of a batch when there are nothing but n rows of prompts, of
	 * which `left` > 0 are yet to be sent. */
	uint32_t (*chunk)(const void *arg, uint32_t n, uint32_t left);
	const void *arg;
};

enum batch_state {
	BATCH_FREE, BATCH_PROMPT, BATCH_WAIT, BATCH_ASKED, BATCH_READY
};

struct batch_seq {
	enum batch_state state;
	int used;		/* the stages hold an old text of this slot */
	int made;		/* beyond the prompt: a text is being made */
	const uint32_t *ids;	/* [n], the prompt */
	uint32_t n;
	uint32_t pos;		/* of the next row */
	uint32_t token;		/* READY: to go there */
};

struct batch_fifo {
	uint32_t at[MAX_SEQS], head, n;
};

struct batcher {
	struct batch_conf conf;
	struct batch_seq seq[MAX_SEQS];
	struct batch_fifo vacant, forget, prompts, ready;
	uint32_t nmaking;	/* sequences beyond their prompts */
	uint32_t pending;	/* rows of prompts not yet sent */
	uint32_t prompt_rows;	/* of them there were when the last came */
	unsigned in_flight;	/* batches of rows */
};

void batch_init(struct batcher *b, const struct batch_conf *conf);

/* Is there a slot for another prompt? */
int batch_vacant(const struct batcher *b);
/* Begin with these n > 0 ids, which stay the caller's and where they are until
 * the last of them has come back.  Returns the slot. */
uint32_t batch_start(struct batcher *b, const uint32_t *ids, uint32_t n);

/* What to send next: 1, or 0 = nothing until more has come back.
 *
 * Tokens of all live texts come first, the longest waiting before the others;
 * prompts, first come first served and several in one batch, take what is left
 * of the rows.  The last row of a prompt and every token want logits. */
int batch_next(struct batcher *b, struct batch_out *out);

/* Logits of this row came back: its slot is ASKED.  -EPROTO if no sequence
 * waits for it. */
int batch_answer(struct batcher *b, const struct batch_row *row);
/* What follows for a slot that was ASKED: a token, or the end; the slot can
 * then be taken again at once: the stages forget it first. */
void batch_token(struct batcher *b, uint32_t seq, uint32_t token);
void batch_end(struct batcher *b, uint32_t seq);

/* A batch has come back whole.  -EPROTO if none was in flight. */
int batch_done(struct batcher *b, enum batch_kind kind);

#endif
