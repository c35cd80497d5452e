/* coordinator/main.c - loads the settings, then runs one command. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <bsd/unistd.h>

#include "config/log.h"
#include "config/own_cap.h"
#include "config/rights.h"
#include "config/roles.h"
#include "coordinator/cmd/cmd.h"
#include "coordinator/engine/engine.h"
#include "coordinator/print/output.h"

static int
print_help(const struct conf *c, struct err *reterr)
{
	const char *text = cli_help(c->help_topic);

	if (c->help_shell != NULL)
		return cli_completion(c->help_shell, stdout);
	if (text == NULL)
		return err_set(reterr, ERR_USAGE, -1, "help: there is no "
		    "command \"%s\": `straddle help` lists them",
		    c->help_topic);
	fputs(text, stdout);
	return 0;
}

static int
print_version(const struct conf *c, struct err *reterr)
{
	(void)c;
	(void)reterr;
	puts("straddle " STRADDLE_VERSION);
	return 0;
}

static int (*const commands[])(const struct conf *, struct err *) = {
	[CMD_RUN] = cmd_run,
	[CMD_CHAT] = cmd_chat,
	[CMD_PLAN] = cmd_plan,
	[CMD_INSPECT] = cmd_inspect,
	[CMD_DEVICES] = cmd_devices,
	[CMD_EXPLAIN] = cmd_explain,
	[CMD_TOKENIZE] = cmd_tokenize,
	[CMD_DETOKENIZE] = cmd_detokenize,
	[CMD_RENDER] = cmd_render,
	[CMD_EVAL] = cmd_eval,
	[CMD_BENCH] = cmd_bench,
	[CMD_STRESS] = cmd_stress,
	[CMD_QUANTIZE] = cmd_quantize,
	[CMD_HELP] = print_help,
	[CMD_VERSION] = print_version,
};

/* Static because it is large. */
static struct conf conf;

/* The coordinator may take so much until there is a plan: room for ten times the
 * longest text of a command without one, and for a file of prompts
 * (print/source.h). */
#define START_BYTES	(96 * MIB)

/* The least that is known to suffice, with room to spare. */
enum { STACK_BYTES = 512 * 1024 };

/* Open /dev/null in place of a closed stdin, stdout or stderr, which would
 * otherwise become the number of a file we open.  Read-only, so that writing to it
 * is still an error. */
static void
reserve_standard_fds(void)
{
	int fd;

	while ((fd = open("/dev/null", O_RDONLY)) >= 0 && fd <= STDERR_FILENO)
		;
	if (fd >= 0)
		close(fd);
}

/* Threads get stacks of the same size: make room for both.  0 = there is too
 * little, and it cannot be raised. */
static int
raise_stack(void)
{
	struct rlimit rl, more;

	if (getrlimit(RLIMIT_STACK, &rl) < 0 || rl.rlim_cur >= STACK_BYTES)
		return 1;
	more.rlim_cur = STACK_BYTES;
	more.rlim_max = MAX(rl.rlim_max, STACK_BYTES);
	if (setrlimit(RLIMIT_STACK, &more) == 0)
		return 1;
	fprintf(stderr, "straddle: the stack is limited to %llu KiB, %u KiB "
	    "are needed: raise it with `ulimit -s`\n",
	    (unsigned long long)rl.rlim_cur / 1024, STACK_BYTES / 1024);
	return 0;
}

/* An emulator or valgrind has much from the start. */
static int
set_first_cap(struct err *reterr)
{
	uint64_t most;

	return own_cap_set(conf.coordinator_cap_bytes > 0 ?
	    conf.coordinator_cap_bytes : own_cap_used(&most) + START_BYTES, 0,
	    reterr);
}

int
main(int argc, char **argv, char **envp)
{
	struct err e = { 0 };
	int rc;

	setproctitle_init(argc, argv, envp);
	/* Our parent may have set SIG_IGN: children would then be reaped before
	 * we can ask how they ended. */
	signal(SIGCHLD, SIG_DFL);
	if (!raise_stack())
		return ERR_RUN;
	signal(SIGXFSZ, SIG_IGN);	/* ulimit -f: handle EFBIG instead */
	if (argc == 2 && strcmp(argv[1], ROLE_WORKER_ARG) == 0)
		return worker_main(argc, argv);
	if (argc == 2 && strcmp(argv[1], ROLE_READER_ARG) == 0)
		return reader_main(argc, argv);
	if (argc == 2 && strcmp(argv[1], ROLE_CONVERTER_ARG) == 0)
		return converter_main(argc, argv);
	reserve_standard_fds();
	log_init("straddle", 1);
	output_init();
	engine_init();
	if ((rc = conf_load(argc, argv, &conf, &e)) == 0) {
		log_init("straddle", conf.verbose);
		output_wide(conf.verbose > 1);
		if (conf.cmd == CMD_HELP || conf.cmd == CMD_VERSION ||
		    ((rc = rights_begin(&conf, &e)) == 0 &&
		    (rc = set_first_cap(&e)) == 0))
			rc = commands[conf.cmd](&conf, &e);
	}
	if ((fflush(stdout) != 0 || ferror(stdout)) && rc == 0)
		rc = err_set(&e, ERR_RUN, -1, "stdout: write error");
	if (rc < 0)
		log_warnx("%s", e.msg);
	engine_cleanup();
	/* The checker of leaks cannot trace a process that has two users. */
	if (SANITIZED)
		(void)rights_settle(0, NULL);
	conf_free(&conf);
	return err_exit(&e, rc);
}
