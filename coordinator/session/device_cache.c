/* coordinator/session/device_cache.c - see device_cache.h.
 *
 * Before root has become another user (config/user.h) the real user is that one
 * already, and files are opened as that one: never as root in another's folder. */
#include "device_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/log.h"

/* Devices whose verdict this process used. */
static struct {
	unsigned n;
	struct used {
		char kind[MAX_NAME];
		uint64_t made_s;
		int is_old;		/* of an earlier process */
		int is_here;		/* it could not be written */
		struct device_verdict verdict;	/* with is_here */
	} of[MAX_SESSIONS];
} used;

/* --- records --- */

/* FNV-1a: any single byte that differs makes another sum. */
static uint64_t
sum_of(const void *p, size_t n)
{
	const uint8_t *b = p;
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	while (n-- > 0)
		sum = (sum ^ *b++) * UINT64_C(0x100000001b3);
	return sum;
}

void
device_record_seal(struct device_record *r, const char *kind)
{
	memcpy(r->magic, DEVICE_RECORD, sizeof(r->magic));
	memset(r->kind, 0, sizeof(r->kind));
	strlcpy(r->kind, kind, sizeof(r->kind));
	r->sum = sum_of(r, offsetof(struct device_record, sum));
}

#define ENDS(text)	(memchr((text), '\0', sizeof(text)) != NULL)

const char *
device_record_check(const void *bytes, size_t n, const char *kind)
{
	struct device_record r;

	if (n != sizeof(r))
		return "its length is wrong";
	memcpy(&r, bytes, sizeof(r));
	if (memcmp(r.magic, DEVICE_RECORD, sizeof(r.magic)) != 0)
		return "it has another format";
	if (r.sum != sum_of(&r, offsetof(struct device_record, sum)))
		return "its checksum is wrong";
	if (!ENDS(r.kind) || !ENDS(r.verdict.key) || r.verdict.key[0] ==
	    '\0')
		return "its texts are malformed";
	if (strcmp(r.kind, kind) != 0)
		return "it is of another device";
	return NULL;
}

/* --- the folder --- */

struct as_user {
	uid_t uid;
	gid_t gid;
};

static struct as_user
begin_files(void)
{
	return (struct as_user){ (uid_t)setfsuid(getuid()),
	    (gid_t)setfsgid(getgid()) };
}

static void
end_files(struct as_user u)
{
	setfsuid(u.uid);
	setfsgid(u.gid);
}

/* Open the folder `name`, which must be ours, in the folder dir, which is closed.
 * is_private: no other user may write in it. */
static int
open_below(int dir, const char *name, int makes, int is_private)
{
	struct stat st;
	int fd, rc = 0;

	if (makes && mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		rc = -errno;
	fd = rc < 0 ? -1 : openat(dir, name, O_RDONLY | O_DIRECTORY |
	    O_CLOEXEC | (is_private ? O_NOFOLLOW : 0));
	if (rc == 0 && fd < 0)
		rc = -errno;
	if (dir >= 0)
		close(dir);
	if (rc == 0 && (fstat(fd, &st) < 0 || st.st_uid != getuid() ||
	    (is_private && (st.st_mode & 022) != 0))) {
		close(fd);
		rc = -EPERM;
	}
	return rc < 0 ? rc : fd;
}

/* The folder of the files, or -errno. */
static int
open_folder(int makes)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME");
	const char *home = secure_getenv("HOME");
	int fd;

	if (cache != NULL && cache[0] == '/')
		fd = open_below(AT_FDCWD, cache, makes, 0);
	else if (home != NULL && home[0] == '/' &&
	    (fd = open_below(AT_FDCWD, home, 0, 0)) >= 0)
		fd = open_below(fd, ".cache", makes, 0);
	else
		return -ENOENT;
	if (fd >= 0)
		fd = open_below(fd, "straddle", makes, 1);
	return fd < 0 ? fd : open_below(fd, "devices", makes, 1);
}

/* --- use --- */

static struct used *
find_used(const char *kind)
{
	unsigned i;

	for (i = 0; i < used.n; i++)
		if (strcmp(used.of[i].kind, kind) == 0)
			return &used.of[i];
	return NULL;
}

/* here: the verdict, if there is no file of it. */
static void
note_used(const char *kind, uint64_t made_s, int is_old,
    const struct device_verdict *here)
{
	struct used *u = find_used(kind);

	if (u == NULL && used.n == NITEMS(used.of))
		return;
	if (u == NULL)
		u = &used.of[used.n++];
	strlcpy(u->kind, kind, sizeof(u->kind));
	u->made_s = made_s;
	u->is_old = is_old;
	if ((u->is_here = here != NULL))
		u->verdict = *here;
}

/* --- read --- */

/* NULL, or why the file is not taken. */
static const char *
read_record(int fd, const char *kind, struct device_record *ret)
{
	char bytes[sizeof(*ret) + 1];
	struct stat st;
	const char *why;
	ssize_t n;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != getuid() || (st.st_mode & 022) != 0)
		return "it is not a file that only this user can write";
	if ((n = read(fd, bytes, sizeof(bytes))) < 0)
		return strerror(errno);
	if ((why = device_record_check(bytes, (size_t)n, kind)) == NULL)
		memcpy(ret, bytes, sizeof(*ret));
	return why;
}

int
device_cache_read(const char *kind, struct device_verdict *ret)
{
	const struct used *u = find_used(kind);
	struct device_record r = { 0 };
	struct as_user as = begin_files();
	const char *why = NULL;
	int dir = open_folder(0), fd = -1, rc = 0;

	if (dir < 0 || (fd = openat(dir, kind, O_RDONLY | O_CLOEXEC |
	    O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)) < 0)
		rc = dir < 0 ? dir : -errno;
	else
		why = read_record(fd, kind, &r);
	if (fd >= 0)
		close(fd);
	if (dir >= 0)
		close(dir);
	end_files(as);
	if (rc < 0 && rc != -ENOENT)
		why = rc == -EPERM ? "a folder of it is not one that only this "
		    "user can write" : strerror(-rc);
	if (why != NULL)
		log_debug("device %s: what was tried earlier is not used: "
		    "straddle/devices/%s: %s", kind, kind, why);
	/* A file that could not be replaced is older. */
	if (u != NULL && u->is_here) {
		*ret = u->verdict;
		return 1;
	}
	if (rc < 0 || why != NULL)
		return 0;
	*ret = r.verdict;
	note_used(kind, r.made_s, u == NULL || u->is_old || u->made_s !=
	    r.made_s, NULL);
	return 1;
}

/* --- write --- */

/* Replace the file at once, so that no reader sees a part of it. */
static int
write_file(int dir, const char *name, const struct device_record *r)
{
	char part[MAX_NAME + 8];
	int fd, rc = 0;

	snprintf(part, sizeof(part), "%s.new", name);
	(void)unlinkat(dir, part, 0);		/* of one that was killed */
	fd = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC |
	    O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	errno = ENOSPC;
	if (write(fd, r, sizeof(*r)) != (ssize_t)sizeof(*r) ||
	    renameat(dir, part, dir, name) < 0) {
		rc = -errno;
		(void)unlinkat(dir, part, 0);
	}
	close(fd);
	return rc;
}

static int
keep(const char *kind, const struct device_verdict *v)
{
	struct device_record r = { .made_s = (uint64_t)time(NULL),
	    .verdict = *v };
	struct as_user as = begin_files();
	int dir = open_folder(1), rc = dir;

	device_record_seal(&r, kind);
	if (dir >= 0) {
		rc = write_file(dir, kind, &r);
		close(dir);
	}
	end_files(as);
	note_used(kind, r.made_s, 0, rc < 0 ? v : NULL);
	return MIN(rc, 0);
}

/* "3 h" */
static void
set_age(uint64_t made_s, char *ret, size_t len)
{
	static const struct { uint64_t s; const char *name; } units[] = {
		{ 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" },
	};
	uint64_t now = (uint64_t)time(NULL), s = now - MIN(made_s, now);
	unsigned i = 0;

	while (i < NITEMS(units) - 1 && s < 2 * units[i].s)
		i++;
	snprintf(ret, len, "%" PRIu64 " %s", s / units[i].s, units[i].name);
}

void
device_cache_note(const char *kind, const struct wire_verdict *wv,
    char ret[DEVICE_CACHE_TEXT])
{
	const struct used *u = find_used(kind);
	char age[48];
	int rc;

	if (wv->is_kept && u != NULL && u->is_here) {
		snprintf(ret, DEVICE_CACHE_TEXT, "not tried again: found out "
		    "for another device of this kind");
	} else if (wv->is_kept && u != NULL) {
		set_age(u->made_s, age, sizeof(age));
		snprintf(ret, DEVICE_CACHE_TEXT, "not tried again: found out %s "
		    "ago, and kept as straddle/devices/%.80s in the user's "
		    "cache", age, kind);
	} else if (wv->is_partial) {
		note_used(kind, (uint64_t)time(NULL), 0, &wv->verdict);
		snprintf(ret, DEVICE_CACHE_TEXT, "tried now, and not kept: no "
		    "time or memory was left for all trials%s%.140s",
		    wv->why[0] != '\0' ? "; " : "", wv->why);
	} else if ((rc = keep(kind, &wv->verdict)) == 0)
		snprintf(ret, DEVICE_CACHE_TEXT, "tried now, and kept as "
		    "straddle/devices/%.80s in the user's cache%s%.140s",
		    kind, wv->why[0] != '\0' ? "; " : "", wv->why);
	else
		snprintf(ret, DEVICE_CACHE_TEXT, "tried now, as at each start: "
		    "straddle/devices/%.80s cannot be kept in the user's "
		    "cache: %s", kind, rc == -EPERM ? "it is not one that only "
		    "this user can write" : strerror(-rc));
	log_debug("device %s: %s", kind, ret);
}

void
device_cache_forget(const char *kind, int is_opening)
{
	struct used *u = find_used(kind);
	struct as_user as;
	int dir, rc = -ENOENT, is_told;

	if (u == NULL)
		return;
	is_told = is_opening && u->is_old;
	*u = used.of[--used.n];
	as = begin_files();
	if ((dir = open_folder(0)) >= 0) {
		rc = unlinkat(dir, kind, 0) < 0 ? -errno : 0;
		close(dir);
	}
	end_files(as);
	if (rc == 0 && is_told)
		log_warnx("device %s: how it computes was found out earlier, "
		    "and a session on it failed: straddle/devices/%s is "
		    "removed; start again, which tries it anew", kind, kind);
	else if (rc == 0)
		log_debug("device %s: a session on it failed: straddle/"
		    "devices/%s is removed, and the next start tries it anew",
		    kind, kind);
}
