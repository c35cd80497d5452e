/* coordinator/session/orders.c - what a worker is told after its first word: its part
 * of the model, its rings, its files; and later, its new rings. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/ring.h"
#include "session.h"

/* Short enough to win over a context switch, long enough to meet a
 * neighbour that answers at once; only where cores are not shared. */
#define RING_SPIN_NS	20000u

static int
send_rings(struct sessions *ss, unsigned i, struct err *reterr)
{
	struct wire_rings wr = {
		.pays = WIRE_PAYS_IN | (plan_pays(ss->plan, i, i + 1) ?
		    WIRE_PAYS_OUT : 0),
		.owns = WIRE_PAYS_IN | (i == ss->n - 1 ? WIRE_PAYS_OUT : 0),
		.has_bell = i == ss->n - 1,
		.spin_ns = ss->s[i].plan->own_cores && ss->n > 1 ?
		    RING_SPIN_NS : 0,
		.epoch = ss->epoch,
	};
	int fds[3] = { ss->ring[i].fd, ss->ring[i + 1].fd, ss->bell_fd };

	plan_ring(ss->plan, i, &wr.in_nslots, &wr.in_slot_bytes);
	plan_ring(ss->plan, i + 1, &wr.out_nslots, &wr.out_slot_bytes);
	return session_send(&ss->s[i], WIRE_RINGS, &wr, sizeof(wr), fds,
	    wr.has_bell ? 3 : 2, reterr);
}

/* The same file once more with O_DIRECT (which belongs to the description);
 * by way of the open one, so that it cannot be another file.  -1 = the file
 * system does not do it. */
static int
open_direct(const struct gguf_file *f, struct wire_file *wf)
{
	char path[64];
	int fd;
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (statx(f->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
	    (stx.stx_mask & STATX_DIOALIGN)) {
		if (stx.stx_dio_offset_align == 0)
			return -1;
		wf->mem_align = stx.stx_dio_mem_align;
		wf->off_align = stx.stx_dio_offset_align;
	}
#endif
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	wf->direct = fd >= 0;
	return fd;
}

/* With them goes what they were when they were planned; the worker refuses
 * others, at every load. */
static int
send_files(struct sessions *ss, unsigned i, struct err *reterr)
{
	const struct gguf *g = ss->plan->model->g;
	uint32_t f;
	int rc = 0, fds[2];

	for (f = 0; f < g->nfiles && rc == 0; f++) {
		const struct gguf_file *gf = &g->file[f];
		struct wire_file wf = { .nbytes = gf->nbytes, .dev = gf->dev,
		    .ino = gf->ino, .mtime_ns = gf->mtime_ns,
		    .mem_align = 4096, .off_align = 4096 };

		snprintf(wf.name, sizeof(wf.name), "%s", basename(gf->path));
		fds[0] = gf->fd;
		fds[1] = open_direct(gf, &wf);
		rc = session_send(&ss->s[i], WIRE_FILE, &wf, sizeof(wf), fds,
		    wf.direct ? 2 : 1, reterr);
		if (fds[1] >= 0)
			close(fds[1]);
	}
	return rc;
}

int
session_order(struct sessions *ss, unsigned i, struct err *reterr)
{
	struct session *s = &ss->s[i];
	int rc;

	if ((rc = session_send_model(s, ss->plan, reterr)) < 0 ||
	    (rc = send_rings(ss, i, reterr)) < 0 ||
	    (rc = send_files(ss, i, reterr)) < 0)
		return rc;
	s->epoch = ss->epoch;
	return 0;
}

int
session_renew(struct sessions *ss, unsigned i, const struct region *fresh,
    struct err *reterr)
{
	struct wire_renew wr = { .epoch = ss->epoch,
	    .has_in = fresh[i].base != NULL,
	    .has_out = fresh[i + 1].base != NULL };
	struct session *s = &ss->s[i];
	int fds[2], rc;
	unsigned n = 0;

	if (wr.has_in)
		fds[n++] = fresh[i].fd;
	if (wr.has_out)
		fds[n++] = fresh[i + 1].fd;
	if ((rc = session_send(s, WIRE_RENEW, &wr, sizeof(wr), fds, n,
	    reterr)) < 0)
		return rc;
	/* The call ends a wait, and the wake a sleep, on the old rings. */
	atomic_fetch_add_explicit(&s->status->call, 1,
	    memory_order_release);				/* S1 */
	ring_wake(&ss->ring[i]);
	ring_wake(&ss->ring[i + 1]);
	return 0;
}
