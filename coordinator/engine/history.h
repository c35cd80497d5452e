/* coordinator/engine/history.h - the turns of a conversation: their texts, their
 * tokens, and how many of these the stages hold.
 * Owns: texts and tokens; the KV of sequence 0.  Called by chat.c.
 * Does not know templates, sampling or where an answer ends. */
#ifndef COORDINATOR_ENGINE_HISTORY_H
#define COORDINATOR_ENGINE_HISTORY_H

#include "engine.h"

struct history_turn {
	char *user, *answer;	/* malloc'ed */
	size_t nuser, nanswer;	/* bytes */
	size_t answer_cap;
	uint32_t at;		/* index of its first token: what the template
				 * writes after the last answer */
	uint32_t answer_at;	/* of its answer's first token */
	int is_rewritten;	/* its answer is not as generated: answer_at is
				 * the turn's end */
};

struct history {
	struct engine *eng;
	uint32_t *ids;		/* [cap] */
	uint32_t len, cap;
	uint32_t held;		/* the stages hold ids[0, held) */
	uint32_t high;		/* positions that they have ever stored of them */
	struct history_turn *turn;
	unsigned nturns, turn_cap;
};

/* Room for the context and one token more, which is sampled but not fed. */
int history_open(struct history *h, struct engine *eng, struct err *reterr);
void history_close(struct history *h);

/* Append tokens.  The stages get them from history_feed(). */
int history_add(struct history *h, const uint32_t *ids, uint32_t n,
    struct err *reterr);
/* Begin a turn, whose answer begins after ids[n]. */
int history_add_turn(struct history *h, const char *user, size_t nuser,
    const uint32_t *ids, uint32_t n, struct err *reterr);
/* Append to the text of the last turn's answer. */
int history_add_text(struct history *h, const char *bytes, size_t nbytes,
    struct err *reterr);

/* Feed what the stages do not hold yet; fn gets the logits of the last token.
 * 1: tick has ended it before; a later call goes on. */
int history_feed(struct history *h, engine_row_fn *fn, engine_tick_fn *tick,
    void *arg, struct err *reterr);

/* The rest of these keep as much of the stages' KV as window layers allow. */

/* Replace the last ndel tokens of the last answer by ids[nins]. */
int history_replace_end(struct history *h, uint32_t ndel, const uint32_t *ids,
    uint32_t nins, struct err *reterr);
/* Remove n tokens of the last answer, from its first on. */
int history_trim_answer(struct history *h, uint32_t n, struct err *reterr);
/* Put ids[n] in the place of the last turn's tokens. */
int history_rewrite(struct history *h, const uint32_t *ids, uint32_t n,
    struct err *reterr);
/* Remove the last turn. */
int history_undo(struct history *h, struct err *reterr);
/* Remove the first n turns; ids[nids] replace the tokens in front of turn n's
 * answer.  All turns, with no ids: forget everything. */
int history_drop(struct history *h, unsigned n, const uint32_t *ids,
    uint32_t nids, struct err *reterr);

#endif
