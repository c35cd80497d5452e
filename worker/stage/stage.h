/* worker/stage/stage.h - a session seen from inside: slot in, program, slot out.
 * Owns: program, placement, devices, arenas, rings, the state of sequences.
 * Called by the worker's main.  Never allocates once it is ready. */
#ifndef WORKER_STAGE_STAGE_H
#define WORKER_STAGE_STAGE_H

#include "layers/arch.h"
#include "shm/ring.h"
#include "shm/wire.h"
#include "worker/device.h"
#include "worker/load/load.h"

struct stage;

struct stage_conf {
	const struct device_ops *dev;	/* the session's device */
	const struct kernels *kernels;	/* layouts point into it */
	struct wire_start start;
	struct wire_model model;
	struct hparams hp;
	const struct extent *ext;	/* [model.nextents] */
	struct par *par;
	struct mem_ledger *ledger;
	struct stage_status *status;	/* shared with the coordinator */
};

/* What its device is told of the session. */
struct device_conf stage_device_conf(const struct stage_conf *sc);

/* Program, placement, memory (all of it charged, mapped and touched). */
int stage_open(const struct stage_conf *sc, struct stage **ret,
    struct err *reterr);

/* Read the weights; staging is taken and given back inside. */
int stage_load(struct stage *s, const struct load_file *files,
    uint32_t nfiles, struct load_stats *ret, struct err *reterr);

/* Placement only, nothing allocated: what `explain` shows. */
int stage_explain(const struct stage_conf *sc, struct placement *ret_pl,
    struct program **ret_p, struct weights *ret_ws, struct err *reterr);

const struct placement *stage_placement(const struct stage *s);

/* Take the rings over; they are closed by stage_close(). */
void stage_attach(struct stage *s, const struct ring *in,
    const struct ring *out);

/* A new epoch: forget every sequence, the batch in hand and what waits in the
 * ring in.  in, out: instead of those until now, which are closed; NULL = they
 * stay.  To be called before stage_run(), or by idle(). */
void stage_renew(struct stage *s, uint32_t epoch, const struct ring *in,
    const struct ring *out);

/* Work until BATCH_STOP (0), an error, or idle() != 0.  It is asked every 100
 * ms while there is nothing to do, and between two batches, or while one
 * waits, as soon as the status page has a call. */
typedef int stage_idle_fn(void *arg);
int stage_run(struct stage *s, stage_idle_fn *idle, void *arg,
    struct err *reterr);

/* What its device has taken; zeros when there is none, or s is NULL. */
struct device_account stage_account(const struct stage *s);
void stage_close(struct stage *s);

#endif
