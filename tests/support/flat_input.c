/* tests/support/flat_input.c - see flat_input.h. */
#include "flat_input.h"

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_walk.h"
#include "layers/gguf/flat.h"

/* Files that are not there, with the sizes of the input.  Returns the bytes
 * read. */
static size_t
take_files(const uint8_t *data, size_t n,
    struct gguf_file file[FLAT_INPUT_FILES], uint32_t *ret_nfiles)
{
	uint64_t word = 0;
	uint32_t i;
	size_t at = MIN(n, sizeof(word));

	memcpy(&word, data, at);
	*ret_nfiles = 1 + (uint32_t)((word - 1) % FLAT_INPUT_FILES);
	for (i = 0; i < *ret_nfiles; i++) {
		word = 0;
		memcpy(&word, data + at, MIN(n - at, sizeof(word)));
		at += MIN(n - at, sizeof(word));
		file[i] = (struct gguf_file){ .fd = -1,
		    .nbytes = word & INT64_MAX, .path = strdup("input") };
		if (file[i].path == NULL)
			errx(1, "no memory");
	}
	return at;
}

static const char *
check_refusal(int rc, const struct gguf *g, const struct err *e)
{
	static const char start[] = "the reader's image: ";

	if (rc != -EBADMSG || e->kind != ERR_RUN)
		return "a bad block is -EBADMSG with ERR_RUN";
	if (g != NULL)
		return "no view is returned on failure";
	if (strncmp(e->msg, start, sizeof(start) - 1) != 0)
		return "the message names the reader's image";
	return NULL;
}

const char *
flat_input_try(const uint8_t *data, size_t n, int *ret_rc)
{
	struct gguf_file file[FLAT_INPUT_FILES];
	struct err e = { .kind = ERR_NONE };
	const char *broken;
	uint32_t nfiles, i;
	uint8_t *block;
	struct gguf *g;
	size_t at = take_files(data, n, file, &nfiles);

	n -= at;
	/* Memory of exactly this size, for the sanitizers. */
	if ((block = malloc(MAX(n, 1))) == NULL)
		errx(1, "no memory");
	memcpy(block, data + at, n);
	*ret_rc = gguf_flat_open(block, n, file, nfiles, &g, &e);
	broken = *ret_rc == 0 ? gguf_walk_view(g, block, n) :
	    check_refusal(*ret_rc, g, &e);
	for (i = 0; i < nfiles; i++) {
		if ((*ret_rc == 0) != (file[i].path == NULL))
			broken = "files are taken over on success only";
		gguf_file_close(&file[i]);
	}
	gguf_close(g);
	free(block);
	return broken;
}

void
flat_input_save(const struct gguf *g, const char *path)
{
	const uint64_t nfiles = g->nfiles;
	struct err e = { .kind = ERR_NONE };
	uint64_t n;
	uint32_t i;
	FILE *fp;
	void *block;

	if (gguf_flat_bytes(g, &n, &e) < 0 || (block = malloc(n)) == NULL)
		errx(1, "%s: %s", path, e.msg);
	gguf_flat_write(g, block);
	if ((fp = fopen(path, "we")) == NULL)
		err(1, "%s", path);
	fwrite(&nfiles, sizeof(nfiles), 1, fp);
	for (i = 0; i < nfiles; i++)
		fwrite(&g->file[i].nbytes, sizeof(uint64_t), 1, fp);
	fwrite(block, 1, n, fp);
	if (fclose(fp) != 0)
		err(1, "%s", path);
	free(block);
}
