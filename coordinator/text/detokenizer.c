/* coordinator/text/detokenizer.c - token ids to text, one token at a time.
 * A token may end within a UTF-8 character: its bytes are held until the
 * character is complete or can no longer become valid. */
#include "detokenizer.h"

#include <errno.h>
#include <string.h>

#include "config/utf8.h"

void
detokenizer_init(struct detokenizer *d, const struct tokenizer *t,
    int at_start, int special)
{
	*d = (struct detokenizer){ .t = t, .special = special,
	    .at_start = at_start && tokenizer_adds_space(t) };
}

size_t
detokenizer_max(const struct tokenizer *t)
{
	struct detokenizer d;

	return tokenizer_max_bytes(t) + sizeof(d.held);
}

int
detokenizer_push(struct detokenizer *d, uint32_t id, char *out, size_t outlen)
{
	enum token_kind kind = tokenizer_kind(d->t, id);
	size_t n, len;

	if (id >= tokenizer_size(d->t))
		return -EINVAL;
	if (outlen < detokenizer_max(d->t))
		return -ENOBUFS;
	memcpy(out, d->held, d->nheld);
	len = tokenizer_decode(d->t, id, d->special, out + d->nheld);
	/* Encoding puts the space after leading control tokens. */
	if (d->at_start && kind != TOKEN_CONTROL) {
		d->at_start = 0;
		if (len > 0 && kind != TOKEN_USER && out[0] == ' ')
			memmove(out, out + 1, --len);
	}
	n = d->nheld + len;
	d->nheld = utf8_unfinished((const uint8_t *)out, n);
	n -= d->nheld;
	memcpy(d->held, out + n, d->nheld);
	return (int)n;
}

int
detokenizer_flush(struct detokenizer *d, char *out, size_t outlen)
{
	unsigned n = d->nheld;

	if (outlen < n)
		return -ENOBUFS;
	memcpy(out, d->held, n);
	d->nheld = 0;
	return (int)n;
}
