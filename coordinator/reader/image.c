/* coordinator/reader/image.c - lends, fills and seals the reader's image. */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/units.h"

int
image_lend(uint64_t *nbytes, int *ret_fd, struct err *reterr)
{
	int fd = region_memfd("straddle-image"), rc;
	struct rlimit rl;

	*ret_fd = -1;
	if (fd < 0)
		return err_set(reterr, ERR_RUN, fd, "memfd: %s",
		    strerror(-fd));
	if (getrlimit(RLIMIT_FSIZE, &rl) == 0)
		*nbytes = MIN(*nbytes, (uint64_t)rl.rlim_cur);
	if (ftruncate(fd, (off_t)*nbytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) < 0) {
		rc = err_set(reterr, ERR_RUN, -errno, "a memfd of %" PRIu64
		    " bytes: %s", *nbytes, strerror(errno));
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

static int
check_size(int fd, uint64_t nbytes, int exactly, struct err *reterr)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(reterr, ERR_RUN, -errno, "the reader's image: "
		    "%s", strerror(errno));
	if (nbytes == 0 || nbytes > (uint64_t)st.st_size ||
	    (exactly && nbytes != (uint64_t)st.st_size))
		return err_set(reterr, ERR_RUN, -EBADMSG, "the reader's "
		    "image: the reader says %" PRIu64 " bytes, it has %"
		    PRIu64, nbytes, (uint64_t)st.st_size);
	return 0;
}

/* Cut the block to its size, so that it takes no more memory than it needs, and
 * end all writing to it.  Until the seal holds, a reader can still change the
 * size. */
static int
seal(int fd, uint64_t nbytes, struct err *reterr)
{
	int rc = check_size(fd, nbytes, 0, reterr);

	if (rc < 0)
		return rc;
	if (ftruncate(fd, (off_t)nbytes) < 0 || fcntl(fd, F_ADD_SEALS,
	    F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return err_set(reterr, ERR_RUN, -EBADMSG, "the reader's "
		    "image cannot be sealed: %s%s", strerror(errno),
		    errno == EBUSY ? "; the reader still writes to it" : "");
	return check_size(fd, nbytes, 1, reterr);
}

int
image_take(int fd, uint64_t nbytes, struct region *ret, struct err *reterr)
{
	int rc = seal(fd, nbytes, reterr);
	void *base;

	*ret = (struct region)REGION_NONE;
	if (rc == 0 && (base = mmap(NULL, nbytes, PROT_READ, MAP_SHARED, fd,
	    0)) == MAP_FAILED)
		rc = err_set(reterr, ERR_RUN, -errno, "the reader's image, %"
		    PRIu64 " bytes: %s", nbytes, strerror(errno));
	close(fd);
	if (rc < 0)
		return rc;
	ret->base = base;
	ret->nbytes = nbytes;
	return 0;
}

int
image_fill(int fd, uint64_t nbytes, image_write_fn *fn, const void *from,
    struct err *reterr)
{
	const uint64_t lent_bytes = (uint64_t)MAX(lseek(fd, 0, SEEK_END),
	    (off_t)0);
	char need[UNITS_BYTES_LEN], lent[UNITS_BYTES_LEN];
	void *base;

	if (nbytes > lent_bytes)
		return err_set(reterr, ERR_MODEL, -E2BIG, "the header's "
		    "contents need %s, and the limit is %s, by the file's size "
		    "and by `ulimit -f`: raise that, or use another file",
		    units_human_bytes(nbytes, need),
		    units_human_bytes(lent_bytes, lent));
	base = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return err_set(reterr, ERR_RUN, -errno, "an image of %" PRIu64
		    " bytes: %s", nbytes, strerror(errno));
	fn(from, base);
	munmap(base, nbytes);
	return 0;
}
