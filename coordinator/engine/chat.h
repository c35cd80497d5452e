/* coordinator/engine/chat.h - a conversation: turns in, answers out.
 * Owns: its sampler, its decoder, its place in the context.  Called by
 * cmd/chat.c and cmd/run.c (--chat).  Knows nothing of terminals and files.
 *
 * The stages keep the keys and values of earlier turns: of each turn only its
 * own tokens are fed, and what stays of an answer whose thoughts go. */
#ifndef COORDINATOR_ENGINE_CHAT_H
#define COORDINATOR_ENGINE_CHAT_H

#include "coordinator/text/filter.h"
#include "coordinator/text/template.h"
#include "engine.h"
#include "sample.h"

/* The model's template; plain when it has none or one that is not known.
 * Says which, and why, in note (may be NULL). */
enum { CHAT_NOTE_LEN = 256 };
const struct chat_template *chat_template_of(const struct engine *eng,
    char note[CHAT_NOTE_LEN]);

/* Ids of a user's first turn, malloc'ed. */
int chat_encode_first(const struct engine *eng, const char *text, size_t nbytes,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr);

/* --- a conversation --- */

struct chat_stats {
	uint32_t turns;
	uint32_t context_tok;	/* that the stages hold */
	uint32_t prompt_tok, gen_tok;	/* of the last turn: fed, made */
	uint64_t prompt_ns, gen_ns;	/* to the first token, and from it */
	const char *stop;	/* of the last turn: eos, length, context, user */
};

struct chat_ops {
	/* More of an answer: whole characters. */
	int (*piece)(void *arg, const char *bytes, size_t nbytes,
	    struct err *reterr);
	/* Has the user had enough?  Asked before each token. */
	int (*enough)(void *arg);
	void *arg;
};

struct chat;

/* eng is started, and its sequence 0 is the chat's from now on.  system NULL:
 * none; it stays the caller's. */
int chat_open(struct engine *eng, const struct chat_template *ct,
    const char *system, const struct chat_ops *ops, struct chat **ret,
    struct err *reterr);
void chat_close(struct chat *c);

/* One turn: the user's text, the model's answer.  -E2BIG: the text does not
 * fit into what is left of the context; nothing has happened. */
int chat_turn(struct chat *c, const char *text, size_t nbytes,
    struct err *reterr);
/* A new conversation. */
int chat_reset(struct chat *c, struct err *reterr);
const struct chat_stats *chat_stats(const struct chat *c);

#endif
