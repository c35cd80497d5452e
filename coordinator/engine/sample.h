/* coordinator/engine/sample.h - one token from a row of logits.
 * Owns: random states, histories and scratch.  Pure otherwise: same seed, same
 * logits, same history, same token, on every machine with the same libm. */
#ifndef COORDINATOR_ENGINE_SAMPLE_H
#define COORDINATOR_ENGINE_SAMPLE_H

#include "config/conf.h"
#include "config/err.h"

struct rng {			/* PCG32 (O'Neill 2014), explicit state */
	uint64_t state, inc;
};

void rng_seed(struct rng *r, uint64_t seed, uint64_t stream);
uint32_t rng_next(struct rng *r);

/* The seed of prompt index, the run's own for the first.  What is mixed in
 * (murmur3's finalizer over the index) has 53 bits, which every reader of JSON
 * keeps: a prompt can be run again alone with the seed its line tells. */
uint64_t sampler_seed(uint64_t seed, uint64_t index);

/* Draws for nseqs sequences, each with a random state and a history of its
 * own: what one gets does not depend on the others. */
struct sampler;

/* Steps, in this order, as llama.cpp's users know them: repetition penalty
 * over the last repeat_last_n tokens, top-k, top-p, min-p, temperature, draw.
 * temp 0 = greedy: the largest logit after the penalty, ties to the lower id.
 * All sequences begin with the seed of sc. */
int sampler_open(const struct sampling_conf *sc, uint32_t n_vocab,
    uint32_t nseqs, struct sampler **ret, struct err *reterr);
void sampler_close(struct sampler *s);

/* A new text: no history, the random state of this seed. */
void sampler_begin(struct sampler *s, uint32_t seq, uint64_t seed);

/* Tell it of a token (prompt or generated) for the penalty's window. */
void sampler_accept(struct sampler *s, uint32_t seq, uint32_t id);

/* logits (n_vocab) are not changed.  NaN or +inf anywhere, or -inf everywhere,
 * is -EDOM and draws nothing: never a guess.  No allocation. */
int sampler_pick(struct sampler *s, uint32_t seq, const float *logits,
    uint32_t *ret_id);

/* FNV-1a 64 over the bytes of a row of logits: the hash a run prints. */
uint64_t logits_hash(const float *logits, uint32_t n_vocab);

#endif
