/* tests/standin/cdsprpc.c - stand-in for Qualcomm's libcdsprpc.so, built as
 * build/tests/standin/libcdsprpc.so.
 *
 * The DSP process of a session is kernels/hexagon under qemu-hexagon.  Memory is not
 * coherent, as on some chips: each buffer has a copy on the host's and on the DSP's
 * side, and only a packet's flush flags copy bytes between them (the response copies
 * back the buffers that its request flushed).  A missing flag thus changes results.
 *
 * The environment injects errors:
 *
 *	STANDIN_REFUSE=dspqueue_create=0xe	this call, or request of a control
 *						call, returns this code
 *	STANDIN_HANG=start			this call returns only when the DSP
 *						process is killed
 *
 * Tests find standin_live() (cdsprpc.h) by dlsym(). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/hexagon/fastrpc.h"
#include "kernels/hexagon/queue.h"
#include "shm/event.h"
#include "cdsprpc.h"

enum { NSESSIONS = 4, NMEM = 256, NFDS = 1 + HXQ_MAPS, OWN_FD = 64 };
enum { HEAD = offsetof(struct hxq_packet, msg) -
    offsetof(struct hxq_packet, id) };

struct mem {				/* an rpcmem buffer: the host's copy */
	void *p;			/* NULL = free */
	size_t nbytes;
	int fd;
};

struct map {				/* a mapped buffer: the DSP's copy */
	const struct mem *m;		/* NULL = free */
	uint8_t *dsp;
};

/* A session is first reserved, then opened, which starts its process. */
static struct session {
	_Atomic int reserved;
	int opened, started;
	_Atomic int killed;
	_Atomic pid_t pid;		/* 0 = none */
	_Atomic uint32_t dead;
	pthread_t watcher;
	int fd[NFDS];			/* the queue's, then the maps' */
	struct hxq_shared *sh;
	struct map map[HXQ_MAPS];
	uint32_t sent, received;
	/* The buffers that each request flushed, for its response. */
	struct dspqueue_buffer buf[HXQ_SLOTS][DSPQUEUE_MAX_BUFFERS];
	uint32_t nbufs[HXQ_SLOTS];
	struct dspqueue *queue;
} sessions[NSESSIONS];

struct dspqueue {
	struct session *s;
};

/* Status notifications by session; they stay registered when a session ends. */
static struct remote_rpc_notif_register notices[NSESSIONS];
static struct mem mems[NMEM];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- injected errors --- */

/* The error code that this call must return, or 0. */
static int
injected_error(const char *call)
{
	const char *e = getenv("STANDIN_REFUSE");
	size_t n = strlen(call);

	if (e == NULL || strncmp(e, call, n) != 0 || e[n] != '=')
		return 0;
	return (int)strtoul(e + n + 1, NULL, 0);
}

/* If this call must hang, wait until the session's process is killed. */
static int
hang_if_asked(const char *call, struct session *s)
{
	const char *e = getenv("STANDIN_HANG");

	if (e == NULL || strcmp(e, call) != 0)
		return 0;
	while (!s->killed)
		usleep(1000);
	return AEE_ECONNRESET;
}

/* The library numbers the domains of sessions as id + 8 * session, where sessions
 * start at 1. */
static struct session *
session_of(int domain)
{
	int i = domain / 8 - 1;

	if (domain % 8 != CDSP_DOMAIN_ID || i < 0 || i >= NSESSIONS ||
	    !sessions[i].reserved)
		return NULL;
	return &sessions[i];
}

/* --- the process --- */

static int
find_file(const char *dir, const char *name, char *ret)
{
	return snprintf(ret, PATH_MAX, "%s/%s", dir, name) < PATH_MAX &&
	    access(ret, R_OK) == 0;
}

/* Find qemu-hexagon in PATH, and hexagon-domain where the program itself looks. */
static int
find_programs(char *ret_emulator, char *ret_program)
{
	char self[PATH_MAX], *list, *rest, *dir, *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *path = getenv("PATH");
	int found = 0;

	list = rest = strdup(path != NULL ? path : "/usr/bin");
	while (!found && (dir = strsep(&rest, ":")) != NULL)
		found = find_file(dir, "qemu-hexagon", ret_emulator);
	free(list);
	self[n > 0 ? n : 0] = '\0';
	if (!found || (slash = strrchr(self, '/')) == NULL)
		return 0;
	*slash = '\0';
	return find_file(self, "hexagon-domain", ret_program) ||
	    find_file(self, "../lib/straddle/hexagon-domain", ret_program);
}

/* Called in the child: exec the emulator. */
static void
exec_emulator(const struct session *s, char *emulator, char *program)
{
	char option[] = "-R", space[] = "0xe0000000";
	char *argv[] = { emulator, option, space, program, NULL };
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < NFDS; i++)
		if (dup2(s->fd[i], HXQ_FD_QUEUE + i) < 0)
			_exit(1);
	/* The emulator must not inherit the worker's channel. */
	for (i = 3; i < HXQ_FD_QUEUE; i++)
		close(i);
	execv(emulator, argv);
	_exit(1);
}

/* Thread of a session: notifies the worker of the process's end before calls can
 * see it. */
static void *
watch_process(void *arg)
{
	struct session *s = arg;
	const struct remote_rpc_notif_register *r = &notices[s - sessions];
	int status = 0;

	while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r->fn != NULL)
		r->fn(r->context, r->domain,
		    (int)(s - sessions) + 1, WIFSIGNALED(status) && !s->killed ?
		    FASTRPC_USER_PD_EXCEPTION : FASTRPC_USER_PD_EXIT);
	s->dead = 1;
	event_wake_all(&s->sh->response.head);
	return NULL;
}

static void *
map_shared(int fd, size_t nbytes)
{
	void *p = MAP_FAILED;

	if (ftruncate(fd, (off_t)nbytes) == 0)
		p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	return p == MAP_FAILED ? NULL : p;
}

/* A memfd whose number is clear of those that exec_emulator() assigns. */
static int
create_memfd(void)
{
	int fd = memfd_create("standin", MFD_CLOEXEC);
	int high = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FD);

	close(fd);
	return high;
}

static int
start_process(struct session *s)
{
	char emulator[PATH_MAX], program[PATH_MAX];
	pid_t pid;
	int i;

	if (!find_programs(emulator, program))
		return AEE_ENOSUCHFILE;
	for (i = 0; i < NFDS; i++)
		if ((s->fd[i] = create_memfd()) < 0)
			return AEE_ENOMEMORY;
	if ((s->sh = map_shared(s->fd[0], sizeof(*s->sh))) == NULL)
		return AEE_ENOMEMORY;
	s->sh->magic = HXQ_MAGIC;
	s->sh->version = HXQ_VERSION;
	s->sent = s->received = 0;
	s->dead = 0;
	s->killed = 0;
	s->pid = pid = fork();
	if (pid == 0)
		exec_emulator(s, emulator, program);
	if (pid < 0 || pthread_create(&s->watcher, NULL, watch_process, s) != 0)
		return AEE_ENOMEMORY;
	return 0;
}

static void
end_process(struct session *s)
{
	int i;

	if (s->pid > 0) {
		if (!s->dead)
			kill(s->pid, SIGKILL);
		pthread_join(s->watcher, NULL);
		s->pid = 0;
	}
	if (s->sh != NULL)
		munmap(s->sh, sizeof(*s->sh));
	s->sh = NULL;
	for (i = 0; i < NFDS; i++)
		if (s->fd[i] > 0)
			close(s->fd[i]);
	memset(s->fd, 0, sizeof(s->fd));
}

/* Send a request of the stand-in's own and wait for its status; the caller's queue
 * has no request in flight then. */
static uint32_t
send_own_request(struct session *s, uint32_t kind, uint32_t handle, uint64_t nbytes)
{
	struct hxq_packet *q = &s->sh->request.slot[s->sent % HXQ_SLOTS];
	uint32_t status;

	q->kind = kind;
	q->nbufs = 1;
	q->nbytes = 0;
	q->buf[0] = (struct hxq_buf){ .handle = handle, .nbytes = nbytes };
	atomic_store(&s->sh->request.head, ++s->sent);
	event_wake(&s->sh->request.head);
	while (atomic_load(&s->sh->response.head) == s->received && !s->dead)
		event_wait(&s->sh->response.head, s->received, event_now_ns() +
		    10000000);
	if (s->dead)
		return HXQ_EBADMSG;
	status = s->sh->response.slot[s->received % HXQ_SLOTS].status;
	atomic_store(&s->sh->response.tail, ++s->received);
	return status;
}

/* --- handles and sessions --- */

int
remote_handle_control(uint32_t req, void *data, uint32_t nbytes)
{
	static const uint32_t has[] = {
		[DSP_DOMAIN_SUPPORT] = 1, [DSP_UNSIGNED_PD_SUPPORT] = 1,
		[DSP_HVX_SUPPORT_128B] = 4, [DSP_VTCM_PAGE] = 1 << 20,
		[DSP_VTCM_COUNT] = 2, [DSP_ARCH_VER] = 0x68,
		[DSP_STATUS_NOTIFICATION_SUPPORT] = 1,
	};
	struct remote_dsp_capability *c = data;
	int code = injected_error("DSPRPC_GET_DSP_INFO");

	if (code != 0)
		return code;
	if (req != DSPRPC_GET_DSP_INFO || nbytes != sizeof(*c) ||
	    c->domain != CDSP_DOMAIN_ID ||
	    c->attribute >= sizeof(has) / sizeof(has[0]))
		return AEE_EBADPARM;
	c->capability = has[c->attribute];
	return 0;
}

static int
reserve(struct remote_rpc_reserve_new_session *r)
{
	int i;

	if (r->domain_name_len != strlen(CDSP_NAME) ||
	    strcmp(r->domain_name, CDSP_NAME) != 0)
		return AEE_EBADPARM;
	for (i = 0; i < NSESSIONS; i++) {
		if (sessions[i].reserved)
			continue;
		memset(&sessions[i], 0, sizeof(sessions[i]));
		sessions[i].reserved = 1;
		r->session_id = (uint32_t)i + 1;
		r->effective_domain_id = CDSP_DOMAIN_ID + 8 * r->session_id;
		return 0;
	}
	return AEE_ENOSESSION;
}

static int
kill_process(const struct remote_rpc_domain *d)
{
	struct session *s = session_of(d->domain);

	if (s == NULL)
		return AEE_EBADPARM;
	s->killed = 1;
	if (s->pid > 0 && !s->dead)
		kill(s->pid, SIGKILL);
	return 0;
}

static int
close_session(const struct remote_rpc_domain *d)
{
	struct session *s = session_of(d->domain);

	if (s == NULL || s->queue != NULL || s->opened)
		return AEE_EBADSTATE;
	s->reserved = 0;
	return 0;
}

static int
notify(const struct remote_rpc_notif_register *r)
{
	struct session *s = session_of(r->domain);

	if (s == NULL || r->fn == NULL)
		return AEE_EBADPARM;
	notices[s - sessions] = *r;
	return 0;
}

static int
get_uri(const struct remote_rpc_get_uri *u)
{
	int n = snprintf(u->uri, u->uri_len, "%.*s&_dom=%s&_session=%u",
	    (int)u->module_uri_len, u->module_uri, u->domain_name,
	    u->session_id);

	return n < (int)u->uri_len ? 0 : AEE_EBADSIZE;
}

static int
control(uint32_t req, void *data)
{
	const struct remote_rpc_control_unsigned_module *m = data;

	switch (req) {
	case DSPRPC_CONTROL_UNSIGNED_MODULE:
		return session_of(m->domain) != NULL && m->enable == 1 ? 0 :
		    AEE_EBADPARM;
	case FASTRPC_REMOTE_PROCESS_KILL:
		return kill_process(data);
	case FASTRPC_SESSION_CLOSE:
		return close_session(data);
	case FASTRPC_REGISTER_STATUS_NOTIFICATIONS:
		return notify(data);
	case FASTRPC_RESERVE_NEW_SESSION:
		return reserve(data);
	case FASTRPC_GET_URI:
		return get_uri(data);
	default:
		return AEE_EUNSUPPORTEDAPI;
	}
}

int
remote_session_control(uint32_t req, void *data, uint32_t nbytes)
{
	static const struct { const char *name; uint32_t nbytes; } known[] = {
		[DSPRPC_CONTROL_UNSIGNED_MODULE] = {
		    "DSPRPC_CONTROL_UNSIGNED_MODULE", 8 },
		[FASTRPC_REMOTE_PROCESS_KILL] = {
		    "FASTRPC_REMOTE_PROCESS_KILL", 4 },
		[FASTRPC_SESSION_CLOSE] = { "FASTRPC_SESSION_CLOSE", 4 },
		[FASTRPC_REGISTER_STATUS_NOTIFICATIONS] = {
		    "FASTRPC_REGISTER_STATUS_NOTIFICATIONS",
		    sizeof(struct remote_rpc_notif_register) },
		[FASTRPC_RESERVE_NEW_SESSION] = {
		    "FASTRPC_RESERVE_NEW_SESSION",
		    sizeof(struct remote_rpc_reserve_new_session) },
		[FASTRPC_GET_URI] = { "FASTRPC_GET_URI",
		    sizeof(struct remote_rpc_get_uri) },
	};
	int code;

	if (req >= sizeof(known) / sizeof(known[0]) ||
	    known[req].name == NULL)
		return AEE_EUNSUPPORTEDAPI;
	if (nbytes != known[req].nbytes)
		return AEE_EBADPARM;
	if ((code = injected_error(known[req].name)) != 0)
		return code;
	/* A kill must reach calls that hang, which hold no lock. */
	if (req == FASTRPC_REMOTE_PROCESS_KILL)
		return control(req, data);
	pthread_mutex_lock(&lock);
	code = control(req, data);
	pthread_mutex_unlock(&lock);
	return code;
}

int
remote_handle64_open(const char *uri, remote_handle64 *ret)
{
	const char *id = strstr(uri, "&_session=");
	struct session *s;
	int code = injected_error("remote_handle64_open");

	if (code != 0)
		return code;
	if (strncmp(uri, "file:///libstraddle-domain-v68.so?", 34) != 0 ||
	    strstr(uri, "straddle_skel_handle_invoke&_modver=1.0") == NULL ||
	    strstr(uri, "&_dom=cdsp") == NULL || id == NULL ||
	    (s = session_of(CDSP_DOMAIN_ID + 8 * atoi(id + 10))) == NULL)
		return AEE_EBADPARM;
	if ((code = hang_if_asked("remote_handle64_open", s)) != 0)
		return code;
	if ((code = start_process(s)) != 0) {
		end_process(s);
		return code;
	}
	s->opened = 1;
	*ret = (uint64_t)(s - sessions) + 1;
	return 0;
}

static struct session *
session_of_handle(remote_handle64 h)
{
	if (h < 1 || h > NSESSIONS || !sessions[h - 1].opened)
		return NULL;
	return &sessions[h - 1];
}

int
remote_handle64_control(remote_handle64 h, uint32_t req, void *data,
    uint32_t nbytes)
{
	const struct remote_rpc_control_latency *l = data;
	int code = injected_error("DSPRPC_CONTROL_LATENCY");

	if (code != 0)
		return code;
	return session_of_handle(h) != NULL && req == DSPRPC_CONTROL_LATENCY &&
	    nbytes == sizeof(*l) && l->enable == RPC_PM_QOS ? 0 :
	    AEE_EBADPARM;
}

int
remote_handle64_invoke(remote_handle64 h, uint32_t scalars, remote_arg *args)
{
	struct session *s = session_of_handle(h);
	uint64_t id;
	int code;

	if (s == NULL)
		return AEE_EBADPARM;
	switch (scalars) {
	case REMOTE_SCALARS(SKEL_START, 1, 0, 0, 0):
		if ((code = injected_error("start")) != 0 ||
		    (code = hang_if_asked("start", s)) != 0)
			return code;
		memcpy(&id, args[0].buf.pv, sizeof(id));
		if (args[0].buf.nLen != sizeof(id) || s->queue == NULL ||
		    id != (uintptr_t)s->queue)
			return AEE_EBADPARM;
		s->started = 1;
		return 0;
	case REMOTE_SCALARS(SKEL_STOP, 0, 0, 0, 0):
		if ((code = hang_if_asked("stop", s)) != 0)
			return code;
		s->started = 0;
		return 0;
	default:
		return (int)(AEE_DSP_OFFSET + AEE_EUNSUPPORTED);
	}
}

int
remote_handle64_close(remote_handle64 h)
{
	struct session *s = session_of_handle(h);

	if (s == NULL)
		return AEE_EBADPARM;
	end_process(s);
	s->opened = s->started = 0;
	return 0;
}

/* --- memory --- */

void *
rpcmem_alloc2(int heap, uint32_t flags, size_t nbytes)
{
	struct mem *m = mems;

	if (heap != RPCMEM_HEAP_ID_SYSTEM || flags != RPCMEM_DEFAULT_FLAGS ||
	    nbytes % 4096 != 0 || injected_error("rpcmem_alloc2") != 0)
		return NULL;
	pthread_mutex_lock(&lock);
	while (m < mems + NMEM && m->p != NULL)
		m++;
	if (m < mems + NMEM) {
		m->fd = create_memfd();
		m->nbytes = nbytes;
		if ((m->p = map_shared(m->fd, nbytes)) == NULL)
			close(m->fd);
	}
	pthread_mutex_unlock(&lock);
	return m < mems + NMEM ? m->p : NULL;
}

static struct mem *
mem_of(const void *p, int fd)
{
	struct mem *m;

	for (m = mems; m < mems + NMEM; m++)
		if (m->p != NULL && (m->p == p || m->fd == fd))
			return m;
	return NULL;
}

void
rpcmem_free(void *p)
{
	struct mem *m = mem_of(p, -1);

	if (m == NULL)
		return;
	munmap(m->p, m->nbytes);
	close(m->fd);
	m->p = NULL;
}

int
rpcmem_to_fd(void *p)
{
	struct mem *m = mem_of(p, -1);

	return m == NULL || injected_error("rpcmem_to_fd") != 0 ? -1 : m->fd;
}

static struct map *
map_of(struct session *s, const struct mem *m)
{
	int i;

	for (i = 0; i < HXQ_MAPS; i++)
		if (s->map[i].m == m)
			return &s->map[i];
	return NULL;
}

static void
drop_map(struct session *s, struct map *k)
{
	int fd = s->fd[1 + k - s->map];

	munmap(k->dsp, k->m->nbytes);
	if (fd > 0 && ftruncate(fd, 0) < 0)
		abort();
	k->m = NULL;
}

int
fastrpc_mmap(int domain, int fd, void *p, int offset, size_t nbytes,
    uint32_t flags)
{
	struct session *s = session_of(domain);
	struct mem *m = mem_of(NULL, fd);
	int code = injected_error("fastrpc_mmap");
	struct map *k;

	if (code != 0)
		return code;
	if (s == NULL || !s->opened || m == NULL || m->p != p ||
	    offset != 0 || nbytes != m->nbytes || flags != FASTRPC_MAP_FD)
		return AEE_EBADPARM;
	if ((k = map_of(s, NULL)) == NULL)
		return AEE_ENOMEMORY;
	if ((k->dsp = map_shared(s->fd[1 + k - s->map], nbytes)) == NULL)
		return AEE_ENOMEMORY;
	k->m = m;
	if (send_own_request(s, HXQ_MAP, (uint32_t)(k - s->map), nbytes) == HXQ_OK)
		return 0;
	drop_map(s, k);
	return AEE_ENOMEMORY;
}

int
fastrpc_munmap(int domain, int fd, void *p, size_t nbytes)
{
	struct session *s = session_of(domain);
	struct mem *m = mem_of(NULL, fd);
	struct map *k = s != NULL && m != NULL ? map_of(s, m) : NULL;

	if (k == NULL || m->p != p || m->nbytes != nbytes)
		return AEE_EBADPARM;
	if (!s->dead && !s->killed)
		send_own_request(s, HXQ_UNMAP, (uint32_t)(k - s->map), nbytes);
	drop_map(s, k);
	return 0;
}

/* --- queues --- */

int
dspqueue_create(int domain, uint32_t flags, uint32_t req_bytes,
    uint32_t resp_bytes, dspqueue_callback *packet, dspqueue_callback *error,
    void *context, struct dspqueue **ret)
{
	struct session *s = session_of(domain);
	int code = injected_error("dspqueue_create");

	(void)error;
	(void)context;
	if (code != 0)
		return code;
	if (s == NULL || !s->opened || s->queue != NULL || flags != 0 ||
	    packet != NULL || req_bytes > DSPQUEUE_MAX_QUEUE_SIZE ||
	    resp_bytes > DSPQUEUE_MAX_QUEUE_SIZE ||
	    (s->queue = malloc(sizeof(*s->queue))) == NULL)
		return AEE_EBADPARM;
	s->queue->s = s;
	*ret = s->queue;
	return 0;
}

int
dspqueue_close(struct dspqueue *q)
{
	if (q == NULL)
		return AEE_EBADPARM;
	/* The DSP still has the queue imported. */
	if (q->s->started && !q->s->dead && !q->s->killed)
		return AEE_EBADPARM;
	q->s->queue = NULL;
	free(q);
	return 0;
}

int
dspqueue_export(struct dspqueue *q, uint64_t *ret_id)
{
	int code = injected_error("dspqueue_export");

	*ret_id = (uintptr_t)q;
	return code;
}

/* Copy the buffer's bytes as its flags say: from the host to the DSP, or back. */
static int
copy_across(struct session *s, const struct dspqueue_buffer *b, int back)
{
	struct mem *m = mem_of(NULL, (int)b->fd);
	struct map *k = m != NULL ? map_of(s, m) : NULL;
	uint8_t *host, *dsp;

	if (k == NULL || b->offset > m->nbytes ||
	    b->size > m->nbytes - b->offset)
		return AEE_ENOSUCHMAP;
	host = (uint8_t *)m->p + b->offset;
	dsp = k->dsp + b->offset;
	if ((b->flags & DSPQUEUE_FLUSH_SENDER) &&
	    (b->flags & DSPQUEUE_INVALIDATE_RECIPIENT))
		memcpy(back ? host : dsp, back ? dsp : host, b->size);
	return 0;
}

/* As skel.c does on the DSP: the packet's head says which buffers are present. */
static void
place_buffers(struct session *s, struct hxq_packet *p,
    const struct dspqueue_buffer *buf)
{
	uint32_t i;

	for (i = 0; i < p->nbufs; i++) {
		p->buf[i] = (struct hxq_buf){ 0 };
		if (!(p->present >> i & 1))
			continue;
		p->buf[i] = (struct hxq_buf){
			.handle = (uint32_t)(map_of(s, mem_of(NULL,
			(int)buf->fd)) - s->map),
			.offset = buf->offset, .nbytes = buf->size };
		buf++;
	}
}

int
dspqueue_write(struct dspqueue *q, uint32_t flags, uint32_t nbufs,
    struct dspqueue_buffer *buf, uint32_t nbytes, const uint8_t *message,
    uint32_t timeout_us)
{
	struct session *s = q->s;
	struct hxq_packet *p;
	uint32_t i;
	int code = injected_error("dspqueue_write");

	(void)timeout_us;
	if (code != 0)
		return code;
	if (nbufs > DSPQUEUE_MAX_BUFFERS || nbytes < HEAD ||
	    nbytes > DSPQUEUE_MAX_MESSAGE_SIZE || flags != (DSPQUEUE_MESSAGE |
	    (nbufs > 0 ? (uint32_t)DSPQUEUE_BUFFERS : 0)))
		return AEE_EBADPARM;
	if (!s->started || s->dead)
		return AEE_EBADSTATE;
	if (s->sent - s->received == HXQ_SLOTS)
		return AEE_EEXPIRED;
	for (i = 0; i < nbufs; i++)
		if ((code = copy_across(s, &buf[i], 0)) != 0)
			return code;
	s->nbufs[s->sent % HXQ_SLOTS] = nbufs;
	memcpy(s->buf[s->sent % HXQ_SLOTS], buf, nbufs * sizeof(*buf));
	p = &s->sh->request.slot[s->sent % HXQ_SLOTS];
	memcpy(&p->id, message, nbytes);
	if (p->nbytes != nbytes - HEAD ||
	    (uint32_t)__builtin_popcount(p->present) != nbufs)
		return AEE_EBADPARM;
	place_buffers(s, p, buf);
	atomic_store(&s->sh->request.head, ++s->sent);
	event_wake(&s->sh->request.head);
	return 0;
}

int
dspqueue_read(struct dspqueue *q, uint32_t *ret_flags, uint32_t max_bufs,
    uint32_t *ret_nbufs, struct dspqueue_buffer *ret_buf, uint32_t max_bytes,
    uint32_t *ret_nbytes, uint8_t *ret_message, uint32_t timeout_us)
{
	struct session *s = q->s;
	uint64_t deadline = event_now_ns() + (uint64_t)timeout_us * 1000;
	uint32_t at = s->received % HXQ_SLOTS, i;
	const struct hxq_packet *p = &s->sh->response.slot[at];
	int code = injected_error("dspqueue_read");

	if (code != 0)
		return code;
	while (atomic_load(&s->sh->response.head) == s->received) {
		if (s->dead)
			return AEE_ECONNRESET;
		if (event_now_ns() >= deadline)
			return AEE_EEXPIRED;
		event_wait(&s->sh->response.head, s->received, deadline);
	}
	if (HEAD + p->nbytes > max_bytes || s->nbufs[at] > max_bufs)
		return AEE_EBADPARM;
	*ret_flags = DSPQUEUE_MESSAGE;
	*ret_nbufs = s->nbufs[at];
	for (i = 0; i < s->nbufs[at]; i++) {
		ret_buf[i] = s->buf[at][i];
		copy_across(s, &ret_buf[i], 1);
	}
	*ret_nbytes = HEAD + p->nbytes;
	memcpy(ret_message, &p->id, *ret_nbytes);
	atomic_store(&s->sh->response.tail, ++s->received);
	return 0;
}

/* --- for the tests --- */

unsigned
standin_live(void)
{
	unsigned i, j, n = 0;

	for (i = 0; i < NMEM; i++)
		n += mems[i].p != NULL;
	for (i = 0; i < NSESSIONS; i++) {
		n += (unsigned)(sessions[i].reserved + sessions[i].opened +
		    sessions[i].started) + (sessions[i].queue != NULL) +
		    (sessions[i].pid != 0) + (sessions[i].sh != NULL);
		for (j = 0; j < HXQ_MAPS; j++)
			n += sessions[i].map[j].m != NULL;
	}
	return n;
}

int
standin_pid(unsigned session)
{
	return session < NSESSIONS ? sessions[session].pid : 0;
}
