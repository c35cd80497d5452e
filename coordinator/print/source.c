/* coordinator/print/source.c - reads prompts, texts and lists of ids. */
#include "source.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/log.h"
#include "config/own_cap.h"
#include "config/units.h"

enum { WAIT_MS = 2000 };	/* before a note that nothing comes */

/* How many bytes a text may have. */
struct bounds {
	size_t most;		/* reading stops behind it, and the caller refuses
				 * the text; SIZE_MAX = it does not */
	size_t limit;		/* so many are refused */
	unsigned factor;	/* memory per byte beside the text; 0 = the
				 * caller knows that there is enough */
};

static int
check_size(const char *path, uint64_t nbytes, const struct bounds *b,
    struct err *reterr)
{
	if (nbytes >= b->limit)
		return err_set(reterr, ERR_USAGE, -EFBIG, "%s: it has %zu MiB "
		    "or more, which is too long: split it", path,
		    b->limit / MIB);
	return b->factor == 0 ? 0 :
	    own_cap_check(path, nbytes, b->factor, reterr);
}

/* The size of a file, before any of it is read; 0 = it has none. */
static uint64_t
file_size(FILE *fp)
{
	struct stat st;

	return fstat(fileno(fp), &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size < 0 ? 0 : (uint64_t)st.st_size;
}

static int
read_all(FILE *fp, const char *path, const struct bounds *b,
    struct source *ret, struct err *reterr)
{
	size_t cap = 64 * 1024, n;
	char *grown;
	int rc;

	if (b->most == SIZE_MAX &&
	    (rc = check_size(path, file_size(fp), b, reterr)) < 0)
		return rc;
	while ((grown = realloc(ret->text, cap + 1)) != NULL) {
		ret->text = grown;
		n = fread(ret->text + ret->nbytes, 1, cap - ret->nbytes, fp);
		ret->nbytes += n;
		if (n == 0 || ret->nbytes > b->most)
			break;
		if (ret->nbytes < cap)
			continue;
		if ((rc = check_size(path, cap, b, reterr)) < 0)
			return rc;
		cap *= 2;
	}
	if (grown == NULL)
		return err_nomem(reterr, "the text of %s", path);
	if (ferror(fp))
		return err_set(reterr, ERR_USAGE, -EIO, "%s: cannot read: %s",
		    path, strerror(errno));
	ret->text[ret->nbytes] = '\0';
	return ret->nbytes > b->most ? 0 :
	    check_size(path, ret->nbytes, b, reterr);
}

/* Say so when nothing comes: a pipe that nobody writes to looks like a hang. */
static void
wait_for_stdin(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	if (poll(&p, 1, WAIT_MS) == 0)
		log_info("waiting for a text on stdin");
}

static int
read_source(const char *text, const char *path, const struct bounds *b,
    struct source *ret, struct err *reterr)
{
	FILE *fp;
	int rc;

	*ret = (struct source){ 0 };
	if (text != NULL) {
		if ((ret->text = strdup(text)) == NULL)
			return err_nomem(reterr, "a text of %zu bytes",
			    strlen(text));
		ret->nbytes = strlen(text);
		return 0;
	}
	if (strcmp(path, "-") == 0) {
		wait_for_stdin();
		return read_all(stdin, "stdin", b, ret, reterr);
	}
	if ((fp = fopen(path, "re")) == NULL)
		return err_set(reterr, ERR_USAGE, -errno, "%s: %s", path,
		    strerror(errno));
	rc = read_all(fp, path, b, ret, reterr);
	fclose(fp);
	return rc;
}

int
source_read(const char *text, const char *path, struct source *ret,
    struct err *reterr)
{
	static const struct bounds b = { .most = SIZE_MAX,
	    .limit = SOURCE_TEXT_BYTES, .factor = 8 };

	return read_source(text, path, &b, ret, reterr);
}

int
source_read_most(const char *text, const char *path, size_t most,
    struct source *ret, struct err *reterr)
{
	const struct bounds b = { .most = most,
	    .limit = SOURCE_PROMPT_BYTES };

	return read_source(text, path, &b, ret, reterr);
}

int
source_read_prompts(const char *path, struct source *ret, struct err *reterr)
{
	static const struct bounds b = { .most = SIZE_MAX,
	    .limit = SOURCE_PROMPT_BYTES, .factor = 1 };

	return read_source(NULL, path, &b, ret, reterr);
}

void
source_chomp(struct source *s)
{
	if (s->nbytes == 0 || s->text[s->nbytes - 1] != '\n')
		return;
	s->nbytes--;
	if (s->nbytes > 0 && s->text[s->nbytes - 1] == '\r')
		s->nbytes--;
	s->text[s->nbytes] = '\0';
}

/* The capacity for nbytes and a NUL: a power of two, so that appending is
 * amortized. */
static size_t
capacity_for(size_t nbytes)
{
	size_t n = 256;

	while (n <= nbytes)
		n *= 2;
	return n;
}

int
source_append(struct source *s, const char *bytes, size_t nbytes,
    struct err *reterr)
{
	size_t want = capacity_for(s->nbytes + nbytes);
	char *grown;

	if (s->text == NULL || want != capacity_for(s->nbytes)) {
		if ((grown = realloc(s->text, want)) == NULL)
			return err_nomem(reterr, "a text of %zu bytes", want);
		s->text = grown;
	}
	memcpy(s->text + s->nbytes, bytes, nbytes);
	s->nbytes += nbytes;
	s->text[s->nbytes] = '\0';
	return 0;
}

void
source_free(struct source *s)
{
	free(s->text);
	s->text = NULL;
}

int
source_ids(const struct source *text, uint32_t limit, uint32_t **ret_ids,
    size_t *ret_n, struct err *reterr)
{
	static const char between[] = " \t\r\n,";
	char *copy = strdup(text->text), *word, *save;
	uint32_t *ids = calloc(text->nbytes / 2 + 1, sizeof(*ids));
	size_t n = 0;
	int64_t v;
	int rc = 0;

	if (copy == NULL || ids == NULL)
		rc = err_nomem(reterr, "the ids in a text of %zu bytes",
		    text->nbytes);
	else if (strlen(copy) != text->nbytes)
		rc = err_set(reterr, ERR_USAGE, -EINVAL, "a NUL byte among "
		    "the token ids, at byte %zu", strlen(copy));
	for (word = rc == 0 ? strtok_r(copy, between, &save) : NULL;
	    word != NULL; word = strtok_r(NULL, between, &save)) {
		if ((rc = units_parse_int(word, 0, (int64_t)limit - 1, &v,
		    reterr)) < 0) {
			err_prefix(reterr, "token id %zu", n + 1);
			break;
		}
		ids[n++] = (uint32_t)v;
	}
	free(copy);
	if (rc < 0) {
		free(ids);
		return rc;
	}
	*ret_ids = ids;
	*ret_n = n;
	return 0;
}
