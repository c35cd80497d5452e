/* coordinator/reader/text.c - sends a text to the reader, takes the ids. */
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"

/* CPU time for a text: a base, and a part for each byte.  Merging a text without
 * any pattern's split takes some 0.3 us per byte here. */
#define TEXT_NS		UINT64_C(5000000000)
#define BYTE_NS		UINT64_C(5000)

static uint64_t
text_bytes(const struct text_part *part, size_t nparts)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < nparts; i++)
		sum += part[i].nbytes;
	return sum;
}

int
reader_send_bytes(struct reader *r, const struct text_part *part, size_t nparts,
    struct err *reterr)
{
	uint8_t *buf = r->p.msg->buf;
	size_t used = 0, at, each, i;
	int rc = 0;

	for (i = 0; i < nparts; i++)
		for (at = 0; at < part[i].nbytes; at += each) {
			each = MIN(part[i].nbytes - at, CHAN_MAX_BYTES - used);
			memcpy(buf + used, part[i].text + at, each);
			if ((used += each) < CHAN_MAX_BYTES)
				continue;
			if ((rc = proc_send(&r->p, READ_BYTES, buf, used, NULL,
			    0, reterr)) < 0)
				return rc;
			used = 0;
		}
	return used > 0 ? proc_send(&r->p, READ_BYTES, buf, used, NULL, 0,
	    reterr) : rc;
}

static int
send_text(struct reader *r, const struct text_part *part, size_t nparts,
    int flags, struct err *reterr)
{
	struct read_text t;	/* large: only nparts are written */
	size_t i;
	int rc;

	t.number = ++r->p.number;
	t.nparts = (uint32_t)nparts;
	t.flags = flags;
	for (i = 0; i < nparts; i++) {
		t.part[i].nbytes = part[i].nbytes;
		t.part[i].special = part[i].special != 0;
	}
	proc_begin(&r->p, TEXT_NS + BYTE_NS *
	    text_bytes(part, nparts));
	rc = proc_send(&r->p, READ_TEXT, &t, read_text_bytes(t.nparts),
	    NULL, 0, reterr);
	return rc < 0 ? rc : reader_send_bytes(r, part, nparts, reterr);
}

/* BOS; three for the bytes of the space mark that a space becomes, if they have a
 * token each; the same for the mark that is put in front of the text and behind
 * each special token. */
uint64_t
reader_most_ids(uint64_t nbytes)
{
	return 4 * nbytes + 4;
}

/* Append the ids of the message to *ids, which has *n of at most `most`. */
static int
take_ids(struct reader *r, uint32_t **ids, size_t *n, uint64_t most,
    struct err *reterr)
{
	const struct chan_msg *m = r->p.msg;
	size_t more = m->nbytes / sizeof(**ids);
	uint32_t *grown;

	if (more == 0 || m->nbytes % sizeof(**ids) != 0)
		return proc_lied(&r->p, reterr, "a list of ids of %u bytes",
		    m->nbytes);
	if (more > most - *n)
		return proc_lied(&r->p, reterr, "%zu ids of a text that "
		    "has at most %" PRIu64, *n + more, most);
	if ((grown = reallocarray(*ids, *n + more, sizeof(**ids))) == NULL) {
		proc_lied(&r->p, NULL, "ids without room for them");
		return err_nomem(reterr, "%zu token ids", *n + more);
	}
	memcpy(grown + *n, m->buf, m->nbytes);
	*ids = grown;
	*n += more;
	return 0;
}

int
reader_recv_ids(struct reader *r, uint32_t **ids, size_t *n, uint64_t most,
    struct losses *ret_lost, struct err *reterr)
{
	struct read_encoded done;
	int rc;

	for (;;) {
		if ((rc = proc_recv(&r->p, READ_IDS, READ_ENCODED, 0,
		    reterr)) < 0)
			return rc;
		if (r->p.msg->type == READ_ENCODED)
			break;
		if ((rc = take_ids(r, ids, n, most, reterr)) < 0)
			return rc;
	}
	if (r->p.msg->nbytes != sizeof(done))
		return proc_lied(&r->p, reterr, "the end of a text, %u "
		    "bytes", r->p.msg->nbytes);
	memcpy(&done, r->p.msg->buf, sizeof(done));
	if (done.number != r->p.number)
		return proc_lied(&r->p, reterr, "an answer to text %" PRIu64
		    " in place of %" PRIu64, done.number, r->p.number);
	if (done.nids != *n)
		return proc_lied(&r->p, reterr, "%zu ids, and says %"
		    PRIu64, *n, done.nids);
	*ret_lost = done.lost;
	return 0;
}

int
reader_check_ids(struct reader *r, const uint32_t *ids, size_t n,
    struct err *reterr)
{
	const uint32_t ntokens = tokenizer_size(r->tokenizer);
	size_t i;

	for (i = 0; i < n; i++)
		if (ids[i] >= ntokens)
			return proc_lied(&r->p, reterr, "token id %" PRIu32
			    " of a vocabulary of %" PRIu32, ids[i], ntokens);
	return 0;
}

static int
check_counts(struct reader *r, const struct text_part *text, size_t ntexts,
    const uint32_t *counts, size_t n, struct err *reterr)
{
	size_t i;

	if (n != ntexts)
		return proc_lied(&r->p, reterr, "the lengths of %zu texts in "
		    "place of %zu", n, ntexts);
	for (i = 0; i < n; i++)
		if (counts[i] != UINT32_MAX &&
		    counts[i] > reader_most_ids(text[i].nbytes))
			return proc_lied(&r->p, reterr, "a length of %" PRIu32
			    " ids of a text that has at most %" PRIu64,
			    counts[i], reader_most_ids(text[i].nbytes));
	return 0;
}

/* The text alone has failed, whatever the reader says: no code or kind of its
 * ends a conversation, or passes for a signal. */
static int
fail_text(const struct reader_proc *p, int rc, struct err *reterr)
{
	if (!p->was_refused)
		return rc;
	reterr->kind = ERR_RUN;
	return -ECOMM;
}

static int
encode_once(struct reader *r, const struct text_part *part, size_t nparts,
    int flags, uint32_t **ret_ids, size_t *ret_n, struct losses *ret_lost,
    struct err *reterr)
{
	const uint64_t most = flags & ENCODE_COUNT ? nparts :
	    reader_most_ids(text_bytes(part, nparts));
	uint32_t *ids = malloc(sizeof(*ids));	/* an empty text has ids, too */
	size_t n = 0;
	int rc;

	if (ids == NULL)
		return err_nomem(reterr, "token ids");
	if ((rc = reader_revive(r, reterr)) < 0 ||
	    (rc = send_text(r, part, nparts, flags, reterr)) < 0 ||
	    (rc = reader_recv_ids(r, &ids, &n, most, ret_lost, reterr)) < 0 ||
	    (rc = flags & ENCODE_COUNT ?
	    check_counts(r, part, nparts, ids, n, reterr) :
	    reader_check_ids(r, ids, n, reterr)) < 0) {
		free(ids);
		return fail_text(&r->p, rc, reterr);
	}
	*ret_ids = ids;
	*ret_n = n;
	return 0;
}

int
reader_encode(void *arg, const struct text_part *part, size_t nparts,
    int flags, uint32_t **ret_ids, size_t *ret_n, struct losses *ret_lost,
    struct err *reterr)
{
	struct reader *r = arg;
	int rc;

	if (nparts < 1 || nparts > READ_MAX_PARTS ||
	    text_bytes(part, nparts) > READ_MAX_TEXT)
		rc = err_set(reterr, ERR_RUN, -E2BIG, "a text of %" PRIu64
		    " bytes in %zu parts: the most are %" PRIu64 " bytes "
		    "and %d parts", text_bytes(part, nparts), nparts,
		    READ_MAX_TEXT, READ_MAX_PARTS);
	else if (r->p.poll == NULL || (rc = r->p.poll(reterr)) == 0)
		/* Short requests end before proc.c looks for signals. */
		rc = encode_once(r, part, nparts, flags, ret_ids, ret_n,
		    ret_lost, reterr);
	if (rc != -ECOMM || !r->p.was_killed || r->conf->recover == 0)
		return rc;
	log_warnx("%s; another one is started", reterr->msg);
	return encode_once(r, part, nparts, flags, ret_ids, ret_n, ret_lost,
	    reterr);
}
