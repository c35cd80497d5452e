/* coordinator/text/utf8.h - where UTF-8 characters begin and end.
 * Called by tokenizers and the detokenizer.  Well-formed as in Unicode table
 * 3-7: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef COORDINATOR_TEXT_UTF8_H
#define COORDINATOR_TEXT_UTF8_H

#include "config/base.h"

/* Bytes (1 to 4) of the well-formed character that starts s; 0 when the first
 * of the n bytes starts none. */
unsigned utf8_len(const uint8_t *s, size_t n);

/* How many bytes (0 to 3) at the end of s are the beginning of a character
 * that more bytes could complete. */
unsigned utf8_unfinished(const uint8_t *s, size_t n);

#endif
