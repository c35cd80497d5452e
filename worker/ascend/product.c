/* worker/ascend/product.c - see product.h. */
#include "product.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "shm/event.h"
#include "classic.h"
#include "layout.h"
#include "memo.h"

/* The device's own timeout of an operator comes first. */
#define CONVERT_NS	(UINT64_C(1000000000) * (ACL_OPERATOR_S + 2))

struct acl_call {
	enum ascend_format format;
	enum acl_way way;
	enum acl_nz nz;
	int c_type;
	uint32_t n, k, rows;
	struct acl_tensor *a, *w, *c;
	struct acl_tensor *scales, *offsets;	/* of integers */
	struct acl_int_array *one, *zero;	/* of a convolution */
	struct acl_executor *ex;	/* NULL: phase one before each run */
	struct acl_classic *classic;	/* instead of all these */
	uint64_t ws_bytes;
};

static const struct way {
	const char *name;
	enum acl_operator op;
} ways[ACL_NWAYS] = {
	[ACL_WAY_NONE] = { "none", ACL_NOPS },
	[ACL_WAY_MM] = { "aclnnMm", ACL_OP_Mm },
	[ACL_WAY_MATMUL] = { "aclnnMatmul", ACL_OP_Matmul },
	[ACL_WAY_BATCH_MATMUL] = { "aclnnBatchMatMul", ACL_OP_BatchMatMul },
	[ACL_WAY_CONVOLUTION] = { "aclnnConvolution", ACL_OP_Convolution },
	[ACL_WAY_CLASSIC] = { "aclop MatMulV2", ACL_NOPS },
	[ACL_WAY_GROUPS] = { "aclnnWeightQuantBatchMatmulV2",
	    ACL_OP_WeightQuantBatchMatmulV2 },
};

const char *
acl_way_name(enum acl_way way)
{
	return way < ACL_NWAYS ? ways[way].name : "unknown";
}

int
acl_way_is_there(const struct acl_lib *lib, enum acl_way way)
{
	if (way == ACL_WAY_CLASSIC)
		return acl_has_classic(lib);
	return ways[way].op < ACL_NOPS && acl_has_operator(lib, ways[way].op);
}

int
acl_nz_is_there(const struct acl_lib *lib, enum acl_way way, enum acl_nz nz)
{
	if (nz == ACL_ND)
		return 1;
	return (way == ACL_WAY_MM || way == ACL_WAY_MATMUL) &&
	    (nz == ACL_NZ_BY_US || (nz == ACL_NZ_BY_LIBRARY &&
	    acl_has_operator(lib, ACL_OP_TransMatmulWeight)));
}

int
acl_way_has_graphs(enum acl_way way)
{
	/* A stream that is captured takes no operators by name. */
	return way != ACL_WAY_NONE && way != ACL_WAY_CLASSIC;
}

/* --- cuts --- */

static uint32_t
segment(const struct acl_products *p, uint32_t k)
{
	return p->choice->chip.cut_k ? MIN(k, (uint32_t)ASCEND_SEGMENT) : k;
}

static const struct acl_shape_way *
find_shape(const struct acl_choice *c, const struct acl_matrix *w)
{
	const struct acl_shape_way *s = c->shape;

	for (; s < c->shape + c->nshapes; s++)
		if (s->n == w->n && s->k == w->k && s->format ==
		    w->format)
			return s;
	return NULL;
}

struct acl_form
acl_form_of(const struct acl_choice *c, const struct acl_matrix *w)
{
	const struct acl_shape_way *s = find_shape(c, w);
	struct acl_form f = c->form[w->format];

	if (s != NULL) {
		f.way = s->way;
		f.nz = s->nz;
	}
	return f;
}

enum acl_way
acl_way_of(const struct acl_choice *c, const struct acl_matrix *w, unsigned i)
{
	const struct acl_shape_way *s = find_shape(c, w);

	return (enum acl_way)(s == NULL ? c->form[w->format].way :
	    s->twin[i] != ACL_WAY_NONE ? s->twin[i] : s->way);
}

int
acl_matrix_has_graphs(const struct acl_choice *c, const struct acl_matrix *w)
{
	const struct acl_form f = acl_form_of(c, w);
	unsigned i;

	for (i = 0; i < f.nclasses; i++)
		if ((c->graphs & ACL_GRAPH_BIT(acl_way_of(c, w, i),
		    f.nz)) == 0)
			return 0;
	return 1;
}

static struct acl_form
form_of(const struct acl_products *p, const struct acl_matrix *w)
{
	return acl_form_of(p->choice, w);
}

uint32_t
acl_products_rows(const struct acl_products *p, const struct acl_matrix *w,
    uint32_t m)
{
	const struct acl_form *f = &p->choice->form[w->format];
	uint32_t most = ascend_rows(&p->choice->chip, w->n, w->k), i = 0;

	while (i + 1 < f->nclasses && f->rows[i] < m && f->rows[i + 1] <= most)
		i++;
	return f->rows[i];
}

static uint32_t
fill(const struct acl_form *f, uint32_t m)
{
	const uint32_t rest = m % f->rows[f->nclasses - 1];
	unsigned i = 0;

	while (rest > 0 && f->rows[i] < rest)
		i++;
	return m - rest + (rest > 0 ? f->rows[i] : 0);
}

uint32_t
acl_products_fill(const struct acl_products *p, uint32_t m)
{
	const struct acl_form *f = p->choice->form;
	uint32_t n = m;

	for (; f < p->choice->form + ASCEND_FORMATS; f++)
		if (f->way != ACL_WAY_NONE)
			n = MAX(n, fill(f, m));
	return n;
}

uint64_t
acl_a_index(const struct acl_products *p, uint32_t k, uint32_t rows,
    uint32_t r, uint32_t at)
{
	const uint32_t len = segment(p, k), k0 = at / len * len;

	return (uint64_t)rows * k0 + (uint64_t)r * MIN(len, k - k0) +
	    (at - k0);
}

uint64_t
acl_w_index(const struct acl_products *p, const struct acl_matrix *w,
    uint32_t row, uint32_t col)
{
	const uint32_t len = segment(p, w->k), k0 = col / len * len;
	const uint32_t cols = MIN(len, w->k - k0), n0 = row - row % ACL_MOST_N;
	const enum acl_nz nz = (enum acl_nz)form_of(p, w).nz;
	const uint64_t first = k0 * (nz == ACL_ND ? (uint64_t)w->n :
	    ALIGN_UP((uint64_t)w->n, (uint64_t)ACL_NZ_ROWS));

	if (nz != ACL_NZ_BY_US)
		return first + (uint64_t)row * cols + (col - k0);
	return first + (uint64_t)n0 * cols + acl_nz_index(MIN(w->n - n0,
	    (uint32_t)ACL_MOST_N), sizeof(uint16_t), row - n0, col - k0);
}

/* --- calls --- */

static struct acl_tensor *
new_tensor(const struct acl_products *p, enum acl_way way, int dtype,
    uint32_t rows, uint32_t cols, int is_transposed, void *data)
{
	const int is_batch = way == ACL_WAY_BATCH_MATMUL;
	const int is_image = way == ACL_WAY_CONVOLUTION;
	int64_t dims[4], strides[4], storage[4];
	unsigned n = 0;

	if (is_batch) {
		dims[n] = storage[n] = 1;
		strides[n++] = (int64_t)rows * cols;
	}
	/* The view of W^T in the memory of W, where the operator wants it. */
	is_transposed = is_transposed && !is_image;
	dims[n] = is_transposed ? cols : rows;
	dims[n + 1] = is_transposed ? rows : cols;
	strides[n] = is_transposed ? 1 : cols;
	strides[n + 1] = is_transposed ? cols : 1;
	storage[n] = rows;
	storage[n + 1] = cols;
	n += 2;
	for (; is_image && n < 4; n++)
		dims[n] = strides[n] = storage[n] = 1;
	return p->s->src.lib->aclCreateTensor(dims, n, dtype, strides, 0,
	    is_image ? ACL_FORMAT_NCHW : ACL_FORMAT_ND, storage, n, data);
}

/* The view of W^T, where W (n x k) is in FRACTAL_NZ. */
static struct acl_tensor *
new_nz_tensor(const struct acl_products *p, uint32_t n, uint32_t k, void *data)
{
	const uint32_t tile = ACL_NZ_BYTES / sizeof(uint16_t);
	const int64_t dims[2] = { k, n }, strides[2] = { 1, k };
	const int64_t storage[4] = { DIV_UP(k, tile), DIV_UP(n,
	    (uint32_t)ACL_NZ_ROWS), ACL_NZ_ROWS, tile };

	return p->s->src.lib->aclCreateTensor(dims, 2, ACL_FLOAT16, strides, 0,
	    ACL_FORMAT_FRACTAL_NZ, storage, 4, data);
}

/* An executor may refer to the arrays as long as it is used. */
static int
convolve(const struct acl_lib *l, struct acl_call *c, uint64_t *ws,
    struct acl_executor **ex)
{
	static const int64_t ones[2] = { 1, 1 }, zeros[2] = { 0, 0 };

	if (c->one == NULL)
		c->one = l->aclCreateIntArray(ones, 2);
	if (c->zero == NULL)
		c->zero = l->aclCreateIntArray(zeros, 2);
	if (c->one == NULL || c->zero == NULL)
		return ACL_ERROR_BAD_ALLOC;
	return l->Convolution(c->a, c->w, NULL, c->one, c->zero, c->one, 0,
	    c->zero, 1, c->c, ACL_CUBE_KEEP_DTYPE, ws, ex);
}

static int
phase_one(const struct acl_products *p, struct acl_call *c,
    struct acl_executor **ex)
{
	const struct acl_lib *l = p->s->src.lib;

	c->ws_bytes = 0;
	switch (c->way) {
	case ACL_WAY_MM:
		return l->Mm(c->a, c->w, c->c, ACL_CUBE_KEEP_DTYPE,
		    &c->ws_bytes, ex);
	case ACL_WAY_MATMUL:
		return l->Matmul(c->a, c->w, c->c, ACL_CUBE_KEEP_DTYPE,
		    &c->ws_bytes, ex);
	case ACL_WAY_BATCH_MATMUL:
		return l->BatchMatMul(c->a, c->w, c->c, ACL_CUBE_KEEP_DTYPE,
		    &c->ws_bytes, ex);
	case ACL_WAY_GROUPS:
		return l->WeightQuantBatchMatmulV2(c->a, c->w, c->scales,
		    c->offsets, NULL, NULL, NULL, ASCEND_GROUP, c->c, &c->ws_bytes, ex);
	default:
		return convolve(l, c, &c->ws_bytes, ex);
	}
}

static int
failed(const struct acl_products *p, const struct acl_call *c,
    const char *phase, int code, struct err *reterr)
{
	char call[64];
	int rc;

	snprintf(call, sizeof(call), "%s%s", ways[c->way].name, phase);
	rc = acl_failed(p->s->src.lib, p->s->src.session, call, code, reterr);
	return acl_is_refusal(code) || code == ACLNN_ERR_PARAM_INVALID ?
	    -ENOTSUP : rc;
}

static void
destroy_tensors(const struct acl_lib *l, struct acl_call *c)
{
	if (c->a != NULL)
		l->aclDestroyTensor(c->a);
	if (c->w != NULL)
		l->aclDestroyTensor(c->w);
	if (c->c != NULL)
		l->aclDestroyTensor(c->c);
	if (c->scales != NULL)
		l->aclDestroyTensor(c->scales);
	if (c->offsets != NULL)
		l->aclDestroyTensor(c->offsets);
	c->a = c->w = c->c = c->scales = c->offsets = NULL;
}

/* Addresses of a call's data on the device. */
struct addresses { void *a, *w, *scales, *offsets, *c; };

static int
create_tensors(const struct acl_products *p, struct acl_call *c,
    const struct addresses *at, struct err *reterr)
{
	static const int dtypes[ASCEND_FORMATS] = { ACL_FLOAT16, ACL_INT8,
	    ACL_INT4, ACL_INT4 };
	const enum acl_way way = c->way;

	c->a = new_tensor(p, way, ACL_FLOAT16, c->rows, c->k, 0, at->a);
	c->w = c->nz != ACL_ND ? new_nz_tensor(p, c->n, c->k, at->w) :
	    new_tensor(p, way, dtypes[c->format], c->n, c->k, 1, at->w);
	c->c = new_tensor(p, way, c->c_type, c->rows, c->n, 0, at->c);
	if (c->format != ASCEND_HALF)
		c->scales = new_tensor(p, way, ACL_FLOAT16, c->n, c->k /
		    ASCEND_GROUP, 1, at->scales);
	if (c->format == ASCEND_OFFSETS)
		c->offsets = new_tensor(p, way, ACL_FLOAT16, c->n, c->k /
		    ASCEND_GROUP, 1, at->offsets);
	return c->a != NULL && c->w != NULL && c->c != NULL &&
	    (c->format == ASCEND_HALF || c->scales != NULL) &&
	    (c->format != ASCEND_OFFSETS || c->offsets != NULL) ? 0 :
	    acl_failed_null(p->s->src.lib, p->s->src.session,
	    "aclCreateTensor", reterr);
}

static void
close_call(const struct acl_lib *l, struct acl_call *c)
{
	if (c->ex != NULL)
		l->aclDestroyAclOpExecutor(c->ex);
	acl_classic_close(l, c->classic);
	destroy_tensors(l, c);
	if (c->one != NULL)
		l->aclDestroyIntArray(c->one);
	if (c->zero != NULL)
		l->aclDestroyIntArray(c->zero);
	memset(c, 0, sizeof(*c));
}

static int
check_workspace(struct acl_products *p, const struct acl_call *c,
    const char *name, uint64_t need, struct err *reterr)
{
	const uint64_t most = ascend_workspace(&p->choice->chip, c->n, c->k);

	if (p->is_limited && need > most)
		return err_set(reterr, ERR_RUN, -ENOTSUP, "session %s: %s "
		    "needs %" PRIu64 " bytes of workspace, and %" PRIu64 " are "
		    "planned", p->s->src.session, name, need, most);
	p->workspace_need = MAX(p->workspace_need, need);
	return 0;
}

/* --- W in FRACTAL_NZ by the library --- */

#define CONVERT	"aclnnTransMatmulWeight"

/* The library's padding is what weights have room for. */
static int
check_padding(const struct acl_products *p, const struct acl_call *c,
    struct err *reterr)
{
	const struct acl_lib *l = p->s->src.lib;
	const int64_t dims[2] = { c->n, c->k };
	const uint64_t room = acl_nz_elements(c->n, c->k, sizeof(uint16_t));
	struct acl_int_array *a;
	uint64_t need = 0;
	int rc;

	if (l->aclnnCalculateMatmulWeightSizeV2 == NULL)
		return 0;
	if ((a = l->aclCreateIntArray(dims, 2)) == NULL)
		return acl_failed_null(l, p->s->src.session,
		    "aclCreateIntArray", reterr);
	rc = l->aclnnCalculateMatmulWeightSizeV2(a, ACL_FLOAT16, &need);
	l->aclDestroyIntArray(a);
	if (rc != ACL_SUCCESS) {
		(void)acl_failed(l, p->s->src.session,
		    "aclnnCalculateMatmulWeightSizeV2", rc, reterr);
		return -ENOTSUP;
	}
	return need <= room ? 0 : err_set(reterr, ERR_RUN, -ENOTSUP,
	    "session %s: " CONVERT " needs %" PRIu64 " elements for %u x %u, "
	    "and there are %" PRIu64, p->s->src.session, need, c->n, c->k,
	    room);
}

/* Phase one.  The caller destroys *t; phase two, or the caller, *ex. */
static int
begin_conversion(const struct acl_products *p, uint32_t n, uint32_t k,
    void *data, struct acl_tensor **t, struct acl_executor **ex, uint64_t *ws,
    struct err *reterr)
{
	const struct acl_lib *l = p->s->src.lib;
	int rc;

	*ws = 0;
	*t = new_tensor(p, ACL_WAY_NONE, ACL_FLOAT16, n, k, 0, data);
	if (*t == NULL)
		return acl_failed_null(l, p->s->src.session, "aclCreateTensor",
		    reterr);
	if ((rc = l->TransMatmulWeight(*t, ws, ex)) == ACL_SUCCESS)
		return 0;
	l->aclDestroyTensor(*t);
	rc = acl_failed(l, p->s->src.session, CONVERT "GetWorkspaceSize", rc,
	    reterr);
	return rc < 0 ? -ENOTSUP : rc;
}

static int
check_conversion(struct acl_products *p, const struct acl_call *c,
    struct err *reterr)
{
	struct acl_executor *ex;
	struct acl_tensor *t;
	uint64_t ws;
	int rc;

	if ((rc = check_padding(p, c, reterr)) < 0 ||
	    (rc = begin_conversion(p, c->n, c->k, NULL, &t, &ex, &ws,
	    reterr)) < 0)
		return rc;
	p->s->src.lib->aclDestroyAclOpExecutor(ex);
	p->s->src.lib->aclDestroyTensor(t);
	return check_workspace(p, c, CONVERT, ws, reterr);
}

static int
convert(struct acl_products *p, uint32_t n, uint32_t k, void *data,
    struct err *reterr)
{
	const struct acl_lib *l = p->s->src.lib;
	struct acl_executor *ex;
	struct acl_tensor *t;
	uint64_t ws;
	int rc = begin_conversion(p, n, k, data, &t, &ex, &ws, reterr);

	if (rc < 0)
		return rc;
	rc = l->run[ACL_OP_TransMatmulWeight](ws > 0 ? p->workspace : NULL, ws,
	    ex, p->s->stream);
	rc = rc != ACL_SUCCESS ? acl_failed(l, p->s->src.session, CONVERT, rc,
	    reterr) : acl_session_wait(p->s, event_now_ns() + CONVERT_NS,
	    reterr);
	l->aclDestroyTensor(t);
	return rc;
}

int
acl_products_convert(struct acl_products *p, const struct acl_matrix *w,
    struct err *reterr)
{
	char *there = (char *)(uintptr_t)w->w;
	uint32_t n0, k0;
	int rc = 0;

	if (form_of(p, w).nz != ACL_NZ_BY_LIBRARY)
		return 0;
	for (n0 = 0; n0 < w->n && rc == 0; n0 += ACL_MOST_N)
		for (k0 = 0; k0 < w->k && rc == 0; k0 += segment(p, w->k))
			rc = convert(p, MIN(w->n - n0, (uint32_t)ACL_MOST_N),
			    MIN(w->k - k0, segment(p, w->k)), there +
			    acl_w_index(p, w, n0, k0) * sizeof(uint16_t),
			    reterr);
	return rc;
}

/* --- opening a call --- */

/* Compile the operator, unless that takes a trial too long. */
static int
open_classic(struct acl_products *p, struct acl_call *c, struct err *reterr)
{
	if (p->compile_by_ns != 0 && event_now_ns() > p->compile_by_ns)
		return err_set(reterr, ERR_RUN, -ENOTSUP, "session %s: %s "
		    "is compiled too slowly", p->s->src.session,
		    acl_way_name(ACL_WAY_CLASSIC));
	return acl_classic_open(p->s, &(struct acl_classic_shape){
	    .rows = c->rows, .n = c->n, .k = c->k,
	    .c_type = c->c_type }, &c->classic, reterr);
}

/* Keep the executor, or show only that there can be one: then each run makes its
 * own. */
static int
open_call(struct acl_products *p, struct acl_call *c, struct err *reterr)
{
	static const struct addresses nowhere;
	const struct acl_lib *l = p->s->src.lib;
	struct acl_executor *ex = NULL;
	int rc;

	acl_memo_next_call();
	if (c->way == ACL_WAY_CLASSIC)
		return open_classic(p, c, reterr);
	if ((rc = create_tensors(p, c, &nowhere, reterr)) < 0)
		return rc;
	if ((rc = phase_one(p, c, &ex)) != ACL_SUCCESS)
		return failed(p, c, "GetWorkspaceSize", rc, reterr);
	if ((rc = check_workspace(p, c, ways[c->way].name, c->ws_bytes,
	    reterr)) < 0 || (c->nz == ACL_NZ_BY_LIBRARY &&
	    (rc = check_conversion(p, c, reterr)) < 0)) {
		l->aclDestroyAclOpExecutor(ex);
		return rc;
	}
	if (l->aclSetAclOpExecutorRepeatable(ex) == ACL_SUCCESS)
		c->ex = ex;
	else
		l->aclDestroyAclOpExecutor(ex);
	return 0;
}

/* The call for products with the form's class i of rows: the part of N from n0 on, and
 * the segment of K from k0 on. */
static struct acl_call
new_call(const struct acl_products *p, const struct acl_matrix *w, unsigned i,
    uint32_t n0, uint32_t k0)
{
	const struct acl_form f = form_of(p, w);

	return (struct acl_call){ .format = w->format,
	    .way = acl_way_of(p->choice, w, i), .nz = (enum acl_nz)f.nz,
	    .c_type = f.c_type, .n = MIN(w->n - n0, (uint32_t)ACL_MOST_N),
	    .k = MIN(w->k - k0, segment(p, w->k)), .rows = f.rows[i] };
}

static struct acl_call *
find_call(const struct acl_products *p, const struct acl_call *like)
{
	struct acl_call *c;
	unsigned i;

	for (i = 0; i < p->ncalls; i++) {
		c = &p->call[i];
		if (c->format == like->format && c->way == like->way &&
		    c->nz == like->nz && c->n == like->n &&
		    c->k == like->k && c->rows == like->rows)
			return c;
	}
	return NULL;
}

static int
add_call(struct acl_products *p, const struct acl_call *new,
    struct err *reterr)
{
	struct acl_call *c;
	int rc;

	if (find_call(p, new) != NULL)
		return 0;
	c = reallocarray(p->call, p->ncalls + 1, sizeof(*c));
	if (c == NULL)
		return err_nomem(reterr, "the products of a device");
	p->call = c;
	c += p->ncalls;
	*c = *new;
	if (p->steps != NULL)
		++*p->steps;
	if ((rc = open_call(p, c, reterr)) < 0)
		close_call(p->s->src.lib, c);
	else
		p->ncalls++;
	return rc;
}

int
acl_products_prepare(struct acl_products *p, const struct acl_matrix *w,
    struct err *reterr)
{
	const struct acl_form *f = &p->choice->form[w->format];
	const uint32_t most = ascend_rows(&p->choice->chip, w->n, w->k);
	struct acl_call c;
	uint32_t n0, k0, i;
	int rc = 0;

	for (i = 0; i < f->nclasses; i++) {
		if (i > 0 && f->rows[i] > most)
			break;
		for (n0 = 0; n0 < w->n; n0 += ACL_MOST_N)
			for (k0 = 0; k0 < w->k; k0 += segment(p, w->k)) {
				c = new_call(p, w, i, n0, k0);
				if ((rc = add_call(p, &c, reterr)) < 0)
					return rc;
			}
	}
	return 0;
}

/* --- runs --- */

/* In bytes, C's block of part n0 and segment k0. */
static uint64_t
c_at(const struct acl_products *p, const struct acl_matrix *w, uint32_t rows,
    uint32_t n0, uint32_t k0)
{
	uint64_t one = p->choice->form[w->format].c_type == ACL_FLOAT ?
	    sizeof(float) : sizeof(uint16_t);

	/* Each block begins at a multiple of 32 bytes. */
	return ((uint64_t)(k0 / segment(p, w->k)) * ALIGN_UP((uint64_t)w->n,
	    (uint64_t)ASCEND_UNIT) + n0) * rows * one;
}

/* A repeatable executor gets the addresses; otherwise phase one is called with new
 * tensors. */
static int
bind(const struct acl_products *p, struct acl_call *c,
    const struct addresses *at, struct acl_executor **ret, struct err *reterr)
{
	const struct acl_lib *l = p->s->src.lib;
	int rc;

	*ret = c->ex;
	if (c->ex == NULL) {
		destroy_tensors(l, c);
		if ((rc = create_tensors(p, c, at, reterr)) < 0)
			return rc;
		rc = phase_one(p, c, ret);
		return rc == ACL_SUCCESS ? 0 : failed(p, c, "GetWorkspaceSize",
		    rc, reterr);
	}
	if ((rc = l->aclSetInputTensorAddr(*ret, 0, c->a, at->a)) !=
	    ACL_SUCCESS || (rc = l->aclSetInputTensorAddr(*ret, 1, c->w,
	    at->w)) != ACL_SUCCESS || (c->scales != NULL &&
	    (rc = l->aclSetInputTensorAddr(*ret, 2, c->scales, at->scales)) !=
	    ACL_SUCCESS) || (c->offsets != NULL &&
	    (rc = l->aclSetInputTensorAddr(*ret, 3, c->offsets,
	    at->offsets)) != ACL_SUCCESS))
		return acl_failed(l, p->s->src.session,
		    "aclSetInputTensorAddr", rc, reterr);
	rc = l->aclSetOutputTensorAddr(*ret, 0, c->c, at->c);
	return rc == ACL_SUCCESS ? 0 : acl_failed(l, p->s->src.session,
	    "aclSetOutputTensorAddr", rc, reterr);
}

static unsigned
class_index(const struct acl_form *f, uint32_t rows)
{
	unsigned i = 0;

	while (i + 1 < f->nclasses && f->rows[i] < rows)
		i++;
	return i;
}

static int
start_call(struct acl_products *p, const struct acl_matrix *w, uint32_t rows,
    uint32_t r0, uint32_t class, uint32_t n0, uint32_t k0, uint64_t c_from,
    struct err *reterr)
{
	const struct acl_call like = new_call(p, w, class_index(
	    &p->choice->form[w->format], class), n0, k0);
	struct acl_call *c = find_call(p, &like);
	const uint64_t i = acl_w_index(p, w, n0, k0);
	char *weights = (char *)(uintptr_t)w->w;
	struct acl_executor *ex;
	struct addresses at;
	int rc;

	if (c == NULL)
		return err_set(reterr, ERR_RUN, -EINVAL, "session %s: a "
		    "product of %u x %u was not prepared", p->s->src.session,
		    w->n, w->k);
	at.a = (uint16_t *)p->device_a + acl_a_index(p, w->k, rows, r0, k0);
	at.w = weights + ascend_format_bytes(w->format, i);
	at.scales = weights + ascend_scales_at(w->format, w->n, w->k) + i /
	    ASCEND_GROUP * sizeof(uint16_t);
	at.offsets = weights + ascend_offsets_at(w->format, w->n, w->k) + i /
	    ASCEND_GROUP * sizeof(uint16_t);
	at.c = (char *)p->device_c + c_from + c_at(p, w, class, n0, k0);
	if (c->classic != NULL)
		return acl_classic_start(p->s, c->classic, at.a, at.w, at.c,
		    reterr);
	if ((rc = acl_session_count_task(p->s, reterr)) < 0 ||
	    (rc = bind(p, c, &at, &ex, reterr)) < 0)
		return rc;
	rc = p->s->src.lib->run[ways[c->way].op](c->ws_bytes > 0 ?
	    p->workspace : NULL, c->ws_bytes, ex, p->s->stream);
	return rc == ACL_SUCCESS ? 0 : failed(p, c, "", rc, reterr);
}

int
acl_products_send(struct acl_products *p, uint32_t k, uint32_t rows,
    struct err *reterr)
{
	return p->device_a == p->a ? 0 : acl_session_copy(p->s, p->device_a, p->a,
	    (uint64_t)rows * k * sizeof(*p->a), ACL_MEMCPY_HOST_TO_DEVICE,
	    reterr);
}

uint64_t
acl_products_c_bytes(const struct acl_products *p, const struct acl_matrix *w,
    uint32_t m)
{
	return c_at(p, w, acl_products_rows(p, w, m), 0, ascend_segments(
	    &p->choice->chip, w->k) * segment(p, w->k));
}

int
acl_products_compute(struct acl_products *p, const struct acl_matrix *w,
    uint32_t rows, uint32_t r0, uint32_t m, uint64_t at, struct err *reterr)
{
	const uint32_t class = acl_products_rows(p, w, m);
	uint32_t n0, k0;
	int rc;

	for (n0 = 0; n0 < w->n; n0 += ACL_MOST_N)
		for (k0 = 0; k0 < w->k; k0 += segment(p, w->k))
			if ((rc = start_call(p, w, rows, r0, class, n0, k0, at,
			    reterr)) < 0)
				return rc;
	return 0;
}

int
acl_products_start(struct acl_products *p, const struct acl_matrix *w,
    uint32_t rows, uint32_t r0, uint32_t m, uint64_t at, struct err *reterr)
{
	int rc = acl_products_compute(p, w, rows, r0, m, at, reterr);

	if (rc < 0 || p->device_c == p->c)
		return rc;
	return acl_session_copy(p->s, (char *)p->c + at, (char *)p->device_c + at,
	    acl_products_c_bytes(p, w, m), ACL_MEMCPY_DEVICE_TO_HOST, reterr);
}

static void
add_part(int c_type, const void *block, uint32_t r, uint32_t n, int is_first,
    float *ret)
{
	const float *f = (const float *)block + (uint64_t)r * n;
	const uint16_t *h = (const uint16_t *)block + (uint64_t)r * n;
	uint32_t i;

	for (i = 0; i < n; i++) {
		float v = c_type == ACL_FLOAT ? f[i] : half_to_float(h[i]);

		ret[i] = is_first ? v : ret[i] + v;
	}
}

void
acl_products_read(const struct acl_products *p, const struct acl_matrix *w,
    uint32_t m, uint64_t at, uint32_t r, float *ret)
{
	const uint32_t class = acl_products_rows(p, w, m);
	uint32_t n0, k0;

	for (n0 = 0; n0 < w->n; n0 += ACL_MOST_N)
		for (k0 = 0; k0 < w->k; k0 += segment(p, w->k))
			add_part(p->choice->form[w->format].c_type, (char *)p->c +
			    at + c_at(p, w, class, n0, k0), r, MIN(w->n - n0,
			    (uint32_t)ACL_MOST_N), k0 == 0, ret + n0);
}

void
acl_products_close(struct acl_products *p)
{
	while (p->ncalls > 0)
		close_call(p->s->src.lib, &p->call[--p->ncalls]);
	free(p->call);
	p->call = NULL;
	p->workspace_need = 0;
}
