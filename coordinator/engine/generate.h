/* coordinator/engine/generate.h - completes prompts, several at once.
 * Owns: the batcher, the decoder, and every completion in flight.
 * Called by run.  Does not depend on files, JSON or stdout. */
#ifndef COORDINATOR_ENGINE_GENERATE_H
#define COORDINATOR_ENGINE_GENERATE_H

#include "engine.h"

/* One prompt and its result. */
struct completion {
	/* From the caller. */
	uint32_t index;		/* its number for the prompt */
	uint32_t *ids;		/* [n], malloc'ed; freed at the end */
	uint32_t n;
	uint64_t seed;
	void *line;		/* anything */
	/* The result. */
	uint32_t ntokens;	/* generated */
	uint32_t thought_tok;	/* of them: thoughts and their markers */
	const char *stop;	/* eos, stop, length, context; NULL = cut
				 * short */
	int is_cut;		/* the text ends within a character, without its
				 * bytes */
	struct err err;		/* why this one failed; ERR_NONE = it did not */
	uint64_t start_ns, first_ns, last_ns;	/* begun; first, last logits */
	uint64_t hash;		/* of the last logits, once stop is set */
};

/* The caller's part.  A negative return ends everything. */
struct generate_ops {
	/* The next prompt: 1 with index, ids, n, seed and line filled in; 0 =
	 * there are no more. */
	int (*next_prompt)(void *arg, struct completion *t,
	    struct err *reterr);
	/* More of the text: whole characters. */
	int (*emit)(void *arg, const struct completion *t, const char *bytes,
	    size_t nbytes, struct err *reterr);
	/* More of the model's thoughts: whole characters. */
	int (*emit_thought)(void *arg, const struct completion *t,
	    const char *bytes, size_t nbytes, struct err *reterr);
	/* The end of a completion; with stop NULL when all are cut short. */
	int (*finish)(void *arg, const struct completion *t,
	    struct err *reterr);
	void *arg;
};

/* Totals over all completions. */
struct generate_totals {
	uint32_t completions;		/* begun */
	uint64_t prompt_tok, gen_tok;
	uint64_t prompt_read;		/* tokens of prompts that came back */
	uint64_t gen_rows;		/* generated tokens that came back: all
					 * but the first of each text */
	/* Time in which any prompt was being read, any text generated.  They
	 * overlap where there are several. */
	uint64_t prompt_ns, gen_ns;
	uint64_t batches, rows;		/* sent; rows of prompts and tokens */
	uint64_t ns;			/* from the first batch to the end */
	uint64_t ttft_ns;		/* until the first token of any */
};

/* Run every prompt, as many at once as the plan has sequences.  However it
 * ends, finish is called for each completion that was begun. */
int generate(struct engine *eng, const struct generate_ops *ops,
    struct generate_totals *ret, struct err *reterr);

#endif
