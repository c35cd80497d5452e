/* worker/stage/state.h - struct stage.
 * Owns: nothing itself; stage.c opens and closes what is in it.  Included by
 * stage.c, loop.c and their tests. */
#ifndef WORKER_STAGE_STATE_H
#define WORKER_STAGE_STATE_H

#include "shm/arena.h"
#include "shm/ring.h"
#include "conf.h"

struct stage_span {
	const struct device_ops *ops;
	struct device *dev;
	uint32_t handle;
};

enum { STAGE_COLUMNS = 7 };

struct stage {
	struct stage_conf conf;
	struct weights ws;
	struct program *p;
	struct placement pl;
	struct device *dev, *cpu;	/* cpu: only for operations that fall
					 * back */
	struct device_traits traits;
	struct device_buf weights, kv, compute;
	uint32_t nmaps;				/* buffers allocated so far */
	struct stage_span *span;	/* [pl.nspans] */
	struct ring in, out;

	/* The current batch: copied out of the slot, checked, then used. */
	struct batch_hdr hdr;
	struct batch_row *row;		/* [batch_rows] */
	uint32_t *column;		/* [STAGE_COLUMNS][batch_rows]: seq,
					 * pos, token, select; and of the rows
					 * that want logits seq, pos, select */
	uint32_t epoch;
	int renewed;			/* since the current batch was taken */
	uint32_t seq_len[MAX_SEQS];	/* positions in the KV cache */
	uint32_t seq_end[MAX_SEQS];	/* most positions stored since the
					 * sequence was empty */
	stage_idle_fn *idle;
	void *idle_arg;
};

#endif
