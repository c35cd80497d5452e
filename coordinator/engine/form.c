/* coordinator/engine/form.c - the chat template of a model. */
#include "form.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/log.h"
#include "coordinator/print/output.h"
#include "coordinator/print/source.h"
#include "coordinator/text/probe.h"
#include "coordinator/text/template_table.h"
#include "coordinator/text/variables.h"

struct form {
	const struct conf *conf;
	const struct tokenizer *vocab;
	char *jinja, *tools_jinja;	/* [n], [ntools]; tools_jinja: for
					 * requests with tools; NULL = the same */
	size_t n, ntools;
	char name[64];
	int is_builtin;
	int wants_parts;		/* it writes a text only in a list of
					 * parts */
	int takes_parts;		/* it writes lists of parts */
	int folds_system;		/* it has no place for a system text */
	char why[512];			/* "" = nothing failed */
	char answer_end[PROBE_END_BYTES + 1];
	json_t *args;			/* of --template-arg */
	struct tm now;
};

const char *
form_role_name(enum form_role role)
{
	static const char *const names[FORM_NROLES] = { "system", "developer",
	    "user", "assistant", "tool" };

	return names[role];
}

/* --- variables --- */

static void
put_token(struct variables *v, const struct form *f, const char *name,
    int32_t id)
{
	struct gguf_str s;

	if (id == NO_TOKEN)
		return;
	s = tokenizer_text(f->vocab, (uint32_t)id);
	variables_name(v, name);
	variables_string(v, s.data, s.len, JINJA_TEMPLATE);
}

static void
put_args(struct variables *v, const json_t *args)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)args, name, value) {
		variables_name(v, name);
		variables_json(v, value);
	}
}

/* The text as a list of one part. */
static void
put_part(struct variables *v, const char *text, size_t n)
{
	variables_bracket(v, '[');
	variables_bracket(v, '{');
	variables_name(v, "type");
	variables_name(v, "text");
	variables_name(v, "text");
	variables_string(v, text, n, JINJA_INPUT);
	variables_bracket(v, '}');
	variables_bracket(v, ']');
}

/* The texts of a list of parts, one behind the other. */
static char *
join_parts(const json_t *parts, size_t *ret_n)
{
	const json_t *text;
	char *s = NULL, *more;
	size_t n = 0, i, k;

	for (i = 0; i < json_array_size(parts); i++) {
		text = json_object_get(json_array_get(parts, i), "text");
		k = json_string_length(text);
		if ((more = realloc(s, n + k + 1)) == NULL) {
			free(s);
			return NULL;
		}
		s = more;
		if (k > 0)
			memcpy(s + n, json_string_value(text), k);
		n += k;
	}
	*ret_n = n;
	return s != NULL ? s : strdup("");
}

static void
put_content(struct variables *v, const struct form *f,
    const struct form_message *m)
{
	const json_t *parts = m->text == NULL ?
	    json_object_get(m->more, "content") : NULL;
	const char *text = m->text != NULL ? m->text : "";
	size_t n = m->text != NULL ? m->nbytes : 0;
	char *joined = NULL;

	variables_name(v, "content");
	if (json_is_array(parts) && (f->takes_parts || f->wants_parts)) {
		variables_json(v, parts);
		return;
	}
	if (json_is_array(parts) &&
	    (joined = join_parts(parts, &n)) == NULL) {
		v->rc = -ENOMEM;
		return;
	}
	if (joined != NULL)
		text = joined;
	if (f->wants_parts && n > 0)
		put_part(v, text, n);
	else
		variables_string(v, text, n, JINJA_INPUT);
	free(joined);
}

/* A function's arguments come as the text of a JSON object; most templates want
 * the object. */
static json_t *
parse_arguments(const json_t *calls, int *ret_any)
{
	json_t *copy = json_deep_copy(calls), *call, *fn, *args;
	size_t i;

	json_array_foreach(copy, i, call) {
		if ((fn = json_object_get(call, "function")) == NULL)
			fn = call;
		args = json_object_get(fn, "arguments");
		if (!json_is_string(args))
			continue;
		args = json_loadb(json_string_value(args),
		    json_string_length(args), 0, NULL);
		if (!json_is_object(args)) {
			json_decref(args);
			continue;
		}
		json_object_set_new(fn, "arguments", args);
		*ret_any = 1;
	}
	return copy;
}

/* *parse: make objects of arguments; afterwards, if there were any. */
static void
put_message(struct variables *v, const struct form *f,
    const struct form_message *m, int parse, int *ret_any)
{
	const char *role = form_role_name(m->role), *key;
	json_t *value, *parsed;

	variables_bracket(v, '{');
	variables_name(v, "role");
	variables_role(v, role, strlen(role));
	put_content(v, f, m);
	json_object_foreach((json_t *)(uintptr_t)m->more, key, value) {
		if (strcmp(key, "role") == 0 || strcmp(key, "content") == 0)
			continue;
		variables_name(v, key);
		if (!parse || strcmp(key, "tool_calls") != 0) {
			variables_json(v, value);
			continue;
		}
		if ((parsed = parse_arguments(value, ret_any)) == NULL)
			v->rc = -ENOMEM;
		else
			variables_json(v, parsed);
		json_decref(parsed);
	}
	variables_bracket(v, '}');
}

static int
has_tail(const struct form_request *q)
{
	const struct form_message *m;
	size_t i;

	if (!q->continues || q->n == 0)
		return 0;
	m = &q->message[q->n - 1];
	for (i = 0; i < m->nbytes; i++)
		if (strchr(" \t\n\v\f\r", m->text[i]) == NULL)
			return 1;
	return 0;
}

/* Is there a system text that goes in front of the first user message? */
static int
must_fold(const struct form *f, const struct form_request *q)
{
	const struct form_message *m = q->message;

	return f->folds_system && q->n >= 2 &&
	    (m[0].role == FORM_SYSTEM || m[0].role == FORM_DEVELOPER) &&
	    m[0].text != NULL && m[1].role == FORM_USER && m[1].text != NULL;
}

/* Put the first two messages as one. */
static void
put_folded(struct variables *v, const struct form *f,
    const struct form_message *m, int parse, int *ret_any)
{
	struct form_message one = m[1];
	char *text = malloc(m[0].nbytes + 2 + m[1].nbytes + 1), *p = text;

	if (text == NULL) {
		v->rc = -ENOMEM;
		return;
	}
	p = mempcpy(p, m[0].text, m[0].nbytes);
	if (m[0].nbytes > 0)
		p = mempcpy(p, "\n\n", 2);
	p = mempcpy(p, m[1].text, m[1].nbytes);
	one.text = text;
	one.nbytes = (size_t)(p - text);
	put_message(v, f, &one, parse, ret_any);
	free(text);
}

static void
put_request(struct variables *v, const struct form *f,
    const struct form_request *q, int parse, int *ret_any)
{
	/* An answer that has nothing yet, or white space only, begins. */
	const size_t n = q->n - (q->continues && q->n > 0 && !has_tail(q));
	size_t i = 0;

	put_args(v, f->args);
	put_args(v, q->args);
	put_token(v, f, "bos_token", tokenizer_bos(f->vocab));
	put_token(v, f, "eos_token", tokenizer_eos(f->vocab));
	variables_name(v, "messages");
	variables_bracket(v, '[');
	if (must_fold(f, q)) {
		put_folded(v, f, q->message, parse, ret_any);
		i = 2;
	}
	for (; i < n; i++)
		put_message(v, f, &q->message[i], parse, ret_any);
	variables_bracket(v, ']');
	if (q->tools != NULL) {
		variables_name(v, "tools");
		variables_json(v, q->tools);
	}
	variables_name(v, "add_generation_prompt");
	variables_bool(v, !has_tail(q) && !q->is_closed);
}

/* --- rendering --- */

static int
render_with(const struct form *f, const struct form_request *q, int wants_ids,
    int parse, int *ret_any, struct rendering *ret, struct err *reterr)
{
	const int for_tools = f->tools_jinja != NULL &&
	    json_array_size(q->tools) > 0;
	struct render_job job = {
		.jinja = for_tools ? f->tools_jinja : f->jinja,
		.njinja = for_tools ? f->ntools : f->n,
		.now = q->now != NULL ? q->now : &f->now,
		.wants_ids = wants_ids, .special = f->conf->special,
		.flags = ENCODE_BOS };
	struct variables v = { 0 };
	int rc;

	if (has_tail(q)) {
		job.tail = q->message[q->n - 1].text;
		job.ntail = q->message[q->n - 1].nbytes;
	}
	put_request(&v, f, q, parse, ret_any);
	if ((rc = variables_end(&v, reterr)) == 0) {
		job.vars = v.data;
		job.nvars = v.n;
		rc = tokenizer_render(f->vocab, &job, ret, reterr);
	}
	variables_done(&v);
	return rc;
}

static int
render(const struct form *f, const struct form_request *q, int wants_ids,
    struct rendering *ret, struct err *reterr)
{
	int any = 0, rc;

	rc = render_with(f, q, wants_ids, 1, &any, ret, reterr);
	/* A few want the arguments as a text. */
	if (render_is_refusal(rc) && any)
		rc = render_with(f, q, wants_ids, 0, &any, ret, reterr);
	if (render_is_refusal(rc))
		err_prefix(reterr, "the chat template");
	return rc;
}

int
form_render(const struct form *f, const struct form_request *q,
    struct rendering *ret, struct err *reterr)
{
	return render(f, q, 0, ret, reterr);
}

int
form_encode(const struct form *f, const struct form_request *q,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	struct rendering r;
	int rc = render(f, q, 1, &r, reterr);

	if (rc < 0)
		return rc;
	*ret_ids = r.ids;
	*ret_n = r.nids;
	r.ids = NULL;
	rendering_done(&r);
	return 0;
}

/* --- what a template can do --- */

/* Does the rendering have these bytes as input, in one span? */
static int
has_input(const struct rendering *r, const char *text)
{
	const char *at = r->text;
	size_t i;

	for (i = 0; i < r->nspans; at += r->span[i++].nbytes)
		if (!r->span[i].is_template && memmem(at, r->span[i].nbytes,
		    text, strlen(text)) != NULL)
			return 1;
	return 0;
}

/* Render a user's message of these parts, or of one text: 1 = all of them are in
 * it, and no list as Python prints one; 0 = not. */
static int
try_message(const struct form *f, const json_t *parts, const char *text,
    struct err *reterr)
{
	const struct form_message m = { .role = FORM_USER, .text = text,
	    .nbytes = text != NULL ? strlen(text) : 0,
	    .more = parts };
	const struct form_request q = { .message = &m, .n = 1 };
	struct rendering r;
	int rc = render(f, &q, 0, &r, reterr);

	if (rc < 0)
		return rc;
	rc = text != NULL ? has_input(&r, text) : has_input(&r, "one-") &&
	    has_input(&r, "two+") && !has_input(&r, "[{'type'");
	rendering_done(&r);
	return rc;
}

/* A template that fails on lists takes none: not an error. */
static int
try_parts(struct form *f, struct err *reterr)
{
	json_t *more = json_pack("{s:[{s:s,s:s},{s:s,s:s}]}", "content", "type",
	    "text", "text", "one-", "type", "text", "text", "two+");
	int rc;

	if (more == NULL)
		return err_nomem(reterr, "a message");
	f->takes_parts = 1;
	rc = try_message(f, more, NULL, reterr);
	f->takes_parts = rc == 1;
	json_decref(more);
	return rc < 0 && !render_is_refusal(rc) ? rc : 0;
}

/* A template may raise on a system message, or leave it out. */
static int
try_system(struct form *f, struct err *reterr)
{
	static const char text[] = "Be-a-machine";
	const struct form_message m[] = {
		{ FORM_SYSTEM, text, sizeof(text) - 1, NULL },
		{ FORM_USER, "Hello", 5, NULL }
	};
	const struct form_request q = { .message = m, .n = NITEMS(m) };
	struct rendering r;
	int rc = render(f, &q, 0, &r, reterr);

	f->folds_system = rc == 0 ? !has_input(&r, text) :
	    render_is_refusal(rc);
	if (rc == 0)
		rendering_done(&r);
	return f->folds_system ? 0 : rc;
}

static int
try_template(struct form *f, struct err *reterr)
{
	static const char text[] = "Hello-there";
	struct err e = { 0 };
	int rc;

	if ((rc = try_message(f, NULL, text, reterr)) < 0)
		return rc;
	if (rc == 0) {
		f->wants_parts = 1;
		rc = try_message(f, NULL, text, &e);
		f->wants_parts = rc == 1;
		if (rc != 1 && (rc == 0 || render_is_refusal(rc)))
			return err_set(reterr, ERR_RUN, -EINVAL, "the chat "
			    "template: it does not write a user's message");
		if (rc < 0) {
			*reterr = e;
			return rc;
		}
	}
	rc = try_system(f, reterr);
	return rc < 0 ? rc : try_parts(f, reterr);
}

/* --- which template --- */

static int
take_family(struct form *f, const struct template_family *family,
    struct err *reterr)
{
	free(f->jinja);
	free(f->tools_jinja);
	f->jinja = f->tools_jinja = NULL;
	f->is_builtin = 1;
	f->wants_parts = f->takes_parts = f->folds_system = 0;
	strlcpy(f->name, family->name, sizeof(f->name));
	snprintf(f->answer_end, sizeof(f->answer_end), "%.*s",
	    (int)strcspn(family->answer[1], "\n"), family->answer[1]);
	return template_family_jinja(family, &f->jinja, &f->n) < 0 ?
	    err_nomem(reterr, "a chat template") : 0;
}

/* A file, or a name behind the folder that a config file put in front of it. */
static int
take_given(struct form *f, const char *given, struct err *reterr)
{
	const char *slash = strrchr(given, '/');
	const struct template_family *family = template_family_named(given);
	struct source s;
	int rc;

	if (family == NULL && slash != NULL && access(given, F_OK) < 0)
		family = template_family_named(slash + 1);
	if (family != NULL)
		return take_family(f, family, reterr);
	if ((rc = source_read(NULL, given, &s, reterr)) < 0) {
		err_prefix(reterr, "--chat-template: no built-in form has this "
		    "name, and it cannot be read as a file");
		return rc;
	}
	f->jinja = s.text;
	f->n = s.nbytes;
	strlcpy(f->name, given, sizeof(f->name));
	return 0;
}

static int
copy_key(const struct gguf *g, const char *key, char **ret, size_t *ret_n,
    struct err *reterr)
{
	struct gguf_str s;

	if (gguf_get_str(g, key, &s, NULL) < 0)
		return 0;
	if ((*ret = malloc(s.len + 1)) == NULL)
		return err_nomem(reterr, "the chat template");
	memcpy(*ret, s.data, s.len);
	(*ret)[s.len] = '\0';
	*ret_n = s.len;
	return 0;
}

static int
take_own(struct form *f, const struct gguf *g, struct err *reterr)
{
	const struct template_family *family = NULL;
	int rc;

	if ((rc = copy_key(g, "tokenizer.chat_template", &f->jinja, &f->n,
	    reterr)) < 0 || (rc = copy_key(g,
	    "tokenizer.chat_template.tool_use", &f->tools_jinja, &f->ntools,
	    reterr)) < 0)
		return rc;
	if (f->jinja == NULL && f->tools_jinja != NULL) {
		f->jinja = f->tools_jinja;
		f->n = f->ntools;
		f->tools_jinja = NULL;
	}
	if (f->jinja != NULL)
		family = template_family_find(f->jinja, f->n);
	strlcpy(f->name, family != NULL ? family->name : "its own",
	    sizeof(f->name));
	return 0;
}

/* The file's own template fails: take the form of its markers. */
static int
replace_own(struct form *f, struct err *reterr)
{
	const struct template_family *family =
	    template_family_find(f->jinja, f->n);
	const char *to = family != NULL ? family->name : "plain";

	strlcpy(f->why, reterr->msg, sizeof(f->why));
	log_warnx("%s; the built-in form \"%s\" is used: "
	    "--chat-template gives another", f->why, to);
	return take_family(f, template_family_named(to), reterr);
}

/* The text, not tried. */
static int
find_text(struct form *f, const struct gguf *g, struct err *reterr)
{
	int rc;

	if (f->conf->chat_template != NULL)
		return take_given(f, f->conf->chat_template, reterr);
	if (g != NULL && (rc = take_own(f, g, reterr)) < 0)
		return rc;
	return f->jinja != NULL ? 0 : take_family(f,
	    template_family_named("plain"), reterr);
}

int
form_find_text(const struct conf *c, const struct gguf *g, int has_tools,
    char **ret, size_t *ret_n, struct err *reterr)
{
	struct form f = { .conf = c };
	int rc;

	if ((rc = find_text(&f, g, reterr)) < 0)
		return rc;
	if (has_tools && f.tools_jinja != NULL) {
		free(f.jinja);
		*ret = f.tools_jinja;
		*ret_n = f.ntools;
	} else {
		free(f.tools_jinja);
		*ret = f.jinja;
		*ret_n = f.n;
	}
	return 0;
}

static int
choose(struct form *f, const struct gguf *g, struct err *reterr)
{
	const char *given = f->conf->chat_template;
	int rc;

	if ((rc = find_text(f, g, reterr)) < 0 || f->is_builtin)
		return rc;
	rc = try_template(f, reterr);
	if (rc == 0 || !render_is_refusal(rc))
		return rc;
	if (given == NULL)
		return replace_own(f, reterr);
	err_prefix(reterr, "--chat-template %s", given);
	reterr->kind = ERR_USAGE;
	return -EINVAL;
}

/* A render_fn. */
static int
render_job(void *arg, const struct render_job *job, struct rendering *ret,
    struct err *reterr)
{
	const struct form *f = arg;

	return tokenizer_render(f->vocab, job, ret, reterr);
}

static int
find_answer_end(struct form *f, struct err *reterr)
{
	const int32_t id[] = { tokenizer_bos(f->vocab),
	    tokenizer_eos(f->vocab) };
	struct gguf_str s[NITEMS(id)];
	size_t i;

	if (f->is_builtin)		/* the table has it */
		return 0;
	for (i = 0; i < NITEMS(id); i++)
		s[i] = tokenizer_text(f->vocab, (uint32_t)id[i]);
	return probe_answer_end(render_job, f, f->jinja, f->n,
	    id[0] != NO_TOKEN ? &s[0] : NULL,
	    id[1] != NO_TOKEN ? &s[1] : NULL, f->answer_end, reterr);
}

/* --- --template-arg --- */

static int
refuse_arg(const char *arg, const char *why, struct err *reterr)
{
	return err_set(reterr, ERR_USAGE, -EINVAL, "--template-arg %s: %s", arg,
	    why);
}

static int
is_reserved(const char *name, size_t n)
{
	static const char *const reserved[] = { "messages", "tools",
	    "add_generation_prompt", "bos_token", "eos_token" };
	size_t i;

	for (i = 0; i < NITEMS(reserved); i++)
		if (strlen(reserved[i]) == n &&
		    memcmp(reserved[i], name, n) == 0)
			return 1;
	return 0;
}

static int
add_arg(json_t *args, const char *arg, struct err *reterr)
{
	const char *eq = strchr(arg, '=');
	char name[64];
	json_t *v;

	if (eq == NULL || eq == arg)
		return refuse_arg(arg, "give NAME=JSON, such as "
		    "enable_thinking=false", reterr);
	if ((size_t)(eq - arg) >= sizeof(name))
		return refuse_arg(arg, "the name has 64 bytes or more", reterr);
	if (is_reserved(arg, (size_t)(eq - arg)))
		return refuse_arg(arg, "the conversation itself sets this "
		    "variable", reterr);
	strlcpy(name, arg, (size_t)(eq - arg) + 1);
	v = json_loads(eq + 1, JSON_DECODE_ANY, NULL);
	if (v == NULL && output_json_lost())
		return err_nomem(reterr, "--template-arg");
	if (v == NULL)
		return refuse_arg(arg, "the value is no JSON: give true, 1 or "
		    "'\"a text\"'", reterr);
	return json_object_set_new(args, name, v) == 0 ? 0 :
	    refuse_arg(arg, "the name is not UTF-8", reterr);
}

static int
read_args(struct form *f, struct err *reterr)
{
	const struct text_list *l = &f->conf->template_args;
	unsigned i;
	int rc = 0;

	if ((f->args = json_object()) == NULL)
		return err_nomem(reterr, "the arguments of a chat template");
	for (i = 0; i < l->n && rc == 0; i++)
		rc = add_arg(f->args, l->v[i], reterr);
	return rc;
}

int
form_set_arg(struct form *f, const char *name, json_t *value,
    struct err *reterr)
{
	return json_object_set_new(f->args, name, value) == 0 ? 0 :
	    err_nomem(reterr, "a variable of the chat template");
}

int
form_has_arg(const struct form *f, const char *name)
{
	return json_object_get(f->args, name) != NULL;
}

/* --- open --- */

int
form_open(const struct conf *c, const struct gguf *g,
    const struct tokenizer *t, struct form **ret, struct err *reterr)
{
	struct form *f = calloc(1, sizeof(*f));
	time_t now = time(NULL);
	int rc;

	if (f == NULL)
		return err_nomem(reterr, "the chat template");
	f->conf = c;
	f->vocab = t;
	localtime_r(&now, &f->now);
	if ((rc = read_args(f, reterr)) < 0 ||
	    (rc = choose(f, g, reterr)) < 0 ||
	    (rc = find_answer_end(f, reterr)) < 0)
		form_close(f);
	else
		*ret = f;
	return rc;
}

void
form_close(struct form *f)
{
	if (f == NULL)
		return;
	free(f->jinja);
	free(f->tools_jinja);
	json_decref(f->args);
	free(f);
}

const char *
form_name(const struct form *f)
{
	return f->name;
}

int
form_is_builtin(const struct form *f)
{
	return f->is_builtin;
}

int
form_is_plain(const struct form *f)
{
	return f->is_builtin && strcmp(f->name, "plain") == 0;
}

int
form_has_channels(const struct form *f)
{
	return probe_has_channels(f->jinja, f->n);
}

const char *
form_answer_end(const struct form *f)
{
	return f->answer_end;
}

int
form_folds_system(const struct form *f)
{
	return f->folds_system;
}

void
form_note(const struct form *f, char note[FORM_NOTE_LEN])
{
	if (!form_is_plain(f))
		snprintf(note, FORM_NOTE_LEN, "chat template: %s%s%s", f->name,
		    f->why[0] != '\0' ? ", by its markers" : "",
		    f->folds_system && f->conf->system != NULL ? "; it has no "
		    "place for a system message, which goes in front of the "
		    "first message" : "");
	else if (f->why[0] != '\0')
		snprintf(note, FORM_NOTE_LEN, "messages go in as they are, and "
		    "answers may be poor");
	else
		snprintf(note, FORM_NOTE_LEN, "the model has no chat "
		    "template: messages go in as they are");
}

const char *
form_why(const struct form *f)
{
	return f->why[0] != '\0' ? f->why : NULL;
}

const char *
form_jinja(const struct form *f, size_t *ret_n)
{
	*ret_n = f->n;
	return f->jinja;
}
