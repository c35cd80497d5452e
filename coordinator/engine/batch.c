/* coordinator/engine/batch.c - selects the rows of the next batch.
 *
 * While sequences generate, at most conf.groups batches are in flight.  A batch
 * that is sent before a result has come back lacks that result's token, and
 * tokens in one batch share a single pass over the weights.  One group is right
 * for stages that share cores.  S stages with cores of their own would take turns
 * with one group, so the sequences are divided into up to S groups.  Before the
 * first token no sequence waits for another, and prompts fill the rings. */
#include "batch.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* A fifo holds no slot twice, so it is never full. */
static void
push(struct batch_fifo *f, uint32_t seq)
{
	assert(f->n < MAX_SEQS);
	f->at[(f->head + f->n++) % MAX_SEQS] = seq;
}

static uint32_t
pop(struct batch_fifo *f)
{
	uint32_t seq = f->at[f->head];

	assert(f->n > 0);
	f->head = (f->head + 1) % MAX_SEQS;
	f->n--;
	return seq;
}

void
batch_init(struct batcher *b, const struct batch_conf *conf)
{
	uint32_t i;

	assert(conf->nseqs >= 1 && conf->nseqs <= MAX_SEQS);
	assert(conf->batch_rows >= 1);
	assert(conf->groups >= 1);
	memset(b, 0, sizeof(*b));
	b->conf = *conf;
	for (i = 0; i < conf->nseqs; i++)
		push(&b->vacant, i);
}

int
batch_has_slot(const struct batcher *b)
{
	return b->vacant.n > 0;
}

uint32_t
batch_start(struct batcher *b, const uint32_t *ids, uint32_t n)
{
	uint32_t seq = pop(&b->vacant);
	struct batch_seq *s = &b->seq[seq];

	assert(s->state == BATCH_FREE);
	assert(n > 0);
	if (s->used)
		push(&b->forget, seq);
	*s = (struct batch_seq){ .state = BATCH_PROMPT, .ids = ids, .n = n };
	push(&b->prompts, seq);
	b->pending += n;
	b->prompt_rows = b->pending;
	return seq;
}

static void
put_row(struct batch_out *out, uint32_t seq, struct batch_seq *s,
    uint32_t token, int last)
{
	out->rows[out->nrows++] = (struct batch_row){ .seq = seq,
	    .pos = s->pos++, .token = token, .flags = last ? ROW_LOGITS : 0 };
	if (last)
		s->state = BATCH_WAIT;
}

/* One token of each sequence, up to this group's share. */
static void
put_tokens(struct batcher *b, struct batch_out *out)
{
	uint32_t most = MIN(b->conf.batch_rows,
	    DIV_UP(b->ngenerating, b->conf.groups)), seq;

	while (b->ready.n > 0 && out->nrows < most) {
		seq = pop(&b->ready);
		put_row(out, seq, &b->seq[seq], b->seq[seq].token, 1);
	}
}

/* Beside tokens, prompts may double the rows or fill up to mixed_rows: a full
 * batch of prompt rows would delay the next token of every sequence.  Where
 * tokens take all rows of a batch, a prompt waits until a sequence ends. */
static void
put_prompts(struct batcher *b, struct batch_out *out)
{
	uint32_t most, seq;
	struct batch_seq *s;

	if (b->pending == 0)
		return;
	most = b->ngenerating > 0 ? MAX(b->conf.mixed_rows, 2 * out->nrows) :
	    b->conf.chunk(b->conf.arg, b->prompt_rows, b->pending);
	most = MIN(MAX(most, 1), b->conf.batch_rows);
	while (b->prompts.n > 0 && out->nrows < most) {
		seq = b->prompts.at[b->prompts.head];
		s = &b->seq[seq];
		put_row(out, seq, s, s->ids[s->pos], s->pos == s->n - 1);
		b->pending--;
		if (s->state == BATCH_WAIT)
			pop(&b->prompts);
	}
}

int
batch_next(struct batcher *b, struct batch_out *out)
{
	out->nrows = 0;
	if (b->forget.n > 0) {
		out->kind = BATCH_FORGET;
		out->seq = pop(&b->forget);
		return 1;
	}
	if (b->ngenerating > 0 && b->in_flight >= b->conf.groups)
		return 0;
	out->kind = BATCH_DATA;
	put_tokens(b, out);
	put_prompts(b, out);
	if (out->nrows == 0)
		return 0;
	b->in_flight++;
	return 1;
}

int
batch_answer(struct batcher *b, const struct batch_row *row)
{
	struct batch_seq *s;

	if (row->seq >= b->conf.nseqs)
		return -EPROTO;
	s = &b->seq[row->seq];
	if (s->state != BATCH_WAIT || row->pos != s->pos - 1)
		return -EPROTO;
	s->state = BATCH_ASKED;
	return 0;
}

void
batch_token(struct batcher *b, uint32_t seq, uint32_t token)
{
	struct batch_seq *s = &b->seq[seq];

	assert(s->state == BATCH_ASKED);
	b->ngenerating += !s->generates;
	s->generates = 1;
	s->token = token;
	s->state = BATCH_READY;
	push(&b->ready, seq);
}

void
batch_end(struct batcher *b, uint32_t seq)
{
	struct batch_seq *s = &b->seq[seq];

	assert(s->state == BATCH_ASKED);
	b->ngenerating -= (uint32_t)s->generates;
	*s = (struct batch_seq){ .state = BATCH_FREE, .used = 1 };
	push(&b->vacant, seq);
}

int
batch_done(struct batcher *b, enum batch_kind kind)
{
	if (kind != BATCH_DATA)
		return 0;
	if (b->in_flight == 0)
		return -EPROTO;
	b->in_flight--;
	return 0;
}
