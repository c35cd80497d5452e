/* worker/stage/selftest_model.c - one layer of small dimensions.
 *
 * The embedding's rows are as long as the largest block, so that each type of
 * weights can be used; everything else is as small as its kernels allow,
 * because every session computes this once when it starts. */
#include "selftest_model.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/types/sample.h"

enum { N_EMBD = 256, N_FF = 32, N_HEAD = 2, HEAD_DIM = 16, WINDOW = 3,
    N_EXPERT = 4, N_EXPERT_USED = 2 };

/* Soft caps that bend the curve: families have ones that are nearly straight
 * lines for numbers of this size. */
#define SOFTCAP		2.0f

/* Types of matrices in a model of several: those that files have most often,
 * and each of 32 and of 256 columns a block. */
static uint32_t
mixed_type(enum role role)
{
	switch (role) {
	case ROLE_ATTN_K:
		return QUANT_F16;
	case ROLE_ATTN_V:
	case ROLE_FFN_DOWN:
		return QUANT_Q4_0;
	case ROLE_FFN_GATE:
		return QUANT_Q4_K;
	case ROLE_FFN_UP:
	case ROLE_OUTPUT:
		return QUANT_Q6_K;
	default:
		return QUANT_Q8_0;
	}
}

static uint32_t
type_of(const struct selftest_case *tc, enum role role, uint32_t ncols)
{
	uint32_t type = tc->type != QUANT_NTYPES ? tc->type :
	    mixed_type(role);

	/* A router's choice must not depend on a rounding. */
	if (role == ROLE_ROUTER || role_info(role)->use == USE_VECTOR)
		return QUANT_F32;
	while (ncols % quant_info(type)->block != 0)
		type = quant_info(type)->fallback;
	return type;
}

static void
add_extent(const struct selftest_case *tc, struct selftest_model *m,
    enum role role)
{
	struct extent *e = &m->ext[m->wm.nextents];
	const struct role_info *info = role_info(role);

	if (!role_is_in_model(role, &m->hp))
		return;
	assert(m->wm.nextents < SELFTEST_EXTENTS);
	m->wm.nextents++;
	*e = (struct extent){ .role = role, .layer = info->per_layer ? 0 : -1,
	    .nmats = info->use == USE_EXPERTS ? m->hp.n_expert : 1 };
	role_shape(role, &m->hp, &e->nrows, &e->ncols);
	e->type = type_of(tc, role, e->ncols);
	e->nbytes = e->nrows * quant_row_bytes(e->type, e->ncols);
	if (info->per_layer)
		snprintf(e->name, sizeof(e->name), "blk.0.%s",
		    info->pattern + strlen("blk.%d."));
	else
		snprintf(e->name, sizeof(e->name), "%s", info->pattern);
}

/* A head's keys in Q8_0 are whole blocks. */
static void
set_hparams(const struct arch_info *a, enum kv_type kv, struct hparams *hp)
{
	const uint32_t head_dim = kv == KV_Q8_0 ? 32 : HEAD_DIM;

	*hp = (struct hparams){
		.n_layer = 1, .n_embd = N_EMBD, .n_ff = N_FF,
		.n_vocab = SELFTEST_VOCAB, .n_head = N_HEAD, .n_head_kv = 1,
		.head_dim = head_dim, .v_dim = head_dim, .n_rot = head_dim,
		.ctx_train = SELFTEST_POSITIONS, .n_ff_expert = N_FF,
		.moe_gate = a->moe_gate != 0 ? a->moe_gate : GATE_SOFTMAX,
		.moe_norm = 1, .moe_scale = 1,
		.rope_neox = (uint32_t)a->rope_neox, .rope_base = 10000,
		.rope_scale = 1, .rope_base_local = a->rope_base_local,
		.rope_orig_ctx = SELFTEST_POSITIONS, .yarn_fast = 32,
		.yarn_slow = 1, .rope_mscale = 1, .rms_eps = 1e-6f,
		.embd_scale = a->embd_scaled ? sqrtf(N_EMBD) : 1,
		.attn_scale = 1 / sqrtf((float)head_dim),
		.attn_softcap = a->attn_softcap > 0 ? SOFTCAP : 0,
		.logit_softcap = a->logit_softcap > 0 ? SOFTCAP : 0,
	};
	if (a->window > 0) {
		hp->window = WINDOW;
		hp->local[0] = 1;
	}
}

/* Does the family have experts in every layer? */
static int
needs_experts(const struct arch_info *a)
{
	unsigned i;

	for (i = 0; i < a->nrequired; i++)
		if (a->required[i] == ROLE_FFN_GATE)
			return 0;
	return arch_has_experts(a);
}

void
selftest_model(const struct selftest_case *tc, struct selftest_model *ret)
{
	int id = arch_find(tc->arch, strlen(tc->arch));
	const struct arch_info *a = arch_info((uint32_t)id);
	unsigned i;

	assert(a != NULL);
	set_hparams(a, tc->kv, &ret->hp);
	ret->hp.arch = (uint32_t)id;
	if (needs_experts(a)) {
		ret->hp.n_expert = N_EXPERT;
		ret->hp.n_expert_used = N_EXPERT_USED;
	}
	ret->wm = (struct wire_model){ .nsublayers = 2, .embedding = 1,
	    .head = 1, .batch_rows = SELFTEST_ROWS,
	    .head_rows = SELFTEST_ROWS, .ctx_tok = SELFTEST_POSITIONS,
	    .nseqs = 1, .kfmt = tc->kv, .vfmt = tc->kv };
	add_extent(tc, ret, ROLE_TOKEN_EMBD);
	for (i = 0; i < a->nrequired; i++)
		add_extent(tc, ret, a->required[i]);
	for (i = 0; i < a->noptional; i++)
		add_extent(tc, ret, a->optional[i]);
	add_extent(tc, ret, ROLE_OUTPUT_NORM);
	add_extent(tc, ret, ROLE_OUTPUT);
}

uint64_t
selftest_extent_bytes(const struct selftest_model *m)
{
	uint64_t most = 0;
	uint32_t i;

	for (i = 0; i < m->wm.nextents; i++)
		most = MAX(most, m->ext[i].nbytes);
	return most;
}

/* Norms around 1; biases and sinks around 0. */
static void
fill_vector(const struct extent *e, float *x, uint64_t *state)
{
	const int is_norm = e->nrows == 1 && strstr(e->name, "norm") != NULL;
	uint64_t i;

	for (i = 0; i < e->nbytes / sizeof(*x); i++)
		x[i] = (float)is_norm + sample_float(state) / 4;
}

void
selftest_weights(const struct selftest_model *m, uint32_t i, void *dst)
{
	const struct extent *e = &m->ext[i];
	uint64_t state = i + 1;
	/* Rows of unit size stay so. */
	float rms = e->role == ROLE_TOKEN_EMBD ? 1 : 1 / sqrtf((float)
	    e->ncols);

	if (role_info(e->role)->use == USE_VECTOR)
		fill_vector(e, dst, &state);
	else
		sample_weights(dst, e->type, (uint64_t)e->nrows * e->ncols,
		    rms, &state);
}
