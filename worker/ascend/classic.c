/* worker/ascend/classic.c - see classic.h. */
#include "classic.h"

#include <errno.h>
#include <stdlib.h>

#include "memo.h"

#define OPERATOR	"MatMulV2"

enum { IN_A, IN_W, NIN };

/* Descriptors and attributes live as long as the handle, which may refer to
 * them. */
struct acl_classic {
	struct acl_desc *in[NIN], *out;
	struct acl_buffer *in_data[NIN], *out_data;
	uint64_t in_bytes[NIN], out_bytes;
	struct acl_attr *attr;
	struct acl_handle *handle;
};

/* Codes of the compiler are those of all its parts: any of them is a refusal. */
static int
refused(const struct acl_session *s, const char *call, int code,
    struct err *reterr)
{
	acl_failed(s->src.lib, s->src.session, call, code, reterr);
	return -ENOTSUP;
}

/* Types as they are given, kernels that are installed rather than built, and sums
 * in one order.  An older compiler may not know the last two: the trial finds
 * out whether results are right, and how long compilations take. */
static int
set_options(const struct acl_session *s, struct err *reterr)
{
	const struct acl_lib *l = s->src.lib;
	int rc = l->aclSetCompileopt(ACL_PRECISION_MODE,
	    "must_keep_origin_dtype");

	if (rc != ACL_SUCCESS)
		return refused(s, "aclSetCompileopt", rc, reterr);
	(void)l->aclSetCompileopt(ACL_OP_JIT_COMPILE, "disable");
	(void)l->aclSetCompileopt(ACL_OP_DETERMINISTIC, "1");
	return 0;
}

static struct acl_desc *
new_desc(const struct acl_lib *l, int dtype, uint32_t rows, uint32_t cols)
{
	const int64_t dims[2] = { rows, cols };

	return l->aclCreateTensorDesc(dtype, 2, dims, ACL_FORMAT_ND);
}

/* Make everything but the handle.  Data comes with each run. */
static int
create(const struct acl_session *s, const struct acl_classic_shape *h,
    struct acl_classic *c, struct err *reterr)
{
	const struct acl_lib *l = s->src.lib;
	const uint64_t one = h->c_type == ACL_FLOAT ? sizeof(float) :
	    sizeof(uint16_t);
	int rc;

	c->in_bytes[IN_A] = (uint64_t)h->rows * h->k * sizeof(uint16_t);
	c->in_bytes[IN_W] = (uint64_t)h->n * h->k * sizeof(uint16_t);
	c->out_bytes = (uint64_t)h->rows * h->n * one;
	c->in[IN_A] = new_desc(l, ACL_FLOAT16, h->rows, h->k);
	c->in[IN_W] = new_desc(l, ACL_FLOAT16, h->n, h->k);
	c->out = new_desc(l, h->c_type, h->rows, h->n);
	if (c->in[IN_A] == NULL || c->in[IN_W] == NULL || c->out == NULL)
		return acl_failed_null(l, s->src.session,
		    "aclCreateTensorDesc", reterr);
	c->in_data[IN_A] = l->aclCreateDataBuffer(NULL, 0);
	c->in_data[IN_W] = l->aclCreateDataBuffer(NULL, 0);
	c->out_data = l->aclCreateDataBuffer(NULL, 0);
	if (c->in_data[IN_A] == NULL || c->in_data[IN_W] == NULL ||
	    c->out_data == NULL)
		return acl_failed_null(l, s->src.session,
		    "aclCreateDataBuffer", reterr);
	if ((c->attr = l->aclopCreateAttr()) == NULL)
		return acl_failed_null(l, s->src.session, "aclopCreateAttr",
		    reterr);
	if ((rc = l->aclopSetAttrBool(c->attr, "transpose_x1", 0)) !=
	    ACL_SUCCESS || (rc = l->aclopSetAttrBool(c->attr, "transpose_x2",
	    1)) != ACL_SUCCESS || (rc = l->aclopSetAttrInt(c->attr, "offset_x",
	    0)) != ACL_SUCCESS)
		return acl_failed(l, s->src.session, "aclopSetAttr", rc,
		    reterr);
	return 0;
}

static int
compile(const struct acl_session *s, struct acl_classic *c,
    struct err *reterr)
{
	const struct acl_lib *l = s->src.lib;
	const struct acl_desc *const in[NIN] = { c->in[IN_A], c->in[IN_W] };
	const struct acl_desc *const out[1] = { c->out };
	int rc = l->aclopCompile(OPERATOR, NIN, in, 1, out, c->attr,
	    ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL);

	if (rc != ACL_SUCCESS)
		return refused(s, "aclopCompile", rc, reterr);
	rc = l->aclopCreateHandle(OPERATOR, NIN, in, 1, out, c->attr,
	    &c->handle);
	return rc == ACL_SUCCESS ? 0 : refused(s, "aclopCreateHandle", rc,
	    reterr);
}

int
acl_classic_open(const struct acl_session *s,
    const struct acl_classic_shape *shape, struct acl_classic **ret,
    struct err *reterr)
{
	struct acl_classic *c;
	int rc;

	if (!acl_has_classic(s->src.lib))
		return err_set(reterr, ERR_RUN, -ENOTSUP, "session %s: there "
		    "is no " ACL_OP_COMPILER " in this CANN: install its "
		    "toolkit", s->src.session);
	if ((c = calloc(1, sizeof(*c))) == NULL)
		return err_nomem(reterr, "an operator of a device");
	acl_memo_long_call();
	if ((rc = set_options(s, reterr)) == 0 &&
	    (rc = create(s, shape, c, reterr)) == 0)
		rc = compile(s, c, reterr);
	acl_memo_next_call();
	if (rc < 0) {
		acl_classic_close(s->src.lib, c);
		return rc;
	}
	*ret = c;
	return 0;
}

void
acl_classic_start_engine(const struct acl_session *s)
{
	const struct acl_classic_shape small = { 16, 16, 16, ACL_FLOAT16 };
	struct acl_classic *c = NULL;
	struct err unused;

	if (acl_classic_open(s, &small, &c, &unused) == 0)
		acl_classic_close(s->src.lib, c);
}

int
acl_classic_start(const struct acl_session *s, struct acl_classic *c,
    void *a, void *w, void *out, struct err *reterr)
{
	const struct acl_lib *l = s->src.lib;
	const struct acl_buffer *const in_data[NIN] = { c->in_data[IN_A],
	    c->in_data[IN_W] };
	struct acl_buffer *const out_data[1] = { c->out_data };
	int rc;

	if ((rc = l->aclUpdateDataBuffer(c->in_data[IN_A], a,
	    c->in_bytes[IN_A])) != ACL_SUCCESS ||
	    (rc = l->aclUpdateDataBuffer(c->in_data[IN_W], w,
	    c->in_bytes[IN_W])) != ACL_SUCCESS ||
	    (rc = l->aclUpdateDataBuffer(c->out_data, out,
	    c->out_bytes)) != ACL_SUCCESS)
		return acl_failed(l, s->src.session, "aclUpdateDataBuffer", rc,
		    reterr);
	rc = l->aclopExecWithHandle(c->handle, NIN, in_data, 1, out_data,
	    s->stream);
	return rc == ACL_SUCCESS ? 0 : acl_failed(l, s->src.session,
	    "aclopExecWithHandle", rc, reterr);
}

void
acl_classic_close(const struct acl_lib *l, struct acl_classic *c)
{
	unsigned i;

	if (c == NULL)
		return;
	if (c->handle != NULL)
		l->aclopDestroyHandle(c->handle);
	if (c->attr != NULL)
		l->aclopDestroyAttr(c->attr);
	for (i = 0; i < NIN; i++) {
		if (c->in_data[i] != NULL)
			l->aclDestroyDataBuffer(c->in_data[i]);
		if (c->in[i] != NULL)
			l->aclDestroyTensorDesc(c->in[i]);
	}
	if (c->out_data != NULL)
		l->aclDestroyDataBuffer(c->out_data);
	if (c->out != NULL)
		l->aclDestroyTensorDesc(c->out);
	free(c);
}
