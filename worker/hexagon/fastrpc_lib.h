/* worker/hexagon/fastrpc_lib.h - libcdsprpc.so, Qualcomm's way from a process
 * to the DSP, loaded when it is there.  Owns: the loaded library, once a
 * process, never unloaded: it has threads.  Called by hexagon/fastrpc.c and by
 * what looks a board over. */
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
	char path[128];			/* of the file, as the linker found it */
#define X(f)	__typeof__(f) *f;
	FASTRPC_FUNCTIONS(X)
#undef X
};

/* 0; -ENOENT: no such library, or one that lacks a function, by name, with
 * what to do. */
int fastrpc_load(const struct fastrpc_lib **ret, struct err *reterr);

/* A call (a function, or a request of one) that returned code: who, which,
 * code, its meaning, what to do.  Returns -EIO, -ENOMEM for want of memory or
 * sessions, -ENOENT for what is missing. */
int fastrpc_failed(const char *session, const char *call, int code,
    struct err *reterr);

/* "no memory"; "an unknown code" */
const char *fastrpc_code_text(int code);

#endif
