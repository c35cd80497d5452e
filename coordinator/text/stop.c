/* coordinator/text/stop.c - texts that end an answer, found by Knuth, Morris
 * and Pratt's algorithm. */
#include "stop.h"

#include <string.h>

void
stops_add(struct stops *st, const char *s)
{
	struct stop_text *t = &st->text[st->n++];
	unsigned i, k = 0;

	t->s = s;
	t->len = (unsigned)strlen(s);
	t->fail[0] = 0;
	for (i = 1; i < t->len; i++) {
		while (k > 0 && s[i] != s[k])
			k = t->fail[k - 1];
		k += s[i] == s[k];
		t->fail[i] = (uint16_t)k;
	}
}

/* Bytes of t that the text ends with once c is appended to it. */
static unsigned
advance(const struct stop_text *t, unsigned at, char c)
{
	while (at > 0 && t->s[at] != c)
		at = t->fail[at - 1];
	return at + (t->s[at] == c);
}

int
stops_push(const struct stops *st, struct stop_state *ss, const char *text,
    size_t n, char *out, size_t *ret_n)
{
	size_t all = ss->nheld, i;
	unsigned k, held = 0;
	int found = -1;

	memcpy(out, ss->held, ss->nheld);
	for (i = 0; i < n && found < 0; i++) {
		out[all++] = text[i];
		held = 0;
		for (k = 0; k < st->n; k++) {
			const struct stop_text *t = &st->text[k];

			ss->at[k] = (uint16_t)advance(t, ss->at[k], text[i]);
			if (ss->at[k] == t->len && (found < 0 ||
			    t->len > st->text[found].len))
				found = (int)k;
			held = MAX(held, ss->at[k]);
		}
	}
	if (n == 0)
		held = ss->nheld;
	if (found >= 0) {
		*ret_n = all - st->text[found].len;
		ss->nheld = 0;
		return found;
	}
	*ret_n = all - held;
	ss->nheld = held;
	memcpy(ss->held, out + *ret_n, held);
	return -1;
}
