/* coordinator/print/huge.c - huge pages: requested, obtained, and why not.
 *
 * Arenas of 4 MiB and more request them with madvise(), which succeeds even if
 * none are free: only the kernel's count shows the result.  It matters because
 * every token reads all weights, and pages of 4 KiB miss the TLB far more often
 * than pages of 2 MiB. */
#include "huge.h"

#include <string.h>

#define THP	"/sys/kernel/mm/transparent_hugepage/"
#define ENABLED	THP "enabled"

enum { WORD_LEN = 16, TEXT_LEN = 128 };

_Static_assert(REGION_HUGE_BYTES == 2048 * KIB, "ENABLED_SIZE names it");
#define ENABLED_SIZE	THP "hugepages-2048kB/enabled"

/* The word in brackets of "always [madvise] never".  0 = there is none. */
static int
selected_word(const char *text, char word[WORD_LEN])
{
	const char *p, *end;

	if (text == NULL || (p = strchr(text, '[')) == NULL ||
	    (end = strchr(++p, ']')) == NULL || end - p >= WORD_LEN ||
	    end == p)
		return 0;
	memcpy(word, p, (size_t)(end - p));
	word[end - p] = '\0';
	return 1;
}

const char *
huge_why(const char *all, const char *size, int off, char buf[HUGE_WHY_LEN])
{
	const char *path = ENABLED_SIZE;
	char word[WORD_LEN];
	int known = selected_word(size, word);

	if (!known || strcmp(word, "inherit") == 0) {
		path = ENABLED;
		known = selected_word(all, word);
	}
	if (off)
		snprintf(buf, HUGE_WHY_LEN, "they are switched off for this "
		    "process by what started it: prctl(PR_SET_THP_DISABLE)");
	else if (!known)
		snprintf(buf, HUGE_WHY_LEN, "reason unknown: " ENABLED
		    " cannot be read, so the kernel may have none");
	else if (strcmp(word, "never") == 0)
		snprintf(buf, HUGE_WHY_LEN, "%s says never: as root, "
		    "echo madvise > %s", path, path);
	else
		snprintf(buf, HUGE_WHY_LEN, "reason unknown (%s says %s); memory "
		    "may be fragmented: as root, "
		    "echo 1 > /proc/sys/vm/compact_memory", path, word);
	return buf;
}

/* The first line of a file; NULL when it cannot be read. */
static const char *
read_line(const char *path, char text[TEXT_LEN])
{
	FILE *fp = fopen(path, "re");
	const char *line;

	if (fp == NULL)
		return NULL;
	line = fgets(text, TEXT_LEN, fp);
	fclose(fp);
	return line;
}

void
huge_table(FILE *fp, const struct sessions *ss)
{
	char all[TEXT_LEN], size[TEXT_LEN], why[HUGE_WHY_LEN];
	const struct wire_stats *st;
	unsigned i, none = 0;
	int off = 0;

	fprintf(fp, "huge pages, MiB\n%-10s %8s %8s\n", "session", "asked",
	    "got");
	for (i = 0; i < ss->n; i++) {
		st = &ss->s[i].stats;
		fprintf(fp, "%-10s %8.2f ", ss->s[i].name,
		    (double)st->huge_asked_bytes / (double)MIB);
		/* Counted for the process. */
		if (!session_is_first(&ss->s[i])) {
			fprintf(fp, "%8s\n", "-");
			continue;
		}
		if (!st->huge_known) {
			fprintf(fp, "%8s\n", "unknown");
			continue;
		}
		fprintf(fp, "%8.2f\n", (double)st->huge_bytes / (double)MIB);
		if (st->huge_asked_bytes == 0 || st->huge_bytes > 0)
			continue;
		none++;
		off = off || st->huge_off;
	}
	if (none > 0)
		fprintf(fp, "note: %u of %u sessions asked for huge pages and "
		    "got none: %s\n", none, ss->n, huge_why(read_line(ENABLED,
		    all), read_line(ENABLED_SIZE, size), off, why));
}
