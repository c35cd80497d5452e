/* coordinator/text/jinja/unicode.h - properties and case of characters, as
 * Python's str has them.
 * Owns: tables.  Called by the string methods, filters and the lexer.
 * Bytes that are no UTF-8 count as a character of one byte each. */
#ifndef COORDINATOR_TEXT_JINJA_UNICODE_H
#define COORDINATOR_TEXT_JINJA_UNICODE_H

#include "config/base.h"

enum {
	UC_PRINT = 1, UC_ALPHA = 2, UC_DIGIT = 4, UC_NUMERIC = 8,
	UC_DECIMAL = 16, UC_SPACE = 32
};

struct unicode_run {
	uint32_t first;		/* up to the next row's */
	uint8_t flags;
};

/* first, first + stride, ... last become themselves + delta. */
struct unicode_map {
	uint32_t first, last, stride;
	int32_t delta;
};

struct unicode_long {
	uint32_t c, to[3];	/* up to the first 0 */
};

enum unicode_case { UC_UPPER, UC_LOWER, UC_TITLE };

extern const struct unicode_run unicode_runs[];
extern const struct unicode_map unicode_upper[], unicode_lower[],
    unicode_title[];
extern const struct unicode_long unicode_upper_long[], unicode_lower_long[],
    unicode_title_long[];
extern const size_t nunicode_runs, nunicode_upper, nunicode_lower,
    nunicode_title, nunicode_upper_long, nunicode_lower_long,
    nunicode_title_long;

unsigned uc_flags(uint32_t c);

/* Write the case form of c to to[3]; returns the number of characters. */
unsigned uc_map(uint32_t c, enum unicode_case to_case, uint32_t *to);

/* Decode the character at s[n], n > 0: its length, *ret its number. */
unsigned uc_get(const char *s, size_t n, uint32_t *ret);
/* The length of the character that ends at s + n, n > 0. */
unsigned uc_back(const char *s, size_t n, uint32_t *ret);
/* Encode c, below 0x110000: its length. */
unsigned uc_put(uint32_t c, char *to);
/* Whether s[n] is UTF-8 throughout. */
int uc_valid(const char *s, size_t n);

#endif
