/* coordinator/engine/chat.h - a conversation: turns in, answers out.
 * Owns: its decoder and its history.  Called by cmd/chat.c and its parts;
 * chat_encode_first() by prompts and run --chat.  Does not depend on terminals.
 *
 * A conversation is a list of texts.  With each message the model's template
 * writes all of it anew.  The stages keep the KV of its tokens up to the first
 * that differs from what they hold, and compute the rest.  Ids are compared,
 * not texts: an answer that the model spelled in another way than the tokenizer
 * does is computed again from there on, so that a conversation and its saved
 * copy go on alike.
 *
 * Turns can be taken back, dropped, saved and loaded.  The next message is then
 * read as in a new conversation with the turns that remain, to the bit; with
 * --temp 0 its answer is the same, too, unless the template writes the time: a
 * conversation keeps that of its begin.  Other answers depend on the random
 * state, which /undo does not take back. */
#ifndef COORDINATOR_ENGINE_CHAT_H
#define COORDINATOR_ENGINE_CHAT_H

#include "engine.h"

/* The ids of a user's first turn, malloc'ed. */
int chat_encode_first(const struct engine *eng, const char *text,
    size_t nbytes, uint32_t **ret_ids, size_t *ret_n, struct err *reterr);

/* --- a conversation --- */

/* The texts of a turn; any bytes. */
struct chat_pair {
	const char *user, *answer;
	size_t nuser, nanswer;
	const char *thoughts;	/* apart from the answer; NULL = none */
	size_t nthoughts;
};

struct chat_stats {
	uint32_t turns;		/* that the conversation holds */
	uint32_t context_tok;	/* their tokens in the context */
	/* The last turn's, if it is one of them; else stop is NULL. */
	uint32_t kept_tok;	/* that the stages held of it already */
	uint32_t prompt_tok, gen_tok;	/* fed, generated */
	uint64_t prompt_ns, gen_ns;	/* until the first token; after it */
	uint32_t thought_tok;	/* of those generated */
	const char *stop;	/* eos, stop, length, context, user */
	uint32_t dropped;	/* turns that it made room by */
};

struct chat_ops {
	/* More of an answer: whole characters. */
	int (*emit)(void *arg, const char *bytes, size_t nbytes,
	    struct err *reterr);
	/* More of the thoughts that the model has before it answers; NULL =
	 * they are not shown. */
	int (*think)(void *arg, const char *bytes, size_t nbytes,
	    struct err *reterr);
	/* Does the user want the answer to end?  Called after each token, and
	 * between the batches of a long message. */
	int (*is_stopped)(void *arg);
	/* `done` of n tokens of a long message are on their way. */
	void (*reading)(void *arg, uint32_t done, uint32_t n);
	void *arg;
};

struct chat;

/* Uses sequence 0 of eng, which is started.  system (NULL = none) must outlive
 * the chat.  When the context is full, --context-shift of eng's config drops
 * the oldest turns; without it the answer ends. */
int chat_open(struct engine *eng, const char *system,
    const struct chat_ops *ops, struct chat **ret, struct err *reterr);
void chat_close(struct chat *c);

/* One turn: the user's text, the model's answer; it is empty if the user ends
 * it while the text is read.  -E2BIG: the text does not fit into the rest of
 * the context; render_is_refusal(): the template refuses it.  Then nothing has
 * changed. -ECOMM: the reader was lost (coordinator/reader/reader.h), and the
 * conversation can go on. */
int chat_turn(struct chat *c, const char *text, size_t nbytes,
    struct err *reterr);
/* The next answer begins with this text, which is shown; "" = as usual. */
int chat_begin_answer(struct chat *c, const char *text, size_t nbytes,
    struct err *reterr);
/* Begin a new conversation, with the system message of chat_open(). */
int chat_reset(struct chat *c, struct err *reterr);
/* Take back the last turn.  -ENOENT: there is none. */
int chat_undo(struct chat *c, struct err *reterr);
/* Drop the n oldest turns.  -ERANGE: there are fewer. */
int chat_drop(struct chat *c, uint32_t n, struct err *reterr);
/* Replace the conversation by these turns; *ret_dropped of the oldest were
 * dropped to make room.  -E2BIG: they do not fit into the context, a refusal or
 * -ECOMM as of chat_turn(): nothing has changed. */
int chat_load(struct chat *c, const char *system, const struct chat_pair *pair,
    uint32_t npairs, uint32_t *ret_dropped, struct err *reterr);

const struct chat_stats *chat_stats(const struct chat *c);
const char *chat_system(const struct chat *c);	/* NULL = none */
/* Turn i, from 0; valid until the conversation changes. */
struct chat_pair chat_pair_at(const struct chat *c, uint32_t i);

#endif
