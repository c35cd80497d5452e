/* tests/unit/alloc.c - ready stages do not allocate.
 * Replaces the allocator to count the allocations of this process while stages
 * run.  Skipped under sanitizers, which replace it as well. */
#include "tests/support/t.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/chain.h"

#if SANITIZED

int
main(void)
{
	puts("the sanitizer replaces the allocator");
	return T_SKIP;
}

#else

static _Atomic int armed;
static _Atomic unsigned long nallocs;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static void
count_allocation(void)
{
	if (atomic_load(&armed))
		atomic_fetch_add(&nallocs, 1);
}

void *
malloc(size_t n)
{
	count_allocation();
	return __libc_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
	count_allocation();
	return __libc_calloc(n, size);
}

void *
realloc(void *p, size_t n)
{
	count_allocation();
	return __libc_realloc(p, n);
}

void *
aligned_alloc(size_t align, size_t n)
{
	count_allocation();
	return __libc_memalign(align, n);
}

static void
arm_counter(int on)
{
	atomic_store(&armed, on);
}

START_TEST(malloc_and_realloc_are_counted)
{
	void *volatile p;

	atomic_store(&armed, 1);
	p = malloc(10);
	p = realloc(p, 1000);
	atomic_store(&armed, 0);
	free(p);
	ck_assert_uint_eq(atomic_load(&nallocs), 2);
}
END_TEST

START_TEST(ready_stages_do_not_allocate)
{
	static struct chain l;
	struct chain_conf lc = CHAIN_CONF;
	uint32_t text[CHAIN_CTX], i;
	struct err e = { 0 };

	for (i = 0; i < CHAIN_CTX; i++)
		text[i] = i;
	lc.nstages = 2;
	lc.cut[1] = 3;
	lc.threads = 2;
	t_ok(chain_open(&l, &lc, &e), &e);
	chain_send_text(&l, 0, 0, text, 40, 16);
	chain_send_text(&l, 1, 0, text, 20, 1);
	chain_send_text(&l, 2, 0, text, 25, 5);
	chain_send_control(&l, BATCH_FORGET, 0, 0);
	chain_send_stop(&l);
	l.watch = arm_counter;
	atomic_store(&nallocs, 0);
	t_ok(chain_run(&l, &e), &e);
	ck_assert_ptr_nonnull(chain_logits(&l, 2, 24));
	ck_assert_uint_eq(atomic_load(&nallocs), 0);
	chain_close(&l);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		malloc_and_realloc_are_counted,
		ready_stages_do_not_allocate,
	};

	return t_main("alloc", 60, tests, NITEMS(tests));
}

#endif
