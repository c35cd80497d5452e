/* worker/hexagon/fastrpc_session.h - one process domain on the DSP.  Owns: the
 * session, its module, its queue, the notices about its end, and the guard over
 * calls that have no timeout.  Called by fastrpc.c.
 *
 * A session opens in this order, and errors name the step: get the
 * architecture, reserve a session, get its URI, allow unsigned modules,
 * register for notices of the domain's end, open the module, set its latency,
 * create a queue, start.  FastRPC creates the process on the DSP at the first
 * step that needs it. */
#ifndef WORKER_HEXAGON_FASTRPC_SESSION_H
#define WORKER_HEXAGON_FASTRPC_SESSION_H

#include "config/base.h"
#include "fastrpc_guard.h"
#include "fastrpc_lib.h"

struct fastrpc_notice;

struct fastrpc_session {
	const struct fastrpc_lib *lib;
	char name[MAX_NAME];		/* for messages */
	_Atomic int domain;		/* effective id, read by the guard too;
					 * -1 = not reserved */
	uint32_t session_id, arch;
	struct fastrpc_notice *notice;	/* NULL = the DSP sends none */
	struct guard *guard;
	uint64_t step_ns;		/* the guard's limit */
	remote_handle64 handle;
	int opened, started;
	_Atomic int lost;		/* killed or dead: send it nothing */
	struct dspqueue *queue;
};

/* Memory that host and DSP both map. */
struct fastrpc_mem {
	void *p;
	uint64_t nbytes;
	int fd;
};

/* Run all steps.  queue_bytes: for packets, in each direction; step_ns: limit
 * of the guard, 0 = a minute.  After success and failure alike, call
 * fastrpc_session_close(). */
int fastrpc_session_open(struct fastrpc_session *f, const char *name,
    uint32_t queue_bytes, uint64_t step_ns, struct err *reterr);

/* Make the domain drop its queue, or kill it when it is lost; its memory can be
 * unmapped afterwards.  Close stops it if nobody did. */
void fastrpc_session_stop(struct fastrpc_session *f);
void fastrpc_session_close(struct fastrpc_session *f);

/* Allocate m->nbytes and map them there.  When fastrpc_mmap() refuses,
 * *ret_refused is its code, else 0. */
int fastrpc_share(struct fastrpc_session *f, struct fastrpc_mem *m,
    int *ret_refused, struct err *reterr);
void fastrpc_unshare(struct fastrpc_session *f, const struct fastrpc_mem *m);

/* 0 while no notice says that the domain ended. */
int fastrpc_ended(struct fastrpc_session *f, struct err *reterr);

/* Between begin and end, a call that takes too long is ended by killing the
 * process on the DSP.  rc: result of the step; a failure then becomes
 * -ETIMEDOUT. */
void fastrpc_begin(struct fastrpc_session *f);
int fastrpc_end(struct fastrpc_session *f, const char *step, int rc,
    struct err *reterr);

/* Query DSPRPC_GET_DSP_INFO; returns its code. */
int fastrpc_capability(const struct fastrpc_session *f,
    enum dsp_attribute attribute, uint32_t *ret);

#endif
