/* coordinator/engine/form.h - the chat template of a model: which one it is, and
 * conversations as it writes them.
 * Owns: the template's text, and what was found out about it.  Called by chat,
 * generate, prompts, and by the commands that show templates.  Does not run
 * templates: the reader does. */
#ifndef COORDINATOR_ENGINE_FORM_H
#define COORDINATOR_ENGINE_FORM_H

#include <jansson.h>
#include <time.h>

#include "config/conf.h"
#include "coordinator/text/tokenizer.h"

struct form;

/* Find the template of a conversation, and try it on a user's message:
 *
 *	--chat-template, a file or the name of a built-in form;
 *	else g's own;
 *	else, or if that fails, the built-in form of its markers;
 *	else plain lines.
 *
 * A template of the file that fails is a warning with its words.  -EINVAL with
 * ERR_USAGE: --chat-template or --template-arg is wrong.  c, g and t must outlive
 * the form. */
int form_open(const struct conf *c, const struct gguf *g,
    const struct tokenizer *t, struct form **ret, struct err *reterr);
void form_close(struct form *f);

/* The text that form_open() would take for requests with tools or without,
 * malloc'ed, not tried.  g: NULL = no model. */
int form_find_text(const struct conf *c, const struct gguf *g, int has_tools,
    char **ret, size_t *ret_n, struct err *reterr);

/* The family's usual name, "ChatML" and so on, or "its own"; "plain"; the name of
 * a file that was given. */
const char *form_name(const struct form *f);
/* Is it a built-in form? */
int form_is_builtin(const struct form *f);
/* Are messages passed on as they are? */
int form_is_plain(const struct form *f);
/* Do answers consist of messages with channels, as gpt-oss' do? */
int form_has_channels(const struct form *f);
/* The marker that the template writes behind an answer, such as "<|im_end|>",
 * whether it is a token or not; "" = none. */
const char *form_answer_end(const struct form *f);
/* Does a system message go in front of the first message, because the template
 * has no place for it? */
int form_folds_system(const struct form *f);
/* One line for the user. */
enum { FORM_NOTE_LEN = 256 };
void form_note(const struct form *f, char note[FORM_NOTE_LEN]);
/* Why it is a built-in form: the words of the template that failed.  NULL: nothing
 * failed. */
const char *form_why(const struct form *f);
/* The template's text, [*ret_n]. */
const char *form_jinja(const struct form *f, size_t *ret_n);

/* --- conversations --- */

enum form_role {
	FORM_SYSTEM, FORM_DEVELOPER, FORM_USER, FORM_ASSISTANT, FORM_TOOL,
	FORM_NROLES
};
const char *form_role_name(enum form_role role);

struct form_message {
	enum form_role role;
	const char *text;	/* [nbytes], any bytes; NULL = "", or the list of
				 * parts that `more` has as "content" */
	size_t nbytes;
	/* An object with other keys: tool_calls, tool_call_id, name,
	 * reasoning_content.  NULL = none. */
	const json_t *more;
};

struct form_request {
	const struct form_message *message;	/* [n] */
	size_t n;
	const json_t *tools;	/* a list; NULL = none: the variable is unset */
	/* The last message, an assistant's, is the begin of the answer, which
	 * goes on behind its text, if that is more than white space.
	 * 0: the answer begins. */
	int continues;
	/* The conversation is over: no answer begins. */
	int is_closed;
	/* More variables, which take the place of --template-arg of the same
	 * name: an object.  NULL = none. */
	const json_t *args;
	/* The date and time that the template is told.  One clock for a whole
	 * conversation: what it has computed would be lost at midnight.  NULL =
	 * when the form was opened. */
	const struct tm *now;
};

/* A variable for all requests, in addition to --template-arg's.  value is taken
 * over, in any case; NULL: -ENOMEM. */
int form_set_arg(struct form *f, const char *name, json_t *value,
    struct err *reterr);
int form_has_arg(const struct form *f, const char *name);

/* The request's token ids, malloc'ed, with one BOS if the vocabulary or the
 * template wants it.  render_is_refusal(): the template refuses it, in its own
 * words; -ECOMM: the reader was lost. */
int form_encode(const struct form *f, const struct form_request *q,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr);

/* The request's text, in spans. */
int form_render(const struct form *f, const struct form_request *q,
    struct rendering *ret, struct err *reterr);

#endif
