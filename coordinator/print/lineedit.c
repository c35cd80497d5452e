/* coordinator/print/lineedit.c - reads the lines that a user types. */
#include "lineedit.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#include "line_history.h"

enum { READ_BYTES = 4096, MAX_LINE = 1 << 24, PROMPT_LEN = 256 };

struct lineedit {
	int watch_fd, sigint_fd;
	/* Bytes [at, end) of buf are not consumed. */
	char *buf;		/* [cap] */
	size_t at, end, cap;
	size_t most;		/* bytes of a line */
	int eof;
	/* A terminal. */
	EditLine *el;		/* NULL: none */
	FILE *out;		/* where it draws */
	History *history;
	struct line_history *file;	/* NULL: the history is not kept */
	wchar_t prompt[PROMPT_LEN];
	char *line;		/* the last one */
	int job_fd;		/* signals of the window and of Ctrl-Z */
	int has_codes;		/* it knows escape sequences */
	int interrupted;	/* watch_fd is readable */
	int cleared;		/* Ctrl-C ended the line */
	unsigned nclears;	/* times, without a key between them */
};

enum { INPUT_READY, INPUT_INTERRUPT, INPUT_JOB };

/* Wait for stdin, or one of the signals.  -EINTR: watch_fd is readable. */
static int
wait_input(const struct lineedit *le)
{
	struct pollfd p[4] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = le->watch_fd, .events = POLLIN },
		{ .fd = le->sigint_fd, .events = POLLIN },
		{ .fd = le->job_fd, .events = POLLIN },
	};

	while (poll(p, NITEMS(p), -1) < 0)
		if (errno != EINTR)
			return -errno;
	if (p[1].revents != 0)
		return -EINTR;
	if (p[2].revents != 0)
		return INPUT_INTERRUPT;
	return p[3].revents != 0 ? INPUT_JOB : INPUT_READY;
}

/* --- a terminal: what it shows --- */

static wchar_t *
prompt(EditLine *el)
{
	struct lineedit *le;

	el_get(el, EL_CLIENTDATA, &le);
	return le->prompt;
}

/* libedit follows a null pointer when a prompt is no text of the locale: what is
 * none becomes question marks.  A longer prompt is cut. */
static void
set_prompt(struct lineedit *le, const char *text)
{
	mbstate_t state = { 0 };
	size_t i, len;

	for (i = 0; i < PROMPT_LEN - 1 && *text != '\0'; i++, text += len) {
		len = mbrtowc(&le->prompt[i], text, strlen(text), &state);
		if (len == (size_t)-1 || len == (size_t)-2) {
			le->prompt[i] = L'?';
			len = 1;
			state = (mbstate_t){ 0 };
		}
	}
	le->prompt[i] = L'\0';
}

static void
send_code(const struct lineedit *le, const char *code)
{
	if (le->has_codes)
		fputs(code, le->out);
	fflush(le->out);
}

/* A terminal with this mode marks the start and the end of a pasted text. */
static void
mark_pastes(const struct lineedit *le, int yes)
{
	send_code(le, yes ? "\033[?2004h" : "\033[?2004l");
}

/* Columns of a character as libedit draws it; col: where it begins. */
static unsigned
columns_of(wchar_t c, unsigned col)
{
	int n = wcwidth(c);

	if (c == L'\t')
		return 8 - col % 8;
	if (c < 0x20 || c == 0x7f)
		return 2;		/* ^X */
	return n >= 0 ? (unsigned)n : c > 0xffff ? 8 : 7;	/* \U+XXXX */
}

/* Rows that the prompt and the line's text up to `end` go down in a window of
 * this width. */
static unsigned
rows_until(const struct lineedit *le, const wchar_t *end, unsigned width)
{
	const wchar_t *p;
	unsigned col = 0, row = 0, n;

	for (p = le->prompt; *p != L'\0'; p++)
		col += columns_of(*p, col);
	p = el_wline(le->el)->buffer;
	width = MAX(width, 1);
	for (row += col / width, col %= width; p < end; p++) {
		n = *p == L'\n' ? width : columns_of(*p, col);
		if (*p == L'\n' || col + n > width) {
			row++;
			col = *p == L'\n' ? 0 : n;
		} else if ((col += n) == width) {
			row++;
			col = 0;
		}
	}
	return row;
}

static unsigned
window_width(const struct lineedit *le)
{
	struct winsize w;

	return ioctl(fileno(le->out), TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ?
	    w.ws_col : 80;
}

/* Draw the line again, `up` rows above the cursor. */
static void
redraw(struct lineedit *le, unsigned up)
{
	if (le->has_codes) {
		fputc('\r', le->out);
		if (up > 0)
			fprintf(le->out, "\033[%uA", up);
		fputs("\033[J", le->out);
	} else {
		fputc('\n', le->out);
	}
	el_set(le->el, EL_REFRESH);
}

/* A terminal may fold the lines of a window that changes its width, or cut them
 * off: take the smaller number of rows, so that nothing else is drawn over. */
static void
follow_window(struct lineedit *le)
{
	const wchar_t *cursor = el_wline(le->el)->cursor;
	unsigned before, after;
	int width = 80;

	el_get(le->el, EL_GETTC, "co", &width, NULL);
	before = rows_until(le, cursor, (unsigned)MAX(width, 1));
	el_resize(le->el);
	after = rows_until(le, cursor, window_width(le));
	redraw(le, MIN(before, after));
}

/* Leave the line as it is and go below it. */
static void
leave_line(struct lineedit *le, const char *mark)
{
	const LineInfoW *li = el_wline(le->el);
	unsigned width = window_width(le), n;

	n = rows_until(le, li->lastchar, width) -
	    rows_until(le, li->cursor, width);
	while (n-- > 0)
		fputc('\n', le->out);
	fprintf(le->out, "%s\n", mark);
	fflush(le->out);
}

/* --- a terminal: signals --- */

static void
job_signals(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGWINCH);
	sigaddset(ret, SIGTSTP);
}

/* Ctrl-Z: stop as if no editor was there.  The terminal has sent the signal to
 * the workers, too. */
static void
stop_here(struct lineedit *le)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	leave_line(le, "");
	mark_pastes(le, 0);
	el_set(le->el, EL_PREP_TERM, 0);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);	/* stops in here */
	sigprocmask(SIG_BLOCK, &stop, NULL);
	el_set(le->el, EL_PREP_TERM, 1);
	mark_pastes(le, 1);
	el_resize(le->el);
	redraw(le, 0);
}

static void
take_job_signals(struct lineedit *le)
{
	struct signalfd_siginfo si;

	while (read(le->job_fd, &si, sizeof(si)) == sizeof(si))
		if (si.ssi_signo == SIGTSTP)
			stop_here(le);
		else
			follow_window(le);
}

/* Ctrl-C: forget the line, and what has been typed after it. */
static void
take_interrupt(struct lineedit *le)
{
	struct signalfd_siginfo si;

	while (read(le->sigint_fd, &si, sizeof(si)) == sizeof(si))
		;
	le->at = le->end = 0;
	le->cleared = 1;
	le->nclears++;
	leave_line(le, "^C");
}

/* --- a terminal: keys --- */

/* The next byte of stdin; -1: the end, or a signal that ends the line. */
static int
read_byte(struct lineedit *le)
{
	ssize_t got;
	int rc;

	while (le->at == le->end) {
		if ((rc = wait_input(le)) == INPUT_JOB) {
			take_job_signals(le);
			continue;
		}
		if (rc == INPUT_INTERRUPT)
			take_interrupt(le);
		else if (rc < 0)
			le->interrupted = 1;
		if (rc != INPUT_READY)
			return -1;
		got = read(STDIN_FILENO, le->buf, READ_BYTES);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return -1;
		le->at = 0;
		le->end = (size_t)got;
	}
	le->nclears = 0;
	return (unsigned char)le->buf[le->at++];
}

/* Read one character for libedit.  Its own reader would not notice signals, which
 * are blocked and read from a descriptor.  Bytes that are no character are
 * U+FFFD: an end of input would end the conversation.  The byte that breaks off
 * a character begins the next one: it may be Enter, or the end of a paste. */
static int
read_char(EditLine *el, wchar_t *ret)
{
	struct lineedit *le;
	mbstate_t state = { 0 };
	unsigned n = 0;
	int byte;
	char c;

	el_get(el, EL_CLIENTDATA, &le);
	for (;;) {
		if ((byte = read_byte(le)) < 0)
			return le->interrupted || le->cleared ? -1 : 0;
		c = (char)byte;
		n++;
		switch (mbrtowc(ret, &c, 1, &state)) {
		case (size_t)-2:	/* more is to come */
			continue;
		case (size_t)-1:
			le->at -= n > 1;
			*ret = 0xfffd;
			return 1;
		default:
			return 1;
		}
	}
}

/* Insert a pasted text, up to its end mark, which the terminal sends.  One that
 * is too long is read to its end, too: the rest would be taken for typed
 * lines. */
static unsigned char
insert_paste(EditLine *el, int key)
{
	static const wchar_t mark[] = L"\033[201~";
	const size_t nmark = wcslen(mark);
	struct lineedit *le;
	wchar_t *text = NULL, *grown, c;
	size_t n = 0, cap = 0;
	int rc, is_long = 0;

	(void)key;
	el_get(el, EL_CLIENTDATA, &le);
	while ((rc = el_wgetc(el, &c)) == 1) {
		if (n + 2 > cap) {
			cap = MAX(1024, 2 * cap);
			if ((grown = reallocarray(text, cap,
			    sizeof(*text))) == NULL)
				break;
			text = grown;
		}
		/* A terminal sends the key Enter for a newline. */
		if (c != L'\0')
			text[n++] = c == L'\r' ? L'\n' : c;
		if (n > MAX_LINE) {
			is_long = 1;
			wmemmove(text, text + n - nmark, nmark);
			n = nmark;
		}
		text[n] = L'\0';
		if (n >= nmark && wmemcmp(text + n - nmark, mark, nmark) == 0)
			break;
	}
	if (rc == 1 && is_long) {
		leave_line(le, "[a pasted text of more than 16 million "
		    "characters is left out: /load reads a file]");
	} else if (rc == 1 && n >= nmark) {
		text[n - nmark] = L'\0';
		el_winsertstr(el, text);
	}
	free(text);
	return rc != 1 ? CC_EOF : is_long ? CC_REDISPLAY : CC_REFRESH;
}

/* --- a terminal: lines --- */

static void
add_history(void *arg, const char *text)
{
	struct lineedit *le = arg;
	HistEvent ev;

	if (mbstowcs(NULL, text, 0) != (size_t)-1)
		history(le->history, &ev, H_ENTER, text);
}

void
lineedit_remember(struct lineedit *le, const char *text)
{
	if (le->el == NULL || *text == '\0')
		return;
	add_history(le, text);
	if (le->file != NULL)
		line_history_add(le->file, text);
}

static int
open_editor(struct lineedit *le)
{
	const char *term = secure_getenv("TERM");
	sigset_t jobs;
	HistEvent ev;

	setlocale(LC_CTYPE, "");
	if (MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
	/* With stdout elsewhere, only answers go there. */
	le->out = isatty(STDOUT_FILENO) ? stdout : stderr;
	le->has_codes = term != NULL && strcmp(term, "dumb") != 0 &&
	    isatty(fileno(le->out));
	job_signals(&jobs);
	if ((le->job_fd = signalfd(-1, &jobs, SFD_CLOEXEC |
	    SFD_NONBLOCK)) < 0)
		return -errno;
	if ((le->el = el_init("straddle", stdin, le->out, stderr)) == NULL ||
	    (le->history = history_init()) == NULL)
		return -ENOMEM;
	history(le->history, &ev, H_SETSIZE, HISTORY_LINES);
	history(le->history, &ev, H_SETUNIQUE, 1);
	el_set(le->el, EL_CLIENTDATA, le);
	el_wset(le->el, EL_PROMPT, prompt);
	el_set(le->el, EL_EDITOR, "emacs");
	el_set(le->el, EL_HIST, history, le->history);
	el_set(le->el, EL_GETCFN, read_char);
	el_source(le->el, NULL);		/* ~/.editrc */
	/* el_set() would copy the strings and never free them. */
	el_wset(le->el, EL_ADDFN, L"straddle-paste", L"Insert a pasted text",
	    insert_paste);
	el_set(le->el, EL_BIND, "\\033[200~", "straddle-paste", NULL);
	el_set(le->el, EL_BIND, "-a", "\\033[200~", "straddle-paste", NULL);
	le->file = line_history_open(add_history, le);
	return 0;
}

static int
next_edited(struct lineedit *le, const char **ret, size_t *ret_n)
{
	const char *line;
	sigset_t jobs, before;
	size_t n;
	int count = 0;

	job_signals(&jobs);
	sigprocmask(SIG_BLOCK, &jobs, &before);
	le->cleared = 0;
	/* libedit prints its prompt before it sets the terminal's mode.  Input
	 * that arrives in between, such as an end of file, would stay in the
	 * terminal's line buffer: set the mode first. */
	el_set(le->el, EL_PREP_TERM, 1);
	el_resize(le->el);
	mark_pastes(le, 1);
	line = el_gets(le->el, &count);
	mark_pastes(le, 0);
	el_set(le->el, EL_PREP_TERM, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (le->interrupted)
		return -EINTR;
	if (le->cleared)
		return le->nclears > 1 ? LINEEDIT_END : LINEEDIT_CLEARED;
	if (line == NULL || count <= 0)
		return LINEEDIT_END;
	n = strlen(line);
	n -= n > 0 && line[n - 1] == '\n';
	free(le->line);
	if ((le->line = strndup(line, n)) == NULL)
		return -ENOMEM;
	*ret = le->line;
	*ret_n = n;
	return LINEEDIT_LINE;
}

/* --- not a terminal --- */

/* Make room after the bytes that are not consumed. */
static int
make_room(struct lineedit *le)
{
	char *grown;

	if (le->at > 0)
		memmove(le->buf, le->buf + le->at, le->end - le->at);
	le->end -= le->at;
	le->at = 0;
	if (le->end + READ_BYTES < le->cap)
		return 0;
	if ((grown = realloc(le->buf, le->cap * 2)) == NULL)
		return -ENOMEM;
	le->buf = grown;
	le->cap *= 2;
	return 0;
}

/* The end of a line that stays when its middle is cut out: quotes, a backslash, a
 * carriage return. */
enum { TAIL_BYTES = 4 };

/* Cut out what is too much of a line that ends at `end`, or that has come up to
 * there.  Returns its new end. */
static char *
cut_line(struct lineedit *le, char *end)
{
	char *to = le->buf + le->at + le->most + TAIL_BYTES;

	if (end - TAIL_BYTES <= to)
		return end;
	memmove(to, end - TAIL_BYTES, (size_t)(le->buf + le->end - end) +
	    TAIL_BYTES);
	le->end -= (size_t)(end - TAIL_BYTES - to);
	return to + TAIL_BYTES;
}

static int
next_plain(struct lineedit *le, const char **ret, size_t *ret_n)
{
	size_t seen = 0;		/* bytes without a newline */
	ssize_t got;
	char *nl;
	int rc;

	while ((nl = memchr(le->buf + le->at + seen, '\n', le->end - le->at -
	    seen)) == NULL && !le->eof) {
		seen = (size_t)(cut_line(le, le->buf + le->end) - le->buf) -
		    le->at;
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
	nl = cut_line(le, nl);
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
lineedit_open(int watch_fd, int sigint_fd, size_t most,
    struct lineedit **ret, struct err *reterr)
{
	struct lineedit *le = calloc(1, sizeof(*le));
	int rc = -ENOMEM;

	if (le != NULL) {
		le->watch_fd = watch_fd;
		le->most = most;
		le->sigint_fd = le->job_fd = -1;
		le->cap = 2 * READ_BYTES;
		if ((le->buf = malloc(le->cap)) != NULL)
			rc = 0;
	}
	if (rc == 0 && isatty(STDIN_FILENO)) {
		le->sigint_fd = sigint_fd;
		rc = open_editor(le);
	}
	if (rc < 0) {
		lineedit_close(le);
		return rc == -ENOMEM ? err_nomem(reterr, "the line editor") :
		    err_set(reterr, ERR_RUN, rc, "the line editor: signalfd: "
		    "%s", strerror(-rc));
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
	if (le->job_fd >= 0)
		close(le->job_fd);
	line_history_close(le->file);
	free(le->line);
	free(le->buf);
	free(le);
}

int
lineedit_is_terminal(const struct lineedit *le)
{
	return le->el != NULL;
}

int
lineedit_next(struct lineedit *le, const char *prompt_text, const char **ret,
    size_t *ret_n, struct err *reterr)
{
	int rc;

	if (le->el != NULL)
		set_prompt(le, prompt_text);
	rc = le->el != NULL ? next_edited(le, ret, ret_n) :
	    next_plain(le, ret, ret_n);
	if (rc == -ENOMEM)
		return err_nomem(reterr, "a line of stdin");
	if (rc == -EINTR)
		return err_set(reterr, ERR_RUN, rc, "interrupted by a signal");
	return rc < 0 ? err_set(reterr, ERR_RUN, rc, "stdin: %s",
	    strerror(-rc)) : rc;
}
