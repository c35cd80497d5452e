/* config/words.c - appends to a text piece by piece. */
#include "words.h"

#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

void
words_vadd(char *text, size_t len, const char *between, const char *fmt,
    va_list ap)
{
	size_t n;

	if (text[0] != '\0')
		strlcat(text, between, len);
	n = strlen(text);
	vsnprintf(text + n, len - n, fmt, ap);
}

void
words_add(char *text, size_t len, const char *between, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	words_vadd(text, len, between, fmt, ap);
	va_end(ap);
}
