/* tests/support/chain.h - a small model over stages in one process, driven by hand.
 * Owns: stages, rings, and what came out of the last.  Called by test_stage. */
#ifndef TESTS_SUPPORT_CHAIN_H
#define TESTS_SUPPORT_CHAIN_H

#include "worker/stage/pool.h"
#include "worker/stage/stage.h"
#include "tiny.h"

enum { CHAIN_STAGES = 4, CHAIN_SLOTS = 128, CHAIN_CTX = 80, CHAIN_SEQS = 3 };

struct chain_conf {
	struct tiny tiny;
	const char *path;		/* a file instead; NULL = none */
	unsigned nstages;
	uint32_t cut[CHAIN_STAGES + 1];		/* units; the last may be 0 */
	/* Of each stage; NULL = as the one before. */
	const struct device_ops *dev[CHAIN_STAGES];
	unsigned threads;
	struct par *par;		/* instead of a pool of them */
	uint32_t batch_rows, head_rows;
	enum kv_type fmt;
	uint64_t cap_bytes;
	uint32_t strict;
	const char *port;		/* of devices that have several */
};

/* Every part a model can have; keys and values fit every KV type. */
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
	struct ring first, last;		/* our ends */
	uint32_t epoch;
	uint64_t number;			/* of the next batch */
	void (*watch)(int on);	/* told when stages begin and end; or NULL */

	/* What came out since chain_open(), by chain_run(). */
	struct batch_hdr seen[256];
	unsigned nseen;
	/* [CHAIN_SEQS][CHAIN_CTX][n_vocab]; NaN = not seen. */
	float *logits;
};

/* Open stages and load them; on failure chain_close() is still to be called. */
int chain_open(struct chain *ch, const struct chain_conf *lc,
    struct err *reterr);
void chain_close(struct chain *ch);

/* Into the first ring: rows of one batch; the tests fill in rows. */
void chain_send_rows(struct chain *ch, const struct batch_row *rows,
    uint32_t n);
/* A header as given, but for magic, number and epoch. */
void chain_send_control(struct chain *ch, enum batch_kind kind, uint32_t seq,
    uint32_t pos);
/* Any slot. */
void chain_send_slot(struct chain *ch, const struct batch_hdr *hdr,
    const struct batch_row *rows, uint32_t n);

/* Tokens [pos, pos + n) of a sequence in batches of chunk rows, every row with
 * logits. */
void chain_send_text(struct chain *ch, uint32_t seq, uint32_t pos,
    const uint32_t *token, uint32_t n, uint32_t chunk);

/* A stop, so that chain_run() does not wait for more. */
void chain_send_stop(struct chain *ch);

/* Run every stage in turn until it stops or has nothing left, and take what
 * comes out.  The first error of a stage, or 0. */
int chain_run(struct chain *ch, struct err *reterr);

/* Both of these must succeed: open, and a stop and a run. */
void chain_start(struct chain *ch, const struct chain_conf *lc);
void chain_finish(struct chain *ch);

/* The logits of a position; NULL = none came out. */
const float *chain_logits(const struct chain *ch, uint32_t seq, uint32_t pos);

/* Are the logits of these positions the same, bit for bit? */
int chain_same_logits(const struct chain *a, uint32_t seq_a,
    const struct chain *b, uint32_t seq_b, uint32_t pos, uint32_t n);

#endif
