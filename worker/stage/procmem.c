/* worker/stage/procmem.c - reads VmHWM, VmPTE and AnonHugePages.
 *
 * Reading smaps_rollup walks the page tables, so it happens only when
 * statistics are asked for, never between batches.  Kernels before 4.14 and
 * some sandboxes lack the file. */
#include "procmem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_LEN = 8192 };	/* several times the size of either file */

int
procmem_open(struct procmem_files *ret, struct err *reterr)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(reterr, ERR_RUN, -errno,
		    "/proc/self/status: %s", strerror(errno));
	ret->status_fd = fd;
	ret->rollup_fd = open("/proc/self/smaps_rollup",
	    O_RDONLY | O_CLOEXEC);
	return 0;
}

void
procmem_close(struct procmem_files *f)
{
	if (f->status_fd >= 0)
		close(f->status_fd);
	if (f->rollup_fd >= 0)
		close(f->rollup_fd);
	*f = (struct procmem_files)PROCMEM_NONE;
}

/* Read the number after a name at the start of a line: "VmHWM:\t    1234
 * kB". */
static int
field(const char *text, const char *name, uint64_t *ret)
{
	size_t len = strlen(name);
	const char *p = text;
	char *end;

	while (strncmp(p, name, len) != 0) {
		if ((p = strchr(p, '\n')) == NULL)
			return -ENOENT;
		p++;
	}
	*ret = strtoull(p + len, &end, 10);
	return end > p + len ? 0 : -ENOENT;
}

int
procmem_parse(const char *status, const char *rollup, struct procmem *ret)
{
	uint64_t kib, may;

	memset(ret, 0, sizeof(*ret));
	if (field(status, "VmHWM:", &kib) < 0)
		return -ENOENT;
	ret->hwm_bytes = kib * KIB;
	/* Optional: emulators have neither, kernels before 5.0 no
	 * THP_enabled. */
	if (field(status, "VmPTE:", &kib) == 0)
		ret->pte_bytes = kib * KIB;
	ret->huge_off = field(status, "THP_enabled:", &may) == 0 && may == 0;
	if (rollup != NULL && field(rollup, "AnonHugePages:", &kib) == 0) {
		ret->huge_bytes = kib * KIB;
		ret->huge_known = 1;
	}
	return 0;
}

static int
read_text(int fd, char text[TEXT_LEN])
{
	ssize_t n = pread(fd, text, TEXT_LEN - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

int
procmem_read(const struct procmem_files *f, struct procmem *ret)
{
	char status[TEXT_LEN], rollup[TEXT_LEN];
	int rc;

	if ((rc = read_text(f->status_fd, status)) < 0)
		return rc;
	return procmem_parse(status, read_text(f->rollup_fd, rollup) < 0 ?
	    NULL : rollup, ret);
}
