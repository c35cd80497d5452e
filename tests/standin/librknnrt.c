/* tests/standin/librknnrt.c - stand-in for Rockchip's librknnrt.so, built as
 * build/tests/standin/librknnrt.so and found through LD_LIBRARY_PATH.
 *
 * It has the library's products of matrices, computed on the CPU: exact sums of
 * integers, floats added in the order of K.  It is as strict as the NPU is
 * reported to be, and counts what the library would not notice (rknnrt_counts.h).
 * Memory has two copies, moved by rknn_mem_sync() alone (rknnrt_mem.c); A is read
 * and C written when a product runs; B that is not native is converted, from the
 * NPU's copy, when it is bound.
 *
 * One environment variable has its switches, read when it is loaded:
 *
 *	STRADDLE_RKNN=soc=rk3576,version=2.3.0,fail=run:-2@10
 *
 *	soc=NAME	rk3588 (default), rk3576, rk3562, rk3566, rk3568: types,
 *			alignment, layouts, cores
 *	version=X.Y.Z	1.6.0, 2.0.0b0, 2.1.0, 2.2.0, 2.3.0, 2.3.2 (default):
 *			functions, types, fields; 1.5.2 lacks rknn_mem_sync()
 *	answer=TEXT	what rknn_query() says of the release, after version=
 *	driver=X.Y.Z	of the kernel's driver (0.9.8); before it no domain but 0
 *	types=T+T	products that can be created, instead of the chip's
 *	coherent=1	one copy of memory
 *	query=WHAT	what rknn_query() answers: all (default), version, none
 *	segments=0	native B is not cut where K is larger than 8192 (RK3588)
 *			or 4096 (RK3576)
 *	max-k=N		larger K is refused; before 2.0, 10240
 *	abort-k=K+K	creation with such a K ends the process; all, none.
 *			Default: 16640, 16896 and 17408 for 16-bit floats
 *	abort-9=0	product 9 runs, and gives zeros, instead of ending the
 *			process; with scales of groups it always does
 *	zero=T+T	these products give zeros; all
 *	wrong=T+T	these products give one wrong bit; all
 *	domain-bytes=N	addresses of each of the 16 domains (4 GiB); memory and
 *			contexts' own buffers use them by pages
 *	largest-bytes=N	of one allocation (4 GiB - 1)
 *	internal-bytes=N  a context's own buffers, instead of those by its shape
 *	fds=N		allocations that can live at once
 *	time=N		a run takes N times what a core of an RK3588 takes:
 *			33 us, and B's bytes at 11 GB/s or the arithmetic
 *	switch-us=N	attaching another domain takes so long
 *	fail=CALL:CODE@N+...  call N (every one without @N) of rknn_CALL or
 *			rknn_matmul_CALL (create, set_io_mem, set_core_mask, run,
 *			destroy, create_mem, create_mem_from_fd, mem_sync, query)
 *			returns CODE; one that returns memory, NULL
 *	hang=CALL@N	it never returns
 *	abort=CALL@N	it ends the process
 *	once=FILE	faults are injected once in all processes that name FILE
 *	lock=FILE	two processes that name FILE at once, one with a domain
 *			but 0, end: the kernel would panic
 *	report=FILE	the counters are appended to it at exit
 *
 * What nobody has reported is strict here: 4-bit B is only taken native, int16
 * sums saturate, memory of another domain fails when the product runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknnrt.h"

enum { MAX_CONTEXTS = 4096 };

static struct context *contexts[MAX_CONTEXTS];
static uint64_t last_id = UINT64_C(0x7a00000000);	/* not 32 bits */

struct context *
find_context(uint64_t id)
{
	unsigned i;

	for (i = 0; i < MAX_CONTEXTS && contexts[i] != NULL; i++)
		if (contexts[i]->id == id && id != 0)
			return contexts[i];
	return NULL;
}

int
context_domain(uint64_t ctx)
{
	const struct context *c = find_context(ctx);

	return c != NULL ? c->domain : -1;
}

struct context *
must_find(const char *call, uint64_t id)
{
	struct context *c = find_context(id);

	if (c == NULL)
		misused("%s: context %#jx does not exist, or no longer", call,
		    (uintmax_t)id);
	return c;
}

/* --- create --- */

/* 1.6.0 knows two 32-bit layouts and no more. */
static void
read_info(const struct rknn_matmul_info *info, struct rknn_matmul_info *ret)
{
	if (switches()->release >= RELEASE(2, 0, 0)) {
		*ret = *info;
		return;
	}
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, info, offsetof(struct rknn_matmul_info,
	    iommu_domain_id));
	if (ret->B_quant_type != 0 || ret->AC_quant_type != 0)
		ret->B_layout = -1;	/* upper half of a layout */
}

static int
check_fields(const struct rknn_matmul_info *info)
{
	int last_quant = switches()->release >= RELEASE(2, 1, 0) ?
	    RKNN_QUANT_TYPE_PER_GROUP_ASYM : 1;
	unsigned i;

	for (i = 0; i < sizeof(info->reserved); i++)
		if (info->reserved[i] != 0) {
			misused("struct rknn_matmul_info is not zeroed");
			break;
		}
	if (info->iommu_domain_id < 0 || info->iommu_domain_id >=
	    RKNN_DOMAINS || info->B_quant_type < 0 || info->B_quant_type >
	    last_quant || info->AC_quant_type != 0)
		return RKNN_ERR_PARAM_INVALID;
	if ((info->B_quant_type == RKNN_QUANT_TYPE_PER_CHANNEL_SYM ||
	    info->B_quant_type == RKNN_QUANT_TYPE_PER_CHANNEL_ASYM) &&
	    info->type != RKNN_INT8_MM_INT8_TO_INT8 &&
	    info->type != RKNN_INT8_MM_INT8_TO_INT32)
		return RKNN_ERR_PARAM_INVALID;
	if (info->B_quant_type >= RKNN_QUANT_TYPE_PER_GROUP_SYM &&
	    (info->group_size <= 0 || info->K % info->group_size != 0))
		return RKNN_ERR_PARAM_INVALID;
	return RKNN_SUCC;
}

static int
driver_has_domains(void)
{
	int major, minor, patch;

	return sscanf(switches()->driver, "%d.%d.%d", &major, &minor,
	    &patch) == 3 && RELEASE(major, minor, patch) >= RELEASE(0, 9, 8);
}

static void
abort_if_reported(const struct product *p)
{
	static const struct list usual = { .n = 3,
	    .v = { 16640, 16896, 17408 } };
	const struct switches *sw = switches();

	if (sw->has_abort_k ? list_has(&sw->abort_k, p->k) :
	    p->ta == RKNN_TENSOR_FLOAT16 && list_has(&usual, p->k))
		fatal_error("Failed to config layer: 'matmul', Fatal Error (K "
		    "%d)", p->k);
}

/* Commands, and copies of matrices that are not native. */
static uint64_t
internal_bytes(const struct product *p)
{
	uint64_t n = UINT64_C(65536);

	if (switches()->internal_bytes != UINT64_MAX)
		return switches()->internal_bytes;
	if (p->ac_layout != RKNN_MM_LAYOUT_NATIVE)
		n += page_up(tensor_bytes(p, 'A')) +
		    page_up(tensor_bytes(p, 'C'));
	if (p->b_layout != RKNN_MM_LAYOUT_NATIVE)
		n += page_up(tensor_bytes(p, 'B'));
	return page_up(n);
}

static struct context *
new_context(void)
{
	unsigned i;

	for (i = 0; i < MAX_CONTEXTS; i++) {
		if (contexts[i] == NULL)
			contexts[i] = calloc(1, sizeof(*contexts[i]));
		if (contexts[i] == NULL || contexts[i]->id == 0)
			return contexts[i];
	}
	return NULL;
}

/* Check every shape; the largest is the last. */
static int
check_shapes(const struct rknn_matmul_info *info, struct context *c,
    const struct rknn_matmul_shape *shapes, int nshapes)
{
	struct rknn_matmul_info one = *info;
	int i, rc;

	for (i = 0; i < nshapes; i++) {
		one.M = shapes[i].M;
		one.K = shapes[i].K;
		one.N = shapes[i].N;
		if (one.K != shapes[0].K || one.N != shapes[0].N)
			return RKNN_ERR_PARAM_INVALID;
		if ((rc = check_product(switches(), &one, &c->shape[i])) !=
		    RKNN_SUCC)
			return rc;
		abort_if_reported(&c->shape[i]);
		c->internal_bytes = MAX(c->internal_bytes,
		    internal_bytes(&c->shape[i]));
	}
	c->nshapes = nshapes;
	return RKNN_SUCC;
}

/* With the lock. */
static int
create_locked(uint64_t *ctx, const struct rknn_matmul_info *info,
    const struct rknn_matmul_shape *shapes, int nshapes)
{
	struct context *c = new_context();
	int rc;

	if (c == NULL)
		return RKNN_ERR_MALLOC_FAIL;
	memset(c, 0, sizeof(*c));
	if ((rc = check_fields(info)) != RKNN_SUCC ||
	    (rc = check_shapes(info, c, shapes, nshapes)) != RKNN_SUCC)
		return rc;
	if (info->iommu_domain_id != 0 && !driver_has_domains())
		return RKNN_ERR_FAIL;
	if (!charge_domain(info->iommu_domain_id, c->internal_bytes)) {
		complain("failed to allocate handle, errno: 12");
		return RKNN_ERR_MALLOC_FAIL;
	}
	c->domain = info->iommu_domain_id;
	c->quant_b = info->B_quant_type;
	c->id = *ctx = last_id += 0x40;
	rknn_counts.contexts++;
	rknn_counts.creates++;
	return RKNN_SUCC;
}

static void
fill_attrs(const struct context *c, struct rknn_matmul_io_attr *ret)
{
	int i;

	for (i = 0; i < c->nshapes; i++) {
		fill_attr(&c->shape[i], 'A', &ret[i].A);
		fill_attr(&c->shape[i], 'B', &ret[i].B);
		fill_attr(&c->shape[i], 'C', &ret[i].C);
	}
}

static int
create(uint64_t *ctx, const struct rknn_matmul_info *info,
    const struct rknn_matmul_shape *shapes, int nshapes,
    struct rknn_matmul_io_attr *io_attrs)
{
	struct rknn_matmul_info known;
	int rc = injected("create");

	if (rc != RKNN_SUCC)
		return rc;
	if (nshapes < 1 || nshapes > MAX_SHAPES)
		return RKNN_ERR_PARAM_INVALID;
	read_info(info, &known);
	check_alone(known.iommu_domain_id);
	pthread_mutex_lock(&rknn_lock);
	rc = create_locked(ctx, &known, shapes, nshapes);
	if (rc == RKNN_SUCC)
		fill_attrs(find_context(*ctx), io_attrs);
	pthread_mutex_unlock(&rknn_lock);
	return rc;
}

EXPORT int
rknn_matmul_create(uint64_t *ctx, struct rknn_matmul_info *info,
    struct rknn_matmul_io_attr *io_attr)
{
	const struct rknn_matmul_shape shape = { info->M, info->K, info->N };

	return create(ctx, info, &shape, 1, io_attr);
}

static int
do_create_dynamic_shape(uint64_t *ctx, struct rknn_matmul_info *info,
    int nshapes, struct rknn_matmul_shape *shapes,
    struct rknn_matmul_io_attr *io_attrs)
{
	return create(ctx, info, shapes, nshapes, io_attrs);
}

static int
do_set_dynamic_shape(uint64_t ctx, struct rknn_matmul_shape *shape)
{
	struct context *c;
	int i, rc = RKNN_ERR_PARAM_INVALID;

	pthread_mutex_lock(&rknn_lock);
	if ((c = must_find("rknn_matmul_set_dynamic_shape", ctx)) == NULL)
		rc = RKNN_ERR_CTX_INVALID;
	for (i = 0; c != NULL && i < c->nshapes; i++)
		if (c->shape[i].m == shape->M && c->shape[i].k == shape->K &&
		    c->shape[i].n == shape->N) {
			c->current = i;
			rc = RKNN_SUCC;
		}
	pthread_mutex_unlock(&rknn_lock);
	return rc;
}

EXPORT int
rknn_matmul_destroy(uint64_t ctx)
{
	struct context *c;
	int rc = injected("destroy");

	if (rc != RKNN_SUCC)
		return rc;
	pthread_mutex_lock(&rknn_lock);
	if ((c = must_find("rknn_matmul_destroy", ctx)) == NULL)
		rc = RKNN_ERR_CTX_INVALID;
	else if (c->running)
		misused("rknn_matmul_destroy: the context runs");
	else {
		release_domain(c->domain, c->internal_bytes);
		free(c->converted);
		memset(c, 0, sizeof(*c));
		rknn_counts.contexts--;
	}
	pthread_mutex_unlock(&rknn_lock);
	return rc;
}

/* --- settings --- */

EXPORT int
rknn_matmul_set_core_mask(uint64_t ctx, int mask)
{
	int rc = injected("set_core_mask"), ncores = switches()->chip->ncores;

	if (rc != RKNN_SUCC)
		return rc;
	pthread_mutex_lock(&rknn_lock);
	if (must_find("rknn_matmul_set_core_mask", ctx) == NULL)
		rc = RKNN_ERR_CTX_INVALID;
	else if (ncores == 1 || (mask & (mask - 1)) != 0 || mask >= 1 << ncores
	    || mask < 0) {
		complain("Not support core mask: %d, fallback to single core "
		    "auto", mask);
		rc = RKNN_ERR_FAIL;
	} else
		find_context(ctx)->mask = mask;
	pthread_mutex_unlock(&rknn_lock);
	return rc;
}

/* Does a set of scales belong to matrix m of this context? */
static int
takes_scales(const struct context *c, const struct rknn_quant_params *params,
    int m)
{
	int type = c->shape[0].type;

	return params->name[0] == MATRIX_NAME(m) && params->name[1] == '\0' &&
	    params->scale_len >= 1 && params->scale != NULL &&
	    (type == RKNN_INT8_MM_INT8_TO_INT32 ||
	    type == RKNN_INT8_MM_INT8_TO_INT8);
}

/* One scale for a matrix of products 2 and 3; those of channels or groups are
 * taken, and give zeros. */
static int
do_set_quant_params(uint64_t ctx, struct rknn_quant_params *params)
{
	struct context *c;
	int i, m, rc = RKNN_ERR_PARAM_INVALID;

	pthread_mutex_lock(&rknn_lock);
	if ((c = must_find("rknn_matmul_set_quant_params", ctx)) == NULL)
		rc = RKNN_ERR_CTX_INVALID;
	for (m = A; c != NULL && m <= C; m++) {
		if (!takes_scales(c, params, m))
			continue;
		for (i = 0; i < c->nshapes; i++)
			c->shape[i].scale[m] = params->scale[0];
		c->has_scales = 1;
		rc = RKNN_SUCC;
	}
	pthread_mutex_unlock(&rknn_lock);
	return rc;
}

static int
do_get_quant_params(uint64_t ctx, struct rknn_quant_params *params,
    float *scale)
{
	const struct context *c;
	int m, rc = RKNN_ERR_PARAM_INVALID;

	pthread_mutex_lock(&rknn_lock);
	if ((c = must_find("rknn_matmul_get_quant_params", ctx)) == NULL)
		rc = RKNN_ERR_CTX_INVALID;
	for (m = A; c != NULL && m <= C; m++)
		if (params->name[0] == MATRIX_NAME(m) && c->shape[0].type ==
		    RKNN_INT8_MM_INT8_TO_INT32) {
			*scale = c->shape[0].scale[m];
			rc = RKNN_SUCC;
		}
	pthread_mutex_unlock(&rknn_lock);
	return rc;
}

EXPORT int
rknn_query(uint64_t ctx, int cmd, void *ret, uint32_t nbytes)
{
	enum query can = switches()->query;
	const struct context *c;
	struct rknn_sdk_version *v = ret;
	struct rknn_mem_size *s = ret;
	int rc = injected("query");

	if (rc != RKNN_SUCC)
		return rc;
	rc = RKNN_ERR_PARAM_INVALID;
	pthread_mutex_lock(&rknn_lock);
	if ((c = must_find("rknn_query", ctx)) == NULL)
		rc = RKNN_ERR_CTX_INVALID;
	else if (cmd == RKNN_QUERY_SDK_VERSION && nbytes == sizeof(*v) &&
	    can != QUERY_NONE) {
		memset(v, 0, sizeof(*v));
		strcpy(v->api_version, switches()->version);
		strcpy(v->drv_version, switches()->driver);
		rc = RKNN_SUCC;
	} else if (cmd == RKNN_QUERY_MEM_SIZE && nbytes == sizeof(*s) &&
	    can == QUERY_ALL) {
		memset(s, 0, sizeof(*s));
		s->total_internal_size = (uint32_t)c->internal_bytes;
		s->total_dma_allocated_size = c->internal_bytes;
		rc = RKNN_SUCC;
	}
	pthread_mutex_unlock(&rknn_lock);
	return rc;
}

/* --- the helper --- */

static int
do_to_native(void *in, void *out, int K, int N, struct rknn_matmul_info *info)
{
	struct rknn_matmul_info one = *info;
	struct product p;
	int rc;

	one.M = 1;
	one.K = K;
	one.N = N;
	one.B_layout = RKNN_MM_LAYOUT_NATIVE;
	if ((rc = check_product(switches(), &one, &p)) != RKNN_SUCC)
		return rc;
	p.b_layout = RKNN_MM_LAYOUT_NORM;
	memset(out, 0, tensor_bytes(&p, 'B'));
	convert_b(&p, in, 1, out);
	return RKNN_SUCC;
}

/* That of 2.0.0b0 takes (in, out, K, N, subN, subK, type): called as the later
 * one, it reads a pointer and two registers as numbers. */
static int
do_to_native_b0(void *in, void *out, int K, int N,
    struct rknn_matmul_info *info)
{
	(void)in;
	(void)out;
	(void)info;
	fatal_error("rknn_B_normal_layout_to_native_layout (K %d, N %d): "
	    "2.0.0b0 takes other arguments", K, N);
}

/* --- functions that not every release has --- */

/* dlsym() answers NULL where a resolver does. */
#define SINCE(release_, f, does)					\
	UNUSED static __typeof__(f) *resolve_##f(void)			\
	{								\
		return switches()->release >= release_ ? does : NULL;	\
	}								\
	EXPORT __typeof__(f) f __attribute__((ifunc("resolve_" #f)))

int rknn_matmul_create_dyn_shape(uint64_t *ctx, struct rknn_matmul_info *info,
    int nshapes, struct rknn_matmul_shape *shapes,
    struct rknn_matmul_io_attr *io_attrs);

SINCE(RELEASE(1, 6, 0), rknn_mem_sync, do_mem_sync);
SINCE(RELEASE(2, 0, 0), rknn_create_mem2, do_create_mem2);
SINCE(RELEASE(2, 0, 0), rknn_matmul_set_quant_params, do_set_quant_params);
SINCE(RELEASE(2, 0, 0), rknn_matmul_get_quant_params, do_get_quant_params);
SINCE(RELEASE(2, 0, 0), rknn_matmul_set_dynamic_shape, do_set_dynamic_shape);
SINCE(RELEASE(2, 0, 0), rknn_matmul_create_dyn_shape,
    do_create_dynamic_shape);
SINCE(RELEASE(2, 1, 0), rknn_matmul_create_dynamic_shape,
    do_create_dynamic_shape);
SINCE(RELEASE(2, 0, 0), rknn_B_normal_layout_to_native_layout,
    switches()->release >= RELEASE(2, 1, 0) ? do_to_native : do_to_native_b0);
