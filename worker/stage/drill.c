/* worker/stage/drill.c - injects faults: memory beyond the ledger, failing
 * disks. */
#include "drill.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shm/region.h"
#include "worker/load/load.h"

/* Page tables of the touched memory: 8 bytes for each page of 4096. */
enum { TABLES = 512 };

/* The fault of this session's following load. */
static _Thread_local struct wire_drill disk;
static _Thread_local uint64_t nreads;

/* The loader's read hook: the system's read with a fault. */
static int64_t
faulty_read(void *arg, int fd, void *buf, uint64_t nbytes, uint64_t offset)
{
	const struct wire_drill *d = arg;
	struct timespec ts = { .tv_sec = (time_t)(d->n / 1000000000),
	    .tv_nsec = (long)(d->n % 1000000000) };
	uint64_t nth = nreads++;
	ssize_t n;

	switch (d->kind) {
	case DRILL_SLOW:
		nanosleep(&ts, NULL);
		break;
	case DRILL_SHORT:
		nbytes = MIN(nbytes, d->n);
		break;
	case DRILL_EIO:
		if (nth == d->n)
			return -EIO;
		break;
	case DRILL_END:
		if (nth >= d->n)
			return 0;
		break;
	}
	n = pread(fd, buf, nbytes, (off_t)offset);
	return n < 0 ? -errno : n;
}

static int
fill_ledger(struct mem_ledger *m, uint64_t spare, struct err *reterr)
{
	uint64_t left = mem_left(m);
	struct region r;
	int rc;

	if ((rc = mem_charge(m, MEM_COMPUTE, left, "drill", reterr)) < 0)
		return rc;
	spare = MIN(left, spare);
	left = ALIGN_DOWN(left - spare - (left - spare) / TABLES, 4096);
	if (left == 0)
		return 0;
	if ((rc = region_create_private(left, 0, &r, reterr)) < 0)
		return rc;
	region_touch(&r);	/* never unmapped */
	return 0;
}

static int
touch_uncharged(uint64_t nbytes, const struct mem_ledger *m, struct err *reterr)
{
	uint64_t done;
	struct region r;
	struct err e;

	for (done = 0; done < nbytes; done += MIB) {
		if (region_create_private(MIB, 0, &r, &e) < 0)
			return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
			    "drill: the kernel refused a MiB after %" PRIu64
			    " bytes past the ledger: %s", m->session, done,
			    e.msg);
		region_touch(&r);
	}
	return err_set(reterr, ERR_RUN, -EOVERFLOW, "session %s: drill: %"
	    PRIu64 " bytes past the ledger were touched, and nothing stopped "
	    "it", m->session, nbytes);
}

int
drill(const struct wire_drill *d, struct mem_ledger *ledger,
    struct err *reterr)
{
	switch (d->kind) {
	case DRILL_SLOW:
	case DRILL_SHORT:
	case DRILL_EIO:
	case DRILL_END:
		disk = *d;
		nreads = 0;
		load_set_read_hook(faulty_read, &disk);
		return 0;
	case DRILL_FILL:
		return fill_ledger(ledger, d->n, reterr);
	case DRILL_CHARGE:
		return mem_charge(ledger, MEM_COMPUTE, d->n, "drill", reterr);
	case DRILL_EAT:
		return touch_uncharged(d->n, ledger, reterr);
	default:
		return err_set(reterr, ERR_RUN, -EBADMSG, "drill: unknown "
		    "kind %u", d->kind);
	}
}
