/* tests/support/chain.c - see chain.h. */
#include "chain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "config/cores.h"
#include "kernels/cpu.h"
#include "t.h"

static uint32_t
ring_slot(const struct chain *ch, unsigned i)
{
	if (i == 0)
		return (uint32_t)slot_bytes(ch->conf.batch_rows, 0);
	if (i < ch->conf.nstages)
		return (uint32_t)slot_bytes(ch->conf.batch_rows,
		    ch->m->hp.n_embd);
	return (uint32_t)slot_bytes(ch->conf.head_rows, ch->m->hp.n_vocab);
}

static void
attach_ring(struct chain *ch, unsigned i, enum ring_side side, struct ring *ret)
{
	struct err e = { 0 };

	t_ok(ring_attach_mapped(ch->map[i].base, ch->map[i].nbytes, side,
	    CHAIN_SLOTS, ring_slot(ch, i), ret, &e), &e);
}

/* Configure stage i as the orders of a coordinator would. */
static void
set_stage_conf(struct chain *ch, unsigned i)
{
	const struct chain_conf *lc = &ch->conf;
	struct part *p = &ch->part[i];
	struct stage_conf *sc = &p->sc;
	uint32_t u0 = lc->cut[i], u1 = lc->cut[i + 1];
	unsigned d = i;

	while (lc->dev[d] == NULL)
		d--;
	sc->dev = lc->dev[d];
	u1 = u1 == 0 ? ch->m->nunits : u1;
	p->ext = calloc(model_range_max(ch->m), sizeof(*p->ext));
	sc->model.nextents = model_range(ch->m, u0, u1, p->ext);
	model_sublayers(ch->m, u0, u1, &sc->model.first_sublayer,
	    &sc->model.nsublayers);
	sc->model.embedding = u0 == 0;
	sc->model.head = u1 == ch->m->nunits;
	sc->model.batch_rows = lc->batch_rows;
	sc->model.head_rows = lc->head_rows;
	sc->model.ctx_tok = CHAIN_CTX;
	sc->model.nseqs = CHAIN_SEQS;
	sc->model.kfmt = sc->model.vfmt = lc->fmt;
	sc->model.nfiles = 1;
	snprintf(sc->start.name, sizeof(sc->start.name), "stage%u", i);
	strlcpy(sc->start.device, sc->dev->kind, sizeof(sc->start.device));
	sc->start.strict = lc->strict;
	if (lc->port != NULL)
		strlcpy(sc->start.port, lc->port, sizeof(sc->start.port));
	/* With cores of their own, threads share even most batches of such
	 * small models. */
	sc->start.own_cores = 1;
	sc->hp = ch->m->hp;
	sc->ext = p->ext;
	kernels_init(&p->k, cpu_flags());
	kernels_set_layout(&p->k, sc->dev->layout);
	sc->kernels = &p->k;
	sc->par = p->par;
	sc->ledger = &p->ledger;
	sc->status = &p->status;
	mem_ledger_init(&p->ledger, sc->start.name, lc->cap_bytes);
}

static int
open_part(struct chain *ch, unsigned i, struct err *reterr)
{
	struct part *p = &ch->part[i];
	struct pool_conf pc = { .nthreads = ch->conf.threads };
	struct load_file file = { .name = "tiny", .direct_fd = -1,
	    .fd = ch->g->file[0].fd };
	struct load_stats st;
	struct ring in, out;
	int rc;

	p->par = ch->conf.par;
	if (p->par == NULL &&
	    ((rc = cores_allowed(&pc.cpus, reterr)) < 0 ||
	    (rc = pool_open(&pc, &p->par, reterr)) < 0))
		return rc;
	set_stage_conf(ch, i);
	/* The weights were written after the file was opened. */
	ck_assert_int_eq(load_identify(&file), 0);
	if ((rc = stage_open(&p->sc, &p->s, reterr)) < 0)
		return rc;
	attach_ring(ch, i, RING_SIDE_CONSUMER, &in);
	attach_ring(ch, i + 1, RING_SIDE_PRODUCER, &out);
	stage_attach(p->s, &in, &out);
	return stage_load(p->s, &file, 1, &st, reterr);
}

int
chain_open(struct chain *ch, const struct chain_conf *lc, struct err *reterr)
{
	size_t n, j;
	unsigned i;
	int rc = 0;

	memset(ch, 0, sizeof(*ch));
	ch->conf = *lc;
	if (lc->path != NULL) {
		t_ok(gguf_open(lc->path, &ch->g, reterr), reterr);
		t_ok(model_open(ch->g, &ch->m, reterr), reterr);
	} else {
		t_ok(tiny_open(&lc->tiny, &ch->g, &ch->m, reterr), reterr);
	}
	n = (size_t)CHAIN_SEQS * CHAIN_CTX * ch->m->hp.n_vocab;
	ch->logits = malloc(n * sizeof(*ch->logits));
	for (j = 0; j < n; j++)
		ch->logits[j] = NAN;
	for (i = 0; i <= lc->nstages; i++)
		t_ok(ring_create("line", CHAIN_SLOTS, ring_slot(ch, i),
		    &ch->map[i], reterr), reterr);
	attach_ring(ch, 0, RING_SIDE_PRODUCER, &ch->first);
	attach_ring(ch, lc->nstages, RING_SIDE_CONSUMER, &ch->last);
	for (i = 0; i < lc->nstages && rc == 0; i++)
		rc = open_part(ch, i, reterr);
	return rc;
}

void
chain_close(struct chain *ch)
{
	unsigned i;

	for (i = 0; i < ch->conf.nstages; i++) {
		stage_close(ch->part[i].s);
		if (ch->conf.par == NULL)
			pool_close(ch->part[i].par);
		free(ch->part[i].ext);
		/* Everything that was charged has been given back. */
		ck_assert_uint_eq(ch->part[i].ledger.used_bytes, 0);
	}
	for (i = 0; i <= ch->conf.nstages; i++)
		region_close(&ch->map[i]);
	free(ch->logits);
	tiny_close(ch->g, ch->m);
}

void
chain_send_slot(struct chain *ch, const struct batch_hdr *hdr,
    const struct batch_row *rows, uint32_t n)
{
	uint8_t *slot = ring_reserve_spsc(&ch->first);

	ck_assert_ptr_nonnull(slot);
	memcpy(slot, hdr, sizeof(*hdr));
	if (n > 0)
		memcpy(slot + sizeof(*hdr), rows, n * sizeof(*rows));
	ring_commit_spsc(&ch->first);
}

void
chain_send_rows(struct chain *ch, const struct batch_row *rows, uint32_t n)
{
	struct batch_hdr hdr = { .magic = BATCH_MAGIC, .kind = BATCH_DATA,
	    .number = ch->number++, .epoch = ch->epoch, .nrows = n };

	chain_send_slot(ch, &hdr, rows, n);
}

void
chain_send_control(struct chain *ch, enum batch_kind kind, uint32_t seq,
    uint32_t pos)
{
	struct batch_hdr hdr = { .magic = BATCH_MAGIC, .kind = kind,
	    .number = ch->number++, .epoch = ch->epoch, .seq = seq,
	    .pos = pos };

	chain_send_slot(ch, &hdr, NULL, 0);
}

void
chain_send_text(struct chain *ch, uint32_t seq, uint32_t pos,
    const uint32_t *token, uint32_t n, uint32_t chunk)
{
	struct batch_row rows[CHAIN_CTX];
	uint32_t i, end = pos + n, k;

	while (pos < end) {
		k = MIN(chunk, end - pos);
		for (i = 0; i < k; i++)
			rows[i] = (struct batch_row){ .seq = seq,
			    .pos = pos + i, .token = token[pos + i],
			    .flags = ROW_LOGITS };
		chain_send_rows(ch, rows, k);
		pos += k;
	}
}

static float *
logits_at(const struct chain *ch, uint32_t seq, uint32_t pos)
{
	ck_assert_uint_lt(seq, CHAIN_SEQS);
	ck_assert_uint_lt(pos, CHAIN_CTX);
	return ch->logits +
	    ((size_t)seq * CHAIN_CTX + pos) * ch->m->hp.n_vocab;
}

/* Batch number of a stop that is not recorded in seen[]. */
#define CHAIN_STOP	UINT64_MAX

static void
take_output(struct chain *ch)
{
	struct batch_row row;
	struct batch_hdr hdr;
	const uint8_t *slot;
	uint32_t i, n = ch->m->hp.n_vocab;

	while ((slot = ring_peek_spsc(&ch->last)) != NULL) {
		memcpy(&hdr, slot, sizeof(hdr));
		ck_assert_uint_lt(ch->nseen, NITEMS(ch->seen));
		if (hdr.number != CHAIN_STOP)
			ch->seen[ch->nseen++] = hdr;
		ck_assert_uint_le(hdr.nrows, ch->conf.head_rows);
		for (i = 0; i < hdr.nrows; i++) {
			memcpy(&row, slot + sizeof(hdr) + i * sizeof(row),
			    sizeof(row));
			memcpy(logits_at(ch, row.seq, row.pos), slot +
			    slot_payload_off(ch->conf.head_rows) +
			    i * slot_row_bytes(n), n * sizeof(float));
		}
		ring_release_spsc(&ch->last);
	}
}

/* Called when the input is empty: end the stage. */
static int
leave_when_idle(void *arg)
{
	(void)arg;
	return 1;
}

void
chain_send_stop(struct chain *ch)
{
	struct batch_hdr hdr = { .magic = BATCH_MAGIC, .kind = BATCH_STOP,
	    .number = CHAIN_STOP, .epoch = ch->epoch };

	chain_send_slot(ch, &hdr, NULL, 0);
}

int
chain_run(struct chain *ch, struct err *reterr)
{
	unsigned i;
	int rc = 0;

	if (ch->watch != NULL)
		ch->watch(1);
	for (i = 0; i < ch->conf.nstages && rc == 0; i++)
		rc = stage_run(ch->part[i].s, leave_when_idle, NULL,
		    reterr);
	if (ch->watch != NULL)
		ch->watch(0);
	take_output(ch);
	return rc;
}

void
chain_start(struct chain *ch, const struct chain_conf *lc)
{
	struct err e = { 0 };

	t_ok(chain_open(ch, lc, &e), &e);
}

void
chain_finish(struct chain *ch)
{
	struct err e = { 0 };

	chain_send_stop(ch);
	t_ok(chain_run(ch, &e), &e);
}

const float *
chain_logits(const struct chain *ch, uint32_t seq, uint32_t pos)
{
	const float *x = logits_at(ch, seq, pos);

	return isnan(x[0]) ? NULL : x;
}

int
chain_same_logits(const struct chain *a, uint32_t seq_a, const struct chain *b,
    uint32_t seq_b, uint32_t pos, uint32_t n)
{
	uint32_t i;

	for (i = pos; i < pos + n; i++)
		if (chain_logits(a, seq_a, i) == NULL ||
		    chain_logits(b, seq_b, i) == NULL ||
		    memcmp(chain_logits(a, seq_a, i), chain_logits(b, seq_b, i),
		    a->m->hp.n_vocab * sizeof(float)) != 0)
			return 0;
	return 1;
}
