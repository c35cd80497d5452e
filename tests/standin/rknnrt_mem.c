/* tests/standin/rknnrt_mem.c - memory, domains and caches of the stand-in for
 * librknnrt.so.
 *
 * An allocation has two copies: the program's (mapped, with a descriptor) and the
 * NPU's.  rknn_mem_sync() moves lines of 64 bytes between them, as a cache does
 * whose lines are written back late: a line that the program changed since the
 * last sync is written to the NPU's copy, even by a sync in the other direction,
 * and even over a result.  Both begin with the same bytes, which are not 0.  With
 * coherent=1 there is one copy. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "rknnrt.h"

enum { PAGE = 4096, LINE = 64, POISON = 0x5c, POISON_BYTES = 1 << 20 };
enum { MAX_MEMS = 4096, SWITCH_S = 6 };

struct buffer {
	uint64_t serial;		/* 0 = free */
	uint64_t nbytes;
	uint8_t *cpu, *npu;
	uint64_t *clean;		/* [lines] hash at the last sync; 0 = of
					 * zeros */
	int fd, domain;
	unsigned views;
};

/* A view: what a struct rknn_tensor_mem stands for. */
struct mem {
	struct rknn_tensor_mem m;	/* first; virt_addr NULL = free */
	struct view v;
	int owns;
};

static struct buffer buffers[MAX_MEMS];
static struct mem *mems[MAX_MEMS];	/* allocated when first used */
static uint64_t last_serial;

uint64_t
page_up(uint64_t nbytes)
{
	return (nbytes + PAGE - 1) / PAGE * PAGE;
}

/* --- domains --- */

int
charge_domain(int domain, uint64_t nbytes)
{
	uint64_t *used = &rknn_counts.domain_bytes[domain];

	if (nbytes > switches()->domain_bytes ||
	    *used > switches()->domain_bytes - nbytes)
		return 0;
	*used += nbytes;
	return 1;
}

void
release_domain(int domain, uint64_t nbytes)
{
	rknn_counts.domain_bytes[domain] -= nbytes;
}

static int attached, njobs;
static pthread_cond_t jobs_done = PTHREAD_COND_INITIALIZER;

/* Also alloc, free and sync attach their domain. */
int
attach_domain(int domain)
{
	struct timespec end;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += SWITCH_S;
	pthread_mutex_lock(&rknn_lock);
	while (rc == 0 && attached != domain && njobs > 0)
		rc = pthread_cond_timedwait(&jobs_done, &rknn_lock, &end);
	if (rc == 0 && attached != domain) {
		attached = domain;
		rknn_counts.switches++;
		if (switches()->switch_us != 0)
			usleep(switches()->switch_us);
	}
	if (rc == 0)
		njobs++;
	pthread_mutex_unlock(&rknn_lock);
	if (rc != 0)
		complain("switch iommu domain time out");
	return rc == 0 ? 0 : -1;
}

void
detach_domain(void)
{
	pthread_mutex_lock(&rknn_lock);
	if (--njobs == 0)
		pthread_cond_broadcast(&jobs_done);
	pthread_mutex_unlock(&rknn_lock);
}

/* --- caches --- */

static uint64_t
hash_line(const uint8_t *p)
{
	uint64_t h = 0, w;
	unsigned i;

	for (i = 0; i < LINE; i += 8) {
		memcpy(&w, p + i, 8);
		h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h;
}

static uint64_t
nlines(const struct buffer *b)
{
	return page_up(b->nbytes) / LINE;
}

static void
sync_buffer(struct buffer *b, int mode)
{
	uint64_t i, h;

	if (b->cpu == b->npu)
		return;
	for (i = 0; i < nlines(b); i++) {
		h = hash_line(b->cpu + i * LINE);
		if (h != b->clean[i])
			memcpy(b->npu + i * LINE, b->cpu + i * LINE, LINE);
		else if (mode & RKNN_MEMORY_SYNC_FROM_DEVICE)
			memcpy(b->cpu + i * LINE, b->npu + i * LINE, LINE);
		b->clean[i] = hash_line(b->cpu + i * LINE);
	}
}

/* --- allocations --- */

static void *
map_zeros(uint64_t nbytes, int fd)
{
	void *p = mmap(NULL, page_up(nbytes), PROT_READ | PROT_WRITE,
	    fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS |
	    MAP_NORESERVE, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void
poison(struct buffer *b)
{
	uint64_t n = MIN(page_up(b->nbytes), POISON_BYTES), i;

	memset(b->cpu, POISON, n);
	if (b->npu == b->cpu)
		return;
	memset(b->npu, POISON, n);
	for (i = 0; i < n / LINE; i++)
		b->clean[i] = hash_line(b->cpu + i * LINE);
}

static void
unmap_buffer(struct buffer *b)
{
	if (b->npu != NULL && b->npu != b->cpu) {
		munmap(b->npu, page_up(b->nbytes));
		munmap(b->clean, page_up(nlines(b) * sizeof(*b->clean)));
	}
	if (b->cpu != NULL)
		munmap(b->cpu, page_up(b->nbytes));
	if (b->fd >= 0)
		close(b->fd);
	memset(b, 0, sizeof(*b));
}

static int
map_buffer(struct buffer *b)
{
	b->fd = memfd_create("rknn", MFD_CLOEXEC);
	if (b->fd < 0) {
		complain("failed to convert handle to fd, errno: %d", errno);
		return 0;
	}
	if (ftruncate(b->fd, (off_t)page_up(b->nbytes)) < 0 ||
	    (b->cpu = map_zeros(b->nbytes, b->fd)) == NULL)
		return 0;
	b->npu = b->cpu;
	if (!switches()->coherent) {
		b->npu = map_zeros(b->nbytes, -1);
		b->clean = map_zeros(nlines(b) * sizeof(*b->clean), -1);
		if (b->npu == NULL || b->clean == NULL)
			return 0;
	}
	poison(b);
	return 1;
}

static struct buffer *
new_buffer(uint64_t nbytes, int domain)
{
	struct buffer *b = NULL;
	unsigned i, live = 0;

	for (i = 0; i < MAX_MEMS; i++) {
		live += buffers[i].serial != 0;
		if (b == NULL && buffers[i].serial == 0)
			b = &buffers[i];
	}
	if (switches()->fds != 0 && live >= switches()->fds) {
		complain("failed to convert handle to fd, errno: %d", EMFILE);
		return NULL;
	}
	if (nbytes == 0 || nbytes > switches()->largest_bytes || b == NULL ||
	    !charge_domain(domain, page_up(nbytes))) {
		complain("failed to allocate handle of %ju bytes, errno: %d",
		    (uintmax_t)nbytes, ENOMEM);
		return NULL;
	}
	*b = (struct buffer){ .nbytes = nbytes, .domain = domain, .fd = -1 };
	if (!map_buffer(b)) {
		unmap_buffer(b);
		release_domain(domain, page_up(nbytes));
		return NULL;
	}
	b->serial = ++last_serial;
	return b;
}

static void
free_buffer(struct buffer *b)
{
	if (--b->views > 0)
		return;
	release_domain(b->domain, page_up(b->nbytes));
	unmap_buffer(b);
}

/* --- views --- */

static struct rknn_tensor_mem *
new_mem(struct buffer *b, uint64_t offset, uint64_t nbytes, int owns)
{
	struct mem *m;
	unsigned i;

	for (i = 0; i < MAX_MEMS; i++) {
		if (mems[i] == NULL)
			mems[i] = calloc(1, sizeof(*mems[i]));
		if (mems[i] == NULL || mems[i]->m.virt_addr == NULL)
			break;
	}
	if (i == MAX_MEMS || (m = mems[i]) == NULL)
		return NULL;
	b->views++;
	m->owns = owns;
	m->v = (struct view){ b, offset, nbytes, b->serial };
	m->m = (struct rknn_tensor_mem){ .virt_addr = b->cpu + offset,
	    .fd = b->fd, .offset = (int32_t)offset, .size = (uint32_t)nbytes,
	    .flags = owns ? RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE :
	    RKNN_TENSOR_MEMORY_FLAGS_FROM_FD, .priv_data = m };
	rknn_counts.mems++;
	return &m->m;
}

/* Never reads through the pointer that it checks. */
static struct mem *
find_mem(const struct rknn_tensor_mem *mem)
{
	unsigned i;

	for (i = 0; i < MAX_MEMS && mems[i] != NULL; i++)
		if (&mems[i]->m == mem && mem->virt_addr != NULL)
			return mems[i];
	misused("memory %p does not exist, or no longer",
	    (const void *)mem);
	return NULL;
}

int
find_view(const struct rknn_tensor_mem *mem, struct view *ret)
{
	const struct mem *m = find_mem(mem);

	if (m == NULL)
		return 0;
	*ret = m->v;
	return 1;
}

int
view_is_alive(const struct view *v)
{
	return v->buf->serial == v->serial;
}

int
view_domain(const struct view *v)
{
	return v->buf->domain;
}

void *
view_device(const struct view *v)
{
	return v->buf->npu + v->offset;
}

/* --- the library's functions --- */

static struct rknn_tensor_mem *
create_in(int domain, uint64_t nbytes)
{
	struct rknn_tensor_mem *mem;
	struct buffer *b;

	if ((b = new_buffer(nbytes, domain)) == NULL)
		return NULL;
	if ((mem = new_mem(b, 0, nbytes, 1)) == NULL) {
		b->views = 1;
		free_buffer(b);
	}
	return mem;
}

/* no_context: ctx may be 0. */
static struct rknn_tensor_mem *
create(const char *call, uint64_t ctx, uint64_t nbytes, int no_context)
{
	struct rknn_tensor_mem *mem = NULL;
	int domain;

	if (injected(call) != RKNN_SUCC)
		return NULL;
	pthread_mutex_lock(&rknn_lock);
	domain = no_context && ctx == 0 ? 0 : context_domain(ctx);
	if (domain < 0)
		misused("%s: no such context", call);
	else
		mem = create_in(domain, nbytes);
	pthread_mutex_unlock(&rknn_lock);
	return mem;
}

EXPORT struct rknn_tensor_mem *
rknn_create_mem(uint64_t ctx, uint32_t nbytes)
{
	return create("create_mem", ctx, nbytes, 0);
}

/* Memory that is asked for as not cacheable is cached all the same. */
struct rknn_tensor_mem *
do_create_mem2(uint64_t ctx, uint64_t nbytes, uint64_t flags)
{
	return create("create_mem", ctx, nbytes, switches()->release >=
	    RELEASE(2, 1, 0) && (flags & RKNN_FLAG_MEMORY_NO_CONTEXT) != 0);
}

static struct buffer *
find_fd(int fd)
{
	unsigned i;

	for (i = 0; i < MAX_MEMS; i++)
		if (buffers[i].serial != 0 && buffers[i].fd == fd)
			return &buffers[i];
	return NULL;
}

EXPORT struct rknn_tensor_mem *
rknn_create_mem_from_fd(uint64_t ctx, int32_t fd, void *p, uint32_t nbytes,
    int32_t offset)
{
	struct rknn_tensor_mem *mem = NULL;
	struct buffer *b;

	if (injected("create_mem_from_fd") != RKNN_SUCC)
		return NULL;
	pthread_mutex_lock(&rknn_lock);
	b = find_fd(fd);
	if (context_domain(ctx) < 0)
		misused("rknn_create_mem_from_fd: no such context");
	else if (b == NULL || offset < 0 || nbytes == 0 ||
	    (uint64_t)offset + nbytes > b->nbytes)
		complain("failed to convert fd(%d) to handle, errno: %d", fd,
		    EINVAL);
	else if (p != b->cpu && p != b->cpu + offset)
		misused("rknn_create_mem_from_fd: address %p is not of fd %d",
		    p, fd);
	else
		mem = new_mem(b, (uint64_t)offset, nbytes, 0);
	pthread_mutex_unlock(&rknn_lock);
	return mem;
}

EXPORT int
rknn_destroy_mem(uint64_t ctx, struct rknn_tensor_mem *mem)
{
	struct mem *m;
	int rc = RKNN_ERR_CTX_INVALID;

	pthread_mutex_lock(&rknn_lock);
	if (context_domain(ctx) < 0)
		misused("rknn_destroy_mem: no such context");
	else if ((m = find_mem(mem)) != NULL) {
		free_buffer(m->v.buf);
		memset(m, 0, sizeof(*m));
		rknn_counts.mems--;
		rc = RKNN_SUCC;
	}
	pthread_mutex_unlock(&rknn_lock);
	return rc;
}

int
do_mem_sync(uint64_t ctx, struct rknn_tensor_mem *mem, int mode)
{
	struct mem *m;
	int rc = injected("mem_sync");

	if (rc != RKNN_SUCC)
		return rc;
	rc = RKNN_ERR_PARAM_INVALID;
	pthread_mutex_lock(&rknn_lock);
	if (context_domain(ctx) < 0)
		misused("rknn_mem_sync: no such context");
	else if (mode >= RKNN_MEMORY_SYNC_TO_DEVICE &&
	    mode <= RKNN_MEMORY_SYNC_BIDIRECTIONAL &&
	    (m = find_mem(mem)) != NULL) {
		rc = RKNN_SUCC;
		rknn_counts.syncs++;
		if (m->owns)
			sync_buffer(m->v.buf, mode);
		else
			misused("rknn_mem_sync: memory of "
			    "rknn_create_mem_from_fd() is not synced");
	}
	pthread_mutex_unlock(&rknn_lock);
	return rc;
}
