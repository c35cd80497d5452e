/* worker/stage/stage.h - the stage of a session: slot in, program, slot out.
 * Owns: program, placement, devices, arenas, rings, the state of sequences.
 * Called by the worker's orders.  Allocates nothing once it is ready. */
#ifndef WORKER_STAGE_STAGE_H
#define WORKER_STAGE_STAGE_H

#include "shm/ring.h"
#include "worker/load/load.h"
#include "conf.h"

struct stage;

/* The settings of the session's device. */
struct device_conf stage_device_conf(const struct stage_conf *sc);

/* Build program and placement, then take the memory: all of it is charged,
 * mapped and, except for weights, touched on return.  Takes sc->opened, also on
 * failure. */
int stage_open(const struct stage_conf *sc, struct stage **ret,
    struct err *reterr);

/* Read the weights; staging memory is taken and given back inside. */
int stage_load(struct stage *s, const struct load_file *files,
    uint32_t nfiles, struct load_stats *ret, struct err *reterr);

/* Program and placement only, without the device's memory: for `explain`. */
int stage_explain(const struct stage_conf *sc, struct placement *ret_pl,
    struct program **ret_p, struct weights *ret_ws, struct err *reterr);

const struct placement *stage_placement(const struct stage *s);

/* Take the rings over; stage_close() closes them. */
void stage_attach(struct stage *s, const struct ring *in,
    const struct ring *out);

/* Begin a new epoch: forget every sequence, the current batch and all slots
 * that wait in the input ring.  in, out: replace the current rings, which are
 * closed; NULL = keep.  Call it before stage_run(), or from idle(). */
void stage_renew(struct stage *s, uint32_t epoch, const struct ring *in,
    const struct ring *out);

/* Work until BATCH_STOP (0), an error, or idle() != 0.  idle() is called every
 * 100 ms while there is nothing to do; and between two batches, or while one
 * waits for a slot, as soon as the status page shows a call. */
int stage_run(struct stage *s, stage_idle_fn *idle, void *arg,
    struct err *reterr);

/* Memory and calls of its device; zeros when there is none, or s is NULL. */
struct device_account stage_account(const struct stage *s);
void stage_close(struct stage *s);

#endif
