/* coordinator/quantize/origin.c - records and compares a conversion's origin.
 *
 * The attribute's value: "DEV INO BTIME SIZE MTIME CTIME OUT_MTIME", decimal,
 * times in nanoseconds; all but the last are those of IN's first file. */
#include "origin.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define ORIGIN	"user.straddle.origin"

enum { ORIGIN_LEN = 160 };

static int64_t
mtime_ns(const struct stat *st)
{
	return st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
}

/* The two halves of the value: what does not change when IN is written again,
 * and what does.  An inode number alone may be that of a file which was removed,
 * and whose conversion must not be replaced: 0 = its time of birth is unknown. */
static int
describe(const struct gguf *in, char which[ORIGIN_LEN], char state[ORIGIN_LEN])
{
	const struct gguf_file *f = &in->file[0];
	struct statx sx;

	if (statx(f->fd, "", AT_EMPTY_PATH, STATX_BTIME, &sx) < 0 ||
	    (sx.stx_mask & STATX_BTIME) == 0)
		return 0;
	snprintf(which, ORIGIN_LEN, "%" PRIu64 " %" PRIu64 " %" PRId64 " ",
	    f->dev, f->ino, (int64_t)sx.stx_btime.tv_sec *
	    INT64_C(1000000000) + sx.stx_btime.tv_nsec);
	snprintf(state, ORIGIN_LEN, "%" PRIu64 " %" PRId64 " %" PRId64 " ",
	    f->nbytes, f->mtime_ns, f->ctime_ns);
	return 1;
}

void
origin_record(int fd, const struct gguf *in)
{
	char which[ORIGIN_LEN], state[ORIGIN_LEN], value[2 * ORIGIN_LEN + 32];
	struct stat st;

	if (fstat(fd, &st) < 0 || !describe(in, which, state))
		return;
	snprintf(value, sizeof(value), "%s%s%" PRId64, which, state,
	    mtime_ns(&st));
	fsetxattr(fd, ORIGIN, value, strlen(value), 0);
}

int
origin_is_outdated(const char *path, const struct gguf *in)
{
	char which[ORIGIN_LEN], state[ORIGIN_LEN], value[2 * ORIGIN_LEN + 32];
	char out_mtime[32];
	struct stat st;
	ssize_t n = getxattr(path, ORIGIN, value, sizeof(value) - 1);
	char *last;

	if (n <= 0 || stat(path, &st) < 0 || !describe(in, which, state))
		return 0;
	value[n] = '\0';
	snprintf(out_mtime, sizeof(out_mtime), " %" PRId64, mtime_ns(&st));
	last = strrchr(value, ' ');
	return last != NULL && strcmp(last, out_mtime) == 0 &&
	    strncmp(value, which, strlen(which)) == 0 &&
	    strncmp(value + strlen(which), state, strlen(state)) != 0;
}
