/* config/words.h - a text of parts: "embd+0-1+head".
 * Called by whoever puts what it says together piece by piece. */
#ifndef CONFIG_WORDS_H
#define CONFIG_WORDS_H

#include <stdarg.h>
#include <stddef.h>

#include "base.h"

/* Append to text, which has room for len bytes in all: `between`, unless it is
 * empty yet, and the words.  What does not fit is cut off. */
void words_add(char *text, size_t len, const char *between,
    const char *fmt, ...) PRINTF_LIKE(4, 5);
void words_vadd(char *text, size_t len, const char *between,
    const char *fmt, va_list ap) PRINTF_LIKE(4, 0);

#endif
