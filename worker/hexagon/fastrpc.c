/* worker/hexagon/fastrpc.c - the port to a domain on the DSP of a Qualcomm
 * chip, through libcdsprpc.so (fastrpc_session.h).  Untested on silicon: the
 * tests use a stand-in for the library.
 *
 * A packet is one dspqueue packet: its buffers, by descriptor, and one message
 * of its head and bytes.  Memory is rpcmem, mapped on the DSP when it is
 * allocated; a packet says when caches must be flushed. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shm/event.h"
#include "board.h"
#include "domain.h"
#include "fastrpc_session.h"

/* A read sleeps this long, then checks that the domain is alive. */
#define SLICE_US	100000u
/* The queue has room for every slot, so it is never full for long. */
#define WRITE_US	1000000u

enum { HEAD_BYTES = offsetof(struct hxq_packet, msg) -
    offsetof(struct hxq_packet, id) };
/* Header of dspqueue, padding, buffers and message of every packet. */
enum { QUEUE_BYTES = HXQ_SLOTS * (64 + HXQ_MAX_BUFS *
    (int)sizeof(struct dspqueue_buffer) + HEAD_BYTES + HXQ_MAX_MSG) };
_Static_assert(HEAD_BYTES + (int)HXQ_MAX_MSG <=
    (int)DSPQUEUE_MAX_MESSAGE_SIZE &&
    (int)HXQ_MAX_BUFS <= (int)DSPQUEUE_MAX_BUFFERS &&
    (int)QUEUE_BYTES <= (int)DSPQUEUE_MAX_QUEUE_SIZE, "limits of dspqueue");

struct fastrpc {
	struct fastrpc_session s;
	struct fastrpc_mem mem[HXQ_MAPS];
	uint32_t progress;		/* operations of answered packets */
	struct hxq_packet slot[HXQ_SLOTS], reply;
};

static int
fastrpc_find(char ret_what[DOMAIN_WHAT], struct err *reterr)
{
	const struct fastrpc_lib *lib;
	int rc = fastrpc_load(&lib, reterr);

	if (rc == 0)
		snprintf(ret_what, DOMAIN_WHAT, "fastrpc, untested on "
		    "silicon: through %s", lib->path);
	/* On a board, do not fall back to the emulator. */
	return rc == -ENOENT && board_is_one(BOARD_ROOT) ? -ENODEV : rc;
}

static int
fastrpc_open(struct domain *d, const struct domain_conf *dc,
    struct err *reterr)
{
	struct fastrpc *f = d->state = calloc(1, sizeof(*f));

	if (f == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for the state of port fastrpc", dc->name);
	if (dc->space_bytes != DOMAIN_BYTES)
		return err_set(reterr, ERR_USAGE, -EINVAL, "session %s: "
		    "domain: the size of a domain is fixed on silicon (port "
		    "fastrpc); only port=emulated can set it", d->name);
	return fastrpc_session_open(&f->s, d->name, QUEUE_BYTES,
	    dc->step_ns, reterr);
}

static int
fastrpc_map(struct domain *d, struct domain_mem *m, const char *what,
    struct err *reterr)
{
	struct fastrpc *f = d->state;
	struct fastrpc_mem *fm = &f->mem[m->handle];
	char why[160];
	int rc, code;

	fm->nbytes = m->nbytes;
	fastrpc_begin(&f->s);
	rc = fastrpc_share(&f->s, fm, &code, reterr);
	m->host = fm->p;
	if (code != 0) {
		snprintf(why, sizeof(why), "fastrpc_mmap failed with 0x%x "
		    "(%s)", (unsigned)code, fastrpc_code_text(code));
		rc = domain_no_room(d, m, what, why, reterr);
	} else if (rc < 0) {
		err_prefix(reterr, "%s of %" PRIu64 " bytes", what,
		    m->nbytes);
	}
	return fastrpc_end(&f->s, "mapping memory", rc, reterr);
}

static int
fastrpc_unmap(struct domain *d, const struct domain_mem *m,
    struct err *reterr)
{
	struct fastrpc *f = d->state;

	fastrpc_begin(&f->s);
	fastrpc_unshare(&f->s, &f->mem[m->handle]);
	return fastrpc_end(&f->s, "unmapping memory", 0, reterr);
}

/* --- packets --- */

static struct hxq_packet *
fastrpc_slot(struct domain *d, uint32_t i)
{
	return &((struct fastrpc *)d->state)->slot[i];
}

static uint32_t
queue_flags(uint32_t flags)
{
	return (flags & HXQ_FLUSH_SENDER ? DSPQUEUE_FLUSH_SENDER : 0) |
	    (flags & HXQ_INVALIDATE_RECIPIENT ?
	    DSPQUEUE_INVALIDATE_RECIPIENT : 0);
}

/* Buffers of a packet: hxq_packet.present has one bit for each, so fewer than
 * the HXQ_MAX_BUFS that dspqueue accepts. */
enum { PRESENT_BITS = 32 };

/* List the buffers that are not empty; *ret_present has a bit for each.
 * Returns their number. */
static uint32_t
list_buffers(const struct domain *d, const struct hxq_packet *q,
    struct dspqueue_buffer *buf, uint32_t *ret_present)
{
	const struct fastrpc *f = d->state;
	uint32_t i, n = 0;

	*ret_present = 0;
	for (i = 0; i < q->nbufs; i++) {
		const struct hxq_buf *b = &q->buf[i];

		if (b->nbytes == 0)
			continue;
		*ret_present |= UINT32_C(1) << i;
		buf[n++] = (struct dspqueue_buffer){
			.fd = (uint32_t)f->mem[b->handle].fd,
			.size = (uint32_t)b->nbytes,
			.offset = (uint32_t)b->offset,
			.flags = queue_flags(b->flags),
			.ptr = (uint8_t *)d->map[b->handle].host + b->offset,
		};
	}
	return n;
}

static int
fastrpc_send(struct domain *d, struct hxq_packet *q, struct err *reterr)
{
	struct dspqueue_buffer buf[HXQ_MAX_BUFS];
	struct fastrpc *f = d->state;
	uint32_t n;
	int code;

	if (q->nbufs > PRESENT_BITS || q->nbytes > HXQ_MAX_MSG)
		return err_set(reterr, ERR_RUN, -EMSGSIZE, "session %s: a "
		    "packet of %u buffers and %u bytes exceeds the limits of "
		    "%d and %u", d->name, q->nbufs, q->nbytes, PRESENT_BITS,
		    HXQ_MAX_MSG);
	n = list_buffers(d, q, buf, &q->present);
	code = f->s.lib->dspqueue_write(f->s.queue, DSPQUEUE_MESSAGE |
	    (n > 0 ? DSPQUEUE_BUFFERS : 0), n, buf, HEAD_BYTES + q->nbytes,
	    (const uint8_t *)&q->id, WRITE_US);
	return code == 0 ? 0 : fastrpc_failed(d->name, "dspqueue_write", code,
	    reterr);
}

/* Check the reply in f->reply and copy it. */
static int
take_reply(struct domain *d, uint32_t nbytes, struct domain_reply *ret,
    struct err *reterr)
{
	struct fastrpc *f = d->state;
	const struct hxq_packet *q = &f->slot[d->received % HXQ_SLOTS];
	const struct hxq_packet *p = &f->reply;
	struct hx_run run;

	if (nbytes < HEAD_BYTES || p->nbytes != nbytes - HEAD_BYTES)
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: the "
		    "queue of its Hexagon domain is corrupt: an answer of %u "
		    "bytes", d->name, nbytes);
	*ret = (struct domain_reply){ .id = p->id, .kind = p->kind,
	    .status = p->status, .status_op = p->status_op,
	    .status_arg = p->status_arg, .pcycles = p->pcycles,
	    .nbytes = p->nbytes };
	memcpy(ret->msg, p->msg, MIN(p->nbytes, sizeof(ret->msg)));
	if (q->kind == HXQ_RUN && ret->status == HXQ_OK) {
		memcpy(&run, q->msg, sizeof(run));
		f->progress += run.end - run.first;
	}
	return 0;
}

/* Is there no reply yet?  AEE_EINTERRUPTED (0x2e) is not a failure either. */
static int
is_no_reply(int code)
{
	return code == AEE_EEXPIRED || code == AEE_EWOULDBLOCK ||
	    code == AEE_EINTERRUPTED;
}

static int
fastrpc_receive(struct domain *d, uint64_t deadline_ns,
    struct domain_reply *ret, struct err *reterr)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct dspqueue_buffer buf[HXQ_MAX_BUFS];
	struct fastrpc *f = d->state;
	uint32_t flags, nbufs, nbytes;
	uint64_t now, us;
	int code, rc;

	for (;;) {
		now = event_now_ns();
		us = now < deadline_ns ? (deadline_ns - now) / 1000 + 1 : 0;
		code = f->s.lib->dspqueue_read(f->s.queue, &flags,
		    HXQ_MAX_BUFS, &nbufs, buf, HEAD_BYTES + HXQ_MAX_MSG,
		    &nbytes, (uint8_t *)&f->reply.id,
		    (uint32_t)MIN(us, SLICE_US));
		if (code == 0)
			return take_reply(d, nbytes, ret, reterr);
		if (!is_no_reply(code))
			f->s.lost = 1;
		if ((rc = fastrpc_ended(&f->s, reterr)) < 0)
			return rc;
		if (!is_no_reply(code))
			return fastrpc_failed(d->name, "dspqueue_read", code,
			    reterr);
		if (us == 0)
			return err_set(reterr, ERR_RUN, -ETIMEDOUT, "session "
			    "%s: its Hexagon domain does not answer",
			    d->name);
		if (code == AEE_EINTERRUPTED)
			nanosleep(&pause, NULL);
	}
}

/* Progress changes when a span is done: on silicon it takes milliseconds. */
static uint32_t
fastrpc_progress(const struct domain *d)
{
	return ((const struct fastrpc *)d->state)->progress;
}

/* The domain is no process of this machine. */
static void
fastrpc_memory(const struct domain *d, struct domain_memory *ret)
{
	(void)d;
	*ret = (struct domain_memory){ 0 };
}

static int
fastrpc_pid(const struct domain *d)
{
	(void)d;
	return 0;
}

/* --- limits --- */

static int
fastrpc_largest(struct domain *d, uint64_t *ret, struct err *reterr)
{
	(void)d;
	(void)reterr;
	*ret = UINT64_MAX;
	return 0;
}

static void
add_capability(struct fastrpc *f, struct device_probe *p, const char *name,
    enum dsp_attribute attribute, const char *from)
{
	uint32_t v;
	int code = fastrpc_capability(&f->s, attribute, &v);
	char why[96];

	snprintf(why, sizeof(why), "DSPRPC_GET_DSP_INFO failed with 0x%x (%s)",
	    (unsigned)code, fastrpc_code_text(code));
	device_add_limit(p, name, code == 0, v, code == 0 ? from : why);
}

/* Largest and smallest piece that the probe maps. */
#define PIECE_MOST	(2 * GIB)
#define PIECE_LEAST	(16 * MIB)

struct tried {
	struct fastrpc_mem m[HXQ_MAPS];
	uint32_t n;
	uint64_t total, largest;
	int code;			/* of the last refusal; 0 = host's */
};

/* Map real memory, because there is no other way to know; none is touched. */
static void
try_maps(struct fastrpc *f, struct tried *t)
{
	uint64_t piece = PIECE_MOST;
	struct err e = { 0 };

	while (piece >= PIECE_LEAST && t->n < HXQ_MAPS) {
		t->m[t->n].nbytes = piece;
		if (fastrpc_share(&f->s, &t->m[t->n], &t->code, &e) < 0) {
			piece /= 2;
			continue;
		}
		t->largest = MAX(t->largest, piece);
		t->total += piece;
		t->n++;
	}
}

static void
add_tried(struct fastrpc *f, struct device_probe *p)
{
	struct tried t = { .n = 0 };
	char from[96];
	uint32_t i;

	try_maps(f, &t);
	for (i = 0; i < t.n; i++)
		fastrpc_unshare(&f->s, &t.m[i]);
	if (t.n == HXQ_MAPS)
		snprintf(from, sizeof(from), "mapped in pieces until all %u "
		    "mappings were used", HXQ_MAPS);
	else if (t.code == 0)
		snprintf(from, sizeof(from), "mapped in pieces until "
		    "rpcmem_alloc2 had no more memory");
	else
		snprintf(from, sizeof(from), "mapped in pieces of 2 GiB to "
		    "16 MiB until fastrpc_mmap refused: 0x%x",
		    (unsigned)t.code);
	device_add_limit(p, "total_bytes", t.total > 0, t.total, from);
	device_add_limit(p, "largest_mapping_bytes", t.largest > 0, t.largest,
	    "tried: the largest power of two that was mapped at once");
}

static int
fastrpc_limits(struct domain *d, struct device_probe *p, struct err *reterr)
{
	struct fastrpc *f = d->state;
	uint32_t page = 0, count = 0;
	int code;

	fastrpc_begin(&f->s);
	add_tried(f, p);
	device_add_limit(p, "mappings", 1, HXQ_MAPS - 1, "kept alive by "
	    "our module, less the one for rows");
	device_add_limit(p, "alignment", 1, 128, "an HVX vector");
	device_add_limit(p, "hexagon_version", 1, f->s.arch,
	    "DSPRPC_GET_DSP_INFO: ARCH_VER, 104 = 0x68 = v68");
	add_capability(f, p, "hvx_units", DSP_HVX_SUPPORT_128B,
	    "DSPRPC_GET_DSP_INFO: HVX_SUPPORT_128B");
	if ((code = fastrpc_capability(&f->s, DSP_VTCM_PAGE, &page)) == 0)
		code = fastrpc_capability(&f->s, DSP_VTCM_COUNT, &count);
	device_add_limit(p, "vtcm_bytes", code == 0, (uint64_t)page * count,
	    "DSPRPC_GET_DSP_INFO: VTCM_PAGE * VTCM_COUNT");
	add_capability(f, p, "status_notifications",
	    DSP_STATUS_NOTIFICATION_SUPPORT,
	    "DSPRPC_GET_DSP_INFO: STATUS_NOTIFICATION_SUPPORT");
	add_capability(f, p, "unsigned_modules", DSP_UNSIGNED_PD_SUPPORT,
	    "DSPRPC_GET_DSP_INFO: UNSIGNED_PD_SUPPORT");
	return fastrpc_end(&f->s, "its limits", 0, reterr);
}

static void
fastrpc_close(struct domain *d)
{
	struct fastrpc *f = d->state;
	uint32_t i;

	/* A request without a reply may never get one. */
	if (d->sent != d->received)
		f->s.lost = 1;
	if (f->s.guard != NULL) {
		fastrpc_begin(&f->s);
		fastrpc_session_stop(&f->s);
		for (i = 0; i < d->nmaps; i++)
			fastrpc_unshare(&f->s, &f->mem[i]);
	}
	fastrpc_session_close(&f->s);
	free(f);
}

const struct hexagon_port hexagon_fastrpc = {
	.name = "fastrpc",
	.find = fastrpc_find,
	.open = fastrpc_open,
	.map = fastrpc_map,
	.unmap = fastrpc_unmap,
	.slot = fastrpc_slot,
	.send = fastrpc_send,
	.receive = fastrpc_receive,
	.progress = fastrpc_progress,
	.memory = fastrpc_memory,
	.pid = fastrpc_pid,
	.limits = fastrpc_limits,
	.largest = fastrpc_largest,
	.close = fastrpc_close,
};
