/* worker/rknpu/npu.c - an opened NPU: see npu.h. */
#include "npu.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/rknpu/npu.h"
#include "lock.h"
#include "shm/event.h"

/* A call that prepares something, and a hang of it. */
#define CALL_NS	UINT64_C(30000000000)

/* Bytes of a context where the library does not say: its commands, and nothing
 * else, because all its matrices are native. */
#define CONTEXT_BYTES_GUESS	(UINT64_C(64) << 10)

/* --- calls --- */

int
npu_check(struct npu *n, unsigned core, const char *call, int code)
{
	struct npu_core *c = &n->core[core];

	if (code >= 0)
		return 0;
	/* The library's own timeout is no call that never returns. */
	c->rc = rknn_failed(n->session, call, code, &c->err);
	if (c->rc == -ETIMEDOUT)
		c->rc = -EIO;
	return c->rc;
}

int
npu_hangs(const struct npu *n, unsigned core, struct err *reterr)
{
	const char *call = n->core[core].in;

	return err_set(reterr, ERR_RUN, -ETIMEDOUT, "session %s: %s does not "
	    "return on core %u of the NPU: read the kernel's log for RKNPU; "
	    "other programs may hold the NPU", n->session, call != NULL ?
	    call : RKNN_LIBRARY, core);
}

/* A call that takes so long may be one that the worker is killed for. */
#define SLOW_NS	UINT64_C(1000000000)

int
npu_wait(struct npu *n, unsigned core, uint64_t deadline_ns,
    struct err *reterr)
{
	if (calls_wait(n->calls, core, MIN(deadline_ns, event_now_ns() +
	    SLOW_NS)) == 0)
		return 0;
	npu_memo_blame(n->memo, 1);
	if (calls_wait(n->calls, core, deadline_ns) < 0) {
		calls_give_up(n->calls);
		return npu_hangs(n, core, reterr);
	}
	npu_memo_blame(n->memo, 0);
	return 0;
}

/* Nobody has reported that the library makes contexts and memory for several
 * domains at once: sessions of one process take turns.  A call that never returns
 * keeps its turn. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static int
take_turn(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	const uint64_t end_ns = event_now_ns() + CALL_NS;
	int rc;

	while ((rc = pthread_mutex_trylock(&turn)) == EBUSY &&
	    event_now_ns() < end_ns)
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	return -rc;
}

int
npu_do(struct npu *n, unsigned core, void (*fn)(void *arg), void *arg,
    struct err *reterr)
{
	struct npu_core *c = &n->core[core];
	int rc;

	if (calls_are_lost(n->calls))
		return npu_hangs(n, core, reterr);
	if (take_turn() < 0)
		return err_set(reterr, ERR_RUN, -EBUSY, "session %s: "
		    "another session of its worker has waited for the NPU's "
		    "library for %d s", n->session, (int)(CALL_NS /
		    UINT64_C(1000000000)));
	c->rc = 0;
	npu_memo_begin(n->memo, core, n->noted);
	calls_post(n->calls, core, fn, arg);
	if ((rc = npu_wait(n, core, event_now_ns() + CALL_NS, reterr)) < 0)
		return rc;
	npu_memo_end(n->memo, core);
	pthread_mutex_unlock(&turn);
	if (c->rc < 0 && reterr != NULL)
		*reterr = c->err;
	return c->rc;
}

/* --- memory --- */

static void
do_alloc(void *arg)
{
	struct npu_job *j = arg;
	struct npu *n = j->n;

	/* The later function takes 64 bits. */
	if (n->lib->rknn_create_mem2 != NULL && j->nbytes > UINT32_MAX) {
		n->core[0].in = "rknn_create_mem2";
		j->mem = n->lib->rknn_create_mem2(n->owner.id, j->nbytes,
		    RKNN_FLAG_MEMORY_FLAGS_DEFAULT);
	} else {
		n->core[0].in = "rknn_create_mem";
		j->mem = j->nbytes > UINT32_MAX ? NULL :
		    n->lib->rknn_create_mem(n->owner.id, (uint32_t)j->nbytes);
	}
}

int
npu_alloc(struct npu *n, uint64_t nbytes, const char *what,
    struct npu_mem *ret, struct err *reterr)
{
	int rc;

	nbytes = ALIGN_UP(nbytes, NPU_PAGE);
	n->job = (struct npu_job){ .n = n, .nbytes = nbytes };
	if ((rc = npu_do(n, 0, do_alloc, &n->job, reterr)) < 0)
		return rc;
	if (n->job.mem == NULL || n->job.mem->virt_addr == NULL)
		return rknn_no_memory(n->session, what, nbytes, n->domain,
		    n->highest_fd, reterr);
	n->highest_fd = MAX(n->highest_fd, n->job.mem->fd);
	*ret = (struct npu_mem){ n->job.mem, n->job.mem->virt_addr, nbytes };
	return 0;
}

static void
do_view(void *arg)
{
	struct npu_job *j = arg;

	j->n->core[0].in = "rknn_create_mem_from_fd";
	j->mem = j->n->lib->rknn_create_mem_from_fd(j->n->owner.id, j->of->fd,
	    j->of->virt_addr, (uint32_t)j->nbytes, (int32_t)j->offset);
}

int
npu_view(struct npu *n, const struct npu_mem *m, uint64_t offset,
    uint64_t nbytes, struct npu_mem *ret, struct err *reterr)
{
	int rc;

	if (offset > INT32_MAX || nbytes > UINT32_MAX || offset + nbytes >
	    m->nbytes)
		return err_set(reterr, ERR_RUN, -EINVAL, "session %s: %" PRIu64
		    " bytes at %" PRIu64 " cannot be shown to the NPU: a "
		    "matrix has at most 2 GiB there; leave it on the CPU with "
		    "a device cpu", n->session, nbytes, offset);
	n->job = (struct npu_job){ .n = n, .of = m->mem, .nbytes = nbytes,
	    .offset = offset };
	if ((rc = npu_do(n, 0, do_view, &n->job, reterr)) < 0)
		return rc;
	if (n->job.mem == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "rknn_create_mem_from_fd gives no view of %" PRIu64
		    " bytes: IOMMU domain %d is full, or this library's "
		    "memory has no descriptors; install " RKNN_LIBRARY
		    " 2.3.2", n->session, nbytes, n->domain);
	*ret = (struct npu_mem){ n->job.mem, m->host + offset, nbytes };
	return 0;
}

static void
do_free(void *arg)
{
	struct npu_job *j = arg;

	j->n->core[0].in = "rknn_destroy_mem";
	j->n->lib->rknn_destroy_mem(j->n->owner.id, j->of);
}

/* The library may give its address to other memory. */
static void
unbind(struct npu *n, const struct rknn_tensor_mem *mem)
{
	unsigned core, i, j;

	for (core = 0; core < n->ncores; core++)
		for (i = 0; i < n->core[core].nctx; i++)
			for (j = 0; j < NPU_MATRICES; j++)
				if (n->core[core].ctx[i].bound[j] == mem)
					n->core[core].ctx[i].bound[j] = NULL;
}

void
npu_free(struct npu *n, struct npu_mem *m)
{
	if (m->mem != NULL && !calls_are_lost(n->calls)) {
		unbind(n, m->mem);
		n->job = (struct npu_job){ .n = n, .of = m->mem };
		(void)npu_do(n, 0, do_free, &n->job, NULL);
	}
	*m = (struct npu_mem){ 0 };
}

static void
do_publish(void *arg)
{
	struct npu_job *j = arg;

	j->n->core[0].in = "rknn_mem_sync";
	npu_check(j->n, 0, "rknn_mem_sync", j->n->lib->rknn_mem_sync(
	    j->n->owner.id, j->of, RKNN_MEMORY_SYNC_TO_DEVICE));
}

int
npu_publish(struct npu *n, const struct npu_mem *m, struct err *reterr)
{
	n->job = (struct npu_job){ .n = n, .of = m->mem };
	return npu_do(n, 0, do_publish, &n->job, reterr);
}

/* --- contexts --- */

static struct rknn_matmul_info
info_of(const struct npu *n, struct npu_shape s)
{
	struct rknn_matmul_info info;

	rknn_info(&info, RKNN_INT8_MM_INT8_TO_INT32, s.m, s.k, s.n);
	info.B_layout = info.AC_layout = RKNN_MM_LAYOUT_NATIVE;
	info.iommu_domain_id = n->domain;
	return info;
}

static void
do_create(void *arg)
{
	struct npu_job *j = arg;
	struct npu *n = j->n;
	struct npu_context *x = j->ctx;
	struct rknn_matmul_info info = info_of(n, x->shape);
	struct npu_core *c = &n->core[0];

	if ((c->rc = rknn_check_info(n->release.number, &info, &c->err)) < 0)
		return;
	c->in = "rknn_matmul_create";
	if (npu_check(n, 0, c->in, n->lib->rknn_matmul_create(&x->id, &info,
	    &x->attr)) < 0) {
		x->id = 0;
		return;
	}
	if (n->ncores > 1) {
		c->in = "rknn_matmul_set_core_mask";
		npu_check(n, 0, c->in, n->lib->rknn_matmul_set_core_mask(x->id,
		    1 << j->core));
	}
}

static void
do_destroy(void *arg)
{
	struct npu_job *j = arg;

	j->n->core[0].in = "rknn_matmul_destroy";
	npu_check(j->n, 0, "rknn_matmul_destroy",
	    j->n->lib->rknn_matmul_destroy(j->ctx->id));
}

/* Are the layouts that the runtime reports those that the weights have? */
static int
read_layouts(const struct npu *n, struct npu_context *x, struct err *reterr)
{
	const struct rknn_matmul_info info = info_of(n, x->shape);
	struct rknpu_layout b;
	int rc;

	if ((rc = rknpu_read_layout(n->soc, &info, RKNPU_A, &x->attr.A, &x->a,
	    reterr)) < 0 ||
	    (rc = rknpu_read_layout(n->soc, &info, RKNPU_B, &x->attr.B, &b,
	    reterr)) < 0 ||
	    (rc = rknpu_read_layout(n->soc, &info, RKNPU_C, &x->attr.C, &x->c,
	    reterr)) < 0)
		return rc;
	if (x->a.tile_cols == 0 || x->c.tile_cols == 0 ||
	    x->a.tile_cols > NPU_ALIGN || NPU_ALIGN % x->a.tile_cols != 0 ||
	    b.tile_rows != NPU_ALIGN || b.nbytes != (uint64_t)x->shape.k *
	    x->shape.n)
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: the NPU "
		    "reports groups of %u and %u columns, tiles of %u rows "
		    "and %" PRIu64 " bytes for a product of %u x %u x %u: "
		    "this program cannot lay it out", n->session,
		    x->a.tile_cols, x->c.tile_cols, b.tile_rows, b.nbytes,
		    x->shape.m, x->shape.k, x->shape.n);
	return 0;
}

/* Destroy a context that cannot be used; keep the error that says why. */
static void
drop(struct npu *n, struct npu_context *x)
{
	if (x->id == 0 || calls_are_lost(n->calls))
		return;
	n->job.ctx = x;
	(void)npu_do(n, 0, do_destroy, &n->job, NULL);
	x->id = 0;
}

static int
create(struct npu *n, unsigned core, struct npu_context *x,
    struct err *reterr)
{
	int rc;

	n->job = (struct npu_job){ .n = n, .ctx = x, .core = core };
	if ((rc = npu_do(n, 0, do_create, &n->job, reterr)) < 0) {
		drop(n, x);
		return rc;
	}
	if ((rc = read_layouts(n, x, reterr)) < 0)
		drop(n, x);
	return rc;
}

int
npu_context(struct npu *n, unsigned core, struct npu_shape shape,
    unsigned *ret, struct err *reterr)
{
	struct npu_core *c = &n->core[core];
	struct npu_context *x;
	unsigned i;
	int rc;

	for (i = 0; i < c->nctx; i++)
		if (memcmp(&c->ctx[i].shape, &shape, sizeof(shape)) == 0) {
			*ret = i;
			return 0;
		}
	if (c->nctx == NPU_CONTEXTS)
		return err_set(reterr, ERR_RUN, -ENOSPC, "session %s: %u "
		    "shapes of products are prepared on core %u of the NPU, "
		    "and no more fit", n->session, c->nctx, core);
	if ((rc = mem_charge(n->ledger, MEM_COMPUTE, n->context_bytes,
	    "a context of the NPU", reterr)) < 0)
		return rc;
	x = &c->ctx[c->nctx];
	*x = (struct npu_context){ .shape = shape };
	if ((rc = create(n, core, x, reterr)) < 0) {
		mem_release(n->ledger, MEM_COMPUTE, n->context_bytes);
		return rc;
	}
	*ret = c->nctx++;
	return 0;
}

int
npu_drop_contexts(struct npu *n, struct err *reterr)
{
	unsigned core;
	int rc = 0, rc1;

	for (core = 0; core < n->ncores; core++)
		while (n->core[core].nctx > 0) {
			n->job = (struct npu_job){ .n = n, .ctx =
			    &n->core[core].ctx[--n->core[core].nctx] };
			rc1 = npu_do(n, 0, do_destroy, &n->job, rc == 0 ?
			    reterr : NULL);
			mem_release(n->ledger, MEM_COMPUTE, n->context_bytes);
			rc = rc < 0 ? rc : rc1;
		}
	return rc;
}

/* --- open --- */

static void
do_find_release(void *arg)
{
	struct npu_job *j = arg;
	struct npu_core *c = &j->n->core[0];

	c->in = "rknn_matmul_create";
	c->rc = rknn_find_release(j->n->lib, j->n->session, &j->n->release,
	    &c->err);
}

/* Bytes of the domain that a context takes. */
static void
do_measure(void *arg)
{
	struct npu_job *j = arg;
	struct npu *n = j->n;
	struct rknn_mem_size s;

	memset(&s, 0, sizeof(s));
	n->core[0].in = "rknn_query";
	n->context_bytes = CONTEXT_BYTES_GUESS;
	if (n->lib->rknn_query(n->owner.id, RKNN_QUERY_MEM_SIZE, &s, sizeof(s)) <
	    0 || s.total_internal_size == 0)
		return;
	n->context_bytes = s.total_internal_size;
	n->context_bytes_known = 1;
}

/* The kernel's driver has had domains since 0.9.8 [I]; one whose version nobody
 * tells may have them. */
static int
check_driver(struct npu *n, const char *root, struct err *reterr)
{
	unsigned major, minor, patch;
	const char *from;

	if (n->release.driver[0] == '\0')
		(void)rknpu_driver_version(root, n->release.driver,
		    sizeof(n->release.driver), &from);
	if (n->domain == 0 || sscanf(n->release.driver, "%3u.%3u.%3u", &major,
	    &minor, &patch) != 3 || RKNN_RELEASE(major, minor, patch) >=
	    RKNN_RELEASE(0, 9, 8))
		return 0;
	return err_set(reterr, ERR_RUN, -ENODEV, "session %s: IOMMU domain %d "
	    "needs the kernel's RKNPU driver 0.9.8 or newer, this is %s: update "
	    "the kernel, or use one session with iommu_domain=0", n->session,
	    n->domain, n->release.driver);
}

/* The context through which memory is created and freed lives as long as n. */
static int
open_owner(struct npu *n, struct err *reterr)
{
	int rc;

	n->owner = (struct npu_context){ .shape = { 2, NPU_ALIGN, NPU_ALIGN } };
	if ((rc = create(n, 0, &n->owner, reterr)) < 0)
		return rc;
	n->job = (struct npu_job){ .n = n };
	return npu_do(n, 0, do_measure, &n->job, reterr);
}

int
npu_open(const struct device_conf *dc, struct npu_memo *memo,
    struct npu **ret, struct err *reterr)
{
	/* Another folder stands in for / in tests. */
	const char *root = secure_getenv("STRADDLE_RKNPU_ROOT");
	const char *session = dc->session;
	const int domain = MAX(dc->iommu_domain, 0);
	struct npu *n = calloc(1, sizeof(*n));
	int rc;

	if (n == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for device rknpu", session);
	n->session = session;
	n->ledger = dc->ledger;
	n->domain = domain;
	n->highest_fd = -1;
	n->memo = memo;
	n->noted = NPU_SHAPE_ALL;
	n->ncores = 1;
	root = root != NULL ? root : RKNPU_ROOT;
	if ((rc = rknpu_find_soc(root, &n->soc, reterr)) < 0 ||
	    (rc = rknn_load(&n->lib, reterr)) < 0 ||
	    (rc = npu_lock(root, session, domain, reterr)) < 0)
		goto fail;
	n->has_lock = 1;
	n->ncores = MIN(n->soc->ncores, (unsigned)NPU_CORES);
	if ((rc = calls_open(session, n->ncores, dc->cpus, &n->calls,
	    reterr)) < 0)
		goto fail;
	n->job = (struct npu_job){ .n = n };
	if ((rc = npu_do(n, 0, do_find_release, &n->job, reterr)) < 0 ||
	    (rc = check_driver(n, root, reterr)) < 0 ||
	    (rc = open_owner(n, reterr)) < 0)
		goto fail;
	*ret = n;
	return 0;
fail:
	npu_close(n);
	return rc;
}

void
npu_close(struct npu *n)
{
	if (n == NULL)
		return;
	if (n->calls != NULL && !calls_are_lost(n->calls)) {
		(void)npu_drop_contexts(n, NULL);
		if (n->owner.id != 0) {
			n->job = (struct npu_job){ .n = n, .ctx = &n->owner };
			(void)npu_do(n, 0, do_destroy, &n->job, NULL);
		}
	}
	if (n->calls != NULL && calls_are_lost(n->calls))
		return;			/* a call still uses n */
	calls_close(n->calls);
	if (n->has_lock)
		npu_unlock();
	free(n);
}
