/* coordinator/engine/thinking.c - how a model's thoughts are marked, and switched
 * off. */
#include "thinking.h"

#include <string.h>

#include "config/log.h"

/* Variables of chat templates that switch thoughts off and on, as JSON. */
static const struct thought_switch {
	const char *name, *off, *on;
} switches[] = {
	{ "enable_thinking", "false", "true" },		/* Qwen3, GLM, Gemma 4 */
	{ "thinking", "false", "true" },		/* DeepSeek, Granite */
	{ "reasoning", "false", "true" },		/* Cohere */
	{ "thinking_budget", "0", "-1" },		/* Seed-OSS */
	{ "reasoning_effort", "\"no_think\"", "\"high\"" },	/* Hunyuan */
	{ "reasoning_effort", "\"none\"", "\"high\"" },
};

/* Render a user's message with these variables. */
static int
render(const struct form *f, const json_t *args, struct rendering *ret,
    struct err *reterr)
{
	const struct form_message m = { .role = FORM_USER, .text = "Hello",
	    .nbytes = 5 };
	const struct form_request q = { .message = &m, .n = 1, .args = args };

	return form_render(f, &q, ret, reterr);
}

/* The same with one variable.  A refusal is no error: *ret has no text. */
static int
render_with(const struct form *f, const char *name, const char *json,
    struct rendering *ret, struct err *reterr)
{
	struct err e = { 0 };
	json_t *args = json_pack("{s:o}", name, json_loads(json,
	    JSON_DECODE_ANY, NULL));
	int rc;

	*ret = (struct rendering){ 0 };
	if (args == NULL)
		return err_nomem(reterr, "a variable of the chat template");
	rc = render(f, args, ret, &e);
	json_decref(args);
	if (rc < 0 && !render_is_refusal(rc)) {
		*reterr = e;
		return rc;
	}
	return 0;
}

/* Does the template write something else when the switch is off?  1 or 0. */
static int
try_switch(const struct form *f, const struct thought_switch *s,
    struct err *reterr)
{
	struct rendering off, on = { 0 };
	int rc = render_with(f, s->name, s->off, &off, reterr);

	if (rc == 0)
		rc = render_with(f, s->name, s->on, &on, reterr);
	if (rc == 0)
		rc = off.text != NULL && on.text != NULL &&
		    (off.nbytes != on.nbytes ||
		    memcmp(off.text, on.text, off.nbytes) != 0);
	rendering_done(&off);
	rendering_done(&on);
	return rc;
}

static int
set(struct form *f, const char *name, const char *json, struct err *reterr)
{
	return form_set_arg(f, name, json_loads(json, JSON_DECODE_ANY, NULL),
	    reterr);
}

static int
switch_off(struct form *f, const struct filter_marks *m, struct err *reterr)
{
	size_t i;
	int rc;

	if (m->channels) {
		log_warnx("--thinking off: this model cannot answer without "
		    "thoughts: its template is told reasoning_effort = \"low\", "
		    "and what remains is hidden");
		return set(f, "reasoning_effort", "\"low\"", reterr);
	}
	for (i = 0; i < NITEMS(switches); i++) {
		if (form_has_arg(f, switches[i].name))
			continue;
		if ((rc = try_switch(f, &switches[i], reterr)) < 0)
			return rc;
		if (rc > 0) {
			log_info("--thinking off: the chat template is told "
			    "%s = %s", switches[i].name, switches[i].off);
			return set(f, switches[i].name, switches[i].off,
			    reterr);
		}
	}
	if (*m->end == '\0')
		log_info("--thinking off: neither the chat template nor the "
		    "vocabulary knows thoughts");
	else
		log_warnx("--thinking off: the chat template has no switch for "
		    "it (enable_thinking and its kin change nothing): thoughts "
		    "are made, and hidden");
	return 0;
}

/* Does the generation prompt end within thoughts? */
static int
find_open(const struct form *f, struct filter_marks *m, struct err *reterr)
{
	struct rendering r;
	size_t n = 0;
	int rc = render(f, NULL, &r, reterr);

	if (rc < 0)
		return rc;
	if (r.nspans > 0 && r.span[r.nspans - 1].is_template)
		n = r.span[r.nspans - 1].nbytes;
	m->is_open = filter_is_open(m, r.text + (r.nbytes - n), n);
	rendering_done(&r);
	return 0;
}

int
thinking_open(const struct conf *c, struct form *f, const struct tokenizer *t,
    struct filter_marks *ret, struct err *reterr)
{
	const char *jinja;
	size_t n;
	int rc, any;

	jinja = form_jinja(f, &n);
	any = filter_marks_find(jinja, n, t, ret);
	if (c->thinking == THINKING_OFF &&
	    (rc = switch_off(f, ret, reterr)) < 0)
		return rc;
	return any && !ret->channels ? find_open(f, ret, reterr) : 0;
}
