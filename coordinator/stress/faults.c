/* coordinator/stress/faults.c - cases about what lies: the disk, in a load, and
 * a peer that writes nonsense into a ring. */
#include "stress.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "shm/ring.h"

/* --- the disk --- */

/* A clean run, to be told apart from. */
static int
undisturbed(struct stress *x, struct work *w, struct err *reterr)
{
	int rc = stress_begin(x, w, reterr);

	if (rc == 0)
		rc = stress_stop(x, reterr);
	if (rc == 0)
		stress_close(x);
	return rc;
}

static int
load_with(struct stress *x, unsigned i, enum drill_kind kind, uint64_t n,
    struct err *reterr)
{
	int rc;

	if ((rc = stress_plan(x, reterr)) < 0 ||
	    (rc = stress_spawn(x, reterr)) < 0)
		return rc;
	for (; rc == 0 && i < x->ss->n; i++)
		if ((rc = stress_drill(x, i, kind, n, reterr)) == 0 &&
		    kind != DRILL_SHORT)
			break;
	return rc < 0 ? rc : stress_load(x, NULL, NULL, reterr);
}

/* Nothing is lost by reads that bring less than they were asked for, however
 * odd; but a page at least, or it would never end. */
int
stress_short_reads(struct stress *x, struct err *reterr)
{
	uint64_t most = 4096 + stress_below(x, 65536);
	struct work once, again;
	int rc;

	if ((rc = undisturbed(x, &once, reterr)) < 0 ||
	    (rc = load_with(x, 0, DRILL_SHORT, most, reterr)) < 0)
		return rc;
	again = once;
	if ((rc = stress_work(x, &again, reterr)) < 0 ||
	    (rc = stress_stop(x, reterr)) < 0)
		return rc;
	stress_same(x, &once, &again, "after short reads");
	stress_note(x, "no read of %u workers brought more than %" PRIu64
	    " bytes; the same logits", x->ss->n, most);
	return 0;
}

/* Each session in turn has a disk that fails: a message with all of who, what,
 * where and why, and the next one loads. */
static int
bad_disk(struct stress *x, enum drill_kind kind, int error, const char *words,
    struct err *reterr)
{
	struct work once, again;
	unsigned i = 0, n;
	int rc;

	if ((rc = undisturbed(x, &once, reterr)) < 0)
		return rc;
	do {
		rc = load_with(x, i, kind, 0, reterr);
		if (rc == -EINTR || x->ss == NULL)
			return rc;
		n = x->ss->n;
		stress_want(x, rc == error && strstr(reterr->msg, words) !=
		    NULL && strstr(reterr->msg, "tensor ") != NULL &&
		    strstr(reterr->msg, x->ss->s[i].name) != NULL,
		    "session %s: %d, \"%.200s\"", x->ss->s[i].name, rc,
		    reterr->msg);
		if (i == 0)
			stress_note(x, "%.250s", reterr->msg);
		stress_close(x);
	} while (++i < n);
	if ((rc = stress_start(x, reterr)) < 0)
		return rc;
	again = once;
	if ((rc = stress_work(x, &again, reterr)) < 0)
		return rc;
	stress_same(x, &once, &again, "afterwards");
	stress_note(x, "so in each of %u; afterwards the same logits", n);
	return stress_stop(x, reterr);
}

int
stress_disk_error(struct stress *x, struct err *reterr)
{
	return bad_disk(x, DRILL_EIO, -EIO, "Input/output error", reterr);
}

int
stress_file_ends(struct stress *x, struct err *reterr)
{
	return bad_disk(x, DRILL_END, -ENODATA, "file ends at", reterr);
}

/* --- rings --- */

/* It was worker i that was lost, with these words; new rings, and the work goes
 * as if nothing had been. */
static void
want_loss(struct stress *x, unsigned i, const char *words, const char *msg)
{
	stress_want(x, strstr(msg, words) != NULL && strstr(msg,
	    x->ss->s[i].name) != NULL, "session %s, %s: \"%.200s\"",
	    x->ss->s[i].name, words, msg);
}

/* A worker that meets nonsense leaves, and names it; what comes instead of it
 * gets new rings. */
static int
contained(struct stress *x, unsigned i, const char *words,
    const struct work *want, struct err *reterr)
{
	struct work again = *want;
	int rc = stress_await(x, reterr);

	if (rc != -ECHILD)
		return rc;
	want_loss(x, i, words, reterr->msg);
	if (i == 0 && x->detail[0] == '\0')
		stress_note(x, "like \"%.250s\"", reterr->msg);
	if ((rc = pipeline_recover(x->pipe, reterr)) < 0 ||
	    (rc = stress_again(x, &again, reterr)) < 0)
		return rc;
	stress_same(x, want, &again, words);
	return 0;
}

/* A peer says that more slots are filled than there are, or that more have been
 * emptied. */
static void
lie(struct stress *x, unsigned i, int reader)
{
	struct ring_shared *sh = x->ss->ring[i].base;

	atomic_fetch_add(reader ? &sh->tail : &sh->head, sh->nslots + 1 +
	    stress_below(x, 1000));
	ring_wake(&x->ss->ring[i]);
}

/* Session i has written nonsense into a ring that ends at the coordinator,
 * which takes that for a loss as soon as there is work. */
static int
refused(struct stress *x, unsigned i, const char *words,
    const struct work *want, struct err *reterr)
{
	unsigned before = x->ss->retry.losses;
	struct work again = *want;
	int rc;

	if ((rc = stress_again(x, &again, reterr)) < 0)
		return rc;
	stress_want(x, x->ss->retry.losses == before + 1, "session %s, %s: %u "
	    "losses, not 1", x->ss->s[i].name, words,
	    x->ss->retry.losses - before);
	want_loss(x, i, words, x->ss->retry.last_loss);
	stress_same(x, want, &again, words);
	return 0;
}

/* It knows better, and would put it right with its next slot: it is stopped.
 * It need not go on, it is killed as it is. */
static int
own_ring(struct stress *x, unsigned i, unsigned ring, const char *words,
    const struct work *want, struct err *reterr)
{
	kill(x->ss->s[i].child.pid, SIGSTOP);
	lie(x, ring, ring == 0);
	return refused(x, i, words, want, reterr);
}

int
stress_ring_counters(struct stress *x, struct err *reterr)
{
	struct work once;
	unsigned i, n;
	int rc;

	if ((rc = stress_begin(x, &once, reterr)) < 0)
		return rc;
	n = x->ss->n;
	for (i = 0; i < n; i++) {
		lie(x, i, 0);
		if ((rc = contained(x, i, "ring into this stage is corrupt",
		    &once, reterr)) < 0)
			return rc;
	}
	if ((rc = own_ring(x, n - 1, n, "ring of logits is corrupt", &once,
	    reterr)) < 0)
		return rc;
	stress_note(x, "of the last ring \"%.200s\"", x->ss->retry.last_loss);
	if ((rc = own_ring(x, 0, 0, "ring of tokens is corrupt", &once,
	    reterr)) < 0)
		return rc;
	stress_note(x, "so in each of %u rings, and at the coordinator's end "
	    "of both that it has; and then the same logits", n + 1);
	return stress_stop(x, reterr);
}

/* One thing is wrong in each of these. */
static const struct {
	const char *words;	/* of the refusal */
	uint32_t magic, nrows, seq, pos, token;
} nonsense[] = {
	{ "not a batch header", 1, 0, 0, 0, 0 },
	{ "more rows than the ring was made for", 0, 1u << 20, 0, 0, 0 },
	{ "no rows", 0, 0, 0, 0, 0 },
	{ "no such sequence", 0, 1, 1u << 20, 0, 0 },
	{ "does not continue its sequence", 0, 1, 0, 5, 0 },
	{ "a token outside the vocabulary", 0, 1, 0, 0, UINT32_MAX },
};

static void
put_nonsense(struct stress *x, unsigned i)
{
	struct batch_hdr hdr = { .magic = BATCH_MAGIC ^ nonsense[i].magic,
	    .kind = BATCH_DATA, .nrows = nonsense[i].nrows,
	    .epoch = x->ss->epoch };
	struct batch_row row = engine_row(nonsense[i].seq, nonsense[i].pos,
	    nonsense[i].token, 1);
	uint8_t *slot = ring_reserve_spsc(&x->pipe->first);

	memcpy(slot, &hdr, sizeof(hdr));
	memcpy(slot + sizeof(hdr), &row, sizeof(row));
	ring_commit_spsc(&x->pipe->first);
}

int
stress_ring_batches(struct stress *x, struct err *reterr)
{
	struct work once;
	unsigned i;
	int rc;

	if ((rc = stress_begin(x, &once, reterr)) < 0)
		return rc;
	for (i = 0; i < NITEMS(nonsense); i++) {
		if ((rc = engine_cut(x->eng, 0, 0, reterr)) < 0)
			return rc;
		put_nonsense(x, i);
		if ((rc = contained(x, 0, nonsense[i].words, &once,
		    reterr)) < 0)
			return rc;
	}
	stress_note(x, "%u of them refused by name, and then the same logits",
	    i);
	return stress_stop(x, reterr);
}

/* What would be the answer to a control message, but for one thing. */
static const struct {
	const char *what;
	uint32_t magic, kind, nrows, first, epoch, flags;
	uint64_t number;
} wrong[] = {
	{ "no header", 1, 0, 0, 0, 0, 0, 0 },
	{ "another kind", 0, BATCH_FORGET ^ BATCH_DATA, 0, 0, 0, 0, 0 },
	{ "more rows than fit", 0, 0, 1u << 20, 0, 0, 0, 0 },
	{ "rows that nobody asked for", 0, 0, 1, 0, 0, 0, 0 },
	{ "not the next rows", 0, 0, 0, 1, 0, 0, 0 },
	{ "another epoch", 0, 0, 0, 0, 1, 0, 0 },
	{ "neither rows nor an end", 0, 0, 0, 0, 0, BATCH_LAST, 0 },
	{ "another batch", 0, 0, 0, 0, 0, 0, 1 },
};

static void
put_result(struct stress *x, unsigned i)
{
	const struct pipeline *p = x->pipe;
	const struct batch_hdr hdr = {
		.magic = BATCH_MAGIC ^ wrong[i].magic,
		.kind = BATCH_FORGET ^ wrong[i].kind,
		.number = p->oldest ^ wrong[i].number,
		.nrows = wrong[i].nrows, .first = wrong[i].first,
		.epoch = p->epoch ^ wrong[i].epoch,
		.flags = BATCH_LAST ^ wrong[i].flags,
	};
	uint32_t head = atomic_load(&p->last.sh->head);

	memcpy(p->last.slots + (size_t)(head & p->last.mask) *
	    p->last.slot_bytes, &hdr, sizeof(hdr));
	atomic_store(&p->last.sh->head, head + 1);
}

int
stress_ring_results(struct stress *x, struct err *reterr)
{
	struct work once;
	unsigned i, n;
	int rc;

	if ((rc = stress_begin(x, &once, reterr)) < 0)
		return rc;
	n = x->ss->n;
	for (i = 0; i < NITEMS(wrong); i++) {
		kill(x->ss->s[n - 1].child.pid, SIGSTOP);
		put_result(x, i);
		if ((rc = refused(x, n - 1, "makes no sense", &once,
		    reterr)) < 0)
			return rc;
	}
	stress_note(x, "%u of them refused, like \"%.200s\", and then the "
	    "same logits", i, x->ss->retry.last_loss);
	return stress_stop(x, reterr);
}
