/* worker/hexagon/board.c - checks remote processor, nodes, access, files,
 * library. */
#include "board.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bsd/string.h>

#include "fastrpc_lib.h"

/* In the order in which libcdsprpc.so tries them (open_device_node()). */
static const char *const nodes[] = {
	"/dev/fastrpc-cdsp-secure", "/dev/fastrpc-cdsp", "/dev/adsprpc-smd",
};

#define HEAP		"/dev/dma_heap/system"
#define REMOTEPROC	"/sys/class/remoteproc"

/* Where boards keep the DSP's own files. */
#define DSP_FOLDERS	"/usr/lib/dsp;/usr/lib/dsp/cdsp;/usr/lib/rfsa/adsp"
/* The file that a process on the DSP starts from; 3 is the cdsp. */
#define DSP_SHELL	"fastrpc_shell_unsigned_3"
#define MODULE		"libstraddle-domain-v"

/* Read the first line of a file; 0 = none. */
static int
read_line(const char *path, char *ret, size_t len)
{
	FILE *fp = fopen(path, "re");
	int there = fp != NULL && fgets(ret, (int)len, fp) != NULL;

	if (fp != NULL)
		fclose(fp);
	if (there)
		ret[strcspn(ret, "\n")] = '\0';
	return there;
}

/* --- the remote processor --- */

/* Find the remote processor called cdsp: its folder (without root) and state; 0
 * = none. */
static int
find_cdsp(const char *root, char ret_dir[PATH_MAX], char *ret_state,
    size_t len)
{
	char path[PATH_MAX], name[64];
	struct dirent *e;
	int there = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s" REMOTEPROC, root);
	if ((d = opendir(path)) == NULL)
		return 0;
	while (!there && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, "remoteproc", 10) != 0)
			continue;
		snprintf(ret_dir, PATH_MAX, REMOTEPROC "/%s", e->d_name);
		snprintf(path, sizeof(path), "%s" REMOTEPROC "/%s/name", root,
		    e->d_name);
		if (!read_line(path, name, sizeof(name)) ||
		    strcmp(name, "cdsp") != 0)
			continue;
		snprintf(path, sizeof(path), "%s" REMOTEPROC "/%s/state",
		    root, e->d_name);
		if (!read_line(path, ret_state, len))
			strlcpy(ret_state, "unknown", len);
		there = 1;
	}
	closedir(d);
	return there;
}

static void
look_remoteproc(const char *root, struct device_probe *p)
{
	char dir[PATH_MAX], state[32];

	if (!find_cdsp(root, dir, state, sizeof(state)))
		probe_add(p, "remoteproc", 0, "no remote processor called cdsp "
		    "under " REMOTEPROC ": the kernel needs qcom_q6v5_pas, "
		    "and the board's device tree its cdsp");
	else if (strcmp(state, "running") == 0)
		probe_add(p, "remoteproc", 1, "%.100s is running", dir);
	else
		probe_add(p, "remoteproc", 0, "%.100s is %s: as root, echo "
		    "start >%.100s/state; when that fails, the kernel's log "
		    "names the firmware file that is missing (also from the "
		    "initramfs, if it starts there)", dir, state, dir);
}

/* --- nodes, and who may open them --- */

static int
in_group(const struct board_user *u, gid_t gid)
{
	unsigned i;

	for (i = 0; i < u->ngids; i++)
		if (u->gid[i] == gid)
			return 1;
	return 0;
}

static int
may_open(const struct stat *st, const struct board_user *u)
{
	mode_t want = S_IRUSR | S_IWUSR;

	if (u->uid == 0)
		return 1;
	if (st->st_uid == u->uid)
		return (st->st_mode & want) == want;
	if (in_group(u, st->st_gid))
		want >>= 3;
	else
		want >>= 6;
	return (st->st_mode & want) == want;
}

/* "render", or the number. */
static const char *
group_name(gid_t gid, char *buf, size_t len)
{
	const struct group *g = getgrgid(gid);

	if (g != NULL)
		strlcpy(buf, g->gr_name, len);
	else
		snprintf(buf, len, "%u", (unsigned)gid);
	return buf;
}

/* If the node exists, check whether the user may open it, and if not, who may.
 * 0 = no such node. */
static int
look_access(const char *root, const char *node, const char *what,
    const struct board_user *u, struct device_probe *p)
{
	char path[PATH_MAX], group[64];
	struct stat st;
	unsigned mode;

	snprintf(path, sizeof(path), "%s%s", root, node);
	if (stat(path, &st) < 0)
		return 0;
	mode = st.st_mode & 0777;
	group_name(st.st_gid, group, sizeof(group));
	if (may_open(&st, u))
		probe_add(p, what, 1, "%s may be opened (group %s, mode %04o)",
		    node, group, mode);
	else if ((mode & 0060) == 0060 && st.st_gid != 0)
		probe_add(p, what, 0, "%s is for the group %s (mode %04o), and "
		    "this user is not a member: as root, usermod -aG %s "
		    "USER, then log in again", node, group, mode, group);
	else
		probe_add(p, what, 0, "%s is for root alone (group %s, mode "
		    "%04o): a rule of udev lets a group in: KERNEL==\"%s\", "
		    "GROUP=\"render\", MODE=\"0660\"", node, group, mode,
		    strrchr(node, '/') + 1);
	return 1;
}

static void
look_nodes(const char *root, const struct board_user *u,
    struct device_probe *p)
{
	struct device_check *best = &p->check[p->nchecks];
	unsigned i, at = p->nchecks;

	/* One node that may be opened is enough: libcdsprpc.so tries the
	 * next. */
	for (i = 0; i < NITEMS(nodes); i++) {
		if (!look_access(root, nodes[i], "device node", u, p))
			continue;
		if (p->check[p->nchecks - 1].ok || at + 1 < p->nchecks) {
			*best = p->check[p->nchecks - 1];
			p->nchecks = at + 1;
		}
		if (best->ok)
			return;
	}
	if (p->nchecks == at)
		probe_add(p, "device node", 0, "no %s: it comes up with the "
		    "cdsp, where the kernel has CONFIG_QCOM_FASTRPC and the "
		    "device tree a fastrpc node below the cdsp", nodes[1]);
}

static void
look_heap(const char *root, const struct board_user *u,
    struct device_probe *p)
{
	if (!look_access(root, HEAP, "shared memory", u, p))
		probe_add(p, "shared memory", 0, "no " HEAP ": the kernel "
		    "needs CONFIG_DMABUF_HEAPS_SYSTEM");
}

/* --- the DSP's files --- */

/* The folders to search: those of the user, or the usual ones. */
static const char *
search_path(const char **ret_name)
{
	const char *e;

	*ret_name = "DSP_LIBRARY_PATH";
	if ((e = secure_getenv("DSP_LIBRARY_PATH")) != NULL)
		return e;
	if ((e = secure_getenv("ADSP_LIBRARY_PATH")) != NULL) {
		*ret_name = "ADSP_LIBRARY_PATH";
		return e;
	}
	return DSP_FOLDERS;
}

/* Find a file whose name has this beginning in one of the folders; 0 = none. */
static int
find_file(const char *root, const char *folders, const char *begins,
    char ret[PATH_MAX])
{
	char list[PATH_MAX], path[PATH_MAX], *rest = list, *dir;
	struct dirent *e;
	DIR *d;

	strlcpy(list, folders, sizeof(list));
	while ((dir = strsep(&rest, ";:")) != NULL) {
		snprintf(path, sizeof(path), "%s%s", root, dir);
		if (*dir == '\0' || (d = opendir(path)) == NULL)
			continue;
		while ((e = readdir(d)) != NULL)
			if (strncmp(e->d_name, begins, strlen(begins)) == 0)
				break;
		if (e != NULL)
			snprintf(ret, PATH_MAX, "%.2000s/%s", dir, e->d_name);
		closedir(d);
		if (e != NULL)
			return 1;
	}
	return 0;
}

static void
look_files(const char *root, struct device_probe *p)
{
	const char *name, *folders = search_path(&name);
	const char *ld = secure_getenv("LD_LIBRARY_PATH");
	char path[PATH_MAX];

	if (find_file(root, folders, DSP_SHELL, path) ||
	    find_file(root, DSP_FOLDERS, DSP_SHELL, path))
		probe_add(p, "DSP shell", 1, "%.300s", path);
	else
		probe_add(p, "DSP shell", 0, "no " DSP_SHELL " in " DSP_FOLDERS
		    ": it comes with the firmware of the board (a package "
		    "such as hexagon-dsp-binaries), and must be of the same "
		    "release");
	if (find_file(root, folders, MODULE, path))
		probe_add(p, "DSP module", 1, "%.300s", path);
	else
		probe_add(p, "DSP module", 0, "no " MODULE "*.so in the "
		    "folders of %s (%.100s): make dist has it; put it there, "
		    "or name its folder", name, folders);
	if (ld != NULL && strstr(ld, "/vendor/lib64") != NULL)
		probe_add(p, "LD_LIBRARY_PATH", 0, "it has /vendor/lib64, with "
		    "which no session opens: take it out");
}

static void
look_library(struct device_probe *p)
{
	const struct fastrpc_lib *lib;
	struct err e = { 0 };

	if (fastrpc_load(&lib, &e) == 0)
		probe_add(p, "library", 1, "%s", lib->path);
	else
		probe_add(p, "library", 0, "%.300s", e.msg);
}

/* --- all checks --- */

int
board_is_one(const char *root)
{
	char path[PATH_MAX], state[32];
	unsigned i;

	for (i = 0; i < NITEMS(nodes); i++) {
		snprintf(path, sizeof(path), "%s%s", root, nodes[i]);
		if (access(path, F_OK) == 0)
			return 1;
	}
	return find_cdsp(root, path, state, sizeof(state));
}

void
board_module_path(void)
{
	char value[2 * PATH_MAX + sizeof(DSP_FOLDERS) + 32], self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0 || secure_getenv("DSP_LIBRARY_PATH") != NULL ||
	    secure_getenv("ADSP_LIBRARY_PATH") != NULL)
		return;
	self[n] = '\0';
	if ((slash = strrchr(self, '/')) != NULL)
		*slash = '\0';
	snprintf(value, sizeof(value), "%s;%s/../lib/straddle;" DSP_FOLDERS,
	    self, self);
	/* The vendor's library reads both by itself, and without regard to the
	 * rights that this program may have and its user not. */
	unsetenv("ADSP_LIBRARY_PATH");
	setenv("DSP_LIBRARY_PATH", value, 1);
}

static void
this_process(struct board_user *ret)
{
	int n = getgroups((int)NITEMS(ret->gid) - 1, ret->gid);

	ret->uid = geteuid();
	ret->ngids = n > 0 ? (unsigned)n : 0;
	ret->gid[ret->ngids++] = getegid();
}

void
board_look(const char *root, const struct board_user *user,
    struct device_probe *ret)
{
	struct board_user self;

	if (!board_is_one(root)) {
		probe_add(ret, "board", 0, "no Qualcomm DSP found: no %s, no "
		    "remote processor called cdsp", nodes[1]);
		return;
	}
	if (user == NULL) {
		this_process(&self);
		user = &self;
	}
	board_module_path();
	look_remoteproc(root, ret);
	look_nodes(root, user, ret);
	look_heap(root, user, ret);
	look_files(root, ret);
	look_library(ret);
}
