/* coordinator/print/status.c - the progress of a long task. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/event.h"

#define DRAW_NS		UINT64_C(200000000)
#define LINE_NS		UINT64_C(10000000000)

int
status_on_terminal(void)
{
	const char *term = secure_getenv("TERM");

	return isatty(STDERR_FILENO) &&
	    (term == NULL || strcmp(term, "dumb") != 0);
}

void
status_init(struct status *st, int on)
{
	*st = (struct status){ .on = on, .tty = status_on_terminal() };
	st->t0_ns = event_now_ns();
	st->next_ns = st->t0_ns + (st->tty ? DRAW_NS : LINE_NS);
}

int
status_is_due(const struct status *st)
{
	return st->on && event_now_ns() >= st->next_ns;
}

double
status_seconds(const struct status *st)
{
	return (double)(event_now_ns() - st->t0_ns) / 1e9;
}

void
status_print(struct status *st, double part, const char *fmt, ...)
{
	double s = status_seconds(st);
	char text[160], left[32] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (part > 0)
		snprintf(left, sizeof(left), ", %.0f s left", s / part - s);
	fprintf(stderr, "%s%s%s%s", st->tty ? "\r\033[K" : "", text, left,
	    st->tty ? "" : "\n");
	st->drawn = st->tty;
	st->next_ns = event_now_ns() + (st->tty ? DRAW_NS : LINE_NS);
}

void
status_erase(struct status *st)
{
	if (st->drawn)
		fputs("\r\033[K", stderr);
	st->drawn = 0;
}
