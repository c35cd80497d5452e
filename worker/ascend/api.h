/* worker/ascend/api.h - the needed part of CANN, Huawei's runtime for Ascend
 * processors: libascendcl.so (runtime), libnnopbase.so (tensors, executors) and
 * the libraries of operators.
 * Owns: declarations of a foreign ABI, written from its facts alone: names,
 * numbers, sizes and offsets.  Included by lib.h, which loads the libraries, and
 * by tests/standin/, which stands in for them.
 *
 * Sources of the facts:
 *	H	headers of CANN 8.1.RC1 and of the runtime published in 2026
 *	D	the vendor's documentation
 *	M	measured by others on a board with a 310B
 *
 * All handles are pointers, every code and enum is a 32-bit int [H].  A board
 * with a 310B in RC mode has one memory: the host's.  "not RC" below marks calls
 * that answer 207000 there [D]. */
#ifndef WORKER_ASCEND_API_H
#define WORKER_ASCEND_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- codes [H]; codes.c has them all with a remedy --- */

enum acl_code {
	ACL_SUCCESS = 0,
	ACL_ERROR_INVALID_PARAM = 100000,
	ACL_ERROR_UNINITIALIZE = 100001,
	ACL_ERROR_REPEAT_INITIALIZE = 100002,
	ACL_ERROR_REPEAT_FINALIZE = 100037,
	ACL_ERROR_OP_NOT_FOUND = 100024,
	ACL_ERROR_WAIT_CALLBACK_TIMEOUT = 100036,
	ACL_ERROR_STUB_LIBRARY = 100039,
	ACL_ERROR_RT_PARAM_INVALID = 107000,
	ACL_ERROR_RT_INVALID_DEVICEID = 107001,
	ACL_ERROR_RT_CONTEXT_NULL = 107002,
	ACL_ERROR_RT_STREAM_CONTEXT = 107003,
	ACL_ERROR_RT_WAIT_TIMEOUT = 107019,
	ACL_ERROR_RT_STREAM_CAPTURED = 107027,
	ACL_ERROR_RT_NOT_CAPTURED = 107029,
	ACL_ERROR_RT_DEFAULT_STREAM = 107031,
	ACLNN_ERR_PARAM_NULLPTR = 161001,
	ACLNN_ERR_PARAM_INVALID = 161002,
	ACL_ERROR_BAD_ALLOC = 200000,
	ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000,
	ACL_ERROR_RT_MEMORY_ALLOCATION = 207001,
	ACL_ERROR_RT_DEVICE_OOM = 207018,
	ACLNN_ERR_RUNTIME_ERROR = 361001,
	ACL_ERROR_RT_INTERNAL_ERROR = 507000,
	ACL_ERROR_RT_AICORE_TIMEOUT = 507014,
	ACL_ERROR_RT_AICORE_EXCEPTION = 507015,
	ACL_ERROR_RT_AICPU_EXCEPTION = 507018,
	ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046,
	ACL_ERROR_RT_EVENT_SYNC_TIMEOUT = 507047,
	ACLNN_ERR_INNER = 561000,
	ACLNN_ERR_INNER_NULLPTR = 561103
};

/* --- types [H] --- */

enum acl_dtype {
	ACL_DT_UNDEFINED = -1,
	ACL_FLOAT = 0, ACL_FLOAT16 = 1, ACL_INT8 = 2, ACL_INT32 = 3,
	ACL_UINT8 = 4, ACL_INT16 = 6, ACL_UINT16 = 7, ACL_UINT32 = 8,
	ACL_INT64 = 9, ACL_UINT64 = 10, ACL_DOUBLE = 11, ACL_BOOL = 12,
	ACL_BF16 = 27, ACL_INT4 = 29
};

enum acl_format {
	ACL_FORMAT_UNDEFINED = -1,
	ACL_FORMAT_NCHW = 0, ACL_FORMAT_NHWC = 1, ACL_FORMAT_ND = 2,
	ACL_FORMAT_NC1HWC0 = 3, ACL_FORMAT_FRACTAL_Z = 4,
	ACL_FORMAT_FRACTAL_NZ = 29
};

/* How a product of floats may be computed. */
enum acl_cube_math {
	ACL_CUBE_KEEP_DTYPE = 0, ACL_CUBE_ALLOW_DOWN_PRECISION = 1,
	ACL_CUBE_USE_FP16 = 2, ACL_CUBE_USE_HF32 = 3
};

enum aclrt_memcpy_kind {
	ACL_MEMCPY_HOST_TO_HOST = 0, ACL_MEMCPY_HOST_TO_DEVICE = 1,
	ACL_MEMCPY_DEVICE_TO_HOST = 2, ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
	ACL_MEMCPY_DEFAULT = 4, ACL_MEMCPY_KINDS = 8
};

enum aclrt_malloc_policy {
	ACL_MEM_MALLOC_HUGE_FIRST = 0, ACL_MEM_MALLOC_HUGE_ONLY = 1,
	ACL_MEM_MALLOC_NORMAL_ONLY = 2
};

enum aclrt_mem_attr {
	ACL_DDR_MEM = 0, ACL_HBM_MEM = 1, ACL_DDR_MEM_HUGE = 2,
	ACL_DDR_MEM_NORMAL = 3, ACL_HBM_MEM_HUGE = 4, ACL_HBM_MEM_NORMAL = 5,
	ACL_MEM_ATTRS = 12
};

/* ACL_DEVICE: the program runs on the processor's own cores, "RC mode". */
enum aclrt_run_mode { ACL_DEVICE = 0, ACL_HOST = 1 };

enum aclrt_stream_status {
	ACL_STREAM_STATUS_COMPLETE = 0, ACL_STREAM_STATUS_NOT_READY = 1
};

/* The other way round than the older aclrtEventStatus. */
enum aclrt_recorded_status {
	ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
	ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
};

enum aclrt_event_flag { ACL_EVENT_SYNC = 1, ACL_EVENT_TIME_LINE = 8 };
enum aclrt_stream_flag { ACL_STREAM_FAST_LAUNCH = 1, ACL_STREAM_FAST_SYNC = 2 };
/* Without STOP_ON_FAILURE later tasks run on bad data. */
enum aclrt_failure_mode {
	ACL_CONTINUE_ON_FAILURE = 0, ACL_STOP_ON_FAILURE = 1
};

enum aclrt_granularity {
	ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
	ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1
};
enum aclrt_location { ACL_MEM_LOCATION_HOST = 0, ACL_MEM_LOCATION_DEVICE = 1 };
enum {
	ACL_MEM_HANDLE_TYPE_NONE = 0, ACL_MEM_ALLOCATION_TYPE_PINNED = 0,
	ACL_RESERVE_HUGE = 1		/* a flag of aclrtReserveMemAddress */
};

enum aclmdl_ri_capture_mode {
	ACL_MODEL_RI_CAPTURE_MODE_GLOBAL = 0,
	ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL = 1,
	ACL_MODEL_RI_CAPTURE_MODE_RELAXED = 2
};

struct acl_tensor;		/* aclTensor, and so on: opaque */
struct acl_scalar;
struct acl_int_array;
struct acl_tensor_list;
struct acl_executor;		/* aclOpExecutor */

/* aclrtPhysicalMemProp, the one structure with fields that crosses the ABI. */
struct aclrt_mem_prop {
	int32_t handle_type, allocation_type;
	int32_t mem_attr;		/* enum aclrt_mem_attr */
	struct {
		uint32_t id;		/* of the device */
		int32_t type;		/* enum aclrt_location */
	} location;
	uint64_t reserve;
};

#define ACL_VALUE(name, value) \
	_Static_assert((name) == (value), "ABI: " #name)
#define ACL_AT(field, offset) \
	_Static_assert(offsetof(struct aclrt_mem_prop, field) == (offset), \
	    "ABI: aclrtPhysicalMemProp." #field)

_Static_assert(sizeof(void *) == 8, "only 64-bit systems");
_Static_assert(sizeof(enum acl_dtype) == 4, "ABI: enums are 4 bytes");
_Static_assert(sizeof(struct aclrt_mem_prop) == 32,
    "ABI: aclrtPhysicalMemProp");
ACL_AT(handle_type, 0);
ACL_AT(allocation_type, 4);
ACL_AT(mem_attr, 8);
ACL_AT(location, 12);
ACL_AT(reserve, 24);
/* Values that follow from no order. */
ACL_VALUE(ACL_INT16, 6);
ACL_VALUE(ACL_BOOL, 12);
ACL_VALUE(ACL_BF16, 27);
ACL_VALUE(ACL_INT4, 29);
ACL_VALUE(ACL_FORMAT_FRACTAL_NZ, 29);
ACL_VALUE(ACL_MEMCPY_DEFAULT, 4);
ACL_VALUE(ACL_HBM_MEM, 1);
ACL_VALUE(ACL_DEVICE, 0);
ACL_VALUE(ACL_EVENT_RECORDED_STATUS_COMPLETE, 1);
ACL_VALUE(ACL_EVENT_TIME_LINE, 8);
#undef ACL_VALUE
#undef ACL_AT

/* --- libascendcl.so: the process [H] --- */

int aclInit(const char *config);	/* NULL allowed; once in a process */
int aclFinalize(void);			/* may take 2 s: flushes its log */
/* The thread's last message, which is cleared; dies at the next call.  NULL =
 * none. */
const char *aclGetRecentErrMsg(void);
const char *aclrtGetSocName(void);	/* "Ascend310B1"; NULL on failure */
/* The version of the interface, which is not that of CANN. */
int aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch);
int aclrtGetRunMode(int *mode);		/* enum aclrt_run_mode */
int aclrtGetDeviceCount(uint32_t *n);

/* --- devices, contexts, streams.  A context is a thread's; without one most
 * calls fail with 107002 --- */

int aclrtSetDevice(int32_t device);	/* counted */
int aclrtResetDevice(int32_t device);
int aclrtGetDevice(int32_t *device);
int aclrtSynchronizeDevice(void);
int aclrtSynchronizeDeviceWithTimeout(int32_t ms);
int aclrtCreateContext(void **ctx, int32_t device);
int aclrtDestroyContext(void *ctx);
int aclrtSetCurrentContext(void *ctx);
int aclrtGetCurrentContext(void **ctx);
int aclrtCreateStream(void **stream);
int aclrtCreateStreamWithConfig(void **stream, uint32_t priority,
    uint32_t flag);
int aclrtDestroyStream(void *stream);	/* its context must be current */
/* Errors of tasks appear here, not where they are started. */
int aclrtSynchronizeStream(void *stream);
int aclrtSynchronizeStreamWithTimeout(void *stream, int32_t ms);
int aclrtStreamQuery(void *stream, int *status);
int aclrtSetStreamFailureMode(void *stream, uint64_t mode);	/* once */
/* Default of an operator in RC mode: 1091 s. */
int aclrtSetOpExecuteTimeOut(uint32_t seconds);
int aclrtSetOpWaitTimeout(uint32_t seconds);

/* --- events --- */

int aclrtCreateEvent(void **event);
int aclrtCreateEventWithFlag(void **event, uint32_t flag);
int aclrtDestroyEvent(void *event);
int aclrtRecordEvent(void *event, void *stream);
int aclrtStreamWaitEvent(void *stream, void *event);	/* this order */
int aclrtResetEvent(void *event, void *stream);
int aclrtQueryEventStatus(void *event, int *status);
int aclrtSynchronizeEvent(void *event);
int aclrtSynchronizeEventWithTimeout(void *event, int32_t ms);
int aclrtEventElapsedTime(float *ms, void *start, void *end);

/* --- memory.  aclrtMalloc() takes 32 bytes more than it is asked for, rounded up
 * to 32; begins at a multiple of 64 --- */

int aclrtMalloc(void **p, size_t nbytes, int policy);
int aclrtMallocAlign32(void **p, size_t nbytes, int policy);
int aclrtFree(void *p);			/* sync the streams first */
/* RC: device memory, without a promise of any alignment [D, M]. */
int aclrtMallocHost(void **p, size_t nbytes);
int aclrtFreeHost(void *p);
int aclrtMemcpy(void *dst, size_t dst_bytes, const void *src, size_t nbytes,
    int kind);
int aclrtMemcpyAsync(void *dst, size_t dst_bytes, const void *src,
    size_t nbytes, int kind, void *stream);
int aclrtMemset(void *p, size_t p_bytes, int32_t value, size_t nbytes);
int aclrtMemsetAsync(void *p, size_t p_bytes, int32_t value, size_t nbytes,
    void *stream);
/* 0 or the DDR's numbers for memory that the hardware does not have. */
int aclrtGetMemInfo(int attr, size_t *free_bytes, size_t *total_bytes);

/* Virtual memory; not RC. */
int aclrtMemGetAllocationGranularity(struct aclrt_mem_prop *prop, int option,
    size_t *granularity);
int aclrtReserveMemAddress(void **p, size_t nbytes, size_t align /* 0 */,
    void *hint, uint64_t flags);
int aclrtReleaseMemAddress(void *p);
int aclrtMallocPhysical(void **handle, size_t nbytes,
    const struct aclrt_mem_prop *prop, uint64_t flags /* 0 */);
int aclrtFreePhysical(void *handle);
int aclrtMapMem(void *p, size_t nbytes, size_t offset /* 0 */, void *handle,
    uint64_t flags /* 0 */);
int aclrtUnmapMem(void *p);

/* Not 310B at all: peers, capture of a stream's tasks. */
int aclrtDeviceCanAccessPeer(int32_t *can, int32_t device, int32_t peer);
int aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags /* 0 */);
int aclmdlRICaptureBegin(void *stream, int mode);
int aclmdlRICaptureEnd(void *stream, void **ri);
int aclmdlRIExecuteAsync(void *ri, void *stream);
int aclmdlRIDestroy(void *ri);

/* --- libnnopbase.so [H].  Strides and offset count elements; data must begin at
 * a multiple of 32 bytes --- */

struct acl_tensor *aclCreateTensor(const int64_t *dims, uint64_t ndims,
    int dtype, const int64_t *strides, int64_t offset, int format,
    const int64_t *storage, uint64_t nstorage, void *data);
int aclDestroyTensor(const struct acl_tensor *t);
struct acl_scalar *aclCreateScalar(void *value, int dtype);
int aclDestroyScalar(const struct acl_scalar *s);
struct acl_int_array *aclCreateIntArray(const int64_t *v, uint64_t n);
int aclDestroyIntArray(const struct acl_int_array *a);
/* Takes the tensors over. */
struct acl_tensor_list *aclCreateTensorList(
    const struct acl_tensor *const *t, uint64_t n);
int aclDestroyTensorList(const struct acl_tensor_list *l);
/* Right after phase one; then the caller must destroy it.  Otherwise phase two
 * consumes it. */
int aclSetAclOpExecutorRepeatable(struct acl_executor *ex);
int aclDestroyAclOpExecutor(struct acl_executor *ex);
/* The address of the index-th tensor of an executor that is repeatable. */
int aclSetInputTensorAddr(struct acl_executor *ex, size_t index,
    struct acl_tensor *t, void *data);
int aclSetOutputTensorAddr(struct acl_executor *ex, size_t index,
    struct acl_tensor *t, void *data);

/* --- operators by their name, "aclop", an older interface: compiled for fixed
 * shapes, then run by a handle.  aclopCompile() and aclSetCompileopt() are in
 * libacl_op_compiler.so, which loads the graph engine; the others in
 * libascendcl.so, of newer releases in libacl_op_executor.so [H] --- */

/* Options of the process. */
enum acl_compile_option {
	ACL_PRECISION_MODE = 0,		/* "must_keep_origin_dtype" */
	ACL_OP_JIT_COMPILE = 10,	/* "disable": installed kernels first */
	ACL_OP_DETERMINISTIC = 11	/* "1" */
};
enum acl_engine { ACL_ENGINE_SYS = 0 };
enum acl_compile_type { ACL_COMPILE_SYS = 0 };

struct acl_desc;		/* aclTensorDesc: type and shape, no data */
struct acl_buffer;		/* aclDataBuffer: data, no shape */
struct acl_attr;		/* aclopAttr */
struct acl_handle;		/* aclopHandle */

struct acl_desc *aclCreateTensorDesc(int dtype, int ndims,
    const int64_t *dims, int format);
void aclDestroyTensorDesc(const struct acl_desc *d);
struct acl_buffer *aclCreateDataBuffer(void *data, size_t nbytes);
int aclDestroyDataBuffer(const struct acl_buffer *b);
int aclUpdateDataBuffer(struct acl_buffer *b, void *data, size_t nbytes);
struct acl_attr *aclopCreateAttr(void);
void aclopDestroyAttr(const struct acl_attr *a);
int aclopSetAttrBool(struct acl_attr *a, const char *name, uint8_t v);
int aclopSetAttrInt(struct acl_attr *a, const char *name, int64_t v);
int aclSetCompileopt(int option, const char *value);
/* Takes minutes where the kernel is not installed: it is built by programs of the
 * toolkit [D].  path: NULL with ACL_COMPILE_SYS. */
int aclopCompile(const char *op, int nin, const struct acl_desc *const in[],
    int nout, const struct acl_desc *const out[], const struct acl_attr *attr,
    int engine, int type, const char *path);
/* A handle of an operator that was compiled for these; otherwise 100024. */
int aclopCreateHandle(const char *op, int nin,
    const struct acl_desc *const in[], int nout,
    const struct acl_desc *const out[], const struct acl_attr *attr,
    struct acl_handle **ret);
void aclopDestroyHandle(struct acl_handle *h);
/* Reads the buffers before it returns [H]; the work is asynchronous.  Takes its
 * workspace itself. */
int aclopExecWithHandle(struct acl_handle *h, int nin,
    const struct acl_buffer *const in[], int nout,
    struct acl_buffer *const out[], void *stream);

/* --- operators [H], in two phases: size of the workspace and an executor, then
 * the run on a stream.  The workspace lives until the stream has passed --- */

#define ACLNN(op, ...)							\
	int aclnn##op##GetWorkspaceSize(__VA_ARGS__, uint64_t *ws_bytes,	\
	    struct acl_executor **ex);					\
	int aclnn##op(void *ws, uint64_t ws_bytes, struct acl_executor *ex, \
	    void *stream)

/* Products.  math: enum acl_cube_math. */
ACLNN(Mm, const struct acl_tensor *a, const struct acl_tensor *b,
    struct acl_tensor *out, int8_t math);
ACLNN(Matmul, const struct acl_tensor *a, const struct acl_tensor *b,
    struct acl_tensor *out, int8_t math);
ACLNN(BatchMatMul, const struct acl_tensor *a, const struct acl_tensor *b,
    struct acl_tensor *out, int8_t math);
/* out = x ((w + offset) scale) + bias; group: rows of w with one scale, a
 * multiple of 32, 0 = all.  From offset to bias each may be NULL. */
ACLNN(WeightQuantBatchMatmulV2, const struct acl_tensor *x,
    const struct acl_tensor *w, const struct acl_tensor *scale,
    const struct acl_tensor *offset, const struct acl_tensor *out_scale,
    const struct acl_tensor *out_offset, const struct acl_tensor *bias,
    int group, const struct acl_tensor *out);
/* As a product: in [M,K,1,1], w [N,K,1,1], out [M,N,1,1]. */
ACLNN(Convolution, const struct acl_tensor *in, const struct acl_tensor *w,
    const struct acl_tensor *bias, const struct acl_int_array *stride,
    const struct acl_int_array *pad, const struct acl_int_array *dilation,
    bool transposed, const struct acl_int_array *out_pad, int64_t groups,
    struct acl_tensor *out, int8_t math);
/* To FRACTAL_NZ, in place. */
ACLNN(TransMatmulWeight, struct acl_tensor *w);

/* Norms and activations. */
ACLNN(RmsNorm, const struct acl_tensor *x, const struct acl_tensor *gamma,
    double eps, const struct acl_tensor *y, const struct acl_tensor *rstd);
ACLNN(AddRmsNorm, const struct acl_tensor *x1, const struct acl_tensor *x2,
    const struct acl_tensor *gamma, double eps, const struct acl_tensor *y,
    const struct acl_tensor *rstd, const struct acl_tensor *sum);
ACLNN(Softmax, const struct acl_tensor *x, int64_t dim,
    struct acl_tensor *out);
ACLNN(Silu, const struct acl_tensor *x, struct acl_tensor *out);
/* The first half of dim through SiLU, times the second. */
ACLNN(SwiGlu, const struct acl_tensor *x, int64_t dim,
    const struct acl_tensor *out);
/* 4-D; mode 0: halves, 1: pairs. */
ACLNN(RotaryPositionEmbedding, const struct acl_tensor *x,
    const struct acl_tensor *cos, const struct acl_tensor *sin, int64_t mode,
    struct acl_tensor *out);

/* Elements.  Add: out = a + alpha b.  An Add whose out is an input spoils later
 * products on a 310B [M]: use InplaceAdd. */
ACLNN(Add, const struct acl_tensor *a, const struct acl_tensor *b,
    const struct acl_scalar *alpha, struct acl_tensor *out);
ACLNN(Sub, const struct acl_tensor *a, const struct acl_tensor *b,
    const struct acl_scalar *alpha, struct acl_tensor *out);
ACLNN(Mul, const struct acl_tensor *a, const struct acl_tensor *b,
    struct acl_tensor *out);
ACLNN(Div, const struct acl_tensor *a, const struct acl_tensor *b,
    struct acl_tensor *out);
ACLNN(Adds, const struct acl_tensor *a, const struct acl_scalar *b,
    const struct acl_scalar *alpha, struct acl_tensor *out);
ACLNN(Muls, const struct acl_tensor *a, const struct acl_scalar *b,
    struct acl_tensor *out);
ACLNN(InplaceAdd, struct acl_tensor *a, const struct acl_tensor *b,
    const struct acl_scalar *alpha);
ACLNN(InplaceMul, struct acl_tensor *a, const struct acl_tensor *b);
ACLNN(InplaceMuls, struct acl_tensor *a, const struct acl_scalar *b);
ACLNN(Neg, const struct acl_tensor *x, struct acl_tensor *out);
ACLNN(Sin, const struct acl_tensor *x, struct acl_tensor *out);
ACLNN(Cos, const struct acl_tensor *x, struct acl_tensor *out);
ACLNN(Sqrt, const struct acl_tensor *x, struct acl_tensor *out);
ACLNN(Rsqrt, const struct acl_tensor *x, struct acl_tensor *out);
ACLNN(Mean, const struct acl_tensor *x, const struct acl_int_array *dims,
    bool keep_dims, int dtype, struct acl_tensor *out);

/* Moves. */
ACLNN(Cast, const struct acl_tensor *x, int dtype, struct acl_tensor *out);
ACLNN(InplaceCopy, struct acl_tensor *dst, const struct acl_tensor *src);
ACLNN(Permute, const struct acl_tensor *x, const struct acl_int_array *dims,
    struct acl_tensor *out);
ACLNN(Cat, const struct acl_tensor_list *l, int64_t dim,
    struct acl_tensor *out);
ACLNN(Embedding, const struct acl_tensor *w, const struct acl_tensor *index,
    const struct acl_tensor *out);
#undef ACLNN

/* Elements, not bytes, of a weight in FRACTAL_NZ. */
int aclnnCalculateMatmulWeightSizeV2(const struct acl_int_array *dims,
    int dtype, uint64_t *ret_elements);

#endif
