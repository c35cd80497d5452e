/* tests/support/program_fixture.c - the program of a stage, and its inputs. */
#include "program_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "t.h"

void
program_fixture_init(struct program_fixture *b, const struct tiny *t,
    uint32_t u0, uint32_t u1)
{
	struct err e = { 0 };
	struct layer_range kv;

	memset(b, 0, sizeof(*b));
	t_ok(tiny_open(t, &b->g, &b->m, &e), &e);
	u1 = MIN(u1, b->m->nunits);
	b->ext = calloc(model_range_max(b->m), sizeof(*b->ext));
	b->next = model_range(b->m, u0, u1, b->ext);
	kernels_init(&b->k, cpu_flags());
	/* As on a CPU with fast BF16 products. */
	b->k.mat[QUANT_BF16].act = ACT_BF16;
	b->k.host[QUANT_BF16].act = ACT_BF16;
	t_ok(weights_layout(b->ext, b->next, &b->k, &b->ws, &e), &e);
	b->env = (struct program_env){
		.hp = &b->m->hp, .ws = &b->ws,
		.embedding = u0 == 0, .head = u1 == b->m->nunits,
		.batch_rows = FIXTURE_BATCH, .head_rows = FIXTURE_HEAD_ROWS,
	};
	model_sublayers(b->m, u0, u1, &b->env.first_sublayer,
	    &b->env.nsublayers);
	kv = sublayers_attn(b->env.first_sublayer, b->env.nsublayers);
	ck_assert_int_eq(kv_layout_init(&b->env.kv, &b->m->hp,
	    &(struct kv_conf){ KV_F16, KV_F16, kv.first, kv.n, 2, 64,
	    FIXTURE_BATCH }), 0);
}

void
program_fixture_open(struct program_fixture *b, const struct tiny *t,
    uint32_t u0, uint32_t u1)
{
	struct err e = { 0 };

	program_fixture_init(b, t, u0, u1);
	t_ok(program_build(&b->env, &b->p, &e), &e);
}

void
program_fixture_close(struct program_fixture *b)
{
	program_free(b->p);
	weights_free(&b->ws);
	free(b->ext);
	tiny_close(b->g, b->m);
}

uint64_t
token_weight_bytes(const struct program *p)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < p->nops; i++)
		n += op_token_bytes(p, &p->op[i]);
	return n;
}
