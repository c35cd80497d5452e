/* config/conf_text.h - prepares the text of a config file for libConfuse.
 * Owns: reading, comments, unterminated quotes and braces.  Called by
 * conf_parse.c and its fuzzer.  Does not know the keys. */
#ifndef CONFIG_CONF_TEXT_H
#define CONFIG_CONF_TEXT_H

#include "err.h"

/* Read the whole file: *ret_len bytes and a NUL, to be freed by the caller.
 * Messages begin with "path: ". */
int
conf_text_read(const char *path, char **ret_text, size_t *ret_len,
    struct err *reterr);

/* Overwrite comments with spaces, keeping line ends, and reject text that
 * libConfuse would silently skip: NUL bytes, stray characters, unterminated
 * comments, strings and sections.  Messages begin with "path:line: ". */
int
conf_text_clean(const char *path, char *text, size_t len, struct err *reterr);

#endif
