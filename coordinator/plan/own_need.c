/* coordinator/plan/own_need.c - the coordinator's memory, term by term. */
#include "own_need.h"

#include "shm/layout.h"
#include "shm/ring.h"

/* Bytes of text per token that a text may have; most languages have 3 to 5. */
enum { TOKEN_BYTES = 16 };
/* A short context takes texts of this size, too: tokens can be long. */
#define SHORT_TEXT	MIB

/* Bytes of generated text per token, of which there are copies: the text, its
 * JSON, and that printed. */
enum { ANSWER_BYTES = 8, ANSWER_COPIES = 4 };

#define SLACK_BYTES	(4 * MIB)
enum { PAGE = 4096 };

/* This process touches each session's status page and each ring's first page; of
 * the rings it reads or writes, which are the first and the last, all. */
static uint64_t
rings_need(const struct plan *p, uint32_t *ret_slots)
{
	uint64_t sum = 2 * PAGE * (uint64_t)p->nsessions;
	uint32_t nslots, nbytes;
	unsigned i;

	*ret_slots = 0;
	for (i = 0; i <= p->nsessions; i++) {
		plan_ring(p, i, &nslots, &nbytes);
		*ret_slots += nslots;
		if (i == 0 || i == p->nsessions)
			sum += ring_bytes(nslots, nbytes);
	}
	return sum;
}

/* As engine/journal.h has it, and two batches under construction. */
static uint64_t
journal_need(const struct plan *p, uint32_t nslots)
{
	return (uint64_t)p->nseqs * p->ctx_tok * sizeof(uint32_t) +
	    (uint64_t)nslots * (sizeof(struct batch_hdr) + sizeof(void *)) +
	    ((uint64_t)nslots + 2) * p->batch_rows * sizeof(struct batch_row);
}

/* A logit and an id per candidate, a flag per token (engine/sample.c); a ring of
 * tokens and a random state per sequence. */
static uint64_t
sampler_need(const struct plan *p, uint32_t window_tok)
{
	return (uint64_t)p->model->hp.n_vocab * 9 + (uint64_t)p->nseqs *
	    (64 + (uint64_t)window_tok * sizeof(uint32_t));
}

/* The ids of a conversation are in an array that doubles. */
static uint64_t
answers_need(const struct plan *p)
{
	return ((uint64_t)p->ctx_tok + 1) * 2 * sizeof(uint32_t) +
	    (uint64_t)p->nseqs * p->ctx_tok * ANSWER_BYTES * ANSWER_COPIES;
}

uint64_t
own_text_bytes(uint32_t ctx_tok)
{
	return MAX((uint64_t)ctx_tok * TOKEN_BYTES, SHORT_TEXT);
}

static uint64_t
least_without_text(const struct own_need *n)
{
	return n->base_bytes + n->command_bytes + n->rings_bytes +
	    n->journal_bytes + n->sampler_bytes + n->answers_bytes +
	    n->slack_bytes;
}

void
own_need(const struct own_input *in, const struct plan *p,
    struct own_need *ret)
{
	uint64_t text = in->text_bytes > 0 ? in->text_bytes :
	    own_text_bytes(p->ctx_tok);
	uint64_t sum;
	uint32_t nslots;

	*ret = (struct own_need){ .base_bytes = in->base_bytes,
	    .command_bytes = in->command_bytes,
	    .rings_bytes = rings_need(p, &nslots),
	    .sampler_bytes = sampler_need(p, in->window_tok),
	    .answers_bytes = answers_need(p),
	    .spare_bytes = in->spare_bytes,
	    .text_bytes = text * OWN_TEXT_FACTOR };
	ret->journal_bytes = journal_need(p, nslots);
	/* Page tables are a 512th of what is mapped. */
	sum = least_without_text(ret) + ret->spare_bytes + ret->text_bytes;
	ret->slack_bytes = SLACK_BYTES + sum / 512;
	ret->total_bytes = ALIGN_UP(sum + ret->slack_bytes, MIB);
}

uint64_t
own_text_within(const struct own_need *need, uint64_t cap_bytes)
{
	return cap_bytes < own_least(need) ? 0 :
	    (cap_bytes - least_without_text(need)) / OWN_TEXT_FACTOR;
}

uint64_t
own_least(const struct own_need *need)
{
	return least_without_text(need) + OWN_LEAST_TEXT * OWN_TEXT_FACTOR;
}
