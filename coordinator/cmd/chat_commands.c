/* coordinator/cmd/chat_commands.c - chat's lines that begin with a slash. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "config/plain.h"
#include "config/units.h"
#include "config/utf8.h"
#include "chat_talk.h"

/* arg: the rest of the line without blanks around it. */
typedef int command_fn(struct talk *k, const char *arg, struct err *reterr);

static const char *
plural(unsigned n)
{
	return n == 1 ? "" : "s";
}

/* A line that is no command, or one that cannot be done now.  A user sees that
 * on a terminal; a script is told by the exit status. */
static int
reject(struct talk *k)
{
	k->nfailed += !lineedit_is_terminal(k->le);
	return 0;
}

/* --- the conversation's turns --- */

static void
show_context(const struct talk *k, const char *what)
{
	const struct chat_stats *st = chat_stats(k->chat);

	log_info("%s: %u turn%s, %u of %u tokens of the context", what,
	    st->turns, plural(st->turns), st->context_tok,
	    engine_plan_of(k->eng)->ctx_tok);
}

static int
do_reset(struct talk *k, const char *arg, struct err *reterr)
{
	(void)arg;
	k->warned = 0;
	log_info("a new conversation");
	return chat_reset(k->chat, reterr);
}

/* The end of a command that changes turns: e is its error, if rc < 0. */
static int
end_change(struct talk *k, const char *what, int rc, const struct err *e,
    struct err *reterr)
{
	if (rc < 0 && e->kind != ERR_USAGE && rc != -ECOMM)
		return err_set(reterr, e->kind, rc, "%s", e->msg);
	if (rc < 0) {
		log_warnx("%s: %s", what, e->msg);
		return reject(k);
	}
	k->warned = 0;
	show_context(k, what);
	return 0;
}

static int
do_undo(struct talk *k, const char *arg, struct err *reterr)
{
	struct err e;
	int rc = chat_undo(k->chat, &e);

	(void)arg;
	return end_change(k, "/undo", rc, &e, reterr);
}

static int
do_drop(struct talk *k, const char *arg, struct err *reterr)
{
	struct err e;
	int64_t n = 1;
	int rc = 0;

	if (*arg != '\0')
		rc = units_parse_int(arg, 1, LIMIT_CONTEXT, &n, &e);
	if (rc == 0)
		rc = chat_drop(k->chat, (uint32_t)n, &e);
	return end_change(k, "/drop", rc, &e, reterr);
}

/* The next answer begins with this text. */
static int
do_prefill(struct talk *k, const char *arg, struct err *reterr)
{
	if (*arg == '\0')
		log_info("/prefill: the next answer begins as usual");
	return chat_begin_answer(k->chat, arg, strlen(arg), reterr);
}

/* --- files --- */

/* Ask on the terminal: 1 = yes. */
static int
may_replace(struct talk *k, const char *path, struct err *reterr)
{
	const char *name = PLAIN(path), *line;
	size_t n = MIN(strlen(name), 200);
	char question[256];
	int rc;

	n -= utf8_unfinished((const uint8_t *)name, n);
	snprintf(question, sizeof(question), "replace %.*s? [y/N] ", (int)n,
	    name);
	rc = lineedit_next(k->le, question, &line, &n, reterr);
	if (rc == LINEEDIT_END)
		k->has_quit = 1;
	return rc != LINEEDIT_LINE ? MIN(rc, 0) :
	    strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

static int
save_to(struct talk *k, const char *path, int replace, struct err *reterr)
{
	const struct chat_stats *st = chat_stats(k->chat);
	struct err e = { 0 };
	int rc;

	if (*path == '\0') {
		log_warnx("/save: no file: /save FILE");
		return reject(k);
	}
	rc = talk_save(k, path, replace, &e);
	if (rc == -EEXIST && lineedit_is_terminal(k->le)) {
		if ((rc = may_replace(k, path, reterr)) < 0)
			return rc;
		if (rc == 0) {
			log_warnx("%s: not replaced, and nothing saved", path);
			return 0;
		}
		rc = talk_save(k, path, 1, &e);
	}
	if (rc < 0) {
		log_warnx("%s%s", e.msg, rc == -EEXIST ?
		    ": /save! FILE replaces it" : "");
		k->nunsaved++;
		return 0;
	}
	log_info("%u turn%s in %s", st->turns, plural(st->turns), path);
	return 0;
}

static int
do_save(struct talk *k, const char *arg, struct err *reterr)
{
	return save_to(k, arg, 0, reterr);
}

static int
do_replace(struct talk *k, const char *arg, struct err *reterr)
{
	return save_to(k, arg, 1, reterr);
}

static int
do_load(struct talk *k, const char *arg, struct err *reterr)
{
	struct err e = { 0 };
	uint32_t dropped = 0;
	int rc;

	if (*arg == '\0') {
		log_warnx("/load: no file: /load FILE");
		return reject(k);
	}
	rc = talk_load(k, arg, &dropped, &e);
	if (dropped > 0)
		log_warnx("%s: its oldest %u turn%s not fit", arg, dropped,
		    dropped == 1 ? " does" : "s do");
	return end_change(k, "/load", rc, &e, reterr);
}

/* --- others --- */

static double
per_second(uint32_t n, uint64_t ns)
{
	return ns > 0 ? n * 1e9 / (double)ns : 0;
}

/* The reason why an answer ended, after "until". */
static const char *
end_of(const char *stop)
{
	static const char *const ends[][2] = {
		{ "eos", "its end" },
		{ "length", "its limit of tokens" },
		{ "context", "the context was full" },
		{ "stop", "a stop text" },
		{ "user", "you stopped it" },
	};
	size_t i;

	for (i = 0; i < NITEMS(ends); i++)
		if (strcmp(stop, ends[i][0]) == 0)
			return ends[i][1];
	return stop;
}

static int
do_stats(struct talk *k, const char *arg, struct err *reterr)
{
	const struct chat_stats *st = chat_stats(k->chat);
	char last[256] = "";

	(void)arg;
	(void)reterr;
	if (st->stop != NULL)
		snprintf(last, sizeof(last), "; the last turn: %u tokens kept, "
		    "%u tokens read, %.1f t/s, %u generated, %.1f t/s, until "
		    "%s", st->kept_tok, st->prompt_tok,
		    per_second(st->prompt_tok, st->prompt_ns),
		    st->gen_tok, per_second(st->gen_tok, st->gen_ns),
		    end_of(st->stop));
	log_warnx("%u turn%s, %u of %u tokens of the context%s", st->turns,
	    plural(st->turns), st->context_tok,
	    engine_plan_of(k->eng)->ctx_tok, last);
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

static command_fn do_help;

/* help NULL: another name of the row before. */
static const struct {
	const char *name, *help;
	command_fn *fn;
} commands[] = {
	{ "reset", "/reset       forget the conversation so far", do_reset },
	{ "clear", NULL, do_reset },
	{ "undo", "/undo        take back the last turn", do_undo },
	{ "drop", "/drop [N]    forget the oldest N turns (default 1), but not "
	    "the system message", do_drop },
	{ "prefill", "/prefill TEXT  begin the next answer with TEXT; without "
	    "it, as usual", do_prefill },
	{ "save", "/save FILE   write the turns of the context, as JSON; "
	    "/save! replaces a file", do_save },
	{ "save!", NULL, do_replace },
	{ "load", "/load FILE   go on with a conversation that /save wrote",
	    do_load },
	{ "stats", "/stats       tokens, speeds, what the context holds",
	    do_stats },
	{ "help", "/help        this; write a leading / of a text as //",
	    do_help },
	{ "?", NULL, do_help },
	{ "quit", "/quit        leave; so do /bye, /exit, Ctrl-D and Ctrl-C "
	    "twice", do_quit },
	{ "bye", NULL, do_quit },
	{ "exit", NULL, do_quit },
};

static int
do_help(struct talk *k, const char *arg, struct err *reterr)
{
	size_t i;

	(void)k;
	(void)arg;
	(void)reterr;
	for (i = 0; i < NITEMS(commands); i++)
		if (commands[i].help != NULL)
			log_warnx("%s", commands[i].help);
	log_warnx("a line that ends in \\ goes on in the next; lines between "
	    "\"\"\" and \"\"\" are one message");
	return 0;
}

int
talk_command(struct talk *k, const char *line, struct err *reterr)
{
	const size_t n = strcspn(line, " \t");
	char *arg = strdup(line + n + strspn(line + n, " \t"));
	size_t len, i;
	int rc;

	if (arg == NULL)
		return err_nomem(reterr, "a command");
	for (len = strlen(arg); len > 0 && strchr(" \t", arg[len - 1]); len--)
		arg[len - 1] = '\0';
	for (i = 0; i < NITEMS(commands); i++)
		if (strlen(commands[i].name) == n &&
		    memcmp(commands[i].name, line, n) == 0)
			break;
	if (i < NITEMS(commands)) {
		rc = commands[i].fn(k, arg, reterr);
	} else {
		log_warnx("/%.*s: no such command: /help lists them",
		    (int)MIN(n, 64), line);
		rc = reject(k);
	}
	free(arg);
	return rc;
}
