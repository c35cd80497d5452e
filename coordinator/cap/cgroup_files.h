/* coordinator/cap/cgroup_files.h - files of groups, for cgroup*.c only. */
#ifndef COORDINATOR_CAP_CGROUP_FILES_H
#define COORDINATOR_CAP_CGROUP_FILES_H

#include "cgroup.h"

extern const struct cgroup_fs cgroup_kernel;

/* dir/file; -ENAMETOOLONG.  ret may not be dir. */
int cgroup_join(char ret[CGROUP_PATH], const char *dir, const char *file);

/* 0 or -errno; text is cut to len. */
int cgroup_read(const char *dir, const char *file, char *text, size_t len);
int cgroup_write(const struct cgroup_fs *fs, const char *dir,
    const char *file, const char *text);

/* A file of one number ("max" = UINT64_MAX); the number behind a word that
 * begins a line. */
int cgroup_read_number(const char *dir, const char *file, uint64_t *ret);
int cgroup_read_field(const char *dir, const char *file, const char *name,
    uint64_t *ret);

/* Remove the groups in t->dir whose coordinator is dead. */
void cgroup_sweep(const struct cgroup_tree *t);

#endif
