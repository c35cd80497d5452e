/* tests/support/ascend.c - see ascend.h. */
#include "ascend.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/types/quant.h"

static __typeof__(ascend_standin_counts) *get_counts;
struct acl_machine as_machine;
struct acl_source as_source;

static void *
preload(const char *name)
{
	char path[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 80);
	void *so;

	path[n > 0 ? n : 0] = '\0';
	if ((slash = strrchr(path, '/')) == NULL)
		exit(1);
	strcpy(slash + 1, "../standin/");
	strcat(path, name);
	if ((so = dlopen(path, RTLD_NOW | RTLD_GLOBAL)) == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return so;
}

void
as_preload(const char *switches, enum as_family family)
{
	void *p;

	setenv("STRADDLE_ASCEND", switches, 1);
	if ((p = dlsym(preload(ACL_LIBRARY), "ascend_standin_counts")) == NULL)
		exit(1);
	memcpy(&get_counts, &p, sizeof(p));
	preload(ACL_BASE);
	if (family != AS_NO_COMPILER)
		preload(ACL_OP_COMPILER);
	if (family == AS_OLD || family == AS_NO_COMPILER)
		preload(ACL_OPS);
	if (family == AS_SPLIT) {
		preload("split/" ACL_OPS_NN);
		preload("split/" ACL_OPS_MATH);
		preload("split/" ACL_OPS_TRANSFORMER);
	}
}

const struct acl_lib *
as_lib(void)
{
	const struct acl_lib *lib;
	struct err e = { 0 };

	t_ok(acl_load(&lib, &e), &e);
	return lib;
}

struct ascend_standin_counts
as_counts(void)
{
	struct ascend_standin_counts c;

	get_counts(&c);
	return c;
}

static void
check_clean(void)
{
	struct ascend_standin_counts c = as_counts();

	ck_assert_msg(c.misuses == 0, "%u misuses: %s", c.misuses,
	    c.first_misuse);
	ck_assert_msg(c.device_bytes == 0 && c.blocks == 0, "%u blocks are "
	    "left", c.blocks);
}

static void
get_ready(void)
{
	struct err e = { 0 };

	t_ok(acl_start(as_lib(), "npu0", &e), &e);
	t_ok(acl_find_machine(as_lib(), "npu0", &as_machine, &e), &e);
	as_source = (struct acl_source){ as_lib(), &as_machine, "npu0", 0 };
	as_ok(as_lib()->aclrtSetDevice(0));
}

int
as_child(const char *switches, enum as_family family, int ready,
    void (*fn)(void))
{
	struct err e = { 0 };
	pid_t pid;
	int status = -1;

	fflush(NULL);
	if ((pid = fork()) == 0) {
		as_preload(switches, family);
		if (ready)
			get_ready();
		fn();
		if (ready) {
			as_ok(as_lib()->aclrtResetDevice(0));
			t_ok(acl_finish(as_lib(), "npu0", &e), &e);
		}
		check_clean();
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* --- sessions and products --- */

static struct acl_host_block a_and_c[2];
static void *block[8];
static unsigned nblocks;

void
as_open(struct acl_session *s)
{
	struct err e = { 0 };

	t_ok(acl_session_open("npu0", 0, s, &e), &e);
	t_ok(acl_session_stream(s, &e), &e);
}

void
as_close(struct acl_session *s)
{
	struct ascend_standin_counts c;

	acl_session_close(s);
	c = as_counts();
	ck_assert_uint_eq(c.streams + c.events + c.contexts + c.tensors +
	    c.executors + c.graphs, 0);
}

struct acl_choice
as_choice(const struct acl_session *s, int c_type, uint32_t fns)
{
	struct acl_choice c = { .magic = ACL_CHOICE,
	    .form[ASCEND_HALF] = { ACL_WAY_MATMUL, (uint8_t)c_type, 3, 0, { 1,
	    8, ASCEND_ROWS } }, .strategy = ACL_POOL_SLOTS, .chip = {
	    .has_memory = !s->machine.is_rc, .has_slots = 1, .fns = fns,
	    .workspace_bytes = MIB } };
	unsigned i;

	for (i = 0; i < ACL_FNS; i++)
		c.fn[i] = acl_fn_pack(ACL_FN_RIGHT, 0);
	return c;
}

void
as_close_device(struct device *d)
{
	struct ascend_standin_counts c;

	acl_free(d);
	as_close(&d->s);
	c = as_counts();
	ck_assert_uint_eq(c.device_bytes + c.host_bytes, 0);
	ck_assert_uint_eq(mem_left(d->conf.ledger), GIB);
}

void *
as_block(uint64_t nbytes)
{
	ck_assert_uint_lt(nblocks, NITEMS(block));
	as_ok(as_lib()->aclrtMalloc(&block[nblocks], nbytes, 0));
	return block[nblocks++];
}

void
as_free_blocks(void)
{
	while (nblocks > 0)
		as_ok(as_lib()->aclrtFree(block[--nblocks]));
}

void
as_open_products(struct acl_products *p)
{
	const struct acl_source *src = &p->s->src;
	struct err e = { 0 };

	t_ok(acl_host_alloc(src, p->a_bytes, "A", &a_and_c[0], &e), &e);
	t_ok(acl_host_alloc(src, p->c_bytes, "C", &a_and_c[1], &e), &e);
	p->a = p->device_a = a_and_c[0].p;
	p->c = p->device_c = a_and_c[1].p;
	if (!p->s->machine.is_rc) {
		p->device_a = as_block(p->a_bytes);
		p->device_c = as_block(p->c_bytes);
	}
	p->workspace = as_block(MAX(p->workspace_need, UINT64_C(1)));
	p->workspace_bytes = p->workspace_need;
}

void
as_close_products(struct acl_products *p)
{
	struct err e = { 0 };

	as_free_blocks();
	t_ok(acl_host_free(&p->s->src, &a_and_c[0], &e), &e);
	t_ok(acl_host_free(&p->s->src, &a_and_c[1], &e), &e);
}

uint16_t
as_random_half(void)
{
	return float_to_half(((float)t_rand_below(15) - 7) / 8);
}

/* --- tensors --- */

static size_t
bits_of(int dtype)
{
	return dtype == ACL_INT4 ? 4 : dtype == ACL_INT8 ? 8 : dtype ==
	    ACL_FLOAT || dtype == ACL_INT32 ? 32 : dtype == ACL_INT64 ? 64 :
	    16;
}

struct as_tensor
as_new(int dtype, unsigned ndims, const int64_t *dims)
{
	const struct acl_lib *l = as_lib();
	struct as_tensor x = { .n = 1, .dtype = dtype, .ndims = ndims };
	unsigned i;

	for (i = 0; i < ndims; i++) {
		x.dims[i] = dims[i];
		x.n *= (size_t)dims[i];
	}
	x.nbytes = (x.n * bits_of(dtype) + 7) / 8;
	as_ok(l->aclrtMalloc(&x.data, x.nbytes, ACL_MEM_MALLOC_HUGE_FIRST));
	x.t = l->aclCreateTensor(dims, ndims, dtype, NULL, 0, ACL_FORMAT_ND,
	    dims, ndims, x.data);
	ck_assert_ptr_nonnull(x.t);
	return x;
}

struct as_tensor
as_matrix(int dtype, int64_t rows, int64_t cols)
{
	return as_new(dtype, 2, (const int64_t []){ rows, cols });
}

void
as_put(struct as_tensor *x, const float *v)
{
	void *host = calloc(x->n, 8);
	size_t i;

	ck_assert_ptr_nonnull(host);
	for (i = 0; i < x->n; i++)
		switch (x->dtype) {
		case ACL_FLOAT:
			((float *)host)[i] = v[i];
			break;
		case ACL_FLOAT16:
			((uint16_t *)host)[i] = float_to_half(v[i]);
			break;
		case ACL_INT8:
			((int8_t *)host)[i] = (int8_t)v[i];
			break;
		case ACL_INT64:
			((int64_t *)host)[i] = (int64_t)v[i];
			break;
		case ACL_INT4:
			((uint8_t *)host)[i / 2] |= (uint8_t)(((int)v[i] & 15)
			    << i % 2 * 4);
			break;
		default:
			ck_abort_msg("type %d", x->dtype);
		}
	as_ok(as_lib()->aclrtMemcpy(x->data, x->nbytes, host, x->nbytes,
	    ACL_MEMCPY_HOST_TO_DEVICE));
	free(host);
}

void
as_fill(struct as_tensor *x, float *ret)
{
	int is_real = x->dtype == ACL_FLOAT || x->dtype == ACL_FLOAT16;
	size_t i;

	for (i = 0; i < x->n; i++)
		ret[i] = ((float)t_rand_below(16) - 8) * (is_real ? 0.125f :
		    1);
	as_put(x, ret);
}

void
as_get(const struct as_tensor *x, float *v)
{
	void *host = malloc(x->nbytes);
	size_t i;

	ck_assert_ptr_nonnull(host);
	as_ok(as_lib()->aclrtMemcpy(host, x->nbytes, x->data, x->nbytes,
	    ACL_MEMCPY_DEVICE_TO_HOST));
	for (i = 0; i < x->n; i++)
		v[i] = x->dtype == ACL_FLOAT ? ((float *)host)[i] :
		    half_to_float(((uint16_t *)host)[i]);
	free(host);
}

void
as_free(struct as_tensor *x)
{
	as_ok(as_lib()->aclDestroyTensor(x->t));
	as_ok(as_lib()->aclrtFree(x->data));
}

int
as_finish(enum acl_operator op, uint64_t ws_bytes, struct acl_executor *ex)
{
	const struct acl_lib *l = as_lib();
	void *ws = NULL;
	int rc;

	if (ws_bytes > 0)
		as_ok(l->aclrtMalloc(&ws, ws_bytes, 0));
	rc = l->run[op](ws, ws_bytes, ex, NULL);
	if (rc == ACL_SUCCESS)
		rc = l->aclrtSynchronizeStreamWithTimeout(NULL, 1000);
	if (ws != NULL)
		as_ok(l->aclrtFree(ws));
	return rc;
}
