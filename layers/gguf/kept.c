/* layers/gguf/kept.c - files that stay open for a process that may not open them
 * again. */
#include "gguf.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct kept {
	char *path;
	int fd, direct_fd;	/* direct_fd -1: no direct I/O */
} *kept;
static uint32_t nkept;

static int
again(int fd)
{
	return fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
}

/* Out of memory or descriptors: it is opened by its name, as any file. */
void
gguf_keep(const struct gguf_file *f, uint32_t n)
{
	struct kept *more, *k;

	for (; n > 0; n--, f++) {
		/* access() asks for the real user. */
		if (access(f->path, R_OK) == 0)
			continue;
		if ((more = reallocarray(kept, nkept + 1, sizeof(*k))) == NULL)
			return;
		kept = more;
		k = &kept[nkept];
		if ((k->path = strdup(f->path)) == NULL)
			return;
		k->direct_fd = gguf_open_direct(f);
		k->fd = again(f->fd);
		nkept++;
	}
}

int
gguf_kept(const char *path, int direct)
{
	uint32_t i;

	for (i = 0; i < nkept; i++)
		if (strcmp(kept[i].path, path) == 0)
			return again(direct ? kept[i].direct_fd : kept[i].fd);
	return -1;
}
