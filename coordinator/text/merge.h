/* coordinator/text/merge.h - neighbours become one, the best pair first.
 * Owns: the symbols of one piece of text and the heap of their pairs.
 * Called by text/spm.c and text/bpe.c, which say what merges. */
#ifndef COORDINATOR_TEXT_MERGE_H
#define COORDINATOR_TEXT_MERGE_H

#include "vocab.h"

#define NO_SYMBOL	UINT32_MAX

struct symbol {
	uint32_t off, nbytes;	/* 0 bytes = merged into its left neighbour */
	uint32_t prev, next;	/* or NO_SYMBOL */
	int32_t id;		/* or NO_TOKEN */
};

/* Do two neighbours make a token?  1 with it and its rank, the lowest of which
 * merges first; else 0. */
typedef int merge_fn(const void *arg, const struct symbol *left,
    const struct symbol *right, uint32_t *ret_rank, int32_t *ret_id);

struct merge_pair {
	uint32_t rank;
	uint32_t left, right;
	uint32_t nbytes;	/* of both; another sum = a stale pair */
	int32_t id;
};

struct merger {
	merge_fn *fn;
	const void *arg;
	struct symbol *sym;	/* [nsym of cap] */
	struct merge_pair *heap;	/* [nheap of 2 * cap], the best first */
	size_t nheap, cap;
	uint32_t nsym;
};

/* Begin a piece of at most nsym symbols; 0 or -ENOMEM. */
int merger_begin(struct merger *m, size_t nsym);
/* The next symbol, behind the last one. */
void merger_add(struct merger *m, uint32_t off, uint32_t nbytes, int32_t id);
/* Merge until nothing does, the leftmost of equals first.  What is left hangs
 * together by next, from symbol 0 on.  O(n log n). */
void merger_run(struct merger *m);
void merger_done(struct merger *m);

#endif
