/* tests/support/reader_fixture.c - see reader_fixture.h. */
#include "reader_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bsd/unistd.h>

#include "config/log.h"
#include "config/roles.h"
#include "liar.h"
#include "script.h"

struct reader_fixture fx;

int
fx_try_open(const char *path, tokenizer_poll_fn *poll, struct err *e)
{
	const struct reader_how how = { .poll = poll, .wants_vocab = 1 };

	conf_defaults(&fx.conf);
	fx.conf.model_path = (char *)(uintptr_t)path;
	fx.conf.verbose = 0;
	log_init("reader", -1);
	t_ok(child_open_program(e), e);
	fx.low_fd = script_lowest_fd();
	return reader_open(&fx.conf, &how, &fx.reader, e);
}

void
fx_nothing_is_left(void)
{
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(script_lowest_fd(), fx.low_fd);
}

void
fx_open(const char *path, tokenizer_poll_fn *poll)
{
	struct err e = { .kind = ERR_NONE };

	fx.polls = 0;
	t_ok(fx_try_open(path, poll, &e), &e);
	t_ok(reader_tokenizer(fx.reader, &fx.theirs, &e), &e);
	t_ok(gguf_open(path, &fx.g, &e), &e);
	t_ok(tokenizer_open(fx.g, &fx.ours, &e), &e);
}

void
fx_close(void)
{
	tokenizer_close(fx.ours);
	gguf_close(fx.g);
	reader_close(fx.reader);
	fx_nothing_is_left();
}

pid_t
fx_pid(void)
{
	return fx.reader->p.child.pid;
}

int
fx_encode(const char *text, size_t nbytes, struct err *e)
{
	uint32_t *a = NULL, *b;
	size_t na, nb;
	int rc = tokenizer_encode(fx.theirs, text, nbytes, 1, 0, &a, &na, e);

	if (rc < 0) {
		ck_assert_ptr_null(a);
		return rc;
	}
	t_ok(tokenizer_encode(fx.ours, text, nbytes, 1, 0, &b, &nb, e), e);
	ck_assert_uint_eq(na, nb);
	ck_assert(na == 0 || memcmp(a, b, na * sizeof(*a)) == 0);
	free(a);
	free(b);
	return 0;
}

void
fx_same_ids(const char *text)
{
	struct err e = { .kind = ERR_NONE };

	t_ok(fx_encode(text, strlen(text), &e), &e);
}

void
fx_fails(int want, const char *words)
{
	struct err e = { .kind = ERR_NONE };
	int rc = fx_encode("and it was so", 13, &e);

	ck_assert_msg(rc == want, "rc %d: %s", rc, e.msg);
	ck_assert_msg(strstr(e.msg, words) != NULL, "\"%s\" is not in: %s",
	    words, e.msg);
}

int
fx_poll_interrupts(struct err *reterr)
{
	return fx.polls++ == 0 ? 0 : err_set(reterr, ERR_RUN, -EINTR,
	    "interrupted");
}

/* The children are this program, in their role. */
static int
serve(int argc, char **argv)
{
	const char *lie = getenv(LIE_ENV), *pause_ms = getenv(PAUSE_ENV);

	if (pause_ms != NULL)
		usleep((useconds_t)atoi(pause_ms) * 1000);
	return lie != NULL ? liar_main(lie) : reader_main(argc, argv);
}

int
fx_main(int argc, char **argv, char **envp, const char *name,
    const TTest *const *tests, unsigned ntests)
{
	setproctitle_init(argc, argv, envp);
	if (argc == 2 && strcmp(argv[1], ROLE_READER_ARG) == 0)
		return serve(argc, argv);
	return t_main(name, 60, tests, ntests);
}
