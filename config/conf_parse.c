/* config/conf_parse.c - a config file laid over a struct conf.
 *
 * libConfuse splits the file into keys, sections and values; every value is a
 * string to it.  What the strings mean is decided in keys.c, in the moment the
 * value has been read, so that a message can name its line.
 * straddle.conf(5) describes the language. */
#include "conf.h"

#include <confuse.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "conf_text.h"
#include "keys.h"

/* libConfuse hands its callbacks no pointer of ours, and keeps its scanner in
 * globals: one file at a time, hence one of these. */
static struct parse {
	const char *path;
	cfg_t *top;
	struct conf *conf;
	struct key_scope common, sampling, session;
	const cfg_t *section;		/* whose keys session collects */
	int said;			/* err says what is wrong */
	struct err *err;
} *parse;

/* Where the file is being read, as messages and session_conf.where have it;
 * of a long path the end. */
static void
where_is(const cfg_t *cfg, char *buf, size_t len)
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

	parse->said = 1;
	where_is(cfg, where, sizeof(where));
	if (cfg != parse->top)
		err_prefix(parse->err, "%s%s%s", cfg->name,
		    cfg->title ? " " : "", cfg->title ? cfg->title : "");
	err_prefix(parse->err, "%s", where);
	return rc;
}

/* The session that a section describes, begun when its first key (or, for a
 * section without keys, its end) is met. */
static int
enter_session(const cfg_t *section)
{
	struct conf *c = parse->conf;
	struct session_conf *s;

	if (section == parse->section)
		return 0;
	if (c->nsessions == MAX_SESSIONS)
		return err_set(parse->err, ERR_USAGE, -E2BIG,
		    "one session too many: %d are allowed", MAX_SESSIONS);
	s = &c->session[c->nsessions++];
	session_defaults(s);
	/* While a section is read, the file's line stays at its brace. */
	where_is(parse->top, s->where, sizeof(s->where));
	parse->section = section;
	parse->session = (struct key_scope){
		session_keys, SESSION_NKEYS, s, 0, NULL, 1
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

/* What to do about a complaint of libConfuse's; "" when it says so itself. */
static const char *
hint_for(const char *msg)
{
	static const struct {
		const char *beginning, *hint;
	} hints[] = {
		{ "unexpected token", ": write name = value, with quotes "
		    "around a value that has blanks or any of , = { } ( ) #" },
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

/* libConfuse's own complaints, in our words where its own say too little. */
static void PRINTF_LIKE(2, 0)
on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
	char msg[256], *name;

	vsnprintf(msg, sizeof(msg), fmt, ap);
	if ((name = quoted_in(msg, "no such option ")) != NULL)
		scope_unknown(scope_of(cfg), name, parse->err);
	else if ((name = quoted_in(msg, "found duplicate title ")) != NULL)
		err_set(parse->err, ERR_USAGE, -EINVAL, "a second session "
		    "named %s: each needs a name of its own", name);
	else
		err_set(parse->err, ERR_USAGE, -EINVAL, "%s%s", msg,
		    hint_for(msg));
	fail_at(cfg, -EINVAL);
}

/* libConfuse's table of n of our keys; opts has room for the end mark. */
static void
make_opts(const struct conf_key *keys, unsigned n, cfg_opt_t *opts)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		opts[i] = (cfg_opt_t)CFG_STR(keys[i].name, NULL, CFGF_NONE);
		opts[i].validcb = on_value;
	}
	opts[n] = (cfg_opt_t)CFG_END();
}

static int
parse_text(char *text, size_t len, struct parse *p)
{
	cfg_opt_t session_opts[SESSION_NKEYS + 1];
	cfg_opt_t sampling_opts[SAMPLING_NKEYS + 1];
	cfg_opt_t opts[COMMON_NKEYS + 3];
	FILE *fp;
	int rc;

	make_opts(session_keys, SESSION_NKEYS, session_opts);
	make_opts(sampling_keys, SAMPLING_NKEYS, sampling_opts);
	make_opts(common_keys, COMMON_NKEYS, opts);
	opts[COMMON_NKEYS] = (cfg_opt_t)CFG_SEC("sampling", sampling_opts,
	    CFGF_NONE);
	opts[COMMON_NKEYS + 1] = (cfg_opt_t)CFG_SEC("session", session_opts,
	    CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES);
	opts[COMMON_NKEYS + 1].validcb = on_session;
	opts[COMMON_NKEYS + 2] = (cfg_opt_t)CFG_END();

	if ((fp = fmemopen(text, len, "r")) == NULL)
		return err_set(p->err, ERR_RUN, -errno, "%s: %s", p->path,
		    strerror(errno));
	if ((p->top = cfg_init(opts, CFGF_NONE)) == NULL) {
		fclose(fp);
		return err_set(p->err, ERR_RUN, -ENOMEM, "out of memory");
	}
	cfg_set_error_function(p->top, on_error);
	parse = p;
	rc = cfg_parse_fp(p->top, fp) == CFG_SUCCESS ? 0 : -EINVAL;
	if (rc < 0 && !p->said)		/* such as for a key that is "" */
		fail_at(p->top, err_set(p->err, ERR_USAGE, rc,
		    "this can not be understood: write name = value"));
	parse = NULL;
	cfg_free(p->top);
	fclose(fp);
	return rc;
}

/* A relative path in a file is relative to the file's folder. */
static int
rebase(char **path, const char *file, struct err *reterr)
{
	const char *slash = strrchr(file, '/');
	char *full;

	if (**path == '/' || slash == NULL)
		return 0;
	if (asprintf(&full, "%.*s%s", (int)(slash + 1 - file), file,
	    *path) < 0)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	free(*path);
	*path = full;
	return 0;
}

int
conf_parse_file(const char *path, struct conf *c, struct err *reterr)
{
	struct parse p = {
		.path = path, .conf = c, .err = reterr,
		.common = { common_keys, COMMON_NKEYS, c, 0,
		    ", sampling { ... } and session NAME { ... }", 1 },
		.sampling = { sampling_keys, SAMPLING_NKEYS, &c->sampling, 0,
		    NULL, 1 },
		.session = { session_keys, SESSION_NKEYS, NULL, 0, NULL, 1 },
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
	if (rc == 0 && p.common.seen >> COMMON_MODEL & 1)
		rc = rebase(&c->model_path, path, reterr);
	return rc;
}
