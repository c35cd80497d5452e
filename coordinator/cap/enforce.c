/* coordinator/cap/enforce.c - a memory group where the kernel grants one, else
 * RLIMIT_DATA, which counts private writable memory, whether touched or not.
 *
 * The coordinator sets RLIMIT_DATA once the worker has created its threads.
 * Their stacks are mapped whole and touched in part, so they must not count
 * against the cap: the limit is what is mapped by then plus the rest of the
 * cap. */
#include "enforce.h"

#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/meminfo.h"
#include "config/room.h"
#include "config/units.h"
#include "full.h"
#include "keeper.h"

/* This process's place in the hierarchy: found once, kept until
 * enforce_cleanup(). */
static struct cgroup_tree tree;
static int tree_known;
static struct full full_before;

static const char no_shadow[] = "no plan includes a sanitizer's shadow memory";

/* Page cache is charged to the group that reads it first.  To charge no worker
 * for it, read this program and its libraries before a worker runs them. */
static int
read_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const ElfW(Phdr) *ph;
	uintptr_t from;
	int i;

	(void)size;
	(void)arg;
	for (i = 0; i < info->dlpi_phnum; i++) {
		ph = &info->dlpi_phdr[i];
		if (ph->p_type != PT_LOAD || ph->p_filesz == 0)
			continue;
		from = (info->dlpi_addr + ph->p_vaddr) & ~(page - 1);
		/* Before Linux 5.14 this fails, and the first worker is
		 * charged. */
		(void)madvise((void *)from, info->dlpi_addr + ph->p_vaddr +
		    ph->p_filesz - from, MADV_POPULATE_READ);
	}
	return 0;
}

static const struct cgroup_tree *
get_tree(void)
{
	if (!tree_known) {
		cgroup_tree_open("", NULL, &tree);
		/* After it: it may move this process to another group. */
		full_read("", &full_before);
		if (tree.kind != CGROUP_NONE)
			dl_iterate_phdr(read_program, NULL);
	}
	tree_known = 1;
	return &tree;
}

void
enforce_cleanup(void)
{
	keeper_stop();
	if (tree_known)
		cgroup_tree_close(&tree);
	tree_known = 0;
}

void
enforce_abandon(void)
{
	keeper_stop();
	cgroup_remove_all();
	enforce_cleanup();
}

enum enforce_by
enforce_best(const char **ret_why)
{
	const char *why = NULL;
	enum enforce_by by = ENFORCE_CGROUP;

	if (SANITIZED) {
		why = no_shadow;
		by = ENFORCE_LEDGER;
	} else if (get_tree()->kind == CGROUP_NONE) {
		why = tree.why;
		by = ENFORCE_RLIMIT;
	}
	if (ret_why != NULL)
		*ret_why = why;
	return by;
}

static const char *
method_name(enum enforce_by by)
{
	switch (by) {
	case ENFORCE_CGROUP:
		return tree.kind == CGROUP_V1 ? "cgroup v1" : "cgroup v2";
	case ENFORCE_RLIMIT:
		return "RLIMIT_DATA";
	default:
		return "ledger";
	}
}

const char *
enforce_name(const struct enforce *e)
{
	return method_name(e->by);
}

const char *
enforce_best_name(void)
{
	return method_name(enforce_best(NULL));
}

void
enforce_open(struct enforce *e, const char *name, uint64_t cap_bytes)
{
	const char *why;
	struct err er;

	*e = (struct enforce){ .by = enforce_best(&why),
	    .group = CGROUP_INIT, .limit_bytes = UINT64_MAX };
	if (why != NULL)
		strlcpy(e->why, why, sizeof(e->why));
	if (e->by != ENFORCE_CGROUP)
		return;
	if ((keeper_runs() ? keeper_open : cgroup_open)(get_tree(), name,
	    cap_bytes, &e->group, &er) < 0) {
		e->by = ENFORCE_RLIMIT;
		strlcpy(e->why, er.msg, sizeof(e->why));
		return;
	}
	e->limit_bytes = e->group.limit_bytes;
}

void
enforce_open_process(struct enforce *e)
{
	*e = (struct enforce){ .by = ENFORCE_RLIMIT, .group = CGROUP_INIT,
	    .limit_bytes = UINT64_MAX, .why = "it has no group" };
	if (SANITIZED) {
		e->by = ENFORCE_LEDGER;
		strlcpy(e->why, no_shadow, sizeof(e->why));
	}
}

int
enforce_open_procs(const struct enforce *e, int *ret_fd, struct err *reterr)
{
	int fd;

	*ret_fd = -1;
	if (e == NULL || e->by != ENFORCE_CGROUP)
		return 0;
	if ((fd = cgroup_procs_fd(&e->group, reterr)) < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* Set a limit of the process to at most nbytes, and read it back. */
static int
lower_limit(pid_t pid, __rlimit_resource_t what, uint64_t nbytes,
    uint64_t *ret)
{
	struct rlimit rl, now;

	if (prlimit(pid, what, NULL, &now) < 0)
		return -errno;
	rl.rlim_cur = rl.rlim_max = (rlim_t)MIN(nbytes, now.rlim_max);
	if (prlimit(pid, what, &rl, NULL) < 0 ||
	    prlimit(pid, what, NULL, &now) < 0)
		return -errno;
	if (now.rlim_cur > nbytes || now.rlim_max > nbytes)
		return -ENOTSUP;	/* qemu-user ignores these limits */
	*ret = now.rlim_cur;
	return 0;
}

/* Address space: what it has, what it may still map, and a growing stack. */
static int
limit_space(const struct enforce_start *st, uint64_t more)
{
	uint64_t size = 0, limit;
	int rc = meminfo_read_process(st->pid, "VmSize", &size);

	return rc < 0 ? rc : lower_limit(st->pid, RLIMIT_AS, size + more +
	    MIB, &limit);
}

/* The worker may still map the cap less its resident memory, the shared memory
 * that it will map, and the page tables of a whole cap. */
static int
limit_data(struct enforce *e, const struct enforce_start *st)
{
	/* The worker reports rss_bytes: it must not wrap the sum. */
	uint64_t reserved = MIN(st->rss_bytes, st->cap_bytes) +
	    MIN(st->shared_bytes, st->cap_bytes) + st->cap_bytes / 512;
	uint64_t more = st->cap_bytes - MIN(st->cap_bytes, reserved);
	uint64_t data = 0;
	int rc;

	/* The kernel compares VmData with RLIMIT_DATA. */
	if ((rc = meminfo_read_process(st->pid, "VmData", &data)) < 0 ||
	    (rc = lower_limit(st->pid, RLIMIT_DATA, data + more,
	    &e->limit_bytes)) < 0)
		return rc;
	return st->private_only ? limit_space(st, more) : 0;
}

int
enforce_apply(struct enforce *e, const struct enforce_start *st,
    struct err *reterr)
{
	int rc;

	if (e == NULL || e->by == ENFORCE_LEDGER)
		return 0;
	if (e->by == ENFORCE_CGROUP)
		return cgroup_holds(&e->group, st->pid) ? 0 :
		    err_set(reterr, ERR_RUN, -EPROTO, "its worker is not in "
		    "its memory group %s: another process has moved it",
		    e->group.dir);
	if (st->cap_bytes == UINT64_MAX)
		return 0;
	if ((rc = limit_data(e, st)) < 0) {
		e->by = ENFORCE_LEDGER;
		snprintf(e->why + strlen(e->why), sizeof(e->why) -
		    strlen(e->why), "; and RLIMIT_DATA: %s", strerror(-rc));
	}
	return 0;
}

void
enforce_read_peak(const struct enforce *e, uint64_t hwm_bytes,
    struct enforce_peak *ret)
{
	struct cgroup_count n;

	*ret = (struct enforce_peak){ .nbytes = hwm_bytes,
	    .from = "VmHWM+VmPTE", .shared = 1 };
	if (e == NULL || e->by != ENFORCE_CGROUP ||
	    cgroup_count(&e->group, &n) < 0 || !n.peak_known)
		return;
	*ret = (struct enforce_peak){ .nbytes = n.peak_bytes,
	    .from = cgroup_peak_name(tree.kind), .shared = 0 };
}

/* Processes of the session's group, or without one of ours, that were killed for
 * memory. */
static uint64_t
count_kills(const struct enforce *e, const struct full *now,
    struct cgroup_count *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (e->by != ENFORCE_CGROUP)
		return now->own_kills;
	return cgroup_count(&e->group, ret) == 0 ? ret->oom_kills :
	    e->oom_kills;
}

const char *
enforce_describe_loss(struct enforce *e, uint64_t needs_bytes, char *buf,
    size_t len)
{
	char peak[UNITS_BYTES_LEN], cap[UNITS_BYTES_LEN], where[CGROUP_PATH + 64];
	const struct full_group *g;
	struct cgroup_count n;
	static struct full now;		/* large */
	uint64_t kills;

	buf[0] = '\0';
	if (e == NULL || !tree_known)
		return buf;
	e->is_full_above = 0;
	full_read("", &now);
	kills = count_kills(e, &now, &n);
	if (kills == (e->by == ENFORCE_CGROUP ? e->oom_kills :
	    full_before.own_kills))
		return buf;
	e->oom_kills = kills;
	g = n.at_limit ? NULL : full_find(&full_before, &now);
	e->is_full_above = !n.at_limit && (g != NULL ||
	    enforce_free_bytes() < needs_bytes);
	if (n.at_limit)
		snprintf(buf, len, ", for memory: its group reached the "
		    "limit of %s (%" PRIu64 " bytes), peak %s",
		    units_human_bytes(e->limit_bytes, cap), e->limit_bytes,
		    units_human_bytes(n.peak_bytes, peak));
	else if (g != NULL)
		snprintf(buf, len, ", for memory: the memory group %s is full",
		    full_describe(g, where, sizeof(where)));
	else
		snprintf(buf, len, ", for memory: the machine ran out of it, "
		    "of which %s is free now",
		    units_human_bytes(enforce_free_bytes(), peak));
	full_before = now;
	return buf;
}

uint64_t
enforce_now_bytes(const struct enforce *e)
{
	struct cgroup_count n;

	return e->by == ENFORCE_CGROUP &&
	    cgroup_count(&e->group, &n) == 0 ? n.now_bytes : 0;
}

void
enforce_close(struct enforce *e)
{
	if (e->by == ENFORCE_CGROUP && keeper_runs())
		keeper_close(&e->group);
	else if (e->by == ENFORCE_CGROUP)
		cgroup_close(&e->group);
	e->by = ENFORCE_LEDGER;
}

int
enforce_keep(struct err *reterr)
{
	int rc;

	if (enforce_best(NULL) != ENFORCE_CGROUP)
		return 0;
	if ((rc = keeper_start(&tree, enforce_is_foreign(), reterr)) < 0)
		return rc;
	/* The keeper undoes what this process changed. */
	tree.moved = 0;
	return 0;
}

pid_t
enforce_keeper(void)
{
	return keeper_pid();
}

int
enforce_remove(const char *dir)
{
	return keeper_runs() ? keeper_remove(dir) : rmdir(dir) < 0 ? -errno :
	    0;
}

int
enforce_is_foreign(void)
{
	struct stat st;

	return enforce_best(NULL) == ENFORCE_CGROUP &&
	    stat(tree.dir, &st) == 0 &&
	    (st.st_uid != geteuid() || !(st.st_mode & S_IWUSR));
}

uint64_t
enforce_free_bytes(void)
{
	struct room r;

	room_all("", &r);
	return r.free_bytes != UINT64_MAX ? r.free_bytes : 0;
}
