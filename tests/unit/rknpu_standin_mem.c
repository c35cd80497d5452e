/* tests/unit/rknpu_standin_mem.c - tests of the memory of the stand-in for
 * librknnrt.so: its two copies and their syncs, what contexts bind, and limits. */
#include "tests/support/rknpu.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- caches --- */

static void
forget_sync_of_a(void)
{
	struct rk_product p;

	rk_open_native(&p, 0);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert(rk_is_right(&p));
	rk_double_a(&p);
	rk_put(&p, RKNPU_A);
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	ck_assert(!rk_is_right(&p));
	rk_sync(&p, RKNPU_A, RKNN_MEMORY_SYNC_TO_DEVICE);
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	ck_assert(rk_is_right(&p));
	rk_close(&p);
}

START_TEST(the_npu_sees_only_memory_that_was_synced)
{
	rk_run("", forget_sync_of_a);
}
END_TEST

static void
forget_sync_of_c(void)
{
	struct rk_product p;

	rk_open_native(&p, 0);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	rk_double_a(&p);
	rk_put(&p, RKNPU_A);
	rk_sync(&p, RKNPU_A, RKNN_MEMORY_SYNC_TO_DEVICE);
	ck_assert_int_eq(rk_lib()->rknn_matmul_run(p.ctx), RKNN_SUCC);
	ck_assert(!rk_is_right(&p));
	/* The other direction does not help. */
	rk_sync(&p, RKNPU_C, RKNN_MEMORY_SYNC_TO_DEVICE);
	ck_assert(!rk_is_right(&p));
	rk_sync(&p, RKNPU_C, RKNN_MEMORY_SYNC_FROM_DEVICE);
	ck_assert(rk_is_right(&p));
	rk_close(&p);
}

START_TEST(a_result_is_seen_only_after_a_sync)
{
	rk_run("", forget_sync_of_c);
}
END_TEST

/* The cache writes the program's bytes back over the result. */
static void
write_into_c(void)
{
	struct rk_product p;

	rk_open_native(&p, 0);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert(rk_is_right(&p));
	((char *)p.mem[RKNPU_C]->virt_addr)[70] ^= 1;
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	ck_assert(!rk_is_right(&p));
	/* Written back before the run, they do no harm. */
	((char *)p.mem[RKNPU_C]->virt_addr)[70] ^= 1;
	rk_sync(&p, RKNPU_C, RKNN_MEMORY_SYNC_TO_DEVICE);
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	ck_assert(rk_is_right(&p));
	rk_close(&p);
}

START_TEST(bytes_written_into_c_come_back_over_a_result)
{
	rk_run("", write_into_c);
}
END_TEST

static void
forget_all_syncs(void)
{
	struct rk_product p;

	rk_open_native(&p, 0);
	rk_put(&p, RKNPU_A);
	rk_put(&p, RKNPU_B);
	ck_assert_int_eq(rk_bind(&p, RKNPU_A), RKNN_SUCC);
	ck_assert_int_eq(rk_bind(&p, RKNPU_B), RKNN_SUCC);
	ck_assert_int_eq(rk_bind(&p, RKNPU_C), RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_matmul_run(p.ctx), RKNN_SUCC);
	ck_assert_int_eq(rk_is_right(&p), getenv("RK_COHERENT") != NULL);
	rk_close(&p);
}

START_TEST(coherent_memory_needs_no_sync)
{
	rk_run("coherent=0", forget_all_syncs);
	setenv("RK_COHERENT", "1", 1);
	rk_run("coherent=1", forget_all_syncs);
	unsetenv("RK_COHERENT");
}
END_TEST

/* Replace B's memory by a view of it, at an offset. */
static void
use_view(void)
{
	const struct rknn_lib *lib = rk_lib();
	struct rknn_tensor_mem *big, *view;
	struct rk_product p;
	uint32_t n;

	rk_open_native(&p, 0);
	n = (uint32_t)p.layout[RKNPU_B].nbytes;
	big = lib->rknn_create_mem(p.ctx, n + 8192);
	ck_assert_ptr_nonnull(big);
	ck_assert_ptr_null(lib->rknn_create_mem_from_fd(p.ctx, big->fd,
	    big->virt_addr, n, 8193));
	ck_assert_ptr_null(lib->rknn_create_mem_from_fd(p.ctx, big->fd + 999,
	    big->virt_addr, n, 0));
	view = lib->rknn_create_mem_from_fd(p.ctx, big->fd, big->virt_addr, n,
	    4096);
	ck_assert_ptr_nonnull(view);
	ck_assert_ptr_eq(view->virt_addr, (char *)big->virt_addr + 4096);
	ck_assert_int_eq(lib->rknn_destroy_mem(p.ctx, p.mem[RKNPU_B]), 0);
	p.mem[RKNPU_B] = view;
	/* Synced through its owner alone. */
	rk_put(&p, RKNPU_A);
	rk_put(&p, RKNPU_B);
	rk_sync(&p, RKNPU_A, RKNN_MEMORY_SYNC_TO_DEVICE);
	ck_assert_int_eq(lib->rknn_mem_sync(p.ctx, big,
	    RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
	rk_bind(&p, RKNPU_A);
	rk_bind(&p, RKNPU_B);
	rk_bind(&p, RKNPU_C);
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	ck_assert(rk_is_right(&p));
	ck_assert_int_eq(lib->rknn_destroy_mem(p.ctx, big), RKNN_SUCC);
	rk_close(&p);
}

static void
sync_view(void)
{
	const struct rknn_lib *lib = rk_lib();
	struct rknn_tensor_mem *a;
	struct rk_product p;

	rk_open_native(&p, 0);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	a = lib->rknn_create_mem_from_fd(p.ctx, p.mem[RKNPU_A]->fd,
	    p.mem[RKNPU_A]->virt_addr, p.mem[RKNPU_A]->size, 0);
	ck_assert_ptr_nonnull(a);
	rk_double_a(&p);
	rk_put(&p, RKNPU_A);
	ck_assert_int_eq(lib->rknn_mem_sync(p.ctx, a,
	    RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	ck_assert(!rk_is_right(&p));
	RK_MISUSED(1, "is not synced");
}

START_TEST(a_view_is_synced_through_its_owner_alone)
{
	rk_run("", use_view);
	ck_assert_int_eq(rk_child("", sync_view), 0);
}
END_TEST

static void
use_create_mem2(void)
{
	const struct rknn_lib *lib = rk_lib();
	struct rknn_tensor_mem *m;
	struct rk_product p;

	rk_open_native(&p, 0);
	ck_assert_int_eq(lib->rknn_destroy_mem(p.ctx, p.mem[RKNPU_A]), 0);
	p.mem[RKNPU_A] = lib->rknn_create_mem2(p.ctx,
	    p.layout[RKNPU_A].nbytes, RKNN_FLAG_MEMORY_NON_CACHEABLE);
	ck_assert_ptr_nonnull(p.mem[RKNPU_A]);
	/* Not coherent either. */
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert(rk_is_right(&p));
	rk_double_a(&p);
	rk_put(&p, RKNPU_A);
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	ck_assert(!rk_is_right(&p));
	ck_assert_ptr_null(lib->rknn_create_mem2(p.ctx, UINT64_C(1) << 32, 0));
	m = lib->rknn_create_mem2(0, 4096, RKNN_FLAG_MEMORY_NO_CONTEXT);
	ck_assert_ptr_nonnull(m);
	ck_assert_int_eq(lib->rknn_destroy_mem(p.ctx, m), RKNN_SUCC);
	rk_close(&p);
}

START_TEST(memory_that_is_not_cached_is_not_coherent)
{
	rk_run("", use_create_mem2);
}
END_TEST

/* --- binding --- */

/* layouts of B: row-major and transposed are copied when they are bound. */
static void
change_b(int layout, int is_seen)
{
	struct rknn_matmul_info info;
	struct rk_product p;
	size_t i;

	rknn_info(&info, RKNN_INT8_MM_INT8_TO_INT32, 3, 64, 64);
	info.B_layout = (int16_t)layout;
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_SUCC);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	for (i = 0; i < 64 * 64; i++)
		p.b[i] = (int8_t)(p.b[i] / 4 * 2);
	rk_double_a(&p);			/* computes the new result */
	rk_put(&p, RKNPU_A);
	rk_sync(&p, RKNPU_A, RKNN_MEMORY_SYNC_TO_DEVICE);
	rk_put(&p, RKNPU_B);
	rk_sync(&p, RKNPU_B, RKNN_MEMORY_SYNC_TO_DEVICE);
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	ck_assert_int_eq(rk_is_right(&p), is_seen);
	ck_assert_int_eq(rk_bind(&p, RKNPU_B), RKNN_SUCC);
	ck_assert_int_eq(rk_run_again(&p), RKNN_SUCC);
	ck_assert(rk_is_right(&p));
	rk_close(&p);
}

static void
change_each_b(void)
{
	change_b(RKNN_MM_LAYOUT_NATIVE, 1);
	change_b(RKNN_MM_LAYOUT_NORM, 0);
	change_b(RKNN_MM_LAYOUT_TP_NORM, 0);
}

START_TEST(only_native_b_may_change_after_it_was_bound)
{
	rk_run("", change_each_b);
}
END_TEST

static void
bind_wrongly(void)
{
	const struct rknn_lib *lib = rk_lib();
	struct rknn_matmul_tensor_attr attr;
	struct rknn_tensor_mem *small;
	struct rk_product p;

	rk_open_native(&p, 0);
	attr = p.attr.A;
	attr.name[0] = 'D';
	ck_assert_int_eq(lib->rknn_matmul_set_io_mem(p.ctx, p.mem[0], &attr),
	    RKNN_ERR_PARAM_INVALID);
	attr = p.attr.A;
	attr.dims[0]++;
	ck_assert_int_eq(lib->rknn_matmul_set_io_mem(p.ctx, p.mem[0], &attr),
	    RKNN_ERR_PARAM_INVALID);
	ck_assert_int_eq(lib->rknn_matmul_set_io_mem(p.ctx, NULL, &p.attr.A),
	    RKNN_ERR_PARAM_INVALID);
	small = lib->rknn_create_mem(p.ctx, p.attr.A.size - 1);
	ck_assert_int_eq(lib->rknn_matmul_set_io_mem(p.ctx, small, &p.attr.A),
	    RKNN_ERR_PARAM_INVALID);
	ck_assert_int_eq(lib->rknn_destroy_mem(p.ctx, small), RKNN_SUCC);
	rk_close(&p);
}

START_TEST(only_the_contexts_own_attributes_are_taken)
{
	rk_run("", bind_wrongly);
}
END_TEST

static void
run_unbound(void)
{
	struct rk_product p;

	rk_open_native(&p, 0);
	ck_assert_int_eq(rk_bind(&p, RKNPU_A), RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_matmul_run(p.ctx),
	    RKNN_ERR_INPUT_INVALID);
	ck_assert_int_eq(rk_bind(&p, RKNPU_B), RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_matmul_run(p.ctx),
	    RKNN_ERR_OUTPUT_INVALID);
	RK_MISUSED(2, "B is not bound");
}

static void
use_destroyed_memory(void)
{
	struct rk_product p;

	rk_open_native(&p, 0);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_destroy_mem(p.ctx, p.mem[RKNPU_A]),
	    RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_matmul_run(p.ctx), RKNN_ERR_FAIL);
	ck_assert_int_lt(rk_lib()->rknn_destroy_mem(p.ctx, p.mem[RKNPU_A]),
	    0);
	RK_MISUSED(2, "the memory of A was destroyed");
}

static void
use_destroyed_context(void)
{
	struct rk_product p;

	rk_open_native(&p, 0);
	ck_assert_int_eq(rk_multiply(&p), RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_matmul_destroy(p.ctx), RKNN_SUCC);
	ck_assert_int_eq(rk_lib()->rknn_matmul_run(p.ctx),
	    RKNN_ERR_CTX_INVALID);
	ck_assert_int_eq(rk_lib()->rknn_matmul_destroy(p.ctx),
	    RKNN_ERR_CTX_INVALID);
	ck_assert_int_eq(rk_lib()->rknn_matmul_set_core_mask(p.ctx, 1),
	    RKNN_ERR_CTX_INVALID);
	ck_assert_ptr_null(rk_lib()->rknn_create_mem(p.ctx, 64));
	ck_assert_uint_eq(rk_counts().mems, 3);	/* left behind */
	RK_MISUSED(4, "rknn_matmul_run: context");
}

START_TEST(use_after_the_end_is_counted)
{
	ck_assert_int_eq(rk_child("", run_unbound), 0);
	ck_assert_int_eq(rk_child("", use_destroyed_memory), 0);
	ck_assert_int_eq(rk_child("", use_destroyed_context), 0);
}
END_TEST

static void
leave_garbage_in_info(void)
{
	struct rknn_matmul_info info;
	struct rk_product p;

	rknn_info(&info, 2, 1, 64, 64);
	info.reserved[33] = 1;
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_SUCC);
	RK_MISUSED(1, "not zeroed");
}

START_TEST(a_structure_that_is_not_zeroed_is_counted)
{
	ck_assert_int_eq(rk_child("", leave_garbage_in_info), 0);
}
END_TEST

/* --- limits --- */

static void
fill_domain(void)
{
	const struct rknn_lib *lib = rk_lib();
	struct rknn_mem_size size;
	struct rk_product p;
	struct rknn_tensor_mem *m;

	rk_open_native(&p, 2);
	/* 1 MiB less 64 KiB and three pages. */
	ck_assert_ptr_null(lib->rknn_create_mem(p.ctx, 1048576 - 65536 -
	    3 * 4096 + 1));
	m = lib->rknn_create_mem(p.ctx, 1048576 - 65536 - 3 * 4096);
	ck_assert_ptr_nonnull(m);
	ck_assert_uint_eq(rk_counts().domain_bytes[2], 1048576);
	ck_assert_ptr_null(lib->rknn_create_mem(p.ctx, 1));
	ck_assert_int_eq(rk_create(2, 1, 64, 64, 1), RKNN_SUCC);	/* domain 0 */
	p.info.iommu_domain_id = 2;
	ck_assert_int_eq(lib->rknn_matmul_create(&p.ctx, &p.info, &p.attr),
	    RKNN_ERR_MALLOC_FAIL);
	ck_assert_int_eq(lib->rknn_query(p.ctx, RKNN_QUERY_MEM_SIZE, &size,
	    sizeof(size)), RKNN_SUCC);
	ck_assert_uint_eq(size.total_internal_size, 65536);
	ck_assert_int_eq(lib->rknn_destroy_mem(p.ctx, m), RKNN_SUCC);
	rk_close(&p);
}

/* A context with row-major matrices has a buffer of its own. */
static void
count_internal_bytes(void)
{
	struct rknn_matmul_info info;
	struct rk_product p;

	rknn_info(&info, 2, 64, 128, 256);
	ck_assert_int_eq(rk_open(&p, "rk3588", &info), RKNN_SUCC);
	ck_assert_uint_eq(rk_counts().domain_bytes[0], getenv("RK_FIXED") !=
	    NULL ? 8192 + 8192 + 32768 + 65536 :
	    2 * (8192 + 32768 + 65536) + 65536);
	rk_close(&p);
}

START_TEST(a_domains_addresses_run_out)
{
	rk_run("domain-bytes=1048576", fill_domain);
	rk_run("", count_internal_bytes);
	setenv("RK_FIXED", "1", 1);
	rk_run("internal-bytes=8192", count_internal_bytes);
	unsetenv("RK_FIXED");
}
END_TEST

static void
create_some_memory(void)
{
	const struct rknn_lib *lib = rk_lib();
	struct rk_product p;

	rk_open_native(&p, 0);		/* three allocations */
	ck_assert_ptr_null(lib->rknn_create_mem(p.ctx, 64));
	ck_assert_int_eq(lib->rknn_destroy_mem(p.ctx, p.mem[2]), RKNN_SUCC);
	p.mem[2] = lib->rknn_create_mem(p.ctx, (uint32_t)
	    p.layout[RKNPU_C].nbytes);
	ck_assert_ptr_nonnull(p.mem[2]);
	rk_close(&p);
}

static void
create_large_memory(void)
{
	struct rk_product p;

	rk_open_native(&p, 0);		/* B has 4096 bytes */
	ck_assert_ptr_null(rk_lib()->rknn_create_mem(p.ctx, 4097));
	rk_close(&p);
}

START_TEST(allocations_can_be_limited)
{
	rk_run("fds=3", create_some_memory);
	rk_run("fail=create_mem:-1@4", create_some_memory);
	rk_run("largest-bytes=4096", create_large_memory);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_npu_sees_only_memory_that_was_synced,
		a_result_is_seen_only_after_a_sync,
		bytes_written_into_c_come_back_over_a_result,
		coherent_memory_needs_no_sync,
		a_view_is_synced_through_its_owner_alone,
		memory_that_is_not_cached_is_not_coherent,
		only_native_b_may_change_after_it_was_bound,
		only_the_contexts_own_attributes_are_taken,
		use_after_the_end_is_counted,
		a_structure_that_is_not_zeroed_is_counted,
		a_domains_addresses_run_out,
		allocations_can_be_limited,
	};

	return t_main("rknpu_standin_mem", 60, tests, NITEMS(tests));
}
