/* tests/tools/pieces_seeds.c - write the blocks of small vocabularies into a
 * folder: the seeds of fuzz/pieces.c, kept in tests/corpus/pieces. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/pieces_cases.h"
#include "tests/support/pieces_walk.h"

static void
save_block(const char *gguf)
{
	char path[4096];
	uint64_t nbytes;
	void *block = pieces_make(gguf, &nbytes);
	FILE *fp;

	snprintf(path, sizeof(path), "%.*s", (int)(strlen(gguf) -
	    strlen(".gguf")), gguf);
	if ((fp = fopen(path, "we")) == NULL)
		err(1, "%s", path);
	fwrite(block, 1, nbytes, fp);
	if (fclose(fp) != 0)
		err(1, "%s", path);
	free(block);
}

int
main(int argc, char **argv)
{
	const char *path;
	unsigned i;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	for (i = 0; i < PIECES_NCASES; i++) {
		path = pieces_case_save(i, argv[1]);
		save_block(path);
		remove(path);
	}
	return 0;
}
