/* coordinator/engine/turns.h - the turns of a history in the model's chat format:
 * what a new turn makes of the last answer, which old turns to drop, turns from
 * texts.
 * Owns nothing.  Called by chat.c.  Does not sample or feed. */
#ifndef COORDINATOR_ENGINE_TURNS_H
#define COORDINATOR_ENGINE_TURNS_H

#include "format.h"
#include "history.h"

struct chat_pair turns_texts(const struct history_turn *t);

/* Encode user turn `turn`, counted from 0, with the template around it;
 * *ret_ids is malloc'ed.  system: NULL = none. */
int turns_encode(const struct engine *eng, unsigned turn, const char *system,
    const char *text, size_t nbytes, uint32_t **ret_ids, size_t *ret_n,
    struct err *reterr);

/* Append a turn of texts.  is_last: its answer is as it was generated. */
int turns_append(const struct engine *eng, struct history *h,
    const char *system, const struct chat_pair *p, int is_last,
    struct err *reterr);

/* Remove the tokens of the last nbytes of text from the last answer.  A token that
 * only ends in them is replaced by those of the rest of its text. */
int turns_trim_text(const struct engine *eng, struct history *h,
    size_t nbytes, struct err *reterr);

/* How a new turn changes the last answer.  The template may leave its thoughts
 * out, begin it in another way, or strip it; gpt-oss' leaves reasoning out once it
 * has led to an answer (openai/harmony docs/format.md, "Handling reasoning output
 * in subsequent sampling"), and reasoning that was cut off stays. */
struct settling {
	int is_rewritten;
	uint32_t *ids;		/* then: of the whole turn; malloc'ed */
	size_t nids;
	uint32_t thoughts;	/* else: tokens of the answer to remove */
	uint64_t len;		/* of the history, afterwards */
};

/* thoughts: tokens in front of the last answer's first shown message. */
int turns_plan_settling(const struct engine *eng, const struct history *h,
    const char *system, uint32_t thoughts, struct settling *ret,
    struct err *reterr);
int turns_settle(struct history *h, const struct settling *s,
    struct err *reterr);

/* Oldest turns to drop, and the tokens that replace those in front of the next
 * turn's answer. */
struct shift {
	unsigned nturns;
	uint32_t *ids;		/* malloc'ed */
	size_t nids;
};

/* The shift that drops n turns. */
int turns_plan_shift(const struct engine *eng, const struct history *h,
    const char *system, unsigned n, struct shift *ret, struct err *reterr);
/* Find the fewest turns, 1 to `most`, without which at most max_tok tokens are
 * left: 1.  0: with `most` it is more. */
int turns_find_shift(const struct engine *eng, const struct history *h,
    const char *system, unsigned most, uint32_t max_tok, struct shift *ret,
    struct err *reterr);
/* Drop them, and free ret->ids. */
int turns_shift(struct history *h, struct shift *s, struct err *reterr);

#endif
