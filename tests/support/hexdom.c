/* tests/support/hexdom.c - see hexdom.h. */
#include "hexdom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "shm/event.h"

enum { SHARED_BYTES = 96 << 20 };
#define RUN_NS	UINT64_C(200000000000)

const struct hx_ref hexdom_none = { .buf = HX_NONE };

int
hexdom_open(struct hexdom *w)
{
	const struct domain_conf dc = { "test", "emulated", DOMAIN_BYTES, 0 };
	const struct hexagon_port *port;
	char what[DOMAIN_WHAT];
	struct err e = { 0 };

	memset(w, 0, sizeof(*w));
	if (domain_find("emulated", &port, what, &e) < 0) {
		printf("%s\n", e.msg);
		return 77;
	}
	if (domain_open(&dc, &w->d, &e) < 0 || domain_map(w->d, SHARED_BYTES,
	    "test memory", &w->mem, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		exit(1);
	}
	w->m = (struct hx_model){ .n_head = 1, .n_head_kv = 1, .nseqs = 1,
	    .ctx_tok = 1 };
	return 0;
}

void
hexdom_close(struct hexdom *w)
{
	domain_close(w->d);
}

void
hexdom_reset(struct hexdom *w)
{
	w->used = 0;
}

struct hx_ref
hexdom_alloc(struct hexdom *w, uint32_t rows, uint64_t row_bytes,
    uint32_t cols)
{
	struct hx_ref x = { HX_BUF_COMPUTE, (uint32_t)w->used,
	    (uint32_t)(row_bytes ? row_bytes : ALIGN_UP(cols * 4, 64)),
	    cols };

	/* Stray writes show as bytes that are no longer 0xa5. */
	w->used += ALIGN_UP(rows * (uint64_t)x.row_bytes, 128) + 128;
	if (w->used > w->mem.nbytes) {
		fprintf(stderr, "SHARED_BYTES is too small\n");
		exit(1);
	}
	memset((uint8_t *)w->mem.host + x.offset, 0xa5, w->used - x.offset);
	return x;
}

void *
hexdom_row(const struct hexdom *w, const struct hx_ref *x, uint32_t row)
{
	return (uint8_t *)w->mem.host + x->offset +
	    (uint64_t)row * x->row_bytes;
}

static uint32_t
send_and_wait(struct hexdom *w)
{
	struct domain_reply r;
	struct err e = { 0 };

	if (domain_send(w->d, &e) < 0 ||
	    domain_wait(w->d, event_now_ns() + RUN_NS, &r, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		exit(1);
	}
	return r.status;
}

uint32_t
hexdom_run(struct hexdom *w, const struct hx_op *op, uint32_t nrows,
    uint32_t nselect)
{
	static const uint32_t zeros[MAX_BATCH];
	const struct hx_run run = { 0, 1, nrows, nselect };
	struct hxq_packet *q = domain_request(w->d);
	uint32_t status, i, *rows;

	q->kind = HXQ_MODEL;
	q->nbytes = sizeof(w->m);
	memcpy(q->msg, &w->m, sizeof(w->m));
	if ((status = send_and_wait(w)) != HXQ_OK)
		return status;
	q = domain_request(w->d);
	q->kind = HXQ_OPS;
	q->nbytes = sizeof(*op);
	memcpy(q->msg, op, sizeof(*op));
	if ((status = send_and_wait(w)) != HXQ_OK)
		return status;
	q = domain_request(w->d);
	q->kind = HXQ_RUN;
	q->nbufs = HX_NBUFS;
	for (i = 0; i < HX_NBUFS; i++)
		q->buf[i] = (struct hxq_buf){ .handle = w->mem.handle,
		    .nbytes = w->mem.nbytes };
	q->nbytes = (uint32_t)(sizeof(run) + (2 * nrows + nselect) * 4);
	memcpy(q->msg, &run, sizeof(run));
	rows = (uint32_t *)(void *)(q->msg + sizeof(run));
	memcpy(rows, w->seq ? w->seq : zeros, nrows * 4);
	memcpy(rows + nrows, w->pos ? w->pos : zeros, nrows * 4);
	memcpy(rows + 2 * nrows, w->select ? w->select : zeros, nselect * 4);
	return send_and_wait(w);
}
