/* config/plain.h - makes untrusted text safe to print.
 * Text from a model, a file, a worker or the command line may hold bytes that a
 * terminal obeys: escape sequences, or marks that reorder a line.  Everything
 * that prints such text for people passes it through here; JSON and data that
 * goes to a file or a pipe stay exact.  Owns nothing.
 *
 * Escaped are C0, DEL and C1 controls, bytes that are not UTF-8, marks of
 * direction, and separators of lines and paragraphs: \n, \t, \r, \x1b, \u202e.
 * Other text, with its backslashes, is unchanged. */
#ifndef CONFIG_PLAIN_H
#define CONFIG_PLAIN_H

#include <stdio.h>

#include "base.h"

/* A byte of text needs at most 4 of output. */
enum { PLAIN_GROWTH = 4, PLAIN_LEN = 4200 };

/* PLAIN_LINES keeps newlines and tabs, for text of several lines. */
enum plain_keep { PLAIN_ALL, PLAIN_LINES };

/* Length of the character that text[n] begins with, 0 = it must be escaped. */
unsigned plain_len(const char *text, size_t n);

/* Write text[n] to buf, which has len bytes, with a NUL; it is cut off at a whole
 * character if it does not fit.  Returns the bytes before the NUL. */
size_t plain_copy(char *buf, size_t len, const char *text, size_t n,
    enum plain_keep keep);

/* The same for a string; returns buf. */
const char *plain_string(char *buf, size_t len, const char *text);

/* text, for the arguments of a printf(); it lives until the end of the block. */
#define PLAIN(text)	plain_string((char[PLAIN_LEN]){ 0 }, PLAIN_LEN, (text))

/* Print text[n] of any length. */
void plain_print(FILE *fp, const char *text, size_t n);

/* For the text of JSON, in which controls can only be inside strings: \u escapes
 * for everything above that a terminal obeys, so that the value is the same.
 * json is UTF-8 as Jansson dumps it.  Returns new memory, NULL without any. */
char *plain_json(const char *json);

#endif
