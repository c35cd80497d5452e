/* coordinator/engine/history.h - the turns of a conversation: their texts, and
 * the tokens that the stages hold or get of it.
 * Owns: texts and tokens; the KV of sequence 0.  Called by chat.c and turns.c.
 * Does not know templates, sampling or where an answer ends. */
#ifndef COORDINATOR_ENGINE_HISTORY_H
#define COORDINATOR_ENGINE_HISTORY_H

#include "engine.h"

struct history_text {
	char *bytes;		/* malloc'ed, [n], and a NUL; NULL = "" */
	size_t n, cap;
};

struct history_turn {
	struct history_text user, thoughts, answer;
	size_t begun;		/* bytes of the answer that the user wrote */
};

/* ids are those of the last turn's rendering and of its answer.  When turns
 * change, they stay: they say what the stages hold, until history_render()
 * compares. */
struct history {
	struct engine *eng;
	uint32_t *ids;		/* [cap] */
	uint32_t len, cap;
	uint32_t answer_at;	/* index of the first token of the last answer */
	uint32_t held;		/* the stages hold ids[0, held) */
	uint32_t high;		/* positions that they have ever stored of them */
	struct history_turn *turn;
	unsigned nturns, turn_cap;
};

/* Room for the context and one token more, which is sampled but not fed. */
int history_open(struct history *h, struct engine *eng, struct err *reterr);
void history_close(struct history *h);

/* --- texts --- */

int history_text_add(struct history_text *t, const char *bytes, size_t nbytes,
    struct err *reterr);
/* Append a turn with an empty answer. */
int history_add_turn(struct history *h, const char *user, size_t nuser,
    struct err *reterr);
/* Remove n turns from turn `at` on. */
void history_remove(struct history *h, unsigned at, unsigned n);
/* Replace the turns by those of `from`, which has none afterwards. */
void history_take_turns(struct history *h, struct history *from);

/* --- tokens --- */

/* Replace the tokens by ids[n], n > 0: those of a rendering, behind which the
 * answer begins, and the tokens of `nanswer` more of it.  The stages keep those
 * that they hold up to the first that differs, as far as window layers allow;
 * *ret_kept of them. */
int history_render(struct history *h, const uint32_t *ids, uint32_t n,
    uint32_t nanswer, uint32_t *ret_kept, struct err *reterr);
/* Append a token of the answer. */
int history_add(struct history *h, uint32_t id, struct err *reterr);

/* Feed what the stages do not hold yet; fn gets the logits of the last token.
 * 1: tick has ended it before. */
int history_feed(struct history *h, engine_row_fn *fn, engine_tick_fn *tick,
    void *arg, struct err *reterr);

#endif
