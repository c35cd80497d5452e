/* tests/standin/libascendcl.c - stand-in for Huawei's libascendcl.so, the runtime
 * of Ascend processors, and with libnnopbase.c and ascend_{nn,math,transformer}.c
 * for the libraries of operators; with ascend_op.c and libacl_op_compiler.c for
 * operators that are called by their names.  Built below build/tests/standin, and
 * found through LD_LIBRARY_PATH: libopapi.so there, the split libraries in split/.
 *
 * Operators are computed on the CPU: products as sums of floats in the order of
 * K, results rounded to their type.  Nothing runs when it is started: a stream's
 * tasks wait until somebody waits for them, so that memory freed or written too
 * early shows.  Memory of a card cannot be touched by the program (ascend_mem.c).
 * What the libraries would not notice is counted (ascend_counts.h).
 *
 * One environment variable has the switches, read when it is loaded:
 *
 *	STRADDLE_ASCEND=soc=310B,late=Mm:507018@3
 *
 *	soc=NAME	910B (default), 310B (RC mode: one memory, no virtual
 *			memory, capture or peers; quirks=1, ops=board), or a full
 *			name, "Ascend310P3"
 *	rc=0|1		aclrtGetRunMode()
 *	ops=WHICH	operators that a 310B computes: board (those that a board
 *			was seen to run), docs (those that documents name), none,
 *			all, classic (only MatMulV2, by its name)
 *	as=HOW		how the others refuse: a code of phase one (361001), a
 *			507xxx when the stream is waited for, "missing" symbols
 *			(100024 of an operator by its name)
 *	missing=NAME+NAME  functions without a symbol: aclrtMapMem, Mm (a pair),
 *			aclnnMm (its second half), aclopCompile
 *	quirks=0|1	of a 310B: Mm and MatMulV2 of 16-bit floats with M >= 64
 *			and K > 4096 are refused; an Add whose output is an input spoils the next
 *			product
 *	vmm=0|1		virtual memory
 *	stub=1		every call returns 100039, as the libraries do that
 *			programs are linked with
 *	both=1		libopapi.so and the split libraries may be loaded together
 *	devices=N	1 on a 310B, else 2
 *	mem-bytes=N	of a device (1 GiB)
 *	granule-bytes=N	of virtual memory (2 MiB)
 *	host-skew=N	aclrtMallocHost() in RC mode is so far from a multiple of
 *			64 (16)
 *	company=HOW	a product's sums, and a norm's, begin at a place in K that
 *			depends on the number of its rows (rows) or the row (place)
 *	shape=OP:N:HOW+...  an operator with N columns, product:NxK:HOW a product, is
 *			wrong, fails when it runs (late), ends the process (abort),
 *			or a row depends on their number (company: products, norms)
 *	wide-sums=1	AddRmsNorm computes the norm of a sum of 64 bits
 *	offsets=0	integers have none
 *	nd=0 nz=0	products refuse W that is row-major; in FRACTAL_NZ
 *	workspace-percent=N	of W as 16-bit floats, that products need
 *	delay-us=N	each operator takes so long on the device, beside the host
 *	launch-us=N	each call that starts a task takes so long on the host
 *	slow=OP:PERCENT@ROWS+...  by the times of events OP's tasks take so much, only
 *			products of ROWS rows with @; ND: products with row-major W
 *	times=0		events have no times
 *	capture=0	there are no captured graphs
 *	graph-bytes=N	of the device's memory, for up to 16 tasks of a captured
 *			graph (4096)
 *	graph-stale=1	a graph that is replayed does nothing
 *	graph-drops=OP+OP  a graph leaves these operators out when it is replayed; all
 *	graph-rebinds=OP+OP  it takes the addresses that executors of these
 *			operators have when it is replayed; all
 *	event-errors=0	a wait for an event that does not come times out, whatever
 *			became of the stream
 *	fn-workspace=N	bytes that other operators need
 *	zero=OP+OP	operators whose result is zeros; all
 *	wrong=OP+OP	operators with one wrong element; all
 *	fail=CALL:CODE@N+...  call N (every one without @N) returns CODE:
 *			aclrtMalloc; phase one of Mm; phase two of aclnnMm;
 *			the compilation of MatMulV2
 *	late=OP:CODE@N	the task fails when it runs (507018)
 *	hang=CALL@N	it never returns; hang=OP@N: the task never ends
 *	abort=CALL@N	it ends the process
 *	once=FILE	faults are injected once in all processes that name FILE
 *	report=FILE	each process has a line there with its counters
 *
 * A task that hangs ends at the timeout of aclrtSetOpExecuteTimeOut(), if that is
 * set.  Nobody has reported the codes of misuse: they are strict guesses. */
#include <stdlib.h>
#include <string.h>

#include "ascend.h"

static int initialized, finalized;
static struct context *defaults[8];
static unsigned set_devices[8];
static void *default_handles[8];
static _Thread_local void *current;	/* context */

/* --- the process --- */

int
ascend_is_initialized(void)
{
	return initialized;
}

EXPORT int
aclInit(UNUSED const char *config)
{
	int rc;

	if (ascend_switches()->stub)
		return ACL_ERROR_STUB_LIBRARY;
	if (initialized || finalized)
		return ascend_fail(ACL_ERROR_REPEAT_INITIALIZE, "repeat");
	if ((rc = ascend_injected("aclInit")) != 0)
		return rc;
	initialized = 1;
	return ACL_SUCCESS;
}

EXPORT int
aclFinalize(void)
{
	struct ascend_standin_counts c;

	if (ascend_switches()->stub)
		return ACL_ERROR_STUB_LIBRARY;
	if (!initialized)
		return ascend_fail(finalized ? ACL_ERROR_REPEAT_FINALIZE :
		    ACL_ERROR_UNINITIALIZE, "finalize");
	ascend_standin_counts(&c);
	pthread_mutex_lock(&ascend_lock);
	if (c.blocks + c.tensors + c.executors + c.streams + c.events +
	    c.contexts + c.graphs > 0)
		ascend_misused("left at aclFinalize: %u blocks, %u tensors, "
		    "%u executors, %u streams, %u events, %u contexts, "
		    "%u graphs",
		    c.blocks, c.tensors, c.executors, c.streams, c.events,
		    c.contexts, c.graphs);
	pthread_mutex_unlock(&ascend_lock);
	initialized = 0;
	finalized = 1;
	return ACL_SUCCESS;
}

EXPORT const char *
aclrtGetSocName(void)
{
	return ascend_switches()->stub || ascend_injected(__func__) != 0 ?
	    NULL : ascend_switches()->soc;
}

EXPORT int
aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch)
{
	ENTER();
	*major = 1;
	*minor = 13;
	*patch = 0;
	return ACL_SUCCESS;
}

EXPORT int
aclrtGetRunMode(int *mode)
{
	ENTER();
	*mode = ascend_switches()->is_rc ? ACL_DEVICE : ACL_HOST;
	return ACL_SUCCESS;
}

EXPORT int
aclrtGetDeviceCount(uint32_t *n)
{
	ENTER();
	*n = ascend_switches()->ndevices;
	return ACL_SUCCESS;
}

/* --- contexts --- */

void *
ascend_current(void)
{
	return current;
}

int
ascend_need_context(const char *call)
{
	return current != NULL ? 0 : ascend_fail(ACL_ERROR_RT_CONTEXT_NULL,
	    "EE1001: %s: no context on this thread", call);
}

static void *
new_context(int device, int is_default)
{
	struct context *c = calloc(1, sizeof(*c));
	void *h = NULL;

	if (c == NULL)
		return NULL;
	c->device = device;
	c->is_default = is_default;
	c->stream.ctx = c;
	if (is_default)
		defaults[device] = c;
	if ((h = ascend_new_handle(HANDLE_CONTEXT, c)) == NULL)
		free(c);
	return h;
}

static int
is_device(int device)
{
	return device >= 0 && device < (int)MIN(ascend_switches()->ndevices,
	    8u);
}

EXPORT int
aclrtSetDevice(int32_t device)
{
	ENTER();
	if (!is_device(device))
		return ascend_fail(ACL_ERROR_RT_INVALID_DEVICEID, "EE1001: "
		    "device %d", device);
	pthread_mutex_lock(&ascend_lock);
	if (set_devices[device]++ == 0)
		default_handles[device] = new_context(device, 1);
	current = default_handles[device];
	pthread_mutex_unlock(&ascend_lock);
	return ACL_SUCCESS;
}

EXPORT int
aclrtResetDevice(int32_t device)
{
	int rc = ACL_SUCCESS;

	ENTER();
	pthread_mutex_lock(&ascend_lock);
	if (!is_device(device) || set_devices[device] == 0)
		rc = ACL_ERROR_RT_INVALID_DEVICEID;
	else if (--set_devices[device] == 0) {
		ascend_free_tasks(&defaults[device]->stream.tasks);
		if (current == default_handles[device])
			current = NULL;
		free(ascend_end_handle(HANDLE_CONTEXT,
		    default_handles[device]));
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

EXPORT int
aclrtGetDevice(int32_t *device)
{
	struct context *c;

	ENTER_CONTEXT();
	pthread_mutex_lock(&ascend_lock);
	c = ascend_find(HANDLE_CONTEXT, current);
	if (c != NULL)
		*device = c->device;
	pthread_mutex_unlock(&ascend_lock);
	return c != NULL ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
}

EXPORT int
aclrtCreateContext(void **ctx, int32_t device)
{
	ENTER();
	if (!is_device(device))
		return ACL_ERROR_RT_INVALID_DEVICEID;
	pthread_mutex_lock(&ascend_lock);
	*ctx = current = new_context(device, 0);
	pthread_mutex_unlock(&ascend_lock);
	return ACL_SUCCESS;
}

EXPORT int
aclrtDestroyContext(void *ctx)
{
	struct context *c;

	ENTER();
	pthread_mutex_lock(&ascend_lock);
	c = ascend_find(HANDLE_CONTEXT, ctx);
	if (c != NULL && c->is_default) {
		ascend_misused("a default context is destroyed");
		c = NULL;
	} else if (c != NULL) {
		ascend_free_tasks(&c->stream.tasks);
		ascend_end_handle(HANDLE_CONTEXT, ctx);
		if (current == ctx)
			current = NULL;
		free(c);
	}
	pthread_mutex_unlock(&ascend_lock);
	return c != NULL ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}

EXPORT int
aclrtSetCurrentContext(void *ctx)
{
	struct context *c;

	ENTER();
	pthread_mutex_lock(&ascend_lock);
	if ((c = ascend_find(HANDLE_CONTEXT, ctx)) != NULL)
		current = ctx;
	pthread_mutex_unlock(&ascend_lock);
	return c != NULL ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}

EXPORT int
aclrtGetCurrentContext(void **ctx)
{
	ENTER_CONTEXT();
	*ctx = current;
	return ACL_SUCCESS;
}

/* --- peers --- */

EXPORT int
aclrtDeviceCanAccessPeer(int32_t *can, int32_t device, int32_t peer)
{
	ENTER();
	if (ascend_switches()->is_310b)
		return ascend_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
		    "EE1003: peers");
	if (!is_device(device) || !is_device(peer))
		return ACL_ERROR_RT_INVALID_DEVICEID;
	*can = device != peer;
	return ACL_SUCCESS;
}

EXPORT int
aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags)
{
	ENTER_CONTEXT();
	if (ascend_switches()->is_310b)
		return ascend_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
		    "EE1003: peers");
	return is_device(peer) && flags == 0 ? ACL_SUCCESS :
	    ACL_ERROR_RT_INVALID_DEVICEID;
}
