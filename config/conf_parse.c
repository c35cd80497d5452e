/* config/conf_parse.c - reads a config file into a struct conf.
 *
 * libConfuse splits the file into keys, sections and values, all of them
 * strings.  keys.c converts each value as soon as it has been read, so that an
 * error can name its line.  straddle.conf(5) describes the language. */
#include "conf.h"

#include <confuse.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "conf_text.h"
#include "keys.h"

/* A global, because libConfuse passes no user pointer to its callbacks.  Its
 * scanner uses globals too, so only one file can be parsed at a time. */
static struct parse {
	const char *path;
	cfg_t *top;
	struct conf *conf;
	struct key_scope common, sampling, session;
	const cfg_t *section;		/* that scope session collects */
	int failed;			/* err holds the reason */
	struct err *err;
} *parse;

/* Write "file:line" of the current position into buf, for messages and
 * session_conf.where.  A long path loses its beginning. */
static void
format_position(const cfg_t *cfg, char *buf, size_t len)
{
	size_t n = strlen(parse->path), room = len - 32;

	if (n > room)
		snprintf(buf, len, "...%s:%d", parse->path + n - room,
		    cfg->line);
	else
		snprintf(buf, len, "%s:%d", parse->path, cfg->line);
}

/* Put "file:line: " in front of the error, and the section it is in. */
static int
fail_at(const cfg_t *cfg, int rc)
{
	char where[sizeof(((struct session_conf *)0)->where)];

	parse->failed = 1;
	format_position(cfg, where, sizeof(where));
	if (cfg != parse->top)
		err_prefix(parse->err, "%s%s%s", cfg->name,
		    cfg->title ? " " : "", cfg->title ? cfg->title : "");
	err_prefix(parse->err, "%s", where);
	return rc;
}

/* Start a session at the first key of its section or, if it has no keys, at the
 * section's end. */
static int
enter_session(const cfg_t *section)
{
	struct conf *c = parse->conf;
	struct session_conf *s;

	if (section == parse->section)
		return 0;
	if (c->nsessions == MAX_SESSIONS)
		return err_set(parse->err, ERR_USAGE, -E2BIG,
		    "too many sessions: at most %d are allowed", MAX_SESSIONS);
	s = &c->session[c->nsessions++];
	session_defaults(s);
	/* The top level's line stays at the brace while a section is read. */
	format_position(parse->top, s->where, sizeof(s->where));
	parse->section = section;
	parse->session = (struct key_scope){
		.section = SECTION_SESSION, .base = s, .in_file = 1
	};
	return session_set_name(s, section->title, parse->err);
}

static struct key_scope *
scope_of(const cfg_t *cfg)
{
	if (cfg == parse->top)
		return &parse->common;
	return cfg->title != NULL ? &parse->session : &parse->sampling;
}

/* libConfuse has read "key = value" in cfg. */
static int
on_value(cfg_t *cfg, cfg_opt_t *opt)
{
	int rc;

	if (cfg->title != NULL && (rc = enter_session(cfg)) < 0)
		return fail_at(cfg, rc);
	if ((rc = scope_set(scope_of(cfg), opt->name, cfg_opt_getnstr(opt, 0),
	    parse->err)) < 0)
		return fail_at(cfg, rc);
	return 0;
}

/* libConfuse has read the last "session NAME { ... }". */
static int
on_session(cfg_t *cfg, cfg_opt_t *opt)
{
	int rc = enter_session(cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1));

	return rc < 0 ? fail_at(cfg, rc) : 0;
}

/* The name in msg when it reads "beginning 'name'", else NULL. */
static char *
quoted_in(char *msg, const char *beginning)
{
	size_t n = strlen(beginning), end = strlen(msg) - 1;

	if (strncmp(msg, beginning, n) != 0 || end <= n || msg[n] != '\'')
		return NULL;
	if (msg[end] == '\'')		/* not cut off */
		msg[end] = '\0';
	return msg + n + 1;
}

/* A hint for an error of libConfuse; "" where its message is enough. */
static const char *
hint_for(const char *msg)
{
	static const struct {
		const char *beginning, *hint;
	} hints[] = {
		{ "unexpected token", ": write name = value, with quotes "
		    "around a value that contains spaces or any of , = { } "
		    "( ) #" },
		{ "missing equal sign", ": write name = value" },
		{ "unexpected closing brace", ": no section is open here" },
		{ "missing title", ": write session NAME { ... }" },
		{ "no sub-section", ": write session NAME { ... }" },
	};
	unsigned i;

	for (i = 0; i < NITEMS(hints); i++)
		if (strncmp(msg, hints[i].beginning,
		    strlen(hints[i].beginning)) == 0)
			return hints[i].hint;
	return "";
}

/* Errors that libConfuse finds, reworded where its own text says too little. */
static void PRINTF_LIKE(2, 0)
on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
	char msg[256], *name;

	vsnprintf(msg, sizeof(msg), fmt, ap);
	if ((name = quoted_in(msg, "no such option ")) != NULL)
		scope_unknown(scope_of(cfg), name, parse->err);
	else if ((name = quoted_in(msg, "found duplicate title ")) != NULL)
		err_set(parse->err, ERR_USAGE, -EINVAL, "duplicate session "
		    "name %s: each session needs its own", name);
	else
		err_set(parse->err, ERR_USAGE, -EINVAL, "%s%s", msg,
		    hint_for(msg));
	fail_at(cfg, -EINVAL);
}

/* Fill libConfuse's table with the keys of a section, without an end mark.
 * Returns how many they are. */
static unsigned
fill_opts(enum section section, cfg_opt_t *opts)
{
	const struct setting *s = NULL;
	unsigned n = 0;

	while ((s = setting_next(section, s)) != NULL) {
		opts[n] = (cfg_opt_t)CFG_STR(s->key, NULL, CFGF_NONE);
		opts[n++].validcb = on_value;
	}
	return n;
}

static int
parse_text(char *text, size_t len, struct parse *p)
{
	cfg_opt_t session_opts[MAX_SETTINGS + 1];
	cfg_opt_t sampling_opts[MAX_SETTINGS + 1];
	cfg_opt_t opts[MAX_SETTINGS + 3];
	unsigned n;
	FILE *fp;
	int rc;

	n = fill_opts(SECTION_SESSION, session_opts);
	session_opts[n] = (cfg_opt_t)CFG_END();
	n = fill_opts(SECTION_SAMPLING, sampling_opts);
	sampling_opts[n] = (cfg_opt_t)CFG_END();
	n = fill_opts(SECTION_TOP, opts);
	opts[n++] = (cfg_opt_t)CFG_SEC("sampling", sampling_opts, CFGF_NONE);
	opts[n] = (cfg_opt_t)CFG_SEC("session", session_opts,
	    CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES);
	opts[n++].validcb = on_session;
	opts[n] = (cfg_opt_t)CFG_END();

	if ((fp = fmemopen(text, len, "r")) == NULL)
		return err_set(p->err, ERR_RUN, -errno, "%s: %s", p->path,
		    strerror(errno));
	if ((p->top = cfg_init(opts, CFGF_NONE)) == NULL) {
		fclose(fp);
		return err_nomem(p->err, "the parser of %s", p->path);
	}
	cfg_set_error_function(p->top, on_error);
	parse = p;
	rc = cfg_parse_fp(p->top, fp) == CFG_SUCCESS ? 0 : -EINVAL;
	if (rc < 0 && !p->failed)		/* such as for a key that is "" */
		fail_at(p->top, err_set(p->err, ERR_USAGE, rc,
		    "syntax error: write name = value"));
	parse = NULL;
	cfg_free(p->top);
	fclose(fp);
	return rc;
}

/* Make a relative path relative to the folder of the config file. */
static int
rebase_path(char **path, const char *file, struct err *reterr)
{
	const char *slash = strrchr(file, '/');
	char *full;

	if (**path == '/' || slash == NULL)
		return 0;
	if (asprintf(&full, "%.*s%s", (int)(slash + 1 - file), file,
	    *path) < 0)
		return err_nomem(reterr, "the path %s", *path);
	free(*path);
	*path = full;
	return 0;
}

/* Rebase every path that the file has set. */
static int
rebase_paths(const struct parse *p)
{
	const struct setting *s = NULL;
	int rc = 0;

	while (rc == 0 && (s = setting_next(SECTION_TOP, s)) != NULL)
		if (s->type == KEY_PATH && scope_has_set(&p->common, s))
			rc = rebase_path((char **)(void *)((char *)p->conf +
			    s->off), p->path, p->err);
	return rc;
}

int
conf_parse_file(const char *path, struct conf *c, struct err *reterr)
{
	struct parse p = {
		.path = path, .conf = c, .err = reterr,
		.common = {
			.section = SECTION_TOP, .base = c, .in_file = 1,
			.also = ", sampling { ... } and session NAME { ... }"
		},
		.sampling = {
			.section = SECTION_SAMPLING, .base = c, .in_file = 1
		},
		.session = { .section = SECTION_SESSION, .in_file = 1 },
	};
	char *text;
	size_t len;
	int rc;

	if ((rc = conf_text_read(path, &text, &len, reterr)) < 0)
		return rc;
	c->nsessions = 0;
	if ((rc = conf_text_clean(path, text, len, reterr)) == 0)
		rc = parse_text(text, len, &p);
	free(text);
	return rc == 0 ? rebase_paths(&p) : rc;
}
