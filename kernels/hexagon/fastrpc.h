/* kernels/hexagon/fastrpc.h - the parts of Qualcomm's FastRPC and dspqueue that
 * we call.
 * Owns: declarations of a foreign ABI; names, numbers and layouts follow
 * github.com/qualcomm/fastrpc (BSD-3-Clause), files inc/remote.h, inc/rpcmem.h,
 * inc/dspqueue.h, inc/dspqueue_shared.h and inc/AEEStdErr.h, as of version 1.0.
 * Included by both sides: worker/hexagon/fastrpc_lib.h, which loads
 * libcdsprpc.so, and skel.c, which runs in the DSP. */
#ifndef KERNELS_HEXAGON_FASTRPC_H
#define KERNELS_HEXAGON_FASTRPC_H

#include <stddef.h>
#include <stdint.h>

/* --- codes (AEEStdErr.h); those from the DSP itself have an offset --- */

#define AEE_DSP_OFFSET	0x80000400u

enum {
	AEE_SUCCESS = 0, AEE_EFAILED = 0x1, AEE_ENOMEMORY = 0x2,
	AEE_EUNABLETOLOAD = 0x6, AEE_EEXPIRED = 0xc, AEE_EBADSTATE = 0xd,
	AEE_EBADPARM = 0xe, AEE_EBADITEM = 0x10, AEE_EUNSUPPORTED = 0x14,
	AEE_EITEMBUSY = 0x20, AEE_ENOSUCH = 39, AEE_EINTERRUPTED = 46,
	AEE_EINVALIDDOMAIN = 0x39, AEE_EINVALIDDEVICE = 0x3b,
	AEE_ENOSUCHMOD = 0x3e, AEE_ENOSUCHDEVICE = 0x43,
	AEE_ENOSUCHFILE = 0x45, AEE_ENOSUCHMAP = 0x48, AEE_EBADSIZE = 0x4d,
	AEE_EBADPERMS = 0x4e, AEE_EFOPEN = 0x57, AEE_ENORPCMEMORY = 0x68,
	AEE_EUNSUPPORTEDAPI = 0x6c, AEE_ECONNREFUSED = 0x72,
	AEE_EUNSIGNEDMOD = 0x81, AEE_ENOSESSION = 0x8a,
	AEE_ECONNRESET = 104, AEE_ERPC = 0x200, AEE_EFILE = 0x201,
	AEE_EWOULDBLOCK = 516
};

/* --- handles and calls (remote.h) --- */

#define CDSP_NAME	"cdsp"

enum { CDSP_DOMAIN_ID = 3 };

typedef uint64_t remote_handle64;

typedef union {
	struct { void *pv; size_t nLen; } buf;
	uint64_t h64;
} remote_arg;

/* Method, input buffers, output buffers, handles in, handles out. */
#define REMOTE_SCALARS(method, in, out, hin, hout)			\
	((uint32_t)(method) << 24 | (uint32_t)(in) << 16 |		\
	(uint32_t)(out) << 8 | (uint32_t)(hin) << 4 | (uint32_t)(hout))
#define REMOTE_METHOD(scalars)	((scalars) >> 24 & 0x1f)

int remote_handle64_open(const char *uri, remote_handle64 *ret);
int remote_handle64_invoke(remote_handle64 h, uint32_t scalars,
    remote_arg *args);
int remote_handle64_close(remote_handle64 h);

enum { DSPRPC_CONTROL_LATENCY = 1, DSPRPC_GET_DSP_INFO = 2 };
int remote_handle_control(uint32_t req, void *data, uint32_t nbytes);
int remote_handle64_control(remote_handle64 h, uint32_t req, void *data,
    uint32_t nbytes);

enum dsp_attribute {
	DSP_DOMAIN_SUPPORT = 0, DSP_UNSIGNED_PD_SUPPORT = 1,
	DSP_HVX_SUPPORT_128B = 3, DSP_VTCM_PAGE = 4, DSP_VTCM_COUNT = 5,
	DSP_ARCH_VER = 6, DSP_STATUS_NOTIFICATION_SUPPORT = 10
};
struct remote_dsp_capability {
	uint32_t domain, attribute, capability;
};

enum { RPC_PM_QOS = 1 };
struct remote_rpc_control_latency {
	uint32_t enable, latency_us;
};

/* --- sessions (remote.h) --- */

enum session_request {
	DSPRPC_CONTROL_UNSIGNED_MODULE = 2,
	FASTRPC_REMOTE_PROCESS_KILL = 6,
	FASTRPC_SESSION_CLOSE = 7,
	FASTRPC_REGISTER_STATUS_NOTIFICATIONS = 11,
	FASTRPC_RESERVE_NEW_SESSION = 13,
	FASTRPC_GET_URI = 15
};
int remote_session_control(uint32_t req, void *data, uint32_t nbytes);

struct remote_rpc_control_unsigned_module {
	int domain, enable;
};
/* Argument of FASTRPC_REMOTE_PROCESS_KILL and FASTRPC_SESSION_CLOSE. */
struct remote_rpc_domain {
	int domain;
};
enum remote_rpc_status {
	FASTRPC_USER_PD_UP, FASTRPC_USER_PD_EXIT, FASTRPC_USER_PD_FORCE_KILL,
	FASTRPC_USER_PD_EXCEPTION, FASTRPC_DSP_SSR
};
typedef int fastrpc_notif_fn(void *context, int domain, int session,
    uint32_t status);
struct remote_rpc_notif_register {
	void *context;
	int domain;
	fastrpc_notif_fn *fn;
};
struct remote_rpc_reserve_new_session {
	char *domain_name;
	uint32_t domain_name_len;
	char *session_name;
	uint32_t session_name_len;
	uint32_t effective_domain_id;	/* out: stands for domain + session */
	uint32_t session_id;		/* out */
};
struct remote_rpc_get_uri {
	char *domain_name;
	uint32_t domain_name_len;
	uint32_t session_id;
	char *module_uri;
	uint32_t module_uri_len;
	char *uri;			/* out */
	uint32_t uri_len;
};
#ifndef __hexagon__
_Static_assert(sizeof(struct remote_rpc_reserve_new_session) == 40, "ABI");
_Static_assert(sizeof(struct remote_rpc_get_uri) == 48, "ABI");
_Static_assert(sizeof(struct remote_rpc_notif_register) == 24, "ABI");
#endif

/* --- memory (rpcmem.h, remote.h) --- */

enum { RPCMEM_HEAP_ID_SYSTEM = 25, RPCMEM_DEFAULT_FLAGS = 1 };
void *rpcmem_alloc2(int heap, uint32_t flags, size_t nbytes);
void rpcmem_free(void *p);
int rpcmem_to_fd(void *p);

/* Mapped now, found by its descriptor; caches are ours to keep. */
enum { FASTRPC_MAP_FD = 2 };
int fastrpc_mmap(int domain, int fd, void *p, int offset, size_t nbytes,
    uint32_t flags);
int fastrpc_munmap(int domain, int fd, void *p, size_t nbytes);

/* --- queues (dspqueue.h) --- */

enum {
	DSPQUEUE_MAX_QUEUE_SIZE = 16 << 20, DSPQUEUE_MAX_BUFFERS = 64,
	DSPQUEUE_MAX_MESSAGE_SIZE = 64 << 10
};
enum { DSPQUEUE_MESSAGE = 1, DSPQUEUE_BUFFERS = 2 };	/* packet flags */
enum {
	DSPQUEUE_FLUSH_SENDER = 0x10, DSPQUEUE_INVALIDATE_RECIPIENT = 0x80
};
struct dspqueue;
struct dspqueue_buffer {
	uint32_t fd, size, offset, flags;
	union {
		void *ptr;		/* where it lies on this side */
		uint64_t address;
	};
};
_Static_assert(sizeof(struct dspqueue_buffer) == 24, "ABI");
typedef void dspqueue_callback(struct dspqueue *q, int error, void *context);

int dspqueue_create(int domain, uint32_t flags, uint32_t req_bytes,
    uint32_t resp_bytes, dspqueue_callback *packet, dspqueue_callback *error,
    void *context, struct dspqueue **ret);
int dspqueue_close(struct dspqueue *q);
int dspqueue_export(struct dspqueue *q, uint64_t *ret_id);
int dspqueue_import(uint64_t id, dspqueue_callback *packet,
    dspqueue_callback *error, void *context, struct dspqueue **ret);
int dspqueue_write(struct dspqueue *q, uint32_t flags, uint32_t nbufs,
    struct dspqueue_buffer *buf, uint32_t nbytes, const uint8_t *message,
    uint32_t timeout_us);
int dspqueue_read(struct dspqueue *q, uint32_t *ret_flags, uint32_t max_bufs,
    uint32_t *ret_nbufs, struct dspqueue_buffer *ret_buf, uint32_t max_bytes,
    uint32_t *ret_nbytes, uint8_t *ret_message, uint32_t timeout_us);
int dspqueue_read_noblock(struct dspqueue *q, uint32_t *ret_flags,
    uint32_t max_bufs, uint32_t *ret_nbufs, struct dspqueue_buffer *ret_buf,
    uint32_t max_bytes, uint32_t *ret_nbytes, uint8_t *ret_message);

/* --- our module on the DSP (skel.c) --- */

#define SKEL_URI "file:///libstraddle-domain-v%x.so?"			\
	"straddle_skel_handle_invoke&_modver=1.0"

/* Methods 0 and 1 open and close it; start: a uint64_t in, the queue's id. */
enum { SKEL_OPEN, SKEL_CLOSE, SKEL_START, SKEL_STOP };

int straddle_skel_handle_invoke(remote_handle64 h, uint32_t scalars,
    remote_arg *args);

#endif
