/* worker/hexagon/fastrpc_session.h - one process domain on the DSP, through
 * FastRPC.  Owns: the session, its module, its queue, what is told about its
 * end, and the guard over calls that have no timeout.  Called by
 * hexagon/fastrpc.c.
 *
 * A session is made in this order, each step by name in its errors: ask for the
 * architecture, reserve a session, its URI, unsigned modules, hear of the
 * domain's end, open the module, its latency, a queue, start.  FastRPC makes
 * the process on the DSP itself, at the first of these that needs it. */
#ifndef WORKER_HEXAGON_FASTRPC_SESSION_H
#define WORKER_HEXAGON_FASTRPC_SESSION_H

#include "config/base.h"
#include "fastrpc_guard.h"
#include "fastrpc_lib.h"

struct fastrpc_notice;

struct fastrpc_session {
	const struct fastrpc_lib *lib;
	char name[MAX_NAME];		/* for messages */
	_Atomic int domain;		/* effective id; -1 = not reserved.
					 * The guard reads it, too. */
	uint32_t session_id, arch;
	struct fastrpc_notice *notice;	/* NULL = the DSP tells nothing */
	struct guard *guard;
	uint64_t step_ns;		/* what it allows */
	remote_handle64 handle;
	int opened, started;
	_Atomic int lost;		/* killed, or dead: ask it nothing */
	struct dspqueue *queue;
};

/* Memory of both sides. */
struct fastrpc_mem {
	void *p;
	uint64_t nbytes;
	int fd;
};

/* All steps; queue_bytes: for packets, each way; step_ns: what the guard
 * allows, 0 = a minute.  Whatever comes of it, fastrpc_session_close() takes
 * it down. */
int fastrpc_session_open(struct fastrpc_session *f, const char *name,
    uint32_t queue_bytes, uint64_t step_ns, struct err *reterr);

/* The domain forgets its queue, or is killed when it is lost: then its memory
 * can go.  Close stops what was not. */
void fastrpc_session_stop(struct fastrpc_session *f);
void fastrpc_session_close(struct fastrpc_session *f);

/* Allocate m->nbytes and map them there.  When fastrpc_mmap() refuses,
 * *ret_refused is its code, else 0. */
int fastrpc_share(struct fastrpc_session *f, struct fastrpc_mem *m,
    int *ret_refused, struct err *reterr);
void fastrpc_unshare(struct fastrpc_session *f, const struct fastrpc_mem *m);

/* 0 while it lives, as far as it is told. */
int fastrpc_ended(struct fastrpc_session *f, struct err *reterr);

/* Between them, calls that take too long are ended, by killing the process on
 * the DSP.  rc is what came of the step, and may become -ETIMEDOUT. */
void fastrpc_begin(struct fastrpc_session *f);
int fastrpc_end(struct fastrpc_session *f, const char *step, int rc,
    struct err *reterr);

/* As DSPRPC_GET_DSP_INFO: its code. */
int fastrpc_capability(const struct fastrpc_session *f,
    enum dsp_attribute attribute, uint32_t *ret);

#endif
