/* tests/fuzz_gguf.c - any bytes are either a model or a clean refusal.
 * With -DFUZZER -fsanitize=fuzzer: a libFuzzer target (fuzz_gguf.dict, seeds
 * in corpus/gguf).  Without: a program that replays the files it is given, or
 * with --seeds FOLDER writes the seeds there. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gguf_cases.h"
#include "gguf_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gguf *g = NULL;
	struct err e = { .kind = ERR_NONE };
	const char *broken;
	char path[64];
	int fd, rc;

	if ((fd = memfd_create("gguf", MFD_CLOEXEC)) < 0 ||
	    write(fd, data, n) != (ssize_t)n)
		err(1, "memfd");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = gguf_open(path, &g, &e);
	broken = rc == 0 ? gguf_walk(g) : gguf_walk_refusal(path, rc, g, &e);
	if (broken != NULL) {
		fprintf(stderr, "broken: %s (rc %d, %s)\n", broken, rc,
		    e.msg);
		abort();
	}
	gguf_close(g);
	close(fd);
	return 0;
}

#ifndef FUZZER
static void
replay(const char *path)
{
	static uint8_t buf[1 << 24];
	FILE *fp;
	size_t n;

	if ((fp = fopen(path, "rb")) == NULL)
		err(1, "%s", path);
	n = fread(buf, 1, sizeof(buf), fp);
	fclose(fp);
	LLVMFuzzerTestOneInput(buf, n);
}

int
main(int argc, char **argv)
{
	int i;

	if (argc == 3 && strcmp(argv[1], "--seeds") == 0) {
		for (i = 0; i < (int)gguf_ncases; i++)
			gguf_case_save(&gguf_case[i], argv[2]);
		return 0;
	}
	for (i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%d inputs replayed\n", argc - 1);
	return 0;
}
#endif
