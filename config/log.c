/* config/log.c - writes log lines to stderr, each with one write. */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *log_name = "straddle";
static int log_level = 1;

void
log_init(const char *name, int verbose)
{
	log_name = name;
	log_level = verbose;
}

/* One write per line, so that lines of several processes do not mix. */
static void PRINTF_LIKE(1, 0)
log_line(const char *fmt, va_list ap)
{
	char line[1400];
	size_t n;

	n = (size_t)snprintf(line, sizeof(line), "%s: ", log_name);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	n = strlen(line);
	line[n] = '\n';
	fwrite(line, 1, n + 1, stderr);
	fflush(stderr);
}

#define LOG_BODY()							\
	do {								\
		int saved = errno;					\
		va_list ap;						\
									\
		va_start(ap, fmt);					\
		log_line(fmt, ap);					\
		va_end(ap);						\
		errno = saved;						\
	} while (0)

void
log_warnx(const char *fmt, ...)
{
	if (log_level >= 0)
		LOG_BODY();
}

void
log_info(const char *fmt, ...)
{
	if (log_level >= 1)
		LOG_BODY();
}

void
log_debug(const char *fmt, ...)
{
	if (log_level >= 2)
		LOG_BODY();
}

