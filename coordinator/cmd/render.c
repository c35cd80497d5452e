/* coordinator/cmd/render.c - the prompt that a chat template makes of variables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/rights.h"
#include "cmd.h"
#include "coordinator/engine/form.h"
#include "coordinator/print/output.h"
#include "coordinator/print/source.h"
#include "coordinator/reader/reader.h"
#include "coordinator/text/variables.h"

struct render_cmd {
	const struct conf *conf;
	struct reader *reader;
	struct tokenizer *vocab;	/* NULL without a model */
	json_t *vars;
	char *jinja;			/* [n] */
	size_t n;
	struct tm now;
};

/* --- the variables --- */

static int
load_vars(struct render_cmd *k, struct err *reterr)
{
	const char *path = k->conf->vars_path;
	struct source s;
	json_error_t je;
	int rc;

	if ((rc = source_read(NULL, path, &s, reterr)) < 0)
		return rc;
	k->vars = json_loadb(s.text, s.nbytes, JSON_ALLOW_NUL, &je);
	source_free(&s);
	if (k->vars == NULL && output_json_lost())
		return err_nomem(reterr, "the variables of %s", path);
	if (k->vars == NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s:%d: %s", path,
		    je.line, je.text);
	return json_is_object(k->vars) ? 0 : err_set(reterr, ERR_USAGE,
	    -EINVAL, "%s: it is no JSON object: give {\"messages\": [...]}",
	    path);
}

/* strptime() takes the 31st of any month, and mktime() goes on in the next one. */
static int
is_day(const struct tm *t)
{
	struct tm same = { .tm_year = t->tm_year, .tm_mon = t->tm_mon,
	    .tm_mday = t->tm_mday };

	return timegm(&same) != -1 && same.tm_mday == t->tm_mday;
}

/* The variable "now" is the date that the template is told; without it, today. */
static int
read_now(struct render_cmd *k, struct err *reterr)
{
	static const char *const forms[] = { "%Y-%m-%d", "%Y-%m-%d %H:%M",
	    "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S" };
	const char *now = json_string_value(json_object_get(k->vars, "now"));
	time_t today = time(NULL);
	const char *end;
	size_t i;

	localtime_r(&today, &k->now);
	if (now == NULL)
		return 0;
	for (i = 0; i < NITEMS(forms); i++) {
		k->now = (struct tm){ .tm_isdst = -1 };
		if ((end = strptime(now, forms[i], &k->now)) != NULL &&
		    *end == '\0' && is_day(&k->now))
			return 0;
	}
	return err_set(reterr, ERR_USAGE, -EINVAL, "%s: now is \"%.64s\": "
	    "write \"2026-07-31\" or \"2026-07-31 12:30\"",
	    k->conf->vars_path, now);
}

/* Roles of messages are words of ours. */
static void
put_messages(struct variables *v, const json_t *messages)
{
	const char *key;
	json_t *m, *value;
	size_t i;

	if (!json_is_array(messages)) {
		variables_json(v, messages);
		return;
	}
	variables_bracket(v, '[');
	json_array_foreach(messages, i, m) {
		if (!json_is_object(m)) {
			variables_json(v, m);
			continue;
		}
		variables_bracket(v, '{');
		json_object_foreach(m, key, value) {
			variables_name(v, key);
			if (strcmp(key, "role") == 0 && json_is_string(value))
				variables_role(v, json_string_value(value),
				    json_string_length(value));
			else
				variables_json(v, value);
		}
		variables_bracket(v, '}');
	}
	variables_bracket(v, ']');
}

static int
is_token(const char *key)
{
	return strcmp(key, "bos_token") == 0 || strcmp(key, "eos_token") == 0;
}

/* The model's token, where the object has none. */
static void
put_token(struct variables *v, const struct render_cmd *k, const char *name,
    int32_t id)
{
	struct gguf_str s;

	if (id == NO_TOKEN || json_object_get(k->vars, name) != NULL)
		return;
	s = tokenizer_text(k->vocab, (uint32_t)id);
	variables_name(v, name);
	variables_string(v, s.data, s.len, JINJA_TEMPLATE);
}

static void
put_vars(struct variables *v, const struct render_cmd *k)
{
	const char *key;
	json_t *value;

	json_object_foreach(k->vars, key, value) {
		variables_name(v, key);
		if (strcmp(key, "messages") == 0)
			put_messages(v, value);
		else if (is_token(key) && json_is_string(value))
			variables_string(v, json_string_value(value),
			    json_string_length(value), JINJA_TEMPLATE);
		else
			variables_json(v, value);
	}
	if (k->vocab != NULL) {
		put_token(v, k, "bos_token", tokenizer_bos(k->vocab));
		put_token(v, k, "eos_token", tokenizer_eos(k->vocab));
	}
}

/* --- the text --- */

static int
print_spans(const struct rendering *r, struct err *reterr)
{
	json_t *o = json_object(), *spans = json_array();
	const char *at = r->text;
	size_t i;

	for (i = 0; i < r->nspans; at += r->span[i++].nbytes)
		json_array_append_new(spans, json_pack("{s:s,s:o}", "by",
		    r->span[i].is_template ? "template" : "input", "text",
		    output_json_text(at, r->span[i].nbytes)));
	json_object_set_new(o, "spans", spans);
	return output_json(o, 1, reterr);
}

static int
print_text(const struct rendering *r, struct err *reterr)
{
	int rc = output_text(r->text, r->nbytes);

	return rc < 0 ? err_set(reterr, ERR_RUN, rc, "stdout: %s",
	    strerror(-rc)) : 0;
}

static int
render(const struct render_cmd *k, struct err *reterr)
{
	struct render_job job = { .jinja = k->jinja, .njinja = k->n,
	    .now = &k->now };
	struct variables v = { 0 };
	struct rendering r;
	int rc;

	put_vars(&v, k);
	if ((rc = variables_end(&v, reterr)) == 0) {
		job.vars = v.data;
		job.nvars = v.n;
		rc = reader_render(k->reader, &job, &r, reterr);
		if (render_is_refusal(rc))
			err_prefix(reterr, "the chat template");
	}
	variables_done(&v);
	if (rc < 0)
		return rc;
	rc = k->conf->spans ? print_spans(&r, reterr) : print_text(&r, reterr);
	rendering_done(&r);
	return rc;
}

/* --- the command --- */

static int
open_reader(struct render_cmd *k, struct err *reterr)
{
	const struct reader_how how = { .wants_vocab = 1 };
	int rc;

	if (k->conf->model_path == NULL)
		return reader_open_bare(k->conf, NULL, &k->reader, reterr);
	if ((rc = reader_open(k->conf, &how, &k->reader, reterr)) < 0)
		return rc;
	return reader_tokenizer(k->reader, &k->vocab, reterr);
}

int
cmd_render(const struct conf *c, struct err *reterr)
{
	struct render_cmd k = { .conf = c };
	int rc;

	if ((rc = load_vars(&k, reterr)) < 0 ||
	    (rc = read_now(&k, reterr)) < 0 ||
	    (rc = open_reader(&k, reterr)) < 0 ||
	    (rc = form_find_text(c, c->model_path != NULL ?
	    reader_directory(k.reader) : NULL, json_array_size(json_object_get(
	    k.vars, "tools")) > 0, &k.jinja, &k.n, reterr)) < 0)
		;
	else if ((rc = rights_settle(0, reterr)) == 0)
		rc = render(&k, reterr);
	reader_close(k.reader);
	json_decref(k.vars);
	free(k.jinja);
	return rc;
}
