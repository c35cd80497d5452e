/* coordinator/engine/decoder.h - the token loop: logits in, text out.
 * Owns: the sampler, and a buffer for the text of a token.  Called by chat and
 * generate, which move the rows.  Does not depend on the pipeline or the output. */
#ifndef COORDINATOR_ENGINE_DECODER_H
#define COORDINATOR_ENGINE_DECODER_H

#include "coordinator/text/detokenizer.h"
#include "coordinator/text/filter.h"
#include "coordinator/text/stop.h"
#include "engine.h"

struct decoder;

/* Decodes the text of nseqs sequences with the sampling settings of eng's config.
 * form: they are answers in conversations; NULL: texts that go on.  eng needs a plan
 * and a tokenizer. */
int decoder_open(const struct engine *eng, const struct form *form,
    uint32_t nseqs, struct decoder **ret, struct err *reterr);
void decoder_close(struct decoder *d);

/* A new sequence: no history, the random state of this seed. */
void decoder_seed(struct decoder *d, uint32_t seq, uint64_t seed);
/* Add ids [n] of the prompt to the window of the repetition penalty. */
void decoder_add_prompt(struct decoder *d, uint32_t seq, const uint32_t *ids,
    uint32_t n);

/* Make ids [n] that window; the random state stays. */
void decoder_set_window(struct decoder *d, uint32_t seq, const uint32_t *ids,
    uint32_t n);

/* Sample a token.  -EDOM with a message when the logits are not numbers. */
int decoder_sample(struct decoder *d, uint32_t seq, const float *logits,
    uint32_t *ret_id, struct err *reterr);

/* One answer of a sequence. */
struct answer {
	/* Set before decoder_begin(). */
	uint32_t seq;
	uint32_t context_tok;	/* that the stages hold when it begins */
	/* Whole characters to show; a negative return ends the answer.  Text
	 * that may be the beginning of a stop text comes later. */
	int (*emit)(void *arg, const char *bytes, size_t nbytes,
	    struct err *reterr);
	/* The same for the model's thoughts; NULL = nobody wants them. */
	int (*emit_thought)(void *arg, const char *bytes, size_t nbytes,
	    struct err *reterr);
	/* Does the user want it to end?  NULL = never. */
	int (*is_stopped)(void *arg);
	void *arg;
	const char *begun;	/* [nbegun], the prompt's end that it continues;
				 * NULL = it begins */
	size_t nbegun;
	/* Set by the decoder. */
	uint32_t ntokens;	/* generated */
	const char *stop;	/* eos, stop (a text of --stop), length, context,
				 * user; NULL: goes on */
	int is_cut;		/* it ends within a character, whose bytes were
				 * not emitted */
	size_t tail_bytes;	/* of its tokens' text: a stop text and what
				 * follows it, not emitted */
	struct stop_state stops;
	struct detokenizer detok;
	struct chat_filter filter;
};

void decoder_begin(struct decoder *d, struct answer *a);
/* Take the token that was sampled: show it and count it, unless it ends the
 * answer.  Sets a->stop when the answer ends with or before it. */
int decoder_take(struct decoder *d, struct answer *a, uint32_t id,
    struct err *reterr);
/* Emit what was held back, and set is_cut. */
int decoder_end(struct decoder *d, struct answer *a, struct err *reterr);

#endif
