/* tests/standin/rknnrt_run.c - binds memory to contexts of the stand-in for
 * librknnrt.so, and runs them on its cores. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rknnrt.h"

/* --- bind --- */

/* B that is not native, as the NPU's memory has it now. */
static int
convert_bound_b(struct context *c, const struct view *v)
{
	const struct product *p = &c->shape[c->current];
	uint8_t *copy;

	if (p->b_layout == RKNN_MM_LAYOUT_NATIVE)
		return RKNN_SUCC;
	if ((copy = calloc(1, tensor_bytes(p, 'B'))) == NULL)
		return RKNN_ERR_MALLOC_FAIL;
	convert_b(p, view_device(v), 0, copy);
	free(c->converted);
	c->converted = copy;
	return RKNN_SUCC;
}

static int
bind_locked(struct context *c, const struct rknn_tensor_mem *mem,
    const struct rknn_matmul_tensor_attr *attr)
{
	struct rknn_matmul_tensor_attr want;
	struct view v;
	int m;

	for (m = A; m <= C; m++)
		if (attr->name[0] == MATRIX_NAME(m) && attr->name[1] == '\0')
			break;
	if (m > C)
		return RKNN_ERR_PARAM_INVALID;
	fill_attr(&c->shape[c->current], MATRIX_NAME(m), &want);
	if (memcmp(&want, attr, sizeof(want)) != 0 || mem == NULL)
		return RKNN_ERR_PARAM_INVALID;
	if (!find_view(mem, &v) || v.nbytes < want.size)
		return RKNN_ERR_PARAM_INVALID;
	c->bound[m] = v;
	rknn_counts.binds++;
	return m == B ? convert_bound_b(c, &v) : RKNN_SUCC;
}

EXPORT int
rknn_matmul_set_io_mem(uint64_t ctx, struct rknn_tensor_mem *mem,
    struct rknn_matmul_tensor_attr *attr)
{
	struct context *c;
	int rc = injected("set_io_mem");

	if (rc != RKNN_SUCC)
		return rc;
	pthread_mutex_lock(&rknn_lock);
	c = must_find("rknn_matmul_set_io_mem", ctx);
	rc = c == NULL ? RKNN_ERR_CTX_INVALID : bind_locked(c, mem, attr);
	pthread_mutex_unlock(&rknn_lock);
	return rc;
}

/* --- run --- */

/* May the context run?  With the lock. */
static int
check_run(struct context *c)
{
	int m;

	for (m = A; m <= C; m++) {
		if (c->bound[m].buf == NULL) {
			misused("rknn_matmul_run: %c is not bound",
			    MATRIX_NAME(m));
			return m == C ? RKNN_ERR_OUTPUT_INVALID :
			    RKNN_ERR_INPUT_INVALID;
		}
		/* B that was converted is not read again. */
		if (m == B && c->converted != NULL)
			continue;
		if (!view_is_alive(&c->bound[m]))
			misused("rknn_matmul_run: the memory of %c was "
			    "destroyed", MATRIX_NAME(m));
		else if (view_domain(&c->bound[m]) != c->domain)
			misused("rknn_matmul_run: %c is in domain %d, the "
			    "context in %d", MATRIX_NAME(m),
			    view_domain(&c->bound[m]), c->domain);
		else
			continue;
		complain("failed to submit!, op name: MatMul, flags 0x5");
		return RKNN_ERR_FAIL;
	}
	if (c->running) {
		misused("rknn_matmul_run: the context runs already");
		return RKNN_ERR_FAIL;
	}
	return RKNN_SUCC;
}

static void
spoil(const struct context *c, const struct product *p, uint8_t *out)
{
	const struct switches *sw = switches();

	if (list_has(&sw->zero, p->type) || p->type ==
	    RKNN_INT8_MM_INT8_TO_FLOAT32 || (c->has_scales && c->quant_b >=
	    RKNN_QUANT_TYPE_PER_CHANNEL_SYM))
		memset(out, 0, tensor_bytes(p, 'C'));
	if (list_has(&sw->wrong, p->type))
		out[0] ^= 1;
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Without the lock, so that cores work side by side. */
static int
compute(const struct context *c, const struct product *p)
{
	uint64_t end_ns = now_ns() + switches()->time * model_ns(p);
	uint8_t *out = view_device(&c->bound[C]);
	int rc;

	if (p->type == RKNN_INT8_MM_INT8_TO_FLOAT32 && switches()->abort_9 &&
	    c->quant_b < RKNN_QUANT_TYPE_PER_GROUP_SYM)
		fatal_error("Failed to config layer: 'matmul', Fatal Error "
		    "(type 9)");
	rc = multiply(p, view_device(&c->bound[A]), c->converted != NULL ?
	    c->converted : view_device(&c->bound[B]), out);
	spoil(c, p, out);
	while (switches()->time != 0 && now_ns() < end_ns)
		nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
	return rc < 0 ? RKNN_ERR_MALLOC_FAIL : RKNN_SUCC;
}

/* A core has one job at a time. */
static int core_is_busy[3];
static pthread_cond_t core_is_free = PTHREAD_COND_INITIALIZER;

/* An idle core that the mask allows, -1 = none; 0 = any core. */
static int
idle_core(int mask)
{
	int i;

	for (i = 0; i < switches()->chip->ncores; i++)
		if ((mask == 0 || mask >> i & 1) && !core_is_busy[i])
			return i;
	return -1;
}

static int
take_core(int mask)
{
	int core;

	pthread_mutex_lock(&rknn_lock);
	while ((core = idle_core(mask)) < 0)
		pthread_cond_wait(&core_is_free, &rknn_lock);
	core_is_busy[core] = 1;
	rknn_counts.core_runs[core]++;
	pthread_mutex_unlock(&rknn_lock);
	return core;
}

static void
free_core(int core)
{
	pthread_mutex_lock(&rknn_lock);
	core_is_busy[core] = 0;
	pthread_cond_broadcast(&core_is_free);
	pthread_mutex_unlock(&rknn_lock);
}

static int
run_on_core(struct context *c)
{
	const struct product *p = &c->shape[c->current];
	int core = take_core(c->mask), rc = RKNN_ERR_FAIL;

	if (attach_domain(c->domain) == 0) {
		rc = compute(c, p);
		detach_domain();
	}
	free_core(core);
	return rc;
}

EXPORT int
rknn_matmul_run(uint64_t ctx)
{
	struct context *c;
	int rc = injected("run");

	if (rc != RKNN_SUCC)
		return rc;
	pthread_mutex_lock(&rknn_lock);
	c = must_find("rknn_matmul_run", ctx);
	rc = c == NULL ? RKNN_ERR_CTX_INVALID : check_run(c);
	if (rc == RKNN_SUCC)
		c->running = 1;
	pthread_mutex_unlock(&rknn_lock);
	if (rc != RKNN_SUCC)
		return rc;
	rc = run_on_core(c);
	pthread_mutex_lock(&rknn_lock);
	c->running = 0;
	rknn_counts.runs++;
	rknn_counts.modelled_ns += model_ns(&c->shape[c->current]);
	pthread_mutex_unlock(&rknn_lock);
	return rc;
}
