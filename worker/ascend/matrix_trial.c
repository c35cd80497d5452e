/* worker/ascend/matrix_trial.c - see matrix_trial.h.
 *
 * W is a pattern of random numbers over and over: a large one takes long to make, and
 * the pattern's length divides no row.  Numbers are fractions whose sums are rounded,
 * so that another order of sums shows. */
#include "matrix_trial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "shm/event.h"
#include "clock.h"
#include "trial.h"

/* The device's own timeout of an operator comes first. */
#define WAIT_NS		(UINT64_C(1000000000) * (ACL_OPERATOR_S + 2))

#define MOST_WEIGHTS	GIB
#define PATTERN_BYTES	(1 * MIB - 64)

/* Columns that are compared with sums of the host: three groups. */
enum { CHECKED = 8 };

/* Another order of sums changes few results of 16 bits: columns of which there are
 * enough. */
enum { ENOUGH = 512 };

/* How far a sum may be off: of the sum of all magnitudes; for results of 16 bits also
 * of the sums of segments. */
#define OFF_SUM		0x1p-14
#define OFF_HALF	0x1p-10

enum { QUANTS, SCALES, OFFSETS };	/* pattern[] */

static const struct acl_form *
form_of(const struct acl_matrix_trial *t)
{
	return &t->p.choice->form[t->w.format];
}

/* --- numbers --- */

/* Eleven bits of different sizes: sums of products have more than 24. */
static uint16_t
fraction(uint32_t *state)
{
	const uint32_t size = 2048u << acl_trial_bits(state) % 6;
	const float v = (float)(1024 + acl_trial_bits(state) % 1024) /
	    (float)size;

	return float_to_half(acl_trial_bits(state) % 2 ? v : -v);
}

/* Four bits, so that a group's numbers are halves without rounding. */
static uint16_t
group_scale(enum ascend_format f, uint32_t *state)
{
	return float_to_half((float)(8 + acl_trial_bits(state) % 8) / (f ==
	    ASCEND_INT8 ? 1024 : 64));
}

/* The patterns of this format, unless they are there from the last matrix. */
static int
make_patterns(struct acl_matrix_trial *t, struct err *reterr)
{
	uint32_t state = 5, i;
	uint16_t v[ACL_PATTERNS];
	unsigned k;

	for (k = 0; k < ACL_PATTERNS; k++)
		if (t->pattern[k] == NULL && (t->pattern[k] =
		    malloc(PATTERN_BYTES)) == NULL)
			return err_nomem(reterr, "a trial");
	if (t->pattern_of == 1 + (unsigned)t->w.format)
		return 0;
	for (i = 0; i < PATTERN_BYTES; i += sizeof(v[0])) {
		v[QUANTS] = t->w.format == ASCEND_HALF ? fraction(&state) :
		    (uint16_t)acl_trial_bits(&state);
		v[SCALES] = group_scale(t->w.format, &state);
		v[OFFSETS] = float_to_half((float)(acl_trial_bits(&state) %
		    8) / 2);
		for (k = 0; k < ACL_PATTERNS; k++)
			memcpy(t->pattern[k] + i, &v[k], sizeof(v[k]));
	}
	t->pattern_of = 1 + (unsigned)t->w.format;
	return 0;
}

static double
half_at(const struct acl_matrix_trial *t, unsigned pattern, uint64_t i)
{
	uint16_t h;

	memcpy(&h, t->pattern[pattern] + i * sizeof(h) % PATTERN_BYTES,
	    sizeof(h));
	return (double)half_to_float(h);
}

/* Element (row, col) of W. */
static double
weight(const struct acl_matrix_trial *t, uint32_t row, uint32_t col)
{
	const uint64_t at = acl_w_index(&t->p, &t->w, row, col);
	uint8_t b;
	int v;

	if (t->w.format == ASCEND_HALF)
		return half_at(t, QUANTS, at);
	if (t->w.format == ASCEND_INT8) {
		v = (int8_t)t->pattern[QUANTS][at % PATTERN_BYTES];
	} else {
		b = t->pattern[QUANTS][at / 2 % PATTERN_BYTES] >> at % 2 * 4;
		v = (int)((b & 15) ^ 8) - 8;
	}
	return ((double)v + (t->w.format == ASCEND_OFFSETS ? half_at(t,
	    OFFSETS, at / ASCEND_GROUP) : 0)) * half_at(t, SCALES, at /
	    ASCEND_GROUP);
}

/* --- memory --- */

static void
end_memory(struct acl_matrix_trial *t)
{
	acl_trial_free(t->p.s, &t->memory);
	free(t->x);
	free(t->all);
	free(t->some);
	t->x = NULL;
	t->all = t->some = NULL;
}

static int
begin_memory(struct acl_matrix_trial *t, struct err *reterr)
{
	const uint64_t results = (uint64_t)ASCEND_ROWS * t->w.n;
	struct acl_products *p = &t->p;
	void *w;
	int rc;

	if ((rc = make_patterns(t, reterr)) < 0)
		return rc;
	t->x = calloc((uint64_t)ASCEND_ROWS * t->w.k, sizeof(*t->x));
	t->all = calloc(results, sizeof(*t->all));
	t->some = calloc(results, sizeof(*t->some));
	if (t->x == NULL || t->all == NULL || t->some == NULL)
		return err_nomem(reterr, "a trial");
	p->a_bytes = (uint64_t)ASCEND_ROWS * t->w.k * sizeof(uint16_t);
	p->c_bytes = acl_products_c_bytes(p, &t->w, t->top);
	if ((rc = acl_trial_alloc(p, ascend_weight_bytes(t->w.format, t->w.n,
	    t->w.k), &t->memory, &w, reterr)) < 0)
		return rc;
	t->w.w = w;
	return 0;
}

/* --- W and A --- */

static int
send_pattern(struct acl_matrix_trial *t, unsigned pattern, uint64_t from, uint64_t to,
    struct err *reterr)
{
	const struct acl_source *src = &t->p.s->src;
	uint64_t n;
	int rc;

	for (; from < to; from += n) {
		t->notes->steps++;
		n = MIN(PATTERN_BYTES, to - from);
		rc = src->lib->aclrtMemcpy((char *)(uintptr_t)t->w.w + from, n,
		    t->pattern[pattern], n, ACL_MEMCPY_HOST_TO_DEVICE);
		if (rc != ACL_SUCCESS)
			return acl_failed(src->lib, src->session,
			    "aclrtMemcpy", rc, reterr);
	}
	return 0;
}

static int
put_weights(struct acl_matrix_trial *t, struct err *reterr)
{
	const enum ascend_format f = t->w.format;
	const uint64_t all = ascend_weight_bytes(f, t->w.n, t->w.k);
	const uint64_t scales = f == ASCEND_HALF ? all : ascend_scales_at(f,
	    t->w.n, t->w.k);
	const uint64_t offsets = f != ASCEND_OFFSETS ? all :
	    ascend_offsets_at(f, t->w.n, t->w.k);
	int rc;

	if ((rc = send_pattern(t, QUANTS, 0, scales, reterr)) < 0 ||
	    (rc = send_pattern(t, SCALES, scales, offsets, reterr)) < 0 ||
	    (rc = send_pattern(t, OFFSETS, offsets, all, reterr)) < 0)
		return rc;
	return acl_products_convert(&t->p, &t->w, reterr);
}

static void
make_rows(struct acl_matrix_trial *t, uint32_t round)
{
	const uint64_t n = (uint64_t)ASCEND_ROWS * t->w.k;
	uint32_t state = 2 + round;
	uint64_t i;

	for (i = 0; i < n; i++)
		t->x[i] = fraction(&state);
}

/* The row of x that is row i of a product. */
static uint32_t
row_at(uint32_t first, uint32_t i)
{
	return (first + i) % ASCEND_ROWS;
}

static void
fill_a(struct acl_matrix_trial *t, uint32_t rows, uint32_t first, uint32_t m)
{
	const uint16_t *row;
	uint32_t i, j;

	memset(t->p.a, 0, (uint64_t)rows * t->w.k * sizeof(*t->p.a));
	for (i = 0; i < m; i++) {
		row = t->x + (uint64_t)row_at(first, i) * t->w.k;
		for (j = 0; j < t->w.k; j++)
			t->p.a[acl_a_index(&t->p, t->w.k, rows, i, j)] =
			    row[j];
	}
}

/* --- products --- */

/* m rows of x from `first` on, in one product: results (m x n). */
static int
multiply(struct acl_matrix_trial *t, uint32_t first, uint32_t m, float *ret,
    struct err *reterr)
{
	const uint32_t rows = acl_products_rows(&t->p, &t->w, m);

	t->notes->steps++;
	if (event_now_ns() > t->end_ns)
		return err_set(reterr, ERR_RUN, -ETIME, "no time is left");
	fill_a(t, rows, first, m);
	memset(t->p.c, 0xff, acl_products_c_bytes(&t->p, &t->w, m));
	return acl_trial_multiply(&t->p, &t->w, rows, m, ret, reterr);
}

/* All rows, in products of the largest class. */
static int
multiply_all(struct acl_matrix_trial *t, struct err *reterr)
{
	uint32_t r;
	int rc = 0;

	for (r = 0; r < ASCEND_ROWS && rc == 0; r += t->top)
		rc = multiply(t, r, t->top, t->all + (uint64_t)r * t->w.n,
		    reterr);
	return rc;
}

/* Is element (r, i) right? */
static int
is_right(const struct acl_matrix_trial *t, uint32_t r, uint32_t i)
{
	const uint16_t *x = t->x + (uint64_t)r * t->w.k;
	const uint32_t len = t->p.choice->chip.cut_k ? ASCEND_SEGMENT :
	    UINT32_MAX;
	double sum = 0, magnitude = 0, halves = 0, part = 0, v;
	uint32_t j;

	for (j = 0; j < t->w.k; j++) {
		v = (double)half_to_float(x[j]) * weight(t, i, j);
		part += v;
		magnitude += fabs(v);
		if ((j + 1) % len != 0 && j + 1 < t->w.k)
			continue;
		sum += part;
		halves += fabs(part);
		part = 0;
	}
	v = (double)t->all[(uint64_t)r * t->w.n + i];
	return fabs(v - sum) <= OFF_SUM * magnitude + (form_of(t)->c_type ==
	    ACL_FLOAT ? 0 : OFF_HALF * halves);
}

static int
are_values_right(struct acl_matrix_trial *t)
{
	const uint32_t n = t->w.n, count = MIN(n, (uint32_t)CHECKED);
	const uint32_t first[] = { 0, (n - count) / 2, n - count };
	unsigned g;
	uint32_t i;

	for (g = 0; g < NITEMS(first); g++)
		for (i = first[g]; i < first[g] + count; i++) {
			t->notes->steps++;
			if (!is_right(t, 0, i) || !is_right(t, ASCEND_ROWS - 1,
			    i))
				return 0;
		}
	return 1;
}

/* Have m rows from `first` on the same bits in one product as in t->all?  1, 0, or an
 * error. */
static int
is_same(struct acl_matrix_trial *t, uint32_t first, uint32_t m, struct err *reterr)
{
	const uint64_t n = t->w.n;
	uint32_t i;
	int rc = multiply(t, first, m, t->some, reterr);

	if (rc < 0)
		return rc;
	for (i = 0; i < m; i++)
		if (memcmp(t->some + i * n, t->all + row_at(first, i) * n,
		    n * sizeof(*t->some)) != 0)
			return 0;
	return 1;
}

/* Single rows are slow: every second to eighth one, as results are many. */
static uint32_t
single_step(const struct acl_matrix_trial *t)
{
	return form_of(t)->c_type == ACL_FLOAT ? 8 :
	    MIN(MAX(t->w.n / 128, 2u), 8u);
}

/* The same for all rows in each class of several, and for some alone, at other places
 * than in t->all, and with rows missing.  1, 0, or an error. */
static int
are_rows_same(struct acl_matrix_trial *t, struct err *reterr)
{
	const struct acl_form *f = form_of(t);
	uint32_t m, r, step, less = 1;
	unsigned i;
	int rc = 1;

	for (i = 0; i < f->nclasses && f->rows[i] <= t->top && rc == 1; i++) {
		m = f->rows[i];
		step = MAX(m, single_step(t));
		for (r = 0; r < ASCEND_ROWS && rc == 1; r += step)
			rc = is_same(t, r + 5, m, reterr);
		if (rc == 1 && (rc = is_same(t, 21, less, reterr)) == 1)
			rc = is_same(t, 63, (m + less) / 2, reterr);
		less = m + 1;
	}
	return rc;
}

/* --- a shape --- */

/* The calls for a matrix that is a part of N at most. */
static int
prepare(struct acl_matrix_trial *t, const struct acl_matrix *m, struct err *reterr)
{
	int rc;

	t->w = *m;
	t->p.is_limited = 1;
	if ((rc = acl_products_prepare(&t->p, &t->w, reterr)) < 0)
		return rc;
	if (ascend_weight_bytes(m->format, m->n, m->k) > MOST_WEIGHTS)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: a "
		    "matrix of %u x %u is too large for a trial",
		    t->p.s->src.session, m->n, m->k);
	t->top = acl_products_rows(&t->p, &t->w, t->most_rows > 0 ?
	    t->most_rows : ASCEND_ROWS);
	return 0;
}

/* FNV-1a of the results. */
#define FNV_BEGIN	UINT64_C(0xcbf29ce484222325)
static void
add_bits(struct acl_matrix_trial *t)
{
	const uint64_t n = (uint64_t)ASCEND_ROWS * t->w.n;
	uint64_t sum = t->timing->bits, i;
	uint32_t v;

	for (i = 0; i < n; i++) {
		memcpy(&v, &t->all[i], sizeof(v));
		sum = (sum ^ v) * UINT64_C(0x100000001b3);
	}
	t->timing->bits = sum;
}

/* An error, or 0 and the outcome. */
static int
check(struct acl_matrix_trial *t, enum acl_fn_outcome *ret, struct err *reterr)
{
	const uint32_t rounds = form_of(t)->c_type == ACL_FLOAT ? 1 :
	    DIV_UP((uint32_t)ENOUGH, t->w.n);
	uint32_t i;
	int rc = 0;

	if (t->timing != NULL)
		t->timing->bits = FNV_BEGIN;
	*ret = ACL_FN_RIGHT;
	for (i = 0; i < rounds && *ret == ACL_FN_RIGHT; i++) {
		make_rows(t, i);
		rc = multiply_all(t, reterr);
		if (rc == 0 && i == 0 && !are_values_right(t)) {
			*ret = ACL_FN_WRONG;
			return 0;
		}
		if (rc == 0 && t->timing != NULL)
			add_bits(t);
		if (rc == 0)
			rc = are_rows_same(t, reterr);
		*ret = rc < 0 ? ACL_FN_LATE : rc == 0 ? ACL_FN_COMPANY :
		    ACL_FN_RIGHT;
	}
	return MIN(rc, 0);
}

static int
compare_times(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Time a product of m rows, whose A is on the device: the median of some runs, after a
 * first one. */
enum { RUNS = 3 };
#define NEVER_NS	(UINT64_C(1) << 50)
static int
measure(struct acl_matrix_trial *t, struct acl_clock *c, uint32_t m, uint64_t *ret,
    struct err *reterr)
{
	uint64_t ns[1 + RUNS];
	unsigned i;
	int rc;

	for (i = 0; i < NITEMS(ns); i++) {
		t->notes->steps++;
		if (event_now_ns() > t->end_ns)
			return err_set(reterr, ERR_RUN, -ETIME,
			    "no time is left");
		if ((rc = acl_clock_start(c, reterr)) < 0 ||
		    (rc = acl_products_compute(&t->p, &t->w, ASCEND_ROWS, 0, m,
		    0, reterr)) < 0 || (rc = acl_clock_stop(c, event_now_ns() +
		    WAIT_NS, &ns[i], reterr)) < 0)
			return rc;
	}
	qsort(ns + 1, RUNS, sizeof(ns[0]), compare_times);
	*ret = ns[1 + RUNS / 2];
	return 0;
}

/* Rows of classes that C has no room for take what the largest product takes.  Without
 * a clock the first way is the fastest. */
static int
measure_all(struct acl_matrix_trial *t, struct err *reterr)
{
	const struct acl_form *f = form_of(t);
	struct acl_clock c;
	unsigned i;
	int rc;

	make_rows(t, 0);
	fill_a(t, ASCEND_ROWS, 0, ASCEND_ROWS);
	rc = acl_products_send(&t->p, t->w.k, ASCEND_ROWS, reterr);
	acl_clock_open(t->p.s, &c);
	for (i = 0; i < f->nclasses && rc == 0; i++)
		if (f->rows[i] <= t->top)
			rc = measure(t, &c, f->rows[i], &t->timing->ns[i],
			    reterr);
		else
			t->timing->ns[i] = t->timing->ns[i - 1];
	acl_clock_close(&c);
	if (rc == 0 || rc == -ETIME || t->p.s->is_lost)
		return rc;
	for (i = 0; i < f->nclasses; i++)
		t->timing->ns[i] = t->first == NULL ? 1 : NEVER_NS;
	return 0;
}

/* After the last product, which returned rc.  -EAGAIN: it never ends. */
static int
end(struct acl_matrix_trial *t, int rc)
{
	struct err unused = { 0 };

	if (t->p.s->is_lost && rc == -ETIMEDOUT)
		return -EAGAIN;
	acl_session_drain(t->p.s);
	acl_products_close(&t->p);
	end_memory(t);
	if (!t->p.s->is_lost)
		return 0;
	return acl_session_renew(t->p.s, &unused) < 0 ? -EAGAIN : 0;
}

/* Whether a way is right matters if it is the first one, the first one is not right, or
 * it is faster with some number of rows. */
static int
is_of_use(const struct acl_matrix_trial *t)
{
	unsigned i;

	if (t->first == NULL || !t->first->is_right)
		return 1;
	for (i = 0; i < form_of(t)->nclasses; i++)
		if (acl_is_faster(t->timing->ns[i], t->first->ns[i]))
			return 1;
	return 0;
}

/* Measure and check the products.  An error, or 0 and the outcome. */
static int
try_products(struct acl_matrix_trial *t, enum acl_fn_outcome *ret, struct err *reterr)
{
	int rc = t->timing != NULL ? measure_all(t, reterr) : 0;

	*ret = rc < 0 ? ACL_FN_LATE : ACL_FN_UNTRIED;
	if (rc == 0 && is_of_use(t)) {
		rc = check(t, ret, reterr);
		if (t->timing != NULL)
			t->timing->is_right = rc == 0 && *ret == ACL_FN_RIGHT;
	}
	if (rc == -ETIME)
		*ret = ACL_FN_UNTRIED;
	return rc;
}

/* 0 or -EAGAIN. */
static int
try_matrix(struct acl_matrix_trial *t, const struct acl_matrix *m, uint32_t *ret)
{
	enum acl_fn_outcome o = ACL_FN_UNTRIED;
	struct err e = { 0 };
	int rc;

	if ((rc = prepare(t, m, &e)) < 0)
		o = rc == -ENOTSUP && event_now_ns() <= t->end_ns ?
		    ACL_FN_REFUSED : ACL_FN_UNTRIED;
	else if ((rc = begin_memory(t, &e)) < 0)
		o = t->p.s->is_lost ? ACL_FN_LATE : ACL_FN_UNTRIED;
	else if ((rc = put_weights(t, &e)) < 0)
		o = ACL_FN_LATE;
	else
		rc = try_products(t, &o, &e);
	*ret = acl_fn_pack(o, acl_code_in(&e));
	return end(t, rc);
}

/* --- the fastest way for a matrix --- */

/* Try m in one way.  0 or -EAGAIN. */
static int
try_candidate(struct acl_matrix_trial *t, const struct acl_candidate *way,
    const struct acl_matrix *m, const struct acl_timing *first,
    struct acl_timing *timing, uint32_t *ret)
{
	const struct acl_choice *c = t->p.choice;
	struct acl_choice one = *c;
	int rc;

	one.form[ASCEND_HALF].way = way->way;
	one.form[ASCEND_HALF].nz = way->nz;
	one.nshapes = 0;
	t->p.choice = &one;
	t->timing = timing;
	t->first = first;
	rc = try_matrix(t, m, ret);
	t->timing = NULL;
	t->first = NULL;
	t->p.choice = c;
	return rc;
}

/* A matrix of several parts of N: each kind of part by itself, in the form's way, with the
 * rows of the whole.  0 or -EAGAIN. */
static int
try_parts(struct acl_matrix_trial *t, const struct acl_matrix *m, uint32_t *ret)
{
	const struct acl_choice *c = t->p.choice;
	const struct acl_candidate way = { c->form[ASCEND_HALF].way,
	    c->form[ASCEND_HALF].nz };
	const uint32_t parts[] = { ACL_MOST_N, m->n % ACL_MOST_N };
	struct acl_matrix part = *m;
	unsigned i;
	int rc = 0;

	t->most_rows = ascend_rows(&c->chip, m->n, m->k);
	*ret = acl_fn_pack(ACL_FN_RIGHT, 0);
	for (i = 0; i < NITEMS(parts) && rc == 0 && parts[i] > 0 &&
	    acl_fn_outcome(*ret) == ACL_FN_RIGHT; i++) {
		part.n = parts[i];
		rc = try_candidate(t, &way, &part, NULL, NULL, ret);
	}
	t->most_rows = 0;
	return rc;
}

void
acl_matrix_remove_way(struct acl_choice *c, uint32_t n, uint32_t k)
{
	uint32_t i, left = 0;

	for (i = 0; i < c->nshapes; i++)
		if (c->shape[i].n != n || c->shape[i].k != k)
			c->shape[left++] = c->shape[i];
	c->nshapes = (uint16_t)left;
}

/* Try m in the choice's way, then in the others, and choose.  0 or -EAGAIN. */
static int
try_ways(struct acl_matrix_trial *t, struct acl_choice *c,
    const struct acl_candidates *ways, const struct acl_matrix *m,
    uint32_t *ret)
{
	const uint32_t trying = t->notes->trying;
	struct acl_timing timing[ACL_CANDIDATES];
	struct acl_shape_way way = { .n = m->n, .k = m->k,
	    .format = ASCEND_HALF };
	uint32_t outcome;
	unsigned i;
	int rc = 0;

	memset(timing, 0, sizeof(timing));
	acl_matrix_remove_way(c, m->n, m->k);
	for (i = 0; i < ways->n && rc == 0; i++) {
		if (i > 0)
			t->notes->trying = 1 + ACL_NOTE_OTHERS;
		rc = try_candidate(t, &ways->c[i], m, i == 0 ? NULL : timing,
		    &timing[i], i == 0 ? ret : &outcome);
	}
	if (rc < 0)
		return rc;
	t->notes->trying = trying;
	if (c->nshapes < ACL_SHAPE_WAYS && acl_fastest(&c->form[ASCEND_HALF],
	    ways->c, timing, ways->n, &way)) {
		c->shape[c->nshapes++] = way;
		*ret = acl_fn_pack(ACL_FN_RIGHT, 0);
	}
	return 0;
}

int
acl_matrix_try(struct acl_matrix_trial *t, struct acl_choice *c,
    const struct acl_candidates *ways, const struct acl_matrix *m, uint32_t *ret)
{
	if (m->n > ACL_MOST_N)
		return try_parts(t, m, ret);
	return m->format == ASCEND_HALF && ways->n > 1 ? try_ways(t, c, ways, m,
	    ret) : try_matrix(t, m, ret);
}

void
acl_matrix_trial_end(struct acl_matrix_trial *t)
{
	unsigned i;

	for (i = 0; i < ACL_PATTERNS; i++)
		free(t->pattern[i]);
}
