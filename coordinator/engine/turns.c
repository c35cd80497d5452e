/* coordinator/engine/turns.c - a conversation as the model's template writes
 * it. */
#include "turns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/print/output.h"
#include "impl.h"

/* --- encoding --- */

/* The keys by which templates know thoughts.  NULL: no memory. */
static json_t *
thoughts_keys(const struct engine *eng, const struct history_text *t)
{
	json_t *keys = json_object();
	json_t *text = output_json_text(t->bytes, t->n);

	if (json_object_set_new(keys, form_has_channels(eng->form) ?
	    "thinking" : "reasoning_content", text) == 0)
		return keys;
	json_decref(keys);
	return NULL;
}

static void
put_text(struct form_message *m, enum form_role role, const char *text,
    size_t nbytes)
{
	*m = (struct form_message){ .role = role,
	    .text = text != NULL ? text : "", .nbytes = nbytes };
}

/* Fill m; returns how many.  *ret_rc: -ENOMEM. */
static size_t
put_messages(const struct turns *t, struct form_message *m, int *ret_rc)
{
	const struct history_turn *turn;
	size_t n = 0;
	unsigned i;

	*ret_rc = 0;
	if (t->system != NULL)
		put_text(&m[n++], FORM_SYSTEM, t->system, strlen(t->system));
	for (i = t->from; i < t->to; i++) {
		turn = &t->turn[i];
		put_text(&m[n++], FORM_USER, turn->user.bytes, turn->user.n);
		put_text(&m[n++], FORM_ASSISTANT, turn->answer.bytes,
		    turn->answer.n);
		if (turn->thoughts.n > 0 && (m[n - 1].more = thoughts_keys(
		    t->eng, &turn->thoughts)) == NULL)
			*ret_rc = -ENOMEM;
	}
	if (t->user != NULL)
		put_text(&m[n++], FORM_USER, t->user, t->nuser);
	if (t->user != NULL && t->nbegun > 0)
		put_text(&m[n++], FORM_ASSISTANT, t->begun, t->nbegun);
	return n;
}

int
turns_encode(const struct turns *t, uint32_t **ret_ids, size_t *ret_n,
    struct err *reterr)
{
	const size_t most = 3 + 2 * (size_t)(t->to - t->from);
	struct form_message *m = calloc(most, sizeof(*m));
	struct form_request q = { .message = m, .is_closed = t->user == NULL,
	    .continues = t->nbegun > 0, .now = t->now };
	size_t i;
	int rc;

	*ret_ids = NULL;
	*ret_n = 0;
	if (m == NULL)
		return err_nomem(reterr, "%zu messages", most);
	q.n = put_messages(t, m, &rc);
	if (rc < 0)
		err_nomem(reterr, "the thoughts of %zu messages", q.n);
	else if (t->from < t->to || t->user != NULL)
		rc = form_encode(t->eng->form, &q, ret_ids, ret_n, reterr);
	if (render_is_refusal(rc))
		reterr->kind = ERR_USAGE;
	for (i = 0; i < q.n; i++)
		json_decref((json_t *)(uintptr_t)m[i].more);
	free(m);
	return rc;
}

/* --- the oldest turns --- */

static uint64_t
turn_bytes(const struct history_turn *t)
{
	return (uint64_t)t->user.n + t->answer.n;	/* thoughts may leave */
}

/* The fewest turns to leave out, at least 1, so that the bytes of the rest may
 * fit: a loaded file may have very many. */
static unsigned
skip_bytes(const struct turns *t, unsigned most)
{
	uint64_t all = 0;
	unsigned n = 1, i;

	for (i = t->from + 1; i < t->to; i++)
		all += turn_bytes(&t->turn[i]);
	for (; n < most && all > engine_text_bytes(t->eng); n++)
		all -= turn_bytes(&t->turn[t->from + n]);
	return n;
}

/* Encode it without n turns. */
static int
encode_rest(const struct turns *t, unsigned n, uint32_t **ids, size_t *nids,
    struct err *reterr)
{
	struct turns rest = *t;

	rest.from += n;
	free(*ids);
	return turns_encode(&rest, ids, nids, reterr);
}

/* Each turn that is left out makes it shorter: search by halves. */
int
turns_fit(struct turns *t, unsigned most, uint32_t max_tok,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	unsigned lo = skip_bytes(t, most), hi = most, mid, tried = 0;
	int rc = 0;

	*ret_ids = NULL;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		tried = mid;
		rc = encode_rest(t, mid, ret_ids, ret_n, reterr);
		/* Beyond the template's limits it is too long as well. */
		if (rc < 0 && rc != -E2BIG)
			return rc;
		if (rc == 0 && *ret_n <= max_tok)
			hi = mid;
		else
			lo = mid + 1;
	}
	if (tried != lo && (rc = encode_rest(t, lo, ret_ids, ret_n,
	    reterr)) < 0)
		return rc;
	t->from += lo;
	return *ret_n <= max_tok;
}
