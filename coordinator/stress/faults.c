/* coordinator/stress/faults.c - cases with wrong data: a disk that fails during
 * the load, and a peer that writes invalid data into a ring. */
#include "stress.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "shm/ring.h"

/* --- the disk --- */

/* Run the work undisturbed, as the reference, and close the pipeline. */
static int
run_reference(struct stress *x, struct work *w, struct err *reterr)
{
	int rc = stress_start_work(x, w, reterr);

	if (rc == 0)
		rc = stress_stop(x, reterr);
	if (rc == 0)
		stress_close(x);
	return rc;
}

/* Load with a drill in session i, or with DRILL_SHORT in all from i on. */
static int
load_with_drill(struct stress *x, unsigned i, enum drill_kind kind, uint64_t n,
    struct err *reterr)
{
	int rc;

	if ((rc = stress_plan(x, reterr)) < 0 ||
	    (rc = stress_spawn(x, reterr)) < 0)
		return rc;
	for (; rc == 0 && i < x->ss->n; i++)
		if ((rc = stress_send_drill(x, i, kind, n, reterr)) == 0 &&
		    kind != DRILL_SHORT)
			break;
	return rc < 0 ? rc : stress_load(x, NULL, NULL, reterr);
}

/* Short reads of any odd size lose no data.  At least a page each, or the load
 * would take forever. */
int
stress_short_reads(struct stress *x, struct err *reterr)
{
	uint64_t most = 4096 + stress_random(x, 65536);
	struct work once, again;
	int rc;

	if ((rc = run_reference(x, &once, reterr)) < 0 ||
	    (rc = load_with_drill(x, 0, DRILL_SHORT, most, reterr)) < 0)
		return rc;
	again = once;
	if ((rc = stress_run_work(x, &again, reterr)) < 0 ||
	    (rc = stress_stop(x, reterr)) < 0)
		return rc;
	stress_compare(x, &once, &again, "after short reads");
	stress_note(x, "no read of %u workers brought more than %" PRIu64
	    " bytes; the same logits", x->ss->n, most);
	return 0;
}

/* The disk fails in each session in turn.  The message names session, tensor
 * and cause, and the next load works. */
static int
test_bad_disk(struct stress *x, enum drill_kind kind, int error,
    const char *words, struct err *reterr)
{
	struct work once, again;
	unsigned i = 0, n;
	int rc;

	if ((rc = run_reference(x, &once, reterr)) < 0)
		return rc;
	do {
		rc = load_with_drill(x, i, kind, 0, reterr);
		if (rc == -EINTR || x->ss == NULL)
			return rc;
		n = x->ss->n;
		stress_check(x, rc == error && strstr(reterr->msg, words) !=
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
	if ((rc = stress_run_work(x, &again, reterr)) < 0)
		return rc;
	stress_compare(x, &once, &again, "afterwards");
	stress_note(x, "the same in each of %u sessions; afterwards the same "
	    "logits", n);
	return stress_stop(x, reterr);
}

int
stress_disk_error(struct stress *x, struct err *reterr)
{
	return test_bad_disk(x, DRILL_EIO, -EIO, "Input/output error", reterr);
}

int
stress_file_ends(struct stress *x, struct err *reterr)
{
	return test_bad_disk(x, DRILL_END, -ENODATA, "file ends at", reterr);
}

/* --- rings --- */

/* Check that the message reports the loss of worker i, with these words. */
static void
check_loss(struct stress *x, unsigned i, const char *words, const char *msg)
{
	stress_check(x, strstr(msg, words) != NULL && strstr(msg,
	    x->ss->s[i].name) != NULL, "session %s, %s: \"%.200s\"",
	    x->ss->s[i].name, words, msg);
}

/* Worker i must refuse the invalid data and exit with these words.  Its
 * replacement gets new rings, and the work has the same logits. */
static int
check_worker_refuses(struct stress *x, unsigned i, const char *words,
    const struct work *want, struct err *reterr)
{
	struct work again = *want;
	int rc = stress_wait_failure(x, reterr);

	if (rc != -ECHILD)
		return rc;
	check_loss(x, i, words, reterr->msg);
	if (i == 0 && x->detail[0] == '\0')
		stress_note(x, "like \"%.250s\"", reterr->msg);
	if ((rc = pipeline_recover(x->pipe, reterr)) < 0 ||
	    (rc = stress_repeat_work(x, &again, reterr)) < 0)
		return rc;
	stress_compare(x, want, &again, words);
	return 0;
}

/* Set a ring's counter to an impossible value: more slots filled, or more slots
 * emptied (reader), than the ring has. */
static void
corrupt_counter(struct stress *x, unsigned i, int reader)
{
	struct ring_shared *sh = x->ss->ring[i].base;

	atomic_fetch_add(reader ? &sh->tail : &sh->head, sh->nslots + 1 +
	    stress_random(x, 1000));
	ring_wake(&x->ss->ring[i]);
}

/* A ring between session i and the coordinator is corrupt.  The coordinator
 * must treat that as a loss of the worker as soon as there is work. */
static int
check_coordinator_refuses(struct stress *x, unsigned i, const char *words,
    const struct work *want, struct err *reterr)
{
	unsigned before = x->ss->retry.losses;
	struct work again = *want;
	int rc;

	if ((rc = stress_repeat_work(x, &again, reterr)) < 0)
		return rc;
	stress_check(x, x->ss->retry.losses == before + 1, "session %s, %s: %u "
	    "losses, not 1", x->ss->s[i].name, words,
	    x->ss->retry.losses - before);
	check_loss(x, i, words, x->ss->retry.last_loss);
	stress_compare(x, want, &again, words);
	return 0;
}

/* Corrupt one of the coordinator's rings.  The worker is stopped first, because
 * its next slot would overwrite the counter; it is killed in that state. */
static int
corrupt_own_ring(struct stress *x, unsigned i, unsigned ring, const char *words,
    const struct work *want, struct err *reterr)
{
	kill(x->ss->s[i].proc->child.pid, SIGSTOP);
	corrupt_counter(x, ring, ring == 0);
	return check_coordinator_refuses(x, i, words, want, reterr);
}

int
stress_ring_counters(struct stress *x, struct err *reterr)
{
	struct work once;
	unsigned i, n;
	int rc;

	if ((rc = stress_start_work(x, &once, reterr)) < 0)
		return rc;
	n = x->ss->n;
	for (i = 0; i < n; i++) {
		corrupt_counter(x, i, 0);
		if ((rc = check_worker_refuses(x, i, "ring into this stage is corrupt",
		    &once, reterr)) < 0)
			return rc;
	}
	if ((rc = corrupt_own_ring(x, n - 1, n, "ring of logits is corrupt", &once,
	    reterr)) < 0)
		return rc;
	stress_note(x, "the last ring: \"%.200s\"", x->ss->retry.last_loss);
	if ((rc = corrupt_own_ring(x, 0, 0, "ring of tokens is corrupt", &once,
	    reterr)) < 0)
		return rc;
	stress_note(x, "the same in each of %u rings, at the coordinator's ends "
	    "too; afterwards the same logits", n + 1);
	return stress_stop(x, reterr);
}

/* Batch headers and rows with one invalid field each. */
static const struct {
	const char *words;	/* in the error */
	uint32_t magic, nrows, seq, pos, token;
} bad_batch[] = {
	{ "not a batch header", 1, 0, 0, 0, 0 },
	{ "the ring was made for", 0, 1u << 20, 0, 0, 0 },
	{ "no rows", 0, 0, 0, 0, 0 },
	{ "no sequence ", 0, 1, 1u << 20, 0, 0 },
	{ "row at position", 0, 1, 0, 5, 0 },
	{ "is outside the vocabulary", 0, 1, 0, 0, UINT32_MAX },
};

static void
put_bad_batch(struct stress *x, unsigned i)
{
	struct batch_hdr hdr = { .magic = BATCH_MAGIC ^ bad_batch[i].magic,
	    .kind = BATCH_DATA, .nrows = bad_batch[i].nrows,
	    .epoch = x->ss->epoch };
	struct batch_row row = engine_row(bad_batch[i].seq, bad_batch[i].pos,
	    bad_batch[i].token, 1);
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

	if ((rc = stress_start_work(x, &once, reterr)) < 0)
		return rc;
	for (i = 0; i < NITEMS(bad_batch); i++) {
		if ((rc = engine_cut(x->eng, 0, 0, reterr)) < 0)
			return rc;
		put_bad_batch(x, i);
		if ((rc = check_worker_refuses(x, 0, bad_batch[i].words, &once,
		    reterr)) < 0)
			return rc;
	}
	stress_note(x, "%u kinds refused by name; afterwards the same logits",
	    i);
	return stress_stop(x, reterr);
}

/* Answers to a control message, with one invalid field each. */
static const struct {
	const char *what;
	uint32_t magic, kind, nrows, first, epoch, flags;
	uint64_t number;
} bad_result[] = {
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
put_bad_result(struct stress *x, unsigned i)
{
	const struct pipeline *p = x->pipe;
	const struct batch_hdr hdr = {
		.magic = BATCH_MAGIC ^ bad_result[i].magic,
		.kind = BATCH_FORGET ^ bad_result[i].kind,
		.number = p->oldest ^ bad_result[i].number,
		.nrows = bad_result[i].nrows, .first = bad_result[i].first,
		.epoch = p->epoch ^ bad_result[i].epoch,
		.flags = BATCH_LAST ^ bad_result[i].flags,
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

	if ((rc = stress_start_work(x, &once, reterr)) < 0)
		return rc;
	n = x->ss->n;
	for (i = 0; i < NITEMS(bad_result); i++) {
		kill(x->ss->s[n - 1].proc->child.pid, SIGSTOP);
		put_bad_result(x, i);
		if ((rc = check_coordinator_refuses(x, n - 1, "unexpected result",
		    &once,
		    reterr)) < 0)
			return rc;
	}
	stress_note(x, "%u kinds refused, like \"%.200s\"; afterwards the "
	    "same logits", i, x->ss->retry.last_loss);
	return stress_stop(x, reterr);
}
