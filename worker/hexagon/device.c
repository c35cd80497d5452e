/* worker/hexagon/device.c - a Hexagon process domain as a device.
 *
 *	device.c	the contract of worker/device.h, on a domain
 *	ops.c		a program's operations as packets
 *	domain.c	packets and memory, on any port
 *	emulated.c	port: a child process under qemu-hexagon
 *	fastrpc*.c	port: the DSP, through libcdsprpc.so
 *	board.c		checks the requirements of a board
 *
 * The host and the domain map all buffers.  A program's operations are sent to
 * the domain once; a batch is one packet for each span, with the range of
 * operations and the rows.  Rows from and to the rings are copied through a
 * buffer of the domain, because only the two stages of a ring map it. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "kernels/cpu.h"
#include "shm/arena.h"
#include "shm/event.h"
#include "shm/layout.h"
#include "board.h"
#include "domain.h"
#include "ops.h"
#include "worker/device.h"
#include "worker/load/host_mem.h"

enum { HVX_ALIGN = 128 };

/* How often a waiting host reports the domain's progress. */
#define SHOW_NS		UINT64_C(100000000)

struct hexagon_span {
	uint32_t first, end;		/* of the program */
	uint32_t at;			/* first's index in the domain's list */
	uint32_t rows_part;		/* 1 = in the head: selected rows */
	struct hexagon_io io;
};

struct device {
	struct device_conf conf;
	struct domain *dom;
	uint64_t largest;		/* bytes of one mapping */
	const struct program *p;
	struct hexagon_span *span;	/* [nspans] */
	uint32_t nspans, nops;		/* nops: sent to the domain */
	uint64_t charged[MEM_NTAGS];
	struct domain_mem weights, kv, compute, io;
	uint8_t act_bias;
	/* The span in flight. */
	const struct hexagon_span *running;
	const struct batch *batch;
	uint32_t shown;			/* progress reported so far */
	uint64_t calls, ns, sent_ns;	/* spans, their time, last start */
};

static struct domain_conf
domain_conf_of(const struct device_conf *dc)
{
	return (struct domain_conf){ dc->session, dc->port != NULL ?
	    dc->port : "", dc->domain_bytes != 0 ? dc->domain_bytes :
	    DOMAIN_BYTES, 0 };
}

static int
hexagon_probe(const struct device_conf *conf, struct device_probe *ret,
    struct err *reterr)
{
	const struct domain_conf dc = domain_conf_of(conf);
	const struct hexagon_port *port;
	struct domain *d = NULL;
	struct err e = { 0 };

	(void)reterr;
	memset(ret, 0, sizeof(*ret));
	board_look(BOARD_ROOT, NULL, ret);
	if (domain_find(dc.port, &port, ret->reason, &e) < 0 ||
	    domain_open(&dc, &d, &e) < 0 || domain_limits(d, ret, &e) < 0) {
		ret->nlimits = 0;
		strlcpy(ret->reason, e.msg, sizeof(ret->reason));
	} else {
		ret->found = 1;
	}
	domain_close(d);
	return 0;
}

static int
hexagon_open(const struct device_conf *dc, struct device **ret,
    struct err *reterr)
{
	const struct domain_conf conf = domain_conf_of(dc);
	struct device *d = calloc(1, sizeof(*d));
	struct kernels k;
	int rc;

	if (d == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for device hexagon", dc->session);
	d->conf = *dc;
	/* Operations that fall back share activations with the host's
	 * kernels. */
	kernels_init(&k, cpu_flags());
	d->act_bias = k.act_bias;
	rc = mem_charge(dc->ledger, MEM_COMPUTE,
	    arena_charge_bytes(device_hexagon.open_bytes), "the queue of its "
	    "Hexagon domain", reterr);
	if (rc == 0) {
		d->charged[MEM_COMPUTE] +=
		    arena_charge_bytes(device_hexagon.open_bytes);
		rc = domain_open(&conf, &d->dom, reterr);
	}
	if (rc == 0)
		rc = domain_largest(d->dom, &d->largest, reterr);
	if (rc < 0) {
		device_hexagon.close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

static void
hexagon_traits(const struct device *d, struct device_traits *ret)
{
	*ret = (struct device_traits){
		.host_visible = 1, .async = 1, .align = HVX_ALIGN,
		.largest_map = d->largest,
		.max_maps = HXQ_MAPS - 1,
	};
}

/* Charge nbytes, map them on both sides and touch them from the host, whose
 * group pays. */
static int
alloc_shared(struct device *d, enum mem_tag tag, uint64_t nbytes,
    const char *what, struct domain_mem *ret, struct err *reterr)
{
	uint64_t charge = arena_charge_bytes(nbytes), i;
	int rc;

	if ((rc = mem_charge(d->conf.ledger, tag, charge, what, reterr)) < 0)
		return rc;
	d->charged[tag] += charge;
	if ((rc = domain_map(d->dom, nbytes, what, ret, reterr)) < 0)
		return rc;
	/* The load writes all weights itself, and reports its progress. */
	for (i = 0; tag != MEM_WEIGHTS && i < ret->nbytes; i += 4096)
		((volatile uint8_t *)ret->host)[i] = 0;
	return 0;
}

static int
hexagon_alloc(struct device *d, enum mem_tag tag, uint64_t nbytes,
    const char *what, struct device_buf *ret, struct err *reterr)
{
	struct domain_mem *m = tag == MEM_WEIGHTS ? &d->weights :
	    tag == MEM_KV ? &d->kv : &d->compute;
	int rc;

	if ((rc = alloc_shared(d, tag, nbytes, what, m, reterr)) < 0)
		return rc;
	*ret = (struct device_buf){ .host = m->host,
	    .nbytes = nbytes };
	return 0;
}

/* --- the program --- */

/* Send the filled request and wait; a bad status is an error. */
static int
send_request(struct device *d, const char *what, struct err *reterr)
{
	struct domain_reply r;
	int rc;

	if ((rc = domain_call(d->dom, &r, reterr)) < 0)
		return rc;
	if (r.status != HXQ_OK)
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: its "
		    "Hexagon domain refuses %s: %s (status %u)",
		    d->conf.session, what, domain_status_text(r.status),
		    r.status);
	return 0;
}

/* Send what all spans share: the model; allocate the rows' buffer. */
static int
prepare_program(struct device *d, const struct program *p,
    struct err *reterr)
{
	const struct program_env *env = &p->env;
	struct hx_model m = hexagon_model(p, d->act_bias);
	struct hxq_packet *q;
	int rc;

	if (d->p != NULL)
		return 0;
	if ((rc = alloc_shared(d, MEM_COMPUTE,
	    copied_rows_bytes(env->batch_rows, env->hp->n_embd,
	    env->head ? env->head_rows : 0, env->hp->n_vocab),
	    "rows in and out", &d->io, reterr)) < 0)
		return rc;
	q = domain_request(d->dom);
	q->kind = HXQ_MODEL;
	q->nbytes = sizeof(m);
	memcpy(q->msg, &m, sizeof(m));
	d->p = p;
	return send_request(d, "the model", reterr);
}

static int
hexagon_prepare(struct device *d, const struct program *p,
    const struct span *s, const struct device_buf *kv,
    const struct device_buf *compute, uint32_t *ret_handle,
    struct err *reterr)
{
	const uint32_t most = HXQ_MAX_MSG / sizeof(struct hx_op);
	struct hexagon_span *hs;
	struct hxq_packet *q;
	struct hx_op op;
	uint32_t i, j, n;
	int rc;

	(void)kv;
	(void)compute;
	if ((rc = prepare_program(d, p, reterr)) < 0)
		return rc;
	hs = reallocarray(d->span, d->nspans + 1, sizeof(*hs));
	if (hs == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for span %u of device hexagon", d->conf.session,
		    d->nspans);
	d->span = hs;
	hs += d->nspans;
	*hs = (struct hexagon_span){ .first = s->first, .end = s->end,
	    .at = d->nops, .rows_part = s->first >= p->nbody,
	    .io = hexagon_io(p, s->first, s->end) };
	for (i = s->first; i < s->end; i += n) {
		n = MIN(s->end - i, most);
		q = domain_request(d->dom);
		q->kind = HXQ_OPS;
		q->nbytes = n * (uint32_t)sizeof(op);
		for (j = 0; j < n; j++) {
			op = hexagon_op(p, i + j);
			memcpy(q->msg + j * sizeof(op), &op, sizeof(op));
		}
		if ((rc = send_request(d, "the operations", reterr)) < 0)
			return rc;
	}
	d->nops += s->end - s->first;
	*ret_handle = d->nspans++;
	return 0;
}

/* --- a batch --- */

static uint8_t *
io_out(const struct device *d)
{
	return (uint8_t *)d->io.host + copied_rows_in_bytes(
	    d->p->env.batch_rows, d->p->env.hp->n_embd);
}

static uint32_t
rows_out(const struct hexagon_span *hs, const struct batch *b)
{
	return hs->rows_part ? b->nselect : b->nrows;
}

/* crosses: the host wrote the buffer or will read it, so caches are flushed. */
static void
put_buf(struct hxq_packet *q, uint32_t i, const struct domain_mem *m,
    int crosses)
{
	q->buf[i] = (struct hxq_buf){ .handle = m->handle,
	    .flags = crosses ? HXQ_FLUSH_SENDER | HXQ_INVALIDATE_RECIPIENT :
	    0, .nbytes = m->nbytes };
}

/* Must the KV cache be flushed to the domain?  Always before the first batch,
 * which shows it the zeros; later only when an operation on it runs on the
 * host. */
static int
kv_crosses(const struct device *d)
{
	const struct program *p = d->p;
	uint32_t i, s, there;

	if (d->calls == 0)
		return 1;
	for (i = 0; i < p->nops; i++) {
		if (p->op[i].kind != OP_KV_STORE &&
		    p->op[i].kind != OP_ATTENTION)
			continue;
		for (s = there = 0; s < d->nspans; s++)
			there |= i >= d->span[s].first && i < d->span[s].end;
		if (!there)
			return 1;
	}
	return 0;
}

static void
put_rows(struct hxq_packet *q, const struct hexagon_span *hs,
    const struct batch *b)
{
	const struct hx_run run = { hs->at, hs->at + hs->end - hs->first,
	    b->nrows, b->nselect };
	uint8_t *p = q->msg;

	memcpy(p, &run, sizeof(run));
	p += sizeof(run);
	memcpy(p, b->seq, b->nrows * sizeof(*b->seq));
	p += b->nrows * sizeof(*b->seq);
	memcpy(p, b->pos, b->nrows * sizeof(*b->pos));
	p += b->nrows * sizeof(*b->pos);
	memcpy(p, b->select, b->nselect * sizeof(*b->select));
	p += b->nselect * sizeof(*b->select);
	q->nbytes = (uint32_t)(p - q->msg);
}

static int
hexagon_run(struct device *d, uint32_t handle, const struct batch *b,
    struct err *reterr)
{
	const struct hexagon_span *hs;
	struct hxq_packet *q;

	if (handle >= d->nspans)
		return err_set(reterr, ERR_RUN, -EINVAL,
		    "device hexagon: unknown span %u", handle);
	hs = &d->span[handle];
	b = batch_of(b, d->p, hs->first);
	if (hs->io.in_bytes > 0)
		memcpy(d->io.host, b->input, (size_t)b->nrows *
		    hs->io.in_bytes);
	if (hs->io.reads_out)
		memcpy(io_out(d), b->output, (size_t)rows_out(hs, b) *
		    hs->io.out_bytes);
	q = domain_request(d->dom);
	if (q == NULL)
		return err_set(reterr, ERR_RUN, -EBUSY, "session %s: %u spans "
		    "are already in flight", d->conf.session, HXQ_SLOTS);
	q->kind = HXQ_RUN;
	q->nbufs = HX_NBUFS;
	/* Weights cross once; compute scratch always, for operations that fall
	 * back. */
	put_buf(q, HX_BUF_WEIGHTS, &d->weights, d->calls == 0);
	put_buf(q, HX_BUF_KV, &d->kv, kv_crosses(d));
	put_buf(q, HX_BUF_COMPUTE, &d->compute, 1);
	put_buf(q, HX_BUF_IO, &d->io, 1);
	put_rows(q, hs, b);
	d->running = hs;
	d->batch = b;
	d->calls++;
	d->sent_ns = event_now_ns();
	return domain_send(d->dom, reterr);
}

static int
bad_status(const struct device *d, const struct domain_reply *r,
    struct err *reterr)
{
	const struct hexagon_span *hs = d->running;
	uint32_t i = r->status_op - hs->at + hs->first;
	const struct op *op;

	if (i < hs->first || i >= hs->end)
		return err_set(reterr, ERR_RUN, -EIO, "session %s: its "
		    "Hexagon domain refuses a batch of %u rows: %s (status "
		    "%u, argument %u)", d->conf.session, d->batch->nrows,
		    domain_status_text(r->status), r->status, r->status_arg);
	op = &d->p->op[i];
	return err_set(reterr, ERR_RUN, -EIO, "session %s: %s of layer %d "
	    "(%s) failed in its Hexagon domain: %s (status %u)",
	    d->conf.session, op_name(op->kind), op->layer, op->w != NULL ?
	    op->w->ext.name : "no weight", domain_status_text(r->status),
	    r->status);
}

static void
report_progress(struct device *d)
{
	uint32_t now = domain_progress(d->dom);

	if (d->batch->progress != NULL)
		atomic_fetch_add_explicit(d->batch->progress,
		    now - d->shown, memory_order_relaxed);
	d->shown = now;
}

static int
hexagon_sync(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	const struct hexagon_span *hs = d->running;
	struct domain_reply r;
	int rc;

	if (hs == NULL)
		return 0;
	/* Report progress while the domain works, so that the watchdog can
	 * tell slow from stuck. */
	do {
		rc = domain_wait(d->dom, MIN(deadline_ns, event_now_ns() +
		    SHOW_NS), &r, reterr);
		report_progress(d);
	} while (rc == -ETIMEDOUT && event_now_ns() < deadline_ns);
	d->ns += event_now_ns() - d->sent_ns;
	if (rc < 0)
		return rc;
	if (r.status != HXQ_OK)
		return bad_status(d, &r, reterr);
	if (hs->io.writes_out)
		memcpy(d->batch->output, io_out(d), (size_t)rows_out(hs,
		    d->batch) * hs->io.out_bytes);
	d->running = NULL;
	return 0;
}

static void
hexagon_account(const struct device *d, struct device_account *ret)
{
	struct domain_memory mem;

	domain_memory(d->dom, &mem);
	*ret = (struct device_account){ .own_bytes = mem.own_bytes,
	    .file_bytes = mem.file_bytes, .mapped_bytes = mem.mapped_bytes,
	    .calls = d->calls, .ns = d->ns };
}

static int
hexagon_reset(struct device *d, struct err *reterr)
{
	const uint64_t open_bytes =
	    arena_charge_bytes(device_hexagon.open_bytes);
	uint32_t tag;
	int rc;

	if ((rc = domain_unmap_all(d->dom, reterr)) < 0)
		return rc;
	d->charged[MEM_COMPUTE] -= open_bytes;
	for (tag = 0; tag < MEM_NTAGS; tag++) {
		mem_release(d->conf.ledger, tag, d->charged[tag]);
		d->charged[tag] = 0;
	}
	d->charged[MEM_COMPUTE] = open_bytes;
	d->weights = d->kv = d->compute = d->io = (struct domain_mem){ 0 };
	free(d->span);
	d->span = NULL;
	d->nspans = d->nops = 0;
	d->p = NULL;		/* the next model drops all operations */
	d->batch = NULL;
	d->calls = d->ns = 0;
	return 0;
}

static void
hexagon_close(struct device *d)
{
	uint32_t tag;

	if (d == NULL)
		return;
	domain_close(d->dom);
	for (tag = 0; tag < MEM_NTAGS; tag++)
		mem_release(d->conf.ledger, tag, d->charged[tag]);
	free(d->span);
	free(d);
}

const struct device_ops device_hexagon = {
	.version = DEVICE_VERSION,
	.kind = "hexagon",
	.layout = LAYOUT_HVX,
	.open_bytes = sizeof(struct hxq_shared),
	.copies_rows = 1,
	.probe = hexagon_probe,
	.open = hexagon_open,
	.traits = hexagon_traits,
	.supports = hexagon_supports,
	.alloc = hexagon_alloc,
	.upload = host_mem_upload,
	.prepare = hexagon_prepare,
	.run = hexagon_run,
	.sync = hexagon_sync,
	.account = hexagon_account,
	.reset = hexagon_reset,
	.close = hexagon_close,
};
