/* tests/standin/ascend_transformer.c - operators of libopapi_transformer.so.  Part
 * of the stand-in for CANN's libraries; switches: libascendcl.c. */
#include "ascend.h"

/* x [b][s][n][d] or any 4-D, cos and sin repeated over it: mode 0 turns element j
 * with j + d/2, mode 1 the pairs 2j and 2j + 1. */
static int
run_rotary(const struct op_args *a)
{
	const struct tensor *x = &a->t[0], *out = &a->t[3];
	int64_t d = x->dims[3], i, j, other;
	float v, w;

	for (i = 0; i < ascend_elements(x); i++) {
		j = i % d;
		if (a->i[0] == 0)
			other = j < d / 2 ? i + d / 2 : i - d / 2;
		else
			other = j % 2 == 0 ? i + 1 : i - 1;
		v = (float)ascend_get(x, i);
		w = (float)ascend_get(x, other);
		if (other > i)
			w = -w;
		ascend_put(out, i, v * (float)ascend_get(&a->t[1],
		    ascend_broadcast(x, &a->t[1], i)) + w *
		    (float)ascend_get(&a->t[2], ascend_broadcast(x, &a->t[2],
		    i)));
	}
	return 0;
}

OPERATOR(RotaryPositionEmbedding, const struct acl_tensor *x,
    const struct acl_tensor *cos, const struct acl_tensor *sin, int64_t mode,
    struct acl_tensor *out)
{
	struct op_args a = { .i = { mode } };
	int rc = ascend_take_all(&a, 4, x, cos, sin, out);
	const struct tensor *t = a.t;

	if (rc == 0 && (t[0].ndims != 4 || t[1].ndims != 4 || t[2].ndims !=
	    4 || t[3].ndims != 4 || t[0].dims[3] % 2 != 0 || t[0].dims[3] >=
	    896 || mode < 0 || mode > 1 || t[1].dims[3] != t[0].dims[3] ||
	    ascend_elements(&t[3]) != ascend_elements(&t[0]) ||
	    ascend_same(&t[0], &t[3])))
		rc = ACLNN_ERR_PARAM_INVALID;
	return ascend_phase_one("RotaryPositionEmbedding", rc, run_rotary, &a,
	    0, ws, ex);
}
