/* tests/support/tiny.h - small models of any shape, true ones and false ones.
 * Owns: the file, in the test's folder.  Called by the tests of what is made
 * from a model. */
#ifndef TESTS_SUPPORT_TINY_H
#define TESTS_SUPPORT_TINY_H

#include "layers/model.h"
#include "gguf_writer.h"

struct tiny {
	uint32_t n_layer, n_embd, n_ff, n_vocab, n_head, n_head_kv;
	uint32_t head_dim, v_dim;	/* as written; 0 = n_embd / n_head */
	uint32_t n_expert, n_used, n_ff_expert;	/* 0 = a dense model */
	uint32_t window, full_every;	/* of local layers; 0 = none */
	uint32_t type;			/* of every matrix but the router */
	int tied, bias, rope_freqs;
	int each;			/* a tensor for each expert */
	uint64_t seed;			/* of the weights; 0 = all are zero */
	/* What is wrong with it. */
	const char *omit;		/* key or tensor that is left out */
	const char *odd;		/* tensor that differs as follows: */
	uint32_t odd_k, odd_n;		/* 0 = as it should be */
	uint32_t odd_type;		/* or TINY_SAME_TYPE */
	void (*keys)(struct gguf_writer *w);	/* further keys; NULL = none */
};

#define TINY_SAME_TYPE	UINT32_MAX

#define TINY { .n_layer = 4, .n_embd = 64, .n_ff = 128, .n_vocab = 320, \
	.n_head = 4, .n_head_kv = 2, .type = QUANT_Q8_0, \
	.odd_type = TINY_SAME_TYPE }

/* A model of random shape: heads of a multiple of 32 when whole_blocks. */
struct tiny tiny_random(int whole_blocks);

/* Write it, parse it; what model_open() says.  *ret_g is NULL when there is
 * nothing to close. */
int tiny_open(const struct tiny *t, struct gguf **ret_g,
    struct model **ret_m, struct err *reterr);
void tiny_close(struct gguf *g, struct model *m);

#endif
