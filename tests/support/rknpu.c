/* tests/support/rknpu.c - see rknpu.h. */
#include "rknpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/types/quant.h"

static __typeof__(rknn_standin_counts) *get_counts;

void
rk_load_standin(const char *switches)
{
	char path[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 40);
	void *so, *p = NULL;

	setenv("STRADDLE_RKNN", switches, 1);
	path[n > 0 ? n : 0] = '\0';
	if ((slash = strrchr(path, '/')) == NULL)
		exit(1);
	strcpy(slash + 1, "../standin/" RKNN_LIBRARY);
	if ((so = dlopen(path, RTLD_NOW)) == NULL ||
	    (p = dlsym(so, "rknn_standin_counts")) == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	memcpy(&get_counts, &p, sizeof(p));
}

const struct rknn_lib *
rk_lib(void)
{
	const struct rknn_lib *lib;
	struct err e = { 0 };

	t_ok(rknn_load(&lib, &e), &e);
	return lib;
}

struct rknn_standin_counts
rk_counts(void)
{
	struct rknn_standin_counts c;

	get_counts(&c);
	return c;
}

static void
check_clean(void)
{
	struct rknn_standin_counts c = rk_counts();

	ck_assert_msg(c.misuses == 0, "%u misuses: %s", c.misuses,
	    c.first_misuse);
	ck_assert_msg(c.contexts == 0 && c.mems == 0, "%u contexts and %u "
	    "memories are left", c.contexts, c.mems);
}

int
rk_child(const char *switches, void (*fn)(void))
{
	pid_t pid;
	int status = -1;

	fflush(NULL);
	if ((pid = fork()) == 0) {
		rk_load_standin(switches);
		fn();
		check_clean();
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

const struct rknpu_soc *
rk_soc(const char *name)
{
	const struct rknpu_soc *s;
	unsigned i;

	for (i = 0; (s = rknpu_soc(i)) != NULL; i++)
		if (strcasecmp(s->name, name) == 0)
			return s;
	ck_abort_msg("no chip %s", name);
	return NULL;
}

/* --- a product --- */

static struct rknn_matmul_tensor_attr *
attr_of(struct rk_product *p, enum rknpu_matrix matrix)
{
	return matrix == RKNPU_A ? &p->attr.A : matrix == RKNPU_B ?
	    &p->attr.B : &p->attr.C;
}

/* Floats are small, so that no sum of float32 is rounded. */
static int8_t
random_value(int type)
{
	return (int8_t)(type == RKNN_TENSOR_INT8 ?
	    (int)t_rand_below(256) - 128 : (int)t_rand_below(16) - 8);
}

static void
make_inputs(struct rk_product *p)
{
	size_t m = (size_t)p->info.M, k = (size_t)p->info.K;
	size_t n = (size_t)p->info.N, i, j, l;

	p->a = malloc(m * k);
	p->b = malloc(k * n);
	p->sum = calloc(m * n, sizeof(*p->sum));
	ck_assert(p->a != NULL && p->b != NULL && p->sum != NULL);
	for (i = 0; i < m * k; i++)
		p->a[i] = random_value(p->layout[RKNPU_A].type);
	for (i = 0; i < k * n; i++)
		p->b[i] = random_value(p->layout[RKNPU_B].type);
	for (i = 0; i < m; i++)
		for (l = 0; l < k; l++)
			for (j = 0; j < n; j++)
				p->sum[i * n + j] += p->a[i * k + l] *
				    p->b[l * n + j];
}

int
rk_open(struct rk_product *p, const char *soc,
    const struct rknn_matmul_info *info)
{
	const struct rknn_lib *lib = rk_lib();
	struct err e = { 0 };
	int rc, i;

	memset(p, 0, sizeof(*p));
	p->soc = rk_soc(soc);
	p->info = *info;
	if ((rc = lib->rknn_matmul_create(&p->ctx, &p->info, &p->attr)) !=
	    RKNN_SUCC)
		return rc;
	for (i = RKNPU_A; i <= RKNPU_C; i++) {
		t_ok(rknpu_read_layout(p->soc, info, (enum rknpu_matrix)i,
		    attr_of(p, (enum rknpu_matrix)i), &p->layout[i], &e), &e);
		p->mem[i] = lib->rknn_create_mem(p->ctx,
		    (uint32_t)p->layout[i].nbytes);
		ck_assert_ptr_nonnull(p->mem[i]);
	}
	make_inputs(p);
	return RKNN_SUCC;
}

void
rk_put(struct rk_product *p, enum rknpu_matrix matrix)
{
	const struct rknpu_layout *l = &p->layout[matrix];
	const int8_t *src = matrix == RKNPU_A ? p->a : p->b;
	size_t i, n = (size_t)l->rows * l->cols;
	uint16_t *half;

	if (l->type != RKNN_TENSOR_FLOAT16) {
		rknpu_pack(l, p->mem[matrix]->virt_addr, src, l->rows,
		    l->cols);
		return;
	}
	half = malloc(n * sizeof(*half));
	ck_assert_ptr_nonnull(half);
	for (i = 0; i < n; i++)
		half[i] = float_to_half(src[i]);
	rknpu_pack(l, p->mem[matrix]->virt_addr, half, l->rows, l->cols);
	free(half);
}

void
rk_sync(struct rk_product *p, enum rknpu_matrix matrix, int mode)
{
	ck_assert_int_eq(rk_lib()->rknn_mem_sync(p->ctx, p->mem[matrix], mode),
	    RKNN_SUCC);
}

int
rk_bind(struct rk_product *p, enum rknpu_matrix matrix)
{
	return rk_lib()->rknn_matmul_set_io_mem(p->ctx, p->mem[matrix],
	    attr_of(p, matrix));
}

static double
clamp(double v, double low, double high)
{
	return v < low ? low : v > high ? high : v;
}

/* Element i of row-major C, and what it must be. */
static double
value_of(int type, const void *c, size_t i)
{
	switch (type) {
	case RKNN_TENSOR_INT8:
		return ((const int8_t *)c)[i];
	case RKNN_TENSOR_INT16:
		return ((const int16_t *)c)[i];
	case RKNN_TENSOR_INT32:
		return ((const int32_t *)c)[i];
	case RKNN_TENSOR_FLOAT16:
		return half_to_float(((const uint16_t *)c)[i]);
	case RKNN_TENSOR_BFLOAT16:
		return bf16_to_float(((const uint16_t *)c)[i]);
	}
	return ((const float *)c)[i];
}

static double
wanted(int type, double sum)
{
	switch (type) {
	case RKNN_TENSOR_INT8:
		return clamp(sum, INT8_MIN, INT8_MAX);
	case RKNN_TENSOR_INT16:
		return clamp(sum, INT16_MIN, INT16_MAX);
	case RKNN_TENSOR_FLOAT16:
		return half_to_float(float_to_half((float)sum));
	case RKNN_TENSOR_BFLOAT16:
		return bf16_to_float(float_to_bf16((float)sum));
	}
	return sum;
}

int
rk_is_right(const struct rk_product *p)
{
	const struct rknpu_layout *l = &p->layout[RKNPU_C];
	struct rknpu_part all = { 0, l->rows, 0, l->cols, l->cols, 1 };
	size_t i, n = (size_t)l->rows * l->cols;
	void *c = calloc(n, 4);
	int right = 1;

	ck_assert_ptr_nonnull(c);
	rknpu_unpack_part(l, p->mem[RKNPU_C]->virt_addr, c, &all);
	for (i = 0; i < n && right; i++)
		right = value_of(l->type, c, i) == wanted(l->type, p->sum[i]);
	free(c);
	return right;
}

int
rk_multiply(struct rk_product *p)
{
	int rc;

	rk_put(p, RKNPU_A);
	rk_put(p, RKNPU_B);
	rk_sync(p, RKNPU_A, RKNN_MEMORY_SYNC_TO_DEVICE);
	rk_sync(p, RKNPU_B, RKNN_MEMORY_SYNC_TO_DEVICE);
	if ((rc = rk_bind(p, RKNPU_B)) != RKNN_SUCC ||
	    (rc = rk_bind(p, RKNPU_A)) != RKNN_SUCC ||
	    (rc = rk_bind(p, RKNPU_C)) != RKNN_SUCC ||
	    (rc = rk_lib()->rknn_matmul_run(p->ctx)) != RKNN_SUCC)
		return rc;
	rk_sync(p, RKNPU_C, RKNN_MEMORY_SYNC_FROM_DEVICE);
	return RKNN_SUCC;
}

void
rk_close(struct rk_product *p)
{
	const struct rknn_lib *lib = rk_lib();
	int i;

	for (i = RKNPU_A; i <= RKNPU_C; i++)
		if (p->mem[i] != NULL)
			ck_assert_int_eq(lib->rknn_destroy_mem(p->ctx,
			    p->mem[i]), RKNN_SUCC);
	if (p->ctx != 0)
		ck_assert_int_eq(lib->rknn_matmul_destroy(p->ctx), RKNN_SUCC);
	free(p->a);
	free(p->b);
	free(p->sum);
	memset(p, 0, sizeof(*p));
}

/* --- tests of the stand-in --- */

void
rk_open_native(struct rk_product *p, int domain)
{
	struct rknn_matmul_info info;

	rknn_info(&info, RKNN_INT8_MM_INT8_TO_INT32, 3, 64, 64);
	info.B_layout = info.AC_layout = RKNN_MM_LAYOUT_NATIVE;
	info.iommu_domain_id = domain;
	ck_assert_int_eq(rk_open(p, "rk3588", &info), RKNN_SUCC);
}

void
rk_open_type(struct rk_product *p, int type, uint32_t k)
{
	struct rknn_matmul_info info;

	rknn_info(&info, type, 2, k, 64);
	info.B_layout = RKNN_MM_LAYOUT_NATIVE;
	ck_assert_int_eq(rk_open(p, "rk3588", &info), RKNN_SUCC);
}

int
rk_run_again(struct rk_product *p)
{
	int rc = rk_lib()->rknn_matmul_run(p->ctx);

	rk_sync(p, RKNPU_C, RKNN_MEMORY_SYNC_FROM_DEVICE);
	return rc;
}

void
rk_double_a(struct rk_product *p)
{
	size_t i;

	for (i = 0; i < (size_t)p->info.M * (size_t)p->info.K; i++)
		p->a[i] = (int8_t)(p->a[i] / 4 * 2);
	memset(p->sum, 0, (size_t)p->info.M * (size_t)p->info.N *
	    sizeof(*p->sum));
	for (i = 0; i < (size_t)p->info.M * (size_t)p->info.N; i++) {
		size_t m = i / (size_t)p->info.N, n = i % (size_t)p->info.N;
		size_t k, nk = (size_t)p->info.K;

		for (k = 0; k < nk; k++)
			p->sum[i] += p->a[m * nk + k] *
			    p->b[k * (size_t)p->info.N + n];
	}
}

void
rk_expect_abort(const char *switches, void (*fn)(void))
{
	int status = rk_child(switches, fn);

	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
	    "%s: status %#x", switches, status);
}

int
rk_create(int type, int m, int k, int n, int b_layout)
{
	const struct rknn_lib *lib = rk_lib();
	struct rknn_matmul_io_attr attr;
	struct rknn_matmul_info info;
	uint64_t ctx;
	int rc;

	rknn_info(&info, type, (uint32_t)m, (uint32_t)k, (uint32_t)n);
	info.B_layout = (int16_t)b_layout;
	if ((rc = lib->rknn_matmul_create(&ctx, &info, &attr)) == RKNN_SUCC)
		ck_assert_int_eq(lib->rknn_matmul_destroy(ctx), RKNN_SUCC);
	return rc;
}
