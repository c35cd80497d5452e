/* coordinator/engine/sequence.c - shortens what the stages hold of a sequence. */
#include "impl.h"

int
engine_can_cut(const struct engine *eng, uint32_t high, uint32_t pos)
{
	const struct plan *p = &eng->plan;
	const struct hparams *hp = &eng->model->hp;
	struct kv_layout kv;

	return kv_layout_init(&kv, hp, &(struct kv_conf){ .kfmt = p->kfmt,
	    .vfmt = p->vfmt, .nlayers = hp->n_layer, .nseqs = p->nseqs,
	    .ctx_tok = p->ctx_tok, .batch_rows = p->batch_rows }) == 0 &&
	    kv_reaches(&kv, high, pos);
}

int
engine_cut(struct engine *eng, uint32_t seq, uint32_t pos, struct err *reterr)
{
	return pipeline_cut(eng->pipe, seq, pos, reterr);
}
