/* coordinator/text/detokenizer.c - token ids to text, as they come.
 * Byte tokens and tokens with half a character are held until the character
 * is whole or can no longer become one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpe.h"
#include "utf8.h"

void
detokenizer_init(struct detokenizer *d, const struct tokenizer *t,
    int at_start, int special)
{
	*d = (struct detokenizer){ .t = t, .special = special,
	    .at_start = at_start && t->space_prefix };
}

size_t
detokenizer_max(const struct tokenizer *t)
{
	struct detokenizer d;

	return t->max_len + sizeof(d.held);
}

/* The text with its marks as spaces; returns the byte count. */
static size_t
unescape(const struct gguf_str *s, char *out)
{
	size_t i, n = 0;

	for (i = 0; i < s->len; ) {
		if (s->len - i >= SPACE_MARK_LEN && memcmp(s->data + i,
		    SPACE_MARK, SPACE_MARK_LEN) == 0) {
			out[n++] = ' ';
			i += SPACE_MARK_LEN;
		} else {
			out[n++] = s->data[i++];
		}
	}
	return n;
}

/* What one token adds to the text, before anything is held back. */
static size_t
piece(const struct detokenizer *d, uint32_t id, char *out)
{
	const struct gguf_str *s = &d->t->text[id];

	switch (tokenizer_kind(d->t, id)) {
	case TOKEN_CONTROL:
	case TOKEN_UNKNOWN:
		if (!d->special)
			return 0;
		/* FALLTHROUGH */
	case TOKEN_USER:		/* was cut out of raw text: no marks */
		memcpy(out, s->data, s->len);
		return s->len;
	case TOKEN_BYTE:
		if (s->len == 6 && memcmp(s->data, "<0x", 3) == 0) {
			*out = (char)strtoul(s->data + 3, NULL, 16);
			return 1;
		}
		/* FALLTHROUGH */
	default:
		return d->t->bpe != NULL ? bpe_spell(s, out) :
		    unescape(s, out);
	}
}

int
detokenizer_push(struct detokenizer *d, uint32_t id, char *out, size_t outlen)
{
	enum token_kind kind = tokenizer_kind(d->t, id);
	size_t n, len;

	if (id >= d->t->n)
		return -EINVAL;
	if (outlen < detokenizer_max(d->t))
		return -ENOBUFS;
	memcpy(out, d->held, d->nheld);
	len = piece(d, id, out + d->nheld);
	/* Encoding put its space behind the control tokens in front. */
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
