/* coordinator/engine/sample.c - samples one token from a row of logits.
 *
 * Sorting the whole vocabulary is not needed: top-k selects with a heap of k
 * candidates, and a heap of these yields the best ones only as far as top-p and
 * min-p need.  Ties go to the lower id.  Sums are in double, in an
 * order that depends on the logits alone. */
#include "sample.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct cand {
	float logit;
	uint32_t id;
};

/* The state of one sequence. */
struct history {
	struct rng rng;
	uint32_t *recent;	/* [window], a ring */
	uint32_t nrecent, oldest;
};

struct sampler {
	struct sampling_conf conf;
	uint32_t n_vocab, nseqs;
	uint32_t window;	/* tokens that the penalty looks at; 0 = off */
	struct history *seq;	/* [nseqs] */
	uint32_t *recent;	/* (nseqs, window) */
	/* Scratch of one call, shared by all sequences. */
	struct cand *cand;	/* [n_vocab] */
	uint8_t *repeated;	/* [n_vocab]: 1 = in the window */
};

void
rng_seed(struct rng *r, uint64_t seed, uint64_t stream)
{
	r->state = 0;
	r->inc = stream << 1 | 1;
	rng_next(r);
	r->state += seed;
	rng_next(r);
}

uint32_t
rng_next(struct rng *r)
{
	uint64_t old = r->state;
	uint32_t mixed = (uint32_t)((old >> 18 ^ old) >> 27);
	uint32_t rot = (uint32_t)(old >> 59);

	r->state = old * UINT64_C(6364136223846793005) + r->inc;
	return mixed >> rot | mixed << (-rot & 31);
}

/* Uniform in [0, 1), with 53 bits. */
static double
rng_unit(struct rng *r)
{
	uint64_t hi = rng_next(r), lo = rng_next(r);

	return (double)((hi << 32 | lo) >> 11) * 0x1p-53;
}

uint64_t
sampler_seed(uint64_t seed, uint64_t index)
{
	index = (index ^ index >> 33) * UINT64_C(0xff51afd7ed558ccd);
	index = (index ^ index >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return seed ^ (index ^ index >> 33) >> 11;
}

static int
check_conf(const struct sampling_conf *sc, struct err *reterr)
{
	const char *what = NULL;

	if (!(sc->temp >= 0 && isfinite(sc->temp)))
		what = "temperature: not a number of 0 or more";
	else if (!(sc->top_p >= 0 && sc->top_p <= 1))
		what = "top-p: not in 0 to 1";
	else if (!(sc->min_p >= 0 && sc->min_p <= 1))
		what = "min-p: not in 0 to 1";
	else if (!(sc->repeat_penalty > 0 && isfinite(sc->repeat_penalty)))
		what = "repeat penalty: not a number above 0";
	else if (sc->top_k < -1 || sc->repeat_last_n < 0)
		what = "top-k or repeat window: negative";
	return what == NULL ? 0 :
	    err_set(reterr, ERR_USAGE, -EINVAL, "%s", what);
}

int
sampler_open(const struct sampling_conf *sc, uint32_t n_vocab, uint32_t nseqs,
    struct sampler **ret, struct err *reterr)
{
	struct sampler *s;
	uint32_t i;
	int rc;

	assert(n_vocab > 0);
	assert(nseqs > 0);
	if ((rc = check_conf(sc, reterr)) < 0)
		return rc;
	if ((s = calloc(1, sizeof(*s))) == NULL)
		goto nomem;
	s->conf = *sc;
	s->n_vocab = n_vocab;
	s->nseqs = nseqs;
	s->window = sc->repeat_penalty != 1 ? (uint32_t)sc->repeat_last_n : 0;
	s->cand = calloc(n_vocab, sizeof(*s->cand));
	s->repeated = calloc(n_vocab, sizeof(*s->repeated));
	s->seq = calloc(nseqs, sizeof(*s->seq));
	s->recent = calloc((size_t)nseqs * s->window + 1, sizeof(*s->recent));
	if (s->cand == NULL || s->repeated == NULL || s->seq == NULL ||
	    s->recent == NULL)
		goto nomem;
	for (i = 0; i < nseqs; i++) {
		s->seq[i].recent = s->recent + (size_t)i * s->window;
		sampler_begin(s, i, sc->seed);
	}
	*ret = s;
	return 0;
nomem:
	sampler_close(s);
	return err_nomem(reterr, "a sampler of %" PRIu32 " sequences and a "
	    "vocabulary of %" PRIu32 " tokens", nseqs, n_vocab);
}

void
sampler_close(struct sampler *s)
{
	if (s == NULL)
		return;
	free(s->cand);
	free(s->repeated);
	free(s->seq);
	free(s->recent);
	free(s);
}

void
sampler_begin(struct sampler *s, uint32_t seq, uint64_t seed)
{
	assert(seq < s->nseqs);
	rng_seed(&s->seq[seq].rng, seed, 0);
	sampler_forget(s, seq);
}

void
sampler_forget(struct sampler *s, uint32_t seq)
{
	assert(seq < s->nseqs);
	s->seq[seq].nrecent = s->seq[seq].oldest = 0;
}

void
sampler_accept(struct sampler *s, uint32_t seq, uint32_t id)
{
	struct history *h = &s->seq[seq];

	assert(seq < s->nseqs);
	assert(id < s->n_vocab);
	if (s->window == 0)
		return;
	h->recent[h->oldest] = id;
	h->oldest = (h->oldest + 1) % s->window;
	h->nrecent += h->nrecent < s->window;
}

/* Set or clear the flags of the history's tokens.  The ring fills from its
 * start, so the first nrecent entries are valid. */
static void
mark_repeated(struct sampler *s, const struct history *h, uint8_t yes)
{
	uint32_t i;

	for (i = 0; i < h->nrecent; i++)
		s->repeated[h->recent[i]] = yes;
}

/* Make a repeated token less likely, whatever its logit's sign (Keskar et al.
 * 2019, CTRL, with the usual correction), once however often it occurs. */
static float
penalized(const struct sampler *s, float logit, uint32_t id)
{
	float penalty = (float)s->conf.repeat_penalty;

	if (!s->repeated[id])
		return logit;
	return logit > 0 ? logit / penalty : logit * penalty;
}

static int
is_better(const struct cand *a, const struct cand *b)
{
	return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

/* Restore the heap below h[i]; the root is the best or the worst candidate. */
static void
sift_down(struct cand *h, uint32_t n, uint32_t i, int worst)
{
	struct cand c = h[i];
	uint64_t child;

	while ((child = 2 * (uint64_t)i + 1) < n) {
		if (child + 1 < n &&
		    is_better(&h[child + 1], &h[child]) != worst)
			child++;
		if (is_better(&h[child], &c) == worst)
			break;
		h[i] = h[child];
		i = (uint32_t)child;
	}
	h[i] = c;
}

static void
heapify(struct cand *h, uint32_t n, int worst)
{
	uint32_t i;

	for (i = n / 2; i-- > 0; )
		sift_down(h, n, i, worst);
}

/* Put the k best tokens into cand[0..k); all tokens, if k is n_vocab, in the
 * order of their ids.  *ret_best is the best.  The heap's root is the worst one
 * kept so far; most logits do not beat it and cost one comparison. */
static int
select_best(struct sampler *s, const float *logits, uint32_t k,
    struct cand *ret_best)
{
	struct cand *h = s->cand;
	uint32_t i;

	for (i = 0; i < k; i++) {
		h[i] = (struct cand){ penalized(s, logits[i], i), i };
		if (isnan(h[i].logit))
			return -EDOM;
	}
	if (k < s->n_vocab)
		heapify(h, k, 1);
	for (; i < s->n_vocab; i++) {
		float logit = penalized(s, logits[i], i);

		if (logit <= h[0].logit)	/* ties: the lower id */
			continue;
		if (isnan(logit))
			return -EDOM;
		h[0] = (struct cand){ logit, i };
		sift_down(h, k, 0, 1);
	}
	*ret_best = h[0];
	for (i = 1; i < k; i++)
		if (is_better(&h[i], ret_best))
			*ret_best = h[i];
	return isinf(ret_best->logit) ? -EDOM : 0;
}

/* Move the candidates that top-p and min-p keep to the end of cand[0..n), the
 * best last, and return their number, at least one.  Probabilities are at
 * temperature 1. */
static uint32_t
keep_likely(struct sampler *s, uint32_t n, double max)
{
	double top_p = s->conf.top_p, min_p = s->conf.min_p;
	double floor = min_p > 0 ? max + log(min_p) : -INFINITY;
	double total = 0, sum = 0;
	struct cand *h = s->cand;
	uint32_t i;

	for (i = 0; i < n; i++)
		total += exp(h[i].logit - max);
	heapify(h, n, 0);
	for (i = 0; i < n; i++) {
		struct cand best = h[0], *last = &h[n - 1 - i];

		if (i > 0 && best.logit < floor)
			break;
		h[0] = *last;
		sift_down(h, n - 1 - i, 0, 0);
		*last = best;
		sum += exp(best.logit - max);
		if (top_p < 1 && sum >= top_p * total)
			return i + 1;
	}
	return i;
}

/* Draw one of h[0..n), walking from the last to the first. */
static uint32_t
draw(struct rng *r, const struct cand *h, uint32_t n, double max, double temp)
{
	uint32_t i, id = h[n - 1].id;
	double total = 0, left;

	for (i = n; i-- > 0; )
		total += exp((h[i].logit - max) / temp);
	left = rng_unit(r) * total;
	for (i = n; i-- > 0; ) {
		double share = exp((h[i].logit - max) / temp);

		if (share > 0)
			id = h[i].id;	/* the result, if rounding leaves some */
		if (left < share)
			break;
		left -= share;
	}
	return id;
}

int
sampler_pick(struct sampler *s, uint32_t seq, const float *logits,
    uint32_t *ret_id)
{
	const struct sampling_conf *sc = &s->conf;
	struct history *h = &s->seq[seq];
	uint32_t n = s->n_vocab, nkept;
	struct cand best;
	int rc;

	assert(seq < s->nseqs);
	if (sc->temp == 0)
		n = 1;
	else if (sc->top_k > 0)
		n = MIN(n, (uint32_t)sc->top_k);
	mark_repeated(s, h, 1);
	rc = select_best(s, logits, n, &best);
	mark_repeated(s, h, 0);
	if (rc < 0)
		return rc;
	if (sc->temp == 0) {
		*ret_id = best.id;
		return 0;
	}
	nkept = n;
	if (sc->top_p < 1 || sc->min_p > 0)
		nkept = keep_likely(s, n, best.logit);
	*ret_id = draw(&h->rng, s->cand + n - nkept, nkept, best.logit,
	    sc->temp);
	return 0;
}

uint64_t
logits_hash(const float *logits, uint32_t n_vocab)
{
	const uint8_t *p = (const uint8_t *)logits;
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	size_t i;

	for (i = 0; i < (size_t)n_vocab * sizeof(*logits); i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}
