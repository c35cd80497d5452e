/* coordinator/plan/own_need.h - the memory that the coordinator itself needs.
 * Owns: the formula.  Called by the engine, which makes it the coordinator's cap.
 * Knows sizes only: no files, no processes. */
#ifndef COORDINATOR_PLAN_OWN_NEED_H
#define COORDINATOR_PLAN_OWN_NEED_H

#include "plan.h"

/* Memory per byte of a text that is read and encoded: ids of 4 bytes, mostly
 * fewer than bytes; two buffers that double; two copies. */
enum { OWN_TEXT_FACTOR = 10 };

/* Below this a cap is useless. */
enum { OWN_LEAST_TEXT = 4096 };

struct own_input {
	/* Memory when the plan is made: the program, the config, the model's
	 * directory and vocabulary, a file of prompts. */
	uint64_t base_bytes;
	uint64_t command_bytes;	/* what only this command needs */
	uint64_t spare_bytes;	/* what it may need; no part of own_least() */
	uint64_t text_bytes;	/* the longest text; 0 = own_text_bytes() */
	uint32_t window_tok;	/* of the repetition penalty; 0 = off */
};

struct own_need {
	uint64_t base_bytes, command_bytes;
	uint64_t rings_bytes;	/* rings that this process reads or writes, and
				 * status pages: shared with the workers */
	uint64_t journal_bytes;	/* tokens of all sequences, batches in flight */
	uint64_t sampler_bytes;	/* candidates, windows of the penalty */
	uint64_t answers_bytes;	/* texts and ids of all sequences */
	uint64_t text_bytes;	/* to read and encode the longest text */
	uint64_t spare_bytes;
	uint64_t slack_bytes;	/* page tables, pages touched later, rounding */
	uint64_t total_bytes;	/* the sum, rounded up to 1 MiB */
};

void own_need(const struct own_input *in, const struct plan *p,
    struct own_need *ret);

/* The longest text of a context: what texts in most languages need. */
uint64_t own_text_bytes(uint32_t ctx_tok);

/* The longest text under a cap; 0 = not even OWN_LEAST_TEXT.  need is of
 * own_need(). */
uint64_t own_text_within(const struct own_need *need, uint64_t cap_bytes);
/* The least cap that leaves room for a text. */
uint64_t own_least(const struct own_need *need);

#endif
