/* layers/hparams_check.c - see hparams_check.h.  Every field of struct hparams
 * but arch and local has a row in one of the two tables. */
#include "hparams_check.h"

#include <errno.h>
#include <math.h>
#include <string.h>

_Static_assert((uint64_t)LIMIT_HEADS * LIMIT_HEAD_DIM * 3 <= UINT32_MAX &&
    (uint64_t)MAX_EXPERTS * LIMIT_DIM <= UINT32_MAX,
    "rows of stacked tensors fit in 32 bits");

struct range {
	const char *name;
	size_t at;
	uint32_t lo, hi;
};

#define WHOLE(field, lo, hi) \
	{ #field, offsetof(struct hparams, field), lo, hi }

static const struct range whole[] = {
	WHOLE(n_layer, 1, LIMIT_LAYERS),
	WHOLE(n_embd, 1, LIMIT_DIM),
	WHOLE(n_ff, 1, LIMIT_DIM),
	WHOLE(n_vocab, 1, LIMIT_VOCAB),
	WHOLE(n_head, 1, LIMIT_HEADS),
	WHOLE(n_head_kv, 1, LIMIT_HEADS),
	WHOLE(head_dim, 1, LIMIT_HEAD_DIM),
	WHOLE(v_dim, 1, LIMIT_HEAD_DIM),
	WHOLE(n_rot, 2, LIMIT_HEAD_DIM),
	WHOLE(ctx_train, 1, LIMIT_CTX),
	WHOLE(tied, 0, 1),
	WHOLE(n_expert, 0, MAX_EXPERTS),
	WHOLE(n_expert_used, 0, MAX_EXPERTS),
	WHOLE(n_ff_expert, 0, LIMIT_DIM),
	WHOLE(moe_gate, 0, GATE_SOFTMAX_TOP),
	WHOLE(moe_norm, 0, 1),
	WHOLE(window, 0, LIMIT_CTX),
	WHOLE(rope_neox, 0, 1),
	WHOLE(rope_yarn, 0, 1),
	WHOLE(rope_orig_ctx, 1, LIMIT_CTX),
};

/* Numbers that are finite, and above 0 or not below it. */
enum sign { ABOVE_0, FROM_0 };

#define REAL(field, sign)	{ #field, offsetof(struct hparams, field), sign }

static const struct {
	const char *name;
	size_t at;
	enum sign sign;
} real[] = {
	REAL(moe_scale, FROM_0),	/* 0 without experts */
	REAL(rope_base, ABOVE_0),
	REAL(rope_scale, ABOVE_0),
	REAL(rope_base_local, FROM_0),
	REAL(yarn_fast, ABOVE_0),
	REAL(yarn_slow, ABOVE_0),
	REAL(rope_mscale, ABOVE_0),
	REAL(rms_eps, ABOVE_0),
	REAL(embd_scale, ABOVE_0),
	REAL(attn_scale, ABOVE_0),
	REAL(attn_softcap, FROM_0),
	REAL(logit_softcap, FROM_0),
};

/* A field without a row would not be checked. */
_Static_assert((NITEMS(whole) + NITEMS(real) + 1) * 4 + MAX_LAYERS / 8 ==
    sizeof(struct hparams), "all fields have a row");

static int
check_whole(const struct hparams *hp, struct err *reterr)
{
	const struct range *r;
	uint32_t v;

	for (r = whole; r < whole + NITEMS(whole); r++) {
		memcpy(&v, (const char *)hp + r->at, sizeof(v));
		if (v < r->lo || v > r->hi)
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "%s is %u: must be %u to %u", r->name, v, r->lo,
			    r->hi);
	}
	return 0;
}

static int
check_real(const struct hparams *hp, struct err *reterr)
{
	unsigned i;
	float v;

	for (i = 0; i < NITEMS(real); i++) {
		memcpy(&v, (const char *)hp + real[i].at, sizeof(v));
		if (!isfinite(v) || v < 0 ||
		    (real[i].sign == ABOVE_0 && v == 0))
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "%s is %g: must be finite and %s 0", real[i].name,
			    (double)v, real[i].sign == ABOVE_0 ? "above" :
			    "not below");
	}
	return 0;
}

static int
check_heads(const struct hparams *hp, struct err *reterr)
{
	if (hp->n_head % hp->n_head_kv != 0)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "n_head is %u: "
		    "must be a multiple of n_head_kv, %u", hp->n_head,
		    hp->n_head_kv);
	if (hp->n_rot % 2 != 0 || hp->n_rot > hp->head_dim)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "n_rot is %u: "
		    "must be even and at most head_dim, %u", hp->n_rot,
		    hp->head_dim);
	return 0;
}

/* Without experts, all fields of theirs are 0. */
static int
check_experts(const struct hparams *hp, struct err *reterr)
{
	if (hp->n_expert == 0) {
		if (hp->n_expert_used == 0 && hp->n_ff_expert == 0 &&
		    hp->moe_gate == 0 && hp->moe_norm == 0 &&
		    hp->moe_scale == 0)
			return 0;
		return err_set(reterr, ERR_MODEL, -EBADMSG, "n_expert is 0, "
		    "but other numbers of experts are not");
	}
	if (!arch_has_experts(arch_info(hp->arch)))
		return err_set(reterr, ERR_MODEL, -EBADMSG, "n_expert is %u: "
		    "must be 0 for the architecture \"%s\"", hp->n_expert,
		    arch_info(hp->arch)->name);
	if (hp->n_expert_used < 1 || hp->n_expert_used > hp->n_expert)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "n_expert_used is "
		    "%u: must be 1 to n_expert, %u", hp->n_expert_used,
		    hp->n_expert);
	if (hp->n_ff_expert < 1)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "n_ff_expert is "
		    "0: experts must have at least 1 element");
	if (hp->moe_gate != GATE_SOFTMAX && hp->moe_gate != GATE_SOFTMAX_TOP)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "moe_gate is %u: "
		    "must be %d or %d", hp->moe_gate, GATE_SOFTMAX,
		    GATE_SOFTMAX_TOP);
	if (hp->moe_scale == 0)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "moe_scale is 0: "
		    "must be above 0");
	return 0;
}

int
hparams_check(const struct hparams *hp, struct err *reterr)
{
	int rc;

	if (arch_info(hp->arch) == NULL)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "arch is %u: no "
		    "architecture has this number", hp->arch);
	if ((rc = check_whole(hp, reterr)) < 0 ||
	    (rc = check_real(hp, reterr)) < 0 ||
	    (rc = check_heads(hp, reterr)) < 0)
		return rc;
	return check_experts(hp, reterr);
}
