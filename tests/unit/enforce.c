/* tests/unit/enforce.c - RLIMIT_DATA as a cap: what it leaves a worker.
 *
 * The limit must hold for the cap less everything that the worker has already:
 * its resident memory, the shared memory that it will map, its page tables. */
#include "tests/support/t.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/base.h"
#include "coordinator/cap/enforce.h"

#define CAP	(64 * MIB)

/* A process that has mapped `before` bytes.  It maps bytes in steps of `step`,
 * private or shared ones, when it is told to, and reports how many it got. */
static struct {
	pid_t pid;
	int to, from;
} child;

static NORETURN void
child_main(int in, int out, uint64_t before, uint64_t step, int kind)
{
	uint64_t got = 0;
	char c = 0;

	if (before > 0 && mmap(NULL, before, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		_exit(1);
	if (write(out, &c, 1) != 1 || read(in, &c, 1) != 1)
		_exit(2);
	while (got < GIB && mmap(NULL, step, PROT_READ | PROT_WRITE,
	    kind | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		got += step;
	_exit(write(out, &got, sizeof(got)) == sizeof(got) ? 0 : 3);
}

static void
start_child_kind(uint64_t before, uint64_t step, int kind)
{
	int in[2], out[2];
	char c;

	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(pipe(out), 0);
	fflush(stdout);
	ck_assert_int_ge(child.pid = fork(), 0);
	if (child.pid == 0)
		child_main(in[0], out[1], before, step, kind);
	close(in[0]);
	close(out[1]);
	child.to = in[1];
	child.from = out[0];
	ck_assert_int_eq(read(child.from, &c, 1), 1);
}

static void
start_child(uint64_t before, uint64_t step)
{
	start_child_kind(before, step, MAP_PRIVATE);
}

/* The bytes that it could map. */
static uint64_t
end_child(void)
{
	uint64_t got;
	int status;

	ck_assert_int_eq(write(child.to, "", 1), 1);
	ck_assert_int_eq(read(child.from, &got, sizeof(got)), sizeof(got));
	ck_assert_int_eq(waitpid(child.pid, &status, 0), child.pid);
	ck_assert_int_eq(status, 0);
	close(child.to);
	close(child.from);
	return got;
}

/* VmData of the child. */
static uint64_t
data_bytes(void)
{
	char path[64], line[256];
	unsigned long long kib = 0;
	FILE *fp;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)child.pid);
	ck_assert_ptr_nonnull(fp = fopen(path, "r"));
	while (kib == 0 && fgets(line, sizeof(line), fp) != NULL)
		sscanf(line, "VmData: %llu kB", &kib);
	fclose(fp);
	return (uint64_t)kib * KIB;
}

/* The rest of the cap for a worker that has these bytes. */
static uint64_t
bytes_left(uint64_t before, uint64_t rss, uint64_t shared)
{
	struct enforce e = { .by = ENFORCE_RLIMIT };
	struct enforce_start st = { .cap_bytes = CAP, .rss_bytes = rss,
	    .shared_bytes = shared };
	const uint64_t step = 64 * KIB;
	uint64_t data, got;
	struct err err;

	start_child(before, step);
	st.pid = child.pid;
	data = data_bytes();
	ck_assert_uint_ge(data, before);
	t_ok(enforce_apply(&e, &st, &err), &err);
	if (e.by != ENFORCE_RLIMIT) {	/* an emulator without the limit */
		end_child();
		return UINT64_MAX;
	}
	got = end_child();
	ck_assert_uint_le(got, e.limit_bytes - data);
	ck_assert_uint_lt(e.limit_bytes - data - got, step);
	return e.limit_bytes - data;
}

START_TEST(the_limit_leaves_the_cap_less_what_is_used)
{
	static const struct {
		uint64_t before, rss, shared;
	} cases[] = {
		{ 0, 0, 0 }, { 0, 5 * MIB, 0 }, { 0, 0, 3 * MIB },
		{ 0, 5 * MIB, 3 * MIB },
		/* Mapped before, touched or not, is no part of the rest. */
		{ 200 * MIB, 5 * MIB, 3 * MIB }, { 32 * MIB, 32 * MIB, 0 }
	};
	const uint64_t tables = CAP / 512;
	uint64_t left;
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		left = bytes_left(cases[i].before, cases[i].rss,
		    cases[i].shared);
		if (left == UINT64_MAX) {
			puts("skipped: RLIMIT_DATA is not enforced here");
			return;
		}
		ck_assert_msg(left == CAP - tables - cases[i].rss -
		    cases[i].shared, "case %u: %llu bytes are left", i,
		    (unsigned long long)left);
	}
}
END_TEST

START_TEST(nothing_is_left_of_a_cap_that_is_used_up)
{
	uint64_t left = bytes_left(0, CAP, 0);

	ck_assert(left == 0 || left == UINT64_MAX);
	left = bytes_left(0, CAP - MIB, 2 * MIB);
	ck_assert(left == 0 || left == UINT64_MAX);
	left = bytes_left(0, 2 * CAP, 0);
	ck_assert(left == 0 || left == UINT64_MAX);
	/* A worker's word that would wrap at 2^64. */
	left = bytes_left(0, UINT64_MAX - CAP / 512 + 1, 0);
	ck_assert(left == 0 || left == UINT64_MAX);
	left = bytes_left(0, 8 * MIB, UINT64_MAX - 8 * MIB + 1);
	ck_assert(left == 0 || left == UINT64_MAX);
}
END_TEST

/* A lower limit of the user's own stays. */
START_TEST(a_limit_in_force_is_not_raised)
{
	struct enforce e = { .by = ENFORCE_RLIMIT };
	struct enforce_start st = { .cap_bytes = CAP };
	struct rlimit low, now;
	struct err err;

	start_child(0, MIB);
	st.pid = child.pid;
	low.rlim_cur = low.rlim_max = data_bytes() + MIB;
	ck_assert_int_eq(prlimit(child.pid, RLIMIT_DATA, &low, NULL), 0);
	t_ok(enforce_apply(&e, &st, &err), &err);
	if (e.by == ENFORCE_RLIMIT) {
		ck_assert_uint_eq(e.limit_bytes, low.rlim_max);
		ck_assert_int_eq(prlimit(child.pid, RLIMIT_DATA, NULL, &now),
		    0);
		ck_assert_uint_eq(now.rlim_max, low.rlim_max);
	}
	end_child();
}
END_TEST

START_TEST(a_session_without_a_cap_gets_no_limit)
{
	struct enforce e = { .by = ENFORCE_RLIMIT };
	struct enforce_start st = { .cap_bytes = UINT64_MAX };
	struct rlimit before, now;
	struct err err;

	start_child(0, MIB);
	st.pid = child.pid;
	ck_assert_int_eq(prlimit(child.pid, RLIMIT_DATA, NULL, &before), 0);
	t_ok(enforce_apply(&e, &st, &err), &err);
	ck_assert_int_eq(prlimit(child.pid, RLIMIT_DATA, NULL, &now), 0);
	ck_assert_uint_eq(now.rlim_cur, before.rlim_cur);
	end_child();
}
END_TEST

/* RLIMIT_DATA does not count it. */
START_TEST(a_process_without_shared_memory_gets_none_beyond_its_cap)
{
	struct enforce e = { .by = ENFORCE_RLIMIT };
	struct enforce_start st = { .cap_bytes = CAP, .private_only = 1 };
	struct err err;
	uint64_t got;

	start_child_kind(0, 64 * KIB, MAP_SHARED);
	st.pid = child.pid;
	t_ok(enforce_apply(&e, &st, &err), &err);
	got = end_child();
	if (e.by != ENFORCE_RLIMIT) {
		puts("skipped: RLIMIT_DATA is not enforced here");
		return;
	}
	ck_assert_uint_le(got, CAP + MIB);	/* room for the stack */
	ck_assert_uint_gt(got, CAP - 2 * MIB);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_limit_leaves_the_cap_less_what_is_used,
		nothing_is_left_of_a_cap_that_is_used_up,
		a_limit_in_force_is_not_raised,
		a_session_without_a_cap_gets_no_limit,
		a_process_without_shared_memory_gets_none_beyond_its_cap
	};

	return t_main("enforce", 60, tests, NITEMS(tests));
}
