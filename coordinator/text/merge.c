/* coordinator/text/merge.c - merges neighbouring symbols, the best pair first.
 *
 * A pair on the heap is stale when one of its symbols has merged since, and is
 * longer or empty now.  A symbol grows only by its right neighbour, so a
 * changed sum of both lengths, or an empty symbol, identifies every stale pair. */
#include "merge.h"

#include <errno.h>
#include <stdlib.h>

/* The heap holds 2 * nsym pairs at most: each symbol starts with one pair, and
 * a merge removes one and adds at most two. */
int
merger_begin(struct merger *m, size_t nsym)
{
	size_t cap = MAX(nsym, m->cap * 2);

	m->nsym = 0;
	m->nheap = 0;
	if (nsym <= m->cap)
		return 0;
	merger_done(m);
	m->sym = reallocarray(NULL, cap, sizeof(*m->sym));
	m->heap = reallocarray(NULL, cap, 2 * sizeof(*m->heap));
	if (m->sym == NULL || m->heap == NULL)
		return -ENOMEM;
	m->cap = cap;
	return 0;
}

void
merger_add(struct merger *m, uint32_t off, uint32_t nbytes, int32_t id)
{
	uint32_t i = m->nsym++;

	m->sym[i] = (struct symbol){ off, nbytes, i - 1, NO_SYMBOL, id };
	if (i > 0)		/* else prev is 0 - 1, which is NO_SYMBOL */
		m->sym[i - 1].next = i;
}

static int
is_better(const struct merge_pair *a, const struct merge_pair *b)
{
	return a->rank < b->rank || (a->rank == b->rank && a->left < b->left);
}

static void
heap_push(struct merger *m, struct merge_pair p)
{
	size_t i = m->nheap++;

	for (; i > 0 && is_better(&p, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = p;
}

static struct merge_pair
heap_pop(struct merger *m)
{
	struct merge_pair top = m->heap[0], last = m->heap[--m->nheap];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < m->nheap) {
		if (child + 1 < m->nheap &&
		    is_better(&m->heap[child + 1], &m->heap[child]))
			child++;
		if (!is_better(&m->heap[child], &last))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = last;
	return top;
}

static void
offer_pair(struct merger *m, uint32_t left, uint32_t right)
{
	struct merge_pair p = { .left = left, .right = right };

	if (left == NO_SYMBOL || right == NO_SYMBOL)
		return;
	p.nbytes = m->sym[left].nbytes + m->sym[right].nbytes;
	if (m->fn(m->arg, &m->sym[left], &m->sym[right], &p.rank, &p.id))
		heap_push(m, p);
}

/* Step n of long work. */
static int
poll_now_and_then(const struct merger *m, uint64_t n, struct err *reterr)
{
	return m->poll != NULL && n % (64 << 10) == 0 ? m->poll(reterr) : 0;
}

int
merger_run(struct merger *m, struct err *reterr)
{
	uint64_t step = 0;
	uint32_t i;
	int rc;

	for (i = 1; i < m->nsym; i++) {
		offer_pair(m, i - 1, i);
		if ((rc = poll_now_and_then(m, ++step, reterr)) < 0)
			return rc;
	}
	while (m->nheap > 0) {
		struct merge_pair p = heap_pop(m);
		struct symbol *l = &m->sym[p.left], *r = &m->sym[p.right];

		if ((rc = poll_now_and_then(m, ++step, reterr)) < 0)
			return rc;
		if (l->nbytes == 0 || r->nbytes == 0 ||
		    l->nbytes + r->nbytes != p.nbytes)
			continue;
		l->nbytes = p.nbytes;
		l->id = p.id;
		r->nbytes = 0;
		l->next = r->next;
		if (l->next != NO_SYMBOL)
			m->sym[l->next].prev = p.left;
		offer_pair(m, l->prev, p.left);
		offer_pair(m, p.left, l->next);
	}
	return 0;
}

void
merger_done(struct merger *m)
{
	free(m->sym);
	free(m->heap);
	m->sym = NULL;
	m->heap = NULL;
	m->cap = 0;
}
