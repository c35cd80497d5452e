/* config/log.h - lines on stderr, each with the name of its process.
 * Called by main files and event loops only; everything below them reports
 * through struct err.  Logging preserves errno. */
#ifndef CONFIG_LOG_H
#define CONFIG_LOG_H

#include "base.h"

/* name is kept by pointer: "straddle", "cpu0".  verbose: -1 nothing, 0
 * warnings only (-q), 1 also info, 2 also debug (-v). */
void log_init(const char *name, int verbose);

void log_warnx(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_info(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_debug(const char *fmt, ...) PRINTF_LIKE(1, 2);

#endif
