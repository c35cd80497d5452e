/* coordinator/print/wrap.c - text wrapped at words. */
#include "wrap.h"

#include <string.h>

/* Characters of UTF-8 text, each taken for one column. */
static size_t
columns_of(const char *text, size_t nbytes)
{
	size_t i, n = 0;

	for (i = 0; i < nbytes; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

void
wrap_begin(struct wrap *w, FILE *fp, size_t indent, const char *text)
{
	*w = (struct wrap){ .fp = fp, .indent = indent,
	    .column = columns_of(text, strlen(text)) };
	fputs(text, fp);
}

void
wrap_words(struct wrap *w, const char *text)
{
	size_t n, width;

	while (*(text += strspn(text, " ")) != '\0') {
		n = strcspn(text, " ");
		width = columns_of(text, n);
		if (w->column + 1 + width > WRAP_WIDTH) {
			fprintf(w->fp, "\n%*s", (int)w->indent, "");
			w->column = w->indent;
		} else {
			fputc(' ', w->fp);
			w->column++;
		}
		fprintf(w->fp, "%.*s", (int)n, text);
		w->column += width;
		text += n;
	}
}

void
wrap_end(struct wrap *w)
{
	fputc('\n', w->fp);
}
