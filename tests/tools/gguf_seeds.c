/* tests/tools/gguf_seeds.c - write the files of gguf_cases.c into a folder.  They are
 * the seeds of the GGUF fuzzer, kept in tests/corpus/gguf. */
#include <stdio.h>

#include "tests/support/gguf_cases.h"

int
main(int argc, char **argv)
{
	unsigned i;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	for (i = 0; i < gguf_ncases; i++)
		gguf_case_save(&gguf_case[i], argv[1]);
	return 0;
}
