/* coordinator/engine/generate.h - texts out of prompts, several at once.
 * Owns: what belongs to each live text: sampler, detokenizer, bytes so far.
 * Called by run.  Knows nothing of files, JSON or stdout. */
#ifndef COORDINATOR_ENGINE_GENERATE_H
#define COORDINATOR_ENGINE_GENERATE_H

#include "chat.h"
#include "coordinator/text/detokenizer.h"
#include "engine.h"
#include "sample.h"

/* One prompt and what becomes of it. */
struct text {
	uint32_t index;		/* of the prompt: its caller's number */
	uint32_t *ids;		/* [n], malloc'ed; freed at the end */
	uint32_t n;
	uint64_t seed;
	void *line;		/* the caller's own */
	uint32_t made;		/* tokens generated */
	const char *stop;	/* "eos", "length", "context"; NULL = cut off */
	struct err err;		/* why this text alone failed; kind 0 = did not */
	uint64_t start_ns, first_ns, last_ns;	/* begun; first and last logits */
	uint64_t hash;		/* of the last logits, when stop is set */
	struct detokenizer d;
	struct chat_filter filter;
};

/* The caller's part; each returns a negative error to end everything. */
struct generate_ops {
	/* The next prompt: 1 with index, ids, n, seed and line filled in; 0 =
	 * none is left. */
	int (*prompt)(void *arg, struct text *t, struct err *reterr);
	/* More of a text: whole characters. */
	int (*piece)(void *arg, const struct text *t, const char *bytes,
	    size_t nbytes, struct err *reterr);
	/* A text ends; also when everything does, with stop NULL. */
	int (*end)(void *arg, const struct text *t, struct err *reterr);
	void *arg;
};

/* Of all texts. */
struct generate_sums {
	uint32_t texts;			/* begun */
	uint64_t prompt_tok, gen_tok;	/* given; made */
	uint64_t batches, rows;		/* sent, rows of prompts and tokens */
	uint64_t ns;			/* from the first batch to the end */
	uint64_t ttft_ns;		/* to the first token of any text */
};

/* Run every prompt, as many at once as the plan has sequences.  Whatever ends
 * it, each text that was begun gets its end. */
int generate(struct engine *eng, const struct generate_ops *ops,
    struct generate_sums *ret, struct err *reterr);

#endif
