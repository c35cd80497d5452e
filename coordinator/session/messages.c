/* coordinator/session/messages.c - the pipe of a worker's messages: lines,
 * limits. */
#include "messages.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "config/log.h"
#include "config/plain.h"
#include "config/utf8.h"
#include "shm/event.h"

#define LINE_NS		(UINT64_C(1000000000) / MESSAGES_PER_S)
#define BURST_NS	(LINE_NS * MESSAGES_BURST)

/* Lines of all workers that were shown under MESSAGES_ALL. */
static unsigned shown;

static void
log_message(const char *session, const char *text)
{
	if (session != NULL)
		log_always("session %s: %s", session, text);
	else
		log_always("%s", text);
}

void
messages_init(struct messages *m, const char *session, const char *speaker,
    messages_show_fn *show)
{
	memset(m, 0, sizeof(*m));
	m->session = session;
	m->speaker = speaker;
	m->fd = -1;
	m->show = show;
	m->credit_ns = BURST_NS;
}

/* --- limits --- */

static void
refill(struct messages *m, uint64_t now_ns)
{
	if (m->checked_ns != 0 && now_ns > m->checked_ns)
		m->credit_ns = MIN(BURST_NS, m->credit_ns +
		    MIN(now_ns - m->checked_ns, BURST_NS));
	m->checked_ns = now_ns;
}

/* 1 = one more line may be shown, which is then counted. */
static int
take_line(struct messages *m)
{
	if (m->at_end) {
		if (m->last == 0)
			return 0;
		m->last--;
		return 1;
	}
	if (shown >= MESSAGES_ALL || m->credit_ns < LINE_NS *
	    (m->leaves_out ? MESSAGES_RESUME : 1))
		return 0;
	m->credit_ns -= LINE_NS;
	shown++;
	return 1;
}

/* --- lines --- */

static void
say_left_out(struct messages *m)
{
	char text[160];

	if (m->lines_out == 0)
		return;
	snprintf(text, sizeof(text), "%s wrote too much: at least %"
	    PRIu64 " line%s, of %" PRIu64 " bytes, left out", m->speaker,
	    m->lines_out, m->lines_out == 1 ? "" : "s", m->bytes_out);
	m->show(m->session, text);
	m->lines_out = m->bytes_out = 0;
}

/* Show the first n bytes of the line, and keep the others. */
static void
show_piece(struct messages *m, size_t n)
{
	char text[64 + PLAIN_GROWTH * MESSAGES_LINE];
	size_t len;

	if (n > 0 && take_line(m)) {
		say_left_out(m);
		m->leaves_out = 0;
		len = (size_t)snprintf(text, 64, "%s wrote: ", m->speaker);
		plain_copy(text + len, sizeof(text) - len, m->line, n,
		    PLAIN_ALL);
		m->show(m->session, text);
	} else if (n > 0) {
		m->leaves_out = 1;
		m->lines_out++;
		m->bytes_out += n;
	}
	m->n -= n;
	memmove(m->line, m->line + n, m->n);
}

void
messages_add(struct messages *m, uint64_t now_ns, const char *text, size_t n)
{
	const char *end = text + n;

	refill(m, now_ns);
	for (; text < end; text++) {
		if (*text == '\n') {
			show_piece(m, m->n);
			continue;
		}
		m->line[m->n++] = *text;
		/* A character is not cut. */
		if (m->n == sizeof(m->line))
			show_piece(m, m->n - utf8_unfinished(
			    (const uint8_t *)m->line, m->n));
	}
}

void
messages_start_last(struct messages *m)
{
	if (!m->at_end)
		m->last = MESSAGES_LAST;
	m->at_end = 1;
}

void
messages_finish(struct messages *m, uint64_t now_ns)
{
	messages_add(m, now_ns, "\n", 1);
	say_left_out(m);
}

/* --- the pipe --- */

int
messages_open(struct messages *ret, const char *session, const char *speaker,
    int *ret_fd, struct err *reterr)
{
	int p[2], size;

	messages_init(ret, session, speaker, log_message);
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(reterr, ERR_RUN, -errno, "pipe: %s",
		    strerror(errno));
	/* Refused where a user has many pipes: then it keeps its size. */
	if ((size = fcntl(p[1], F_SETPIPE_SZ, MESSAGES_PIPE_BYTES)) < 0)
		size = fcntl(p[1], F_GETPIPE_SZ);
	ret->pipe_bytes = size > 0 ? (size_t)size : MESSAGES_PIPE_BYTES;
	ret->fd = p[0];
	*ret_fd = p[1];
	return 0;
}

void
messages_read(struct messages *m)
{
	size_t left = m->pipe_bytes;
	char buf[4096];
	ssize_t n;

	while (m->fd >= 0 && left > 0 && (n = read(m->fd, buf,
	    MIN(left, sizeof(buf)))) > 0) {
		messages_add(m, event_now_ns(), buf, (size_t)n);
		left -= (size_t)n;
	}
}

void
messages_read_last(struct messages *m)
{
	if (m->fd < 0)
		return;
	messages_start_last(m);
	messages_read(m);
	messages_finish(m, event_now_ns());
}

void
messages_close(struct messages *m)
{
	messages_read_last(m);
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}
