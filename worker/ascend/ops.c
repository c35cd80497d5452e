/* worker/ascend/ops.c - see ops.h. */
#include "ops.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shapes of an argument. */
enum form {
	NONE,
	ROWS,			/* rows x cols */
	PAIRS,			/* rows x 2 cols */
	VECTOR,			/* cols */
	NUMBERS,		/* rows x 1 */
	HALVES,			/* rows x cols of 16 bits */
	HEADS,			/* rows x 1 x heads x (cols / heads) */
	ANGLES			/* rows x 1 x 1 x (cols / heads) */
};

static const struct fn {
	enum acl_operator op;
	const char *name;
	enum form in[ACL_FN_ARGS], out[ACL_FN_ARGS];
} fns[ACL_FNS] = {
	[ACL_FN_NORM] = { ACL_OP_RmsNorm, "aclnnRmsNorm", { ROWS, VECTOR },
	    { ROWS, NUMBERS } },
	[ACL_FN_ADD_NORM] = { ACL_OP_AddRmsNorm, "aclnnAddRmsNorm", { ROWS,
	    ROWS, VECTOR }, { ROWS, NUMBERS, ROWS } },
	[ACL_FN_SWIGLU] = { ACL_OP_SwiGlu, "aclnnSwiGlu", { PAIRS },
	    { ROWS } },
	[ACL_FN_SILU] = { ACL_OP_Silu, "aclnnSilu", { ROWS }, { ROWS } },
	[ACL_FN_MUL] = { ACL_OP_Mul, "aclnnMul", { ROWS, ROWS }, { ROWS } },
	[ACL_FN_SCALE] = { ACL_OP_Mul, "aclnnMul by a vector", { ROWS, VECTOR },
	    { ROWS } },
	[ACL_FN_ADD] = { ACL_OP_Add, "aclnnAdd", { ROWS, ROWS }, { ROWS } },
	/* The sum is the first input, and has no tensor of its own. */
	[ACL_FN_ADD_TO] = { ACL_OP_InplaceAdd, "aclnnInplaceAdd", { ROWS,
	    ROWS }, { NONE } },
	[ACL_FN_ROTATE] = { ACL_OP_RotaryPositionEmbedding,
	    "aclnnRotaryPositionEmbedding", { HEADS, ANGLES, ANGLES },
	    { HEADS } },
	[ACL_FN_TO_HALF] = { ACL_OP_Cast, "aclnnCast", { ROWS },
	    { HALVES } },
	[ACL_FN_TO_FLOAT] = { ACL_OP_Cast, "aclnnCast to 32 bits", { HALVES },
	    { ROWS } },
	[ACL_FN_SCALE_ROWS] = { ACL_OP_Mul, "aclnnMul by a column", { ROWS,
	    NUMBERS }, { ROWS } },
};

static const uint32_t classes[ACL_FN_CLASSES] = { 1, 8, ACL_FN_MOST_ROWS };

struct acl_fn_call {
	struct acl_fn_shape shape;
	struct acl_tensor *in[ACL_FN_ARGS], *out[ACL_FN_ARGS];
	struct acl_scalar *one;
	struct acl_executor *ex;	/* NULL: phase one before each run */
	uint64_t ws_bytes;
};

const char *
acl_fn_name(enum acl_fn fn)
{
	return fn < ACL_FNS ? fns[fn].name : "unknown";
}

int
acl_fn_is_there(const struct acl_lib *lib, enum acl_fn fn)
{
	return acl_has_operator(lib, fns[fn].op);
}

void
acl_fn_text(enum acl_fn fn, uint32_t packed, char *ret, size_t len)
{
	static const char *const texts[ACL_FN_OUTCOMES] = {
		[ACL_FN_UNTRIED] = "was not tried",
		[ACL_FN_RIGHT] = "is right",
		[ACL_FN_MISSING] = "is not in this CANN",
		[ACL_FN_WRONG] = "gives wrong numbers",
		[ACL_FN_COMPANY] = "depends on other rows",
		[ACL_FN_ENDS] = "ends its process",
		[ACL_FN_HANGS] = "never returns",
	};
	const enum acl_fn_outcome o = acl_fn_outcome(packed);
	const int code = (int)(packed & ((1u << ACL_FN_CODE_BITS) - 1));

	if (o == ACL_FN_REFUSED || o == ACL_FN_LATE)
		snprintf(ret, len, "%s: failed with %d, %s", acl_fn_name(fn),
		    code, acl_code_name(code));
	else
		snprintf(ret, len, "%s %s", acl_fn_name(fn), o <
		    ACL_FN_OUTCOMES ? texts[o] : "is unknown");
}

const char *
acl_fns_reason(const uint32_t outcome[ACL_FNS], const enum acl_fn *fn,
    unsigned n, char *ret, size_t len)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (acl_fn_outcome(outcome[fn[i]]) != ACL_FN_RIGHT) {
			acl_fn_text(fn[i], outcome[fn[i]], ret, len);
			return ret;
		}
	return NULL;
}

const char *
acl_fn_words(uint32_t packed, char buf[ACL_FN_WORDS])
{
	static const char *const words[ACL_FN_OUTCOMES] = {
		[ACL_FN_UNTRIED] = "not tried",
		[ACL_FN_RIGHT] = "right",
		[ACL_FN_MISSING] = "missing",
		[ACL_FN_WRONG] = "wrong",
		[ACL_FN_COMPANY] = "depends on other rows",
		[ACL_FN_ENDS] = "ends its process",
		[ACL_FN_HANGS] = "never returns",
	};
	const enum acl_fn_outcome o = acl_fn_outcome(packed);

	if (o < ACL_FN_OUTCOMES && words[o] != NULL)
		return words[o];
	snprintf(buf, ACL_FN_WORDS, "%u", packed & ((1u << ACL_FN_CODE_BITS) -
	    1));
	return buf;
}

uint32_t
acl_fn_class(unsigned i)
{
	return classes[i];
}

int
acl_fns_prepare_rows(struct acl_fns *f, const enum acl_fn *fn, unsigned n,
    uint32_t cols, struct err *reterr)
{
	struct acl_fn_shape shape = { .cols = cols };
	unsigned i, k;
	int rc = 0;

	for (i = 0; i < ACL_FN_CLASSES; i++)
		for (k = 0; k < n && rc == 0; k++) {
			shape.fn = fn[k];
			shape.rows = acl_fn_class(i);
			rc = acl_fns_prepare(f, &shape, NULL, reterr);
		}
	return rc;
}

uint32_t
acl_fn_rows(uint32_t left)
{
	unsigned i = 0;

	while (i + 1 < ACL_FN_CLASSES && classes[i] < left &&
	    (classes[i + 1] <= left || classes[i] == 1))
		i++;
	return classes[i];
}

/* --- calls --- */

static struct acl_tensor *
new_tensor(const struct acl_fns *f, const struct acl_fn_shape *s,
    enum form form, void *data)
{
	int64_t dims[4] = { s->rows, s->cols, 1, 1 }, strides[4];
	unsigned n = 2, i;

	if (form == PAIRS)
		dims[1] = 2 * (int64_t)s->cols;
	else if (form == NUMBERS)
		dims[1] = 1;
	else if (form == VECTOR) {
		dims[0] = s->cols;
		n = 1;
	} else if (form == HEADS || form == ANGLES) {
		dims[1] = 1;
		dims[2] = form == HEADS ? s->heads : 1;
		dims[3] = s->cols / s->heads;
		n = 4;
	}
	strides[n - 1] = 1;
	for (i = n - 1; i-- > 0;)
		strides[i] = strides[i + 1] * dims[i + 1];
	if (form == ROWS && s->stride > 0)
		strides[0] = s->stride;
	return f->s->src.lib->aclCreateTensor(dims, n, form == HALVES ?
	    ACL_FLOAT16 : ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, n, data);
}

static void
destroy_tensors(const struct acl_lib *l, struct acl_fn_call *c)
{
	unsigned i;

	for (i = 0; i < ACL_FN_ARGS; i++) {
		if (c->in[i] != NULL)
			l->aclDestroyTensor(c->in[i]);
		if (c->out[i] != NULL)
			l->aclDestroyTensor(c->out[i]);
		c->in[i] = c->out[i] = NULL;
	}
}

static int
create_tensors(const struct acl_fns *f, struct acl_fn_call *c,
    void *const in[ACL_FN_ARGS], void *const out[ACL_FN_ARGS],
    struct err *reterr)
{
	const struct fn *fn = &fns[c->shape.fn];
	unsigned i;

	for (i = 0; i < ACL_FN_ARGS; i++) {
		if (fn->in[i] != NONE)
			c->in[i] = new_tensor(f, &c->shape, fn->in[i], in[i]);
		if (fn->out[i] != NONE)
			c->out[i] = new_tensor(f, &c->shape, fn->out[i],
			    out[i]);
		if ((fn->in[i] != NONE && c->in[i] == NULL) ||
		    (fn->out[i] != NONE && c->out[i] == NULL))
			return acl_failed_null(f->s->src.lib,
			    f->s->src.session, "aclCreateTensor", reterr);
	}
	return 0;
}

static int
phase_one(const struct acl_fns *f, struct acl_fn_call *c,
    struct acl_executor **ex)
{
	const struct acl_lib *l = f->s->src.lib;
	struct acl_tensor *const *in = c->in, *const *out = c->out;
	uint64_t *ws = &c->ws_bytes;

	*ws = 0;
	switch (c->shape.fn) {
	case ACL_FN_NORM:
		return l->RmsNorm(in[0], in[1], (double)c->shape.eps, out[0],
		    out[1], ws, ex);
	case ACL_FN_ADD_NORM:
		return l->AddRmsNorm(in[0], in[1], in[2],
		    (double)c->shape.eps, out[0], out[1], out[2], ws, ex);
	case ACL_FN_SWIGLU:
		return l->SwiGlu(in[0], -1, out[0], ws, ex);
	case ACL_FN_SILU:
		return l->Silu(in[0], out[0], ws, ex);
	case ACL_FN_MUL:
	case ACL_FN_SCALE:
	case ACL_FN_SCALE_ROWS:
		return l->Mul(in[0], in[1], out[0], ws, ex);
	case ACL_FN_ADD:
		return l->Add(in[0], in[1], c->one, out[0], ws, ex);
	case ACL_FN_ADD_TO:
		return l->InplaceAdd(in[0], in[1], c->one, ws, ex);
	case ACL_FN_ROTATE:
		return l->RotaryPositionEmbedding(in[0], in[1], in[2], 0,
		    out[0], ws, ex);
	default:
		return l->Cast(in[0], c->shape.fn == ACL_FN_TO_HALF ?
		    ACL_FLOAT16 : ACL_FLOAT, out[0], ws, ex);
	}
}

static int
failed(const struct acl_fns *f, const struct acl_fn_call *c,
    const char *phase, int code, int *ret_code, struct err *reterr)
{
	char call[64];
	int rc;

	snprintf(call, sizeof(call), "%s%s", fns[c->shape.fn].name, phase);
	if (ret_code != NULL)
		*ret_code = code;
	rc = acl_failed(f->s->src.lib, f->s->src.session, call, code, reterr);
	return acl_is_refusal(code) || code == ACLNN_ERR_PARAM_INVALID ?
	    -ENOTSUP : rc;
}

static void
close_call(const struct acl_lib *l, struct acl_fn_call *c)
{
	if (c->ex != NULL)
		l->aclDestroyAclOpExecutor(c->ex);
	destroy_tensors(l, c);
	if (c->one != NULL)
		l->aclDestroyScalar(c->one);
	memset(c, 0, sizeof(*c));
}

/* Keep the executor, or show only that there can be one: then each run makes its
 * own. */
static int
open_call(struct acl_fns *f, struct acl_fn_call *c, int *ret_code,
    struct err *reterr)
{
	static void *const nowhere[ACL_FN_ARGS];
	const struct acl_lib *l = f->s->src.lib;
	struct acl_executor *ex = NULL;
	float one = 1;
	int rc;

	if ((c->one = l->aclCreateScalar(&one, ACL_FLOAT)) == NULL)
		return acl_failed_null(l, f->s->src.session, "aclCreateScalar",
		    reterr);
	if ((rc = create_tensors(f, c, nowhere, nowhere, reterr)) < 0)
		return rc;
	if ((rc = phase_one(f, c, &ex)) != ACL_SUCCESS)
		return failed(f, c, "GetWorkspaceSize", rc, ret_code, reterr);
	if (f->workspace_most > 0 && c->ws_bytes > f->workspace_most) {
		l->aclDestroyAclOpExecutor(ex);
		return err_set(reterr, ERR_RUN, -ENOTSUP, "session %s: %s "
		    "needs %" PRIu64 " bytes of workspace, and %" PRIu64
		    " are planned", f->s->src.session,
		    fns[c->shape.fn].name, c->ws_bytes, f->workspace_most);
	}
	f->workspace_need = MAX(f->workspace_need, c->ws_bytes);
	if (l->aclSetAclOpExecutorRepeatable(ex) == ACL_SUCCESS)
		c->ex = ex;
	else
		l->aclDestroyAclOpExecutor(ex);
	return 0;
}

static int
is_same(const struct acl_fn_shape *a, const struct acl_fn_shape *b)
{
	return a->fn == b->fn && a->rows == b->rows && a->cols == b->cols &&
	    a->stride == b->stride && a->heads == b->heads &&
	    memcmp(&a->eps, &b->eps, sizeof(a->eps)) == 0;
}

static struct acl_fn_call *
find_call(const struct acl_fns *f, const struct acl_fn_shape *shape)
{
	unsigned i;

	for (i = 0; i < f->ncalls; i++)
		if (is_same(&f->call[i].shape, shape))
			return &f->call[i];
	return NULL;
}

int
acl_fns_prepare(struct acl_fns *f, const struct acl_fn_shape *shape,
    int *ret_code, struct err *reterr)
{
	struct acl_fn_call *c;
	int rc;

	if (find_call(f, shape) != NULL)
		return 0;
	c = reallocarray(f->call, f->ncalls + 1, sizeof(*c));
	if (c == NULL)
		return err_nomem(reterr, "the operators of a device");
	f->call = c;
	c += f->ncalls;
	*c = (struct acl_fn_call){ .shape = *shape };
	if ((rc = open_call(f, c, ret_code, reterr)) < 0)
		close_call(f->s->src.lib, c);
	else
		f->ncalls++;
	return rc;
}

/* --- runs --- */

static int
set_addresses(const struct acl_fns *f, struct acl_fn_call *c,
    void *const in[ACL_FN_ARGS], void *const out[ACL_FN_ARGS],
    struct err *reterr)
{
	const struct acl_lib *l = f->s->src.lib;
	unsigned i;
	int rc = ACL_SUCCESS;

	for (i = 0; i < ACL_FN_ARGS && rc == ACL_SUCCESS; i++)
		if (c->in[i] != NULL)
			rc = l->aclSetInputTensorAddr(c->ex, i, c->in[i],
			    in[i]);
	if (rc != ACL_SUCCESS)
		return acl_failed(l, f->s->src.session,
		    "aclSetInputTensorAddr", rc, reterr);
	for (i = 0; i < ACL_FN_ARGS && rc == ACL_SUCCESS; i++)
		if (c->out[i] != NULL)
			rc = l->aclSetOutputTensorAddr(c->ex, i, c->out[i],
			    out[i]);
	if (c->shape.fn == ACL_FN_ADD_TO)
		rc = l->aclSetOutputTensorAddr(c->ex, 0, c->in[0], in[0]);
	return rc == ACL_SUCCESS ? 0 : acl_failed(l, f->s->src.session,
	    "aclSetOutputTensorAddr", rc, reterr);
}

int
acl_fns_start(struct acl_fns *f, const struct acl_fn_shape *shape,
    void *const in[ACL_FN_ARGS], void *const out[ACL_FN_ARGS], int *ret_code,
    struct err *reterr)
{
	const struct acl_lib *l = f->s->src.lib;
	struct acl_fn_call *c = find_call(f, shape);
	struct acl_executor *ex;
	int rc;

	if (c == NULL)
		return err_set(reterr, ERR_RUN, -EINVAL, "session %s: %s of "
		    "%u x %u was not prepared", f->s->src.session,
		    acl_fn_name(shape->fn), shape->rows, shape->cols);
	if ((rc = acl_session_count_task(f->s, reterr)) < 0)
		return rc;
	if ((ex = c->ex) != NULL) {
		if ((rc = set_addresses(f, c, in, out, reterr)) < 0)
			return rc;
	} else {
		destroy_tensors(l, c);
		if ((rc = create_tensors(f, c, in, out, reterr)) < 0)
			return rc;
		if ((rc = phase_one(f, c, &ex)) != ACL_SUCCESS)
			return failed(f, c, "GetWorkspaceSize", rc, ret_code,
			    reterr);
	}
	rc = l->run[fns[shape->fn].op](c->ws_bytes > 0 ? f->workspace : NULL,
	    c->ws_bytes, ex, f->s->stream);
	return rc == ACL_SUCCESS ? 0 : failed(f, c, "", rc, ret_code, reterr);
}

void
acl_fns_close(struct acl_fns *f)
{
	while (f->ncalls > 0)
		close_call(f->s->src.lib, &f->call[--f->ncalls]);
	free(f->call);
	f->call = NULL;
	f->workspace_need = 0;
}
