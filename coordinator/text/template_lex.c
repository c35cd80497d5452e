/* coordinator/text/template_lex.c - cuts a chat template's Jinja text into
 * tokens.  Rules: "Whitespace Control" and "Line Statements" of Jinja's template
 * documentation; transformers sets trim_blocks and lstrip_blocks. */
#include "template_lex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lexer {
	struct template_tokens *out;
	const char *p, *end;	/* of the source */
	char *to;		/* end of the strings so far */
	int at_line_start;	/* the text at p begins a line */
	int strip;		/* drop the blanks at p */
};

static int
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int
is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	    (c >= '0' && c <= '9');
}

static void
add_token(struct lexer *l, enum template_token_type type, const char *s,
    size_t n)
{
	l->out->tok[l->out->n++] = (struct template_token){ type, s, n };
}

/* Line ends become \n, and the last one is dropped. */
static size_t
copy_source(char *to, const char *from, size_t n)
{
	size_t i, len = 0;

	for (i = 0; i < n; i++) {
		to[len++] = from[i] == '\r' ? '\n' : from[i];
		if (from[i] == '\r' && i + 1 < n && from[i + 1] == '\n')
			i++;
	}
	if (len > 0 && to[len - 1] == '\n')
		len--;
	return len;
}

/* The next tag at or after p, or the end. */
static const char *
find_tag(const char *p, const char *end)
{
	for (; p + 1 < end; p++)
		if (*p == '{' && (p[1] == '{' || p[1] == '%' || p[1] == '#'))
			return p;
	return end;
}

/* The text up to the tag, without the blanks that the tags drop. */
static void
take_text(struct lexer *l, const char *tag)
{
	const char *from = l->p, *to = tag, *q;
	char sign = tag + 2 < l->end ? tag[2] : '\0';

	while (l->strip && from < to && is_space(*from))
		from++;
	if (tag < l->end && sign == '-') {
		while (to > from && is_space(to[-1]))
			to--;
	} else if (tag < l->end && sign != '+' && tag[1] != '{') {
		for (q = to; q > from && is_space(q[-1]) && q[-1] != '\n'; q--)
			;
		if (q > from ? q[-1] == '\n' : l->at_line_start)
			to = q;
	}
	if (to > from)
		add_token(l, TT_TEXT, from, (size_t)(to - from));
	l->p = tag;
}

/* Behind the end of a tag: which blanks are dropped?  sign: the character in
 * front of its two last ones. */
static void
end_tag(struct lexer *l, char sign, int is_block)
{
	l->strip = sign == '-';
	l->at_line_start = 0;
	if (is_block && sign != '-' && sign != '+' && l->p < l->end &&
	    *l->p == '\n') {
		l->p++;
		l->at_line_start = 1;
	}
}

static int
skip_comment(struct lexer *l)
{
	const char *e = memmem(l->p + 2, (size_t)(l->end - l->p) - 2, "#}", 2);

	if (e == NULL)
		return -EINVAL;
	l->p = e + 2;
	end_tag(l, e[-1], 1);
	return 0;
}

static int
hex_value(const char *p, unsigned n, uint32_t *ret)
{
	unsigned i;

	*ret = 0;
	for (i = 0; i < n; i++) {
		char c = p[i];

		if (c >= '0' && c <= '9')
			*ret = *ret * 16 + (uint32_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			*ret = *ret * 16 + (uint32_t)((c | 32) - 'a' + 10);
		else
			return -EINVAL;
	}
	return 0;
}

static char *
put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 63));
		*to++ = (char)(0x80 | (c & 63));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 63));
		*to++ = (char)(0x80 | (c >> 6 & 63));
		*to++ = (char)(0x80 | (c & 63));
	}
	return to;
}

/* Resolve the escape behind the backslash at l->p. */
static int
take_escape(struct lexer *l)
{
	static const char from[] = "ntrabfv\\'\"", to[] = "\n\t\r\a\b\f\v\\'\"";
	const char *known;
	unsigned ndigits;
	uint32_t c;

	if (++l->p >= l->end)
		return -EINVAL;
	if (*l->p != '\0' && (known = strchr(from, *l->p)) != NULL) {
		*l->to++ = to[known - from];
		l->p++;
		return 0;
	}
	ndigits = *l->p == 'x' ? 2 : *l->p == 'u' ? 4 : *l->p == 'U' ? 8 : 0;
	if (ndigits == 0) {
		if (*l->p == '\n' || (*l->p >= '0' && *l->p <= '7') ||
		    *l->p == 'N')
			return -EINVAL;
		*l->to++ = '\\';	/* and the character as it is */
		return 0;
	}
	if ((size_t)(l->end - l->p) <= ndigits ||
	    hex_value(l->p + 1, ndigits, &c) < 0 || c == 0 || c > 0x10ffff ||
	    (c >= 0xd800 && c <= 0xdfff))
		return -EINVAL;
	l->to = put_utf8(l->to, c);
	l->p += ndigits + 1;
	return 0;
}

static int
take_string(struct lexer *l)
{
	char quote = *l->p++, *from = l->to;
	int rc = 0;

	while (rc == 0 && l->p < l->end && *l->p != quote) {
		if (*l->p == '\\')
			rc = take_escape(l);
		else
			*l->to++ = *l->p++;
	}
	if (rc < 0 || l->p >= l->end)
		return -EINVAL;
	l->p++;
	add_token(l, TT_STRING, from, (size_t)(l->to - from));
	return 0;
}

static void
take_word(struct lexer *l)
{
	static const char two[][3] = { "==", "!=", "<=", ">=", "//", "**" };
	const char *from = l->p;
	size_t i, n = 1;

	if (is_name(*from)) {
		while (l->p < l->end && is_name(*l->p))
			l->p++;
		add_token(l, *from >= '0' && *from <= '9' ? TT_INT : TT_NAME,
		    from, (size_t)(l->p - from));
		return;
	}
	for (i = 0; i < sizeof(two) / sizeof(two[0]); i++)
		if (l->end - from > 1 && memcmp(from, two[i], 2) == 0)
			n = 2;
	add_token(l, TT_OP, from, n);
	l->p += n;
}

/* The tokens of {{ ... }} or {% ... %}. */
static int
take_tag(struct lexer *l)
{
	char kind = l->p[1], close = kind == '{' ? '}' : '%';
	int open = 0;		/* braces of the expression */

	add_token(l, kind == '{' ? TT_OUT : TT_STMT, l->p, 2);
	l->p += 2;
	if (l->p < l->end && (*l->p == '-' || *l->p == '+'))
		l->p++;
	while (l->p < l->end) {
		const char *p = l->p;
		size_t left = (size_t)(l->end - p), sign;

		sign = left > 2 && (*p == '-' || (*p == '+' && close == '%'));
		if (left > 1 + sign && p[sign] == close && p[1 + sign] == '}' &&
		    open == 0) {
			add_token(l, TT_CLOSE, p, 2);
			l->p += 2 + sign;
			end_tag(l, sign ? *p : '\0', close == '%');
			return 0;
		}
		if (is_space(*p)) {
			l->p++;
			continue;
		}
		if (*p == '\'' || *p == '"') {
			if (take_string(l) < 0)
				return -EINVAL;
			continue;
		}
		if ((uint8_t)*p >= 0x80 || *p == '\0')
			return -EINVAL;
		open += (*p == '{') - (*p == '}');
		take_word(l);
	}
	return -EINVAL;
}

int
template_tokens_init(struct template_tokens *ret, const char *jinja,
    size_t nbytes)
{
	struct lexer l = { .out = ret, .at_line_start = 1 };
	int rc = 0;

	*ret = (struct template_tokens){ 0 };
	/* A token has at least one byte, and an escape as many as its
	 * character. */
	ret->source = malloc(nbytes + 1);
	ret->strings = malloc(nbytes + 1);
	ret->tok = calloc(nbytes + 1, sizeof(*ret->tok));
	if (ret->source == NULL || ret->strings == NULL || ret->tok == NULL)
		return -ENOMEM;
	if (memchr(jinja, '\0', nbytes) != NULL)
		return -EINVAL;
	l.p = ret->source;
	l.end = l.p + copy_source(ret->source, jinja, nbytes);
	ret->source[l.end - l.p] = '\0';
	l.to = ret->strings;
	while (rc == 0 && l.p < l.end) {
		take_text(&l, find_tag(l.p, l.end));
		if (l.p >= l.end)
			break;
		rc = l.p[1] == '#' ? skip_comment(&l) : take_tag(&l);
	}
	return rc;
}

void
template_tokens_done(struct template_tokens *t)
{
	free(t->tok);
	free(t->source);
	free(t->strings);
}
