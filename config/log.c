/* config/log.c - writes log lines to stderr, each with one write. */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plain.h"

static const char *log_name = "straddle";
static int log_level = 1;
static log_sink_fn *log_sink;
static _Thread_local const char *thread_name;	/* NULL = log_name */
static _Thread_local int thread_level;

void
log_init(const char *name, int verbose)
{
	log_name = name;
	log_level = verbose;
}

void
log_init_thread(const char *name, int verbose)
{
	thread_name = name;
	thread_level = verbose;
}

static int
level_here(void)
{
	return thread_name != NULL ? thread_level : log_level;
}

/* One write per line, so that lines of several processes do not mix.  Messages
 * quote names and values of files, which may hold anything. */
static void PRINTF_LIKE(2, 0)
log_line(int level, const char *fmt, va_list ap)
{
	char text[1400], line[PLAIN_GROWTH * sizeof(text) + 1];
	size_t n;

	n = log_sink != NULL ? 0 : (size_t)snprintf(text, sizeof(text), "%s: ",
	    thread_name != NULL ? thread_name : log_name);
	vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	if (log_sink != NULL) {
		log_sink(level, text);
		return;
	}
	n = plain_copy(line, sizeof(line), text, strlen(text), PLAIN_ALL);
	line[n] = '\n';
	fwrite(line, 1, n + 1, stderr);
	fflush(stderr);
}

#define LOG_BODY(level)							\
	do {								\
		int saved = errno;					\
		va_list ap;						\
									\
		va_start(ap, fmt);					\
		log_line(level, fmt, ap);				\
		va_end(ap);						\
		errno = saved;						\
	} while (0)

void
log_to(log_sink_fn *fn)
{
	log_sink = fn;
}

void
log_always(const char *fmt, ...)
{
	LOG_BODY(-1);
}

void
log_warnx(const char *fmt, ...)
{
	if (level_here() >= 0)
		LOG_BODY(0);
}

void
log_info(const char *fmt, ...)
{
	if (level_here() >= 1)
		LOG_BODY(1);
}

void
log_debug(const char *fmt, ...)
{
	if (level_here() >= 2)
		LOG_BODY(2);
}

