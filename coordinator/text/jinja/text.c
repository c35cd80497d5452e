/* coordinator/text/jinja/text.c - strings with marks: making, cutting, searching.
 * Offsets are bytes unless they are said to be characters. */
#include "impl.h"

struct jchunk {
	struct jchunk *next;
	size_t n, cap;
	char *s;		/* [cap] */
	uint8_t *by;		/* [cap] */
};

enum { CHUNK_BYTES = 112, MAX_CHUNK_BYTES = 64 * 1024, COMPARED_BYTES = 64 };

static struct jchunk *
add_chunk(struct jbuf *b, size_t n)
{
	struct jchunk *c = jalloc(b->r, sizeof(*c));
	size_t cap = b->last == NULL ? MAX(n, (size_t)CHUNK_BYTES) :
	    MAX(n, MIN(b->last->cap * 2, (size_t)MAX_CHUNK_BYTES));

	if (cap > SIZE_MAX / 4)
		cap = SIZE_MAX / 4;	/* more than any limit */
	*c = (struct jchunk){ .cap = cap, .s = jalloc(b->r, cap * 2) };
	c->by = (uint8_t *)c->s + cap;
	if (b->last != NULL)
		b->last->next = c;
	else
		b->first = c;
	b->last = c;
	return c;
}

/* Room for up to n bytes; *ret_n of them. */
static struct jchunk *
make_room(struct jbuf *b, size_t n, size_t *ret_n)
{
	struct jchunk *c = b->last;

	if (c == NULL || c->n == c->cap)
		c = add_chunk(b, n);
	*ret_n = MIN(n, c->cap - c->n);
	return c;
}

void
jbuf_add(struct jbuf *b, const char *s, size_t n, unsigned mark)
{
	struct jchunk *c;
	size_t k;

	jstep(b->r, n / COMPARED_BYTES);
	b->seen |= (n > 0) << mark;
	for (; n > 0; s += k, n -= k) {
		c = make_room(b, n, &k);
		memcpy(c->s + c->n, s, k);
		memset(c->by + c->n, (int)mark, k);
		c->n += k;
		b->n += k;
	}
}

void
jbuf_puts(struct jbuf *b, const char *s, unsigned mark)
{
	jbuf_add(b, s, strlen(s), mark);
}

void
jbuf_char(struct jbuf *b, uint32_t c, unsigned mark)
{
	char s[4];

	jbuf_add(b, s, uc_put(c, s), mark);
}

void
jbuf_part(struct jbuf *b, const struct jstr *s, size_t from, size_t to)
{
	struct jchunk *c;
	size_t k;

	if (s->by == NULL || from == to) {
		jbuf_add(b, s->s + from, to - from, s->mark);
		return;
	}
	_Static_assert(JINJA_TEMPLATE == 0 && JINJA_INPUT == 1,
	    "! makes the other mark of one");
	/* All of one mark? */
	if (memchr(s->by + from, !s->by[from], to - from) == NULL) {
		jbuf_add(b, s->s + from, to - from, s->by[from]);
		return;
	}
	jstep(b->r, (to - from) / COMPARED_BYTES);
	b->seen = 1U << JINJA_TEMPLATE | 1U << JINJA_INPUT;
	for (; from < to; from += k) {
		c = make_room(b, to - from, &k);
		memcpy(c->s + c->n, s->s + from, k);
		memcpy(c->by + c->n, s->by + from, k);
		c->n += k;
		b->n += k;
	}
}

const struct jstr *
jbuf_end(struct jbuf *b)
{
	struct jstr *s = jalloc(b->r, sizeof(*s));
	struct jchunk *c;
	uint8_t *by = NULL;
	char *to;

	*s = (struct jstr){ .s = "", .n = b->n, .nchars = SIZE_MAX,
	    .mark = b->seen == 2 ? JINJA_INPUT : JINJA_TEMPLATE };
	if (b->first == NULL)
		return s;
	if (b->first->next == NULL) {
		s->s = b->first->s;
		s->by = b->seen == 3 ? b->first->by : NULL;
		return s;
	}
	to = jalloc(b->r, b->n);
	if (b->seen == 3)
		by = jalloc(b->r, b->n);
	s->s = to;
	s->by = by;
	for (c = b->first; c != NULL; c = c->next) {
		memcpy(to, c->s, c->n);
		to += c->n;
		if (by != NULL) {
			memcpy(by, c->by, c->n);
			by += c->n;
		}
	}
	return s;
}

int
jbuf_send(const struct jbuf *b, jinja_sink *sink, void *arg)
{
	const struct jchunk *c;
	size_t i, from;
	int rc;

	for (c = b->first; c != NULL; c = c->next)
		for (from = 0; from < c->n; from = i) {
			for (i = from + 1; i < c->n && c->by[i] == c->by[from];
			    i++)
				;
			rc = sink(arg, c->s + from, i - from, c->by[from]);
			if (rc < 0)
				return rc;
		}
	return 0;
}

struct jv
jv_str(const struct jstr *s, unsigned safe)
{
	struct jv v = { .kind = J_STRING, .safe = (uint8_t)safe };

	v.u.p = (void *)(uintptr_t)s;
	return v;
}

struct jv
jv_text(struct jrun *r, const char *s, size_t n, unsigned mark)
{
	struct jstr *t = jalloc(r, sizeof(*t));
	char *copy = jalloc(r, n);

	memcpy(copy, s, n);
	*t = (struct jstr){ .s = copy, .n = n, .nchars = SIZE_MAX,
	    .mark = (uint8_t)mark };
	return jv_str(t, 0);
}

struct jv
jv_cstr(struct jrun *r, const char *s)
{
	return jv_text(r, s, strlen(s), JINJA_TEMPLATE);
}

const struct jstr *
jstr_part(struct jrun *r, const struct jstr *s, size_t from, size_t to)
{
	struct jstr *t;

	if (from == 0 && to == s->n)
		return s;
	t = jalloc(r, sizeof(*t));
	*t = (struct jstr){ .s = s->s + from, .n = to - from,
	    .by = s->by != NULL ? s->by + from : NULL, .nchars = SIZE_MAX,
	    .mark = s->mark };
	return t;
}

static void
fill_room(struct jroom *m, const struct jstr *s)
{
	memcpy(m->s + m->n, s->s, s->n);
	if (s->by != NULL)
		memcpy(m->by + m->n, s->by, s->n);
	else
		memset(m->by + m->n, s->mark, s->n);
	m->n += s->n;
}

/* A room with a in it, and half as much again for what follows n more bytes. */
static struct jroom *
open_room(struct jrun *r, const struct jstr *a, size_t n)
{
	struct jroom *m = jalloc(r, sizeof(*m));
	size_t cap = (a->n + n) + (a->n + n) / 2;

	*m = (struct jroom){ .s = jalloc(r, cap * 2), .cap = cap };
	m->by = (uint8_t *)m->s + cap;
	jstep(r, a->n / COMPARED_BYTES);
	fill_room(m, a);
	return m;
}

/* a + b for a long a, to which templates add message by message: copying a each
 * time would take memory with the square of the conversation. */
static const struct jstr *
add_in_room(struct jrun *r, const struct jstr *a, const struct jstr *b)
{
	struct jstr *s = jalloc(r, sizeof(*s));
	struct jroom *m = a->room;
	int is_one = a->by == NULL && b->by == NULL && a->mark == b->mark;

	if (m == NULL || m->n != a->n || m->cap - m->n < b->n)
		m = open_room(r, a, b->n);
	jstep(r, b->n / COMPARED_BYTES);
	fill_room(m, b);
	*s = (struct jstr){ .s = m->s, .by = is_one ? NULL : m->by, .n = m->n,
	    .nchars = SIZE_MAX, .room = m, .mark = a->mark };
	return s;
}

const struct jstr *
jstr_cat(struct jrun *r, const struct jstr *a, const struct jstr *b)
{
	struct jbuf buf = { .r = r };

	if (a->n == 0)
		return b;
	if (b->n == 0)
		return a;
	if (a->n >= JLONG_BYTES)
		return add_in_room(r, a, b);
	jbuf_str(&buf, a);
	jbuf_str(&buf, b);
	return jbuf_end(&buf);
}

const struct jstr *
jstr_repeat(struct jrun *r, const struct jstr *s, int64_t times)
{
	struct jbuf b = { .r = r };
	size_t bytes;

	if (times <= 0 || s->n == 0)
		return jbuf_end(&b);
	if (__builtin_mul_overflow(s->n, (size_t)times, &bytes) ||
	    bytes > r->limits->memory_bytes)
		jfail(r, -E2BIG, "the template needs more than its limit of %zu "
		    "bytes of memory", r->limits->memory_bytes);
	while (times-- > 0) {
		jstep(r, 1);
		jbuf_str(&b, s);
	}
	return jbuf_end(&b);
}

size_t
jstr_nchars(struct jrun *r, const struct jstr *s)
{
	struct jstr *w = (struct jstr *)(uintptr_t)s;
	size_t i, n = 0;
	uint32_t c;

	if (s->nchars != SIZE_MAX)
		return s->nchars;
	jstep(r, s->n / COMPARED_BYTES);
	for (i = 0; i < s->n; n++)
		i += uc_get(s->s + i, s->n - i, &c);
	/* Constants of a program serve several renderings. */
	if (r->program == NULL && s->n > COMPARED_BYTES)
		__atomic_store_n(&w->nchars, n, __ATOMIC_RELAXED);
	return n;
}

size_t
jstr_offset(struct jrun *r, const struct jstr *s, size_t i)
{
	size_t at = 0;
	uint32_t c;

	if (s->nchars == s->n)
		return i;		/* all are single bytes */
	jstep(r, i / COMPARED_BYTES);
	for (; i > 0 && at < s->n; i--)
		at += uc_get(s->s + at, s->n - at, &c);
	return at;
}

int
jstr_eq(const struct jstr *a, const struct jstr *b)
{
	return a == b || (a->n == b->n && memcmp(a->s, b->s, a->n) == 0);
}

int
jstr_is(const struct jstr *a, const char *s)
{
	return strlen(s) == a->n && memcmp(a->s, s, a->n) == 0;
}

size_t
jstr_find(struct jrun *r, const struct jstr *a, const struct jstr *b,
    size_t from, size_t to)
{
	const char *p;

	if (from > to || b->n > to - from)
		return SIZE_MAX;
	p = memmem(a->s + from, to - from, b->s, b->n);
	jstep(r, ((p != NULL ? (size_t)(p - a->s) : to) - from) / COMPARED_BYTES);
	return p != NULL ? (size_t)(p - a->s) : SIZE_MAX;
}

size_t
jstr_rfind(struct jrun *r, const struct jstr *a, const struct jstr *b,
    size_t from, size_t to)
{
	size_t i;

	if (from > to || b->n > to - from)
		return SIZE_MAX;
	for (i = to - b->n + 1; i-- > from; ) {
		jstep(r, 1 + b->n / COMPARED_BYTES);
		if (memcmp(a->s + i, b->s, b->n) == 0)
			return i;
	}
	return SIZE_MAX;
}

static int
is_stripped(const char *s, unsigned len, uint32_t c, const struct jstr *chars)
{
	if (chars == NULL)
		return (uc_flags(c) & UC_SPACE) != 0;
	return memmem(chars->s, chars->n, s, len) != NULL;
}

const struct jstr *
jstr_strip(struct jrun *r, const struct jstr *s, const struct jstr *chars,
    unsigned sides)
{
	size_t from = 0, to = s->n, each = 1 + (chars != NULL ?
	    chars->n / COMPARED_BYTES : 0);
	uint32_t c;
	unsigned len;

	while ((sides & 1) && from < to) {
		len = uc_get(s->s + from, to - from, &c);
		if (!is_stripped(s->s + from, len, c, chars))
			break;
		from += len;
		jstep(r, each);
	}
	while ((sides & 2) && to > from) {
		len = uc_back(s->s + from, to - from, &c);
		if (!is_stripped(s->s + to - len, len, c, chars))
			break;
		to -= len;
		jstep(r, each);
	}
	return jstr_part(r, s, from, to);
}

/* Whether a capital sigma at byte at of s ends a word. */
static int
is_final_sigma(const struct jstr *s, size_t at)
{
	uint32_t c;

	if (at == 0)
		return 0;
	uc_back(s->s, at, &c);
	if (!(uc_flags(c) & UC_ALPHA))
		return 0;
	if (at + 2 >= s->n)
		return 1;
	uc_get(s->s + at + 2, s->n - at - 2, &c);
	return !(uc_flags(c) & UC_ALPHA);
}

/* Append the character at byte at in another case; returns its length in s. */
static unsigned
add_case(struct jbuf *b, const struct jstr *s, size_t at, enum unicode_case to)
{
	uint32_t c, form[3];
	unsigned len = uc_get(s->s + at, s->n - at, &c), n, i;

	if (len == 1 && c >= 0x80) {
		jbuf_part(b, s, at, at + 1);
		return 1;
	}
	n = uc_map(c, to, form);
	if (to == UC_LOWER && c == 0x3a3 && is_final_sigma(s, at))
		form[0] = 0x3c2;
	for (i = 0; i < n; i++)
		jbuf_char(b, form[i], jstr_mark(s, at));
	return len;
}

const struct jstr *
jstr_case(struct jrun *r, const struct jstr *s, enum unicode_case to)
{
	struct jbuf b = { .r = r };
	size_t at;
	uint32_t c;
	int in_word = 0;

	jstep(r, s->n / 8);
	for (at = 0; at < s->n; ) {
		uc_get(s->s + at, s->n - at, &c);
		at += add_case(&b, s, at, to != UC_TITLE ? to :
		    in_word ? UC_LOWER : UC_TITLE);
		in_word = (uc_flags(c) & UC_ALPHA) != 0;
	}
	return jbuf_end(&b);
}

const struct jstr *
jstr_capitalize(struct jrun *r, const struct jstr *s)
{
	struct jbuf b = { .r = r };
	size_t at;

	jstep(r, s->n / 8);
	for (at = 0; at < s->n; )
		at += add_case(&b, s, at, at == 0 ? UC_TITLE : UC_LOWER);
	return jbuf_end(&b);
}

/* Between all characters, as Python does for an empty text. */
static const struct jstr *
interleave(struct jrun *r, const struct jstr *s, const struct jstr *to,
    int64_t count)
{
	struct jbuf b = { .r = r };
	size_t at = 0;
	unsigned len;
	uint32_t c;

	for (;;) {
		if (count < 0 || count-- > 0)
			jbuf_str(&b, to);
		if (at >= s->n)
			break;
		jstep(r, 1);
		len = uc_get(s->s + at, s->n - at, &c);
		jbuf_part(&b, s, at, at + len);
		at += len;
	}
	return jbuf_end(&b);
}

const struct jstr *
jstr_replace(struct jrun *r, const struct jstr *s, const struct jstr *from,
    const struct jstr *to, int64_t count)
{
	struct jbuf b = { .r = r };
	size_t at = 0, i;

	if (from->n == 0)
		return interleave(r, s, to, count);
	while (count != 0 &&
	    (i = jstr_find(r, s, from, at, s->n)) != SIZE_MAX) {
		jstep(r, 1);
		jbuf_part(&b, s, at, i);
		jbuf_str(&b, to);
		at = i + from->n;
		if (count > 0)
			count--;
	}
	if (at == 0)
		return s;
	jbuf_part(&b, s, at, s->n);
	return jbuf_end(&b);
}

const struct jstr *
jstr_escape(struct jrun *r, const struct jstr *s)
{
	static const char chars[] = "&<>\"'";
	static const char *const forms[] = { "&amp;", "&lt;", "&gt;", "&#34;",
	    "&#39;" };
	struct jbuf b = { .r = r };
	const char *p;
	size_t i, from = 0;

	jstep(r, s->n / 8);
	for (i = 0; i < s->n; i++) {
		if (s->s[i] == '\0' || (p = strchr(chars, s->s[i])) == NULL)
			continue;
		jbuf_part(&b, s, from, i);
		jbuf_puts(&b, forms[p - chars], jstr_mark(s, i));
		from = i + 1;
	}
	if (from == 0)
		return s;
	jbuf_part(&b, s, from, s->n);
	return jbuf_end(&b);
}

const struct jstr *
jstr_pad(struct jrun *r, const struct jstr *s, int64_t left, int64_t right,
    const struct jstr *fill)
{
	const struct jstr *a = jstr_repeat(r, fill, left);
	const struct jstr *b = jstr_repeat(r, fill, right);

	return jstr_cat(r, jstr_cat(r, a, s), b);
}
