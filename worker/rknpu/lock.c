/* worker/rknpu/lock.c - see lock.h. */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* This process's lock, for all its domains. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int fd;
	unsigned nusers;
	int alone;
} held = { .fd = -1 };

/* Locking needs no right to write: who may not, opens it to read. */
static int
open_file(const char *root)
{
	/* The folder is everyone's: the file may be a pipe, or a link. */
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	char path[512];
	struct stat st;
	int fd, n;

	n = snprintf(path, sizeof(path), "%s" NPU_LOCK_FILE, root);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | flags, 0644);
	if (fd >= 0)
		(void)fchmod(fd, 0644);	/* whatever the umask is */
	else if (errno == EEXIST && (fd = open(path, O_RDWR | flags)) < 0)
		fd = open(path, O_RDONLY | flags);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
		return fd;
	close(fd);
	return -EINVAL;
}

/* "process 1234", as the last one that took the lock wrote it. */
static void
read_holder(int fd, char *ret, size_t len)
{
	char text[32] = "";
	long pid;

	snprintf(ret, len, "another process");
	if (pread(fd, text, sizeof(text) - 1, 0) > 0 &&
	    (pid = strtol(text, NULL, 10)) > 0)
		snprintf(ret, len, "process %ld", pid);
}

static void
write_holder(int fd)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%-10d\n", (int)getpid());

	(void)!pwrite(fd, text, (size_t)n, 0);
}

static int
busy(const char *session, int domain, int fd, struct err *reterr)
{
	char who[48];

	read_holder(fd, who, sizeof(who));
	if (domain != 0)
		return err_set(reterr, ERR_RUN, -EBUSY, "session %s: IOMMU "
		    "domain %d needs the NPU for this process alone, but %s "
		    "uses it too, and the board would freeze: end that one, "
		    "or use one session with iommu_domain=0 in each process",
		    session, domain, who);
	return err_set(reterr, ERR_RUN, -EBUSY, "session %s: %s uses several "
	    "IOMMU domains of the NPU, and a second process would freeze the "
	    "board: end that one first", session, who);
}

static int
lock(const char *root, const char *session, int domain, struct err *reterr)
{
	const int alone = held.alone || domain != 0;
	int rc;

	if (held.fd < 0 && (held.fd = open_file(root)) < 0)
		return domain == 0 && held.fd == -ENOENT ? 0 : err_set(reterr, ERR_RUN, held.fd,
		    "session %s: IOMMU domain %d: cannot make sure that no "
		    "other process uses the NPU, with which the board would "
		    "freeze: " NPU_LOCK_FILE ": %s", session, domain,
		    strerror(-held.fd));
	if (held.nusers > 0 && alone == held.alone)
		return 0;
	if (flock(held.fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0) {
		rc = errno;
		/* A lock that cannot be changed may be gone. */
		if (held.nusers > 0)
			(void)flock(held.fd, LOCK_SH | LOCK_NB);
		return rc == EWOULDBLOCK ? busy(session, domain, held.fd,
		    reterr) : err_set(reterr, ERR_RUN, -rc, "session %s: "
		    NPU_LOCK_FILE ": %s", session, strerror(rc));
	}
	held.alone = alone;
	write_holder(held.fd);
	return 0;
}

static void
drop_if_unused(void)
{
	if (held.nusers > 0)
		return;
	if (held.fd >= 0)
		close(held.fd);
	held.fd = -1;
	held.alone = 0;
}

int
npu_lock(const char *root, const char *session, int domain,
    struct err *reterr)
{
	int rc;

	pthread_mutex_lock(&mutex);
	if ((rc = lock(root, session, domain, reterr)) == 0)
		held.nusers++;
	drop_if_unused();
	pthread_mutex_unlock(&mutex);
	return rc;
}

void
npu_unlock(void)
{
	pthread_mutex_lock(&mutex);
	held.nusers--;
	drop_if_unused();
	pthread_mutex_unlock(&mutex);
}
