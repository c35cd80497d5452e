/* tests/test_kv.c - the KV cache: every row has bytes of its own. */
#include "t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../layers/kv.h"

/* Mark the nbytes at off as taken: they must be free and inside. */
static void
take(uint8_t *map, uint64_t size, uint64_t off, uint64_t nbytes)
{
	uint64_t i;

	ck_assert_uint_le(off, size);
	ck_assert_uint_le(nbytes, size - off);
	for (i = off; i < off + nbytes && map[i] == 0; i++)
		map[i] = 1;
	ck_assert_msg(i == off + nbytes, "byte %u is in two rows",
	    (unsigned)i);
}

static void
take_all_rows(const struct kv_layout *kv, const struct hparams *hp)
{
	uint8_t *map = calloc(kv->nbytes + 1, 1);
	uint64_t k_row = kv_row_bytes(kv->kfmt, hp->head_dim);
	uint64_t v_row = kv_row_bytes(kv->vfmt, hp->v_dim), k, v;
	uint32_t l, s, h, pos;

	for (l = 0; l < kv->nlayers; l++)
		for (s = 0; s < kv->nseqs; s++)
			for (h = 0; h < hp->n_head_kv; h++) {
				k = kv_k_off(kv, l, s, h);
				v = kv_v_off(kv, l, s, h);
				ck_assert_uint_eq(k % 64, 0);
				ck_assert_uint_eq(v % 64, 0);
				for (pos = 0; pos < kv->ctx_tok; pos++) {
					take(map, kv->nbytes, k + pos * k_row,
					    k_row);
					take(map, kv->nbytes, v + pos * v_row,
					    v_row);
				}
			}
	free(map);
}

START_TEST(rows_lie_inside_and_never_overlap)
{
	struct kv_layout kv;
	struct hparams hp = { 0 };
	unsigned i;

	for (i = 0; i < 30; i++) {
		hp.n_head_kv = 1 + (uint32_t)t_rand_below(4);
		hp.head_dim = 32 * (1 + (uint32_t)t_rand_below(4));
		hp.v_dim = 32 * (1 + (uint32_t)t_rand_below(4));
		ck_assert_int_eq(kv_layout_init(&kv, &hp,
		    (enum kv_fmt)t_rand_below(KV_FMT_N),
		    (enum kv_fmt)t_rand_below(KV_FMT_N),
		    (uint32_t)t_rand_below(4), 1 + (uint32_t)t_rand_below(3),
		    1 + (uint32_t)t_rand_below(40)), 0);
		take_all_rows(&kv, &hp);
	}
}
END_TEST

START_TEST(heads_of_any_size_lie_apart_in_float_types)
{
	struct kv_layout kv;
	struct hparams hp = { .n_head_kv = 3, .head_dim = 5, .v_dim = 7 };

	ck_assert_int_eq(kv_layout_init(&kv, &hp, KV_FMT_F16, KV_FMT_F32, 2, 2,
	    9), 0);
	take_all_rows(&kv, &hp);
}
END_TEST

START_TEST(a_sequences_heads_are_one_piece)
{
	struct kv_layout kv;
	struct hparams hp = { .n_head_kv = 4, .head_dim = 32, .v_dim = 64 };
	uint32_t h;

	ck_assert_int_eq(kv_layout_init(&kv, &hp, KV_FMT_F16, KV_FMT_Q8_0, 3,
	    2, 33), 0);
	for (h = 1; h < 4; h++) {
		ck_assert_uint_eq(kv_k_off(&kv, 2, 1, h) -
		    kv_k_off(&kv, 2, 1, h - 1), kv.k_head);
		ck_assert_uint_eq(kv_v_off(&kv, 2, 1, h) -
		    kv_v_off(&kv, 2, 1, h - 1), kv.v_head);
	}
}
END_TEST

START_TEST(no_layers_cost_nothing)
{
	struct kv_layout kv;
	struct hparams hp = { .n_head_kv = 4, .head_dim = 32, .v_dim = 32 };

	ck_assert_int_eq(kv_layout_init(&kv, &hp, KV_FMT_F16, KV_FMT_F16, 0, 4,
	    4096), 0);
	ck_assert_uint_eq(kv.nbytes, 0);
}
END_TEST

START_TEST(q8_0_refuses_heads_that_are_not_whole_blocks)
{
	struct kv_layout kv;
	struct hparams hp = { .n_head_kv = 2, .head_dim = 48, .v_dim = 64 };

	ck_assert_int_eq(kv_layout_init(&kv, &hp, KV_FMT_Q8_0, KV_FMT_Q8_0, 1,
	    1, 8), -EINVAL);
	ck_assert_int_eq(kv_layout_init(&kv, &hp, KV_FMT_F16, KV_FMT_Q8_0, 1,
	    1, 8), 0);
	hp.head_dim = 64;
	hp.v_dim = 48;
	ck_assert_int_eq(kv_layout_init(&kv, &hp, KV_FMT_Q8_0, KV_FMT_Q8_0, 1,
	    1, 8), -EINVAL);
	ck_assert_int_eq(kv_layout_init(&kv, &hp, KV_FMT_Q8_0, KV_FMT_F32, 1,
	    1, 8), 0);
}
END_TEST

START_TEST(a_cache_beyond_64_bits_is_refused)
{
	struct kv_layout kv;
	struct hparams hp = { .n_head_kv = 1 << 14, .head_dim = 1 << 14,
	    .v_dim = 1 << 14 };
	uint32_t layers;

	/* 2^16 bytes, 2^24 positions, 2^22 heads: 2^62 for K, and for V. */
	ck_assert_int_eq(kv_layout_init(&kv, &hp, KV_FMT_F32, KV_FMT_F32, 1,
	    256, 1 << 24), 0);
	ck_assert_uint_eq(kv.nbytes, UINT64_C(1) << 63);
	for (layers = 2; layers < 1024; layers++)
		ck_assert_int_eq(kv_layout_init(&kv, &hp, KV_FMT_F32,
		    KV_FMT_F32, layers, 256, 1 << 24), -EOVERFLOW);
	/* Each fits by itself, their sum does not. */
	ck_assert_int_eq(kv_layout_init(&kv, &hp, KV_FMT_F32, KV_FMT_F32, 1,
	    512, 1 << 24), -EOVERFLOW);
	ck_assert_int_eq(kv_layout_init(&kv, &hp, KV_FMT_F32, KV_FMT_F32, 1,
	    1024, 1 << 24), -EOVERFLOW);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		rows_lie_inside_and_never_overlap,
		heads_of_any_size_lie_apart_in_float_types,
		a_sequences_heads_are_one_piece,
		no_layers_cost_nothing,
		q8_0_refuses_heads_that_are_not_whole_blocks,
		a_cache_beyond_64_bits_is_refused
	};

	return t_main("kv", 30, tests, NITEMS(tests));
}
