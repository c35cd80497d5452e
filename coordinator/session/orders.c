/* coordinator/session/orders.c - the orders that follow the handshake:
 * confinement, part of the model, rings, files; and, after another worker's
 * loss, new rings. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/ring.h"
#include "sessions.h"

/* Spinning beats a futex wait only when the neighbour answers within the time
 * of a context switch, and only on cores that are not shared. */
#define RING_SPIN_NS	20000u

int
session_send_confine(struct session *s, int opens_device, struct err *reterr)
{
	struct wire_confine wc = { .opens_device = opens_device != 0 };

	return session_send(s, WIRE_CONFINE, &wc, sizeof(wc), NULL, 0, reterr);
}

int
session_send_model(struct session *s, const struct plan *plan,
    struct err *reterr)
{
	const struct plan_session *ps = s->plan;
	const struct hparams *hp = &plan->model->hp;
	const uint32_t per_msg = CHAN_MAX_BYTES / sizeof(struct extent);
	struct wire_model wm = {
		.first_sublayer = ps->first_sublayer, .nsublayers = ps->nsublayers,
		.embedding = (uint32_t)ps->embedding,
		.head = (uint32_t)ps->head,
		.batch_rows = plan->batch_rows, .head_rows = plan->head_rows,
		.ctx_tok = plan->ctx_tok, .nseqs = plan->nseqs,
		.kfmt = plan->kfmt, .vfmt = plan->vfmt,
		.nfiles = plan->model->g->nfiles,
	};
	uint8_t buf[sizeof(wm) + sizeof(*hp)];
	struct extent *ext;
	uint32_t i;
	int rc;

	ext = calloc(model_range_max(plan->model), sizeof(*ext));
	if (ext == NULL)
		return err_nomem(reterr, "the extents of session %s",
		    ps->conf->name);
	wm.nextents = model_range(plan->model, ps->u0, ps->u1, ext);
	memcpy(buf, &wm, sizeof(wm));
	memcpy(buf + sizeof(wm), hp, sizeof(*hp));
	rc = session_send(s, WIRE_MODEL, buf, sizeof(buf), NULL, 0, reterr);
	for (i = 0; rc == 0 && i < wm.nextents; i += per_msg)
		rc = session_send(s, WIRE_EXTENTS, ext + i,
		    MIN(per_msg, wm.nextents - i) * sizeof(*ext), NULL, 0,
		    reterr);
	free(ext);
	return rc;
}

static int
send_rings(struct sessions *ss, unsigned i, struct err *reterr)
{
	struct wire_rings wr = {
		.pays = WIRE_PAYS_IN | (plan_charges_ring(ss->plan, i, i + 1) ?
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

/* -1 = the file system has no direct I/O. */
static int
open_direct(const struct gguf_file *f, struct wire_file *wf)
{
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
	fd = gguf_open_direct(f);
	wf->direct = fd >= 0;
	return fd;
}

/* The worker compares size, device, inode and times with those of the plan at
 * every load, and refuses a file that has changed. */
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
		    .ctime_ns = gf->ctime_ns, .mem_align = 4096, .off_align = 4096 };

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
sessions_send_orders(struct sessions *ss, unsigned i, struct err *reterr)
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
sessions_send_epoch(struct sessions *ss, unsigned i, const struct region *fresh,
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
	/* The worker may be waiting or sleeping on the old rings: the call ends
	 * the wait, the wake-ups end the sleep. */
	atomic_fetch_add_explicit(&s->status->call, 1,
	    memory_order_release);				/* S1 */
	ring_wake(&ss->ring[i]);
	ring_wake(&ss->ring[i + 1]);
	return 0;
}
