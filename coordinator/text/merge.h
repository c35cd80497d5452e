/* coordinator/text/merge.h - merges neighbouring symbols, the best pair first.
 * Owns: the symbols of one piece of text and the heap of their pairs.
 * Called by spm.c and bpe.c, which rank the pairs.  Does not
 * depend on a vocabulary. */
#ifndef COORDINATOR_TEXT_MERGE_H
#define COORDINATOR_TEXT_MERGE_H

#include "token.h"

#define NO_SYMBOL	UINT32_MAX

struct symbol {
	uint32_t off, nbytes;	/* nbytes 0: merged into its left neighbour */
	uint32_t prev, next;	/* or NO_SYMBOL */
	int32_t id;		/* or NO_TOKEN */
};

/* Do two neighbours make a token?  Returns 1 with its id and rank (the lowest
 * merges first), else 0. */
typedef int merge_fn(const void *arg, const struct symbol *left,
    const struct symbol *right, uint32_t *ret_rank, int32_t *ret_id);

struct merge_pair {
	uint32_t rank;
	uint32_t left, right;
	uint32_t nbytes;	/* of both; a pair with another sum is stale */
	int32_t id;
};

struct merger {
	merge_fn *fn;
	const void *arg;
	struct symbol *sym;	/* [cap], nsym used */
	struct merge_pair *heap;	/* [2 * cap], nheap used, best first */
	size_t nheap, cap;
	uint32_t nsym;
	tokenizer_poll_fn *poll;	/* or NULL */
};

/* Begin a piece of at most nsym symbols; 0 or -ENOMEM. */
int merger_begin(struct merger *m, size_t nsym);
/* Append a symbol. */
void merger_add(struct merger *m, uint32_t off, uint32_t nbytes, int32_t id);
/* Merge until no pair is left, the leftmost of equals first.  The remaining
 * symbols are linked by next, from symbol 0 on.  O(n log n).  A negative return
 * of poll() ends it. */
int merger_run(struct merger *m, struct err *reterr);
void merger_done(struct merger *m);

#endif
