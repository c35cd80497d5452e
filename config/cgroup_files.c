/* config/cgroup_files.c - reads and writes the files of a control
 * group. */
#include "cgroup_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bsd/string.h>

static int
kernel_mkdir(const char *dir)
{
	/* Private: see coordinator/cap/cgroup.c. */
	return mkdir(dir, 0700) < 0 ? -errno : 0;
}

static int
kernel_rmdir(const char *dir)
{
	return rmdir(dir) < 0 ? -errno : 0;
}

static int
kernel_write(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

const struct cgroup_fs cgroup_kernel = {
	kernel_mkdir, kernel_rmdir, kernel_write
};

int
cgroup_join(char ret[CGROUP_PATH], const char *dir, const char *file)
{
	/* Async-signal-safe, unlike snprintf(). */
	return strlcpy(ret, dir, CGROUP_PATH) >= CGROUP_PATH ||
	    strlcat(ret, "/", CGROUP_PATH) >= CGROUP_PATH ||
	    strlcat(ret, file, CGROUP_PATH) >= CGROUP_PATH ?
	    -ENAMETOOLONG : 0;
}

int
cgroup_read(const char *dir, const char *file, char *text, size_t len)
{
	char path[CGROUP_PATH];
	size_t have = 0;
	ssize_t n = 1;
	int fd, rc;

	if ((rc = cgroup_join(path, dir, file)) < 0)
		return rc;
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return -errno;
	while (n > 0 && have < len - 1)
		if ((n = read(fd, text + have, len - 1 - have)) > 0)
			have += (size_t)n;
	rc = n < 0 ? -errno : 0;
	close(fd);
	text[have] = '\0';
	return rc;
}

int
cgroup_write(const struct cgroup_fs *fs, const char *dir, const char *file,
    const char *text)
{
	char path[CGROUP_PATH];
	int rc = cgroup_join(path, dir, file);

	return rc < 0 ? rc : fs->write(path, text);
}

static int
parse_number(const char *text, uint64_t *ret)
{
	char *end;

	if (strncmp(text, "max", 3) == 0) {
		*ret = UINT64_MAX;
		return 0;
	}
	*ret = strtoull(text, &end, 10);
	return end > text ? 0 : -EBADMSG;
}

int
cgroup_read_number(const char *dir, const char *file, uint64_t *ret)
{
	char text[64];
	int rc = cgroup_read(dir, file, text, sizeof(text));

	return rc < 0 ? rc : parse_number(text, ret);
}

int
cgroup_read_field(const char *dir, const char *file, const char *name,
    uint64_t *ret)
{
	size_t len = strlen(name);
	char text[8192], *p = text;
	int rc;

	if ((rc = cgroup_read(dir, file, text, sizeof(text))) < 0)
		return rc;
	while (strncmp(p, name, len) != 0 || p[len] != ' ') {
		if ((p = strchr(p, '\n')) == NULL)
			return -ENOENT;
		p++;
	}
	return parse_number(p + len + 1, ret);
}
