/* coordinator/text/filter.c - tells a model's thoughts from its answer. */
#include "filter.h"

#include <string.h>
#include <bsd/string.h>

#include "probe.h"

/* Markers of the families, and of templates seen with them. */
static const struct pair {
	const char *begin, *end;
	int has_label;
} pairs[] = {
	{ "<think>", "</think>", 0 },
	{ "<seed:think>", "</seed:think>", 0 },
	{ "<|START_THINKING|>", "<|END_THINKING|>", 0 },
	{ "[THINK]", "[/THINK]", 0 },
	{ "<|channel>", "<channel|>", 1 },
	{ "<|inner_prefix|>", "<|inner_suffix|>", 0 },
	{ "<thinking>", "</thinking>", 0 },
};

static int
template_has(const char *jinja, size_t n, const char *mark)
{
	return memmem(jinja, n, mark, strlen(mark)) != NULL;
}

int
filter_marks_find(const char *jinja, size_t n, const struct tokenizer *t,
    struct filter_marks *ret)
{
	const struct pair *found = NULL;
	size_t i;

	*ret = (struct filter_marks){ .channels =
	    probe_has_channels(jinja, n) };
	if (ret->channels)
		return 1;
	for (i = 0; i < NITEMS(pairs) && found == NULL; i++)
		if (template_has(jinja, n, pairs[i].end))
			found = &pairs[i];
	for (i = 0; i < NITEMS(pairs) && found == NULL; i++)
		if (tokenizer_special(t, pairs[i].begin) != NO_TOKEN &&
		    tokenizer_special(t, pairs[i].end) != NO_TOKEN)
			found = &pairs[i];
	if (found == NULL)
		return 0;
	strlcpy(ret->begin, found->begin, sizeof(ret->begin));
	strlcpy(ret->end, found->end, sizeof(ret->end));
	ret->has_label = found->has_label;
	return 1;
}

/* The end of the last `mark` in text[n]; NULL = there is none. */
static const char *
find_last(const char *text, size_t n, const char *mark)
{
	const size_t len = strlen(mark);
	const char *last = NULL, *at = text, *end = text + n;

	while (len > 0 && (at = memmem(at, (size_t)(end - at), mark, len)) !=
	    NULL)
		last = at += len;
	return last;
}

int
filter_is_open(const struct filter_marks *m, const char *text, size_t n)
{
	const char *begin = find_last(text, n, m->begin);
	const char *end = find_last(text, n, m->end);

	return begin != NULL && (end == NULL || end < begin);
}

/* --- marks --- */

/* Where the parser is. */
enum {
	AT_BEGIN,		/* nothing but white space so far */
	IN_LABEL,		/* behind begin: the rest of its line */
	IN_THOUGHTS,
	BEHIND_THOUGHTS,	/* nothing but white space behind them */
	IN_TEXT
};

static int
is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void
put_thought(struct chat_filter *f, char c, struct filter_out *out)
{
	if (is_space(c) && f->nspace < sizeof(f->space)) {
		if (f->has_thought)
			f->space[f->nspace++] = c;
		return;
	}
	memcpy(out->thought + out->nthought, f->space, f->nspace);
	out->nthought += f->nspace;
	f->nspace = 0;
	out->thought[out->nthought++] = c;
	f->has_thought = 1;
}

static void
put_text(struct chat_filter *f, char c, struct filter_out *out)
{
	if (f->state == BEHIND_THOUGHTS && is_space(c))
		return;
	f->state = IN_TEXT;
	out->text[out->ntext++] = c;
}

/* A byte that belongs to no marker. */
static void
put(struct chat_filter *f, char c, struct filter_out *out)
{
	switch (f->state) {
	case IN_LABEL:
		if (c == '\n')
			f->state = IN_THOUGHTS;
		break;
	case IN_THOUGHTS:
		put_thought(f, c, out);
		break;
	default:
		put_text(f, c, out);
	}
}

static void
begin_thoughts(struct chat_filter *f)
{
	/* Thoughts that follow others begin a line. */
	f->space[0] = '\n';
	f->nspace = f->has_thought;
	f->nheld = 0;
	f->state = f->m->has_label ? IN_LABEL : IN_THOUGHTS;
}

static void
end_thoughts(struct chat_filter *f)
{
	f->nheld = f->nspace = 0;
	f->state = BEHIND_THOUGHTS;
}

/* The marker that the text may have next; NULL = none. */
static const char *
next_mark(const struct chat_filter *f)
{
	if (f->state == AT_BEGIN)
		return f->begin == NO_TOKEN ? f->m->begin : NULL;
	if (f->state == IN_THOUGHTS || f->state == IN_LABEL)
		return f->end == NO_TOKEN ? f->m->end : NULL;
	return NULL;
}

/* held + c is not the begin of `mark`: give away bytes of held until it is. */
static void
shift_held(struct chat_filter *f, const char *mark, struct filter_out *out)
{
	const int state = f->state;

	while (f->nheld > 0 && f->state == state &&
	    memcmp(f->held, mark, f->nheld) != 0) {
		put(f, f->held[0], out);
		memmove(f->held, f->held + 1, --f->nheld);
	}
	/* An answer without thoughts. */
	while (f->nheld > 0 && f->state != state) {
		put(f, f->held[0], out);
		memmove(f->held, f->held + 1, --f->nheld);
	}
}

/* White space in front of the first marker is the marker's, or the text's. */
static int
keep_first_space(struct chat_filter *f, char c)
{
	if (f->state != AT_BEGIN || f->nheld > 0 || !is_space(c) ||
	    f->nspace == sizeof(f->space))
		return 0;
	f->space[f->nspace++] = c;
	return 1;
}

/* The answer begins without thoughts. */
static void
put_first_space(struct chat_filter *f, struct filter_out *out)
{
	memcpy(out->text + out->ntext, f->space, f->nspace);
	out->ntext += f->nspace;
	f->nspace = 0;
}

static void
take_byte(struct chat_filter *f, char c, struct filter_out *out)
{
	const char *mark = next_mark(f);

	if (keep_first_space(f, c))
		return;
	if (mark != NULL)
		f->held[f->nheld++] = c;
	if (f->state == AT_BEGIN && (mark == NULL ||
	    memcmp(f->held, mark, f->nheld) != 0))
		put_first_space(f, out);
	if (mark == NULL) {
		put(f, c, out);
		return;
	}
	shift_held(f, mark, out);
	if (f->nheld < strlen(mark))
		return;
	if (f->state == AT_BEGIN)
		begin_thoughts(f);
	else
		end_thoughts(f);
}

static void
take_marked(struct chat_filter *f, uint32_t id, const char *bytes, size_t n,
    struct filter_out *out)
{
	const int was = f->state;
	size_t i;

	if (f->begin != NO_TOKEN && (int32_t)id == f->begin) {
		begin_thoughts(f);
	} else if (f->end != NO_TOKEN && (int32_t)id == f->end) {
		end_thoughts(f);
	} else {
		for (i = 0; i < n; i++)
			take_byte(f, bytes[i], out);
	}
	f->thought_tok += was == IN_LABEL || was == IN_THOUGHTS ||
	    f->state == IN_LABEL || f->state == IN_THOUGHTS;
}

/* --- channels --- */

/* The header is complete: decide whose message follows. */
static void
begin_message(struct chat_filter *f)
{
	f->in_header = 0;
	f->is_shown = memmem(f->header, f->nheader, "final", 5) != NULL;
	if (!f->is_shown)
		begin_thoughts(f);
}

static void
take_in_channels(struct chat_filter *f, uint32_t id, const char *bytes,
    size_t n, struct filter_out *out)
{
	size_t i;

	if ((int32_t)id == f->message) {
		begin_message(f);
	} else if ((int32_t)id == f->start || (int32_t)id == f->end ||
	    (int32_t)id == f->channel) {
		f->in_header = 1;
		f->nheader = 0;
	} else if (f->in_header) {
		n = MIN(n, sizeof(f->header) - f->nheader);
		memcpy(f->header + f->nheader, bytes, n);
		f->nheader += n;
	} else if (f->is_shown) {
		memcpy(out->text + out->ntext, bytes, n);
		out->ntext += n;
		return;
	} else {
		for (i = 0; i < n; i++)
			put_thought(f, bytes[i], out);
	}
	f->thought_tok += !f->is_shown;
}

/* --- an answer --- */

static void
init_channels(struct chat_filter *f, const struct tokenizer *t)
{
	f->channel = tokenizer_special(t, "<|channel|>");
	f->message = tokenizer_special(t, "<|message|>");
	f->start = tokenizer_special(t, "<|start|>");
	f->end = tokenizer_special(t, "<|end|>");
	f->in_header = 1;
}

static int
has_channels(const struct chat_filter *f)
{
	return f->m->channels && f->channel != NO_TOKEN &&
	    f->message != NO_TOKEN;
}

void
chat_filter_init(struct chat_filter *f, const struct tokenizer *t,
    const struct filter_marks *m, const char *begun, size_t nbegun)
{
	const int is_open = begun != NULL ? filter_is_open(m, begun, nbegun) :
	    m->is_open;

	*f = (struct chat_filter){ .m = m, .begin = NO_TOKEN, .end = NO_TOKEN,
	    .state = IN_TEXT };
	if (m->channels) {
		init_channels(f, t);
		if (begun != NULL) {
			f->in_header = 0;
			f->is_shown = 1;
		}
	}
	if (*m->end == '\0')
		return;
	f->begin = tokenizer_special(t, m->begin);
	f->end = tokenizer_special(t, m->end);
	f->state = is_open ? IN_THOUGHTS : begun != NULL ? IN_TEXT : AT_BEGIN;
}

void
chat_filter_next(struct chat_filter *f, uint32_t id, const char *bytes,
    size_t n, struct filter_out *out)
{
	out->ntext = out->nthought = 0;
	if (has_channels(f))
		take_in_channels(f, id, bytes, n, out);
	else
		take_marked(f, id, bytes, n, out);
}

void
chat_filter_end(struct chat_filter *f, struct filter_out *out)
{
	size_t i;

	out->ntext = out->nthought = 0;
	if (f->state == AT_BEGIN)
		put_first_space(f, out);
	for (i = 0; i < f->nheld; i++)
		put(f, f->held[i], out);
	f->nheld = f->nspace = 0;
}
