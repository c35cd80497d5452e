/* config/user.c - looks up a user and becomes it. */
#include "user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <bsd/string.h>

enum { MAX_GROUPS = 1024 };

static struct {
	char name[64];		/* "" = nobody was chosen */
	char home[1024];
	uid_t uid;
	gid_t gid, group[MAX_GROUPS];
	int ngroups;
	int is_changed;		/* both steps are done */
} user;

static void
take(const struct passwd *pw, const char *name)
{
	strlcpy(user.name, name, sizeof(user.name));
	strlcpy(user.home, pw->pw_dir, sizeof(user.home));
	user.uid = pw->pw_uid;
	user.gid = pw->pw_gid;
	user.ngroups = MAX_GROUPS;
	/* -1: there are more; the first ones are there. */
	if (getgrouplist(name, pw->pw_gid, user.group, &user.ngroups) < 0)
		user.ngroups = MAX_GROUPS;
}

/* The default user, which the package makes in this file.  To ask getpwnam() for
 * a user that there is not takes 0.4 ms where it asks systemd, too. */
static const struct passwd *
find_default(void)
{
	FILE *fp = fopen("/etc/passwd", "re");
	struct passwd *pw = NULL;

	if (fp == NULL)
		return NULL;
	while ((pw = fgetpwent(fp)) != NULL &&
	    strcmp(pw->pw_name, USER_DEFAULT) != 0)
		;
	fclose(fp);
	return pw;
}

int
user_choose(const char *name, struct err *reterr)
{
	const int is_root = geteuid() == 0;
	const struct passwd *pw;

	if (name == NULL && !is_root)
		return 0;
	errno = 0;
	pw = name != NULL ? getpwnam(name) : find_default();
	if (pw == NULL && name == NULL)
		return 0;
	if (pw == NULL && (errno == EMFILE || errno == ENFILE ||
	    errno == ENOMEM || errno == EIO))
		return err_set(reterr, ERR_RUN, -errno, "user %s: cannot be "
		    "looked up: %s", name, strerror(errno));
	if (pw == NULL)
		return err_set(reterr, ERR_USAGE, -ENOENT, "user %s: there is "
		    "none of this name here: create it, or name another one",
		    name);
	if (pw->pw_uid == geteuid())
		return 0;
	if (!is_root)
		return err_set(reterr, ERR_USAGE, -EPERM, "user %s: only root "
		    "can become another user: start this as root, or leave the "
		    "setting out", name);
	take(pw, name != NULL ? name : USER_DEFAULT);
	return 0;
}

static int
fail(int rc, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, rc, "cannot become user %s: %s; with "
	    "--user root this stays root", user.name, strerror(-rc));
}

int
user_begin(struct err *reterr)
{
	if (user.name[0] == '\0')
		return 0;
	if (setgroups((size_t)user.ngroups, user.group) < 0 ||
	    setresgid(user.gid, (gid_t)-1, (gid_t)-1) < 0 ||
	    setresuid(user.uid, (uid_t)-1, (uid_t)-1) < 0)
		return fail(-errno, reterr);
	if (setenv("HOME", user.home, 1) < 0 ||
	    setenv("USER", user.name, 1) < 0 ||
	    setenv("LOGNAME", user.name, 1) < 0)
		return err_nomem(reterr, "the environment of user %s",
		    user.name);
	/* Root's folders, which come before HOME. */
	unsetenv("XDG_CACHE_HOME");
	unsetenv("XDG_STATE_HOME");
	unsetenv("XDG_RUNTIME_DIR");
	return 0;
}

int
user_of_child(void)
{
	if (user.name[0] == '\0' || user.is_changed)
		return 0;
	return setresgid(user.gid, user.gid, user.gid) < 0 ||
	    setresuid(user.uid, user.uid, user.uid) < 0 ? -errno : 0;
}

/* 1 = nothing of this process is root's. */
static int
is_other(void)
{
	uid_t u[3];
	gid_t g[3];
	unsigned i, n = 0;

	if (getresuid(&u[0], &u[1], &u[2]) < 0 ||
	    getresgid(&g[0], &g[1], &g[2]) < 0)
		return 0;
	for (i = 0; i < 3; i++)
		n += u[i] == user.uid && g[i] == user.gid;
	return n == 3 && setresuid((uid_t)-1, 0, (uid_t)-1) < 0;
}

int
user_end(struct err *reterr)
{
	int rc;

	if (user.name[0] == '\0' || user.is_changed)
		return 0;
	if ((rc = user_of_child()) < 0)
		return fail(rc, reterr);
	if (!is_other())
		return fail(-EPERM, reterr);
	/* No program that belongs to root is a way back. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(-errno, reterr);
	user.is_changed = 1;
	/* The checker of leaks traces its process; that of another user is not
	 * dumpable. */
	if (SANITIZED)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return 0;
}

const char *
user_name(void)
{
	return user.name[0] != '\0' ? user.name : NULL;
}

const char *
user_hint(int rc)
{
	static char hint[160];

	if (!user.is_changed || (rc != -EACCES && rc != -EPERM))
		return "";
	snprintf(hint, sizeof(hint), " for user %s: name a place that is open "
	    "to this user, or give --user root", user.name);
	return hint;
}
