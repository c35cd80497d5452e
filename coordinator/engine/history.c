/* coordinator/engine/history.c - turns of a conversation, their tokens and
 * KV. */
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

int
history_render(struct history *h, const uint32_t *ids, uint32_t n,
    uint32_t nanswer, uint32_t *ret_kept, struct err *reterr)
{
	uint32_t same = 0;
	int rc;

	if ((rc = reserve_ids(h, (uint64_t)n + 1, reterr)) < 0)
		return rc;
	while (same < n && same < h->held && h->ids[same] == ids[same])
		same++;
	/* The last token is fed again: its logits are gone. */
	if ((rc = keep_held(h, MIN(same, n - 1), reterr)) < 0)
		return rc;
	memcpy(h->ids, ids, n * sizeof(*ids));
	h->len = n;
	h->answer_at = n - nanswer;
	*ret_kept = h->held;
	return 0;
}

int
history_add(struct history *h, uint32_t id, struct err *reterr)
{
	int rc = reserve_ids(h, (uint64_t)h->len + 1, reterr);

	if (rc == 0)
		h->ids[h->len++] = id;
	return rc;
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

/* --- texts --- */

int
history_text_add(struct history_text *t, const char *bytes, size_t nbytes,
    struct err *reterr)
{
	size_t want = t->n + nbytes + 1;
	char *grown;

	if (want > t->cap) {
		want = MAX(want, 2 * t->cap);
		if ((grown = realloc(t->bytes, want)) == NULL)
			return err_nomem(reterr, "a text of %zu bytes", want);
		t->bytes = grown;
		t->cap = want;
	}
	if (nbytes > 0)
		memcpy(t->bytes + t->n, bytes, nbytes);
	t->n += nbytes;
	t->bytes[t->n] = '\0';
	return 0;
}

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
	free(t->user.bytes);
	free(t->thoughts.bytes);
	free(t->answer.bytes);
}

void
history_close(struct history *h)
{
	history_remove(h, 0, h->nturns);
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
    struct err *reterr)
{
	struct history_turn t = { 0 };
	int rc;

	if (reserve_turn(h) < 0)
		return err_nomem(reterr, "%u turns", h->nturns + 1);
	if ((rc = history_text_add(&t.user, user, nuser, reterr)) < 0)
		return rc;
	h->turn[h->nturns++] = t;
	return 0;
}

void
history_remove(struct history *h, unsigned at, unsigned n)
{
	unsigned i;

	for (i = at; i < at + n; i++)
		free_turn(&h->turn[i]);
	h->nturns -= n;
	if (h->nturns > at)
		memmove(h->turn + at, h->turn + at + n, (h->nturns - at) *
		    sizeof(*h->turn));
}

void
history_take_turns(struct history *h, struct history *from)
{
	history_remove(h, 0, h->nturns);
	free(h->turn);
	h->turn = from->turn;
	h->nturns = from->nturns;
	h->turn_cap = from->turn_cap;
	from->turn = NULL;
	from->nturns = from->turn_cap = 0;
}
