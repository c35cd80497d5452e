/* coordinator/cmd/chat.c - a conversation with the model in the terminal. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "config/log.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/chat.h"
#include "cmd.h"
#include "coordinator/print/lineedit.h"
#include "coordinator/print/output.h"
#include "coordinator/engine/seed.h"
#include "coordinator/engine/signals.h"
#include "coordinator/print/source.h"

struct talk {
	const struct conf *c;
	struct engine *eng;
	struct chat *chat;
	struct lineedit *le;
	int sigint_fd;		/* -1: Ctrl-C ends everything */
	struct source answer;	/* the last one */
	json_t *messages;	/* of all turns, for /save */
	unsigned nfailed;	/* lines without an answer */
	int has_quit;		/* /quit */
};

/* --- an answer --- */

static int
emit_text(void *arg, const char *bytes, size_t nbytes, struct err *reterr)
{
	struct talk *k = arg;
	int rc;

	if ((rc = source_append(&k->answer, bytes, nbytes, reterr)) < 0)
		return rc;
	if ((rc = output_text(bytes, nbytes)) < 0)
		return err_set(reterr, ERR_RUN, rc, "stdout: %s",
		    strerror(-rc));
	return 0;
}

/* Ctrl-C on a terminal ends the answer, not the program. */
static int
is_stopped(void *arg)
{
	struct talk *k = arg;
	struct signalfd_siginfo si;

	return k->sigint_fd >= 0 &&
	    read(k->sigint_fd, &si, sizeof(si)) == sizeof(si);
}

static int
add_message(struct talk *k, const char *role, const char *text, size_t nbytes,
    struct err *reterr)
{
	json_t *m = json_pack("{s:s,s:o}", "role", role, "content",
	    output_json_text(text, nbytes));

	if (m == NULL || json_array_append_new(k->messages, m) < 0)
		return err_nomem(reterr, "a message of %zu bytes", nbytes);
	return 0;
}

static int
answer_line(struct talk *k, const char *text, size_t nbytes, struct err *reterr)
{
	struct err e = { 0 };
	const char *stop;
	int rc;

	k->answer.nbytes = 0;
	rc = chat_turn(k->chat, text, nbytes, &e);
	if (rc == -EINTR)
		output_hurry();
	if (rc == -E2BIG) {
		log_warnx("%s: /reset clears the context, or give a larger --ctx",
		    e.msg);
		k->nfailed++;
		return 0;
	}
	if (k->answer.nbytes > 0 || rc == 0)
		output_text("\n", 1);
	if (rc < 0)
		return err_set(reterr, e.kind, rc, "%s", e.msg);
	stop = chat_stats(k->chat)->stop;
	if (strcmp(stop, "context") == 0)
		log_info("the context of %u tokens is full: /reset clears "
		    "it", engine_plan_of(k->eng)->ctx_tok);
	if ((rc = add_message(k, "user", text, nbytes, reterr)) < 0)
		return rc;
	return add_message(k, "assistant", k->answer.text != NULL ? k->answer.text :
	    "", k->answer.nbytes, reterr);
}

/* --- lines that are commands --- */

static int
reset_messages(struct talk *k, struct err *reterr)
{
	const char *system = k->c->system;

	json_array_clear(k->messages);
	return system != NULL ? add_message(k, "system", system, strlen(system),
	    reterr) : 0;
}

static int
do_reset(struct talk *k, const char *arg, struct err *reterr)
{
	int rc = chat_reset(k->chat, reterr);

	(void)arg;
	if (rc == 0)
		log_info("a new conversation");
	return rc == 0 ? reset_messages(k, reterr) : rc;
}

static int
do_save(struct talk *k, const char *path, struct err *reterr)
{
	struct err e;

	(void)reterr;
	if (*path == '\0')
		log_warnx("/save: no file: /save FILE");
	else if (output_refuse_model(engine_file(k->eng), path, &e) < 0)
		log_warnx("%s", e.msg);
	else if (json_dump_file(k->messages, path, JSON_INDENT(1)) < 0)
		log_warnx("%s: cannot write: %s", path, strerror(errno));
	else
		log_info("%zu messages in %s", json_array_size(k->messages),
		    path);
	return 0;
}

static double
per_second(uint32_t n, uint64_t ns)
{
	return ns > 0 ? n * 1e9 / (double)ns : 0;
}

static int
do_stats(struct talk *k, const char *arg, struct err *reterr)
{
	const struct chat_stats *st = chat_stats(k->chat);

	(void)arg;
	(void)reterr;
	log_warnx("%u turns, %u of %u tokens of the context; the last turn: "
	    "%u tokens read, %.1f t/s, %u generated, %.1f t/s, until %s",
	    st->turns, st->context_tok, engine_plan_of(k->eng)->ctx_tok, st->prompt_tok,
	    per_second(st->prompt_tok, st->prompt_ns), st->gen_tok,
	    per_second(st->gen_tok, st->gen_ns),
	    st->stop != NULL ? st->stop : "now");
	return 0;
}

static int
do_quit(struct talk *k, const char *arg, struct err *reterr)
{
	(void)arg;
	(void)reterr;
	k->has_quit = 1;
	return 0;
}

static int do_help(struct talk *k, const char *arg, struct err *reterr);

static const struct {
	const char *name, *help;
	int (*fn)(struct talk *k, const char *arg, struct err *reterr);
} commands[] = {
	{ "reset", "/reset      forget the conversation so far", do_reset },
	{ "save", "/save FILE  write the conversation, as JSON", do_save },
	{ "stats", "/stats      tokens, speeds, what the context holds",
	    do_stats },
	{ "help", "/help       this; write a leading / of a text as //",
	    do_help },
	{ "quit", "/quit       leave; so does Ctrl-D", do_quit },
};

static int
do_help(struct talk *k, const char *arg, struct err *reterr)
{
	size_t i;

	(void)k;
	(void)arg;
	(void)reterr;
	for (i = 0; i < NITEMS(commands); i++)
		log_warnx("%s", commands[i].help);
	return 0;
}

static int
run_command(struct talk *k, const char *line, struct err *reterr)
{
	size_t n = strcspn(line, " \t"), i;
	const char *arg = line + n + strspn(line + n, " \t");

	for (i = 0; i < NITEMS(commands); i++)
		if (strlen(commands[i].name) == n &&
		    memcmp(commands[i].name, line, n) == 0)
			return commands[i].fn(k, arg, reterr);
	log_warnx("/%.*s: no such command: /help lists them", (int)MIN(n, 64),
	    line);
	k->nfailed++;
	return 0;
}

/* --- the conversation --- */

static int
take_line(struct talk *k, const char *line, size_t n, struct err *reterr)
{
	if (n == 0)
		return 0;
	if (n > 1 && line[0] == '/' && line[1] == '/')
		return answer_line(k, line + 1, n - 1, reterr);
	if (line[0] == '/')
		return run_command(k, line + 1, reterr);
	return answer_line(k, line, n, reterr);
}

static int
take_lines(struct talk *k, struct err *reterr)
{
	const char *line;
	size_t n;
	int rc = 1;

	while (rc > 0 && !k->has_quit) {
		if ((rc = lineedit_next(k->le, &line, &n, reterr)) <= 0)
			break;
		if ((rc = take_line(k, line, n, reterr)) == 0)
			rc = 1;
	}
	if (rc == 0 && lineedit_is_terminal(k->le))
		output_text("\n", 1);		/* after the prompt */
	return MIN(rc, 0);
}

static int
start_and_talk(struct talk *k, struct err *reterr)
{
	const struct conf *c = k->c;
	const struct chat_ops ops = { .emit = emit_text, .is_stopped = is_stopped,
	    .arg = k };
	char note[CHAT_NOTE_LEN];
	int rc, signal_fd;

	if (c->n_predict == 0)
		return err_set(reterr, ERR_USAGE, -EINVAL, "-n 0: no line "
		    "would have an answer; -1 is as far as the context goes");
	if ((rc = engine_open(c, &k->eng, reterr)) < 0 ||
	    (rc = engine_open_tokenizer(k->eng, reterr)) < 0 ||
	    (rc = engine_plan(k->eng, reterr)) < 0 ||
	    (rc = engine_start(k->eng, reterr)) < 0)
		return rc;
	signal_fd = engine_signal_fd(k->eng);
	output_watch(signal_fd);
	/* On a terminal SIGINT ends the answer, not the program. */
	if (isatty(STDIN_FILENO) && (rc = k->sigint_fd =
	    signals_split_sigint(signal_fd, reterr)) < 0)
		return rc;
	if ((rc = lineedit_open(signal_fd, k->sigint_fd, &k->le,
	    reterr)) < 0 ||
	    (rc = chat_open(k->eng, chat_template_of(k->eng, note), c->system,
	    &ops, &k->chat, reterr)) < 0 ||
	    (rc = reset_messages(k, reterr)) < 0)
		return rc;
	log_info("%s", note);
	seed_show(c);
	if ((rc = take_lines(k, reterr)) < 0)
		return rc;
	if ((rc = engine_stop(k->eng, reterr)) < 0)
		return rc;
	if (c->verbose > 0)
		output_table(stderr, engine_plan_of(k->eng),
		    engine_sessions(k->eng));
	if (k->nfailed > 0)
		return err_set(reterr, ERR_RUN, -EINVAL, "%u line%s had no "
		    "answer", k->nfailed, k->nfailed > 1 ? "s" : "");
	return 0;
}

int
cmd_chat(const struct conf *c, struct err *reterr)
{
	struct talk *k = calloc(1, sizeof(*k));
	struct conf *with_seed = malloc(sizeof(*with_seed));
	int rc = -ENOMEM;

	if (k != NULL && with_seed != NULL &&
	    (k->messages = json_array()) != NULL) {
		*with_seed = *c;
		seed_draw(with_seed);
		k->c = with_seed;
		k->sigint_fd = -1;
		rc = start_and_talk(k, reterr);
		chat_close(k->chat);
		lineedit_close(k->le);
		source_free(&k->answer);
		engine_close(k->eng);
		if (k->sigint_fd >= 0)
			close(k->sigint_fd);
		json_decref(k->messages);
	} else {
		err_nomem(reterr, "the chat");
	}
	free(with_seed);
	free(k);
	return rc;
}
