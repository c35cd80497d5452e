/* config/utf8.c - finds the borders of UTF-8 characters. */
#include "utf8.h"

/* Length of a character that begins with byte c; 0 = none does. */
static unsigned
len_from_lead(uint8_t c)
{
	if (c < 0x80)
		return 1;
	if (c < 0xc2)			/* continuation, or overlong */
		return 0;
	return c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
}

/* Count the leading bytes of s[n] that are well-formed so far as the character
 * that the lead byte s[0] begins.  Only the second byte's range depends on the
 * first. */
static unsigned
valid_prefix(const uint8_t *s, size_t n)
{
	unsigned i, len = len_from_lead(s[0]);
	uint8_t lo = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
	uint8_t hi = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;

	for (i = 1; i < len && i < n; i++) {
		if (s[i] < lo || s[i] > hi)
			break;
		lo = 0x80;
		hi = 0xbf;
	}
	return i;
}

unsigned
utf8_len(const uint8_t *s, size_t n)
{
	unsigned len = n > 0 ? len_from_lead(s[0]) : 0;

	return len > 0 && valid_prefix(s, n) == len ? len : 0;
}

unsigned
utf8_unfinished(const uint8_t *s, size_t n)
{
	unsigned back;

	for (back = 1; back <= 3 && back <= n; back++) {
		const uint8_t *p = s + n - back;

		if ((*p & 0xc0) == 0x80)
			continue;
		return back < len_from_lead(*p) && valid_prefix(p, back) == back ?
		    back : 0;
	}
	return 0;
}
