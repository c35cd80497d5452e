/* tests/unit/signals.c - signals that end a command, and Ctrl-C where it ends only
 * an answer. */
#include "tests/support/t.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "coordinator/engine/signals.h"

/* Does the descriptor give this signal, and nothing more? */
static int
gives(int fd, int signo)
{
	struct signalfd_siginfo si;

	return read(fd, &si, sizeof(si)) == sizeof(si) &&
	    (int)si.ssi_signo == signo &&
	    read(fd, &si, sizeof(si)) < 0 && errno == EAGAIN;
}

START_TEST(a_check_takes_any_of_them)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP };
	struct err e;
	size_t i;
	int fd;

	signal(SIGHUP, SIG_DFL);	/* ignored below nohup */
	fd = signals_block(NULL, &e);
	ck_assert_int_ge(fd, 0);
	t_ok(signals_check(&e), &e);
	for (i = 0; i < NITEMS(all); i++) {
		raise(all[i]);
		ck_assert_int_eq(signals_check(&e), -EINTR);
		t_ok(signals_check(&e), &e);
	}
	close(fd);
}
END_TEST

START_TEST(a_split_sigint_is_left_to_its_descriptor)
{
	struct err e;
	int all = signals_block(NULL, &e), own;

	ck_assert_int_ge(all, 0);
	ck_assert_int_ge(own = signals_split_sigint(all, &e), 0);
	raise(SIGINT);
	t_ok(signals_check_split(&e), &e);
	ck_assert_int_eq(gives(own, SIGINT), 1);
	raise(SIGINT);
	raise(SIGTERM);
	ck_assert_int_eq(gives(all, SIGTERM), 1);
	raise(SIGTERM);
	ck_assert_int_eq(signals_check_split(&e), -EINTR);
	ck_assert_int_eq(gives(own, SIGINT), 1);
	close(own);
	close(all);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_check_takes_any_of_them,
		a_split_sigint_is_left_to_its_descriptor
	};

	return t_main("signals", 10, tests, NITEMS(tests));
}
