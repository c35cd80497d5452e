/* config/own_cap.c - holds this process to a cap. */
#include "own_cap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "units.h"

static struct own_cap current = { .limit_bytes = UINT64_MAX };
static struct rlimit original;
static int have_original;

/* Sizes of this process. */
struct sizes {
	uint64_t data;		/* as RLIMIT_DATA counts it */
	uint64_t uncounted;	/* pages that it does not count */
	uint64_t most;		/* that was ever resident */
};

const struct own_cap *
own_cap(void)
{
	return &current;
}

static uint64_t
size_in(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10) * KIB;
}

/* In one read, without an allocation. */
static int
read_sizes(struct sizes *ret)
{
	char status[4096];
	uint64_t tables;
	ssize_t n;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	n = read(fd, status, sizeof(status) - 1);
	close(fd);
	if (n <= 0)
		return -EIO;
	status[n] = '\0';
	tables = size_in(status, "\nVmPTE:");
	ret->data = size_in(status, "\nVmData:");
	ret->uncounted = size_in(status, "\nRssFile:") +
	    size_in(status, "\nRssShmem:") + size_in(status, "\nVmStk:") +
	    tables;
	ret->most = size_in(status, "\nVmHWM:") + tables;
	return ret->data > 0 ? 0 : -ENOTSUP;
}

uint64_t
own_cap_used(uint64_t *ret_most)
{
	struct sizes s;

	if (read_sizes(&s) < 0)
		s = (struct sizes){ 0 };
	*ret_most = s.most;
	/* A sanitizer maps terabytes that it hardly touches. */
	return SANITIZED ? s.most : s.data + s.uncounted;
}

/* 1 = setting the limit has no effect, as under qemu-user, whose own memory is in
 * the sizes, too. */
static int
is_ignored(void)
{
	struct rlimit rl, changed, now;

	if (getrlimit(RLIMIT_DATA, &rl) < 0 || rl.rlim_cur == 0)
		return 0;
	changed = rl;
	changed.rlim_cur = rl.rlim_cur == RLIM_INFINITY ? RLIM_INFINITY / 2 :
	    rl.rlim_cur - 1;
	if (setrlimit(RLIMIT_DATA, &changed) < 0 ||
	    getrlimit(RLIMIT_DATA, &now) < 0)
		return 0;
	setrlimit(RLIMIT_DATA, &rl);
	return now.rlim_cur == rl.rlim_cur;
}

static int
set_limit(uint64_t nbytes)
{
	struct rlimit rl, now;

	if (!have_original && getrlimit(RLIMIT_DATA, &original) < 0)
		return -errno;
	have_original = 1;
	rl = original;
	rl.rlim_cur = MIN((rlim_t)nbytes, rl.rlim_cur);
	if (setrlimit(RLIMIT_DATA, &rl) < 0 ||
	    getrlimit(RLIMIT_DATA, &now) < 0)
		return -errno;
	if (now.rlim_cur > nbytes)
		return -ENOTSUP;
	current.limit_bytes = now.rlim_cur;
	return 0;
}

static void
name_cap(void)
{
	char cap[UNITS_BYTES_LEN], remedy[ERR_REMEDY_LEN];

	snprintf(remedy, sizeof(remedy), " (the coordinator's cap is %s; "
	    "--coordinator-cap sets another)",
	    units_human_bytes(current.cap_bytes, cap));
	err_set_memory_remedy(remedy);
}

int
own_cap_set(uint64_t cap_bytes, uint64_t shared_bytes, struct err *reterr)
{
	char cap[UNITS_BYTES_LEN], used[UNITS_BYTES_LEN];
	struct sizes s = { 0 };
	uint64_t beside;
	int rc = SANITIZED ? 0 : is_ignored() ? -ENOTSUP : read_sizes(&s);

	/* The page tables of a whole cap are a 512th of it. */
	beside = s.uncounted + shared_bytes + cap_bytes / 512;
	if (rc == 0 && s.data + beside > cap_bytes)
		return err_set(reterr, ERR_FIT, -ENOSPC, "the coordinator "
		    "has %s of memory already, and its cap is %s: raise "
		    "--coordinator-cap, or leave it out",
		    units_human_bytes(s.data + beside, used),
		    units_human_bytes(cap_bytes, cap));
	current = (struct own_cap){ .cap_bytes = cap_bytes,
	    .limit_bytes = UINT64_MAX };
	if (SANITIZED) {
		strlcpy(current.why, "a sanitizer's shadow memory is in no "
		    "plan", sizeof(current.why));
		return 0;
	}
	if (rc == 0 && (rc = set_limit(cap_bytes - beside)) == 0)
		name_cap();
	else
		snprintf(current.why, sizeof(current.why), "RLIMIT_DATA: %s",
		    strerror(-rc));
	return 0;
}

int
own_cap_check(const char *name, uint64_t nbytes, unsigned factor,
    struct err *reterr)
{
	char cap[UNITS_BYTES_LEN];
	struct sizes s;
	uint64_t most;

	if (current.limit_bytes == UINT64_MAX || read_sizes(&s) < 0)
		return 0;
	most = (current.limit_bytes - MIN(s.data, current.limit_bytes)) /
	    factor;
	return nbytes <= most ? 0 : err_set(reterr, ERR_USAGE, -E2BIG,
	    "%s: it has %" PRIu64 " bytes or more, and the coordinator's cap "
	    "of %s leaves room for %" PRIu64 ": shorten it, or raise "
	    "--coordinator-cap", name, nbytes,
	    units_human_bytes(current.cap_bytes, cap), most);
}

void
own_cap_release(void)
{
	if (have_original)
		(void)setrlimit(RLIMIT_DATA, &original);
}

int
own_cap_original(struct rlimit *ret)
{
	if (!have_original)
		return getrlimit(RLIMIT_DATA, ret) < 0 ? -errno : 0;
	*ret = original;
	return 0;
}
