/* coordinator/cmd/chat.c - a conversation with the model in the terminal. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "config/log.h"
#include "config/units.h"
#include "chat_message.h"
#include "chat_talk.h"
#include "cmd.h"
#include "coordinator/engine/form.h"
#include "coordinator/engine/seed.h"
#include "coordinator/print/output.h"

/* --- an answer --- */

static int
report_output(int rc, struct err *reterr)
{
	return rc < 0 ? err_set(reterr, ERR_RUN, rc, "stdout: %s",
	    strerror(-rc)) : 0;
}

static int
emit_text(void *arg, const char *bytes, size_t nbytes, struct err *reterr)
{
	struct talk *k = arg;
	int rc;

	status_erase(&k->reading);
	if ((rc = thoughts_leave(&k->thoughts)) == 0)
		rc = output_text(bytes, nbytes);
	k->has_shown = 1;
	return report_output(rc, reterr);
}

static int
emit_thought(void *arg, const char *bytes, size_t nbytes, struct err *reterr)
{
	struct talk *k = arg;

	status_erase(&k->reading);
	k->has_shown = 1;
	return report_output(thoughts_show(&k->thoughts, bytes, nbytes),
	    reterr);
}

int
talk_is_interrupted(const struct talk *k)
{
	struct signalfd_siginfo si;

	return k->sigint_fd >= 0 &&
	    read(k->sigint_fd, &si, sizeof(si)) == sizeof(si);
}

/* Ctrl-C on a terminal ends the answer, not the program. */
static int
is_stopped(void *arg)
{
	return talk_is_interrupted(arg);
}

static void
show_reading(void *arg, uint32_t done, uint32_t n)
{
	struct talk *k = arg;
	char read[UNITS_COUNT_LEN], all[UNITS_COUNT_LEN];

	if (status_is_due(&k->reading))
		status_print(&k->reading, (double)done / n,
		    "message: %s of %s tokens", units_count(done, read),
		    units_count(n, all));
}

/* The context, after a turn: is it full, or will it be soon? */
static void
show_room(struct talk *k)
{
	const struct chat_stats *st = chat_stats(k->chat);
	const uint32_t ctx = engine_plan_of(k->eng)->ctx_tok;
	const uint32_t left = ctx - MIN(st->context_tok, ctx);

	if (st->dropped == 1)
		log_warnx("the context of %u tokens was full: the oldest turn "
		    "was dropped", ctx);
	else if (st->dropped > 1)
		log_warnx("the context of %u tokens was full: the oldest %u "
		    "turns were dropped", ctx, st->dropped);
	if (strcmp(st->stop, "context") == 0) {
		log_warnx("the context of %u tokens is full: /undo, /drop and "
		    "/reset make room%s", ctx, k->c->context_shift ? "" :
		    "; --context-shift does so by itself");
		k->warned = 1;
	} else if (!k->warned && !k->c->context_shift &&
	    (left < ctx / 8 || left < st->prompt_tok + st->gen_tok)) {
		log_warnx("%u of %u tokens of the context are left: /drop "
		    "forgets the oldest turn; --context-shift does so by "
		    "itself", left, ctx);
		k->warned = 1;
	}
	if (st->gen_tok == 0 && strcmp(st->stop, "user") == 0)
		log_info("the message was not read to its end: /undo takes it "
		    "back");
	if (k->c->n_predict == N_PREDICT_SHARE &&
	    strcmp(st->stop, "length") == 0)
		log_info("the answer was cut off after %u tokens, %s: -n N "
		    "sets another limit, -n -1 none", st->gen_tok,
		    k->c->context_shift ? "its share of the context" :
		    "half of what was left of the context");
}

/* The stages keep the begin of a conversation that stays the same. */
static void
show_turn(const struct talk *k)
{
	const struct chat_stats *st = chat_stats(k->chat);

	log_debug("tokens of the conversation: %u kept, %u computed, %u "
	    "generated", st->kept_tok, st->prompt_tok, st->gen_tok);
	if (k->c->thinking != THINKING_SHOW)
		thoughts_note(st->thought_tok);
}

static int
answer_message(struct talk *k, const struct source *text, struct err *reterr)
{
	struct err e = { 0 };
	int rc;

	k->has_shown = 0;
	status_init(&k->reading, k->c->verbose > 0);
	rc = chat_turn(k->chat, text->text, text->nbytes, &e);
	status_erase(&k->reading);
	if (rc == -EINTR)
		output_hurry();
	if (rc < 0 && (e.kind == ERR_USAGE || rc == -ECOMM)) {
		log_warnx("%s", e.msg);
		k->nfailed++;
		return 0;
	}
	if (k->has_shown || rc == 0) {
		thoughts_leave(&k->thoughts);
		output_text("\n", 1);
	}
	if (rc < 0)
		return err_set(reterr, e.kind, rc, "%s", e.msg);
	show_turn(k);
	show_room(k);
	return 0;
}

/* --- the conversation --- */

static int
take_message(struct talk *k, const struct message *m, struct err *reterr)
{
	if (m->kind == MESSAGE_CUT_OFF) {
		log_warnx("a block of lines has no \"\"\" at its end: it was "
		    "not sent");
		k->nfailed++;
		return 0;
	}
	if (m->kind == MESSAGE_COMMAND && m->text.nbytes > m->most) {
		log_warnx("a command of more than %zu bytes: not done",
		    m->most);
		k->nfailed++;
		return 0;
	}
	if (m->kind == MESSAGE_COMMAND) {
		if (strlen(m->text.text) == m->text.nbytes)
			return talk_command(k, m->text.text, reterr);
		log_warnx("/%s: a NUL byte follows: not done", m->text.text);
		k->nfailed++;
		return 0;
	}
	return m->text.nbytes > 0 ? answer_message(k, &m->text, reterr) : 0;
}

/* The longest line that is kept: a message, or a command with a path. */
static size_t
most_line(const struct talk *k)
{
	return MAX(engine_text_bytes(k->eng), PATH_MAX + 64);
}

static int
take_messages(struct talk *k, struct err *reterr)
{
	struct message m = { .kind = MESSAGE_END, .most = most_line(k) };
	int rc;

	do {
		if ((rc = message_read(k->le, &m, reterr)) == 0)
			rc = take_message(k, &m, reterr);
	} while (rc == 0 && m.kind != MESSAGE_END &&
	    m.kind != MESSAGE_CUT_OFF && !k->has_quit);
	if (rc == 0 && !k->has_quit && lineedit_is_terminal(k->le))
		output_text("\n", 1);		/* after the prompt */
	message_free(&m);
	return rc;
}

/* The exit status of a conversation that came to its end. */
static int
report_failures(const struct talk *k, struct err *reterr)
{
	if (k->nfailed > 0)
		return err_set(reterr, ERR_RUN, -EINVAL, "%u line%s had no "
		    "answer", k->nfailed, k->nfailed > 1 ? "s" : "");
	if (k->nunsaved > 0)
		return err_set(reterr, ERR_RUN, -EIO, "the conversation was "
		    "not saved, %u time%s", k->nunsaved, k->nunsaved > 1 ?
		    "s" : "");
	return 0;
}

static int
start_and_talk(struct talk *k, struct err *reterr)
{
	const struct conf *c = k->c;
	const struct chat_ops ops = { .emit = emit_text,
	    .think = c->thinking == THINKING_SHOW ? emit_thought : NULL,
	    .is_stopped = is_stopped, .reading = show_reading, .arg = k };
	char note[FORM_NOTE_LEN];
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
	    engine_split_sigint(k->eng, reterr)) < 0)
		return rc;
	if ((rc = lineedit_open(signal_fd, k->sigint_fd, most_line(k),
	    &k->le, reterr)) < 0 ||
	    (rc = chat_open(k->eng, c->system, &ops, &k->chat, reterr)) < 0)
		return rc;
	form_note(engine_form(k->eng), note);
	log_info("%s", note);
	seed_show(c);
	if ((rc = take_messages(k, reterr)) < 0)
		return rc;
	if ((rc = engine_stop(k->eng, reterr)) < 0)
		return rc;
	if (c->verbose > 0)
		output_table(stderr, engine_plan_of(k->eng),
		    engine_sessions(k->eng), engine_processes(k->eng));
	return report_failures(k, reterr);
}

int
cmd_chat(const struct conf *c, struct err *reterr)
{
	struct talk *k = calloc(1, sizeof(*k));
	struct conf *with_seed = malloc(sizeof(*with_seed));
	int rc = -ENOMEM;

	if (k != NULL && with_seed != NULL) {
		*with_seed = *c;
		seed_draw(with_seed);
		k->c = with_seed;
		k->sigint_fd = -1;
		rc = start_and_talk(k, reterr);
		chat_close(k->chat);
		lineedit_close(k->le);
		engine_close(k->eng);
		if (k->sigint_fd >= 0)
			close(k->sigint_fd);
	} else {
		err_nomem(reterr, "the chat");
	}
	free(with_seed);
	free(k);
	return rc;
}
