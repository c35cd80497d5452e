/* coordinator/cap/keeper.c - the process, and the coordinator's side of it. */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bsd/string.h>
#include <bsd/unistd.h>

#include "config/rights.h"
#include "shm/chan.h"
#include "shm/event.h"

/* An order takes a few system calls, or as long as rmdir() is tried. */
#define ANSWER_NS	UINT64_C(10000000000)

enum { MAX_GROUPS = 2 * MAX_SESSIONS + 8 };

/* Private to this file: both sides are one program. */
enum keep_type { KEEP_READY = 1, KEEP_OPEN, KEEP_CLOSE, KEEP_END, KEEP_ANSWER };

struct keep_open {
	uint64_t limit_bytes;
	char name[MAX_NAME];
};

struct keep_close {
	char dir[CGROUP_PATH];
};

struct keep_answer {
	int32_t rc, swap_limited;
	uint64_t limit_bytes;
	char dir[CGROUP_PATH];
	char msg[512];
};

/* --- the keeper --- */

struct keeper {
	struct chan chan;
	struct cgroup_tree tree;
	struct cgroup group[MAX_GROUPS];	/* dir "" = free */
	struct chan_msg msg;
};

static struct cgroup *
find_group(struct keeper *k, const char *dir)
{
	unsigned i;

	for (i = 0; i < MAX_GROUPS; i++)
		if (strcmp(k->group[i].dir, dir) == 0)
			return &k->group[i];
	return NULL;
}

/* The other user may enter the folder, to read the group's counters, but not
 * open it: see cgroup.c.  Returns cgroup.procs. */
static int
open_group(struct keeper *k, const struct keep_open *o, struct cgroup *g,
    struct err *e)
{
	int fd = cgroup_open(&k->tree, o->name, o->limit_bytes, g, e);

	if (fd == 0 && chmod(g->dir, 0711) < 0)
		fd = err_set(e, ERR_RUN, -errno, "%s: %s", g->dir,
		    strerror(errno));
	if (fd == 0 && (fd = cgroup_procs_fd(g, e)) >= 0)
		return fd;
	cgroup_close(g);
	return fd;
}

static int
is_name(const char name[MAX_NAME])
{
	return memchr(name, '\0', MAX_NAME) != NULL && name[0] != '\0' &&
	    strchr(name, '/') == NULL;
}

static void
order_open(struct keeper *k, const struct keep_open *o)
{
	struct cgroup *g = find_group(k, "");
	struct keep_answer a = { .rc = -EINVAL };
	struct err e = { .msg = "this is no name of a group" };
	int fd = -EINVAL;

	if (g == NULL)
		fd = err_set(&e, ERR_RUN, -ENOSPC, "there are %d groups "
		    "already", MAX_GROUPS);
	else if (is_name(o->name))
		fd = open_group(k, o, g, &e);
	if (fd >= 0) {
		a = (struct keep_answer){ .swap_limited = g->swap_limited,
		    .limit_bytes = g->limit_bytes };
		strlcpy(a.dir, g->dir, sizeof(a.dir));
	} else {
		a.rc = fd;
		strlcpy(a.msg, e.msg, sizeof(a.msg));
	}
	chan_send(&k->chan, KEEP_ANSWER, &a, sizeof(a), &fd, fd >= 0,
	    event_now_ns() + ANSWER_NS);
	if (fd >= 0)
		close(fd);
}

static void
order_close(struct keeper *k, struct keep_close *o)
{
	struct keep_answer a = { .rc = -ENOENT };
	struct cgroup *g;

	o->dir[sizeof(o->dir) - 1] = '\0';
	if (o->dir[0] != '\0' && (g = find_group(k, o->dir)) != NULL) {
		cgroup_close(g);
		a.rc = 0;
	}
	chan_send(&k->chan, KEEP_ANSWER, &a, sizeof(a), NULL, 0,
	    event_now_ns() + ANSWER_NS);
}

/* 0 = the coordinator has ended, or waits for our end. */
static int
follow(struct keeper *k, int *ret_waits)
{
	struct keep_close shut;
	struct keep_open o;

	if (chan_recv(&k->chan, &k->msg, EVENT_FOREVER) < 0)
		return 0;
	chan_msg_done(&k->msg);
	if (k->msg.type == KEEP_OPEN && k->msg.nbytes == sizeof(o)) {
		memcpy(&o, k->msg.buf, sizeof(o));
		order_open(k, &o);
	} else if (k->msg.type == KEEP_CLOSE &&
	    k->msg.nbytes == sizeof(shut)) {
		memcpy(&shut, k->msg.buf, sizeof(shut));
		order_close(k, &shut);
	} else {
		*ret_waits = k->msg.type == KEEP_END;
		return 0;
	}
	return 1;
}

/* It keeps no file of the coordinator's, and no terminal; signals for the job
 * are not for it. */
static int
leave_job(struct chan *c)
{
	sigset_t all;
	int null = open("/dev/null", O_RDWR), i;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	for (i = 0; i <= STDERR_FILENO; i++)
		if (null < 0 || dup2(null, i) < 0)
			return -EBADF;
	if (c->fd != CHAN_FD && dup2(c->fd, CHAN_FD) < 0)
		return -errno;
	c->fd = CHAN_FD;
	closefrom(CHAN_FD + 1);
	return 0;
}

/* Releasing tens of GiB of a killed worker takes seconds. */
#define RELEASE_NS	UINT64_C(10000000000)

static void
remove_groups(struct keeper *k)
{
	const uint64_t end = event_now_ns() + RELEASE_NS;
	struct cgroup *g;

	for (g = k->group; g < k->group + MAX_GROUPS; g++) {
		while (g->dir[0] != '\0' && event_now_ns() < end &&
		    k->tree.fs->rmdir(g->dir) == -EBUSY)
			poll(NULL, 0, 10);
		cgroup_close(g);
	}
}

static NORETURN void
keep(const struct cgroup_tree *t, struct chan c, int has_foreign_groups)
{
	struct keeper *k = calloc(1, sizeof(*k));
	const pid_t self = getpid();
	unsigned i;
	int waits = 0;

	if (k == NULL)
		_exit(EXIT_FAILURE);
	k->chan = c;
	k->tree = *t;
	for (i = 0; i < MAX_GROUPS; i++)
		k->group[i] = (struct cgroup)CGROUP_INIT;
	prctl(PR_SET_NAME, "straddle");
	setproctitle("keeper of memory groups");
	if (leave_job(&k->chan) < 0 ||
	    rights_of_keeper(has_foreign_groups) < 0 ||
	    chan_send(&k->chan, KEEP_READY, &self, sizeof(self), NULL, 0,
	    event_now_ns() + ANSWER_NS) < 0)
		_exit(EXIT_FAILURE);
	while (follow(k, &waits))
		;
	remove_groups(k);
	if (!waits)
		k->tree.pid = 0;		/* it may be another process's */
	cgroup_tree_close(&k->tree);
	_exit(EXIT_SUCCESS);
}

/* --- the coordinator --- */

static struct chan to_keeper = { .fd = -1 };
static pid_t its_pid;

int
keeper_runs(void)
{
	return to_keeper.fd >= 0;
}

pid_t
keeper_pid(void)
{
	return keeper_runs() ? its_pid : 0;
}

/* Wait for a message; it is in *ret_msg, malloc'ed. */
static int
await(uint32_t type, size_t nbytes, struct chan_msg **ret_msg,
    struct err *reterr)
{
	struct chan_msg *m = malloc(sizeof(*m));
	int rc;

	if (m == NULL)
		return err_nomem(reterr, "a message of the keeper of groups");
	if ((rc = chan_recv(&to_keeper, m, event_now_ns() + ANSWER_NS)) == 0 &&
	    (m->type != type || m->nbytes != nbytes)) {
		chan_msg_done(m);
		rc = -EPROTO;
	}
	if (rc == 0) {
		*ret_msg = m;
		return 0;
	}
	free(m);
	return err_set(reterr, ERR_RUN, rc, "the keeper of memory groups: %s",
	    rc == -EPIPE ? "it has ended" : strerror(-rc));
}

/* The process is a child of a child, which ends at once: so it is none of ours,
 * which are workers. */
static int
spawn(const struct cgroup_tree *t, struct chan c, int has_foreign_groups)
{
	pid_t pid = fork();
	int status = 0;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			keep(t, c, has_foreign_groups);
		_exit(pid < 0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0 ? 0 : -EAGAIN;	/* the second fork failed */
}

int
keeper_start(const struct cgroup_tree *t, int has_foreign_groups,
    struct err *reterr)
{
	struct chan_msg *m;
	struct chan theirs;
	int rc;

	if ((rc = chan_pair(&to_keeper, &theirs, reterr)) < 0)
		return rc;
	if ((rc = spawn(t, theirs, has_foreign_groups)) < 0)
		err_set(reterr, ERR_RUN, rc, "the keeper of memory groups: "
		    "fork: %s%s", strerror(-rc), err_tasks_remedy(rc));
	chan_close(&theirs);
	if (rc == 0 && (rc = await(KEEP_READY, sizeof(its_pid), &m,
	    reterr)) == 0) {
		memcpy(&its_pid, m->buf, sizeof(its_pid));
		free(m);
	}
	if (rc < 0)
		chan_close(&to_keeper);
	return rc;
}

/* Give an order; *ret_fd is what came with the answer. */
static int
order(uint32_t type, const void *buf, size_t nbytes, struct keep_answer *ret,
    int *ret_fd, struct err *reterr)
{
	struct chan_msg *m;
	int rc = chan_send(&to_keeper, type, buf, nbytes, NULL, 0,
	    event_now_ns() + ANSWER_NS);

	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "the keeper of memory "
		    "groups: %s", rc == -EPIPE ? "it has ended" :
		    strerror(-rc));
	if ((rc = await(KEEP_ANSWER, sizeof(*ret), &m, reterr)) < 0)
		return rc;
	memcpy(ret, m->buf, sizeof(*ret));
	*ret_fd = chan_take_fd(m, 0);
	chan_msg_done(m);
	free(m);
	return ret->rc < 0 ? err_set(reterr, ERR_RUN, ret->rc, "%s",
	    ret->msg) : 0;
}

int
keeper_open(const struct cgroup_tree *t, const char *name,
    uint64_t limit_bytes, struct cgroup *ret, struct err *reterr)
{
	struct keep_open o = { .limit_bytes = limit_bytes };
	struct cgroup g = CGROUP_INIT;
	struct keep_answer a;
	int rc;

	strlcpy(o.name, name, sizeof(o.name));
	if ((rc = order(KEEP_OPEN, &o, sizeof(o), &a, &g.procs_fd,
	    reterr)) < 0)
		return rc;
	g.tree = t;
	g.limit_bytes = a.limit_bytes;
	g.swap_limited = a.swap_limited;
	strlcpy(g.dir, a.dir, sizeof(g.dir));
	*ret = g;
	return 0;
}

int
keeper_remove(const char *dir)
{
	struct keep_close c = { { 0 } };
	struct keep_answer a;
	int fd;

	strlcpy(c.dir, dir, sizeof(c.dir));
	return order(KEEP_CLOSE, &c, sizeof(c), &a, &fd, NULL);
}

/* A keeper that has ended removed them before. */
void
keeper_close(struct cgroup *g)
{
	if (g->dir[0] != '\0')
		(void)keeper_remove(g->dir);
	if (g->procs_fd >= 0)
		close(g->procs_fd);
	*g = (struct cgroup)CGROUP_INIT;
}

void
keeper_stop(void)
{
	struct pollfd p = { .fd = to_keeper.fd, .events = POLLIN };
	char rest[64];

	if (to_keeper.fd < 0)
		return;
	chan_send(&to_keeper, KEEP_END, NULL, 0, NULL, 0, 0);
	shutdown(to_keeper.fd, SHUT_WR);
	while (poll(&p, 1, (int)(ANSWER_NS / 1000000)) > 0 &&
	    recv(to_keeper.fd, rest, sizeof(rest), MSG_DONTWAIT) > 0)
		;
	close(to_keeper.fd);
	to_keeper.fd = -1;
}
