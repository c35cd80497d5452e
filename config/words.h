/* config/words.h - builds a text piece by piece: "embd+0-1+head".
 * Called by everything that prints lists. */
#ifndef CONFIG_WORDS_H
#define CONFIG_WORDS_H

#include <stdarg.h>
#include <stddef.h>

#include "base.h"

/* Append to text, a buffer of len bytes: `between`, unless text is empty, then
 * the formatted words.  Text that does not fit is cut off. */
void words_add(char *text, size_t len, const char *between,
    const char *fmt, ...) PRINTF_LIKE(4, 5);
void words_vadd(char *text, size_t len, const char *between,
    const char *fmt, va_list ap) PRINTF_LIKE(4, 0);

#endif
