/* coordinator/engine/sample.h - samples one token from a row of logits.
 * Owns: random states, histories and scratch.  Called by decoder.c; seeds,
 * random numbers and the hash of logits also by prompts.c, run, eval and stress.
 * Pure otherwise: the same seed, history and logits give the same token on
 * every machine with the same libm. */
#ifndef COORDINATOR_ENGINE_SAMPLE_H
#define COORDINATOR_ENGINE_SAMPLE_H

#include "config/conf.h"
#include "config/err.h"

struct rng {			/* PCG32 (O'Neill 2014), explicit state */
	uint64_t state, inc;
};

void rng_seed(struct rng *r, uint64_t seed, uint64_t stream);
uint32_t rng_next(struct rng *r);

/* The seed of prompt `index` of a run; the first prompt has the run's own.  The
 * index is mixed in by murmur3's finalizer, cut to the 53 bits that every JSON
 * reader keeps, so that a prompt can be run again alone with the seed that its
 * line shows. */
uint64_t sampler_seed(uint64_t seed, uint64_t index);

/* Samples for nseqs sequences.  Each has its own random state and history, so
 * its tokens do not depend on the others. */
struct sampler;

/* Steps, in llama.cpp's order: repetition penalty over the last repeat_last_n
 * tokens, top-k, top-p, min-p, temperature, draw.  temp 0 = greedy: the largest
 * logit after the penalty, ties to the lower id.  All sequences begin with the
 * seed of sc. */
int sampler_open(const struct sampling_conf *sc, uint32_t n_vocab,
    uint32_t nseqs, struct sampler **ret, struct err *reterr);
void sampler_close(struct sampler *s);

/* Begin a text: no history, the random state of this seed. */
void sampler_begin(struct sampler *s, uint32_t seq, uint64_t seed);

/* Empty the penalty's window; the random state stays. */
void sampler_forget(struct sampler *s, uint32_t seq);

/* Add a token of the prompt or the answer to the penalty's window. */
void sampler_accept(struct sampler *s, uint32_t seq, uint32_t id);

/* Sample from logits (n_vocab).  -EDOM, and nothing is drawn, when one is NaN or
 * +inf or all are -inf.  No allocation. */
int sampler_pick(struct sampler *s, uint32_t seq, const float *logits,
    uint32_t *ret_id);

/* FNV-1a 64 over the bytes of a row of logits: the hash that a run prints. */
uint64_t logits_hash(const float *logits, uint32_t n_vocab);

#endif
