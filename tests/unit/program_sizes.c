/* tests/unit/program_sizes.c - tests of the sizes that follow from a program:
 * scratch, pieces per thread, weights that a token reads, tensor ids. */
#include "tests/support/t.h"

#include "layers/program.h"
#include "tests/support/program_fixture.h"

/* Scratch bytes of sublayers [l0, l0 + n) of b; e, h: with embedding, head. */
static uint64_t
get_scratch(struct program_fixture *b, int e, int h, uint32_t l0, uint32_t n)
{
	struct program *p = NULL;
	struct err err = { 0 };
	uint64_t nbytes;

	b->env.embedding = e;
	b->env.head = h;
	b->env.first_sublayer = l0;
	b->env.nsublayers = n;
	t_ok(program_build(&b->env, &p, &err), &err);
	nbytes = p->scratch_bytes;
	program_free(p);
	return nbytes;
}

/* The plan relies on this: it measures each sublayer alone. */
START_TEST(several_sublayers_need_the_scratch_of_the_largest)
{
	static const char *const odd[] = {
		"blk.0.attn_q.weight", "blk.3.attn_v.weight",
		"blk.1.ffn_down.weight", "blk.2.attn_output.weight",
		"blk.0.ffn_gate.weight", "blk.1.ffn_up.weight"
	};
	struct program_fixture b;
	struct tiny t;
	uint32_t l0, n, l, ends;
	uint64_t most;
	unsigned i;

	for (i = 0; i < 30; i++) {
		t = tiny_random(0);
		t.n_layer = 4;
		t.odd = odd[i % NITEMS(odd)];
		t.odd_type = QUANT_F16;
		program_fixture_init(&b, &t, 0, 10);
		for (ends = 0; ends < 4; ends++)
			for (l0 = 0; l0 < 8; l0++)
				for (n = 1; l0 + n <= 8; n++) {
					most = 0;
					for (l = l0; l < l0 + n; l++)
						most = MAX(most, get_scratch(&b,
						    ends & 1, ends / 2, l, 1));
					ck_assert_uint_eq(most, get_scratch(&b,
					    ends & 1, ends / 2, l0, n));
				}
		program_fixture_close(&b);
	}
}
END_TEST

START_TEST(compute_bytes_are_scratch_and_one_piece_per_thread)
{
	struct tiny t = TINY;
	struct program_fixture b;
	uint64_t piece;

	program_fixture_open(&b, &t, 0, 10);
	piece = program_thread_bytes(b.p);
	ck_assert_uint_ge(piece, attn_scratch_floats(2, 16, 16) *
	    sizeof(float));
	ck_assert_uint_eq(piece % 64, 0);
	ck_assert_uint_eq(b.p->scratch_bytes % 64, 0);
	ck_assert_uint_eq(program_compute_bytes(b.p, 3),
	    b.p->scratch_bytes + 3 * piece);
	program_fixture_close(&b);
	/* The larger of attention's scratch and the rows of a matmul. */
	t.n_ff = 32768;
	program_fixture_open(&b, &t, 0, 10);
	ck_assert_uint_ge(program_thread_bytes(b.p), MAX(piece,
	    mat_ready_bytes(&b.k.mat[t.type], FIXTURE_BATCH, t.n_ff)));
	program_fixture_close(&b);
	/* Rows of an expert count too. */
	t.n_expert = 6;
	t.n_used = 2;
	t.n_ff_expert = 32768;
	program_fixture_open(&b, &t, 0, 10);
	ck_assert_uint_ge(program_thread_bytes(b.p),
	    mat_ready_bytes(&b.k.mat[t.type], FIXTURE_BATCH, t.n_ff_expert));
	program_fixture_close(&b);
	t = (struct tiny)TINY;
	t.n_ff = 128;
	/* Neither the head nor an FFN sublayer before it has attention: there
	 * is room only for the rows of a matmul. */
	program_fixture_open(&b, &t, 9, 10);
	ck_assert_uint_eq(program_thread_bytes(b.p),
	    ALIGN_UP(mat_ready_bytes(&b.k.mat[t.type], FIXTURE_BATCH,
	    t.n_embd), 64));
	program_fixture_close(&b);
	program_fixture_open(&b, &t, 8, 10);
	ck_assert_uint_eq(program_thread_bytes(b.p),
	    ALIGN_UP(mat_ready_bytes(&b.k.mat[t.type], FIXTURE_BATCH,
	    t.n_ff), 64));
	program_fixture_close(&b);
}
END_TEST

START_TEST(token_bytes_count_the_matrices_that_a_token_reads)
{
	struct tiny t = TINY;
	struct program_fixture b;
	uint64_t n = 0;
	uint32_t i;

	program_fixture_open(&b, &t, 0, 10);
	for (i = 0; i < b.ws.n; i++)
		if (b.ws.w[i].kern != NULL &&
		    b.ws.w[i].ext.role != ROLE_TOKEN_EMBD)
			n += b.ws.w[i].nbytes;
	ck_assert_uint_eq(token_weight_bytes(b.p), n);
	program_fixture_close(&b);

	/* A token reads two of the six experts. */
	t.n_expert = 6;
	t.n_used = 2;
	t.n_ff_expert = 96;
	program_fixture_open(&b, &t, 0, 10);
	for (n = 0, i = 0; i < b.ws.n; i++)
		if (b.ws.w[i].kern != NULL &&
		    b.ws.w[i].ext.role != ROLE_TOKEN_EMBD)
			n += b.ws.w[i].nbytes / (b.ws.w[i].ext.nmats > 1 ?
			    3 : 1);
	ck_assert_uint_eq(token_weight_bytes(b.p), n);
	program_fixture_close(&b);
}
END_TEST

START_TEST(the_largest_model_does_not_exhaust_tensor_ids)
{
	struct tiny t = TINY;
	struct program_fixture b;

	t.n_layer = 1024;
	t.bias = 1;
	program_fixture_open(&b, &t, 0, UINT32_MAX);
	ck_assert_uint_gt(b.p->nops, 1024 * 16);
	ck_assert_uint_lt(b.p->ntensors, NO_TENSOR);
	program_fixture_close(&b);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		several_sublayers_need_the_scratch_of_the_largest,
		compute_bytes_are_scratch_and_one_piece_per_thread,
		token_bytes_count_the_matrices_that_a_token_reads,
		the_largest_model_does_not_exhaust_tensor_ids
	};

	return t_main("program_sizes", 60, tests, NITEMS(tests));
}
