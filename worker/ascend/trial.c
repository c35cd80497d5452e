/* worker/ascend/trial.c - see trial.h.
 *
 * Numbers are small multiples of 1/8, so that sums of products are exact in any
 * order, and wrong ones show in each bit; a second product of fractions shows whether
 * the order changes with the rows. */
#include "trial.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "kernels/types/quant.h"
#include "shm/event.h"

#define WAIT_NS		UINT64_C(20000000000)

/* The shapes: a small one, and one with rows beyond a segment. */
enum { TRIAL_N = 48, TRIAL_K = 272, LONG_K = ASCEND_SEGMENT + 64 };

/* The library's own workspace is not smaller on other shapes: this much is kept. */
#define LEAST_WORKSPACE	(1 * MIB)

struct trial {
	struct acl_products p;
	struct acl_choice choice;
	struct acl_matrix w;
	void *blocks[4];		/* of the device */
	unsigned nblocks;
	struct acl_host_block host[2];
	uint16_t *values;		/* of W, on its way */
	uint16_t x[ASCEND_ROWS * LONG_K];	/* rows x k */
};

/* --- numbers --- */

static uint32_t
random_bits(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

static float
number(uint32_t *state, int is_exact)
{
	int v = (int)(random_bits(state) % 15) - 7;

	return is_exact ? (float)v / 8 : (float)v / 8 +
	    (float)(random_bits(state) % 1000) / 4096;
}

/* --- memory: a block each, which the device gives back at once --- */

static int
device_block(struct trial *t, uint64_t nbytes, void **ret, struct err *reterr)
{
	const struct acl_source *src = &t->p.s->src;
	int rc = src->lib->aclrtMalloc(ret, nbytes, ACL_MEM_MALLOC_HUGE_FIRST);

	if (rc != ACL_SUCCESS)
		return acl_failed(src->lib, src->session, "aclrtMalloc", rc,
		    reterr);
	t->blocks[t->nblocks++] = *ret;
	return 0;
}

static void
end_memory(struct trial *t)
{
	const struct acl_source *src = &t->p.s->src;
	unsigned i;

	while (t->nblocks > 0)
		src->lib->aclrtFree(t->blocks[--t->nblocks]);
	for (i = 0; i < NITEMS(t->host); i++)
		acl_host_free(src, &t->host[i], NULL);
	free(t->values);
	t->values = NULL;
}

static int
begin_memory(struct trial *t, struct err *reterr)
{
	struct acl_products *p = &t->p;
	const struct acl_source *src = &p->s->src;
	void *w;
	int rc;

	p->a_bytes = (uint64_t)ASCEND_ROWS * t->w.k * sizeof(uint16_t);
	p->c_bytes = (uint64_t)ASCEND_ROWS * t->w.n * sizeof(float) *
	    ascend_segments(&t->choice.chip, t->w.k);
	if ((rc = acl_host_alloc(src, p->a_bytes, "A", &t->host[0],
	    reterr)) < 0 || (rc = acl_host_alloc(src, p->c_bytes, "C",
	    &t->host[1], reterr)) < 0)
		return rc;
	p->a = p->device_a = t->host[0].p;
	p->c = p->device_c = t->host[1].p;
	if (t->choice.chip.has_memory && ((rc = device_block(t, p->a_bytes,
	    &p->device_a, reterr)) < 0 || (rc = device_block(t, p->c_bytes,
	    &p->device_c, reterr)) < 0))
		return rc;
	p->workspace = NULL;
	if (p->workspace_need > 0 && (rc = device_block(t, p->workspace_need,
	    &p->workspace, reterr)) < 0)
		return rc;
	if ((rc = device_block(t, ascend_weight_bytes(t->w.n, t->w.k), &w,
	    reterr)) < 0)
		return rc;
	t->w.w = w;
	t->values = malloc(ascend_weight_bytes(t->w.n, t->w.k));
	return t->values != NULL ? 0 : err_nomem(reterr, "a trial");
}

/* --- a product --- */

static int
put_weights(struct trial *t, int is_exact, struct err *reterr)
{
	const struct acl_source *src = &t->p.s->src;
	uint64_t n = ascend_weight_bytes(t->w.n, t->w.k);
	uint32_t state = 1, i, j;
	int rc;

	for (i = 0; i < t->w.n; i++)
		for (j = 0; j < t->w.k; j++)
			t->values[acl_w_index(&t->p, &t->w, i, j)] =
			    float_to_half(number(&state, is_exact));
	rc = src->lib->aclrtMemcpy((void *)(uintptr_t)t->w.w, n, t->values, n,
	    ACL_MEMCPY_HOST_TO_DEVICE);
	return rc == ACL_SUCCESS ? 0 : acl_failed(src->lib, src->session,
	    "aclrtMemcpy", rc, reterr);
}

static void
make_rows(struct trial *t, int is_exact)
{
	uint32_t state = 2, i;

	for (i = 0; i < ASCEND_ROWS * t->w.k; i++)
		t->x[i] = float_to_half(number(&state, is_exact));
}

/* Rows [first, first + m) of x, in a product of m rows: results (m x n). */
static int
multiply(struct trial *t, uint32_t first, uint32_t m, float *ret,
    struct err *reterr)
{
	uint32_t r, k;
	int rc;

	memset(t->p.a, 0, t->p.a_bytes);
	memset(t->p.c, 0xff, t->p.c_bytes);
	for (r = 0; r < m; r++)
		for (k = 0; k < t->w.k; k++)
			t->p.a[acl_a_index(&t->p, t->w.k, ASCEND_ROWS, r, k)] =
			    t->x[(first + r) * t->w.k + k];
	if ((rc = acl_products_send(&t->p, t->w.k, ASCEND_ROWS, reterr)) < 0 ||
	    (rc = acl_products_start(&t->p, &t->w, ASCEND_ROWS, 0, m,
	    reterr)) < 0 || (rc = acl_session_wait(t->p.s, event_now_ns() +
	    WAIT_NS, reterr)) < 0)
		return rc;
	for (r = 0; r < m; r++)
		acl_products_read(&t->p, &t->w, m, r, ret + r * t->w.n);
	return 0;
}

static int
check_values(const struct trial *t, const float *got, struct err *reterr)
{
	const float within = t->choice.c_type == ACL_FLOAT ? 0 : 1.0f / 1024;
	uint32_t r, i, k;

	for (r = 0; r < ASCEND_ROWS; r++)
		for (i = 0; i < t->w.n; i++) {
			float want = 0, v = got[r * t->w.n + i];

			for (k = 0; k < t->w.k; k++)
				want += half_to_float(t->x[r * t->w.k + k]) *
				    half_to_float(t->values[acl_w_index(&t->p,
				    &t->w, i, k)]);
			if (!(fabsf(v - want) <= within * (fabsf(want) + 1)))
				return err_set(reterr, ERR_RUN, -EBADMSG,
				    "gives %g instead of %g", (double)v,
				    (double)want);
		}
	return 0;
}

/* Does each row have the same bits in products of any class, at any place?  1 or
 * 0. */
static int
check_rows(struct trial *t, const float *all, struct err *reterr)
{
	float *some = malloc(sizeof(float) * ASCEND_ROWS * t->w.n);
	unsigned i;
	uint32_t first, m;
	int rc = 1;

	if (some == NULL)
		return err_nomem(reterr, "a trial");
	for (i = 0; i < t->choice.nclasses && rc == 1; i++) {
		m = t->choice.rows[i];
		for (first = 0; first + m <= ASCEND_ROWS && rc == 1;
		    first += MAX(m / 2, 1u) + 12) {
			int r = multiply(t, first, m, some, reterr);

			if (r < 0)
				rc = r;
			else if (memcmp(some, all + first * t->w.n, (uint64_t)m
			    * t->w.n * sizeof(float)) != 0)
				rc = 0;
		}
	}
	free(some);
	return rc;
}

/* All rows, in products of the largest class. */
static int
multiply_all(struct trial *t, float *ret, struct err *reterr)
{
	const uint32_t m = t->choice.rows[t->choice.nclasses - 1];
	uint32_t r;
	int rc = 0;

	for (r = 0; r < ASCEND_ROWS && rc == 0; r += m)
		rc = multiply(t, r, m, ret + r * t->w.n, reterr);
	return rc;
}

/* Is this shape right, and independent of other rows?  1, 0 (it depends on them),
 * or an error. */
static int
try_shape(struct trial *t, uint32_t n, uint32_t k, struct err *reterr)
{
	float *all = malloc(sizeof(float) * ASCEND_ROWS * n);
	int rc = all == NULL ? err_nomem(reterr, "a trial") : 0;

	t->w = (struct acl_matrix){ .n = n, .k = k };
	if (rc == 0 && (rc = acl_products_prepare(&t->p, n, k, reterr)) == 0 &&
	    (rc = begin_memory(t, reterr)) == 0 &&
	    (rc = put_weights(t, 1, reterr)) == 0) {
		make_rows(t, 1);
		if ((rc = multiply_all(t, all, reterr)) == 0)
			rc = check_values(t, all, reterr);
	}
	if (rc == 0 && (rc = put_weights(t, 0, reterr)) == 0) {
		make_rows(t, 0);
		if ((rc = multiply_all(t, all, reterr)) == 0)
			rc = check_rows(t, all, reterr);
	}
	if (!t->p.s->is_lost)
		end_memory(t);
	free(all);
	return rc;
}

/* --- the ladder --- */

/* Both shapes, long rows in segments if they must be. */
static int
try_shapes(struct trial *t, struct err *reterr)
{
	int rc = try_shape(t, TRIAL_N, TRIAL_K, reterr);

	if (rc <= 0)
		return rc;
	t->choice.chip.cut_k = 0;
	rc = try_shape(t, TRIAL_N, LONG_K, reterr);
	if (rc > 0 || t->p.s->is_lost)
		return rc;
	acl_products_close(&t->p);
	t->choice.chip.cut_k = 1;
	return try_shape(t, TRIAL_N, LONG_K, reterr);
}

static const struct form {
	uint8_t c_type;
	uint8_t nclasses;
	uint16_t rows[ACL_CLASSES];
} forms[] = {
	{ ACL_FLOAT, 3, { 1, 8, ASCEND_ROWS } },
	{ ACL_FLOAT, 1, { ASCEND_FEW_ROWS } },
	{ ACL_FLOAT16, 3, { 1, 8, ASCEND_ROWS } },
	{ ACL_FLOAT16, 1, { ASCEND_FEW_ROWS } },
};

/* Keep the end of a message: what failed. */
static void
set_reason(struct acl_choice *c, enum acl_way way, const char *msg)
{
	const char *s = strstr(msg, "failed with ");

	if (c->reason[0] != '\0')
		return;
	if (s != NULL)
		snprintf(c->reason, sizeof(c->reason), "%s: %.*s",
		    acl_way_name(way), (int)strcspn(s, "("), s);
	else
		snprintf(c->reason, sizeof(c->reason), "%s %.40s",
		    acl_way_name(way), msg);
}

/* 1: this way, as in t->choice.  0: not this one.  -errno: nothing more can be
 * tried. */
static int
try_way(struct trial *t, enum acl_way way, struct acl_choice *ret)
{
	struct err e = { 0 };
	unsigned i;
	int rc = 0;

	t->choice.way = (uint8_t)way;
	for (i = 0; i < NITEMS(forms) && rc <= 0; i++) {
		t->choice.c_type = forms[i].c_type;
		t->choice.nclasses = forms[i].nclasses;
		memcpy(t->choice.rows, forms[i].rows, sizeof(forms[i].rows));
		t->choice.chip.cut_k = 0;
		rc = try_shapes(t, &e);
		t->choice.chip.workspace_bytes =
		    MAX(t->choice.chip.workspace_bytes, t->p.workspace_need);
		if (t->p.s->is_lost && rc == -ETIMEDOUT) {
			set_reason(ret, way, "does not end");
			return -ETIMEDOUT;
		}
		acl_products_close(&t->p);
		if (rc <= 0)
			set_reason(ret, way, rc < 0 ? e.msg :
			    "depends on other rows");
		if (t->p.s->is_lost) {
			end_memory(t);
			if (acl_session_renew(t->p.s, &e) < 0)
				return -EIO;
		}
	}
	return rc > 0;
}

void
acl_choose(struct acl_session *s, struct acl_choice *ret)
{
	struct trial *t = calloc(1, sizeof(*t));
	unsigned way;
	int rc = 0;

	if (t == NULL) {
		strlcpy(ret->reason, "no memory for a trial",
		    sizeof(ret->reason));
		return;
	}
	t->choice = *ret;
	t->p.s = s;
	t->p.choice = &t->choice;
	for (way = ACL_WAY_NONE + 1; way < ACL_NWAYS && rc == 0; way++) {
		if (!acl_way_is_there(s->src.lib, (enum acl_way)way)) {
			set_reason(ret, (enum acl_way)way,
			    "is not in this CANN");
			continue;
		}
		rc = try_way(t, (enum acl_way)way, ret);
	}
	if (rc > 0) {
		memcpy(t->choice.reason, ret->reason, sizeof(ret->reason));
		*ret = t->choice;
		ret->chip.workspace_bytes = MAX(ALIGN_UP(2 *
		    ret->chip.workspace_bytes, MIB), (uint64_t)LEAST_WORKSPACE);
	}
	free(t);
}
