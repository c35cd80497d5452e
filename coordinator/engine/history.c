/* coordinator/engine/history.c - turns of a conversation, their tokens and KV. */
#include "history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"

/* --- tokens --- */

static int
reserve_ids(struct history *h, uint64_t want, struct err *reterr)
{
	uint64_t cap = MAX(h->cap, 256u);
	uint32_t *grown;

	if (want <= h->cap)
		return 0;
	while (cap < want)
		cap *= 2;
	if (cap > UINT32_MAX / 2 || (grown = reallocarray(h->ids, cap,
	    sizeof(*grown))) == NULL)
		return err_nomem(reterr, "the %llu tokens of a conversation",
		    (unsigned long long)want);
	h->ids = grown;
	h->cap = (uint32_t)cap;
	return 0;
}

/* Make the stages forget what they hold from position `keep` on, or all where a
 * window layer has overwritten what the tokens before it need. */
static int
keep_held(struct history *h, uint32_t keep, struct err *reterr)
{
	int rc;

	if (keep >= h->held)
		return 0;
	if (!engine_can_cut(h->eng, h->high, keep))
		keep = 0;
	if ((rc = engine_cut(h->eng, 0, keep, reterr)) < 0)
		return rc;
	h->held = keep;
	if (keep == 0)
		h->high = 0;
	return 0;
}

/* Replace the ndel tokens from `at` on by ids[nins].  The positions of turns are
 * the caller's. */
static int
splice(struct history *h, uint32_t at, uint32_t ndel, const uint32_t *ids,
    uint32_t nins, struct err *reterr)
{
	const uint32_t rest = h->len - at - ndel, len = at + nins + rest;
	uint32_t same = at;
	int rc;

	if ((rc = reserve_ids(h, len, reterr)) < 0)
		return rc;
	while (same < len && same < h->len && h->ids[same] ==
	    (same < at + nins ? ids[same - at] : h->ids[same - nins + ndel]))
		same++;
	/* The last token is fed again: its logits are gone. */
	if ((rc = keep_held(h, MIN(same, MAX(len, 1) - 1), reterr)) < 0)
		return rc;
	memmove(h->ids + at + nins, h->ids + at + ndel,
	    rest * sizeof(*h->ids));
	if (nins > 0)
		memcpy(h->ids + at, ids, nins * sizeof(*ids));
	h->len = len;
	return 0;
}

int
history_add(struct history *h, const uint32_t *ids, uint32_t n,
    struct err *reterr)
{
	int rc = reserve_ids(h, (uint64_t)h->len + n, reterr);

	if (rc < 0)
		return rc;
	if (n > 0)
		memcpy(h->ids + h->len, ids, n * sizeof(*ids));
	h->len += n;
	return 0;
}

int
history_feed(struct history *h, engine_row_fn *fn, engine_tick_fn *tick,
    void *arg, struct err *reterr)
{
	uint32_t sent = 0;
	int rc = engine_feed_ticking(h->eng, 0, h->held, h->ids + h->held,
	    h->len - h->held, fn, tick, arg, &sent, reterr);

	h->high = MAX(h->high, h->held + sent);
	if (rc < 0)
		return rc;
	h->held += sent;
	return h->held < h->len;
}

/* --- turns --- */

int
history_open(struct history *h, struct engine *eng, struct err *reterr)
{
	*h = (struct history){ .eng = eng };
	return reserve_ids(h, eng->plan.ctx_tok + (uint64_t)1,
	    reterr);
}

static void
free_turn(struct history_turn *t)
{
	free(t->user);
	free(t->answer);
}

void
history_close(struct history *h)
{
	unsigned i;

	for (i = 0; i < h->nturns; i++)
		free_turn(&h->turn[i]);
	free(h->turn);
	free(h->ids);
	*h = (struct history){ 0 };
}

static int
reserve_turn(struct history *h)
{
	unsigned cap = MAX(16, h->turn_cap * 2);
	struct history_turn *grown;

	if (h->nturns < h->turn_cap)
		return 0;
	if ((grown = reallocarray(h->turn, cap, sizeof(*grown))) == NULL)
		return -ENOMEM;
	h->turn = grown;
	h->turn_cap = cap;
	return 0;
}

int
history_add_turn(struct history *h, const char *user, size_t nuser,
    const uint32_t *ids, uint32_t n, struct err *reterr)
{
	struct history_turn t = { .nuser = nuser, .at = h->len,
	    .answer_cap = 1 };
	int rc;

	if (reserve_turn(h) < 0 || (t.answer = calloc(1, 1)) == NULL ||
	    (t.user = malloc(nuser + 1)) == NULL) {
		free_turn(&t);
		return err_nomem(reterr, "a message of %zu bytes", nuser);
	}
	memcpy(t.user, user, nuser);
	t.user[nuser] = '\0';
	if ((rc = history_add(h, ids, n, reterr)) < 0) {
		free_turn(&t);
		return rc;
	}
	t.answer_at = h->len;
	h->turn[h->nturns++] = t;
	return 0;
}

int
history_add_text(struct history *h, const char *bytes, size_t nbytes,
    struct err *reterr)
{
	struct history_turn *t = &h->turn[h->nturns - 1];
	size_t want = t->nanswer + nbytes + 1;
	char *grown;

	if (want > t->answer_cap) {
		want = MAX(want, 2 * t->answer_cap);
		if ((grown = realloc(t->answer, want)) == NULL)
			return err_nomem(reterr, "an answer of %zu bytes",
			    want);
		t->answer = grown;
		t->answer_cap = want;
	}
	memcpy(t->answer + t->nanswer, bytes, nbytes);
	t->nanswer += nbytes;
	t->answer[t->nanswer] = '\0';
	return 0;
}

int
history_replace_end(struct history *h, uint32_t ndel, const uint32_t *ids,
    uint32_t nins, struct err *reterr)
{
	return splice(h, h->len - ndel, ndel, ids, nins, reterr);
}

int
history_trim_answer(struct history *h, uint32_t n, struct err *reterr)
{
	return splice(h, h->turn[h->nturns - 1].answer_at, n, NULL, 0, reterr);
}

int
history_rewrite(struct history *h, const uint32_t *ids, uint32_t n,
    struct err *reterr)
{
	struct history_turn *t = &h->turn[h->nturns - 1];
	int rc = splice(h, t->at, h->len - t->at, ids, n, reterr);

	if (rc < 0)
		return rc;
	t->answer_at = h->len;
	t->is_rewritten = 1;
	return 0;
}

int
history_undo(struct history *h, struct err *reterr)
{
	struct history_turn *t = &h->turn[h->nturns - 1];
	int rc = splice(h, t->at, h->len - t->at, NULL, 0, reterr);

	if (rc < 0)
		return rc;
	free_turn(t);
	h->nturns--;
	return 0;
}

int
history_drop(struct history *h, unsigned n, const uint32_t *ids,
    uint32_t nids, struct err *reterr)
{
	const uint32_t ndel = n < h->nturns ? h->turn[n].answer_at : h->len;
	unsigned i;
	int rc;

	if ((rc = splice(h, 0, ndel, ids, nids, reterr)) < 0)
		return rc;
	for (i = 0; i < n; i++)
		free_turn(&h->turn[i]);
	h->nturns -= n;
	if (h->nturns > 0)
		memmove(h->turn, h->turn + n, h->nturns * sizeof(*h->turn));
	for (i = 0; i < h->nturns; i++) {
		h->turn[i].at = i > 0 ? h->turn[i].at - ndel + nids : 0;
		h->turn[i].answer_at = h->turn[i].answer_at - ndel + nids;
	}
	return 0;
}
