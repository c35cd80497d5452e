/* worker/stage/conf.h - the settings of a stage.
 * Owns: nothing.  Filled by the worker's orders, read by the stage. */
#ifndef WORKER_STAGE_CONF_H
#define WORKER_STAGE_CONF_H

#include "layers/arch.h"
#include "shm/wire.h"
#include "worker/device.h"

struct stage_conf {
	const struct device_ops *dev;	/* the session's device */
	struct device *opened;		/* opened before; NULL = the stage
					 * opens it */
	struct load_uring *uring;	/* made before; NULL = the load makes
					 * one */
	const struct kernels *kernels;	/* layouts point into it */
	struct wire_start start;
	struct wire_model model;
	struct hparams hp;
	const struct extent *ext;	/* [model.nextents] */
	struct par *par;
	struct mem_ledger *ledger;
	struct stage_status *status;	/* shared with the coordinator */
};

/* Called by a stage between batches; not 0 = leave the loop. */
typedef int stage_idle_fn(void *arg);

#endif
