/* tests/support/rknpu_side.c - see rknpu_side.h. */
#include "rknpu_side.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "shm/event.h"
#include "kernel_inputs.h"

void
rk_set_chip(const char *soc)
{
	char root[256], path[128], text[64];
	int n = snprintf(text, sizeof(text), "rockchip,%s", soc);

	snprintf(root, sizeof(root), "%s/%s", t_tmpdir(), soc);
	snprintf(path, sizeof(path), "/%s/proc/device-tree/compatible", soc);
	t_put_file(t_tmpdir(), path, text, (size_t)n + 1);
	setenv("STRADDLE_RKNPU_ROOT", root, 1);
}

void
rk_side_open(struct rk_side *s)
{
	struct err e = { 0 };

	memset(s, 0, sizeof(*s));
	rand_seed(t_rand());
	kernels_init(&s->kernels, cpu_flags());
	kernels_set_layout(&s->kernels, LAYOUT_RKNPU);
	mem_ledger_init(&s->ledger, "npu0", GIB);
	t_ok(npu_open(&(struct device_conf){ .session = "npu0", .ledger =
	    &s->ledger }, &s->memo, &s->npu, &e), &e);
}

static void
pack(struct rk_side *s)
{
	const struct mat *m = &s->mat;
	const uint64_t nbytes = m->n * quant_row_bytes(m->type, m->k);
	uint8_t *rows = malloc(nbytes);
	struct err e = { 0 };

	ck_assert_ptr_nonnull(rows);
	fill_rows(rows, m->type, nbytes, IN_RANDOM);
	npu_set_form(s->mem.host, m->type, m->n, m->k,
	    npu_form_of(s->npu->soc));
	s->kernels.mat[m->type].pack(s->mem.host, rows, 0, m->n, m->n, m->k);
	t_ok(npu_publish(s->npu, &s->mem, &e), &e);
	free(rows);
}

void
rk_side_add(struct rk_side *s, uint32_t type, uint32_t n, uint32_t k)
{
	const struct npu_chip chip = npu_chip(s->npu);
	struct npu_sizes sizes = { 0 };
	struct err e = { 0 };
	uint32_t i;

	t_ok(npu_alloc(s->npu, npu_packed_bytes(type, n, k), "a matrix",
	    &s->mem, &e), &e);
	s->mat = (struct mat){ s->mem.host, n, k, type };
	pack(s);
	npu_sizes_add(&sizes, &chip, type, n, k);
	t_ok(npu_work_open(s->npu, &sizes, &s->work, &e), &e);
	s->ldx = act_row_bytes(ACT_F32, k) / sizeof(float);
	s->x = calloc(NPU_MOST_ROWS * s->ldx, sizeof(float));
	s->y = calloc((size_t)NPU_MOST_ROWS * n, sizeof(float));
	s->want = calloc((size_t)NPU_MOST_ROWS * n, sizeof(float));
	s->bias = calloc(n, sizeof(float));
	ck_assert(s->x != NULL && s->y != NULL && s->want != NULL &&
	    s->bias != NULL);
	for (i = 0; i < n; i++)
		s->bias[i] = t_rand_float(-3, 3);
}

int
rk_side_cut(struct rk_side *s, struct err *reterr)
{
	return product_open(&s->work, &s->mat, &s->mem, &s->product, reterr);
}

int
rk_side_run(struct rk_side *s, uint32_t nrows, uint64_t deadline_ns,
    struct err *reterr)
{
	const struct npu_rows rows = { s->x, s->ldx, nrows };
	const unsigned class = npu_class(nrows);
	uint32_t r;
	int rc;

	for (r = 0; r < nrows; r++) {
		fill_floats(s->x + r * s->ldx, s->mat.k, IN_RANDOM);
		if (r % 5 == 3)		/* all zeros; not finite */
			memset(s->x + r * s->ldx, 0, s->mat.k *
			    sizeof(float));
		if (r % 7 == 5)
			s->x[r * s->ldx + s->mat.k - 1] = INFINITY;
	}
	if ((rc = product_put(&s->work, s->product, class, &rows, &par_alone,
	    reterr)) < 0)
		return rc;
	return product_run(&s->work, s->product, class, nrows, s->y, s->mat.n,
	    s->bias, deadline_ns, reterr);
}

void
rk_side_check(struct rk_side *s, uint32_t nrows)
{
	const uint32_t n = s->mat.n;
	struct err e = { 0 };
	size_t i;

	memset(s->y, 0x5a, (size_t)NPU_MOST_ROWS * n * sizeof(float));
	t_ok(rk_side_run(s, nrows, event_now_ns() + UINT64_C(60000000000),
	    &e), &e);
	s->kernels.mat[s->mat.type].matmul(s->want, n, s->x, NULL, &s->mat,
	    s->bias, nrows, 0, n);
	for (i = 0; i < (size_t)nrows * n; i++)
		ck_assert_msg(memcmp(&s->y[i], &s->want[i], sizeof(float)) ==
		    0, "%s, %u x %u: row %zu of %u, column %zu: %a instead of "
		    "%a", quant_info(s->mat.type)->name, n, s->mat.k, i / n,
		    nrows, i % n, (double)s->y[i], (double)s->want[i]);
	memset(&s->want[0], 0x5a, sizeof(float));
	for (; i < (size_t)NPU_MOST_ROWS * n; i++)
		ck_assert_msg(memcmp(&s->y[i], &s->want[0], sizeof(float)) ==
		    0, "row %zu was written, of %u", i / n, nrows);
}

void
rk_side_drop(struct rk_side *s)
{
	product_close(&s->work, s->product);
	npu_work_close(&s->work);
	npu_free(s->npu, &s->mem);
	free(s->x);
	free(s->y);
	free(s->want);
	free(s->bias);
	s->product = NULL;
	s->x = s->y = s->want = s->bias = NULL;
}

void
rk_side_close(struct rk_side *s)
{
	rk_side_drop(s);
	npu_close(s->npu);
	ck_assert_uint_eq(s->ledger.used_bytes, 0);
}
