/* coordinator/print/thoughts.c - a model's thoughts on stdout, told apart from its
 * answer. */
#include "thoughts.h"

#include <string.h>

#include "config/log.h"
#include "output.h"

static int
put(const char *text)
{
	return output_text(text, strlen(text));
}

int
thoughts_show(struct thoughts_frame *f, const char *bytes, size_t nbytes)
{
	int rc = f->is_open ? 0 : put("<think>\n");

	f->is_open = 1;
	return rc < 0 ? rc : output_text(bytes, nbytes);
}

int
thoughts_leave(struct thoughts_frame *f)
{
	if (!f->is_open)
		return 0;
	f->is_open = 0;
	return put("\n</think>\n\n");
}

void
thoughts_note(uint32_t ntokens)
{
	if (ntokens > 0)
		log_info("%u of the tokens are the model's thoughts, which are "
		    "not shown: --thinking show prints them, --thinking off "
		    "asks for none", ntokens);
}
