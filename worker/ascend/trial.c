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
#include "ops_trial.h"
#include "trial_memory.h"

/* Time to compile operators in, all of them: the coordinator waits for a minute,
 * and the last one may take as long as attempt.h allows one step. */
#define COMPILE_NS	UINT64_C(10000000000)

/* The shapes: a small one, and one with rows beyond a segment. */
enum {
	TRIAL_N = 48, TRIAL_K = 288,
	LONG_N = 16, LONG_K = ASCEND_SEGMENT + 64
};

/* Reserved workspace is never less than this, for shapes that were not tried. */
#define LEAST_WORKSPACE	(1 * MIB)

struct trial {
	struct acl_notes *notes;
	struct acl_products p;
	struct acl_choice choice;
	struct acl_matrix w;
	enum acl_nz nz;			/* of 16-bit floats */
	struct acl_trial_memory memory;
	float *values;			/* of W (n x k) */
	uint8_t *bytes;			/* the same, on their way */
	uint16_t x[ASCEND_ROWS * LONG_K];	/* rows x k */
	float row[LONG_K];		/* one of them */
};

static struct acl_form *
form_of(struct trial *t)
{
	return &t->choice.form[t->w.format];
}

/* --- numbers --- */

static float
number(uint32_t *state, int is_exact)
{
	int v = (int)(acl_trial_bits(state) % 15) - 7;

	return is_exact ? (float)v / 8 : (float)v / 8 +
	    (float)(acl_trial_bits(state) % 1000) / 4096;
}

/* --- memory --- */

static void
end_memory(struct trial *t)
{
	acl_trial_free(t->p.s, &t->memory);
	free(t->values);
	free(t->bytes);
	t->values = NULL;
	t->bytes = NULL;
}

static uint64_t
weight_bytes(const struct trial *t)
{
	return ascend_weight_bytes(t->w.format, t->w.n, t->w.k);
}

static int
begin_memory(struct trial *t, struct err *reterr)
{
	struct acl_products *p = &t->p;
	void *w;
	int rc;

	p->a_bytes = (uint64_t)ASCEND_ROWS * t->w.k * sizeof(uint16_t);
	p->c_bytes = (uint64_t)ASCEND_ROWS * t->w.n * sizeof(float) *
	    ascend_segments(&t->choice.chip, t->w.k);
	if ((rc = acl_trial_alloc(p, weight_bytes(t), &t->memory, &w,
	    reterr)) < 0)
		return rc;
	t->w.w = w;
	t->values = calloc((uint64_t)t->w.n * t->w.k, sizeof(*t->values));
	t->bytes = calloc(1, weight_bytes(t));
	return t->values != NULL && t->bytes != NULL ? 0 :
	    err_nomem(reterr, "a trial");
}

/* --- a product --- */

/* W[i][j] and its bytes. */
static float
put_half(struct trial *t, uint32_t i, uint32_t j, float v)
{
	uint16_t h = float_to_half(v);

	memcpy(t->bytes + acl_w_index(&t->p, &t->w, i, j) * sizeof(h), &h,
	    sizeof(h));
	return half_to_float(h);
}

static float
put_integer(struct trial *t, uint32_t i, uint32_t j, int v, uint16_t scale)
{
	const uint64_t at = (uint64_t)i * t->w.k + j;
	/* A multiple of 1/2, another one for each group. */
	const uint16_t offset = float_to_half((float)((i + j / ASCEND_GROUP) %
	    8) / 2);

	if (t->w.format == ASCEND_INT8)
		t->bytes[at] = (uint8_t)v;
	else
		t->bytes[at / 2] |= (uint8_t)((v & 15) << at % 2 * 4);
	if (t->w.format == ASCEND_OFFSETS)
		memcpy(t->bytes + ascend_offsets_at(t->w.format, t->w.n,
		    t->w.k) + at / ASCEND_GROUP * sizeof(offset), &offset,
		    sizeof(offset));
	memcpy(t->bytes + ascend_scales_at(t->w.format, t->w.n, t->w.k) + at /
	    ASCEND_GROUP * sizeof(scale), &scale, sizeof(scale));
	return ((float)v + (t->w.format == ASCEND_OFFSETS ?
	    half_to_float(offset) : 0)) * half_to_float(scale);
}

static int
put_weights(struct trial *t, int is_exact, struct err *reterr)
{
	const struct acl_source *src = &t->p.s->src;
	uint64_t n = weight_bytes(t);
	uint32_t state = 1, i, j;
	uint16_t scale = 0;
	float *v = t->values;
	int rc;

	memset(t->bytes, 0, n);
	for (i = 0; i < t->w.n; i++)
		for (j = 0; j < t->w.k; j++, v++)
			if (t->w.format == ASCEND_HALF) {
				*v = put_half(t, i, j, number(&state,
				    is_exact));
			} else {
				if (j % ASCEND_GROUP == 0)
					scale = float_to_half(0.125f +
					    (is_exact ? 0 : number(&state, 0) /
					    16));
				*v = put_integer(t, i, j,
				    (int)(acl_trial_bits(&state) % 15) - 7,
				    scale);
			}
	rc = src->lib->aclrtMemcpy((void *)(uintptr_t)t->w.w, n, t->bytes, n,
	    ACL_MEMCPY_HOST_TO_DEVICE);
	return rc == ACL_SUCCESS ? acl_products_convert(&t->p, &t->w, reterr) :
	    acl_failed(src->lib, src->session, "aclrtMemcpy", rc, reterr);
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

	t->notes->steps++;
	memset(t->p.a, 0, t->p.a_bytes);
	memset(t->p.c, 0xff, t->p.c_bytes);
	for (r = 0; r < m; r++)
		for (k = 0; k < t->w.k; k++)
			t->p.a[acl_a_index(&t->p, t->w.k, ASCEND_ROWS, r, k)] =
			    t->x[(first + r) * t->w.k + k];
	return acl_trial_multiply(&t->p, &t->w, ASCEND_ROWS, m, ret, reterr);
}

static int
check_values(struct trial *t, const float *got, struct err *reterr)
{
	const float within = form_of(t)->c_type == ACL_FLOAT ? 0 :
	    1.0f / 1024;
	uint32_t r, i, k;

	for (r = 0; r < ASCEND_ROWS; r++) {
		for (k = 0; k < t->w.k; k++)
			t->row[k] = half_to_float(t->x[r * t->w.k + k]);
		for (i = 0; i < t->w.n; i++) {
			float want = 0, v = got[r * t->w.n + i];

			for (k = 0; k < t->w.k; k++)
				want += t->row[k] * t->values[i * t->w.k + k];
			if (!(fabsf(v - want) <= within * (fabsf(want) + 1)))
				return err_set(reterr, ERR_RUN, -EBADMSG,
				    "gives %g instead of %g", (double)v,
				    (double)want);
		}
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
	for (i = 0; i < form_of(t)->nclasses && rc == 1; i++) {
		m = form_of(t)->rows[i];
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
	const uint32_t m = form_of(t)->rows[form_of(t)->nclasses - 1];
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

	t->w = (struct acl_matrix){ .n = n, .k = k, .format = t->w.format };
	if (rc == 0 && (rc = acl_products_prepare(&t->p, &t->w,
	    reterr)) == 0 &&
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
	acl_session_drain(t->p.s);
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
	rc = try_shape(t, LONG_N, LONG_K, reterr);
	if (rc > 0 || t->p.s->is_lost || t->w.format != ASCEND_HALF)
		return rc;
	acl_products_close(&t->p);
	t->choice.chip.cut_k = 1;
	return try_shape(t, LONG_N, LONG_K, reterr);
}

/* Integers have only results of 16 bits. */
static const struct acl_form forms[] = {
	{ 0, ACL_FLOAT, 3, 0, { 1, 8, ASCEND_ROWS } },
	{ 0, ACL_FLOAT, 1, 0, { ASCEND_FEW_ROWS } },
	{ 0, ACL_FLOAT16, 3, 0, { 1, 8, ASCEND_ROWS } },
	{ 0, ACL_FLOAT16, 1, 0, { ASCEND_FEW_ROWS } },
};
enum { FORMS_OF_HALVES = 2 };		/* of forms, those with 16 bits */

/* Keep the part of a message that names the call and its code. */
static void
set_reason(char ret[ACL_REASON], enum acl_way way, const char *msg)
{
	const char *s = strstr(msg, "failed with ");

	if (ret[0] != '\0')
		return;
	if (s != NULL)
		snprintf(ret, ACL_REASON, "%s: %.*s", acl_way_name(way),
		    (int)strcspn(s, "("), s);
	else
		snprintf(ret, ACL_REASON, "%s %.40s", acl_way_name(way), msg);
}

/* Make a new stream after a task that failed.  -EAGAIN: the task still hangs. */
static int
renew_stream(struct trial *t)
{
	struct err e = { 0 };

	end_memory(t);
	return acl_session_renew(t->p.s, &e) < 0 ? -EAGAIN : 0;
}

/* Try a way in each form.  Returns as try_way(). */
static int
try_forms(struct trial *t, enum acl_way way, char reason[ACL_REASON])
{
	unsigned i = t->w.format == ASCEND_HALF ? 0 : FORMS_OF_HALVES;
	struct err e = { 0 };
	int rc = 0;

	for (; i < NITEMS(forms) && rc <= 0; i++) {
		t->notes->steps++;
		*form_of(t) = forms[i];
		form_of(t)->way = (uint8_t)way;
		form_of(t)->nz = (uint8_t)t->nz;
		t->choice.chip.cut_k = 0;
		rc = try_shapes(t, &e);
		t->choice.chip.workspace_bytes =
		    MAX(t->choice.chip.workspace_bytes, t->p.workspace_need);
		if (t->p.s->is_lost && rc == -ETIMEDOUT)
			return -EAGAIN;
		acl_products_close(&t->p);
		if (rc <= 0)
			set_reason(reason, way, rc < 0 ? e.msg :
			    "depends on other rows");
		/* Other forms would lose it again, each after a timeout. */
		if (t->p.s->is_lost)
			return renew_stream(t);
	}
	return rc > 0;
}

/* A way's number in the notes.  Integers of 4 bits have one of their own: those of
 * 8 bits may work where they do not.  So have FRACTAL_NZ and offsets, at the
 * end. */
static unsigned
note_of(struct trial *t, enum acl_way way)
{
	if (t->w.format == ASCEND_HALF && t->nz != ACL_ND)
		return ACL_NOTE_NZ + ((unsigned)t->nz - 1) * ACL_NWAYS + way;
	return t->w.format == ASCEND_OFFSETS ? ACL_NOTE_OFFSETS :
	    t->w.format == ASCEND_INT4 ? ACL_NOTE_INT4 : ACL_NOTE_WAY + way;
}

/* 1: this way, as in t->choice.  0: not this one.  -EAGAIN: this process can try
 * nothing more. */
static int
try_way(struct trial *t, enum acl_way way, char reason[ACL_REASON])
{
	const unsigned i = note_of(t, way);
	int rc;

	if (t->notes->outcome[i] != ACL_FINE) {
		set_reason(reason, way, acl_outcome_text(
		    (enum acl_outcome)t->notes->outcome[i]));
		return 0;
	}
	if (t->notes->is_late) {
		set_reason(reason, way, "is not tried: there was no time left");
		return 0;
	}
	t->notes->trying = 1 + i;
	t->p.compile_by_ns = event_now_ns() + COMPILE_NS;
	if ((rc = try_forms(t, way, reason)) != -EAGAIN)
		t->notes->trying = 0;
	return rc;
}

/* Try the ways of 16-bit floats, with FRACTAL_NZ only where none takes row-major
 * matrices.  Returns as try_way(). */
static int
try_halves(struct trial *t, char reason[ACL_REASON])
{
	const struct acl_lib *lib = t->p.s->src.lib;
	enum acl_way way;
	unsigned i;
	int rc = 0, is_there;

	t->w.format = ASCEND_HALF;
	for (i = 0; i < ACL_NZ_KINDS * ACL_WAY_GROUPS && rc == 0; i++) {
		t->nz = (enum acl_nz)(i / ACL_WAY_GROUPS);
		way = (enum acl_way)(i % ACL_WAY_GROUPS);
		if (way == ACL_WAY_NONE || !acl_nz_is_there(lib, way, t->nz))
			continue;
		if (way == ACL_WAY_CLASSIC && t->notes->outcome[
		    ACL_NOTE_ENGINE] != ACL_FINE) {
			set_reason(reason, way, acl_outcome_text((enum
			    acl_outcome)t->notes->outcome[ACL_NOTE_ENGINE]));
			continue;
		}
		/* This may load the engine. */
		t->notes->trying = 1 + ACL_NOTE_ENGINE;
		is_there = acl_way_is_there(lib, way);
		t->notes->trying = 0;
		if (is_there)
			rc = try_way(t, way, reason);
		else
			set_reason(reason, way, "is not in this CANN");
	}
	return rc;
}

/* Try integers of 8 bits, then of 4 bits too, then with offsets.  0 or -EAGAIN. */
static int
try_groups(struct trial *t, char reason[ACL_REASON])
{
	enum ascend_format f;
	int rc = 1;

	if (t->choice.chip.cut_k) {
		snprintf(reason, ACL_REASON, "K is in segments");
		return 0;
	}
	if (!acl_way_is_there(t->p.s->src.lib, ACL_WAY_GROUPS)) {
		set_reason(reason, ACL_WAY_GROUPS, "is not in this CANN");
		return 0;
	}
	for (f = ASCEND_INT8; f < ASCEND_FORMATS && rc > 0; f++) {
		t->w.format = f;
		t->nz = ACL_ND;
		if ((rc = try_way(t, ACL_WAY_GROUPS, reason)) > 0)
			t->choice.chip.groups = (uint16_t)f;
		else
			memset(form_of(t), 0, sizeof(struct acl_form));
	}
	return rc < 0 ? rc : 0;
}

/* Percent of W that its calls need beyond the constant part. */
static uint64_t
shape_percent(struct trial *t, uint64_t constant)
{
	const uint64_t k = t->choice.chip.cut_k ? MIN(t->w.k,
	    (uint32_t)ASCEND_SEGMENT) : t->w.k;
	struct err unused;
	uint64_t need;

	t->p.workspace_need = 0;
	(void)acl_products_prepare(&t->p, &t->w, &unused);
	need = t->p.workspace_need;
	acl_products_close(&t->p);
	return need <= constant ? 0 : DIV_UP(100 * (need - constant), t->w.n *
	    k * sizeof(uint16_t));
}

/* Some operators rearrange W at each call, and need room for it.  Phase one
 * alone tells how much, without memory for matrices so large.  An operator
 * that ends the process with them is not used at all. */
static uint32_t
measure_workspace(struct trial *t, uint64_t constant)
{
	static const struct { uint32_t n, k; } shapes[] = {
		{ 4096, 4096 }, { 1024, 14336 }, { 32768, 2048 },
	};
	uint64_t most = 0;
	unsigned i, f;

	for (i = 0; i < NITEMS(shapes); i++)
		for (f = 0; f <= t->choice.chip.groups; f++) {
			/* The library takes it itself. */
			if (t->choice.form[f].way == ACL_WAY_CLASSIC)
				continue;
			t->w = (struct acl_matrix){ .n = shapes[i].n,
			    .k = shapes[i].k, .format = (enum ascend_format)f };
			t->nz = (enum acl_nz)form_of(t)->nz;
			t->notes->steps++;
			t->notes->trying = 1 + note_of(t,
			    (enum acl_way)form_of(t)->way);
			most = MAX(most, shape_percent(t, constant));
		}
	t->notes->trying = 0;
	return (uint32_t)MIN(most, (uint64_t)ASCEND_MOST_PERCENT);
}

/* Try a way in the form that there is, with a small matrix: before it is used, it must be
 * right with a model's.  Returns as try_way(). */
static int
try_other(struct trial *t, enum acl_way way)
{
	struct err e = { 0 };
	int rc;

	t->notes->trying = 1 + note_of(t, way);
	form_of(t)->way = (uint8_t)way;
	form_of(t)->nz = (uint8_t)t->nz;
	rc = try_shape(t, TRIAL_N, TRIAL_K, &e);
	if (t->p.s->is_lost && rc == -ETIMEDOUT)
		return -EAGAIN;
	acl_products_close(&t->p);
	if (t->p.s->is_lost && renew_stream(t) < 0)
		return -EAGAIN;
	t->notes->trying = 0;
	return rc == 1;
}

int
acl_other_ways(struct acl_session *s, struct acl_notes *notes,
    const struct acl_choice *c, struct acl_candidates *ret)
{
	const struct acl_form *f = &c->form[ASCEND_HALF];
	struct trial *t = calloc(1, sizeof(*t));
	enum acl_way way;
	unsigned i;
	int rc = 0;

	*ret = (struct acl_candidates){ 1, { { f->way, f->nz } } };
	for (i = 0; i < ACL_NZ_KINDS * ACL_WAY_CLASSIC && t != NULL &&
	    rc >= 0 && ret->n < ACL_CANDIDATES; i++) {
		way = (enum acl_way)(i % ACL_WAY_CLASSIC);
		*t = (struct trial){ .notes = notes, .choice = *c,
		    .nz = (enum acl_nz)(i / ACL_WAY_CLASSIC) };
		t->p = (struct acl_products){ .s = s, .choice = &t->choice,
		    .steps = &notes->steps };
		t->w.format = ASCEND_HALF;
		t->choice.nshapes = 0;
		if (way == ACL_WAY_NONE || f->way == ACL_WAY_CLASSIC ||
		    (way == f->way && t->nz == f->nz) || notes->is_late ||
		    notes->outcome[note_of(t, way)] != ACL_FINE ||
		    !acl_way_is_there(s->src.lib, way) ||
		    !acl_nz_is_there(s->src.lib, way, t->nz))
			continue;
		if ((rc = try_other(t, way)) > 0)
			ret->c[ret->n++] = (struct acl_candidate){
			    (uint8_t)way, (uint8_t)t->nz };
	}
	free(t);
	return MIN(rc, 0);
}

/* Try the operators that are no products after the ways.  0 or -EAGAIN. */
static int
try_fns(struct trial *t)
{
	uint64_t workspace;
	int rc = acl_try_fns(t->p.s, t->notes, ACL_NOTE_FN,
	    t->choice.chip.cut_k ? ASCEND_SEGMENT : 0, t->choice.fn,
	    &workspace);

	t->choice.chip.workspace_bytes =
	    MAX(t->choice.chip.workspace_bytes, workspace);
	return rc;
}

int
acl_choose(struct acl_session *s, struct acl_notes *notes,
    struct acl_choice *ret, char groups_reason[ACL_REASON])
{
	struct trial *t = calloc(1, sizeof(*t));
	int rc;

	_Static_assert((int)ACL_NOTES <= (int)ACL_NOTED, "notes");
	groups_reason[0] = '\0';
	if (t == NULL) {
		strlcpy(ret->reason, "no memory for a trial",
		    sizeof(ret->reason));
		return 0;
	}
	t->notes = notes;
	t->choice = *ret;
	t->p.s = s;
	t->p.choice = &t->choice;
	t->p.steps = &notes->steps;
	if ((rc = try_halves(t, ret->reason)) > 0 &&
	    (rc = try_groups(t, groups_reason)) == 0 &&
	    (rc = try_fns(t)) == 0) {
		memcpy(t->choice.reason, ret->reason, sizeof(ret->reason));
		*ret = t->choice;
		ret->chip.workspace_bytes = MAX(ALIGN_UP(2 *
		    ret->chip.workspace_bytes, MIB), (uint64_t)LEAST_WORKSPACE);
		ret->chip.workspace_percent = measure_workspace(t,
		    ret->chip.workspace_bytes);
	}
	free(t);
	return rc;
}
