/* tests/unit/bind.c - tests of weight binding: layout, storing, lookup. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "layers/bind.h"

enum { NTABLES = 2 };

/* Kernel table 0 is the reference, 1 the best of this machine. */
static const struct kernels *
kernel_table(unsigned i)
{
	static struct kernels k[NTABLES];

	kernels_init(&k[i], i == 0 ? 0 : cpu_flags());
	return &k[i];
}

static struct extent
make_extent(enum role role, int layer, uint32_t type, uint32_t nrows,
    uint32_t ncols)
{
	struct extent x = { .role = role, .layer = layer, .type = type,
	    .nrows = nrows, .ncols = ncols };

	snprintf(x.name, sizeof(x.name), "tensor.%d.%d", (int)role, layer);
	x.nbytes = nrows * quant_row_bytes(type, ncols);
	return x;
}

static const uint32_t types[] = { QUANT_F32, QUANT_F16, QUANT_BF16,
    QUANT_Q8_0, QUANT_Q4_0 };

static void
check_layout(const struct kernels *k)
{
	struct extent x[NITEMS(types) + 1];
	struct weights ws;
	struct err e;
	uint64_t at = 0;
	uint32_t i;

	for (i = 0; i < NITEMS(types); i++)
		x[i] = make_extent(ROLE_FFN_UP, (int)i, types[i],
		    1 + (uint32_t)t_rand_below(100),
		    32 * (1 + (uint32_t)t_rand_below(5)));
	x[i] = make_extent(ROLE_FFN_NORM, 0, QUANT_F16, 1, 33);
	t_ok(weights_layout(x, NITEMS(x), k, &ws, &e), &e);
	ck_assert_uint_eq(ws.n, NITEMS(x));
	for (i = 0; i < ws.n; i++) {
		ck_assert_uint_eq(ws.w[i].offset, at);
		ck_assert_int_eq(memcmp(&ws.w[i].ext, &x[i], sizeof(x[i])), 0);
		ck_assert_uint_eq(ws.w[i].nbytes, i == NITEMS(types) ?
		    33 * 4 : k->mat[types[i]].packed_bytes(x[i].nrows,
		    x[i].ncols));
		at += ALIGN_UP(ws.w[i].nbytes, WEIGHT_ALIGN);
	}
	ck_assert_uint_eq(ws.nbytes, at);
	ck_assert_uint_eq(weight_row_step(&ws.w[0]), k->mat[QUANT_F32].tile);
	ck_assert_uint_eq(weight_row_step(&ws.w[NITEMS(types)]), 1);
	weights_free(&ws);
	weights_free(&ws);
}

START_TEST(sizes_come_from_kernels_and_offsets_are_aligned)
{
	unsigned i;

	for (i = 0; i < NTABLES; i++)
		check_layout(kernel_table(i));
}
END_TEST

START_TEST(no_extents_need_no_memory)
{
	struct weights ws;
	struct err e;

	t_ok(weights_layout(NULL, 0, kernel_table(0), &ws, &e), &e);
	ck_assert_uint_eq(ws.nbytes, 0);
	ck_assert_ptr_null(weights_find(&ws, ROLE_OUTPUT, -1));
	weights_free(&ws);
}
END_TEST

static void
check_unsupported_types(const struct kernels *k)
{
	static const struct { uint32_t type; const char *name; } bad[] = {
		{ QUANT_IQ3_S, "IQ3_S" }, { QUANT_IQ1_S, "IQ1_S" },
		{ 31, "unknown" }, { 1000, "unknown" }
	};
	struct extent x[2];
	struct weights ws;
	struct err e;
	unsigned i, j;

	for (i = 0; i < NITEMS(bad); i++) {
		x[0] = make_extent(ROLE_FFN_UP, 0, QUANT_F32, 2, 256);
		x[1] = make_extent(ROLE_FFN_DOWN, 7, QUANT_F32, 2, 256);
		x[1].type = bad[i].type;
		e = (struct err){ 0 };
		ck_assert_int_eq(weights_layout(x, 2, k, &ws, &e),
		    -ENOTSUP);
		ck_assert_int_eq(e.kind, ERR_MODEL);
		ck_assert_ptr_nonnull(strstr(e.msg, x[1].name));
		ck_assert_ptr_nonnull(strstr(e.msg, bad[i].name));
		for (j = 0; j < NITEMS(types); j++)
			ck_assert_ptr_nonnull(strstr(e.msg,
			    quant_info(types[j])->name));
	}
}

START_TEST(an_unsupported_type_is_refused_with_tensor_and_known_types)
{
	unsigned i;

	for (i = 0; i < NTABLES; i++)
		check_unsupported_types(kernel_table(i));
}
END_TEST

START_TEST(vectors_are_converted_to_float32)
{
	static const float want[] = { 0.0f, 1.0f, -2.5f, 0.099975586f,
	    65504.0f, 0x1p-14f };
	uint8_t raw[1 + 4 * NITEMS(want)];
	struct extent x[3];
	struct weights ws;
	struct err e;
	_Alignas(WEIGHT_ALIGN) uint8_t arena[3 * WEIGHT_ALIGN];
	uint16_t h;
	unsigned i, t;

	for (t = 0; t < 3; t++)
		x[t] = make_extent(ROLE_ATTN_NORM, (int)t, types[t], 1,
		    NITEMS(want));
	t_ok(weights_layout(x, 3, kernel_table(0), &ws, &e), &e);
	ck_assert_uint_eq(ws.nbytes, sizeof(arena));
	weights_place(&ws, arena);
	for (t = 0; t < 3; t++) {
		for (i = 0; i < NITEMS(want); i++) {
			h = t == 1 ? float_to_half(want[i]) :
			    float_to_bf16(want[i]);
			/* A source of any alignment. */
			if (t == 0)
				memcpy(raw + 1 + 4 * i, &want[i], 4);
			else
				memcpy(raw + 1 + 2 * i, &h, 2);
		}
		weights_store(&ws, arena, t, 0, 1, raw + 1);
		for (i = 0; i < NITEMS(want); i++)
			ck_assert(ws.w[t].vec[i] == (t < 2 ? want[i] :
			    bf16_to_float(float_to_bf16(want[i]))));
	}
	weights_free(&ws);
}
END_TEST

/* Store extent i of ws from src in pieces of whole row steps, last piece
 * first. */
static void
store_in_pieces(const struct weights *ws, void *base, uint32_t i,
    const uint8_t *src)
{
	const struct weight *w = &ws->w[i];
	uint64_t row = w->ext.nbytes / w->ext.nrows;
	uint32_t step = weight_row_step(w), end = w->ext.nrows, at;

	while (end > 0) {
		at = (uint32_t)t_rand_below(end);
		at -= at % step;
		weights_store(ws, base, i, at, end - at, src + at * row);
		end = at;
	}
}

static void
check_pieces(const struct kernels *k)
{
	struct weights ws;
	struct extent x[NITEMS(types)];
	struct err e;
	uint8_t *src, *whole, *pieces;
	uint64_t j;
	uint32_t i;

	for (i = 0; i < NITEMS(types); i++)
		x[i] = make_extent(ROLE_FFN_UP, (int)i, types[i],
		    1 + (uint32_t)t_rand_below(70),
		    32 * (1 + (uint32_t)t_rand_below(4)));
	t_ok(weights_layout(x, NITEMS(x), k, &ws, &e), &e);
	whole = aligned_alloc(64, ws.nbytes);
	pieces = aligned_alloc(64, ws.nbytes);
	memset(whole, 0x5a, ws.nbytes);
	memset(pieces, 0x5a, ws.nbytes);
	for (i = 0; i < ws.n; i++) {
		src = malloc(x[i].nbytes + 1);
		for (j = 0; j < x[i].nbytes + 1; j++)
			src[j] = (uint8_t)t_rand();
		weights_store(&ws, whole, i, 0, x[i].nrows, src + 1);
		store_in_pieces(&ws, pieces, i, src + 1);
		free(src);
	}
	ck_assert_int_eq(memcmp(whole, pieces, ws.nbytes), 0);
	free(whole);
	free(pieces);
	weights_free(&ws);
}

START_TEST(storing_in_pieces_equals_storing_whole)
{
	unsigned i;

	for (i = 0; i < NTABLES; i++)
		check_pieces(kernel_table(i));
}
END_TEST

static void
check_rows(const struct kernels *k)
{
	enum { N = 21, K = 64 };
	struct extent x[2];
	struct weights ws;
	struct err e;
	float src[N][K], out[K];
	void *arena;
	uint32_t i, j;

	for (i = 0; i < N; i++)
		for (j = 0; j < K; j++)
			src[i][j] = t_rand_float(-4, 4);
	/* Second in the arena, so that its offset is not 0. */
	x[0] = make_extent(ROLE_FFN_NORM, 0, QUANT_F32, 1, 3);
	x[1] = make_extent(ROLE_TOKEN_EMBD, -1, QUANT_F32, N, K);
	t_ok(weights_layout(x, 2, k, &ws, &e), &e);
	arena = aligned_alloc(64, ws.nbytes);
	weights_place(&ws, arena);
	ck_assert_uint_eq((uintptr_t)ws.w[1].mat.data % 64, 0);
	store_in_pieces(&ws, arena, 1, (const uint8_t *)src);
	for (i = 0; i < N; i++) {
		ws.w[1].kern->unpack_row(out, &ws.w[1].mat, i);
		ck_assert_int_eq(memcmp(out, src[i], sizeof(out)), 0);
	}
	free(arena);
	weights_free(&ws);
}

START_TEST(unpacked_rows_equal_the_stored_rows)
{
	unsigned i;

	for (i = 0; i < NTABLES; i++)
		check_rows(kernel_table(i));
}
END_TEST

/* Five experts of n rows each; n need not be a multiple of the tile. */
static void
check_experts(const struct kernels *k, uint32_t n)
{
	enum { EXPERTS = 5, K = 32 };
	float src[EXPERTS * 64][K], out[K];
	struct extent x = make_extent(ROLE_EXPERTS_UP, 0, QUANT_F32,
	    EXPERTS * n, K);
	struct weights ws;
	struct mat mat;
	struct err e;
	uint32_t i, j;
	void *arena;

	x.nmats = EXPERTS;
	for (i = 0; i < EXPERTS * n; i++)
		for (j = 0; j < K; j++)
			src[i][j] = t_rand_float(-4, 4);
	t_ok(weights_layout(&x, 1, k, &ws, &e), &e);
	ck_assert_uint_eq(weight_row_step(&ws.w[0]), n % ws.w[0].kern->tile ?
	    n : ws.w[0].kern->tile);
	arena = aligned_alloc(64, ws.nbytes);
	weights_place(&ws, arena);
	store_in_pieces(&ws, arena, 0, (const uint8_t *)src);
	for (i = 0; i < EXPERTS * n; i++) {
		mat = weight_mat(&ws.w[0], i / n);
		ck_assert_uint_eq(mat.n, n);
		ck_assert_uint_eq((uintptr_t)mat.data % 64, 0);
		ws.w[0].kern->unpack_row(out, &mat, i % n);
		ck_assert_int_eq(memcmp(out, src[i], sizeof(out)), 0);
	}
	free(arena);
	weights_free(&ws);
}

START_TEST(each_expert_is_its_own_matrix)
{
	unsigned i;

	for (i = 0; i < NTABLES; i++) {
		check_experts(kernel_table(i), 64);
		check_experts(kernel_table(i), 1 + (uint32_t)t_rand_below(63));
	}
}
END_TEST

/* The NPU multiplies no experts: the host's matrices are smaller and faster. */
START_TEST(experts_beside_an_npu_are_packed_for_the_host)
{
	struct extent x[2] = { make_extent(ROLE_EXPERTS_UP, 0, QUANT_Q4_0, 128,
	    256), make_extent(ROLE_FFN_UP, 0, QUANT_Q4_0, 64, 256) };
	struct kernels host = *kernel_table(1), npu = host;
	struct weights ws;
	struct err e;

	x[0].nmats = 2;
	kernels_set_layout(&npu, LAYOUT_RKNPU);
	t_ok(weights_layout(x, 2, &npu, &ws, &e), &e);
	ck_assert_str_eq(ws.w[0].kern->name, host.mat[QUANT_Q4_0].name);
	ck_assert(ws.w[0].kern->matmul == host.mat[QUANT_Q4_0].matmul);
	ck_assert_str_eq(ws.w[1].kern->name, "q4_0_rknpu");
	weights_free(&ws);
	kernels_set_layout(&host, LAYOUT_HVX);
	t_ok(weights_layout(x, 2, &host, &ws, &e), &e);
	ck_assert_str_eq(ws.w[0].kern->name, "q4_0_hexagon");
	weights_free(&ws);
}
END_TEST

/* Extents of one expert (n rows) each: the weight of the first must give access
 * to all of them. */
static void
check_separate_experts(const struct kernels *k, uint32_t n)
{
	enum { EXPERTS = 3, K = 32 };
	struct extent x[EXPERTS + 2], whole = make_extent(ROLE_EXPERTS_UP, 0,
	    QUANT_F32, EXPERTS * n, K);
	struct weights ws, stack;
	struct mat a, b;
	struct err e;
	uint32_t i;

	whole.nmats = EXPERTS;
	x[0] = make_extent(ROLE_FFN_NORM, 0, QUANT_F32, 1, K);
	for (i = 1; i <= EXPERTS; i++)
		x[i] = make_extent(ROLE_EXPERTS_UP, 0, QUANT_F32, n, K);
	x[i] = make_extent(ROLE_EXPERTS_UP, 1, QUANT_F32, n, K);
	t_ok(weights_layout(x, EXPERTS + 2, k, &ws, &e), &e);
	t_ok(weights_layout(&whole, 1, k, &stack, &e), &e);
	weights_place(&ws, NULL);
	for (i = 0; i < EXPERTS; i++) {
		a = weight_mat(weights_find(&ws, ROLE_EXPERTS_UP, 0), i);
		b = weight_mat(&stack.w[0], i);
		ck_assert_ptr_eq(a.data, ws.w[1 + i].mat.data);
		ck_assert_uint_eq(a.n, b.n);
		ck_assert_uint_eq(ws.w[1 + i].offset - ws.w[1].offset,
		    i * stack.w[0].mat_bytes);
	}
	ck_assert_uint_eq(ws.w[EXPERTS + 1].offset, ws.w[1].offset +
	    ALIGN_UP(stack.w[0].nbytes, WEIGHT_ALIGN));
	weights_free(&stack);
	weights_free(&ws);
}

START_TEST(separate_experts_are_laid_out_as_a_stack)
{
	unsigned i;

	for (i = 0; i < NTABLES; i++)
		check_separate_experts(kernel_table(i),
		    1 + (uint32_t)t_rand_below(70));
}
END_TEST

START_TEST(rows_that_do_not_divide_into_matrices_are_refused)
{
	struct extent x = make_extent(ROLE_EXPERTS_UP, 0, QUANT_F32, 10, 32);
	struct weights ws;
	struct err e = { 0 };

	x.nmats = 4;
	ck_assert_int_eq(weights_layout(&x, 1, kernel_table(0), &ws, &e),
	    -EBADMSG);
	ck_assert_ptr_nonnull(strstr(e.msg, x.name));
	x.nmats = 11;
	ck_assert_int_eq(weights_layout(&x, 1, kernel_table(0), &ws, &e),
	    -EBADMSG);
}
END_TEST

START_TEST(weights_are_found_by_role_and_layer)
{
	struct extent x[3];
	struct weights ws;
	struct err e;

	x[0] = make_extent(ROLE_TOKEN_EMBD, -1, QUANT_F32, 4, 32);
	x[1] = make_extent(ROLE_FFN_UP, 5, QUANT_F32, 4, 32);
	x[2] = make_extent(ROLE_FFN_UP, 6, QUANT_F32, 4, 32);
	t_ok(weights_layout(x, 3, kernel_table(0), &ws, &e), &e);
	ck_assert_ptr_eq(weights_find(&ws, ROLE_TOKEN_EMBD, -1), &ws.w[0]);
	ck_assert_ptr_eq(weights_find(&ws, ROLE_FFN_UP, 6), &ws.w[2]);
	ck_assert_ptr_null(weights_find(&ws, ROLE_FFN_UP, 4));
	ck_assert_ptr_null(weights_find(&ws, ROLE_FFN_UP, -1));
	ck_assert_ptr_null(weights_find(&ws, ROLE_TOKEN_EMBD, 0));
	ck_assert_ptr_null(weights_find(&ws, ROLE_OUTPUT, -1));
	weights_free(&ws);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		sizes_come_from_kernels_and_offsets_are_aligned,
		no_extents_need_no_memory,
		an_unsupported_type_is_refused_with_tensor_and_known_types,
		vectors_are_converted_to_float32,
		storing_in_pieces_equals_storing_whole,
		unpacked_rows_equal_the_stored_rows,
		each_expert_is_its_own_matrix,
		experts_beside_an_npu_are_packed_for_the_host,
		separate_experts_are_laid_out_as_a_stack,
		rows_that_do_not_divide_into_matrices_are_refused,
		weights_are_found_by_role_and_layer
	};

	return t_main("bind", 30, tests, NITEMS(tests));
}
