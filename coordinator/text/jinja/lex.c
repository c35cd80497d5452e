/* coordinator/text/jinja/lex.c - cuts a template into tokens: data between tags, and
 * the words of tags.
 *
 * White space is that of chat templates: trim_blocks (the newline behind a block or a
 * comment goes) and lstrip_blocks (white space before it goes, if nothing else stands
 * in its line), and the signs - and + in the tags. */
#include "impl.h"

#include <stdlib.h>

enum tag { TAG_BLOCK, TAG_VAR, TAG_COMMENT };
enum { MAX_OPEN = 1024 };

struct jlexer {
	struct jrun *r;
	const char *s;		/* [n], line ends are \n */
	size_t n, at;
	size_t counted;		/* bytes that line and col are counted to */
	uint32_t line, col;
	int in_tag;		/* 0, or T_VAR_BEGIN, T_BLOCK_BEGIN */
	int line_starting;	/* the last tag ended with a newline */
	size_t nopen;		/* brackets of the tag */
	char open[MAX_OPEN];	/* the bracket that closes each */
	int have_tag;		/* a tag's begin follows the data */
	struct jtoken tag;
};

size_t
jlexer_size(void)
{
	return sizeof(struct jlexer);
}

/* Copy s[n] with \r\n and \r as \n; one newline at the end goes. */
void
jlex_open(struct jrun *r, struct jlexer *x, const char *s, size_t n)
{
	char *to = jalloc(r, n + 1);
	size_t i, k = 0;

	for (i = 0; i < n; i++) {
		if (s[i] != '\r')
			to[k++] = s[i];
		else {
			to[k++] = '\n';
			if (i + 1 < n && s[i + 1] == '\n')
				i++;
		}
	}
	if (k > 0 && to[k - 1] == '\n')
		k--;
	to[k] = '\0';
	memset(x, 0, sizeof(*x));
	x->r = r;
	x->s = to;
	x->n = k;
	x->line = x->col = 1;
	x->line_starting = 1;
}

/* Count lines up to byte at, and let messages point there. */
static void
locate(struct jlexer *x, size_t at)
{
	for (; x->counted < at; x->counted++) {
		if (x->s[x->counted] == '\n') {
			x->line++;
			x->col = 1;
		} else if (((uint8_t)x->s[x->counted] & 0xc0) != 0x80)
			x->col++;
	}
	x->r->line = x->line;
	x->r->col = x->col;
}

static int
starts(const struct jlexer *x, size_t at, const char *word)
{
	size_t n = strlen(word);

	return n <= x->n - at && memcmp(x->s + at, word, n) == 0;
}

static size_t
skip_space(const struct jlexer *x, size_t at)
{
	uint32_t c;
	unsigned len;

	while (at < x->n) {
		len = uc_get(x->s + at, x->n - at, &c);
		if (!(uc_flags(c) & UC_SPACE))
			break;
		at += len;
	}
	return at;
}

static size_t
back_over_space(const struct jlexer *x, size_t from, size_t to)
{
	uint32_t c;
	unsigned len;

	while (to > from) {
		len = uc_back(x->s + from, to - from, &c);
		if (!(uc_flags(c) & UC_SPACE))
			break;
		to -= len;
	}
	return to;
}

/* The end of data[from, to) before a tag with this sign. */
static size_t
strip_before(const struct jlexer *x, size_t from, size_t to, char sign,
    enum tag tag)
{
	size_t line = to;

	if (sign == '-')
		return back_over_space(x, from, to);
	if (sign == '+' || tag == TAG_VAR)
		return to;
	while (line > from && x->s[line - 1] != '\n')
		line--;
	if ((line > from || x->line_starting) &&
	    back_over_space(x, line, to) == line)
		return line;
	return to;
}

/* Behind the end of a tag at byte at: its length is n, sign is in front of it. */
static size_t
after_tag(struct jlexer *x, size_t at, char sign, int trims)
{
	if (sign == '-')
		at = skip_space(x, at);
	else if (sign != '+' && trims && at < x->n && x->s[at] == '\n')
		at++;
	x->line_starting = at > 0 && x->s[at - 1] == '\n';
	return at;
}

static void
skip_comment(struct jlexer *x, size_t at)
{
	const char *end = memmem(x->s + at, x->n - at, "#}", 2);
	size_t to;

	if (end == NULL) {
		locate(x, at);
		jfail(x->r, -EBADMSG, "a comment does not end");
	}
	to = (size_t)(end - x->s);
	x->at = after_tag(x, to + 2, to > at && (end[-1] == '-' ||
	    end[-1] == '+') ? end[-1] : 0, 1);
}

/* Whether at at stands {% WORD %}: the byte behind it, *ret_sign in front of %}. */
static size_t
find_raw_tag(const struct jlexer *x, size_t at, const char *word, char *ret_sign)
{
	if (!starts(x, at, "{%"))
		return 0;
	at += 2;
	if (at < x->n && (x->s[at] == '-' || x->s[at] == '+'))
		at++;
	at = skip_space(x, at);
	if (!starts(x, at, word))
		return 0;
	at = skip_space(x, at + strlen(word));
	*ret_sign = 0;
	if (at < x->n && (x->s[at] == '-' || x->s[at] == '+'))
		*ret_sign = x->s[at++];
	return starts(x, at, "%}") ? at + 2 : 0;
}

/* From the byte behind {% raw %} to {% endraw %}: data. */
static void
lex_raw(struct jlexer *x, size_t at, struct jtoken *ret)
{
	size_t i, to = 0, end;
	char sign = 0, begin_sign;

	for (i = at; i < x->n; i++)
		if ((to = find_raw_tag(x, i, "endraw", &sign)) > 0)
			break;
	if (i >= x->n) {
		locate(x, at);
		jfail(x->r, -EBADMSG, "a raw block does not end");
	}
	begin_sign = x->s[i + 2];
	end = strip_before(x, at, i, begin_sign, TAG_BLOCK);
	ret->kind = T_DATA;
	ret->s = x->s + at;
	ret->n = end - at;
	x->at = after_tag(x, to, sign, 1);
}

/* The next {{, {% or {#; n: none. */
static size_t
find_tag(const struct jlexer *x, size_t at)
{
	for (; at + 1 < x->n; at++)
		if (x->s[at] == '{' && (x->s[at + 1] == '{' ||
		    x->s[at + 1] == '%' || x->s[at + 1] == '#'))
			return at;
	return x->n;
}

/* Enter the tag at at. */
static void
open_tag(struct jlexer *x, size_t at, enum tag tag, int has_sign)
{
	locate(x, at);
	x->in_tag = tag == TAG_VAR ? T_VAR_BEGIN : T_BLOCK_BEGIN;
	x->nopen = 0;
	x->have_tag = 1;
	x->tag = (struct jtoken){ .kind = x->in_tag, .line = x->line,
	    .col = x->col };
	x->at = at + 2 + has_sign;
}

/* One piece of data, and what follows it. */
static void
lex_data(struct jlexer *x, struct jtoken *ret)
{
	size_t from = x->at, at = find_tag(x, from), raw;
	enum tag tag;
	char sign = 0, raw_sign;

	locate(x, from);
	ret->kind = T_DATA;
	ret->s = x->s + from;
	ret->n = at - from;
	ret->line = x->line;
	ret->col = x->col;
	x->at = at;
	if (at == x->n) {
		if (ret->n == 0)
			ret->kind = T_EOF;
		return;
	}
	tag = x->s[at + 1] == '{' ? TAG_VAR : x->s[at + 1] == '%' ? TAG_BLOCK :
	    TAG_COMMENT;
	if (at + 2 < x->n && (x->s[at + 2] == '-' || x->s[at + 2] == '+'))
		sign = x->s[at + 2];
	ret->n = strip_before(x, from, at, sign, tag) - from;
	x->line_starting = 0;
	if (tag == TAG_COMMENT)
		skip_comment(x, at + 2 + (sign != 0));
	else if (tag == TAG_BLOCK &&
	    (raw = find_raw_tag(x, at, "raw", &raw_sign)) > 0 &&
	    raw_sign != '+') {
		if (ret->n > 0)		/* first the data, then all this again */
			return;
		lex_raw(x, raw_sign == '-' ? skip_space(x, raw) : raw, ret);
	} else
		open_tag(x, at, tag, sign != 0);
}

static int
is_digit(const struct jlexer *x, size_t at)
{
	return at < x->n && x->s[at] >= '0' && x->s[at] <= '9';
}

static int
is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9') || c == '_' || (uint8_t)c >= 0x80;
}

/* Behind digits with single underscores between them; at if there are none. */
static size_t
skip_digits(const struct jlexer *x, size_t at)
{
	if (!is_digit(x, at))
		return at;
	while (is_digit(x, at) || (at < x->n && x->s[at] == '_' &&
	    is_digit(x, at + 1)))
		at++;
	return at;
}

static int64_t
read_int(struct jlexer *x, size_t at, size_t to, unsigned base)
{
	int64_t v = 0;
	unsigned d;

	for (; at < to; at++) {
		char c = x->s[at];

		if (c == '_')
			continue;
		d = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a') +
		    10;
		if (__builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, d, &v))
			jfail(x->r, -EBADMSG, "an integer of more than 64 bits "
			    "is not supported");
	}
	return v;
}

static double
read_float(const struct jlexer *x, size_t at, size_t to)
{
	char text[512];
	size_t k = 0;

	for (; at < to && k + 1 < sizeof(text); at++)
		if (x->s[at] != '_')
			text[k++] = x->s[at];
	text[k] = '\0';
	return strtod(text, NULL);
}

static size_t
skip_based(const struct jlexer *x, size_t at, unsigned base)
{
	for (; at < x->n; at++) {
		char c = x->s[at];
		unsigned d = c >= '0' && c <= '9' ? (unsigned)(c - '0') :
		    (c | 32) >= 'a' && (c | 32) <= 'f' ?
		    (unsigned)((c | 32) - 'a') + 10 : 99;

		if (d >= base && c != '_')
			break;
	}
	return at;
}

/* Not behind a dot, where "0.5" would be a float: a.0.5 are two items. */
static void
lex_number(struct jlexer *x, struct jtoken *t)
{
	size_t from = x->at, to = skip_digits(x, from), end = to, exp;
	char c = from + 1 < x->n ? x->s[from + 1] | 32 : 0;
	unsigned base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;

	if (x->s[from] == '0' && base != 0 && to == from + 1) {
		to = skip_based(x, from + 2, base);
		t->kind = T_INT;
		t->i = read_int(x, from + 2, to, base);
		x->at = to;
		return;
	}
	if (from == 0 || x->s[from - 1] != '.') {
		if (end < x->n && x->s[end] == '.' && is_digit(x, end + 1))
			end = skip_digits(x, end + 1);
		exp = end;
		if (exp < x->n && (x->s[exp] | 32) == 'e') {
			exp++;
			if (exp < x->n && (x->s[exp] == '-' || x->s[exp] == '+'))
				exp++;
			if (is_digit(x, exp))
				end = skip_digits(x, exp);
		}
	}
	t->kind = end > to ? T_FLOAT : T_INT;
	if (t->kind == T_INT && x->s[from] == '0' &&
	    strspn(x->s + from, "0_") < to - from)
		jfail(x->r, -EBADMSG, "an integer cannot begin with 0");
	if (end > to)
		t->f = read_float(x, from, end);
	else
		t->i = read_int(x, from, to, 10);
	x->at = end;
}

/* The number of n hexadecimal digits. */
static uint32_t
read_hex(struct jlexer *x, size_t at, unsigned n, size_t to)
{
	uint32_t v = 0;

	if (to - at < n || skip_based(x, at, 16) < at + n ||
	    memchr(x->s + at, '_', n) != NULL)
		jfail(x->r, -EBADMSG, "a string has a broken escape");
	v = (uint32_t)read_int(x, at, at + n, 16);
	if (v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
		jfail(x->r, -EBADMSG, "a string has an escape of no character");
	return v;
}

/* One escape, at behind its backslash; returns the byte behind it. */
static size_t
read_escape(struct jlexer *x, size_t at, size_t to, char *out, size_t *k)
{
	static const char from[] = "\\'\"abfnrtv", into[] = "\\'\"\a\b\f\n\r\t\v";
	char c = x->s[at];
	const char *p = c != '\0' ? strchr(from, c) : NULL;
	unsigned n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
	uint32_t v = 0;

	if (p != NULL) {
		out[(*k)++] = into[p - from];
		return at + 1;
	}
	if (c == '\n')
		return at + 1;
	if (n > 0) {
		*k += uc_put(read_hex(x, at + 1, n, to), out + *k);
		return at + 1 + n;
	}
	if (c >= '0' && c <= '7') {
		for (n = 0; n < 3 && at < to && x->s[at] >= '0' &&
		    x->s[at] <= '7'; n++)
			v = v * 8 + (uint32_t)(x->s[at++] - '0');
		*k += uc_put(v, out + *k);
		return at;
	}
	if (c == 'N')
		jfail(x->r, -EBADMSG, "\\N in a string is not supported");
	out[(*k)++] = '\\';
	return at;
}

static void
lex_string(struct jlexer *x, struct jtoken *t)
{
	char quote = x->s[x->at], *out;
	size_t from = x->at + 1, to = from, k = 0, at;

	while (to < x->n && x->s[to] != quote)
		to += x->s[to] == '\\' ? 2 : 1;
	if (to >= x->n)
		jfail(x->r, -EBADMSG, "a string does not end");
	/* An escape of four bytes or more makes at most four. */
	out = jalloc(x->r, to - from + 4);
	for (at = from; at < to; )
		if (x->s[at] == '\\')
			at = read_escape(x, at + 1, to, out, &k);
		else
			out[k++] = x->s[at++];
	t->kind = T_STRING;
	t->s = out;
	t->n = k;
	x->at = to + 1;
}

static void
lex_op(struct jlexer *x, struct jtoken *t)
{
	static const struct { char s[3]; uint8_t op; } ops[] = {
		{ "//", OP_FLOORDIV }, { "**", OP_POW }, { "==", OP_EQ },
		{ "!=", OP_NE }, { ">=", OP_GE }, { "<=", OP_LE },
		{ "+", OP_ADD }, { "-", OP_SUB }, { "*", OP_MUL },
		{ "/", OP_DIV }, { "%", OP_MOD }, { "~", OP_TILDE },
		{ "(", OP_LPAREN }, { ")", OP_RPAREN }, { "[", OP_LBRACKET },
		{ "]", OP_RBRACKET }, { "{", OP_LBRACE }, { "}", OP_RBRACE },
		{ ">", OP_GT }, { "<", OP_LT }, { "=", OP_ASSIGN },
		{ ".", OP_DOT }, { ":", OP_COLON }, { "|", OP_PIPE },
		{ ",", OP_COMMA }, { ";", OP_SEMICOLON }
	};
	char c = x->s[x->at];
	size_t i;

	for (i = 0; i < NITEMS(ops) && !starts(x, x->at, ops[i].s); i++)
		;
	if (i == NITEMS(ops))
		jfail(x->r, -EBADMSG, "unexpected character in a tag");
	if (c == '(' || c == '[' || c == '{') {
		if (x->nopen == MAX_OPEN)
			jfail(x->r, -E2BIG, "the template exceeds its limit of "
			    "%d open brackets", (int)MAX_OPEN);
		x->open[x->nopen++] = c == '(' ? ')' : c == '[' ? ']' : '}';
	} else if (c == ')' || c == ']' || c == '}') {
		if (x->nopen == 0 || x->open[--x->nopen] != c)
			jfail(x->r, -EBADMSG, "unexpected '%c'", c);
	}
	t->kind = T_OP;
	t->op = ops[i].op;
	x->at += strlen(ops[i].s);
}

/* Whether the tag ends here, outside brackets. */
static int
lex_tag_end(struct jlexer *x, struct jtoken *t)
{
	int is_var = x->in_tag == T_VAR_BEGIN;
	const char *end = is_var ? "}}" : "%}";
	char sign = x->s[x->at];
	size_t at = x->at;

	if (x->nopen > 0)
		return 0;
	if (sign == '-' || (sign == '+' && !is_var))
		at++;
	else
		sign = 0;
	if (!starts(x, at, end))
		return 0;
	t->kind = is_var ? T_VAR_END : T_BLOCK_END;
	x->at = after_tag(x, at + 2, sign, !is_var);
	x->in_tag = 0;
	return 1;
}

static void
lex_in_tag(struct jlexer *x, struct jtoken *t)
{
	char c;

	x->at = skip_space(x, x->at);
	locate(x, x->at);
	t->line = x->line;
	t->col = x->col;
	if (x->at >= x->n)
		jfail(x->r, -EBADMSG, "a tag does not end");
	if (lex_tag_end(x, t))
		return;
	c = x->s[x->at];
	if (c >= '0' && c <= '9')
		lex_number(x, t);
	else if (is_word(c)) {
		t->kind = T_NAME;
		t->s = x->s + x->at;
		while (x->at < x->n && is_word(x->s[x->at]))
			x->at++;
		t->n = (size_t)(x->s + x->at - t->s);
	} else if (c == '\'' || c == '"')
		lex_string(x, t);
	else
		lex_op(x, t);
}

void
jlex_next(struct jlexer *x, struct jtoken *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (x->have_tag) {
		x->have_tag = 0;
		*ret = x->tag;
		return;
	}
	if (x->in_tag) {
		lex_in_tag(x, ret);
		return;
	}
	do {
		memset(ret, 0, sizeof(*ret));
		lex_data(x, ret);
	} while (ret->kind == T_DATA && ret->n == 0 && !x->have_tag);
	if (ret->kind == T_DATA && ret->n == 0)
		jlex_next(x, ret);	/* the tag */
}
