/* coordinator/engine/chat.h - a conversation: turns in, answers out.
 * Owns: its decoder and its sequence's tokens.  Called by cmd/chat.c, and for
 * templates by generate and run --chat.  Does not depend on terminals or files.
 *
 * The stages keep the KV of earlier turns: each turn feeds only its own tokens,
 * and again what remains of an answer after its reasoning is dropped. */
#ifndef COORDINATOR_ENGINE_CHAT_H
#define COORDINATOR_ENGINE_CHAT_H

#include "engine.h"
#include "format.h"

/* The model's format: of its template, of its family, or plain lines.  note
 * (may be NULL) names it, and the parts of the template that are not followed
 * here. */
const struct chat_template *chat_template_of(const struct engine *eng,
    char note[CHAT_NOTE_LEN]);

/* The ids of a user's first turn, malloc'ed. */
int chat_encode_first(const struct engine *eng, const char *text,
    size_t nbytes, uint32_t **ret_ids, size_t *ret_n, struct err *reterr);

/* --- a conversation --- */

struct chat_stats {
	uint32_t turns;
	uint32_t context_tok;	/* that the stages hold */
	uint32_t prompt_tok, gen_tok;	/* last turn: fed, generated */
	uint64_t prompt_ns, gen_ns;	/* until the first token; after it */
	const char *stop;	/* last turn: eos, length, context, user */
};

struct chat_ops {
	/* More of an answer: whole characters. */
	int (*emit)(void *arg, const char *bytes, size_t nbytes,
	    struct err *reterr);
	/* Does the user want the answer to end?  Called after each token. */
	int (*is_stopped)(void *arg);
	void *arg;
};

struct chat;

/* Uses sequence 0 of eng, which is started.  system (NULL = none) must outlive
 * the chat. */
int chat_open(struct engine *eng, const struct chat_template *ct,
    const char *system, const struct chat_ops *ops, struct chat **ret,
    struct err *reterr);
void chat_close(struct chat *c);

/* One turn: the user's text, the model's answer.  -E2BIG: the text does not
 * fit into the rest of the context, and nothing has changed. */
int chat_turn(struct chat *c, const char *text, size_t nbytes,
    struct err *reterr);
/* Begin a new conversation. */
int chat_reset(struct chat *c, struct err *reterr);
const struct chat_stats *chat_stats(const struct chat *c);

#endif
