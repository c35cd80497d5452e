/* worker/orders/orders.h - the coordinator's orders, carried out one by one.
 * Owns: struct worker, everything that one session has.  Called by
 * worker/main.c, in the order of shm/wire.h, on the session's thread.
 *
 *	team.c		WIRE_SHARE: further sessions of this process; what
 *			they do together
 *	start.c		WIRE_START: settings, node, cores, threads, ledger
 *	model.c		WIRE_MODEL, WIRE_EXTENTS, WIRE_FILE: its part of the model
 *	rings.c		WIRE_RINGS, WIRE_RENEW: its connections
 *	load.c		WIRE_CONFINE: open the device, confine; WIRE_LOAD:
 *			open the stage, read weights, confine further
 *	questions.c	WIRE_STATS_ASK, WIRE_EXPLAIN, WIRE_PROBE, WIRE_VERIFY,
 *			WIRE_DRILL
 *
 * The payload of the current order is in worker.msg.  Every function returns 0
 * or -errno with a message; an order that does not fit the worker's state is
 * -EBADMSG. */
#ifndef WORKER_ORDERS_ORDERS_H
#define WORKER_ORDERS_ORDERS_H

#include "kernels/kernels.h"
#include "shm/chan.h"
#include "worker/confine/confine.h"
#include "worker/load/uring.h"
#include "worker/stage/procmem.h"
#include "worker/stage/stage.h"

struct team;

struct worker {
	struct chan chan;
	struct chan_msg msg;		/* 64 KiB: not on the stack */
	struct stage_conf sc;
	struct extent *ext;		/* [sc.model.nextents] */
	uint32_t next;			/* extents received */
	struct load_file *file;		/* [sc.model.nfiles] */
	uint32_t nfile;			/* files received */
	struct ring in, out;
	int have_rings, bell_fd;
	uint32_t owns;			/* of the rings: WIRE_PAYS_* */
	uint32_t epoch;
	struct mem_ledger ledger;
	struct kernels kernels;
	struct region status_map;
	struct stage *stage;
	struct team *team;		/* the sessions of this process */
	struct procmem_files proc;	/* the process's */
	char title[MAX_NAME + 2 * SUBLAYERS_LEN];	/* what it holds */
	int is_confined;		/* WIRE_CONFINE was carried out */
	uint64_t open_ns;		/* that its device took to open */
	const char *untested;		/* why not; NULL = its device passed */
	struct load_uring uring;
	int stopped;			/* after BATCH_STOP: questions only */
	int leave;			/* the coordinator closed the channel */
};

/* A session without orders yet, on this channel. */
void worker_init(struct worker *w, int chan_fd);

int order_share(struct worker *w, struct err *reterr);
int order_start(struct worker *w, struct err *reterr);
/* Bind threads to cores now, if that had to wait for the load. */
void order_pin_after_load(struct worker *w);

int order_model(struct worker *w, struct err *reterr);
int order_extents(struct worker *w, struct err *reterr);
int order_file(struct worker *w, struct err *reterr);
/* Have all extents of the model arrived? */
int order_model_is_complete(const struct worker *w);
void order_close_files(struct worker *w);

int order_rings(struct worker *w, struct err *reterr);
int order_renew(struct worker *w, struct err *reterr);

int order_confine(struct worker *w, struct err *reterr);
int order_load(struct worker *w, struct err *reterr);

int order_stats(struct worker *w, struct err *reterr);
int order_explain(struct worker *w, struct err *reterr);
int order_probe(struct worker *w, struct err *reterr);
int order_verify(struct worker *w, struct err *reterr);
int order_drill(struct worker *w, struct err *reterr);

/* -EBADMSG: the current message is malformed or out of order. */
int order_refuse(const struct worker *w, struct err *reterr);

/* Copy a payload of exactly nbytes, with nfds files, out of the message. */
int order_payload(struct worker *w, void *dst, size_t nbytes, unsigned nfds,
    struct err *reterr);

#endif
