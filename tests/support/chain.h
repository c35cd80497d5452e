/* tests/support/chain.h - a small model over a chain of stages in one process.
 * Owns: the stages, the rings between them, and the output of the last one.
 * Called by the tests of stages, devices and families. */
#ifndef TESTS_SUPPORT_CHAIN_H
#define TESTS_SUPPORT_CHAIN_H

#include "worker/stage/pool.h"
#include "worker/stage/stage.h"
#include "tiny.h"

enum { CHAIN_STAGES = 4, CHAIN_SLOTS = 128, CHAIN_CTX = 80, CHAIN_SEQS = 3 };

struct chain_conf {
	struct tiny tiny;
	const char *path;		/* model file to use instead; or NULL */
	unsigned nstages;
	/* Stage i has units [cut[i], cut[i + 1]); the last may be 0 = all. */
	uint32_t cut[CHAIN_STAGES + 1];
	/* Device of each stage; NULL = as the stage before. */
	const struct device_ops *dev[CHAIN_STAGES];
	unsigned threads;
	struct par *par;		/* used instead of a pool of threads */
	uint32_t batch_rows, head_rows;
	enum kv_type fmt;
	uint64_t cap_bytes;
	uint32_t strict;
	const char *port;		/* for devices with several ports */
};

/* A model with all optional tensors; its heads suit every KV type. */
#define CHAIN_TINY { .n_layer = 4, .n_embd = 64, .n_ff = 128, .n_vocab = 320, \
	.n_head = 4, .n_head_kv = 2, .head_dim = 32, .v_dim = 32, \
	.type = QUANT_Q8_0, .bias = 1, .rope_freqs = 1, .seed = 1, \
	.odd_type = TINY_SAME_TYPE }

/* One CPU stage with the whole model. */
#define CHAIN_CONF { .tiny = CHAIN_TINY, .nstages = 1, .dev = { &device_cpu }, \
	.threads = 1, .batch_rows = 16, .head_rows = 4, \
	.fmt = KV_F16, .cap_bytes = GIB }

struct chain {
	struct chain_conf conf;
	struct gguf *g;
	struct model *m;
	struct part {
		struct kernels k;
		struct extent *ext;
		struct par *par;
		struct mem_ledger ledger;
		struct stage_status status;
		struct stage_conf sc;
		struct stage *s;
	} part[CHAIN_STAGES];
	struct region map[CHAIN_STAGES + 1];
	struct ring first, last;		/* this side of both */
	uint32_t epoch;
	uint64_t number;			/* of the next batch */
	void (*watch)(int on);	/* called around the stages' run; or NULL */

	/* Headers that came out since chain_open(). */
	struct batch_hdr seen[256];
	unsigned nseen;
	/* [CHAIN_SEQS][CHAIN_CTX][n_vocab]; NaN = not seen. */
	float *logits;
};

/* Open and load the stages.  The caller calls chain_close() even on failure. */
int chain_open(struct chain *ch, const struct chain_conf *lc,
    struct err *reterr);
void chain_close(struct chain *ch);

/* Put a batch of n rows into the first ring. */
void chain_send_rows(struct chain *ch, const struct batch_row *rows,
    uint32_t n);
/* Put a control batch into the first ring. */
void chain_send_control(struct chain *ch, enum batch_kind kind, uint32_t seq,
    uint32_t pos);
/* Put any header and rows into the first ring, unchecked. */
void chain_send_slot(struct chain *ch, const struct batch_hdr *hdr,
    const struct batch_row *rows, uint32_t n);

/* Put tokens [pos, pos + n) of a sequence into the first ring, in batches of
 * chunk rows; every row wants logits. */
void chain_send_text(struct chain *ch, uint32_t seq, uint32_t pos,
    const uint32_t *token, uint32_t n, uint32_t chunk);

/* Put a stop into the first ring: chain_run() does not wait for more. */
void chain_send_stop(struct chain *ch);

/* Run the stages one after the other, each until it stops or has no input left,
 * and collect the output.  Returns 0 or the first error of a stage. */
int chain_run(struct chain *ch, struct err *reterr);

/* chain_open(), and a stop with chain_run(); both must succeed. */
void chain_start(struct chain *ch, const struct chain_conf *lc);
void chain_finish(struct chain *ch);

/* The logits of a position; NULL if none came out. */
const float *chain_logits(const struct chain *ch, uint32_t seq, uint32_t pos);

/* Are the logits of positions [pos, pos + n) equal bit for bit? */
int chain_same_logits(const struct chain *a, uint32_t seq_a,
    const struct chain *b, uint32_t seq_b, uint32_t pos, uint32_t n);

#endif
