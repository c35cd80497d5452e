/* worker/hexagon/fastrpc_lib.h - loads libcdsprpc.so, Qualcomm's library for
 * reaching the DSP.
 * Owns: the loaded library, one per process; never unloaded, because it has
 * threads.  Called by the fastrpc port and by board.c. */
#ifndef WORKER_HEXAGON_FASTRPC_LIB_H
#define WORKER_HEXAGON_FASTRPC_LIB_H

#include "config/err.h"
#include "kernels/hexagon/fastrpc.h"

#define FASTRPC_LIBRARY	"libcdsprpc.so"

#define FASTRPC_FUNCTIONS(X)						\
	X(remote_handle64_open) X(remote_handle64_invoke)		\
	X(remote_handle64_close) X(remote_handle_control)		\
	X(remote_handle64_control) X(remote_session_control)		\
	X(rpcmem_alloc2) X(rpcmem_free) X(rpcmem_to_fd)			\
	X(fastrpc_mmap) X(fastrpc_munmap)				\
	X(dspqueue_create) X(dspqueue_close) X(dspqueue_export)		\
	X(dspqueue_write) X(dspqueue_read)

struct fastrpc_lib {
	void *so;
	char path[128];			/* of the file that was loaded */
#define X(f)	__typeof__(f) *f;
	FASTRPC_FUNCTIONS(X)
#undef X
};

/* Load it once.  -ENOENT: no such library, or it lacks a function; the message
 * names it and the remedy. */
int fastrpc_load(const struct fastrpc_lib **ret, struct err *reterr);

/* Report a call (a function, or a request of one) that returned code: session,
 * call, code, meaning, remedy.  Returns -ENOMEM when memory or sessions ran
 * out, -ENOENT when something is missing, else -EIO. */
int fastrpc_failed(const char *session, const char *call, int code,
    struct err *reterr);

/* "no memory"; "an unknown code" */
const char *fastrpc_code_text(int code);

#endif
