/* tests/fuzz/gguf.c - fuzzer of the GGUF parser: it must accept any bytes as a
 * consistent model, or refuse them cleanly.  A libFuzzer target (fuzz/gguf.dict;
 * gguf_seeds writes its seeds); with fuzz/main.c it replays files. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/gguf_walk.h"

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
