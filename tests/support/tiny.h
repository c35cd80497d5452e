/* tests/support/tiny.h - small models of any shape, valid and invalid ones.
 * Owns: the file, in the test's folder.  Called by tests that need a model. */
#ifndef TESTS_SUPPORT_TINY_H
#define TESTS_SUPPORT_TINY_H

#include "layers/model.h"
#include "gguf_writer.h"

struct tiny {
	uint32_t n_layer, n_embd, n_ff, n_vocab, n_head, n_head_kv;
	uint32_t head_dim, v_dim;	/* 0 = key left out: n_embd / n_head */
	uint32_t n_expert, n_used, n_ff_expert;	/* 0 = a dense model */
	uint32_t window, full_every;	/* local layers; 0 = none */
	uint32_t type;			/* of all matrices but the router */
	int tied, bias, rope_freqs;
	int split_experts;		/* one tensor for each expert */
	uint64_t seed;			/* of the weights; 0 = all zero */
	/* Deviations from a valid model. */
	const char *omit;		/* key or tensor to leave out */
	const char *odd;		/* tensor with these differences: */
	uint32_t odd_k, odd_n;		/* 0 = the valid size */
	uint32_t odd_type;		/* or TINY_SAME_TYPE */
	void (*keys)(struct gguf_writer *w);	/* adds keys; or NULL */
};

#define TINY_SAME_TYPE	UINT32_MAX

#define TINY { .n_layer = 4, .n_embd = 64, .n_ff = 128, .n_vocab = 320, \
	.n_head = 4, .n_head_kv = 2, .type = QUANT_Q8_0, \
	.odd_type = TINY_SAME_TYPE }

/* A random shape.  whole_blocks: the head sizes are multiples of 32. */
struct tiny tiny_random(int whole_blocks);

/* Write and open a model.  Returns the result of gguf_open() or model_open();
 * on failure *ret_g is NULL. */
int tiny_open(const struct tiny *t, struct gguf **ret_g,
    struct model **ret_m, struct err *reterr);
void tiny_close(struct gguf *g, struct model *m);

#endif
