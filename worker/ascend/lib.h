/* worker/ascend/lib.h - loads CANN's libraries, and names their codes.
 * Owns: the loaded libraries, one set per process; never unloaded, because they
 * have threads.  Called by the device and its probe.  Calls block; the caller
 * gives each wait a deadline. */
#ifndef WORKER_ASCEND_LIB_H
#define WORKER_ASCEND_LIB_H

#include "config/err.h"
#include "api.h"

#define ACL_LIBRARY	"libascendcl.so"
#define ACL_BASE	"libnnopbase.so"
/* Operators: one library of older releases, or several.  A process may load
 * either, never both [D]. */
#define ACL_OPS		"libopapi.so"
#define ACL_OPS_NN	"libopapi_nn.so"
#define ACL_OPS_MATH	"libopapi_math.so"
#define ACL_OPS_TRANSFORMER	"libopapi_transformer.so"

/* Operators by name; optional, and loaded when they are asked for. */
#define ACL_OP_COMPILER	"libacl_op_compiler.so"
#define ACL_OP_EXECUTOR	"libacl_op_executor.so"

#define ACL_FUNCTIONS(X)						\
	X(aclInit) X(aclFinalize) X(aclGetRecentErrMsg)			\
	X(aclrtGetSocName) X(aclrtGetVersion) X(aclrtGetRunMode)	\
	X(aclrtGetDeviceCount) X(aclrtSetDevice) X(aclrtResetDevice)	\
	X(aclrtGetDevice) X(aclrtSynchronizeDevice)			\
	X(aclrtCreateContext) X(aclrtDestroyContext)			\
	X(aclrtSetCurrentContext) X(aclrtGetCurrentContext)		\
	X(aclrtCreateStream) X(aclrtDestroyStream)			\
	X(aclrtSynchronizeStream)					\
	X(aclrtSynchronizeStreamWithTimeout)				\
	X(aclrtSetStreamFailureMode) X(aclrtSetOpExecuteTimeOut)	\
	X(aclrtCreateEvent) X(aclrtDestroyEvent) X(aclrtRecordEvent)	\
	X(aclrtStreamWaitEvent) X(aclrtQueryEventStatus)		\
	X(aclrtSynchronizeEventWithTimeout)				\
	X(aclrtMalloc) X(aclrtFree) X(aclrtMallocHost) X(aclrtFreeHost)	\
	X(aclrtMemcpy) X(aclrtMemcpyAsync) X(aclrtMemset)		\
	X(aclrtMemsetAsync) X(aclrtGetMemInfo)

/* NULL where the library has none; present is not supported: see struct
 * acl_machine. */
#define ACL_LATER_FUNCTIONS(X)						\
	X(aclrtMemGetAllocationGranularity) X(aclrtReserveMemAddress)	\
	X(aclrtReleaseMemAddress) X(aclrtMallocPhysical)		\
	X(aclrtFreePhysical) X(aclrtMapMem) X(aclrtUnmapMem)		\
	X(aclrtDeviceCanAccessPeer) X(aclrtDeviceEnablePeerAccess)	\
	X(aclmdlRICaptureBegin) X(aclmdlRICaptureEnd)			\
	X(aclmdlRIExecuteAsync) X(aclmdlRIDestroy)			\
	X(aclrtMallocAlign32) X(aclrtStreamQuery)			\
	X(aclrtCreateStreamWithConfig) X(aclrtSetOpWaitTimeout)		\
	X(aclrtEventElapsedTime) X(aclrtCreateEventWithFlag)

/* Functions of libnnopbase.so; in older releases of the library of operators. */
#define ACL_BASE_FUNCTIONS(X)						\
	X(aclCreateTensor) X(aclDestroyTensor) X(aclCreateScalar)	\
	X(aclDestroyScalar) X(aclCreateIntArray) X(aclDestroyIntArray)	\
	X(aclCreateTensorList) X(aclDestroyTensorList)			\
	X(aclSetAclOpExecutorRepeatable) X(aclDestroyAclOpExecutor)	\
	X(aclSetInputTensorAddr) X(aclSetOutputTensorAddr)

#define ACL_CLASSIC_FUNCTIONS(X)					\
	X(aclCreateTensorDesc) X(aclDestroyTensorDesc)			\
	X(aclCreateDataBuffer) X(aclDestroyDataBuffer)			\
	X(aclUpdateDataBuffer) X(aclopCreateAttr) X(aclopDestroyAttr)	\
	X(aclopSetAttrBool) X(aclopSetAttrInt) X(aclSetCompileopt)	\
	X(aclopCompile) X(aclopCreateHandle) X(aclopDestroyHandle)	\
	X(aclopExecWithHandle)

/* Operators: each pair of functions is there or NULL.  A function that is there
 * may still refuse: a product's kernels are another package [M]. */
#define ACL_OPERATORS(X)						\
	X(Mm) X(Matmul) X(BatchMatMul) X(WeightQuantBatchMatmulV2)	\
	X(Convolution) X(TransMatmulWeight) X(RmsNorm) X(AddRmsNorm)	\
	X(Softmax) X(Silu) X(SwiGlu) X(RotaryPositionEmbedding)		\
	X(Add) X(Sub) X(Mul) X(Div) X(Adds) X(Muls) X(InplaceAdd)	\
	X(InplaceMul) X(InplaceMuls) X(Neg) X(Sin) X(Cos) X(Sqrt)	\
	X(Rsqrt) X(Mean) X(Cast) X(InplaceCopy) X(Permute) X(Cat)	\
	X(Embedding)

enum acl_operator {
#define X(op)	ACL_OP_##op,
	ACL_OPERATORS(X)
#undef X
	ACL_NOPS
};

typedef int acl_run_fn(void *ws, uint64_t ws_bytes, struct acl_executor *ex,
    void *stream);

struct acl_lib {
	void *so, *base, *ops[3];
	unsigned nops;			/* 1: ACL_OPS; else the split ones */
	char path[128];			/* of ACL_LIBRARY */
#define X(f)	__typeof__(f) *f;
	ACL_FUNCTIONS(X)
	ACL_LATER_FUNCTIONS(X)
	ACL_BASE_FUNCTIONS(X)
	ACL_CLASSIC_FUNCTIONS(X)	/* after acl_has_classic() */
#undef X
	__typeof__(aclnnCalculateMatmulWeightSizeV2)
	    *aclnnCalculateMatmulWeightSizeV2;	/* may be NULL */
	/* Phase one by name, with its arguments; phase two by number. */
#define X(op)	__typeof__(aclnn##op##GetWorkspaceSize) *op;
	ACL_OPERATORS(X)
#undef X
	acl_run_fn *run[ACL_NOPS];
};

/* Load them once, on any thread: ACL_LIBRARY, ACL_BASE, then the split libraries
 * of operators, or ACL_OPS where there are none.  -ENOENT: the message names the
 * library or function that is missing, and the remedy.  -EINVAL: both families
 * of operators. */
int acl_load(const struct acl_lib **ret, struct err *reterr);

/* "aclnnMm", and whether the libraries have it. */
const char *acl_operator_name(enum acl_operator op);
int acl_has_operator(const struct acl_lib *lib, enum acl_operator op);

/* Does this CANN have the operators by name?  Loads ACL_OP_COMPILER, and with it
 * the graph engine, at the first call: a confined process must have called it
 * before. */
int acl_has_classic(const struct acl_lib *lib);

/* --- the process --- */

/* Initialize CANN, once in a process; later calls do nothing.  Another library of
 * this process may have done it.  -ENOENT: a library of the kind that only
 * programs are linked with.  -EINVAL: after acl_finish(). */
int acl_start(const struct acl_lib *lib, const char *session,
    struct err *reterr);

/* Finalize it, if acl_start() initialized it; once and for all. */
int acl_finish(const struct acl_lib *lib, const char *session,
    struct err *reterr);

/* --- the machine --- */

struct acl_machine {
	char soc[32];			/* "Ascend310B1" */
	int32_t version[3];		/* of the interface, not of CANN */
	uint32_t ndevices;
	int is_rc;			/* runs on the processor's own cores */
	int is_310b;
};

/* Ask after acl_start(); needs no device.  -ENODEV without one. */
int acl_find_machine(const struct acl_lib *lib, const char *session,
    struct acl_machine *ret, struct err *reterr);

/* May these be called at all?  By documents, and the library's functions: a call
 * that is not supported has been seen to spoil more than itself [M]. */
int acl_has_virtual_memory(const struct acl_lib *lib,
    const struct acl_machine *m);
int acl_has_capture(const struct acl_lib *lib, const struct acl_machine *m);
int acl_has_peers(const struct acl_lib *lib, const struct acl_machine *m);

/* --- codes (codes.c) --- */

struct acl_meaning {
	int code, error;		/* error: -errno */
	const char *name, *text;
	const char *remedy;		/* NULL = none of its own */
};

/* NULL = not in the vendor's list. */
const struct acl_meaning *acl_find_code(int code);
const char *acl_code_name(int code);	/* "an unknown code" */

/* Does this code of a phase or a wait say that the device cannot compute the
 * operation, rather than that it broke?  Codes seen for that are of all
 * classes; 507xxx is not among them: there the stream is lost. */
int acl_is_refusal(int code);

/* Report a call that returned code: session, library, call, code, meaning,
 * remedy, and what the library says.  Clears the thread's message.  Returns
 * -ENOMEM, -ETIMEDOUT, -ENODEV, -EACCES, -ENOTSUP for refusals, -EINVAL, -ENOENT
 * for what is not installed, else -EIO. */
int acl_failed(const struct acl_lib *lib, const char *session,
    const char *call, int code, struct err *reterr);

/* How often acl_failed() had a code of this process that says that memory is missing,
 * which another program may give back: not one of a limit. */
unsigned acl_shortages(void);

/* The code in such an error's message; 0 = there is none. */
int acl_code_in(const struct err *e);

/* Report a call that returned NULL. */
int acl_failed_null(const struct acl_lib *lib, const char *session,
    const char *call, struct err *reterr);

#endif
