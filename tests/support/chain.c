/* tests/support/chain.c - a small model over stages in one process. */
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
ring_slot(const struct line *l, unsigned i)
{
	if (i == 0)
		return (uint32_t)slot_bytes(l->conf.batch_rows, 0);
	if (i < l->conf.nstages)
		return (uint32_t)slot_bytes(l->conf.batch_rows,
		    l->m->hp.n_embd);
	return (uint32_t)slot_bytes(l->conf.head_rows, l->m->hp.n_vocab);
}

static void
attach(struct line *l, unsigned i, enum ring_side side, struct ring *ret)
{
	struct err e = { 0 };

	t_ok(ring_attach_mapped(l->map[i].base, l->map[i].nbytes, side,
	    LINE_SLOTS, ring_slot(l, i), ret, &e), &e);
}

/* What a coordinator would say to the worker of stage i. */
static void
give_orders(struct line *l, unsigned i)
{
	const struct line_conf *lc = &l->conf;
	struct part *p = &l->part[i];
	struct stage_conf *sc = &p->sc;
	uint32_t u0 = lc->cut[i], u1 = lc->cut[i + 1];
	unsigned d = i;

	while (lc->dev[d] == NULL)
		d--;
	sc->dev = lc->dev[d];
	u1 = u1 == 0 ? l->m->nunits : u1;
	p->ext = calloc(model_range_max(l->m), sizeof(*p->ext));
	sc->model.nextents = model_range(l->m, u0, u1, p->ext);
	model_sublayers(l->m, u0, u1, &sc->model.first_sublayer,
	    &sc->model.nsublayers);
	sc->model.embedding = u0 == 0;
	sc->model.head = u1 == l->m->nunits;
	sc->model.batch_rows = lc->batch_rows;
	sc->model.head_rows = lc->head_rows;
	sc->model.ctx_tok = LINE_CTX;
	sc->model.nseqs = LINE_SEQS;
	sc->model.kfmt = sc->model.vfmt = lc->fmt;
	sc->model.nfiles = 1;
	snprintf(sc->start.name, sizeof(sc->start.name), "stage%u", i);
	strlcpy(sc->start.device, sc->dev->kind, sizeof(sc->start.device));
	sc->start.strict = lc->strict;
	if (lc->port != NULL)
		strlcpy(sc->start.port, lc->port, sizeof(sc->start.port));
	/* Small as the models are, most batches are then for all threads. */
	sc->start.own_cores = 1;
	sc->hp = l->m->hp;
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
open_part(struct line *l, unsigned i, struct err *reterr)
{
	struct part *p = &l->part[i];
	struct pool_conf pc = { .nthreads = l->conf.threads };
	struct load_file file = { .name = "tiny", .direct_fd = -1,
	    .fd = l->g->file[0].fd };
	struct load_stats st;
	struct ring in, out;
	int rc;

	p->par = l->conf.par;
	if (p->par == NULL &&
	    ((rc = cores_allowed(&pc.cpus, reterr)) < 0 ||
	    (rc = pool_open(&pc, &p->par, reterr)) < 0))
		return rc;
	give_orders(l, i);
	/* Its weights were drawn after it was opened. */
	ck_assert_int_eq(load_identify(&file), 0);
	if ((rc = stage_open(&p->sc, &p->s, reterr)) < 0)
		return rc;
	attach(l, i, RING_SIDE_CONSUMER, &in);
	attach(l, i + 1, RING_SIDE_PRODUCER, &out);
	stage_attach(p->s, &in, &out);
	return stage_load(p->s, &file, 1, &st, reterr);
}

int
line_open(struct line *l, const struct line_conf *lc, struct err *reterr)
{
	size_t n, j;
	unsigned i;
	int rc = 0;

	memset(l, 0, sizeof(*l));
	l->conf = *lc;
	if (lc->path != NULL) {
		t_ok(gguf_open(lc->path, &l->g, reterr), reterr);
		t_ok(model_open(l->g, &l->m, reterr), reterr);
	} else {
		t_ok(tiny_open(&lc->tiny, &l->g, &l->m, reterr), reterr);
	}
	n = (size_t)LINE_SEQS * LINE_CTX * l->m->hp.n_vocab;
	l->logits = malloc(n * sizeof(*l->logits));
	for (j = 0; j < n; j++)
		l->logits[j] = NAN;
	for (i = 0; i <= lc->nstages; i++)
		t_ok(ring_create("line", LINE_SLOTS, ring_slot(l, i),
		    &l->map[i], reterr), reterr);
	attach(l, 0, RING_SIDE_PRODUCER, &l->first);
	attach(l, lc->nstages, RING_SIDE_CONSUMER, &l->last);
	for (i = 0; i < lc->nstages && rc == 0; i++)
		rc = open_part(l, i, reterr);
	return rc;
}

void
line_close(struct line *l)
{
	unsigned i;

	for (i = 0; i < l->conf.nstages; i++) {
		stage_close(l->part[i].s);
		if (l->conf.par == NULL)
			pool_close(l->part[i].par);
		free(l->part[i].ext);
		/* Everything that was charged has been given back. */
		ck_assert_uint_eq(l->part[i].ledger.used_bytes, 0);
	}
	for (i = 0; i <= l->conf.nstages; i++)
		region_close(&l->map[i]);
	free(l->logits);
	tiny_close(l->g, l->m);
}

void
line_raw(struct line *l, const struct batch_hdr *hdr,
    const struct batch_row *rows, uint32_t n)
{
	uint8_t *slot = ring_reserve_spsc(&l->first);

	ck_assert_ptr_nonnull(slot);
	memcpy(slot, hdr, sizeof(*hdr));
	if (n > 0)
		memcpy(slot + sizeof(*hdr), rows, n * sizeof(*rows));
	ring_commit_spsc(&l->first);
}

void
line_rows(struct line *l, const struct batch_row *rows, uint32_t n)
{
	struct batch_hdr hdr = { .magic = BATCH_MAGIC, .kind = BATCH_DATA,
	    .number = l->number++, .epoch = l->epoch, .nrows = n };

	line_raw(l, &hdr, rows, n);
}

void
line_control(struct line *l, enum batch_kind kind, uint32_t seq,
    uint32_t pos)
{
	struct batch_hdr hdr = { .magic = BATCH_MAGIC, .kind = kind,
	    .number = l->number++, .epoch = l->epoch, .seq = seq,
	    .pos = pos };

	line_raw(l, &hdr, NULL, 0);
}

void
line_text(struct line *l, uint32_t seq, uint32_t pos, const uint32_t *token,
    uint32_t n, uint32_t chunk)
{
	struct batch_row rows[LINE_CTX];
	uint32_t i, end = pos + n, k;

	while (pos < end) {
		k = MIN(chunk, end - pos);
		for (i = 0; i < k; i++)
			rows[i] = (struct batch_row){ .seq = seq,
			    .pos = pos + i, .token = token[pos + i],
			    .flags = ROW_LOGITS };
		line_rows(l, rows, k);
		pos += k;
	}
}

static float *
logits_at(const struct line *l, uint32_t seq, uint32_t pos)
{
	ck_assert_uint_lt(seq, LINE_SEQS);
	ck_assert_uint_lt(pos, LINE_CTX);
	return l->logits +
	    ((size_t)seq * LINE_CTX + pos) * l->m->hp.n_vocab;
}

/* Number of a stop that is not shown among what came out. */
#define LINE_STOP	UINT64_MAX

static void
take_output(struct line *l)
{
	struct batch_row row;
	struct batch_hdr hdr;
	const uint8_t *slot;
	uint32_t i, n = l->m->hp.n_vocab;

	while ((slot = ring_peek_spsc(&l->last)) != NULL) {
		memcpy(&hdr, slot, sizeof(hdr));
		ck_assert_uint_lt(l->nseen, NITEMS(l->seen));
		if (hdr.number != LINE_STOP)
			l->seen[l->nseen++] = hdr;
		ck_assert_uint_le(hdr.nrows, l->conf.head_rows);
		for (i = 0; i < hdr.nrows; i++) {
			memcpy(&row, slot + sizeof(hdr) + i * sizeof(row),
			    sizeof(row));
			memcpy(logits_at(l, row.seq, row.pos), slot +
			    slot_payload_off(l->conf.head_rows) +
			    i * slot_row_bytes(n), n * sizeof(float));
		}
		ring_release_spsc(&l->last);
	}
}

/* Nothing more comes: leave. */
static int
leave(void *arg)
{
	(void)arg;
	return 1;
}

void
line_stop(struct line *l)
{
	struct batch_hdr hdr = { .magic = BATCH_MAGIC, .kind = BATCH_STOP,
	    .number = LINE_STOP, .epoch = l->epoch };

	line_raw(l, &hdr, NULL, 0);
}

int
line_run(struct line *l, struct err *reterr)
{
	unsigned i;
	int rc = 0;

	if (l->watch != NULL)
		l->watch(1);
	for (i = 0; i < l->conf.nstages && rc == 0; i++)
		rc = stage_run(l->part[i].s, leave, NULL, reterr);
	if (l->watch != NULL)
		l->watch(0);
	take_output(l);
	return rc;
}

void
line_begin(struct line *l, const struct line_conf *lc)
{
	struct err e = { 0 };

	t_ok(line_open(l, lc, &e), &e);
}

void
line_finish(struct line *l)
{
	struct err e = { 0 };

	line_stop(l);
	t_ok(line_run(l, &e), &e);
}

const float *
line_logits(const struct line *l, uint32_t seq, uint32_t pos)
{
	const float *x = logits_at(l, seq, pos);

	return isnan(x[0]) ? NULL : x;
}

int
line_same(const struct line *a, uint32_t seq_a, const struct line *b,
    uint32_t seq_b, uint32_t pos, uint32_t n)
{
	uint32_t i;

	for (i = pos; i < pos + n; i++)
		if (line_logits(a, seq_a, i) == NULL ||
		    line_logits(b, seq_b, i) == NULL ||
		    memcmp(line_logits(a, seq_a, i), line_logits(b, seq_b, i),
		    a->m->hp.n_vocab * sizeof(float)) != 0)
			return 0;
	return 1;
}
