/* config/cgroup_find.c - finds the mounts of control groups, and this process's
 * group in each. */
#include "cgroup_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

/* Copy word n (from 0) of a line, cut at blanks.  0 = there is none, or it is
 * too long. */
static int
copy_word(const char *line, unsigned n, char *buf, size_t len)
{
	size_t k = strcspn(line, " \n");

	while (n-- > 0) {
		line += k;
		if (*line++ != ' ')
			return 0;
		k = strcspn(line, " \n");
	}
	if (k == 0 || k >= len)
		return 0;
	memcpy(buf, line, k);
	buf[k] = '\0';
	return 1;
}

/* Replace the kernel's octal escapes (\040 is a blank) in place. */
static void
unescape(char *text)
{
	char *to = text;
	int n;

	for (; *text != '\0'; text++)
		if (*text == '\\' && strspn(text + 1, "01234567") >= 3) {
			n = (text[1] - '0') << 6 | (text[2] - '0') << 3 |
			    (text[3] - '0');
			*to++ = (char)n;
			text += 3;
		} else {
			*to++ = *text;
		}
	*to = '\0';
}

int
cgroup_in_list(const char *list, const char *word, char separator)
{
	size_t n = strlen(word);
	const char *p;

	for (p = list; (p = strstr(p, word)) != NULL; p += n)
		if ((p == list || p[-1] == separator) &&
		    (p[n] == separator || p[n] == '\0' || p[n] == '\n'))
			return 1;
	return 0;
}

struct mount {
	enum cgroup_kind kind;
	char root[CGROUP_PATH];		/* path in the hierarchy that is mounted */
	char at[CGROUP_PATH];		/* mount point */
};

/* proc_pid_mountinfo(5): ID PARENT DEV ROOT AT OPTIONS [TAGS] - TYPE SOURCE
 * SUPER-OPTIONS. */
static int
parse_mount(const char *line, const char *controller, struct mount *ret)
{
	const char *rest = strstr(line, " - ");
	char type[32], super[256];

	if (rest == NULL || !copy_word(rest + 3, 0, type, sizeof(type)) ||
	    !copy_word(rest + 3, 2, super, sizeof(super)) ||
	    !copy_word(line, 3, ret->root, sizeof(ret->root)) ||
	    !copy_word(line, 4, ret->at, sizeof(ret->at)))
		return 0;
	unescape(ret->root);
	unescape(ret->at);
	if (strcmp(type, "cgroup2") == 0)
		ret->kind = CGROUP_V2;
	else if (strcmp(type, "cgroup") == 0 &&
	    cgroup_in_list(super, controller, ','))
		ret->kind = CGROUP_V1;
	else
		return 0;
	return 1;
}

/* Read this process's path in the hierarchy: "4:memory:/path" or "0::/path". */
static int
find_path(const char *root, enum cgroup_kind kind, const char *controller,
    char *ret, size_t len)
{
	char path[CGROUP_PATH], line[CGROUP_PATH + 256], *list, *p;
	int found = 0;
	FILE *fp;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	if ((fp = fopen(path, "re")) == NULL)
		return -errno;
	while (!found && fgets(line, sizeof(line), fp) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if ((list = strchr(line, ':')) == NULL ||
		    (p = strchr(++list, ':')) == NULL)
			continue;
		*p++ = '\0';
		found = kind == CGROUP_V1 ? cgroup_in_list(list, controller,
		    ',') : list[0] == '\0';
		if (found && strlcpy(ret, p, len) >= len)
			found = 0;
	}
	fclose(fp);
	return found ? 0 : -ENOENT;
}

/* The part of path below the mount m; NULL = it is outside of what the mount
 * shows (a container that was given another part of the hierarchy). */
static const char *
path_below(const struct mount *m, const char *path)
{
	size_t n = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);

	if (strncmp(path, m->root, n) != 0 ||
	    (path[n] != '/' && path[n] != '\0') ||
	    strncmp(path, "/..", 3) == 0)
		return NULL;
	path += n;
	return strcmp(path, "/") == 0 ? "" : path;
}

/* Negative: the group of this process cannot be told. */
static int
place_of(const char *root, const struct mount *m, const char *controller,
    struct cgroup_place *ret)
{
	char path[CGROUP_PATH];
	const char *sub = NULL;
	int rc = find_path(root, m->kind, controller, path, sizeof(path));

	ret->kind = m->kind;
	snprintf(ret->top, sizeof(ret->top), "%s%s", root, m->at);
	if (rc == 0)
		sub = path_below(m, path);
	if (sub == NULL || (size_t)snprintf(ret->dir, sizeof(ret->dir), "%s%s",
	    ret->top, sub) >= sizeof(ret->dir))
		ret->dir[0] = '\0';
	return rc == -EMFILE || rc == -ENFILE ? rc : 0;
}

int
cgroup_find(const char *root, const char *controller,
    struct cgroup_place ret[2])
{
	struct cgroup_place of[CGROUP_V2 + 1] = { 0 }, p;
	char path[CGROUP_PATH], line[4096];
	struct mount m;
	int n = 0, rc = 0;
	FILE *fp;

	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
	if ((fp = fopen(path, "re")) == NULL)
		return -errno;
	while (rc == 0 && fgets(line, sizeof(line), fp) != NULL) {
		if (!parse_mount(line, controller, &m))
			continue;
		rc = place_of(root, &m, controller, &p);
		/* A mount at the same point covers the earlier one. */
		if (of[m.kind].kind == CGROUP_NONE ||
		    strcmp(of[m.kind].top, p.top) == 0 ||
		    (of[m.kind].dir[0] == '\0' && p.dir[0] != '\0'))
			of[m.kind] = p;
	}
	fclose(fp);
	if (rc < 0)
		return rc;
	if (of[CGROUP_V1].kind != CGROUP_NONE)
		ret[n++] = of[CGROUP_V1];
	if (of[CGROUP_V2].kind != CGROUP_NONE)
		ret[n++] = of[CGROUP_V2];
	return n;
}

int
cgroup_up(const struct cgroup_place *p, char dir[CGROUP_PATH])
{
	char *slash;

	if (strcmp(dir, p->top) == 0 || (slash = strrchr(dir, '/')) == NULL)
		return 0;
	*slash = '\0';
	return 1;
}
