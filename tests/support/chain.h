/* tests/support/chain.h - a small model over stages in one process, driven by hand.
 * Owns: stages, rings, and what came out of the last.  Called by test_stage. */
#ifndef TESTS_SUPPORT_CHAIN_H
#define TESTS_SUPPORT_CHAIN_H

#include "worker/stage/pool.h"
#include "worker/stage/stage.h"
#include "tiny.h"

enum { LINE_STAGES = 4, LINE_SLOTS = 128, LINE_CTX = 80, LINE_SEQS = 3 };

struct line_conf {
	struct tiny tiny;
	const char *path;		/* a file instead; NULL = none */
	unsigned nstages;
	uint32_t cut[LINE_STAGES + 1];		/* units; the last may be 0 */
	/* Of each stage; NULL = as the one before. */
	const struct device_ops *dev[LINE_STAGES];
	unsigned threads;
	struct par *par;		/* instead of a pool of them */
	uint32_t batch_rows, head_rows;
	enum kv_type fmt;
	uint64_t cap_bytes;
	uint32_t strict;
	const char *port;		/* of devices that have several */
};

/* Every part a model can have; keys and values fit every KV type. */
#define LINE_TINY { .n_layer = 4, .n_embd = 64, .n_ff = 128, .n_vocab = 320, \
	.n_head = 4, .n_head_kv = 2, .head_dim = 32, .v_dim = 32, \
	.type = QUANT_Q8_0, .bias = 1, .rope_freqs = 1, .seed = 1, \
	.odd_type = TINY_SAME_TYPE }

/* One CPU stage with the whole model. */
#define LINE_CONF { .tiny = LINE_TINY, .nstages = 1, .dev = { &device_cpu }, \
	.threads = 1, .batch_rows = 16, .head_rows = 4, \
	.fmt = KV_F16, .cap_bytes = GIB }

struct line {
	struct line_conf conf;
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
	} part[LINE_STAGES];
	struct region map[LINE_STAGES + 1];
	struct ring first, last;		/* our ends */
	uint32_t epoch;
	uint64_t number;			/* of the next batch */
	void (*watch)(int on);	/* told when stages begin and end; or NULL */

	/* What came out since line_open(), by line_run(). */
	struct batch_hdr seen[256];
	unsigned nseen;
	float *logits;		/* [LINE_SEQS][LINE_CTX][n_vocab], NaN = none */
};

/* Open stages and load them; on failure line_close() is still to be called. */
int line_open(struct line *l, const struct line_conf *lc,
    struct err *reterr);
void line_close(struct line *l);

/* Into the first ring: rows of one batch; the tests fill in rows. */
void line_rows(struct line *l, const struct batch_row *rows, uint32_t n);
/* A header as given, but for magic, number and epoch. */
void line_control(struct line *l, enum batch_kind kind, uint32_t seq,
    uint32_t pos);
/* Any slot. */
void line_raw(struct line *l, const struct batch_hdr *hdr,
    const struct batch_row *rows, uint32_t n);

/* Tokens [pos, pos + n) of a sequence in batches of chunk rows, every row with
 * logits. */
void line_text(struct line *l, uint32_t seq, uint32_t pos,
    const uint32_t *token, uint32_t n, uint32_t chunk);

/* A stop, so that line_run() does not wait for more. */
void line_stop(struct line *l);

/* Run every stage in turn until it stops or has nothing left, and take what
 * comes out.  The first error of a stage, or 0. */
int line_run(struct line *l, struct err *reterr);

/* Both of these must succeed: open, and a stop and a run. */
void line_begin(struct line *l, const struct line_conf *lc);
void line_finish(struct line *l);

/* The logits of a position; NULL = none came out. */
const float *line_logits(const struct line *l, uint32_t seq, uint32_t pos);

/* Are the logits of these positions the same, bit for bit? */
int line_same(const struct line *a, uint32_t seq_a, const struct line *b,
    uint32_t seq_b, uint32_t pos, uint32_t n);

#endif
