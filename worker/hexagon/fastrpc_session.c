/* worker/hexagon/fastrpc_session.c - the steps to open and close a DSP
 * session. */
#include "fastrpc_session.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "shm/event.h"
#include "board.h"

/* Default limit of a step without a timeout of its own. */
#define STEP_NS		UINT64_C(60000000000)
#define LATENCY_US	100u

/* Notice about a domain, written by a thread of the library.  The library never
 * drops a registration, so these are never freed. */
struct fastrpc_notice {
	struct fastrpc_notice *next;
	int domain;
	_Atomic uint32_t ended;		/* enum remote_rpc_status; 0 = lives */
};

static int
failed(const struct fastrpc_session *f, const char *call, int code,
    struct err *reterr)
{
	return fastrpc_failed(f->name, call, code, reterr);
}

/* Is the request missing in this library or on this DSP? */
static int
is_unsupported(int code)
{
	uint32_t u = (uint32_t)code;

	if (u >= AEE_DSP_OFFSET)
		u -= AEE_DSP_OFFSET;
	return u == AEE_EUNSUPPORTED || u == AEE_EUNSUPPORTEDAPI;
}

/* --- the guard --- */

/* On the guard's thread: kill the process, so that the call that waits for the
 * DSP returns with an error. */
static void
kill_domain(void *arg)
{
	struct fastrpc_session *f = arg;
	struct remote_rpc_domain d = { f->domain };

	f->lost = 1;
	if (f->domain >= 0)
		f->lib->remote_session_control(FASTRPC_REMOTE_PROCESS_KILL,
		    &d, sizeof(d));
}

void
fastrpc_begin(struct fastrpc_session *f)
{
	guard_arm(f->guard, event_now_ns() + f->step_ns);
}

int
fastrpc_end(struct fastrpc_session *f, const char *step, int rc,
    struct err *reterr)
{
	if (guard_disarm(f->guard) && rc < 0)
		return err_set(reterr, ERR_RUN, -ETIMEDOUT, "session %s: %s: "
		    "the DSP did not answer in %.1f s, and its process was "
		    "killed; restarting its remoteproc may help", f->name,
		    step, (double)f->step_ns / 1e9);
	return rc;
}

/* --- steps --- */

int
fastrpc_capability(const struct fastrpc_session *f,
    enum dsp_attribute attribute, uint32_t *ret)
{
	struct remote_dsp_capability c = { CDSP_DOMAIN_ID, attribute, 0 };
	int code = f->lib->remote_handle_control(DSPRPC_GET_DSP_INFO, &c,
	    sizeof(c));

	*ret = c.capability;
	return code;
}

static int
ask_arch(struct fastrpc_session *f, struct err *reterr)
{
	uint32_t version;
	int code = fastrpc_capability(f, DSP_ARCH_VER, &version);

	if (code != 0)
		return failed(f, "DSPRPC_GET_DSP_INFO", code, reterr);
	f->arch = version & 0xff;
	return 0;
}

static int
reserve(struct fastrpc_session *f, struct err *reterr)
{
	char domain[] = CDSP_NAME, name[] = "straddle";
	struct remote_rpc_reserve_new_session s = {
		.domain_name = domain, .domain_name_len = sizeof(domain) - 1,
		.session_name = name, .session_name_len = sizeof(name) - 1,
	};
	int code = f->lib->remote_session_control(FASTRPC_RESERVE_NEW_SESSION,
	    &s, sizeof(s));

	if (code != 0)
		return failed(f, "FASTRPC_RESERVE_NEW_SESSION", code, reterr);
	f->domain = (int)s.effective_domain_id;
	f->session_id = s.session_id;
	return 0;
}

static int
get_uri(struct fastrpc_session *f, char *ret, size_t len, struct err *reterr)
{
	char domain[] = CDSP_NAME, module[128];
	struct remote_rpc_get_uri u = {
		.domain_name = domain, .domain_name_len = sizeof(domain) - 1,
		.session_id = f->session_id, .module_uri = module,
		.uri = ret, .uri_len = (uint32_t)len,
	};
	int code;

	snprintf(module, sizeof(module), SKEL_URI, f->arch);
	u.module_uri_len = (uint32_t)strlen(module);
	code = f->lib->remote_session_control(FASTRPC_GET_URI, &u, sizeof(u));
	return code == 0 ? 0 : failed(f, "FASTRPC_GET_URI", code, reterr);
}

static int
allow_unsigned(struct fastrpc_session *f, struct err *reterr)
{
	struct remote_rpc_control_unsigned_module m = { f->domain, 1 };
	int code = f->lib->remote_session_control(
	    DSPRPC_CONTROL_UNSIGNED_MODULE, &m, sizeof(m));

	return code == 0 ? 0 : failed(f, "DSPRPC_CONTROL_UNSIGNED_MODULE",
	    code, reterr);
}

static int
on_notice(void *context, int domain, int session, uint32_t status)
{
	struct fastrpc_notice *n = context;

	(void)domain;
	(void)session;
	atomic_store(&n->ended, status == FASTRPC_USER_PD_UP ? 0 : status);
	return 0;
}

/* Register once for each domain that this process ever used. */
static int
register_notice(struct fastrpc_session *f, struct err *reterr)
{
	static struct fastrpc_notice *all;
	struct remote_rpc_notif_register r = { .domain = f->domain,
	    .fn = on_notice };
	struct fastrpc_notice *n = all;
	int code;

	while (n != NULL && n->domain != f->domain)
		n = n->next;
	if (n == NULL) {
		if ((n = calloc(1, sizeof(*n))) == NULL)
			return err_set(reterr, ERR_RUN, -ENOMEM,
			    "session %s: no memory for the notices of "
			    "domain %d", f->name, f->domain);
		n->domain = f->domain;
		r.context = n;
		code = f->lib->remote_session_control(
		    FASTRPC_REGISTER_STATUS_NOTIFICATIONS, &r, sizeof(r));
		if (code != 0)
			free(n);
		if (is_unsupported(code))
			return 0;
		if (code != 0)
			return failed(f, "FASTRPC_REGISTER_STATUS_"
			    "NOTIFICATIONS", code, reterr);
		n->next = all;
		all = n;
	}
	atomic_store(&n->ended, 0);
	f->notice = n;
	return 0;
}

static int
open_module(struct fastrpc_session *f, const char *uri, struct err *reterr)
{
	struct remote_rpc_control_latency l = { RPC_PM_QOS, LATENCY_US };
	int code = f->lib->remote_handle64_open(uri, &f->handle);

	if (code != 0)
		return failed(f, "remote_handle64_open", code, reterr);
	f->opened = 1;
	code = f->lib->remote_handle64_control(f->handle,
	    DSPRPC_CONTROL_LATENCY, &l, sizeof(l));
	return code == 0 || is_unsupported(code) ? 0 : failed(f,
	    "DSPRPC_CONTROL_LATENCY", code, reterr);
}

static int
start_queue(struct fastrpc_session *f, uint32_t queue_bytes,
    struct err *reterr)
{
	uint64_t id;
	remote_arg arg = { .buf = { &id, sizeof(id) } };
	int code;

	code = f->lib->dspqueue_create(f->domain, 0, queue_bytes, queue_bytes,
	    NULL, NULL, NULL, &f->queue);
	if (code != 0) {
		f->queue = NULL;
		return failed(f, "dspqueue_create", code, reterr);
	}
	if ((code = f->lib->dspqueue_export(f->queue, &id)) != 0)
		return failed(f, "dspqueue_export", code, reterr);
	code = f->lib->remote_handle64_invoke(f->handle,
	    REMOTE_SCALARS(SKEL_START, 1, 0, 0, 0), &arg);
	if (code != 0)
		return failed(f, "start", code, reterr);
	f->started = 1;
	return 0;
}

static int
make_session(struct fastrpc_session *f, uint32_t queue_bytes,
    struct err *reterr)
{
	char uri[256];
	int rc;

	if ((rc = ask_arch(f, reterr)) < 0 ||
	    (rc = reserve(f, reterr)) < 0 ||
	    (rc = get_uri(f, uri, sizeof(uri), reterr)) < 0 ||
	    (rc = allow_unsigned(f, reterr)) < 0 ||
	    (rc = register_notice(f, reterr)) < 0 ||
	    (rc = open_module(f, uri, reterr)) < 0)
		return rc;
	return start_queue(f, queue_bytes, reterr);
}

int
fastrpc_session_open(struct fastrpc_session *f, const char *name,
    uint32_t queue_bytes, uint64_t step_ns, struct err *reterr)
{
	int rc;

	*f = (struct fastrpc_session){ .domain = -1,
	    .step_ns = step_ns != 0 ? step_ns : STEP_NS };
	strlcpy(f->name, name, sizeof(f->name));
	if ((rc = fastrpc_load(&f->lib, reterr)) < 0 ||
	    (rc = guard_open(kill_domain, f, &f->guard, reterr)) < 0)
		return rc;
	board_module_path();
	fastrpc_begin(f);
	return fastrpc_end(f, "its start", make_session(f, queue_bytes,
	    reterr), reterr);
}

int
fastrpc_ended(struct fastrpc_session *f, struct err *reterr)
{
	static const char *const how[] = {
		[FASTRPC_USER_PD_EXIT] = "ended",
		[FASTRPC_USER_PD_FORCE_KILL] = "was killed by force",
		[FASTRPC_USER_PD_EXCEPTION] = "died of an exception",
		[FASTRPC_DSP_SSR] = "is gone: the DSP was restarted",
	};
	uint32_t status;

	if (f->notice == NULL || (status = atomic_load(&f->notice->ended)) ==
	    0)
		return 0;
	f->lost = 1;
	return err_set(reterr, ERR_RUN, -ESRCH, "session %s: its Hexagon "
	    "domain %s (status %u)", f->name, status < NITEMS(how) ?
	    how[status] : "is gone", status);
}

/* --- memory --- */

int
fastrpc_share(struct fastrpc_session *f, struct fastrpc_mem *m,
    int *ret_refused, struct err *reterr)
{
	int rc;

	*ret_refused = 0;
	m->p = f->lib->rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM,
	    RPCMEM_DEFAULT_FLAGS, m->nbytes);
	if (m->p == NULL)
		return failed(f, "rpcmem_alloc2", AEE_ENOMEMORY, reterr);
	if ((m->fd = f->lib->rpcmem_to_fd(m->p)) < 0)
		rc = failed(f, "rpcmem_to_fd", AEE_EFAILED, reterr);
	else if ((*ret_refused = f->lib->fastrpc_mmap(f->domain, m->fd, m->p,
	    0, m->nbytes, FASTRPC_MAP_FD)) != 0)
		rc = failed(f, "fastrpc_mmap", *ret_refused, reterr);
	else
		return 0;
	f->lib->rpcmem_free(m->p);
	return rc;
}

void
fastrpc_unshare(struct fastrpc_session *f, const struct fastrpc_mem *m)
{
	f->lib->fastrpc_munmap(f->domain, m->fd, m->p, m->nbytes);
	f->lib->rpcmem_free(m->p);
}

/* --- the end --- */

/* Ignore failures: the kernel frees everything with the process. */
static void
take_down(struct fastrpc_session *f)
{
	struct remote_rpc_domain id = { f->domain };

	if (f->queue != NULL)
		f->lib->dspqueue_close(f->queue);
	if (f->opened)
		f->lib->remote_handle64_close(f->handle);
	if (f->domain >= 0)
		f->lib->remote_session_control(FASTRPC_SESSION_CLOSE, &id,
		    sizeof(id));
}

void
fastrpc_session_stop(struct fastrpc_session *f)
{
	if (f->lost)
		kill_domain(f);
	else if (f->started)
		f->lib->remote_handle64_invoke(f->handle,
		    REMOTE_SCALARS(SKEL_STOP, 0, 0, 0, 0), NULL);
	f->started = 0;
}

void
fastrpc_session_close(struct fastrpc_session *f)
{
	if (f->guard == NULL)
		return;
	fastrpc_begin(f);
	fastrpc_session_stop(f);
	take_down(f);
	guard_close(f->guard);
	f->guard = NULL;
}
