/* coordinator/text/filter.c - selects the tokens of an answer to show. */
#include "filter.h"

#include <string.h>

void
chat_filter_init(struct chat_filter *f, const struct tokenizer *t,
    const struct chat_template *ct)
{
	*f = (struct chat_filter){ .is_on = ct->channels, .in_header = 1 };
	if (!f->is_on)
		return;
	f->channel = tokenizer_special(t, "<|channel|>");
	f->message = tokenizer_special(t, "<|message|>");
	f->start = tokenizer_special(t, "<|start|>");
	f->end = tokenizer_special(t, "<|end|>");
	f->is_on = f->channel != NO_TOKEN && f->message != NO_TOKEN;
}

/* The header is complete: decide whether its message is shown. */
static void
begin_message(struct chat_filter *f)
{
	f->in_header = 0;
	f->is_shown = memmem(f->header, f->nheader, "final", 5) != NULL;
	if (f->is_shown && !f->answered)
		f->thoughts = f->header_at;
	f->answered |= f->is_shown;
}

int
chat_filter_next(struct chat_filter *f, uint32_t id, const char *text,
    size_t nbytes)
{
	uint32_t at = f->ntok++;
	size_t n;

	if (!f->is_on)
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
		return f->is_shown;
	n = MIN(nbytes, sizeof(f->header) - f->nheader);
	memcpy(f->header + f->nheader, text, n);
	f->nheader += n;
	return 0;
}
