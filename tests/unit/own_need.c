/* tests/unit/own_need.c - the coordinator's memory, term by term, and the limit that
 * holds it. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/own_cap.h"
#include "config/room.h"
#include "coordinator/plan/own_need.h"
#include "shm/layout.h"
#include "shm/ring.h"

static struct model model;

static const struct own_input base = { .base_bytes = 8 * MIB };

/* One session of a small model. */
static struct plan
small_plan(void)
{
	model = (struct model){ .hp = { .n_vocab = 4096, .n_embd = 256 } };
	return (struct plan){ .model = &model, .ctx_tok = 1024,
	    .batch_rows = 128, .head_rows = 4, .nseqs = 1, .nsessions = 1 };
}

static struct own_need
need_of(const struct own_input *in, const struct plan *p)
{
	struct own_need n;

	own_need(in, p, &n);
	return n;
}

static uint64_t
total(const struct own_input *in, const struct plan *p)
{
	return need_of(in, p).total_bytes;
}

/* --- the formula --- */

START_TEST(the_total_is_the_sum_of_the_terms)
{
	const struct plan p = small_plan();
	const struct own_need n = need_of(&base, &p);
	uint32_t first, first_bytes, last, last_bytes;

	plan_ring(&p, 0, &first, &first_bytes);
	plan_ring(&p, 1, &last, &last_bytes);
	ck_assert_uint_eq(n.total_bytes, ALIGN_UP(n.base_bytes +
	    n.command_bytes + n.rings_bytes + n.journal_bytes +
	    n.sampler_bytes + n.answers_bytes + n.text_bytes +
	    n.spare_bytes + n.slack_bytes, MIB));
	ck_assert_uint_eq(n.base_bytes, 8 * MIB);
	ck_assert_uint_eq(n.rings_bytes, 2 * 4096 +
	    ring_bytes(first, first_bytes) + ring_bytes(last, last_bytes));
	ck_assert_uint_eq(n.journal_bytes, 4 * 1024 + (first + last) *
	    (sizeof(struct batch_hdr) + 8) + (first + last + 2) * 128 * 16);
	ck_assert_uint_eq(n.sampler_bytes, 4096 * 9 + 64);
	ck_assert_uint_eq(n.text_bytes, MIB * OWN_TEXT_FACTOR);
	ck_assert(n.total_bytes < 32 * MIB);
}
END_TEST

START_TEST(context_sequences_vocabulary_window_and_texts_raise_it)
{
	const struct plan small = small_plan();
	const uint64_t least = total(&base, &small);
	struct own_input in = base;
	struct plan p = small;

	p.ctx_tok = 131072;
	ck_assert(total(&base, &p) >= least + 130000 * (4 + 8 + 32) + 9 * MIB);
	p = small;
	p.nseqs = 256;
	ck_assert(total(&base, &p) > least + 255 * 1024 * 36);
	in.window_tok = 1024;
	ck_assert(total(&in, &p) >= total(&base, &p) + MIB);
	p = small;
	model.hp.n_vocab = 262144;
	ck_assert(total(&base, &p) >= least + 2 * MIB);
	in = base;
	in.text_bytes = 8 * MIB;
	ck_assert(total(&in, &p) >= least + 70 * MIB);
	in = base;
	in.command_bytes = GIB;
	ck_assert(total(&in, &p) >= least + GIB);
	in = base;
	in.spare_bytes = GIB;
	ck_assert(total(&in, &p) >= least + GIB);
}
END_TEST

START_TEST(nothing_overflows_at_the_limits_of_the_config)
{
	const struct own_input in = { .base_bytes = GIB,
	    .command_bytes = 4 * GIB, .window_tok = LIMIT_CONTEXT };
	struct plan p = small_plan();

	p.ctx_tok = LIMIT_CONTEXT;
	p.nseqs = MAX_SEQS;
	p.batch_rows = MAX_BATCH;
	p.nsessions = MAX_SESSIONS;
	model.hp.n_vocab = 1 << 20;
	ck_assert(total(&in, &p) > (uint64_t)LIMIT_CONTEXT * MAX_SEQS * 36);
	ck_assert(total(&in, &p) < UINT64_C(1) << 50);
}
END_TEST

START_TEST(a_cap_leaves_room_for_a_text_or_is_too_small)
{
	const struct plan p = small_plan();
	const struct own_input in = { .base_bytes = 8 * MIB,
	    .command_bytes = 2 * MIB, .spare_bytes = 64 * MIB };
	const struct own_need n = need_of(&in, &p);
	const uint64_t least = own_least(&n);

	ck_assert(least < 18 * MIB);

	ck_assert_uint_eq(own_text_within(&n, 0), 0);
	ck_assert_uint_eq(own_text_within(&n, least - 1), 0);
	ck_assert_uint_eq(own_text_within(&n, least), OWN_LEAST_TEXT);
	ck_assert_uint_eq(own_text_within(&n, least + 10 * MIB),
	    OWN_LEAST_TEXT + 10 * MIB / OWN_TEXT_FACTOR);
	ck_assert(own_text_within(&n, n.total_bytes) >= MIB);
	ck_assert_uint_eq(own_text_bytes(1), MIB);
	ck_assert_uint_eq(own_text_bytes(131072), 131072 * 16);
}
END_TEST

/* --- the limit --- */

enum { SKIPPED = 77 };

static void
set_cap(uint64_t nbytes)
{
	struct err e;

	if (own_cap_set(nbytes, 0, &e) < 0)
		_exit(10);
	if (own_cap()->why[0] != '\0')
		_exit(SKIPPED);		/* a sanitizer, or qemu-user */
}

/* Run fn in a child: a cap of this process would stay. */
static void
in_child(void (*fn)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		fn();
		_exit(0);
	}
	ck_assert(waitpid(pid, &status, 0) == pid);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED)
		puts("skipped: RLIMIT_DATA is not enforced here");
	else
		ck_assert_int_eq(WEXITSTATUS(status), 0);
}

static void
allocate_at_the_limit(void)
{
	struct err e = { 0 };
	struct rlimit rl;
	void *volatile p;

	set_cap(64 * MIB);
	getrlimit(RLIMIT_DATA, &rl);
	if (rl.rlim_cur != own_cap()->limit_bytes || rl.rlim_cur >= 64 * MIB)
		_exit(1);
	p = malloc(16 * MIB);
	if (p == NULL || (p = malloc(60 * MIB)) != NULL)
		_exit(2);
	if (err_nomem(&e, "a test") != -ENOMEM || e.kind != ERR_RUN ||
	    strcmp(e.msg, "no memory for a test (the coordinator's cap is "
	    "64.0 MiB; --coordinator-cap sets another)") != 0)
		_exit(3);
	/* A larger one, at any time; a smaller one than there is, never. */
	set_cap(256 * MIB);
	if ((p = malloc(100 * MIB)) == NULL)
		_exit(4);
	if (own_cap_set(64 * MIB, 0, &e) != -ENOSPC || e.kind != ERR_FIT ||
	    own_cap()->cap_bytes != 256 * MIB)
		_exit(5);
}

START_TEST(an_allocation_beyond_the_cap_fails_with_a_message)
{
	in_child(allocate_at_the_limit);
}
END_TEST

static void
count_shared(void)
{
	uint64_t before;

	set_cap(64 * MIB);
	before = own_cap()->limit_bytes;
	if (own_cap_set(64 * MIB, 16 * MIB, NULL) < 0 ||
	    own_cap()->limit_bytes > before - 15 * MIB)
		_exit(1);
}

START_TEST(shared_memory_counts)
{
	in_child(count_shared);
}
END_TEST

static void
check_texts(void)
{
	struct err e = { 0 };

	set_cap(64 * MIB);
	if (own_cap_check("a text", 4 * MIB, 10, &e) < 0)
		_exit(1);
	if (own_cap_check("a text", 8 * MIB, 10, &e) != -E2BIG ||
	    e.kind != ERR_USAGE || strstr(e.msg, "a text: it has 8388608 "
	    "bytes or more, and the coordinator's cap of 64.0 MiB leaves "
	    "room for ") == NULL)
		_exit(2);
}

START_TEST(a_text_that_does_not_fit_is_refused)
{
	in_child(check_texts);
}
END_TEST

static void
release_in_a_child(void)
{
	struct rlimit before, now;
	struct room r;

	getrlimit(RLIMIT_DATA, &before);
	set_cap(64 * MIB);
	/* The room of children is not that of this process. */
	room_rlimits(0, 0, &r);
	if (before.rlim_cur == RLIM_INFINITY && r.cap_bytes <= 64 * MIB)
		_exit(1);
	own_cap_release();
	getrlimit(RLIMIT_DATA, &now);
	if (now.rlim_cur != before.rlim_cur || now.rlim_max != before.rlim_max)
		_exit(2);
}

START_TEST(a_child_gets_the_limit_of_before)
{
	in_child(release_in_a_child);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_total_is_the_sum_of_the_terms,
		context_sequences_vocabulary_window_and_texts_raise_it,
		nothing_overflows_at_the_limits_of_the_config,
		a_cap_leaves_room_for_a_text_or_is_too_small,
		an_allocation_beyond_the_cap_fails_with_a_message,
		shared_memory_counts,
		a_text_that_does_not_fit_is_refused,
		a_child_gets_the_limit_of_before,
	};

	return t_main("own_need", 60, tests, NITEMS(tests));
}
