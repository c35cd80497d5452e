/* config/conf_text.h - a config file as text that libConfuse counts right.
 * Owns: reading, comments, unclosed quotes and braces.  Called by
 * conf_parse.c and its fuzzer.  Knows no key. */
#ifndef CONFIG_CONF_TEXT_H
#define CONFIG_CONF_TEXT_H

#include "err.h"

/* The whole file, NUL behind it, ret_len bytes; free() it.  Messages begin
 * with "path: ". */
int
conf_text_read(const char *path, char **ret_text, size_t *ret_len,
    struct err *reterr);

/* Overwrite comments with blanks, line ends kept, and refuse what libConfuse
 * would skip in silence: NUL bytes, stray signs, comments, strings and
 * sections without an end.  Messages begin with "path:line: ". */
int
conf_text_clean(const char *path, char *text, size_t len, struct err *reterr);

#endif
