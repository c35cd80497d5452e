/* worker/ascend/ops.h - operators of an Ascend processor that are no products: norms,
 * activations, sums, rotation, conversion.
 * Owns: tensors and executors, one for each shape of a call.  Called by the device
 * and its trials.  Allocates nothing once a shape is prepared, where CANN lets
 * executors be used again.
 *
 * Rows are 32-bit floats, row-major.  An operator has one of ACL_FN_CLASSES numbers of
 * rows; a batch is cut into these (acl_fn_rows()). */
#ifndef WORKER_ASCEND_OPS_H
#define WORKER_ASCEND_OPS_H

#include "session.h"

enum acl_fn {
	ACL_FN_NORM,			/* y, rstd = RMS norm of x, w */
	ACL_FN_ADD_NORM,		/* y, rstd, x1 + x2: the norm of the sum */
	ACL_FN_SWIGLU,			/* SiLU of x's left half, times its
					 * right half */
	ACL_FN_SILU,
	ACL_FN_MUL,
	ACL_FN_SCALE,			/* rows times a vector */
	ACL_FN_ADD,			/* never in place: see api.h */
	ACL_FN_ADD_TO,			/* x1 += x2 */
	ACL_FN_ROTATE,			/* x, cosines, sines: halves of heads */
	ACL_FN_TO_HALF,			/* to 16-bit floats, */
	ACL_FN_TO_FLOAT,		/* and back */
	ACL_FN_SCALE_ROWS,		/* rows times a number of each */
	ACL_FNS
};

enum { ACL_FN_ARGS = 3, ACL_FN_CLASSES = 3, ACL_FN_MOST_ROWS = 64 };

/* The outcome of a trial. */
enum acl_fn_outcome {
	ACL_FN_UNTRIED,			/* no product runs, or no time */
	ACL_FN_RIGHT,
	ACL_FN_MISSING,			/* not in this CANN */
	ACL_FN_REFUSED,			/* with a code */
	ACL_FN_LATE,			/* its task failed, with a code */
	ACL_FN_WRONG,
	ACL_FN_COMPANY,			/* a row depends on others */
	ACL_FN_ENDS, ACL_FN_HANGS,	/* its process */
	ACL_FN_OUTCOMES
};

/* An outcome and a code in one number, for a choice. */
enum { ACL_FN_CODE_BITS = 24 };
static inline uint32_t
acl_fn_pack(enum acl_fn_outcome o, int code)
{
	return (uint32_t)o << ACL_FN_CODE_BITS | ((uint32_t)code &
	    ((1u << ACL_FN_CODE_BITS) - 1));
}

static inline enum acl_fn_outcome
acl_fn_outcome(uint32_t packed)
{
	return (enum acl_fn_outcome)(packed >> ACL_FN_CODE_BITS);
}

const char *acl_fn_name(enum acl_fn fn);	/* "aclnnRmsNorm" */
int acl_fn_is_there(const struct acl_lib *lib, enum acl_fn fn);

/* "aclnnRmsNorm: failed with 561103, ACLNN_..." */
void acl_fn_text(enum acl_fn fn, uint32_t packed, char *ret, size_t len);

/* NULL: n operators are right, by the outcomes of all.  Otherwise ret: the text of the
 * first one that is not. */
const char *acl_fns_reason(const uint32_t outcome[ACL_FNS],
    const enum acl_fn *fn, unsigned n, char *ret, size_t len);

/* The same in a few words, to stand behind the name: "561103", "wrong".  May return
 * buf. */
enum { ACL_FN_WORDS = 16 };
const char *acl_fn_words(uint32_t packed, char buf[ACL_FN_WORDS]);

/* One call.  cols: of the result. */
struct acl_fn_shape {
	enum acl_fn fn;
	uint32_t rows, cols;
	uint32_t stride;		/* of TO_HALF's rows; others: 0 */
	uint32_t heads;			/* ROTATE; others: 0 */
	float eps;			/* of norms; others: 0 */
};

struct acl_fn_call;

struct acl_fns {
	struct acl_session *s;
	struct acl_fn_call *call;	/* [ncalls] */
	unsigned ncalls;
	uint64_t workspace_need;	/* of all calls so far */
	uint64_t workspace_most;	/* refuse calls with more; 0 = none */
	void *workspace;
};

/* Make the call, unless it is there.  -ENOTSUP: the device refuses it; *ret_code, if
 * not NULL, is the library's code. */
int acl_fns_prepare(struct acl_fns *f, const struct acl_fn_shape *shape,
    int *ret_code, struct err *reterr);

/* Start a prepared call with these addresses on the device: inputs and outputs in the
 * order of enum acl_fn's comments. */
int acl_fns_start(struct acl_fns *f, const struct acl_fn_shape *shape,
    void *const in[ACL_FN_ARGS], void *const out[ACL_FN_ARGS], int *ret_code,
    struct err *reterr);

/* The same for n operators whose shape is rows and columns, in each class of rows. */
int acl_fns_prepare_rows(struct acl_fns *f, const enum acl_fn *fn, unsigned n,
    uint32_t cols, struct err *reterr);

/* Rows of the next call where `left` rows are left.  The last call of a batch may
 * have rows beyond it, which must be memory. */
uint32_t acl_fn_rows(uint32_t left);

/* The number of rows of class i. */
uint32_t acl_fn_class(unsigned i);

/* Destroy the calls. */
void acl_fns_close(struct acl_fns *f);

#endif
