/* shm/layout.h - structures in shared memory: an ABI.  Fixed-width fields,
 * magic, version, static asserts; one cache line for each writer.  Readers
 * trust nothing here: they copy the geometry once and check it, and copy a
 * header out of its slot before they validate it. */
#ifndef SHM_LAYOUT_H
#define SHM_LAYOUT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RING_MAGIC	0x474e5253u	/* "SRNG" */
#define RING_VERSION	1u

#define RING_PRODUCER	1u		/* bits of ring_shared.asleep */
#define RING_CONSUMER	2u

/* Header of a ring's memfd; the slots start at RING_SLOTS_OFF.
 *
 * Writer of each field (ring_create() sets magic, version and geometry once).
 *   head   producer only   slots [tail, head) belong to the consumer
 *   tail   consumer only   the other slots belong to the producer
 *   asleep each side sets and clears its own bit, by atomic or/and
 * Edges.  P1 -> C1: slot bytes are visible before head.
 *         C2 -> P2: slot reads are finished before tail.
 *         W1 || W2: either the producer sees `asleep`, or the consumer sees
 *         the new head (and W3 || W4 the other way round, for tail).
 *         All four are seq_cst on both words, which is the full fence:
 *         weaken one and a wake-up can be lost. */
struct ring_shared {
	uint32_t magic, version, nslots, slot_bytes;
	_Atomic uint32_t touched;	/* owner only: 1 = pages are resident */
	_Alignas(64) _Atomic uint32_t head;	/* consumer sleeps on it */
	_Alignas(64) _Atomic uint32_t tail;	/* producer sleeps on it */
	_Alignas(64) _Atomic uint32_t asleep;	/* RING_PRODUCER, _CONSUMER */
};
_Static_assert(offsetof(struct ring_shared, head) == 64, "ring ABI");
_Static_assert(offsetof(struct ring_shared, tail) == 128, "ring ABI");
_Static_assert(offsetof(struct ring_shared, asleep) == 192, "ring ABI");
_Static_assert(sizeof(struct ring_shared) == 256, "ring ABI");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "futex words must be lock-free");

/* The first slot is page aligned; all are 64-byte aligned. */
#define RING_SLOTS_OFF	4096u

/* One slot: batch header, rows, then the payload at slot_payload_off().
 *   ring into stage 0   payload: none (row.token is enough)
 *   between stages      payload: float32, nrows x n_embd, in rows of
 *                       slot_row_bytes()
 *   out of the head     payload: float32, nrows x n_vocab, only the rows that
 *                       want logits, in blocks: first..first+nrows of them */
#define BATCH_MAGIC	0x48435442u	/* "BTCH" */

enum batch_kind {
	BATCH_DATA = 1,		/* rows to compute */
	BATCH_FORGET = 2,	/* drop sequence seq (from position pos on) */
	BATCH_STOP = 3		/* forward it, then leave the loop */
};

#define ROW_LOGITS	1u		/* row.flags: this row wants logits */
#define BATCH_LAST	1u	/* hdr.flags: last block of this batch */

struct batch_hdr {
	uint32_t magic;
	uint32_t kind;		/* enum batch_kind */
	uint64_t number;	/* of the batch within its epoch, from 0 */
	uint32_t epoch;
	uint32_t nrows;		/* rows in this slot */
	uint32_t flags;
	uint32_t first;		/* logits ring: index of the first row, among
				 * those that want logits */
	uint32_t seq, pos;	/* BATCH_FORGET */
	uint32_t reserved[2];
};
_Static_assert(sizeof(struct batch_hdr) == 48, "batch ABI");

struct batch_row {
	uint32_t seq;		/* < nseqs of the session */
	uint32_t pos;		/* < ctx */
	uint32_t token;		/* < n_vocab */
	uint32_t flags;		/* ROW_* */
};
_Static_assert(sizeof(struct batch_row) == 16, "batch ABI");

/* Offset of the payload in a slot of a ring for max_rows rows. */
static inline uint64_t
slot_payload_off(uint32_t max_rows)
{
	uint64_t n = sizeof(struct batch_hdr) +
	    (uint64_t)max_rows * sizeof(struct batch_row);

	return (n + 63) & ~(uint64_t)63;
}

/* Bytes from one row of a payload to the next: float32 [cols], rounded up to
 * cache lines. */
static inline uint64_t
slot_row_bytes(uint32_t cols)
{
	return ((uint64_t)cols * 4 + 63) & ~(uint64_t)63;
}

/* Bytes of a slot for max_rows rows of cols floats (0 = ids only). */
static inline uint64_t
slot_bytes(uint32_t max_rows, uint32_t cols)
{
	return slot_payload_off(max_rows) + max_rows * slot_row_bytes(cols);
}

/* A device that cannot see the rings copies rows through one buffer of its own:
 * the rows of a batch, float32 [batch_rows][n_embd], then the rows that leave:
 * [head_rows][n_vocab] where the head is, else again [batch_rows][n_embd]
 * (head_rows 0).  Bytes of the first part, and of both. */
static inline uint64_t
copied_rows_in_bytes(uint32_t batch_rows, uint32_t n_embd)
{
	return batch_rows * slot_row_bytes(n_embd);
}

static inline uint64_t
copied_rows_bytes(uint32_t batch_rows, uint32_t n_embd, uint32_t head_rows,
    uint32_t n_vocab)
{
	return copied_rows_in_bytes(batch_rows, n_embd) + (head_rows > 0 ?
	    copied_rows_in_bytes(head_rows, n_vocab) :
	    copied_rows_in_bytes(batch_rows, n_embd));
}

/* Status page of a worker.  The worker writes and the coordinator reads, except
 * for `call`, which goes the other way.  No ordering between fields. */
#define STATUS_MAGIC	0x54415453u	/* "STAT" */

enum {
	STATUS_PASSES = 13,	/* classes of rows: 1, 2, 3-4, ... 2049-4096 */
	DEVICE_MEMO_BYTES = 256,
	DEVICE_CHOICE_BYTES = 1024,
	DEVICE_KEY_BYTES = 2048,
	DEVICE_VERDICT_BYTES = 3072,
	DEVICE_MATRICES = 32,
	DEVICE_NORMS = 8,
	DEVICE_GATES = 8
};

/* The choices of a device's probe.  Every worker of every session on it is given the
 * same, so that neither the split nor a restart changes a bit. */
struct device_choice {
	uint32_t is_made;		/* 0 = it was not probed */
	uint32_t layout;		/* enum weight_layout */
	uint8_t of_device[DEVICE_CHOICE_BYTES];	/* in its own format */
};

/* The results of a device's trials, which the coordinator keeps in a file for later
 * probes.  key: lines "name=value\n", all that the rest depends on; "" = there is
 * nothing to keep. */
struct device_verdict {
	char key[DEVICE_KEY_BYTES];
	uint8_t of_device[DEVICE_VERDICT_BYTES];	/* in its own format */
};

/* Shapes of a model, each once, that a device tries before it computes them.  What does
 * not fit is left out. */
struct device_shapes {
	uint32_t nmatrices, nnorms, ngates;
	float eps;			/* of norms */
	struct device_matrix {
		uint32_t n, k;		/* rows, columns */
		uint32_t type;		/* enum quant_type */
	} matrix[DEVICE_MATRICES];
	uint32_t norm[DEVICE_NORMS];	/* columns of RMS norms of whole rows */
	uint32_t gate[DEVICE_GATES];	/* columns of SwiGLU's results */
};

struct stage_status {
	uint32_t magic, version;
	_Atomic uint64_t heartbeat;	/* grows while the main thread loops */
	_Atomic uint64_t progress;	/* operations finished */
	_Atomic uint64_t load_bytes;	/* file bytes read so far */
	_Atomic uint64_t batches;	/* batches finished */
	_Atomic uint64_t busy_ns;	/* time spent computing */
	/* Longest pass so far for each row class: time that a batch was
	 * computed without waiting.  No single operation took longer.  0 =
	 * none yet. */
	_Atomic uint64_t pass_ns[STATUS_PASSES];
	_Atomic uint32_t in_device;	/* 1 = waiting for a device to finish */
	/* 1 = a key or value that the host stored was beyond the range of F16,
	 * its KV type, and became infinite. */
	_Atomic uint32_t kv_overflow;
	/* Written by the coordinator before the start: 1 = the session's worker
	 * before this one was ended because nothing moved. */
	uint32_t after_hang;
	/* When the worker's device last called its library, which has not returned
	 * yet (event_now_ns()); 0 = it has, or the call may take any time. */
	_Atomic uint64_t device_call_ns;
	/* Written by the coordinator: urgent messages sent, which the worker
	 * reads between two batches.  S1 -> S2: a message is on the channel
	 * before it is counted. */
	_Alignas(64) _Atomic uint32_t call;
	/* Whatever the worker's device notes for the next worker of its
	 * session (worker/device.h).  The coordinator keeps the bytes of a
	 * worker that has ended, and reads no sense into them; zeros for the
	 * first worker. */
	_Alignas(64) uint8_t device_memo[DEVICE_MEMO_BYTES];
};
_Static_assert(offsetof(struct stage_status, call) == 192, "status ABI");
_Static_assert(offsetof(struct stage_status, device_memo) == 256,
    "status ABI");
_Static_assert(sizeof(struct stage_status) == 512, "status ABI");

/* Row class of a batch: the least i with nrows <= 2^i. */
static inline unsigned
status_pass(uint32_t nrows)
{
	unsigned i = 0;

	while (i < STATUS_PASSES - 1 && nrows > UINT32_C(1) << i)
		i++;
	return i;
}

#endif
