/* shm/region.c - maps memfds of a fixed size, and private pages. */
#include "region.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL	0x0008U		/* Linux 6.3; not in glibc 2.36 */
#endif

/* A process gets SIGBUS when a peer shrinks a file that it has mapped. */
#define SIZE_SEALS	(F_SEAL_SHRINK | F_SEAL_GROW)

static uint64_t
page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t
region_bytes(uint64_t nbytes, int huge)
{
	uint64_t unit = huge ? REGION_HUGE_BYTES : page_bytes();

	if (nbytes > UINT64_MAX - unit)
		return UINT64_MAX;
	return ALIGN_UP(nbytes, unit);
}

int
region_memfd(const char *name)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	return fd < 0 ? -errno : fd;
}

static int
map_shared(struct region *r)
{
	void *p = mmap(NULL, r->nbytes, PROT_READ | PROT_WRITE, MAP_SHARED,
	    r->fd, 0);

	if (p == MAP_FAILED)
		return -1;
	r->base = p;
	return 0;
}

int
region_create_shared(const char *name, uint64_t nbytes, struct region *ret,
    struct err *reterr)
{
	struct region r = REGION_NONE;
	int rc;

	r.nbytes = region_bytes(nbytes, 0);
	if (nbytes == 0 || r.nbytes > INT64_MAX)
		return err_set(reterr, ERR_RUN, -EINVAL, "shared memory %s: "
		    "%" PRIu64 " bytes is not a valid size", name, nbytes);
	if ((rc = r.fd = region_memfd(name)) < 0 ||
	    ftruncate(r.fd, (off_t)r.nbytes) < 0 ||
	    fcntl(r.fd, F_ADD_SEALS, SIZE_SEALS | F_SEAL_SEAL) < 0 ||
	    map_shared(&r) < 0) {
		rc = rc < 0 ? rc : -errno;
		region_close(&r);
		return err_set(reterr, ERR_RUN, rc, "shared memory %s of "
		    "%" PRIu64 " bytes: %s", name, region_bytes(nbytes, 0),
		    strerror(-rc));
	}
	*ret = r;
	return 0;
}

/* Check the seals first: only a sealed file keeps its size.  The size comes
 * from lseek(), because glibc's fstat() is a system call that takes a path,
 * which a confined worker may not use. */
int
region_attach_shared(int fd, uint64_t want_bytes, struct region *ret,
    struct err *reterr)
{
	struct region r = { .nbytes = region_bytes(want_bytes, 0), .fd = fd };
	off_t size;
	int rc, seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 && errno == EBADF)
		return err_set(reterr, ERR_RUN, -EBADF,
		    "shared memory: fd %d is not open", fd);
	if (seals < 0 || (seals & SIZE_SEALS) != SIZE_SEALS)
		return err_set(reterr, ERR_RUN, -EPERM, "shared memory: fd %d "
		    "is not a memfd sealed against shrinking and growing", fd);
	if ((size = lseek(fd, 0, SEEK_END)) < 0)
		goto fail;
	if (want_bytes == 0 || (uint64_t)size != r.nbytes)
		return err_set(reterr, ERR_RUN, -EBADMSG, "shared memory: fd "
		    "%d has %jd bytes, not %" PRIu64, fd,
		    (intmax_t)size, r.nbytes);
	if (map_shared(&r) < 0)
		goto fail;
	*ret = r;
	return 0;
fail:
	rc = -errno;
	return err_set(reterr, ERR_RUN, rc, "shared memory: fd %d: %s", fd,
	    strerror(-rc));
}

/* Reserve address space without access first: no limit counts it, so that the
 * slack for the alignment cannot exceed one.  Then make the rest accessible. */
static void *
map_private(uint64_t nbytes, int huge)
{
	uint64_t slack = huge ? REGION_HUGE_BYTES : 0;
	uint8_t *p, *base;
	int error;

	p = mmap(NULL, nbytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
	    -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	base = p;
	if (huge) {
		base += ALIGN_UP((uintptr_t)p, REGION_HUGE_BYTES) -
		    (uintptr_t)p;
		if (base > p)
			munmap(p, (size_t)(base - p));
		if (base < p + slack)
			munmap(base + nbytes, (size_t)(p + slack - base));
	}
	if (mprotect(base, nbytes, PROT_READ | PROT_WRITE) < 0) {
		error = errno;
		munmap(base, nbytes);
		errno = error;
		return NULL;
	}
	if (huge)
		(void)madvise(base, nbytes, MADV_HUGEPAGE);
	return base;
}

int
region_create_private(uint64_t nbytes, int huge, struct region *ret,
    struct err *reterr)
{
	struct region r = REGION_NONE;
	int rc;

	r.nbytes = region_bytes(nbytes, huge);
	if (nbytes == 0 || r.nbytes > INT64_MAX)
		return err_set(reterr, ERR_RUN, -EINVAL, "memory: %" PRIu64
		    " bytes is not a valid size", nbytes);
	if ((r.base = map_private(r.nbytes, huge)) == NULL) {
		rc = -errno;
		return err_set(reterr, ERR_RUN, rc, "memory of %" PRIu64
		    " bytes: %s", r.nbytes, strerror(-rc));
	}
	*ret = r;
	return 0;
}

/* MADV_POPULATE_WRITE keeps huge pages whole where a first read would split
 * them (aarch64), but it is only advice: Linux before 5.14 refuses it, and an
 * emulator may ignore it.  So write to each page as well, zero over zero; a
 * page that begins with another value has been written to already. */
void
region_touch(struct region *r)
{
	uint8_t *base = r->base;
	uint64_t off, page = page_bytes();
	uint32_t zero;

	(void)madvise(base, r->nbytes, MADV_POPULATE_WRITE);
	for (off = 0; off < r->nbytes; off += page) {
		zero = 0;
		__atomic_compare_exchange_n((uint32_t *)(base + off), &zero, 0,
		    0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

void
region_close_fd(struct region *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

void
region_close(struct region *r)
{
	if (r->base != NULL)
		munmap(r->base, r->nbytes);
	region_close_fd(r);
	*r = (struct region)REGION_NONE;
}
