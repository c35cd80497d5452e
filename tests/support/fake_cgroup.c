/* tests/support/fake_cgroup.c - see fake_cgroup.h. */
#include "fake_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bsd/string.h>

#include "t.h"

struct fake_cgroup fake;

static const struct { const char *file, *text; } v1_files[] = {
	{ "cgroup.procs", "" },
	{ "memory.limit_in_bytes", "9223372036854771712\n" },
	{ "memory.memsw.limit_in_bytes", "9223372036854771712\n" },
	{ "memory.usage_in_bytes", "0\n" },
	{ "memory.max_usage_in_bytes", "0\n" },
	{ "memory.failcnt", "0\n" },
	{ "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n" },
}, v2_memory[] = {
	{ "memory.max", "max\n" },
	{ "memory.swap.max", "max\n" },
	{ "memory.current", "0\n" },
	{ "memory.peak", "0\n" },
	{ "memory.oom.group", "0\n" },
	{ "memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n" },
};

static void
write_file(const char *dir, const char *file, const char *text)
{
	char path[2048];
	FILE *fp;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fp = fopen(path, "w");
	ck_assert_msg(fp != NULL, "%s", path);
	fputs(text, fp);
	fclose(fp);
}

static const char *
read_file(const char *dir, const char *file)
{
	static char text[4096];
	char path[2048];
	size_t n;
	FILE *fp;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if ((fp = fopen(path, "r")) == NULL)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, fp);
	text[n] = '\0';
	fclose(fp);
	return text;
}

static int
is_empty(const char *text)
{
	return text == NULL || text[0] == '\0';
}

/* Create or remove the memory controller's files of a v2 group. */
static void
set_memory_files(const char *dir, int present)
{
	char path[2048];
	unsigned i;

	for (i = 0; i < NITEMS(v2_memory); i++) {
		if (fake.no_swap &&
		    strcmp(v2_memory[i].file, "memory.swap.max") == 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, v2_memory[i].file);
		if (!present)
			unlink(path);
		else if (read_file(dir, v2_memory[i].file) == NULL)
			write_file(dir, v2_memory[i].file, v2_memory[i].text);
	}
}

static void
create_group_files(const char *dir, int has_memory)
{
	unsigned i;

	if (fake.kind == CGROUP_V1) {
		for (i = 0; i < NITEMS(v1_files); i++)
			if (!fake.no_swap || strstr(v1_files[i].file,
			    "memsw") == NULL)
				write_file(dir, v1_files[i].file,
				    v1_files[i].text);
		return;
	}
	write_file(dir, "cgroup.procs", "");
	write_file(dir, "cgroup.controllers", has_memory ? "cpu memory pids\n" :
	    "cpu pids\n");
	write_file(dir, "cgroup.subtree_control", "");
	if (has_memory)
		set_memory_files(dir, 1);
}

static const char *
parent_dir(const char *dir)
{
	static char up[1024];

	strlcpy(up, dir, sizeof(up));
	*strrchr(up, '/') = '\0';
	return up;
}

static int
delegates_memory(const char *dir)
{
	const char *text = read_file(dir, "cgroup.subtree_control");

	return text != NULL && strstr(text, "memory") != NULL;
}

static int
fake_mkdir(const char *dir)
{
	if (fake.deny)
		return -EACCES;
	if (mkdir(dir, 0755) < 0)
		return -errno;
	fake.nmade++;
	create_group_files(dir, delegates_memory(parent_dir(dir)));
	return 0;
}

static int
fake_rmdir(const char *dir)
{
	char path[2048];
	struct dirent *e;
	DIR *d;

	if (!is_empty(read_file(dir, "cgroup.procs")))
		return -EBUSY;
	if ((d = opendir(dir)) == NULL)
		return -errno;
	while ((e = readdir(d)) != NULL) {
		if (e->d_type == DT_DIR && e->d_name[0] != '.') {
			closedir(d);
			return -EBUSY;
		}
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_type == DT_REG)
			unlink(path);
	}
	closedir(d);
	return rmdir(dir) < 0 ? -errno : 0;
}

/* Remove a process, "PID\n", from a group's cgroup.procs. */
static void
leave_group(const char *dir, const char *line)
{
	char text[4096];
	const char *procs = read_file(dir, "cgroup.procs"), *p;

	if (procs == NULL || (p = strstr(procs, line)) == NULL)
		return;
	strlcpy(text, procs, sizeof(text));
	strlcpy(text + (p - procs), p + strlen(line),
	    sizeof(text) - (size_t)(p - procs));
	write_file(dir, "cgroup.procs", text);
}

/* Its group is the base or right below it. */
static void
leave_every_group(const char *line)
{
	struct dirent *e;
	char path[2048];
	DIR *d = opendir(fake.base);

	leave_group(fake.base, line);
	while ((e = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", fake.base, e->d_name);
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			leave_group(path, line);
	}
	closedir(d);
}

static int
move_process(const char *dir, int pid)
{
	char line[32], text[4096];

	/* v2 allows no processes in a group that has controllers enabled for
	 * its children. */
	if (delegates_memory(dir))
		return -EBUSY;
	snprintf(line, sizeof(line), "%d\n", pid);
	leave_every_group(line);
	snprintf(text, sizeof(text), "%s%s", read_file(dir, "cgroup.procs"),
	    line);
	write_file(dir, "cgroup.procs", text);
	return 0;
}

static int
delegate_memory(const char *dir, int on)
{
	struct dirent *e;
	char path[2048];
	DIR *d;

	if (on &&
	    strstr(read_file(dir, "cgroup.controllers"), "memory") == NULL)
		return -ENOENT;
	if (on && !is_empty(read_file(dir, "cgroup.procs")))
		return -EBUSY;
	write_file(dir, "cgroup.subtree_control", on ? "memory\n" : "");
	d = opendir(dir);
	while ((e = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			set_memory_files(path, on);
	}
	closedir(d);
	return 0;
}

static int
fake_write(const char *path, const char *text)
{
	const char *file = strrchr(path, '/') + 1;
	char dir[1024], kept[64];

	strlcpy(dir, parent_dir(path), sizeof(dir));
	if (read_file(dir, file) == NULL)
		return -ENOENT;
	if (strcmp(file, "cgroup.procs") == 0)
		return move_process(dir, text[0] == '0' ? (int)getpid() :
		    atoi(text));
	if (strcmp(file, "cgroup.subtree_control") == 0)
		return delegate_memory(dir, text[0] == '+');
	snprintf(kept, sizeof(kept), "%llu\n", fake.ignore_limits ? 1ULL << 40 :
	    strstr(file, "oom.group") != NULL ? 1ULL :
	    strtoull(text, NULL, 10) / 4096 * 4096);
	write_file(dir, file, kept);
	return 0;
}

const struct cgroup_fs fake_fs = { fake_mkdir, fake_rmdir, fake_write };

/* --- set-up and inspection --- */

static void
make_path(const char *path)
{
	char cmd[2200];

	snprintf(cmd, sizeof(cmd), "mkdir -p '%s'", path);
	ck_assert_int_eq(system(cmd), 0);
}

void
fake_open(enum cgroup_kind kind, const char *mount_root, const char *path,
    int shared)
{
	size_t n = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
	char text[2048], dir[1024];
	static unsigned nth;

	memset(&fake, 0, sizeof(fake));
	fake.kind = kind;
	snprintf(fake.root, sizeof(fake.root), "%s/%u", t_tmpdir(), nth++);
	snprintf(fake.base, sizeof(fake.base), "%s/sys/fs/cgroup%s",
	    fake.root, strlen(path) > n ? path + n : "");
	if (fake.base[strlen(fake.base) - 1] == '/')
		fake.base[strlen(fake.base) - 1] = '\0';
	make_path(fake.base);
	create_group_files(fake.base, 1);
	snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (shared)
		snprintf(text + strlen(text), 32, "%d\n", FAKE_OTHER_PID);
	write_file(fake.base, "cgroup.procs", text);
	snprintf(dir, sizeof(dir), "%s/proc/self", fake.root);
	make_path(dir);
	snprintf(text, sizeof(text), "22 1 0:20 / /proc rw - proc proc rw\n"
	    "30 1 0:26 / /cpu rw,relatime - cgroup cgroup rw,cpu\n"
	    "31 1 0:27 %s /sys/fs/cgroup rw,relatime shared:9 - %s\n",
	    mount_root, kind == CGROUP_V1 ? "cgroup cgroup rw,memory" :
	    "cgroup2 cgroup2 rw,nsdelegate");
	write_file(dir, "mountinfo", text);
	snprintf(text, sizeof(text), "5:cpu:/elsewhere\n%s%s\n",
	    kind == CGROUP_V1 ? "4:memory:" : "0::", path);
	write_file(dir, "cgroup", text);
}

void
fake_set(const char *group, const char *file, const char *text)
{
	char dir[1100];

	snprintf(dir, sizeof(dir), "%s/%s", fake.base, group);
	write_file(dir, file, text);
}

const char *
fake_get(const char *group, const char *file)
{
	char dir[1100];

	snprintf(dir, sizeof(dir), "%s/%s", fake.base, group);
	return read_file(dir, file);
}

unsigned
fake_count(const char *prefix)
{
	DIR *d = opendir(fake.base);
	struct dirent *e;
	unsigned n = 0;

	while ((e = readdir(d)) != NULL)
		n += e->d_type == DT_DIR && e->d_name[0] != '.' &&
		    strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	closedir(d);
	return n;
}
