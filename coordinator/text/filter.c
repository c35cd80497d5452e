/* coordinator/text/filter.c - which tokens of an answer are for the user. */
#include "filter.h"

#include <string.h>

enum { NO_ID = -1 };

void
chat_filter_init(struct chat_filter *f, const struct tokenizer *t,
    const struct chat_template *ct)
{
	*f = (struct chat_filter){ .on = ct->channels, .in_header = 1 };
	if (!f->on)
		return;
	f->channel = tokenizer_special(t, "<|channel|>");
	f->message = tokenizer_special(t, "<|message|>");
	f->start = tokenizer_special(t, "<|start|>");
	f->end = tokenizer_special(t, "<|end|>");
	f->on = f->channel != NO_ID && f->message != NO_ID;
}

/* The header is read: whose is the message? */
static void
begin_message(struct chat_filter *f)
{
	f->in_header = 0;
	f->shows = memmem(f->header, f->nheader, "final", 5) != NULL;
	if (f->shows && !f->answered)
		f->thoughts = f->header_at;
	f->answered |= f->shows;
}

int
chat_filter_next(struct chat_filter *f, uint32_t id, const char *text,
    size_t nbytes)
{
	uint32_t at = f->ntok++;
	size_t n;

	if (!f->on)
		return 1;
	if ((int32_t)id == f->message) {
		begin_message(f);
		return 0;
	}
	if ((int32_t)id == f->start || (int32_t)id == f->end ||
	    (int32_t)id == f->channel) {
		f->in_header = 1;
		f->nheader = 0;
		f->header_at = at;
		return 0;
	}
	if (!f->in_header)
		return f->shows;
	n = MIN(nbytes, sizeof(f->header) - f->nheader);
	memcpy(f->header + f->nheader, text, n);
	f->nheader += n;
	return 0;
}
