/* coordinator/print/lineedit.c - reads the lines that a user types. */
#include "lineedit.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { READ_BYTES = 4096, MAX_LINE = 1 << 24, HISTORY_LINES = 1000 };

struct lineedit {
	int watch[2];
	/* A terminal. */
	EditLine *el;		/* NULL: none */
	History *history;
	int interrupted;
	/* Otherwise: bytes [at, end) of buf are not consumed. */
	char *buf;		/* [cap] */
	size_t at, end, cap;
	int eof;
};

/* 1: stdin is readable; -EINTR: a watched descriptor is. */
static int
wait_input(const struct lineedit *le)
{
	struct pollfd p[3] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = le->watch[0], .events = POLLIN },
		{ .fd = le->watch[1], .events = POLLIN },
	};

	while (poll(p, 3, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return p[1].revents != 0 || p[2].revents != 0 ? -EINTR : 1;
}

/* --- a terminal --- */

static const char *
prompt(EditLine *el)
{
	(void)el;
	return "> ";
}

/* Read one character for libedit.  Its own reader would not notice signals, which
 * are blocked and read from a descriptor. */
static int
read_char(EditLine *el, wchar_t *ret)
{
	struct lineedit *le;
	mbstate_t state = { 0 };
	unsigned i;
	char c;

	el_get(el, EL_CLIENTDATA, &le);
	for (i = 0; i < MB_CUR_MAX; i++) {
		if (wait_input(le) < 0) {
			le->interrupted = 1;
			return -1;
		}
		if (read(STDIN_FILENO, &c, 1) != 1)
			return 0;
		switch (mbrtowc(ret, &c, 1, &state)) {
		case (size_t)-2:	/* more is to come */
			continue;
		case (size_t)-1:
			return 0;
		default:
			return 1;
		}
	}
	return 0;
}

static int
open_editor(struct lineedit *le)
{
	HistEvent ev;

	setlocale(LC_CTYPE, "");
	if (MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
	if ((le->el = el_init("straddle", stdin, stdout, stderr)) == NULL ||
	    (le->history = history_init()) == NULL)
		return -ENOMEM;
	history(le->history, &ev, H_SETSIZE, HISTORY_LINES);
	history(le->history, &ev, H_SETUNIQUE, 1);
	el_set(le->el, EL_CLIENTDATA, le);
	el_set(le->el, EL_PROMPT, prompt);
	el_set(le->el, EL_EDITOR, "emacs");
	el_set(le->el, EL_HIST, history, le->history);
	el_set(le->el, EL_GETCFN, read_char);
	el_source(le->el, NULL);		/* ~/.editrc */
	return 0;
}

static int
next_edited(struct lineedit *le, const char **ret, size_t *ret_n)
{
	HistEvent ev;
	const char *line;
	size_t n;
	int count;

	/* libedit prints its prompt before it sets the terminal's mode.  Input
	 * that arrives in between, such as an end of file, would stay in the
	 * terminal's line buffer: set the mode first. */
	el_set(le->el, EL_PREP_TERM, 1);
	line = el_gets(le->el, &count);
	if (le->interrupted)
		return -EINTR;
	if (line == NULL || count <= 0)
		return 0;
	n = strcspn(line, "\n");
	free(le->buf);
	if ((le->buf = strndup(line, n)) == NULL)
		return -ENOMEM;
	if (n > 0)
		history(le->history, &ev, H_ENTER, le->buf);
	*ret = le->buf;
	*ret_n = n;
	return 1;
}

/* --- not a terminal --- */

/* Make room after the bytes that are not consumed. */
static int
make_room(struct lineedit *le)
{
	char *grown;

	memmove(le->buf, le->buf + le->at, le->end - le->at);
	le->end -= le->at;
	le->at = 0;
	if (le->end + READ_BYTES < le->cap)
		return 0;
	if (le->cap >= MAX_LINE)
		return -EFBIG;
	if ((grown = realloc(le->buf, le->cap * 2)) == NULL)
		return -ENOMEM;
	le->buf = grown;
	le->cap *= 2;
	return 0;
}

static int
next_plain(struct lineedit *le, const char **ret, size_t *ret_n)
{
	ssize_t got;
	char *nl;
	int rc;

	while ((nl = memchr(le->buf + le->at, '\n', le->end - le->at)) ==
	    NULL && !le->eof) {
		if ((rc = make_room(le)) < 0 || (rc = wait_input(le)) < 0)
			return rc;
		got = read(STDIN_FILENO, le->buf + le->end, READ_BYTES);
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		le->eof = got == 0;
		le->end += (size_t)MAX(got, 0);
	}
	if (le->at == le->end)
		return 0;
	if (nl == NULL)			/* the last line, without a newline */
		nl = le->buf + le->end;
	*ret = le->buf + le->at;
	le->at = MIN((size_t)(nl - le->buf) + 1, le->end);
	if (nl > *ret && nl[-1] == '\r')
		nl--;
	*nl = '\0';
	*ret_n = (size_t)(nl - *ret);
	return 1;
}

/* --- both --- */

int
lineedit_open(int watch_fd, int watch_fd2, struct lineedit **ret,
    struct err *reterr)
{
	struct lineedit *le = calloc(1, sizeof(*le));
	int rc = -ENOMEM;

	if (le != NULL) {
		le->watch[0] = watch_fd;
		le->watch[1] = watch_fd2;
		le->cap = 2 * READ_BYTES;
		if (isatty(STDIN_FILENO))
			rc = open_editor(le);
		else if ((le->buf = malloc(le->cap)) != NULL)
			rc = 0;
	}
	if (rc < 0) {
		lineedit_close(le);
		return err_nomem(reterr, "the line editor");
	}
	*ret = le;
	return 0;
}

void
lineedit_close(struct lineedit *le)
{
	if (le == NULL)
		return;
	if (le->el != NULL)
		el_end(le->el);
	if (le->history != NULL)
		history_end(le->history);
	free(le->buf);
	free(le);
}

int
lineedit_is_terminal(const struct lineedit *le)
{
	return le->el != NULL;
}

int
lineedit_next(struct lineedit *le, const char **ret, size_t *ret_n,
    struct err *reterr)
{
	int rc = le->el != NULL ? next_edited(le, ret, ret_n) :
	    next_plain(le, ret, ret_n);

	if (rc == -EFBIG)
		return err_set(reterr, ERR_USAGE, rc, "stdin: a line of more "
		    "than %d bytes", MAX_LINE);
	if (rc == -EINTR)
		return err_set(reterr, ERR_RUN, rc, "interrupted by a signal");
	return rc < 0 ? err_set(reterr, ERR_RUN, rc, "stdin: %s",
	    strerror(-rc)) : rc;
}
