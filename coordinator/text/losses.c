/* coordinator/text/losses.c - what encoding could not keep of texts. */
#include "losses.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/log.h"
#include "config/utf8.h"

void
losses_count(struct losses *l, const char *text, size_t nbytes, int marks)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + nbytes;
	unsigned len;

	for (; p < end; p += MAX(len, 1u)) {
		if (*p < 0x80) {
			len = 1;
			continue;
		}
		len = utf8_len(p, (size_t)(end - p));
		l->invalid += len == 0;
		l->marks += marks && len == SPACE_MARK_LEN &&
		    memcmp(p, SPACE_MARK, SPACE_MARK_LEN) == 0;
	}
}

void
losses_add(struct losses *sum, const struct losses *more)
{
	if (sum->dropped + sum->unknown == 0)
		sum->first = more->first;
	sum->dropped += more->dropped;
	sum->unknown += more->unknown;
	sum->invalid += more->invalid;
	sum->marks += more->marks;
}

static uint64_t
beyond(uint64_t all, uint64_t some)
{
	return all - MIN(all, some);
}

struct losses
losses_beyond(const struct losses *all, const struct losses *some)
{
	return (struct losses){ .dropped = beyond(all->dropped, some->dropped),
	    .unknown = beyond(all->unknown, some->unknown),
	    .invalid = beyond(all->invalid, some->invalid),
	    .marks = beyond(all->marks, some->marks), .first = all->first };
}

static void PRINTF_LIKE(3, 4)
add_to_note(char *note, size_t len, const char *fmt, ...)
{
	size_t n = strlen(note);
	va_list ap;

	if (n > 0)
		n += (size_t)snprintf(note + n, len - n, "; ");
	va_start(ap, fmt);
	vsnprintf(note + n, len - n, fmt, ap);
	va_end(ap);
}

static const char *
plural(uint64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

void
losses_note(const struct losses *l)
{
	uint64_t n = l->dropped + l->unknown;
	char note[400] = "";

	if (n > 0)
		add_to_note(note, sizeof(note), "%" PRIu64 " %s no token in "
		    "this vocabulary and %s %s; the first is 0x%02X", n,
		    plural(n, "byte of the text has",
		    "bytes of the text have"), plural(n, "is", "are"),
		    l->unknown > 0 ? "read as its unknown token" : "left out",
		    l->first);
	if (l->invalid > 0)
		add_to_note(note, sizeof(note), "%" PRIu64 " %s not UTF-8",
		    l->invalid, plural(l->invalid, "byte is", "bytes are"));
	if (l->marks > 0)
		add_to_note(note, sizeof(note), "%" PRIu64 " U+2581 %s: this "
		    "vocabulary cannot tell them apart", l->marks,
		    plural(l->marks, "is read as a blank",
		    "are read as blanks"));
	if (*note != '\0')
		log_info("note: %s", note);
}
