/* coordinator/cap/remedy.c - remedies for missing memory groups. */
#include "remedy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>
#include <bsd/string.h>

/* 1 = something listens on the socket. */
static int
answers(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd, ok;

	if (strlcpy(sa.sun_path, path, sizeof(sa.sun_path)) >=
	    sizeof(sa.sun_path))
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return 0;
	/* EAGAIN: it listens, and is busy. */
	ok = connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0 ||
	    errno == EAGAIN;
	close(fd);
	return ok;
}

static int
has_system_bus(const char *root)
{
	char path[CGROUP_PATH];

	snprintf(path, sizeof(path), "%s/run/systemd/system", root);
	if (access(path, F_OK) < 0)
		return 0;
	snprintf(path, sizeof(path), "%s/run/dbus/system_bus_socket", root);
	return answers(path);
}

static int
has_user_bus(void)
{
	const char *dir = secure_getenv("XDG_RUNTIME_DIR");
	char path[CGROUP_PATH];

	return dir != NULL && cgroup_join(path, dir, "bus") == 0 &&
	    answers(path);
}

static int
is_container(const char *root, const char *dir)
{
	static const char *const marks[] = { "/.dockerenv",
	    "/run/.containerenv", "/run/host/container-manager" };
	char path[CGROUP_PATH];
	struct statvfs fs;
	unsigned i;

	for (i = 0; i < NITEMS(marks); i++) {
		snprintf(path, sizeof(path), "%s%s", root, marks[i]);
		if (access(path, F_OK) == 0)
			return 1;
	}
	return secure_getenv("container") != NULL ||
	    (statvfs(dir, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0);
}

const char *
remedy_for_groups(const char *root, enum cgroup_kind kind, const char *dir,
    char buf[REMEDY_LEN])
{
	const unsigned uid = (unsigned)geteuid();

	if (is_container(root, dir))
		snprintf(buf, REMEDY_LEN, "a container needs a writable "
		    "/sys/fs/cgroup with its own groups (docker run "
		    "--privileged --cgroupns=private)");
	else if (kind == CGROUP_V2 && uid != 0 && has_user_bus())
		snprintf(buf, REMEDY_LEN, "`systemd-run --user --scope -p "
		    "Delegate=yes straddle ...` gives it a group of its own");
	else if (kind == CGROUP_V2 && has_system_bus(root))
		snprintf(buf, REMEDY_LEN, "%s`systemd-run --scope -p "
		    "Delegate=yes%s straddle ...` gives it a group of its "
		    "own", uid != 0 ? "as root, " : "", uid != 0 ?
		    " --uid=USER" : "");
	else if (kind == CGROUP_V2)
		snprintf(buf, REMEDY_LEN, "as root, make a group that has the "
		    "memory controller, give user %u its cgroup.procs, "
		    "cgroup.subtree_control and folder, and start straddle in "
		    "it alone", uid);
	else if (kind == CGROUP_V1)
		snprintf(buf, REMEDY_LEN, "as root, `mkdir D; chown -R %u D` "
		    "with D=%.200s/straddle; then `echo $$ >D/cgroup.procs` "
		    "before straddle starts", uid, dir);
	else
		snprintf(buf, REMEDY_LEN, "mount one, as root: `mount -t "
		    "cgroup2 none /sys/fs/cgroup`");
	return buf;
}
