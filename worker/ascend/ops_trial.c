/* worker/ascend/ops_trial.c - see ops_trial.h. */
#include "ops_trial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "shm/event.h"

/* The device's own timeout of an operator comes first. */
#define WAIT_NS		(UINT64_C(1000000000) * (ACL_OPERATOR_S + 2))

enum { ROWS = ACL_FN_MOST_ROWS, HEAD = 32 };

/* Narrow and wide rows, for operators that no model has chosen yet; the wide ones are
 * converted in two pieces where K has segments. */
static const uint32_t widths[] = { 288, 4160 };
#define EPS	1e-5f

/* How far a number may be off: 2^relative of itself and 2^absolute.  Sums have
 * the bits of the host's: residual.c. */
enum { EXACT = -64 };
static const struct { int relative, absolute; } bounds[ACL_FNS] = {
	[ACL_FN_NORM] = { -12, -18 }, [ACL_FN_ADD_NORM] = { -12, -18 },
	[ACL_FN_SWIGLU] = { -12, -18 }, [ACL_FN_SILU] = { -12, -18 },
	[ACL_FN_MUL] = { -22, -40 }, [ACL_FN_SCALE] = { -22, -40 },
	[ACL_FN_ADD] = { EXACT, EXACT },
	[ACL_FN_ADD_TO] = { EXACT, EXACT }, [ACL_FN_ROTATE] = { -20, -20 },
	[ACL_FN_TO_HALF] = { -10, -24 }, [ACL_FN_TO_FLOAT] = { -22, -40 },
	[ACL_FN_SCALE_ROWS] = { -22, -40 },
};

/* Buffers on the device: inputs, then the results of products of rows of each class,
 * three for each. */
enum { INPUTS = ACL_FN_ARGS, RESULTS = ACL_FN_ARGS,
	BLOCKS = INPUTS + ACL_FN_CLASSES * RESULTS };

struct trial {
	struct acl_notes *notes;
	struct acl_fns f;
	const uint32_t *widths;		/* [nwidths], the widest one last */
	unsigned nwidths;
	uint32_t segment;		/* columns of one call of TO_HALF; 0 = whole
					 * rows */
	float eps;
	int is_started;			/* the library took all calls */
	int has_no_memory;		/* for the rows of a trial */
	void *block[BLOCKS], *workspace;
	enum acl_fn fn;
	uint32_t cols;
	float *in[INPUTS];		/* [ROWS * 2 * most_cols()] */
	float *got[ACL_FN_CLASSES];	/* [ROWS * most_cols()] */
	int code;
};

static uint64_t
most_cols(const struct trial *t)
{
	return t->widths[t->nwidths - 1];
}

static uint64_t
input_bytes(const struct trial *t)
{
	return ROWS * 2 * most_cols(t) * sizeof(float);
}

static uint64_t
result_bytes(const struct trial *t)
{
	return ROWS * most_cols(t) * sizeof(float);
}

/* --- memory --- */

static int
device_block(struct trial *t, uint64_t nbytes, void **ret, struct err *reterr)
{
	const struct acl_source *src = &t->f.s->src;
	int rc = src->lib->aclrtMalloc(ret, nbytes, ACL_MEM_MALLOC_HUGE_FIRST);

	if (rc == ACL_SUCCESS)
		return 0;
	*ret = NULL;
	return acl_failed(src->lib, src->session, "aclrtMalloc", rc, reterr);
}

static void
end_memory(struct trial *t)
{
	const struct acl_lib *l = t->f.s->src.lib;
	unsigned i;

	for (i = 0; i < BLOCKS; i++) {
		if (t->block[i] != NULL)
			l->aclrtFree(t->block[i]);
		t->block[i] = NULL;
	}
	if (t->workspace != NULL)
		l->aclrtFree(t->workspace);
	t->workspace = NULL;
}

static int
begin_memory(struct trial *t, struct err *reterr)
{
	unsigned i;
	int rc = 0;

	for (i = 0; i < BLOCKS && rc == 0; i++)
		rc = device_block(t, i < INPUTS ? input_bytes(t) :
		    result_bytes(t), &t->block[i], reterr);
	return rc;
}

static int
copy(struct trial *t, void *dst, const void *src, uint64_t n, int kind,
    struct err *reterr)
{
	const struct acl_source *s = &t->f.s->src;
	int rc = s->lib->aclrtMemcpy(dst, n, src, n, kind);

	return rc == ACL_SUCCESS ? 0 : acl_failed(s->lib, s->session,
	    "aclrtMemcpy", rc, reterr);
}

/* --- numbers --- */

static float
number(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) / (1 << 23) - 1;
}

/* Numbers at which exp() overflows; the ends of 16-bit floats. */
static const float hard[][8] = {
	{ 20, -20, 90, -90, 1e4f, -1e4f, 0, -0.0f },
	{ 6e4f, -6e4f, 0x1p-14f, -0x1.8p-15f, 0x1p-24f, -0x1p-20f, 0, -0.0f }
};
enum { HARD_ROW = 13 };

/* The hard numbers for an operator, or NULL. */
static const float *
hard_for(enum acl_fn fn)
{
	return fn == ACL_FN_SWIGLU || fn == ACL_FN_SILU ? hard[0] :
	    fn == ACL_FN_TO_HALF || fn == ACL_FN_TO_FLOAT ? hard[1] : NULL;
}

/* Numbers of single rows begin here in a column: those of all rows are before,
 * and a call's data begins at a multiple of 32 bytes. */
static uint32_t
column_at(uint32_t rows, uint32_t r)
{
	return rows == 1 ? ROWS + r * 8 : r;
}

/* Rows of different sizes, one of them zeros; a vector and angles are small. */
static void
make_inputs(struct trial *t)
{
	const float *h = hard_for(t->fn);
	const uint64_t n = 2 * (uint64_t)t->cols;
	uint32_t state = 7, r, i, k;
	float size;

	for (k = 0; k < INPUTS; k++)
		for (r = 0; r < ROWS; r++) {
			size = k > 0 ? 1 : r == 5 ? 0 : ldexpf(1,
			    (int)(r % 9) - 4);
			for (i = 0; i < n; i++)
				t->in[k][r * n + i] = number(&state) * size;
		}
	for (r = 0; t->fn == ACL_FN_SCALE_ROWS && r < ROWS; r++)
		t->in[1][column_at(1, r)] = t->in[1][r];
	for (i = 0; h != NULL && i < n; i++)
		t->in[0][HARD_ROW * n + i] = h[i % NITEMS(hard[0])];
}

static double
silu(double x)
{
	return x / (1 + exp(-x));
}

static double
norm_scale(const struct trial *t, uint32_t r)
{
	const uint64_t n = t->cols;
	double sum = 0, v;
	uint64_t i;

	for (i = 0; i < n; i++) {
		v = t->in[0][r * n + i];
		if (t->fn == ACL_FN_ADD_NORM)
			v = (float)(v + (double)t->in[1][r * n + i]);
		sum += v * v;
	}
	return 1 / sqrt(sum / (double)n + (double)t->eps);
}

static double
rotated(const struct trial *t, uint32_t r, uint32_t i)
{
	const uint32_t at = i % HEAD, half = HEAD / 2;
	const float *x = t->in[0] + (uint64_t)r * t->cols + (i - at);
	const double c = (double)t->in[1][r * HEAD + at];
	const double s = (double)t->in[2][r * HEAD + at];

	return (double)x[at] * c + s * (at < half ? -(double)x[at + half] :
	    (double)x[at - half]);
}

/* The right value of element i of row r, whose norm has this scale. */
static double
wanted(const struct trial *t, uint32_t r, uint32_t i, double scale)
{
	const uint64_t at = (uint64_t)r * t->cols + i;
	const double a = (double)t->in[0][at], b = (double)t->in[1][at];

	switch (t->fn) {
	case ACL_FN_NORM:
		return a * scale * (double)t->in[1][i];
	case ACL_FN_ADD_NORM:
		return (double)(float)(a + b) * scale * (double)t->in[2][i];
	case ACL_FN_SWIGLU:
		return silu((double)t->in[0][at + (uint64_t)r * t->cols]) *
		    (double)t->in[0][at + (uint64_t)(r + 1) * t->cols];
	case ACL_FN_SILU:
		return silu(a);
	case ACL_FN_MUL:
		return a * b;
	case ACL_FN_SCALE:
		return a * (double)t->in[1][i];
	case ACL_FN_SCALE_ROWS:
		return a * (double)t->in[1][r];
	case ACL_FN_ROTATE:
		return rotated(t, r, i);
	case ACL_FN_TO_HALF:
		return a;
	case ACL_FN_TO_FLOAT:
		return (double)half_to_float(float_to_half(t->in[0][at]));
	default:
		return (double)(float)(a + b);
	}
}

/* --- a run --- */

/* Columns of each call; the last one of a row may have fewer. */
static uint32_t
piece(const struct trial *t)
{
	return t->fn == ACL_FN_TO_HALF && t->segment > 0 ? MIN(t->segment,
	    t->cols) : t->cols;
}

/* Columns of the call that begins with column `at`. */
static uint32_t
piece_at(const struct trial *t, uint32_t at)
{
	return MIN(piece(t), t->cols - at);
}

static struct acl_fn_shape
shape_of(const struct trial *t, unsigned class, uint32_t at)
{
	return (struct acl_fn_shape){ .fn = t->fn, .cols = piece_at(t, at),
	    .rows = acl_fn_class(class),
	    .heads = t->fn == ACL_FN_ROTATE ? t->cols / HEAD : 0,
	    .stride = t->fn == ACL_FN_TO_HALF ? t->cols : 0,
	    .eps = t->fn == ACL_FN_NORM || t->fn == ACL_FN_ADD_NORM ? t->eps :
	    0 };
}

/* Bytes from one row of an input to the next; 0 = a vector. */
static uint64_t
input_step(const struct trial *t, unsigned k)
{
	if (((t->fn == ACL_FN_NORM || t->fn == ACL_FN_SCALE) && k == 1) ||
	    (t->fn == ACL_FN_ADD_NORM && k == 2))
		return 0;
	if (t->fn == ACL_FN_TO_FLOAT)
		return t->cols * sizeof(uint16_t);
	if (t->fn == ACL_FN_ROTATE && k > 0)
		return HEAD * sizeof(float);
	return (t->fn == ACL_FN_SWIGLU ? 2 : 1) * t->cols * sizeof(float);
}

/* Bytes of a number of the result. */
static uint64_t
result_width(const struct trial *t)
{
	return t->fn == ACL_FN_TO_HALF ? sizeof(uint16_t) : sizeof(float);
}

/* Bytes from one row of a result to the next, in the piece that begins with column
 * `at`. */
static uint64_t
result_step(const struct trial *t, uint32_t at)
{
	return piece_at(t, at) * result_width(t);
}

/* Where row r of that piece begins: pieces follow one another, as in A. */
static uint64_t
result_at(const struct trial *t, uint32_t r, uint32_t at)
{
	return at / piece(t) * ROWS * result_step(t, 0) + r *
	    result_step(t, at);
}

/* Start the operator on rows [r, r + rows of its class), from column `at` on. */
static int
start(struct trial *t, unsigned class, uint32_t r, uint32_t at,
    struct err *reterr)
{
	const struct acl_fn_shape shape = shape_of(t, class, at);
	char *const *result = (char *const *)(t->block + INPUTS + class *
	    RESULTS);
	void *in[ACL_FN_ARGS], *out[ACL_FN_ARGS];
	unsigned k;

	for (k = 0; k < ACL_FN_ARGS; k++)
		in[k] = (char *)t->block[k] + r * input_step(t, k) + at *
		    sizeof(float);
	if (t->fn == ACL_FN_SCALE_ROWS)
		in[1] = (float *)t->block[1] + column_at(shape.rows, r);
	out[0] = result[0] + result_at(t, r, at);
	/* A norm's scale of a row of one begins at a multiple of 32 bytes. */
	out[1] = result[1] + (uint64_t)r * 32;
	out[2] = result[2] + result_at(t, r, at);
	if (t->fn == ACL_FN_ADD_TO)
		in[0] = out[0];
	return acl_fns_start(&t->f, &shape, in, out, &t->code, reterr);
}

/* From column `at` on: all rows in the largest class, some of them in the others. */
static int
start_piece(struct trial *t, uint32_t at, struct err *reterr)
{
	unsigned class;
	uint32_t m, r;
	int rc = 0;

	for (class = 0; class < ACL_FN_CLASSES; class++) {
		m = acl_fn_class(class);
		for (r = 0; r + m <= ROWS && rc == 0; r += m == 1 ? 21 : m == 8
		    ? 24 : m)
			rc = start(t, class, r, at, reterr);
	}
	return rc;
}

static int
start_all(struct trial *t, struct err *reterr)
{
	uint32_t at;
	int rc = 0;

	for (at = 0; at < t->cols && rc == 0; at += piece(t))
		rc = start_piece(t, at, reterr);
	return rc;
}

/* The first input as 16-bit floats. */
static int
send_halves(struct trial *t, struct err *reterr)
{
	const uint32_t n = ROWS * t->cols;
	uint16_t *h = malloc(n * sizeof(*h));
	uint32_t i;
	int rc;

	if (h == NULL)
		return err_nomem(reterr, "a trial");
	for (i = 0; i < n; i++)
		h[i] = float_to_half(t->in[0][i]);
	rc = copy(t, t->block[0], h, n * sizeof(*h),
	    ACL_MEMCPY_HOST_TO_DEVICE, reterr);
	free(h);
	return rc;
}

static int
send_inputs(struct trial *t, struct err *reterr)
{
	unsigned k, class;
	int rc = 0;

	for (k = 0; k < INPUTS && rc == 0; k++)
		rc = copy(t, t->block[k], t->in[k], ROWS * 2 * (uint64_t)
		    t->cols * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE,
		    reterr);
	if (rc == 0 && t->fn == ACL_FN_TO_FLOAT)
		rc = send_halves(t, reterr);
	/* The sum in place begins as the first input. */
	for (class = 0; class < ACL_FN_CLASSES && rc == 0; class++)
		rc = copy(t, t->block[INPUTS + class * RESULTS], t->in[0],
		    ROWS * (uint64_t)t->cols * sizeof(float),
		    ACL_MEMCPY_HOST_TO_DEVICE, reterr);
	return rc;
}

static int
get_results(struct trial *t, unsigned which, struct err *reterr)
{
	const uint64_t nbytes = ROWS * t->cols * result_width(t);
	unsigned class;
	int rc = 0;

	for (class = 0; class < ACL_FN_CLASSES && rc == 0; class++)
		rc = copy(t, t->got[class], t->block[INPUTS + class * RESULTS +
		    which], nbytes, ACL_MEMCPY_DEVICE_TO_HOST, reterr);
	return rc;
}

/* --- checks --- */

/* Element i of row r, as all rows together gave it. */
static double
value(const struct trial *t, uint32_t r, uint32_t i)
{
	const uint32_t at = i % piece(t);
	const void *row = (const char *)t->got[ACL_FN_CLASSES - 1] +
	    result_at(t, r, i - at);

	return t->fn == ACL_FN_TO_HALF ?
	    (double)half_to_float(((const uint16_t *)row)[at]) :
	    (double)((const float *)row)[at];
}

/* is_sum: of ADD_NORM, the sum that it also gives. */
static int
is_right(const struct trial *t, int is_sum)
{
	const double relative = ldexp(1, is_sum ? EXACT :
	    bounds[t->fn].relative);
	const double absolute = ldexp(1, is_sum ? EXACT :
	    bounds[t->fn].absolute);
	double want, scale;
	uint32_t r, i;

	for (r = 0; r < ROWS; r++) {
		scale = norm_scale(t, r);
		for (i = 0; i < t->cols; i++) {
			want = is_sum ? (double)(t->in[0][r * t->cols + i] +
			    t->in[1][r * t->cols + i]) :
			    wanted(t, r, i, scale);
			if (!(fabs(value(t, r, i) - want) <= relative *
			    fabs(want) + absolute))
				return 0;
		}
	}
	return 1;
}

/* Have the rows that ran in smaller classes the bits of the largest one, from column
 * `at` on? */
static int
is_piece_alone(const struct trial *t, uint32_t at)
{
	const char *all = (const char *)t->got[ACL_FN_CLASSES - 1];
	unsigned class;
	uint64_t from;
	uint32_t m, r;

	for (class = 0; class + 1 < ACL_FN_CLASSES; class++) {
		m = acl_fn_class(class);
		for (r = 0; r + m <= ROWS; r += m == 1 ? 21 : 24) {
			from = result_at(t, r, at);
			if (memcmp((const char *)t->got[class] + from, all +
			    from, m * result_step(t, at)) != 0)
				return 0;
		}
	}
	return 1;
}

static int
is_alone(const struct trial *t)
{
	uint32_t at = 0;

	while (at < t->cols && is_piece_alone(t, at))
		at += piece(t);
	return at >= t->cols;
}

/* Has a norm the same bits if its sum is that of other numbers?  Then a session
 * that begins with a norm has the bits of one that computes the sum before it,
 * too. */
static int
is_of_sum(struct trial *t, struct err *reterr)
{
	const uint32_t n = ROWS * t->cols;
	const uint64_t nbytes = n * sizeof(float);
	float *norms = t->got[0], *again = t->got[ACL_FN_CLASSES - 1];
	uint32_t i;

	if (get_results(t, 0, reterr) < 0)
		return 0;
	memcpy(norms, again, nbytes);
	for (i = 0; i < n; i++) {
		t->in[0][i] += t->in[1][i];
		t->in[1][i] = -0.0f;
	}
	return copy(t, t->block[0], t->in[0], nbytes,
	    ACL_MEMCPY_HOST_TO_DEVICE, reterr) == 0 && copy(t, t->block[1],
	    t->in[1], nbytes, ACL_MEMCPY_HOST_TO_DEVICE, reterr) == 0 &&
	    start(t, ACL_FN_CLASSES - 1, 0, 0, reterr) == 0 &&
	    acl_session_wait(t->f.s, event_now_ns() + WAIT_NS, reterr) == 0 &&
	    copy(t, again, t->block[INPUTS + (ACL_FN_CLASSES - 1) * RESULTS],
	    nbytes, ACL_MEMCPY_DEVICE_TO_HOST, reterr) == 0 &&
	    memcmp(norms, again, nbytes) == 0;
}

static enum acl_fn_outcome
check(struct trial *t, struct err *reterr)
{
	int which;

	for (which = 0; which <= (t->fn == ACL_FN_ADD_NORM ? 2 : 0);
	    which += 2) {
		if (get_results(t, (unsigned)which, reterr) < 0)
			return ACL_FN_LATE;
		if (!is_right(t, which > 0))
			return ACL_FN_WRONG;
		if (!is_alone(t))
			return ACL_FN_COMPANY;
	}
	return t->fn != ACL_FN_ADD_NORM || is_of_sum(t, reterr) ?
	    ACL_FN_RIGHT : ACL_FN_WRONG;
}

/* --- an operator --- */

static int
prepare(struct trial *t, struct err *reterr)
{
	struct acl_fn_shape shape;
	unsigned class;
	uint32_t at;
	int rc = 0;

	for (class = 0; class < ACL_FN_CLASSES; class++)
		for (at = 0; at < t->cols && rc == 0; at += piece(t)) {
			shape = shape_of(t, class, at);
			rc = acl_fns_prepare(&t->f, &shape, &t->code, reterr);
		}
	if (rc == 0 && t->f.workspace_need > 0)
		rc = device_block(t, t->f.workspace_need, &t->workspace,
		    reterr);
	t->f.workspace = t->workspace;
	return rc;
}

static enum acl_fn_outcome
try_width(struct trial *t, struct err *reterr)
{
	enum acl_fn_outcome o;

	t->notes->steps++;
	t->is_started = 0;
	make_inputs(t);
	if (prepare(t, reterr) < 0)
		return ACL_FN_REFUSED;
	if (begin_memory(t, reterr) < 0 || send_inputs(t, reterr) < 0) {
		t->has_no_memory = 1;
		return ACL_FN_REFUSED;
	}
	t->is_started = 1;
	o = start_all(t, reterr) < 0 ? ACL_FN_REFUSED : ACL_FN_RIGHT;
	if (acl_session_wait(t->f.s, event_now_ns() + WAIT_NS, reterr) < 0)
		return ACL_FN_LATE;
	return o == ACL_FN_RIGHT ? check(t, reterr) : o;
}

/* -EAGAIN: it never returns. */
static int
try_fn(struct trial *t, uint32_t *ret, uint64_t *workspace)
{
	enum acl_fn_outcome o = ACL_FN_RIGHT;
	struct err e = { 0 };
	unsigned i;
	int is_lost = 0;

	t->code = 0;
	for (i = 0; i < t->nwidths && o == ACL_FN_RIGHT; i++) {
		t->cols = t->widths[i];
		o = try_width(t, &e);
		is_lost = t->f.s->is_lost;
		if (!is_lost)
			end_memory(t);
	}
	*ret = acl_fn_pack(o, t->code != 0 ? t->code : acl_code_in(&e));
	if (o == ACL_FN_RIGHT)
		*workspace = MAX(*workspace, t->f.workspace_need);
	acl_fns_close(&t->f);
	if (!is_lost)
		return 0;
	end_memory(t);
	return acl_session_renew(t->f.s, &e) < 0 ? -EAGAIN : 0;
}

static int
try_noted(struct trial *t, unsigned note, uint32_t *ret, uint64_t *workspace)
{
	const struct acl_lib *l = t->f.s->src.lib;
	int rc;

	if (t->notes->outcome[note] != ACL_FINE)
		*ret = acl_fn_pack(t->notes->outcome[note] == ACL_HANGS ?
		    ACL_FN_HANGS : ACL_FN_ENDS, 0);
	else if (!acl_fn_is_there(l, t->fn))
		*ret = acl_fn_pack(ACL_FN_MISSING, 0);
	else if (!t->notes->is_late) {
		t->notes->trying = 1 + note;
		if ((rc = try_fn(t, ret, workspace)) < 0)
			return rc;
		t->notes->trying = 0;
	}
	return 0;
}

static int
begin(struct trial *t)
{
	unsigned i;
	int is_there = 1;

	for (i = 0; i < INPUTS; i++) {
		t->in[i] = malloc(input_bytes(t));
		is_there &= t->in[i] != NULL;
	}
	for (i = 0; i < ACL_FN_CLASSES; i++) {
		t->got[i] = malloc(result_bytes(t));
		is_there &= t->got[i] != NULL;
	}
	return is_there;
}

static void
end(struct trial *t)
{
	unsigned i;

	for (i = 0; i < INPUTS; i++)
		free(t->in[i]);
	for (i = 0; i < ACL_FN_CLASSES; i++)
		free(t->got[i]);
}

int
acl_try_fns(struct acl_session *s, struct acl_notes *notes, unsigned note0,
    uint32_t segment, uint32_t ret[ACL_FNS], uint64_t *ret_workspace)
{
	struct trial t = { .notes = notes, .f = { .s = s }, .widths = widths,
	    .nwidths = NITEMS(widths), .segment = segment, .eps = EPS };
	unsigned i;
	int rc = 0;

	memset(ret, 0, ACL_FNS * sizeof(*ret));
	*ret_workspace = 0;
	if (begin(&t))
		for (i = 0; i < ACL_FNS && rc == 0; i++) {
			t.fn = (enum acl_fn)i;
			rc = try_noted(&t, note0 + i, &ret[i],
			    ret_workspace);
		}
	end(&t);
	return rc;
}

int
acl_try_fns_at(struct acl_session *s, struct acl_notes *notes,
    const enum acl_fn *fn, unsigned nfns, const struct acl_fn_rows *rows,
    uint32_t *ret)
{
	struct trial t = { .notes = notes, .f = { .s = s,
	    .workspace_most = rows->workspace_most }, .widths = &rows->cols,
	    .nwidths = 1, .segment = rows->segment, .eps = rows->eps };
	uint64_t unused = 0;
	unsigned i;
	int rc = 0;

	*ret = acl_fn_pack(begin(&t) ? ACL_FN_RIGHT : ACL_FN_UNTRIED, 0);
	for (i = 0; i < nfns && rc == 0 && acl_fn_outcome(*ret) ==
	    ACL_FN_RIGHT; i++) {
		t.fn = fn[i];
		rc = try_fn(&t, ret, &unused);
		/* A session asks phase one only. */
		if (acl_fn_outcome(*ret) == ACL_FN_REFUSED && t.is_started)
			*ret = acl_fn_pack(ACL_FN_LATE, t.code);
		/* It is tried again, where there is some. */
		if (acl_fn_outcome(*ret) == ACL_FN_REFUSED && t.has_no_memory)
			*ret = acl_fn_pack(ACL_FN_UNTRIED, 0);
	}
	end(&t);
	return rc;
}
