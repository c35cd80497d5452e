/* coordinator/engine/turns.c - turns of a history in the model's chat format. */
#include "turns.h"

#include <stdlib.h>

#include "impl.h"

struct chat_pair
turns_texts(const struct history_turn *t)
{
	return (struct chat_pair){ t->user, t->answer, t->nuser, t->nanswer };
}

/* --- encoding --- */

int
turns_encode(const struct engine *eng, unsigned turn, const char *system,
    const char *text, size_t nbytes, uint32_t **ret_ids, size_t *ret_n,
    struct err *reterr)
{
	return format_encode_turn(eng->vocab, turn, system, text, nbytes,
	    eng->conf->special, ret_ids, ret_n, reterr);
}

static int
encode_earlier(const struct engine *eng, unsigned turn, const char *system,
    const struct chat_pair *p, uint32_t **ret_ids, size_t *ret_n,
    struct err *reterr)
{
	return format_encode_earlier(eng->vocab, turn, system, p,
	    eng->conf->special, ret_ids, ret_n, reterr);
}

/* Encode an answer that the model did not just generate, apart from what is around
 * it, as generated tokens are.  Where the detokenizer drops the space that a
 * vocabulary puts in front of a text, encoding puts it back. */
static int
encode_answer(const struct engine *eng, const char *text, size_t nbytes,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	static const char final[] = "<|channel|>final<|message|>";
	const struct chat_template *ct = tokenizer_chat_template(eng->vocab);
	const struct text_part parts[] = {
		{ final, ct->channels ? sizeof(final) - 1 : 0, 1 },
		{ text, nbytes, eng->conf->special }
	};

	return tokenizer_encode_parts(eng->vocab, parts, NITEMS(parts),
	    chat_template_is_plain(ct) ? ENCODE_MORE : 0, ret_ids, ret_n,
	    reterr);
}

/* Will a new turn rewrite it?  gpt-oss' tokens tell more than its text. */
static int
must_rewrite(const struct engine *eng, const struct chat_pair *p)
{
	const struct chat_template *ct = tokenizer_chat_template(eng->vocab);

	return !ct->channels && !format_keeps(ct, p);
}

int
turns_append(const struct engine *eng, struct history *h, const char *system,
    const struct chat_pair *p, int is_last, struct err *reterr)
{
	const int rewrite = !is_last && must_rewrite(eng, p);
	uint32_t *ids;
	size_t n;
	int rc;

	rc = rewrite ? encode_earlier(eng, h->nturns, system, p, &ids, &n,
	    reterr) : turns_encode(eng, h->nturns, system, p->user, p->nuser,
	    &ids, &n, reterr);
	if (rc < 0)
		return rc;
	rc = history_add_turn(h, p->user, p->nuser, ids, (uint32_t)n, reterr);
	free(ids);
	if (rc < 0)
		return rc;
	h->turn[h->nturns - 1].is_rewritten = rewrite;
	if ((rc = history_add_text(h, p->answer, p->nanswer, reterr)) < 0 ||
	    rewrite || p->nanswer == 0)
		return rc;
	if ((rc = encode_answer(eng, p->answer, p->nanswer, &ids, &n,
	    reterr)) < 0)
		return rc;
	rc = history_add(h, ids, (uint32_t)n, reterr);
	free(ids);
	return rc;
}

/* --- the last answer --- */

int
turns_trim_text(const struct engine *eng, struct history *h, size_t nbytes,
    struct err *reterr)
{
	const uint32_t at = h->turn[h->nturns - 1].answer_at;
	struct text_part rest = { "", 0, 0 };
	char *piece = malloc(tokenizer_max_bytes(eng->vocab));
	uint32_t end = h->len, *ids = NULL;
	size_t len, n = 0;
	int rc = 0;

	if (piece == NULL)
		return err_nomem(reterr, "the text of a token");
	while (nbytes > 0 && end > at) {
		len = tokenizer_decode(eng->vocab, h->ids[--end],
		    eng->conf->special, piece);
		rest = (struct text_part){ piece, len - MIN(len, nbytes), 0 };
		nbytes -= MIN(len, nbytes);
	}
	if (rest.nbytes > 0)
		rc = tokenizer_encode_parts(eng->vocab, &rest, 1, ENCODE_MORE,
		    &ids, &n, reterr);
	if (rc == 0)
		rc = history_replace_end(h, h->len - end, ids, (uint32_t)n,
		    reterr);
	free(ids);
	free(piece);
	return rc;
}

int
turns_plan_settling(const struct engine *eng, const struct history *h,
    const char *system, uint32_t thoughts, struct settling *ret,
    struct err *reterr)
{
	const struct history_turn *t;
	struct chat_pair p;
	int rc;

	*ret = (struct settling){ .thoughts = thoughts,
	    .len = h->len - thoughts };
	if (h->nturns == 0)
		return 0;
	t = &h->turn[h->nturns - 1];
	p = turns_texts(t);
	if (t->is_rewritten || !must_rewrite(eng, &p))
		return 0;
	ret->is_rewritten = 1;
	if ((rc = encode_earlier(eng, h->nturns - 1, system, &p, &ret->ids,
	    &ret->nids, reterr)) < 0)
		return rc;
	ret->len = t->at + (uint64_t)ret->nids;
	return 0;
}

int
turns_settle(struct history *h, const struct settling *s, struct err *reterr)
{
	if (s->is_rewritten)
		return history_rewrite(h, s->ids, (uint32_t)s->nids, reterr);
	return s->thoughts > 0 ? history_trim_answer(h, s->thoughts, reterr) :
	    0;
}

/* --- the oldest turns --- */

int
turns_plan_shift(const struct engine *eng, const struct history *h,
    const char *system, unsigned n, struct shift *ret, struct err *reterr)
{
	struct chat_pair p;

	*ret = (struct shift){ .nturns = n };
	if (n >= h->nturns)		/* nothing remains */
		return 0;
	p = turns_texts(&h->turn[n]);
	return h->turn[n].is_rewritten ? encode_earlier(eng, 0, system, &p,
	    &ret->ids, &ret->nids, reterr) : turns_encode(eng, 0, system,
	    p.user, p.nuser, &ret->ids, &ret->nids, reterr);
}

int
turns_find_shift(const struct engine *eng, const struct history *h,
    const char *system, unsigned most, uint32_t max_tok, struct shift *ret,
    struct err *reterr)
{
	uint64_t left;
	unsigned n;
	int rc;

	*ret = (struct shift){ 0 };
	for (n = 1; n <= most; n++) {
		/* The text after turn n's answer is too long already.  Encoding
		 * each turn, the system message in front of it, takes long
		 * where a loaded file has very many. */
		if (n < most && h->len - h->turn[n].answer_at > max_tok)
			continue;
		free(ret->ids);
		if ((rc = turns_plan_shift(eng, h, system, n, ret,
		    reterr)) < 0)
			return rc;
		left = n < h->nturns ? ret->nids + (uint64_t)(h->len -
		    h->turn[n].answer_at) : 0;
		if (left <= max_tok || n == h->nturns)
			return 1;
	}
	return 0;
}

int
turns_shift(struct history *h, struct shift *s, struct err *reterr)
{
	int rc = history_drop(h, s->nturns, s->ids, (uint32_t)s->nids, reterr);

	free(s->ids);
	s->ids = NULL;
	return rc;
}
