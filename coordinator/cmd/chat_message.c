/* coordinator/cmd/chat_message.c - lines that a user types, to messages. */
#include "chat_message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char first_prompt[] = "> ", more_prompt[] = ". ";
static const char quotes[] = "\"\"\"";
enum { NQUOTES = 3 };

static int
add_text(struct message *m, const char *text, size_t n, struct err *reterr)
{
	/* One byte too many is enough to refuse it. */
	if (m->text.nbytes > m->most)
		return 0;
	return source_append(&m->text, text, MIN(n, m->most + 1 -
	    m->text.nbytes), reterr);
}

/* A backslash at the end, which no other escapes. */
static int
goes_on(const char *line, size_t n)
{
	size_t nslashes = 0;

	while (nslashes < n && line[n - 1 - nslashes] == '\\')
		nslashes++;
	return nslashes % 2 == 1;
}

/* A message of one line, or of several that end in backslashes.  Returns as
 * lineedit_next() does. */
static int
read_lines(struct lineedit *le, struct message *m, const char *line, size_t n,
    struct err *reterr)
{
	int rc;

	while (memchr(line, '\n', n) == NULL && goes_on(line, n)) {
		if ((rc = add_text(m, line, n - 1, reterr)) < 0 ||
		    (rc = lineedit_next(le, more_prompt, &line, &n,
		    reterr)) < 0 || rc == LINEEDIT_CLEARED)
			return rc;
		if (rc == LINEEDIT_END)		/* a message still */
			return LINEEDIT_LINE;
		if ((rc = add_text(m, "\n", 1, reterr)) < 0)
			return rc;
	}
	rc = add_text(m, line, n, reterr);
	return rc < 0 ? rc : LINEEDIT_LINE;
}

/* Lines up to the end of a block.  The newlines after the first quotes and before
 * the last are not part of the text. */
static int
read_block(struct lineedit *le, struct message *m, const char *line, size_t n,
    struct err *reterr)
{
	int rc, ends, begins = 1;
	unsigned nlines = 0;

	line += NQUOTES;
	n -= NQUOTES;
	for (;;) {
		ends = n >= NQUOTES &&
		    memcmp(line + n - NQUOTES, quotes, NQUOTES) == 0;
		n -= ends ? NQUOTES : 0;
		if (n > 0 || (!begins && !ends)) {
			if ((nlines++ > 0 &&
			    (rc = add_text(m, "\n", 1, reterr)) < 0) ||
			    (rc = add_text(m, line, n, reterr)) < 0)
				return rc;
		}
		if (ends)
			return LINEEDIT_LINE;
		begins = 0;
		if ((rc = lineedit_next(le, more_prompt, &line, &n,
		    reterr)) != LINEEDIT_LINE)
			return rc;
	}
}

/* A pasted text ends in a newline or not, as it was marked. */
static size_t
trim_newlines(const char *line, size_t n)
{
	while (n > 0 && line[n - 1] == '\n')
		n--;
	return n;
}

/* Keep it so that it means the same when it is recalled.  typed: its first line. */
static int
remember(struct lineedit *le, const struct message *m, const char *typed,
    struct err *reterr)
{
	const char *text = m->text.text;
	char *block;

	if (memchr(text, '\n', m->text.nbytes) != NULL) {
		lineedit_remember(le, text);
	} else if (strncmp(typed, quotes, NQUOTES) != 0) {
		lineedit_remember(le, typed);
	} else if (asprintf(&block, "%s%s%s", quotes, text, quotes) >= 0) {
		lineedit_remember(le, block);
		free(block);
	} else {
		return err_nomem(reterr, "a message of %zu bytes",
		    m->text.nbytes);
	}
	return 0;
}

/* Read the rest of a message that begins with this line. */
static int
read_rest(struct lineedit *le, struct message *m, const char *line, size_t n,
    struct err *reterr)
{
	int rc;

	m->kind = MESSAGE_TEXT;
	if (n >= NQUOTES && memcmp(line, quotes, NQUOTES) == 0) {
		rc = read_block(le, m, line, n, reterr);
		if (rc == LINEEDIT_END)
			m->kind = MESSAGE_CUT_OFF;
		return rc;
	}
	if (n > 1 && line[0] == '/' && line[1] == '/')
		return read_lines(le, m, line + 1, n - 1, reterr);
	if (n == 0 || line[0] != '/')
		return read_lines(le, m, line, n, reterr);
	m->kind = MESSAGE_COMMAND;
	rc = add_text(m, line + 1, n - 1, reterr);
	return rc < 0 ? rc : LINEEDIT_LINE;
}

/* Read one message.  Returns as lineedit_next() does. */
static int
read_message(struct lineedit *le, struct message *m, struct err *reterr)
{
	const char *line;
	char *typed;
	size_t n, trimmed;
	int rc;

	m->text.nbytes = 0;
	if ((rc = add_text(m, "", 0, reterr)) < 0 ||	/* "", not NULL */
	    (rc = lineedit_next(le, first_prompt, &line, &n, reterr)) !=
	    LINEEDIT_LINE)
		return rc;
	trimmed = trim_newlines(line, n);
	if ((typed = strndup(line, trimmed)) == NULL)
		return err_nomem(reterr, "a line of %zu bytes", n);
	if (memchr(line, '\n', trimmed) != NULL) {	/* pasted */
		m->kind = MESSAGE_TEXT;
		rc = add_text(m, line, trimmed, reterr);
		rc = rc < 0 ? rc : LINEEDIT_LINE;
	} else {
		rc = read_rest(le, m, line, trimmed, reterr);
	}
	if (rc == LINEEDIT_LINE && remember(le, m, typed, reterr) < 0)
		rc = -ENOMEM;
	free(typed);
	return rc;
}

int
message_read(struct lineedit *le, struct message *ret, struct err *reterr)
{
	int rc;

	ret->kind = MESSAGE_END;
	while ((rc = read_message(le, ret, reterr)) == LINEEDIT_CLEARED)
		ret->kind = MESSAGE_END;
	return MIN(rc, 0);
}

void
message_free(struct message *m)
{
	source_free(&m->text);
}
