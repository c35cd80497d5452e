/* worker/procmem.c - VmHWM and VmPTE. */
#include "procmem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
procmem_open(int *ret_fd, struct err *reterr)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(reterr, ERR_RUN, -errno,
		    "/proc/self/status: %s", strerror(errno));
	*ret_fd = fd;
	return 0;
}

/* "VmHWM:\t    1234 kB" */
static int
field(const char *text, const char *name, uint64_t *ret)
{
	const char *p = strstr(text, name);

	if (p == NULL)
		return -ENOENT;
	*ret = strtoull(p + strlen(name), NULL, 10) * KIB;
	return 0;
}

int
procmem_read(int fd, struct procmem *ret)
{
	char text[8192];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (field(text, "VmHWM:", &ret->hwm_bytes) < 0)
		return -ENOENT;
	/* Emulators leave VmPTE out. */
	if (field(text, "VmPTE:", &ret->pte_bytes) < 0)
		ret->pte_bytes = 0;
	return 0;
}
