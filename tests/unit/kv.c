/* tests/unit/kv.c - tests of the KV cache layout: rows never overlap, local
 * layers, sizes that are refused. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layers/kv.h"

/* A layout with global layers only. */
static int
init_layout(struct kv_layout *kv, const struct hparams *hp, enum kv_type kfmt,
    enum kv_type vfmt, uint32_t nlayers, uint32_t nseqs, uint32_t ctx_tok)
{
	return kv_layout_init(kv, hp, &(struct kv_conf){ kfmt, vfmt, 0,
	    nlayers, nseqs, ctx_tok, 1 });
}

/* Mark nbytes at off as used: they must be free and inside the map. */
static void
mark_bytes(uint8_t *map, uint64_t size, uint64_t off, uint64_t nbytes)
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
check_no_overlap(const struct kv_layout *kv, const struct hparams *hp)
{
	uint8_t *map = calloc(kv->nbytes + 1, 1);
	uint64_t k_row = kv_row_bytes(kv->conf.kfmt, hp->head_dim);
	uint64_t v_row = kv_row_bytes(kv->conf.vfmt, hp->v_dim), k, v;
	uint32_t l, s, h, pos, n;

	for (l = 0; l < kv->conf.nlayers; l++)
		for (s = 0; s < kv->conf.nseqs; s++)
			for (h = 0; h < hp->n_head_kv; h++) {
				k = kv_k_off(kv, l, s, h);
				v = kv_v_off(kv, l, s, h);
				ck_assert_uint_eq(k % 64, 0);
				ck_assert_uint_eq(v % 64, 0);
				n = kv_kind_of(kv, l)->ring;
				n = n > 0 ? n : kv->conf.ctx_tok;
				for (pos = 0; pos < n; pos++) {
					mark_bytes(map, kv->nbytes,
					    k + pos * k_row, k_row);
					mark_bytes(map, kv->nbytes,
					    v + pos * v_row, v_row);
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
		ck_assert_int_eq(init_layout(&kv, &hp,
		    (enum kv_type)t_rand_below(KV_NTYPES),
		    (enum kv_type)t_rand_below(KV_NTYPES),
		    (uint32_t)t_rand_below(4), 1 + (uint32_t)t_rand_below(3),
		    1 + (uint32_t)t_rand_below(40)), 0);
		check_no_overlap(&kv, &hp);
	}
}
END_TEST

static void
draw_local_layers(struct hparams *hp)
{
	unsigned l;

	hp->window = 1 + (uint32_t)t_rand_below(100);
	for (l = 0; l < MAX_LAYERS; l++)
		if (t_rand_below(2))
			hp->local[l / 32] |= 1u << l % 32;
}

START_TEST(local_layers_keep_one_window_and_one_batch)
{
	struct kv_conf kc = { KV_F16, KV_F32, 0, 0, 2, 500, 0 };
	struct hparams hp = { .n_head_kv = 2, .head_dim = 8, .v_dim = 4 };
	struct kv_layout kv, one;
	uint64_t sum;
	uint32_t l, ring;
	unsigned i;

	for (i = 0; i < 30; i++) {
		draw_local_layers(&hp);
		kc.batch_rows = 1 + (uint32_t)t_rand_below(100);
		kc.first_layer = (uint32_t)t_rand_below(70);
		kc.nlayers = (uint32_t)t_rand_below(70);
		ck_assert_int_eq(kv_layout_init(&kv, &hp, &kc), 0);
		check_no_overlap(&kv, &hp);
		ring = kv.kind[1].ring;
		ck_assert_uint_ge(ring, hp.window + kc.batch_rows - 1);
		ck_assert_uint_lt(ring, hp.window + kc.batch_rows +
		    ATTN_BLOCK);
		ck_assert_uint_eq(ring % ATTN_BLOCK, 0);
		/* The layout is as large as its layers together. */
		for (sum = 0, l = 0; l < kc.nlayers; l++) {
			ck_assert_uint_eq(kv_kind_of(&kv, l)->ring,
			    layer_is_local(&hp, kc.first_layer + l) ? ring :
			    0);
			ck_assert_int_eq(kv_layout_init(&one, &hp,
			    &(struct kv_conf){ kc.kfmt, kc.vfmt,
			    kc.first_layer + l, 1, kc.nseqs, kc.ctx_tok,
			    kc.batch_rows }), 0);
			sum += one.nbytes;
		}
		ck_assert_uint_eq(kv.nbytes, sum);
	}
	/* A context no longer than the ring is kept whole. */
	kc.ctx_tok = kv.kind[1].ring;
	ck_assert_int_eq(kv_layout_init(&kv, &hp, &kc), 0);
	ck_assert_uint_eq(kv.kind[1].ring, 0);
}
END_TEST

/* Simulate the ring of a stage, position by position. */
START_TEST(a_sequence_continues_only_where_its_windows_are_intact)
{
	struct hparams hp = { .n_head_kv = 1, .head_dim = 8, .v_dim = 8,
	    .window = 50, .local = { 2 } };
	struct kv_conf kc = { KV_F16, KV_F16, 0, 3, 1, 1000, 30 };
	uint32_t last[128], end, pos, p, ring;
	struct kv_layout kv;
	int intact;

	ck_assert_int_eq(kv_layout_init(&kv, &hp, &kc), 0);
	ring = kv.kind[1].ring;
	ck_assert_uint_eq(ring, 128);
	for (end = 0; end < 400; end += 1 + (uint32_t)t_rand_below(9)) {
		for (p = 0; p < end; p++)
			last[p % ring] = p;
		for (pos = 0; pos <= end; pos++) {
			intact = 1;
			for (p = pos > 49 ? pos - 49 : 0; p < pos; p++)
				intact &= last[p % ring] == p;
			ck_assert_int_eq(kv_reaches(&kv, end, pos), intact);
		}
	}
	/* A stage with global layers only keeps everything. */
	kc.first_layer = 2;
	kc.nlayers = 1;
	ck_assert_int_eq(kv_layout_init(&kv, &hp, &kc), 0);
	ck_assert(kv_reaches(&kv, 400, 1));
}
END_TEST

START_TEST(heads_of_any_size_do_not_overlap_in_float_types)
{
	struct kv_layout kv;
	struct hparams hp = { .n_head_kv = 3, .head_dim = 5, .v_dim = 7 };

	ck_assert_int_eq(init_layout(&kv, &hp, KV_F16, KV_F32, 2, 2,
	    9), 0);
	check_no_overlap(&kv, &hp);
}
END_TEST

START_TEST(the_heads_of_a_sequence_are_contiguous)
{
	struct kv_layout kv;
	struct hparams hp = { .n_head_kv = 4, .head_dim = 32, .v_dim = 64 };
	uint32_t h;

	ck_assert_int_eq(init_layout(&kv, &hp, KV_F16, KV_Q8_0, 3,
	    2, 33), 0);
	for (h = 1; h < 4; h++) {
		ck_assert_uint_eq(kv_k_off(&kv, 2, 1, h) -
		    kv_k_off(&kv, 2, 1, h - 1), kv.kind[0].k_head);
		ck_assert_uint_eq(kv_v_off(&kv, 2, 1, h) -
		    kv_v_off(&kv, 2, 1, h - 1), kv.kind[0].v_head);
	}
}
END_TEST

START_TEST(zero_layers_take_no_memory)
{
	struct kv_layout kv;
	struct hparams hp = { .n_head_kv = 4, .head_dim = 32, .v_dim = 32 };

	ck_assert_int_eq(init_layout(&kv, &hp, KV_F16, KV_F16, 0, 4,
	    4096), 0);
	ck_assert_uint_eq(kv.nbytes, 0);
}
END_TEST

START_TEST(q8_0_refuses_heads_that_are_not_whole_blocks)
{
	struct kv_layout kv;
	struct hparams hp = { .n_head_kv = 2, .head_dim = 48, .v_dim = 64 };

	ck_assert_int_eq(init_layout(&kv, &hp, KV_Q8_0, KV_Q8_0, 1,
	    1, 8), -EINVAL);
	ck_assert_int_eq(init_layout(&kv, &hp, KV_F16, KV_Q8_0, 1,
	    1, 8), 0);
	hp.head_dim = 64;
	hp.v_dim = 48;
	ck_assert_int_eq(init_layout(&kv, &hp, KV_Q8_0, KV_Q8_0, 1,
	    1, 8), -EINVAL);
	ck_assert_int_eq(init_layout(&kv, &hp, KV_Q8_0, KV_F32, 1,
	    1, 8), 0);
}
END_TEST

START_TEST(a_cache_beyond_64_bits_is_refused)
{
	struct kv_layout kv;
	struct hparams hp = { .n_head_kv = 1 << 14, .head_dim = 1 << 14,
	    .v_dim = 1 << 14 };
	uint32_t layers;

	/* 2^16 bytes, 2^24 positions, 2^22 heads: 2^62 bytes of K, and of V. */
	ck_assert_int_eq(init_layout(&kv, &hp, KV_F32, KV_F32, 1,
	    256, 1 << 24), 0);
	ck_assert_uint_eq(kv.nbytes, UINT64_C(1) << 63);
	for (layers = 2; layers < 1024; layers++)
		ck_assert_int_eq(init_layout(&kv, &hp, KV_F32,
		    KV_F32, layers, 256, 1 << 24), -EOVERFLOW);
	/* With 512 sequences K and V each fit, their sum does not. */
	ck_assert_int_eq(init_layout(&kv, &hp, KV_F32, KV_F32, 1,
	    512, 1 << 24), -EOVERFLOW);
	ck_assert_int_eq(init_layout(&kv, &hp, KV_F32, KV_F32, 1,
	    1024, 1 << 24), -EOVERFLOW);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		rows_lie_inside_and_never_overlap,
		local_layers_keep_one_window_and_one_batch,
		a_sequence_continues_only_where_its_windows_are_intact,
		heads_of_any_size_do_not_overlap_in_float_types,
		the_heads_of_a_sequence_are_contiguous,
		zero_layers_take_no_memory,
		q8_0_refuses_heads_that_are_not_whole_blocks,
		a_cache_beyond_64_bits_is_refused
	};

	return t_main("kv", 30, tests, NITEMS(tests));
}
