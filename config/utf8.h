/* config/utf8.h - finds the borders of UTF-8 characters.
 * Owns nothing.  Called by plain.c, the tokenizer's parts and print/.
 * Well-formed means Unicode table 3-7: no surrogates, no overlong forms, nothing
 * above U+10FFFF. */
#ifndef CONFIG_UTF8_H
#define CONFIG_UTF8_H

#include "base.h"

/* U+FFFD, which stands for bytes that are not UTF-8 where those can not be. */
#define UTF8_REPLACEMENT	"\xef\xbf\xbd"

/* Length, 1 to 4, of the well-formed character that s[n] begins with; 0 = it
 * begins with none. */
unsigned utf8_len(const uint8_t *s, size_t n);

/* Number of bytes, 0 to 3, at the end of s[n] that begin a character which more
 * bytes could complete. */
unsigned utf8_unfinished(const uint8_t *s, size_t n);

#endif
