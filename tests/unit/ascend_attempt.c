/* tests/unit/ascend_attempt.c - tests of calls in a process of their own: one that
 * ends or hangs is noted, and the next process leaves it out; notes of a session's
 * workers for the next one. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/event.h"
#include "worker/ascend/attempt.h"
#include "worker/ascend/memo.h"

#define SECOND	UINT64_C(1000000000)

enum { ABORTS, HANGS, GIVES_UP, WORKS, NTHINGS };

struct answer {
	char text[64];
	unsigned chosen, nprocesses;
	int is_late;
};

/* Try each thing, in order, until one works. */
static int
choose(void *arg, struct acl_notes *notes, void *result, struct err *reterr)
{
	const unsigned *first = arg;
	struct answer *ret = result;
	unsigned i;

	(void)reterr;
	ret->nprocesses++;
	ret->is_late = (int)notes->is_late;
	for (i = *first; i < NTHINGS; i++) {
		if (notes->outcome[i] != ACL_FINE)
			continue;
		notes->steps++;
		notes->trying = 1 + i;
		if (i == ABORTS)
			abort();
		while (i == HANGS)
			pause();
		if (i == GIVES_UP)
			return -EAGAIN;
		notes->trying = 0;
		break;
	}
	ret->chosen = i;
	strcpy(ret->text, acl_outcome_text((enum acl_outcome)
	    notes->outcome[HANGS]));
	return 0;
}

START_TEST(what_ends_its_process_is_left_out)
{
	struct answer a = { 0 };
	struct err e = { 0 };
	unsigned first = ABORTS;

	t_ok(acl_attempt("npu0", choose, &first, 2 * SECOND, 60 * SECOND, &a,
	    sizeof(a), &e), &e);
	ck_assert_uint_eq(a.chosen, WORKS);
	ck_assert_uint_eq(a.nprocesses, 4);
	ck_assert_str_eq(a.text, "never returns");
	ck_assert_int_eq(a.is_late, 0);
}
END_TEST

START_TEST(a_process_is_told_that_it_is_late)
{
	struct answer a = { 0 };
	struct err e = { 0 };
	unsigned first = GIVES_UP;

	t_ok(acl_attempt("npu0", choose, &first, SECOND, 0, &a, sizeof(a),
	    &e), &e);
	ck_assert_uint_eq(a.chosen, WORKS);
	ck_assert_int_eq(a.is_late, 1);
}
END_TEST

static int
refuse(void *arg, struct acl_notes *notes, void *result, struct err *reterr)
{
	(void)arg;
	(void)notes;
	(void)result;
	return err_set(reterr, ERR_RUN, -ENODEV, "no device");
}

static int
end_unnoted(void *arg, struct acl_notes *notes, void *result,
    struct err *reterr)
{
	(void)notes;
	(void)result;
	(void)reterr;
	if (arg == NULL)
		abort();
	for (;;)
		pause();
}

START_TEST(other_ends_are_errors)
{
	struct answer a = { .chosen = 77 };
	struct err e = { 0 };

	ck_assert_int_eq(acl_attempt("npu0", refuse, NULL, SECOND, SECOND, &a,
	    sizeof(a), &e), -ENODEV);
	ck_assert_str_eq(e.msg, "no device");
	ck_assert_int_eq(acl_attempt("npu0", end_unnoted, NULL, 60 * SECOND, SECOND,
	    &a, sizeof(a), &e), -ECHILD);
	ck_assert_msg(strstr(e.msg, "session npu0") != NULL && strstr(e.msg,
	    "signal 6") != NULL, "%s", e.msg);
	ck_assert_int_eq(acl_attempt("npu0", end_unnoted, &e, SECOND / 5,
	    SECOND, &a, sizeof(a), &e), -ECHILD);
	ck_assert_msg(strstr(e.msg, "hangs") != NULL, "%s", e.msg);
}
END_TEST

/* --- notes for the next worker --- */

/* Losses that a worker finds whose predecessor ended in a call or outside, because
 * nothing moved or for another reason. */
static uint32_t
losses_after(int in_call, int after_hang)
{
	struct acl_memo m = { 0 };

	acl_memo_open(&m, NULL, 0);
	acl_memo_call(&m);
	ck_assert_uint_eq(m.is_calling, 1);
	if (!in_call)
		acl_memo_return(&m);
	acl_memo_open(&m, NULL, after_hang);
	ck_assert_uint_eq(m.is_calling, 0);
	acl_memo_close();
	return m.losses;
}

START_TEST(a_worker_that_the_library_held_up_is_a_loss)
{
	ck_assert_uint_eq(losses_after(0, 0), 0);
	ck_assert_uint_eq(losses_after(0, 1), 0);
	ck_assert_uint_eq(losses_after(1, 0), 0);	/* somebody killed it */
	ck_assert_uint_eq(losses_after(1, 1), 1);
}
END_TEST

START_TEST(a_worker_that_the_library_ends_is_one_loss)
{
	struct acl_memo *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	ck_assert(m != MAP_FAILED);
	if ((pid = fork()) == 0) {
		acl_memo_open(m, NULL, 0);
		acl_memo_call(m);
		abort();
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_uint_eq(m->losses, 1);
	acl_memo_open(m, NULL, 1);
	ck_assert_uint_eq(m->losses, 1);
	acl_memo_close();
	munmap(m, sizeof(*m));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		what_ends_its_process_is_left_out,
		a_process_is_told_that_it_is_late,
		other_ends_are_errors,
		a_worker_that_the_library_held_up_is_a_loss,
		a_worker_that_the_library_ends_is_one_loss,
	};

	return t_main("ascend_attempt", 60, tests, NITEMS(tests));
}
