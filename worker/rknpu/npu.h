/* worker/rknpu/npu.h - an opened NPU: one IOMMU domain, its memory and its
 * contexts.
 * Owns: the domain's allocations and contexts.  Called by product.c, the device
 * and its probe, on the stage's thread; every call of the library is made on a
 * thread that can be given up on (calls.h).  Does not depend on models. */
#ifndef WORKER_RKNPU_NPU_H
#define WORKER_RKNPU_NPU_H

#include "calls.h"
#include "layout.h"
#include "lib.h"
#include "memo.h"
#include "worker/device.h"

enum {
	NPU_MATRICES = 3,	/* A, B, C: enum rknpu_matrix */
	NPU_CONTEXTS = 64	/* of a core */
};

/* Memory of the domain, mapped by the host too.  A view lies in other memory,
 * and is synced with that. */
struct npu_mem {
	struct rknn_tensor_mem *mem;	/* NULL = none */
	uint8_t *host;
	uint64_t nbytes;
};

/* A context of one core, with native layouts. */
struct npu_context {
	struct npu_shape shape;
	uint64_t id;
	struct rknn_matmul_io_attr attr;
	struct rknpu_layout a, c;
	const struct rknn_tensor_mem *bound[NPU_MATRICES];
	int has_run;
};

/* Arguments and results of a call that prepares something.  A call that never
 * returns keeps them. */
struct npu_job {
	struct npu *n;
	struct rknn_tensor_mem *mem, *of;
	uint64_t nbytes, offset;
	struct npu_context *ctx;
	unsigned core;
};

struct npu {
	const char *session;
	struct mem_ledger *ledger;
	const struct rknn_lib *lib;
	const struct rknpu_soc *soc;
	struct rknn_release release;
	int domain;
	unsigned ncores;
	int has_lock;
	struct calls *calls;
	struct npu_memo *memo;		/* NULL = calls are not noted */
	struct npu_shape noted;		/* that npu_do() makes calls for */
	struct npu_job job;
	struct npu_context owner;	/* memory comes through it */
	int highest_fd;
	uint64_t context_bytes;		/* of one, as measured at open */
	int context_bytes_known;
	struct npu_core {
		struct npu_context ctx[NPU_CONTEXTS];
		unsigned nctx;
		/* The call being made on its thread, and its error. */
		const char *_Atomic in;
		struct err err;
		int rc;
	} core[NPU_CORES];
};

/* Load the library, find chip, driver and release, and make threads and one
 * small context; calls are noted in memo.  Charges nothing.  -ENOENT, -ENODEV:
 * the message says what is missing, and what to do. */
int npu_open(const struct device_conf *dc, struct npu_memo *memo,
    struct npu **ret, struct err *reterr);
/* Free what is left; accepts NULL. */
void npu_close(struct npu *n);

/* Run fn(arg) on a core's thread and wait for CALL_NS at most.  fn calls the
 * library, sets core[].in before each call, and returns its own error in
 * core[].rc and core[].err.  arg lives as long as n. */
int npu_do(struct npu *n, unsigned core, void (*fn)(void *arg), void *arg,
    struct err *reterr);
/* Wait for a call that was posted to a core's thread.  -ETIMEDOUT with a message:
 * it does not return, and no other call is made from now on. */
int npu_wait(struct npu *n, unsigned core, uint64_t deadline_ns,
    struct err *reterr);

/* The message for calls that were given up on.  Returns -ETIMEDOUT. */
int npu_hangs(const struct npu *n, unsigned core, struct err *reterr);

/* Check a code of the library: 0, or set the core's error.  On its thread. */
int npu_check(struct npu *n, unsigned core, const char *call, int code);

/* Memory of whole pages; charges nothing. */
int npu_alloc(struct npu *n, uint64_t nbytes, const char *what,
    struct npu_mem *ret, struct err *reterr);
/* nbytes of m from an offset on. */
int npu_view(struct npu *n, const struct npu_mem *m, uint64_t offset,
    uint64_t nbytes, struct npu_mem *ret, struct err *reterr);
/* Contexts forget it.  Accepts memory that is none. */
void npu_free(struct npu *n, struct npu_mem *m);

/* Make what the host wrote visible to the NPU. */
int npu_publish(struct npu *n, const struct npu_mem *m, struct err *reterr);

/* The context of this shape on a core, made when it is missing; *ret is its
 * index.  -ENOSPC: NPU_CONTEXTS are in use. */
int npu_context(struct npu *n, unsigned core, struct npu_shape shape,
    unsigned *ret, struct err *reterr);
/* Destroy all contexts but the owner. */
int npu_drop_contexts(struct npu *n, struct err *reterr);

#endif
