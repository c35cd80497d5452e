/* config/log.h - log lines on stderr, each prefixed with its process's name.
 * Called by main files and event loops, and for notes, retries and the states of
 * sessions.  Errors are reported through struct err, not logged where they are
 * found.  Logging preserves errno, and escapes what a terminal would obey
 * (plain.h). */
#ifndef CONFIG_LOG_H
#define CONFIG_LOG_H

#include "base.h"

/* name ("straddle", "cpu0") is kept by pointer.  verbose: -1 = nothing of
 * its own, 0 = warnings (-q), 1 = also info, 2 = also debug (-v). */
void log_init(const char *name, int verbose);

/* The same for the calling thread alone, in place of the process's. */
void log_init_thread(const char *name, int verbose);

/* Call fn with each line that would be logged and its level (as verbose), instead
 * of writing it: a process that has no terminal hands its lines to another. */
typedef void log_sink_fn(int level, const char *text);
void log_to(log_sink_fn *fn);

/* Whatever verbose is: what another process wrote. */
void log_always(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_warnx(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_info(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_debug(const char *fmt, ...) PRINTF_LIKE(1, 2);

#endif
