/* config/conf_text.c - reads a config file and blanks its comments.
 *
 * libConfuse 3.3 counts an extra line for every comment, accepts a file that
 * stops inside a section or a comment, and drops characters that begin no
 * token.  It therefore gets the text without comments, and errors of the other
 * two kinds are reported here. */
#include "conf_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"

enum { MAX_FILE = 1 << 20 };	/* bytes of a config file */

struct cursor {
	const char *path;
	char *text;		/* (len) and a NUL */
	size_t len, pos;
	int line;
	struct err *err;
};

int
conf_text_read(const char *path, char **ret_text, size_t *ret_len,
    struct err *reterr)
{
	char *text = malloc(MAX_FILE + 1);
	FILE *fp = fopen(path, "re");
	size_t len = 0;
	int rc = 0;

	if (fp == NULL)
		rc = err_set(reterr, ERR_USAGE, -errno, "%s: %s", path,
		    strerror(errno));
	else if (text == NULL)
		rc = err_nomem(reterr, "the config %s", path);
	else {
		len = fread(text, 1, MAX_FILE + 1, fp);
		if (ferror(fp))
			rc = err_set(reterr, ERR_USAGE, -errno, "%s: %s", path,
			    strerror(errno));
		else if (len >= 4 && memcmp(text, "GGUF", 4) == 0)
			rc = err_set(reterr, ERR_USAGE, -EINVAL, "%s: is a "
			    "model, not a config file: give it with -m", path);
		else if (len > MAX_FILE)
			rc = err_set(reterr, ERR_USAGE, -EFBIG, "%s: too long "
			    "for a config file: at most %d bytes are allowed", path,
			    MAX_FILE);
	}
	if (fp != NULL)
		fclose(fp);
	if (rc < 0) {
		free(text);
		return rc;
	}
	/* The UTF-8 byte order mark of some editors. */
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		memmove(text, text + 3, len -= 3);
	text[len] = '\0';
	*ret_text = text;
	*ret_len = len;
	return 0;
}

static int
fail(const struct cursor *c, int line, const char *what)
{
	return err_set(c->err, ERR_USAGE, -EINVAL, "%s:%d: %s", c->path, line,
	    what);
}

/* Skip "${NAME}" or "${NAME:-default}".  libConfuse would read an unterminated
 * NAME to the end of the file, and replace an unset one by nothing. */
static int
skip_variable(struct cursor *c)
{
	const char *name = c->text + c->pos + 2;
	char what[256];
	int len = (int)strcspn(name, ":}\"\n");

	c->pos += strcspn(c->text + c->pos, "}\"\n");
	if (c->text[c->pos] != '}')
		return fail(c, c->line, "unterminated ${: write ${NAME}, or "
		    "\\$ for a dollar sign");
	c->pos++;
	snprintf(what, sizeof(what), "%.*s", len, name);
	if (strncmp(name + len, ":-", 2) == 0 ||
	    secure_getenv(what) != NULL)
		return 0;
	snprintf(what, sizeof(what), "the environment variable %.*s is not "
	    "set: set it, or write ${%.*s:-DEFAULT}", MIN(len, 64), name,
	    MIN(len, 64), name);
	return fail(c, c->line, what);
}

/* At an equal sign: libConfuse would read "= 64 MiB" as a value and a key. */
static int
check_size_value(const struct cursor *c)
{
	const char *value = c->text + c->pos + 1, *unit;
	char size[64], what[160];
	uint64_t nbytes;
	int nvalue, nunit;

	value += strspn(value, " \t");
	nvalue = (int)strspn(value, "0123456789.");
	unit = value + nvalue + strspn(value + nvalue, " \t");
	nunit = (int)strspn(unit, "KkMmGgTtPpEeIiBb");
	if (nvalue == 0 || nunit == 0 || unit == value + nvalue ||
	    nvalue + nunit >= (int)sizeof(size))
		return 0;
	snprintf(size, sizeof(size), "%.*s%.*s", nvalue, value, nunit, unit);
	if (strcspn(unit, " \t\n}#/") != (size_t)nunit ||
	    units_parse_bytes(size, &nbytes, NULL) < 0)
		return 0;
	snprintf(what, sizeof(what), "space inside a value: write %s, or "
	    "put it in quotes", size);
	return fail(c, c->line, what);
}

/* Skip a quoted string.  It must end on its line, so that the error about a
 * missing quote names the right line. */
static int
skip_string(struct cursor *c)
{
	char quote = c->text[c->pos++];
	int rc;

	while (c->pos < c->len && c->text[c->pos] != '\n') {
		if (c->text[c->pos] == quote) {
			c->pos++;
			return 0;
		}
		if (quote == '"' && strncmp(c->text + c->pos, "${", 2) == 0) {
			if ((rc = skip_variable(c)) < 0)
				return rc;
			continue;
		}
		if (c->text[c->pos] == '\\' && c->text[c->pos + 1] != '\n')
			c->pos++;
		c->pos++;
	}
	return fail(c, c->line, "unterminated string: close the quotes on the "
	    "same line");
}

static void
blank_line(struct cursor *c)
{
	while (c->pos < c->len && c->text[c->pos] != '\n')
		c->text[c->pos++] = ' ';
}

static int
blank_block(struct cursor *c)
{
	const char *end = strstr(c->text + c->pos + 2, "*/");
	size_t stop;

	if (end == NULL)
		return fail(c, c->line,
		    "unterminated comment: close it with */");
	stop = (size_t)(end + 2 - c->text);
	for (; c->pos < stop; c->pos++) {
		if (c->text[c->pos] == '\n')
			c->line++;
		else
			c->text[c->pos] = ' ';
	}
	return 0;
}

/* Advance by one token or less.  A slash inside a word is part of a path. */
static int
step(struct cursor *c, int *depth, int *open_line)
{
	const char *p = c->text + c->pos;
	int in_word = c->pos > 0 && !isspace((unsigned char)p[-1]) &&
	    strchr("={}(),", p[-1]) == NULL;
	int rc;

	if (*p == '"' || *p == '\'')
		return skip_string(c);
	if (*p == '#' || (*p == '/' && p[1] == '/' && !in_word)) {
		blank_line(c);
		return 0;
	}
	if (*p == '/' && p[1] == '*' && !in_word)
		return blank_block(c);
	if (strncmp(p, "${", 2) == 0 && !in_word)
		return skip_variable(c);
	if (*p == '=' && (rc = check_size_value(c)) < 0)
		return rc;
	if (*p == '*' || (*p == '+' && p[1] != '='))
		return fail(c, c->line, *p == '*' ? "stray '*': put the value "
		    "in quotes" : "stray '+': put the value in quotes");
	if (*p == '\n')
		c->line++;
	if (*p == '{' && (*depth)++ == 0)
		*open_line = c->line;
	if (*p == '}' && *depth > 0)
		(*depth)--;
	c->pos++;
	return 0;
}

int
conf_text_clean(const char *path, char *text, size_t len, struct err *reterr)
{
	struct cursor c = {
		.path = path, .text = text, .len = len, .line = 1,
		.err = reterr
	};
	int rc, depth = 0, open_line = 0;

	while (c.pos < len) {
		if (text[c.pos] == '\0')
			return fail(&c, c.line, "NUL byte: a config file must be "
			    "text");
		if ((rc = step(&c, &depth, &open_line)) < 0)
			return rc;
	}
	if (depth > 0)
		return fail(&c, open_line,
		    "unterminated section: close it with }");
	return 0;
}
