/* config/cgroup_files.h - the files of control groups.
 * Owns: nothing.  Called by cgroup_find.c, room.c, quota.c and coordinator/cap/.
 * Knows paths and numbers, not what they mean.  Functions return 0 or
 * -errno. */
#ifndef CONFIG_CGROUP_FILES_H
#define CONFIG_CGROUP_FILES_H

#include "base.h"

enum { CGROUP_PATH = 1024 };

/* Operations that have effects in the kernel.  Tests put a simulated kernel
 * here. */
struct cgroup_fs {
	int (*mkdir)(const char *dir);
	int (*rmdir)(const char *dir);
	int (*write)(const char *file, const char *text);
};

extern const struct cgroup_fs cgroup_kernel;

/* Set ret to dir/file.  -ENAMETOOLONG.  ret must not be dir. */
int cgroup_join(char ret[CGROUP_PATH], const char *dir, const char *file);

/* Read dir/file, at most len - 1 bytes, as a string. */
int cgroup_read(const char *dir, const char *file, char *text, size_t len);
int cgroup_write(const struct cgroup_fs *fs, const char *dir,
    const char *file, const char *text);

/* Read a file of one number; "max" is UINT64_MAX. */
int cgroup_read_number(const char *dir, const char *file, uint64_t *ret);
/* Read the number on the line that begins with name; -ENOENT: there is none. */
int cgroup_read_field(const char *dir, const char *file, const char *name,
    uint64_t *ret);

#endif
