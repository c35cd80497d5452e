/* kernels/hexagon/queue.h - the queue between a host process and a Hexagon
 * domain, and its messages.
 * Owns: an ABI of fixed widths, little-endian, the same for a 64-bit host and a
 * 32-bit domain.  Called by worker/hexagon and by the domain.  Does not depend
 * on how the domain runs.  Freestanding.  Its limits are those of dspqueue
 * (Qualcomm's fastrpc, dspqueue_shared.h): 64 buffers per packet, 64 KiB per
 * message.
 *
 * Two rings of slots share one memfd: the host writes requests, the domain writes
 * one response for each request, in order.
 *
 * Writer of each field (the host writes magic and version before the domain
 * starts):
 *	head	the writer of the ring; slots [tail, head) belong to the reader
 *	tail	the reader of the ring
 *	progress	the domain; all operations that it has finished
 * Counters run free; a difference above HXQ_SLOTS is a broken queue.
 * Edges.  Q1: a slot's bytes are visible before head.  Q2: reads of a slot are
 * finished before tail.  The reader sleeps on head, the writer on tail, both
 * with a deadline.  Each side wakes the other whenever it has moved its counter:
 * a message is milliseconds of work, so tracking sleepers would gain nothing. */
#ifndef KERNELS_HEXAGON_QUEUE_H
#define KERNELS_HEXAGON_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#define HXQ_MAGIC	0x51585848u	/* "HXXQ" */

enum {
	HXQ_VERSION = 3,
	HXQ_SLOTS = 4,
	HXQ_MAX_BUFS = 64,		/* buffers of a packet */
	HXQ_MAX_MSG = (64 << 10) - 40,	/* payload bytes; 64 KiB with the head
					 * of a packet */
	HXQ_MAPS = 16			/* live mappings of a domain, without
					 * the queue */
};

/* File descriptors in the domain: the queue, then one memfd for each mapping,
 * empty until it is mapped. */
enum { HXQ_FD_QUEUE = 20, HXQ_FD_MAP = 21 };

enum hxq_kind {
	HXQ_HELLO = 1,	/* -> struct hxq_hello */
	HXQ_MAP,	/* buffer 0: map it */
	HXQ_UNMAP,	/* buffer 0: unmap it */
	HXQ_MODEL,	/* struct hx_model: drops all ops */
	HXQ_OPS,	/* struct hx_op []: appended to the ops */
	HXQ_RUN,	/* struct hx_run, then its rows: ops [first, end) */
	HXQ_PROBE,	/* map until refused, unmap -> struct hxq_probe */
	HXQ_EXIT
};

/* Errors; hxq_packet.status_op has the failed op. */
enum hxq_status {
	HXQ_OK,
	HXQ_EBADMSG,	/* invalid length, kind or field */
	HXQ_ENOMAP,	/* buffer not mapped */
	HXQ_ENOMEM,	/* mapping refused: address space full */
	HXQ_ERANGE,	/* operand outside its buffer */
	HXQ_ENOTSUP,	/* unsupported operation, type or shape */
	HXQ_EVTCM,	/* one row does not fit in VTCM */
	HXQ_NSTATUS
};

/* Cache maintenance that silicon performs on the buffer's range when a packet
 * crosses; the response returns the buffers that the request flushed.  Coherent
 * memory, as under emulation, needs none. */
enum {
	HXQ_FLUSH_SENDER = 1 << 0,
	HXQ_INVALIDATE_RECIPIENT = 1 << 1
};

struct hxq_buf {
	uint32_t handle;		/* < HXQ_MAPS */
	uint32_t flags;
	uint64_t offset, nbytes;	/* of its memory */
};

/* Buffers, then a message as dspqueue transfers it: a head and nbytes of msg. */
struct hxq_packet {
	struct hxq_buf buf[HXQ_MAX_BUFS];
	uint32_t id;			/* of a response: its request's */
	uint32_t kind;			/* enum hxq_kind */
	uint32_t status;		/* enum hxq_status: responses */
	uint32_t status_op;		/* index of the op, or UINT32_MAX */
	uint32_t status_arg;		/* bytes or a handle, for messages */
	uint32_t nbufs, nbytes;
	uint32_t present;		/* dspqueue: bit i = buf[i] is sent, in
					 * order; the others are empty */
	uint64_t pcycles;		/* cycles taken: responses */
	uint8_t msg[HXQ_MAX_MSG];
};
_Static_assert(sizeof(struct hxq_buf) == 24, "queue ABI");
_Static_assert(offsetof(struct hxq_packet, id) == 1536, "queue ABI");
_Static_assert(offsetof(struct hxq_packet, msg) == 1576, "queue ABI");
_Static_assert(sizeof(struct hxq_packet) == 1536 + (64 << 10), "queue ABI");

struct hxq_ring {
	_Atomic uint32_t head __attribute__((aligned(128)));
	_Atomic uint32_t tail __attribute__((aligned(128)));
	struct hxq_packet slot[HXQ_SLOTS] __attribute__((aligned(128)));
};

struct hxq_shared {
	uint32_t magic, version;
	_Atomic uint32_t progress;	/* for the watchdog: relaxed */
	struct hxq_ring request, response;
};
_Static_assert(offsetof(struct hxq_shared, request) == 128, "queue ABI");
_Static_assert(sizeof(struct hxq_ring) == 256 + 128 * 2096, "queue ABI");

struct hxq_hello {
	uint32_t version, hvx_bytes, vtcm_bytes, nthreads;
};

struct hxq_probe {
	uint64_t total_bytes;		/* in mappings of 1 MiB */
	uint64_t largest_bytes;		/* the largest single mapping */
	uint32_t nmaps;			/* of 1 MiB */
	uint32_t vtcm_bytes;
};

/* --- operations --- */

enum hx_kind {
	HX_RMS_NORM, HX_QUANTIZE, HX_MATMUL, HX_ROPE, HX_KV_STORE,
	HX_ATTENTION, HX_SWIGLU, HX_GEGLU, HX_SWIGLU_OAI, HX_ADD, HX_SCALE,
	HX_SOFTCAP, HX_MOE_ROUTE, HX_MOE_ROWS, HX_MATMUL_ID, HX_MOE_SUM,
	HX_SELECT_ROWS, HX_NKINDS
};

#define HX_NONE		UINT32_MAX

/* Rows of numbers: row r at offset + r * row_bytes of a packet's buffer. */
struct hx_ref {
	uint32_t buf;			/* HX_NONE = no operand */
	uint32_t offset, row_bytes, cols;
};

/* A packet's buffers by index, as in hx_ref.buf. */
enum { HX_BUF_WEIGHTS, HX_BUF_KV, HX_BUF_COMPUTE, HX_BUF_IO, HX_NBUFS };

struct hx_op {
	uint32_t kind;			/* enum hx_kind */
	/* KV_STORE, ATTENTION: offsets of the layer's keys and values in
	 * HX_BUF_KV, bytes of a head, positions kept (0 = all), keys seen (0 =
	 * all). */
	uint32_t k, v, k_head, v_head, ring, window;
	struct hx_ref out, in[2];
	/* MATMUL: cols = k; MATMUL_ID: n_expert matrices, row_bytes apart;
	 * RMS_NORM: (k) floats; ATTENTION: (n_head) sinks. */
	struct hx_ref w;
	struct hx_ref bias;		/* MATMUL: (n) floats; MATMUL_ID: for
					 * each expert */
	struct hx_ref routes;		/* ops on experts' rows */
	uint32_t type;			/* MATMUL, MATMUL_ID: weight type */
	uint32_t heads;			/* ROPE; RMS_NORM: 0 = whole rows */
	uint32_t head;			/* works on the selected rows */
	uint32_t experts;		/* works on the experts' rows */
	uint32_t q8;			/* MOE_ROWS: quantize the rows */
	uint32_t fine;			/* QUANTIZE, MOE_ROWS: like
					 * quantize_q8_fine */
	uint32_t narrows;		/* later ops work only on rows that
					 * want logits */
	float param;			/* SCALE, SOFTCAP */
};
_Static_assert(sizeof(struct hx_op) == 156, "queue ABI");

struct hx_model {
	float rms_eps, attn_scale;
	uint32_t n_head, n_head_kv, head_dim, v_dim, n_rot, neox;
	uint32_t kfmt, vfmt;		/* enum kv_type */
	uint32_t act_bias;
	uint32_t ctx_tok, nseqs;
	uint32_t k_row, v_row;
	float attn_softcap;		/* 0 = none */
	uint32_t n_expert, n_expert_used;	/* 0 = none */
	uint32_t moe_all;		/* softmax over all experts, not only
					 * over the chosen ones */
	float moe_scale;
	uint32_t vtcm_bytes;		/* limit; 0 = all */
};
_Static_assert(sizeof(struct hx_model) == 84, "queue ABI");

/* Followed by uint32_t seq[nrows], pos[nrows], select[nselect]. */
struct hx_run {
	uint32_t first, end;
	uint32_t nrows, nselect;
};

#endif
