/* config/plain.c - escapes what a terminal would obey. */
#include "plain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* Longest escape, with its NUL: \u202e. */
enum { ESCAPE_LEN = 8 };

/* The code point of the well-formed character s[len]. */
static uint32_t
decode(const uint8_t *s, unsigned len)
{
	uint32_t c = len == 1 ? s[0] : s[0] & (0x7fu >> len);
	unsigned i;

	for (i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

/* Controls, marks of direction (Unicode's Bidi_Control), separators of lines and
 * paragraphs. */
static int
is_obeyed(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c ||
	    c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	    (c >= 0x2066 && c <= 0x2069);
}

unsigned
plain_len(const char *text, size_t n)
{
	unsigned len = utf8_len((const uint8_t *)text, n);

	return len > 0 && !is_obeyed(decode((const uint8_t *)text, len)) ?
	    len : 0;
}

/* Write the form in which the text s[n], n > 0, begins to out; *ret_used = the
 * bytes of s that it stands for.  Returns its length. */
static unsigned
escape_next(char out[ESCAPE_LEN], const uint8_t *s, size_t n,
    enum plain_keep keep, unsigned *ret_used)
{
	unsigned len = utf8_len(s, n);
	uint32_t c = len > 0 ? decode(s, len) : s[0];

	*ret_used = len > 0 ? len : 1;
	if (len > 0 && (!is_obeyed(c) ||
	    (keep == PLAIN_LINES && (c == '\n' || c == '\t')))) {
		memcpy(out, s, len);
		return len;
	}
	if (c == '\n' || c == '\t' || c == '\r') {
		out[0] = '\\';
		out[1] = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
		return 2;
	}
	return (unsigned)snprintf(out, ESCAPE_LEN, len > 1 ? "\\u%04" PRIx32 :
	    "\\x%02" PRIx32, c);
}

size_t
plain_copy(char *buf, size_t len, const char *text, size_t n,
    enum plain_keep keep)
{
	const uint8_t *s = (const uint8_t *)text;
	char next[ESCAPE_LEN];
	size_t at = 0;
	unsigned used, k;

	for (; n > 0; s += used, n -= used) {
		k = escape_next(next, s, n, keep, &used);
		if (k >= len - at)
			break;
		memcpy(buf + at, next, k);
		at += k;
	}
	buf[at] = '\0';
	return at;
}

const char *
plain_string(char *buf, size_t len, const char *text)
{
	plain_copy(buf, len, text, strlen(text), PLAIN_ALL);
	return buf;
}

void
plain_print(FILE *fp, const char *text, size_t n)
{
	const uint8_t *s = (const uint8_t *)text;
	char next[ESCAPE_LEN];
	unsigned used, k;

	for (; n > 0; s += used, n -= used) {
		k = escape_next(next, s, n, PLAIN_ALL, &used);
		fwrite(next, 1, k, fp);
	}
}

char *
plain_json(const char *json)
{
	const uint8_t *s = (const uint8_t *)json;
	size_t n = strlen(json), at = 0, i, nbytes = n + 1;
	unsigned len;
	uint32_t c;
	char *out;

	/* \u007f has 5 bytes more than DEL, \u009b has 4 more than its
	 * character, \u202e 3 more. */
	for (i = 0; i < n; i++)
		nbytes += s[i] >= 0x7f ? 5 : 0;
	out = malloc(nbytes);
	for (; out != NULL && n > 0; s += len, n -= len) {
		len = MAX(utf8_len(s, n), 1);
		c = decode(s, len);
		if (c >= 0x7f && is_obeyed(c)) {
			at += (size_t)sprintf(out + at, "\\u%04" PRIx32, c);
			continue;
		}
		memcpy(out + at, s, len);
		at += len;
	}
	if (out != NULL)
		out[at] = '\0';
	return out;
}
