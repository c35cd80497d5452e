/* coordinator/engine/turns.h - a conversation's tokens: its turns as the
 * model's template writes them, and the fewest to leave out so that they fit.
 * Owns nothing.  Called by chat.c.  Does not sample or feed. */
#ifndef COORDINATOR_ENGINE_TURNS_H
#define COORDINATOR_ENGINE_TURNS_H

#include <time.h>

#include "history.h"

/* A conversation: some turns of a history, then a message, if there is one. */
struct turns {
	const struct engine *eng;
	const struct history_turn *turn;
	unsigned from, to;	/* turn[from, to) */
	const char *system;	/* NULL = none */
	const char *user;	/* [nuser], whose answer begins; NULL: the
				 * conversation ends with the last turn */
	size_t nuser;
	const char *begun;	/* [nbegun], and it begins with this */
	size_t nbegun;
	const struct tm *now;
};

/* Encode all of it; *ret_ids is malloc'ed.  No turns and no message are no
 * tokens. ERR_USAGE: the template refuses it, in its own words; -ECOMM: the
 * reader was lost. */
int turns_encode(const struct turns *t, uint32_t **ret_ids, size_t *ret_n,
    struct err *reterr);

/* Raise t->from by the fewest turns, 1 to `most`, without which at most max_tok
 * tokens are left, and encode that: 1.  0: with `most` it is more; then *ret_n
 * are those that are left, t->from + most turns left out. */
int turns_fit(struct turns *t, unsigned most, uint32_t max_tok,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr);

#endif
