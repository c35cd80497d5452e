/* worker/stage/state.h - struct stage, for stage.c and stage/loop.c only. */
#ifndef WORKER_STAGE_STATE_H
#define WORKER_STAGE_STATE_H

#include "shm/arena.h"
#include "stage.h"

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
	struct device *dev, *cpu;	/* cpu: only when something falls back */
	struct device_traits traits;
	struct device_buf weights, kv, compute;
	uint32_t nmaps;				/* of them made */
	struct stage_span *span;	/* [pl.nspans] */
	struct ring in, out;

	/* The batch in hand; copied out of the slot, checked, then used. */
	struct batch_hdr hdr;
	struct batch_row *row;		/* [batch_rows] */
	uint32_t *soa;			/* seq, pos, token, select, and of the
					 * rows kept seq, pos, select: columns
					 * of [batch_rows] */
	uint32_t epoch;
	int renewed;			/* since the batch in hand was taken */
	uint32_t seq_len[MAX_SEQS];	/* positions in the KV cache */
	uint32_t seq_end[MAX_SEQS];	/* all that were stored since the
					 * sequence was empty */
	stage_idle_fn *idle;
	void *idle_arg;
};

#endif
