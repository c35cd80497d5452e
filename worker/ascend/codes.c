/* worker/ascend/codes.c - CANN's codes, with meaning and remedy.
 * Names of the vendor's headers where they are known, else a short form. */
#include "lib.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKAGE	"install the package of operator kernels for this chip " \
		"(Ascend-cann-kernels-310b on a 310B), of the toolkit's own " \
		"release"
#define OPP	"set ASCEND_OPP_PATH: source set_env.sh of the CANN toolkit"
#define DRIVER	"driver and firmware must fit this CANN: compare npu-smi info " \
		"with the toolkit's release notes"
#define NODE	"this user needs /dev/davinci0, /dev/davinci_manager, " \
		"/dev/hisi_hdc and /dev/devmm_svm: add it to their group " \
		"(HwHiAiUser)"
#define FULL	"lower the cap, or end other programs on this device"
#define BROKEN	"read the device's log (~/ascend/log, dmesg)"
#define SLOW	"another program may hold the device, or an operator hangs: " \
		"npu-smi info"
#define COMPILE	PACKAGE "; without it the toolkit builds an operator with " \
		"python3 and its modules te and tbe: see ~/ascend/log"
#define CPU	"use the CPU for this operation; straddle devices shows what " \
		"the device takes"

/* By code. */
static const struct acl_meaning meanings[] = {
	{ 0, -EIO, "ACL_SUCCESS", "success", NULL },
	{ 100000, -EINVAL, "ACL_ERROR_INVALID_PARAM", "invalid argument",
	    NULL },
	{ 100001, -EIO, "ACL_ERROR_UNINITIALIZE", "aclInit is missing", NULL },
	{ 100002, -EIO, "ACL_ERROR_REPEAT_INITIALIZE", "initialized before",
	    NULL },
	{ 100003, -ENOENT, "ACL_ERROR_INVALID_FILE", "invalid file", OPP },
	{ 100020, -ENOTSUP, "ACL_ERROR_OP_TYPE_NOT_MATCH", "no such operator",
	    CPU },
	{ 100021, -ENOTSUP, "ACL_ERROR_OP_INPUT_NOT_MATCH", "the operator "
	    "takes other inputs", CPU },
	{ 100022, -ENOTSUP, "ACL_ERROR_OP_OUTPUT_NOT_MATCH", "the operator has "
	    "other outputs", CPU },
	{ 100023, -ENOTSUP, "ACL_ERROR_OP_ATTR_NOT_MATCH", "the operator has "
	    "other attributes", CPU },
	{ 100024, -ENOTSUP, "ACL_ERROR_OP_NOT_FOUND", "no such operator",
	    PACKAGE },
	{ 100025, -ENOTSUP, "ACL_ERROR_OP_LOAD_FAILED", "the operator cannot "
	    "be loaded", PACKAGE },
	{ 100026, -ENOTSUP, "ACL_ERROR_UNSUPPORTED_DATA_TYPE", "this type is "
	    "not supported", CPU },
	{ 100027, -ENOTSUP, "ACL_ERROR_UNSUPPORTED_FORMAT", "this layout is "
	    "not supported", CPU },
	{ 100029, -ENOTSUP, "ACL_ERROR_KERNEL_NOT_FOUND", "no kernel for this "
	    "chip", PACKAGE },
	{ 100036, -ETIMEDOUT, "ACL_ERROR_WAIT_CALLBACK_TIMEOUT", "a callback "
	    "was too slow", SLOW },
	{ 100037, -EIO, "ACL_ERROR_REPEAT_FINALIZE", "finalized before", NULL },
	{ 100039, -ENOENT, "ACL_ERROR_STUB_LIBRARY", "a stub, which programs "
	    "are linked with", "take the folder devlib or stub out of "
	    "LD_LIBRARY_PATH, and source set_env.sh of the CANN toolkit" },
	{ 107000, -EINVAL, "ACL_ERROR_RT_PARAM_INVALID", "invalid argument",
	    NULL },
	{ 107001, -ENODEV, "ACL_ERROR_RT_INVALID_DEVICEID", "no such device",
	    "npu-smi info shows them; ASCEND_RT_VISIBLE_DEVICES hides some" },
	{ 107002, -EIO, "ACL_ERROR_RT_CONTEXT_NULL", "this thread has no "
	    "context", NULL },
	{ 107003, -EIO, "ACL_ERROR_RT_STREAM_CONTEXT", "the stream is another "
	    "context's", NULL },
	{ 107004, -EIO, "ACL_ERROR_RT_MODEL_CONTEXT", "the graph is another "
	    "context's", NULL },
	{ 107006, -EIO, "ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID", "the event has "
	    "no time", NULL },
	{ 107007, -EIO, "ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL", "the events' "
	    "times are reversed", NULL },
	{ 107008, -EINVAL, "ACL_ERROR_RT_ADDR_UNALIGNED", "an address is not "
	    "aligned", NULL },
	{ 107016, -EINVAL, "ACL_ERROR_RT_MEMORY_TYPE", "memory of the wrong "
	    "kind", NULL },
	{ 107017, -EINVAL, "ACL_ERROR_RT_INVALID_HANDLE", "invalid handle",
	    NULL },
	{ 107018, -EINVAL, "ACL_ERROR_RT_INVALID_MALLOC_TYPE", "no memory of "
	    "this kind", NULL },
	{ 107019, -ETIMEDOUT, "ACL_ERROR_RT_WAIT_TIMEOUT", "not done in time",
	    SLOW },
	{ 107020, -ETIMEDOUT, "ACL_ERROR_RT_TASK_TIMEOUT", "a task was not "
	    "done in time", SLOW },
	{ 107022, -EIO, "ACL_ERROR_RT_DEVICE_TASK_ABORT", "the device's tasks "
	    "were ended", BROKEN },
	{ 107023, -EIO, "ACL_ERROR_RT_STREAM_ABORT", "the stream was ended",
	    BROKEN },
	{ 107024, -EIO, "ACL_ERROR_RT_CAPTURE_DEPENDENCY", "a captured stream "
	    "waits for another", NULL },
	{ 107025, -EIO, "ACL_ERROR_RT_STREAM_UNJOINED", "a captured stream was "
	    "not joined", NULL },
	{ 107026, -EIO, "ACL_ERROR_RT_MODEL_CAPTURED", "the graph is being "
	    "captured", NULL },
	{ 107027, -EIO, "ACL_ERROR_RT_STREAM_CAPTURED", "the stream is being "
	    "captured", NULL },
	{ 107028, -EIO, "ACL_ERROR_RT_EVENT_CAPTURED", "the event is being "
	    "captured", NULL },
	{ 107029, -EIO, "ACL_ERROR_RT_STREAM_NOT_CAPTURED", "the stream is not "
	    "being captured", NULL },
	{ 107030, -EIO, "ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT", "not while a "
	    "stream is captured", NULL },
	{ 107031, -EIO, "ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT", "the default "
	    "stream cannot be captured", NULL },
	{ 148049, -ENOENT, "ACL_ERROR_INVALID_OPP_PATH", "the operators' "
	    "folder is invalid", OPP },
	{ 148050, -ENOTSUP, "ACL_ERROR_OP_UNSUPPORTED_DYNAMIC", "the operator "
	    "has fixed shapes only", CPU },
	{ 161001, -EINVAL, "ACLNN_ERR_PARAM_NULLPTR", "a tensor is missing",
	    CPU },
	{ 161002, -ENOTSUP, "ACLNN_ERR_PARAM_INVALID", "the operator does not "
	    "take this type, shape or layout", CPU },
	{ 200000, -ENOMEM, "ACL_ERROR_BAD_ALLOC", "no memory", FULL },
	{ 200001, -ENOTSUP, "ACL_ERROR_API_NOT_SUPPORT", "not supported here",
	    NULL },
	{ 200002, -ENODEV, "ACL_ERROR_INVALID_DEVICE", "invalid device", NODE },
	{ 200003, -EINVAL, "ACL_ERROR_MEMORY_ADDRESS_UNALIGNED", "an address "
	    "is not aligned", NULL },
	{ 200004, -EIO, "ACL_ERROR_RESOURCE_NOT_MATCH", "resources do not "
	    "match", NULL },
	{ 200005, -EINVAL, "ACL_ERROR_INVALID_RESOURCE_HANDLE", "invalid "
	    "handle", NULL },
	{ 200006, -ENOTSUP, "ACL_ERROR_FEATURE_UNSUPPORTED", "not supported "
	    "here", NULL },
	{ 207000, -ENOTSUP, "ACL_ERROR_RT_FEATURE_NOT_SUPPORT", "not supported "
	    "on this chip or in this mode", NULL },
	{ 207001, -ENOMEM, "ACL_ERROR_RT_MEMORY_ALLOCATION", "no memory on the "
	    "device", FULL },
	{ 207002, -EIO, "ACL_ERROR_RT_MEMORY_FREE", "memory cannot be freed",
	    NULL },
	{ 207003, -EIO, "ACL_ERROR_RT_AICORE_OVER_FLOW", "overflow on the "
	    "device", NULL },
	{ 207004, -ENODEV, "ACL_ERROR_RT_NO_DEVICE", "no device", NODE },
	{ 207005, -ENOMEM, "ACL_ERROR_RT_RESOURCE_ALLOC_FAIL", "no resources "
	    "on the device", FULL },
	{ 207006, -EACCES, "ACL_ERROR_RT_NO_PERMISSION", "permission denied",
	    NODE },
	{ 207007, -ENOMEM, "ACL_ERROR_RT_NO_EVENT_RESOURCE", "no more events",
	    FULL },
	{ 207008, -ENOMEM, "ACL_ERROR_RT_NO_STREAM_RESOURCE", "no more "
	    "streams", FULL },
	{ 207010, -ENOMEM, "ACL_ERROR_RT_NO_MODEL_RESOURCE", "no more graphs",
	    FULL },
	{ 207012, -ENOMEM, "ACL_ERROR_RT_RESOURCE_OVER_LIMIT", "over the "
	    "device's limit", FULL },
	{ 207016, -EIO, "ACL_ERROR_RT_OVER_FLOW", "overflow on the device",
	    NULL },
	{ 207017, -EIO, "ACL_ERROR_RT_AICPU_OVER_FLOW", "overflow on the "
	    "device", NULL },
	{ 207018, -ENOMEM, "ACL_ERROR_RT_DEVICE_OOM", "no memory on the "
	    "device", FULL },
	{ 207020, -ETIMEDOUT, "ACL_ERROR_RT_TIMEOUT", "not done in time",
	    SLOW },
	{ 300000, -ENOMEM, "ACL_ERROR_STORAGE_OVER_LIMIT", "over the storage's "
	    "limit", FULL },
	{ 361001, -ENOTSUP, "ACLNN_ERR_RUNTIME_ERROR", "the operator's runtime "
	    "failed: documents name this code for chips that it does not "
	    "support", PACKAGE ", or use the CPU for it" },
	{ 500000, -EIO, "ACL_ERROR_INTERNAL_ERROR", "internal error", BROKEN },
	{ 500001, -EIO, "ACL_ERROR_FAILURE", "failure", BROKEN },
	{ 500002, -EIO, "ACL_ERROR_GE_FAILURE", "the graph engine failed",
	    BROKEN },
	{ 500003, -EIO, "ACL_ERROR_RT_FAILURE", "the runtime failed", BROKEN },
	{ 500004, -ENODEV, "ACL_ERROR_DRV_FAILURE", "the driver failed",
	    DRIVER },
	{ 500005, -EIO, "ACL_ERROR_PROFILING_FAILURE", "profiling failed",
	    NULL },
	{ 507000, -EIO, "ACL_ERROR_RT_INTERNAL_ERROR", "internal error",
	    BROKEN },
	{ 507001, -EIO, "ACL_ERROR_RT_TS_ERROR", "the task scheduler failed",
	    BROKEN },
	{ 507002, -EIO, "ACL_ERROR_RT_STREAM_TASK_FULL", "the stream's queue "
	    "is full", BROKEN },
	{ 507008, -ENODEV, "ACL_ERROR_RT_SOC_VERSION", "the chip's version is "
	    "wrong", DRIVER },
	{ 507010, -EIO, "ACL_ERROR_RT_LOST_HEARTBEAT", "the device does not "
	    "answer", DRIVER },
	{ 507011, -EIO, "ACL_ERROR_RT_MODEL_EXECUTE", "a graph failed",
	    BROKEN },
	{ 507012, -ETIMEDOUT, "ACL_ERROR_RT_REPORT_TIMEOUT", "no report in "
	    "time", SLOW },
	{ 507014, -ETIMEDOUT, "ACL_ERROR_RT_AICORE_TIMEOUT", "an operator "
	    "hangs on the AI core", SLOW },
	{ 507015, -EIO, "ACL_ERROR_RT_AICORE_EXCEPTION", "an operator failed on "
	    "the AI core", BROKEN },
	{ 507016, -EIO, "ACL_ERROR_RT_AICORE_TRAP_EXCEPTION", "an operator "
	    "trapped on the AI core", BROKEN },
	{ 507017, -ETIMEDOUT, "ACL_ERROR_RT_AICPU_TIMEOUT", "an operator hangs "
	    "on the AI CPU", SLOW },
	{ 507018, -EIO, "ACL_ERROR_RT_AICPU_EXCEPTION", "an operator failed on "
	    "the AI CPU: seen for operators that the chip does not have",
	    PACKAGE },
	{ 507033, -ENODEV, "ACL_ERROR_RT_DEVICE_SETUP_ERROR", "the device "
	    "cannot be set up", NODE "; " DRIVER },
	{ 507034, -ETIMEDOUT, "ACL_ERROR_RT_VECTOR_CORE_TIMEOUT", "an operator "
	    "hangs on the vector core", SLOW },
	{ 507035, -EIO, "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION", "an operator "
	    "failed on the vector core", BROKEN },
	{ 507036, -EIO, "ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION", "an operator "
	    "trapped on the vector core", BROKEN },
	{ 507046, -ETIMEDOUT, "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT", "the stream "
	    "was not done in time", SLOW },
	{ 507047, -ETIMEDOUT, "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT", "the event "
	    "did not come in time", SLOW },
	{ 507053, -EIO, "ACL_ERROR_RT_DEVICE_MEM_ERROR", "the device's memory "
	    "is faulty", BROKEN },
	{ 507054, -EIO, "ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR", "the device's "
	    "memory is faulty", BROKEN },
	{ 507899, -ENODEV, "ACL_ERROR_RT_DRV_INTERNAL_ERROR", "the driver "
	    "failed", DRIVER },
	{ 507901, -ENODEV, "ACL_ERROR_RT_SOCKET_CLOSE", "the device's "
	    "connection is closed", DRIVER },
	{ 507903, -EIO, "ACL_ERROR_RT_CAPTURE_INVALIDATED", "the capture is "
	    "void", NULL },
	{ 561000, -EIO, "ACLNN_ERR_INNER", "internal error", BROKEN },
	{ 561001, -ENOTSUP, "ACLNN_ERR_INNER_INFERSHAPE_ERROR", "the operator "
	    "cannot find its shape", CPU },
	{ 561002, -ENOTSUP, "ACLNN_ERR_INNER_TILING_ERROR", "the operator "
	    "cannot cut this shape", CPU },
	{ 561003, -ENOTSUP, "ACLNN_ERR_INNER_FIND_KERNEL_ERROR", "no kernel for "
	    "this chip, type or shape", PACKAGE },
	{ 561101, -EIO, "ACLNN_ERR_INNER_CREATE_EXECUTOR", "no executor",
	    BROKEN },
	{ 561102, -EIO, "ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR", "the executor "
	    "was not released", NULL },
	{ 561103, -ENOTSUP, "ACLNN_ERR_INNER_NULLPTR", "a kernel could not be "
	    "built: usually it is not installed", PACKAGE },
	{ 561107, -ENOENT, "ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND", "the "
	    "operators' folder is missing", OPP },
	{ 561108, -ENOTSUP, "ACLNN_ERR_INNER_LOAD_JSON_FAILED", "the list of "
	    "kernels cannot be read", PACKAGE },
	{ 561112, -ENOTSUP, "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND", "the "
	    "kernels' package is not installed", PACKAGE },
};

static int
compare(const void *key, const void *row)
{
	int a = *(const int *)key, b = ((const struct acl_meaning *)row)->code;

	return a < b ? -1 : a > b;
}

const struct acl_meaning *
acl_find_code(int code)
{
	return bsearch(&code, meanings, NITEMS(meanings), sizeof(*meanings),
	    compare);
}

const char *
acl_code_name(int code)
{
	const struct acl_meaning *m = acl_find_code(code);

	return m != NULL ? m->name : "an unknown code";
}

int
acl_is_refusal(int code)
{
	const struct acl_meaning *m = acl_find_code(code);

	return m != NULL && (m->error == -ENOTSUP || m->error == -ENOENT);
}

/* --- messages --- */

/* of_any: whatever the code.  The compiler's codes are those of all its parts. */
static const struct remedy { const char *call, *text; int of_any; } remedies[] = {
	{ "aclInit", DRIVER "; " OPP, 0 },
	{ "aclrtGetSocName", DRIVER "; " NODE, 0 },
	{ "aclrtGetDeviceCount", NODE, 0 },
	{ "aclrtSetDevice", NODE "; " DRIVER, 0 },
	{ "aclrtMalloc", FULL, 0 },
	{ "aclrtMallocHost", FULL, 0 },
	{ "aclSetCompileopt", COMPILE, 1 },
	{ "aclopCompile", COMPILE, 1 },
	{ "aclopCreateHandle", COMPILE, 1 },
};

static const char *
library_of(const struct acl_lib *l, const char *call)
{
	if (strncmp(call, "aclnn", 5) == 0)
		return l->nops > 1 ? "libopapi_*.so" : ACL_OPS;
	if (strcmp(call, "aclopCompile") == 0 ||
	    strcmp(call, "aclSetCompileopt") == 0)
		return ACL_OP_COMPILER;
	if (strstr(call, "TensorDesc") != NULL ||
	    strstr(call, "DataBuffer") != NULL)
		return ACL_LIBRARY;
	if (strncmp(call, "aclCreate", 9) == 0 ||
	    strncmp(call, "aclDestroy", 10) == 0 ||
	    strncmp(call, "aclSet", 6) == 0)
		return ACL_BASE;
	return ACL_LIBRARY;
}

/* The class of a code that the list does not have [H]. */
static const char *
class_of(int code)
{
	switch (code / 100000) {
	case 1:
		return "not in the list; a mistake of the caller";
	case 2:
		return "not in the list; a resource is missing";
	case 5:
		return "not in the list; an error of runtime or driver";
	}
	return "not in the list";
}

/* The library's own message, in one line; "" = none. */
static void
read_message(const struct acl_lib *l, char *ret, size_t n)
{
	const char *s = l->aclGetRecentErrMsg();
	size_t i, len = 0;

	for (i = 0; s != NULL && s[i] != '\0' && len + 1 < n; i++) {
		char c = s[i] < ' ' || s[i] > '~' ? ' ' : s[i];

		if (c != ' ' || (len > 0 && ret[len - 1] != ' '))
			ret[len++] = c;
	}
	while (len > 0 && ret[len - 1] == ' ')
		len--;
	ret[len] = '\0';
}

static int
report(const struct acl_lib *l, const char *session, const char *call,
    const char *how, int error, const char *remedy, struct err *reterr)
{
	char said[320];
	unsigned i;

	for (i = 0; i < NITEMS(remedies); i++)
		if (strcmp(remedies[i].call, call) == 0 &&
		    (remedy == NULL || remedies[i].of_any))
			remedy = remedies[i].text;
	read_message(l, said, sizeof(said));
	return err_set(reterr, ERR_RUN, error, "session %s: %s: %s %s: %s%s%s%s",
	    session, library_of(l, call), call, how, remedy != NULL ? remedy :
	    "straddle devices shows what is missing", said[0] != '\0' ?
	    " [the library says: " : "", said, said[0] != '\0' ? "]" : "");
}

#define FAILED_WITH	"failed with "

static _Atomic unsigned nshortages;

static int
is_shortage(int code)
{
	return code == 200000 || code == 207001 || code == 207018;
}

unsigned
acl_shortages(void)
{
	return nshortages;
}

int
acl_failed(const struct acl_lib *l, const char *session, const char *call,
    int code, struct err *reterr)
{
	const struct acl_meaning *m = acl_find_code(code);
	char how[256];

	nshortages += (unsigned)is_shortage(code);
	snprintf(how, sizeof(how), FAILED_WITH "%d, %s (%s)", code,
	    acl_code_name(code), m != NULL ? m->text : class_of(code));
	return report(l, session, call, how, m != NULL ? m->error : -EIO,
	    m != NULL ? m->remedy : NULL, reterr);
}

int
acl_code_in(const struct err *e)
{
	const char *s = strstr(e->msg, FAILED_WITH);

	return s == NULL ? 0 : atoi(s + strlen(FAILED_WITH));
}

int
acl_failed_null(const struct acl_lib *l, const char *session, const char *call,
    struct err *reterr)
{
	return report(l, session, call, "returned nothing", -EIO, NULL,
	    reterr);
}
