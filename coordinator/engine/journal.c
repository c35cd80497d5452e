/* coordinator/engine/journal.c - tokens by sequence, and batches in flight. */
#include "journal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
journal_open(struct journal *j, uint32_t nseqs, uint32_t ctx_tok,
    uint32_t batch_rows, uint32_t nbatches, struct err *reterr)
{
	uint32_t i;

	assert(nseqs >= 1 && nseqs <= MAX_SEQS);
	assert(nbatches >= 1);
	*j = (struct journal){ .nseqs = nseqs, .ctx_tok = ctx_tok,
	    .batch_rows = batch_rows, .nbatches = nbatches };
	/* Large: calloc leaves pages untouched until sequences reach them. */
	j->token = calloc((size_t)nseqs * ctx_tok, sizeof(*j->token));
	j->batch = calloc(nbatches, sizeof(*j->batch));
	j->row = calloc((size_t)nbatches * batch_rows, sizeof(*j->row));
	if (j->token == NULL || j->batch == NULL || j->row == NULL) {
		journal_close(j);
		return err_nomem(reterr,
		    "a journal of %u sequences of %u tokens",
		    nseqs, ctx_tok);
	}
	for (i = 0; i < nbatches; i++)
		j->batch[i].rows = j->row + (size_t)i * batch_rows;
	return 0;
}

void
journal_close(struct journal *j)
{
	free(j->token);
	free(j->batch);
	free(j->row);
	memset(j, 0, sizeof(*j));
}

static int
is_valid_batch(const struct journal *j, const struct batch_hdr *hdr,
    const struct batch_row *rows)
{
	uint32_t i;

	if (hdr->nrows > j->batch_rows || hdr->seq >= j->nseqs)
		return 0;
	for (i = 0; i < hdr->nrows; i++)
		if (rows[i].seq >= j->nseqs || rows[i].pos >= j->ctx_tok)
			return 0;
	return 1;
}

int
journal_push(struct journal *j, const struct batch_hdr *hdr,
    const struct batch_row *rows)
{
	struct journal_batch *b;

	if (!is_valid_batch(j, hdr, rows))
		return -EINVAL;
	if (j->n == j->nbatches)
		return -EAGAIN;
	b = &j->batch[(j->head + j->n++) % j->nbatches];
	b->hdr = *hdr;
	if (hdr->nrows > 0)
		memcpy(b->rows, rows, hdr->nrows * sizeof(*rows));
	return 0;
}

const struct journal_batch *
journal_at(const struct journal *j, uint32_t i)
{
	assert(i < j->n);
	return &j->batch[(j->head + i) % j->nbatches];
}

/* The first row with logits from `at` on; hdr.nrows = none. */
static uint32_t
next_wanted(const struct journal_batch *b, uint32_t at)
{
	while (at < b->hdr.nrows && !(b->rows[at].flags & ROW_LOGITS))
		at++;
	return at;
}

int
journal_take_rows(const struct journal_batch *b, uint32_t *at,
    const struct batch_row *rows, uint32_t nrows, int last)
{
	uint32_t k = next_wanted(b, *at), i;

	/* An empty block that is not the last would repeat for ever. */
	if (nrows == 0 && !last)
		return 0;
	for (i = 0; i < nrows; i++) {
		if (k == b->hdr.nrows ||
		    memcmp(&rows[i], &b->rows[k], sizeof(rows[i])) != 0)
			return 0;
		k = next_wanted(b, k + 1);
	}
	*at = k;
	return last == (k == b->hdr.nrows);
}

static uint32_t *
tokens_of(struct journal *j, uint32_t seq)
{
	return j->token + (size_t)seq * j->ctx_tok;
}

/* Track what a stage's sequences hold after this batch. */
static void
apply_batch(struct journal *j, const struct journal_batch *b)
{
	const struct batch_hdr *h = &b->hdr;
	const struct batch_row *r;

	switch (h->kind) {
	case BATCH_DATA:
		for (r = b->rows; r < b->rows + h->nrows; r++) {
			tokens_of(j, r->seq)[r->pos] = r->token;
			j->len[r->seq] = r->pos + 1;
		}
		break;
	case BATCH_FORGET:
		j->len[h->seq] = MIN(h->pos, j->len[h->seq]);
		j->ended[h->seq] = 0;
		break;
	case BATCH_STOP:	/* the stages leave their loops */
		memset(j->len, 0, sizeof(j->len));
		break;
	default:
		break;
	}
}

void
journal_pop(struct journal *j)
{
	apply_batch(j, journal_at(j, 0));
	j->head = (j->head + 1) % j->nbatches;
	j->n--;
}

void
journal_end_sequence(struct journal *j, uint32_t seq)
{
	assert(seq < j->nseqs);
	j->ended[seq] = 1;
}

/* Must a replay include this sequence?  Rows of an ended sequence may still be in
 * flight together with others.  Once only a stop is in flight, none is needed. */
static int
is_needed(const struct journal *j, uint32_t seq)
{
	const struct journal_batch *b;
	uint32_t i, r;

	if (j->n > 0 && journal_at(j, 0)->hdr.kind == BATCH_STOP)
		return 0;
	if (!j->ended[seq])
		return 1;
	for (i = 0; i < j->n; i++) {
		b = journal_at(j, i);
		for (r = 0; r < b->hdr.nrows; r++)
			if (b->rows[r].seq == seq)
				return 1;
	}
	return 0;
}

uint32_t
journal_rows(const struct journal *j)
{
	uint32_t most = 0, i;

	for (i = 0; i < j->n; i++)
		most = MAX(most, journal_at(j, i)->hdr.nrows);
	return most;
}

uint64_t
journal_tokens(const struct journal *j, uint32_t *ret_seqs)
{
	uint64_t n = 0;
	uint32_t i;

	*ret_seqs = 0;
	for (i = 0; i < j->nseqs; i++)
		if (j->len[i] > 0 && is_needed(j, i)) {
			n += j->len[i];
			*ret_seqs += 1;
		}
	return n;
}

uint32_t
journal_replay(const struct journal *j, struct journal_cursor *c,
    struct batch_row *rows, uint32_t max_rows)
{
	uint32_t n = 0;

	while (n < max_rows && c->seq < j->nseqs) {
		if (c->pos == j->len[c->seq] ||
		    (c->pos == 0 && !is_needed(j, c->seq))) {
			c->seq++;
			c->pos = 0;
			continue;
		}
		rows[n++] = (struct batch_row){ .seq = c->seq, .pos = c->pos,
		    .token = j->token[(size_t)c->seq * j->ctx_tok + c->pos] };
		c->pos++;
	}
	return n;
}
