/* worker/stage/selftest_model.h - the small models of the self-test: one layer
 * of any family, with weights of any types, made up on the spot.
 * Owns: nothing; a model is a value.  Called by selftest*.c. */
#ifndef WORKER_STAGE_SELFTEST_MODEL_H
#define WORKER_STAGE_SELFTEST_MODEL_H

#include "kernels/kernels.h"
#include "layers/arch.h"
#include "layers/extent.h"
#include "shm/wire.h"

enum {
	SELFTEST_EXTENTS = 32,
	SELFTEST_ROWS = 3,		/* rows of the larger batch */
	/* The positions of both batches: of one row, and of several. */
	SELFTEST_POSITIONS = 1 + SELFTEST_ROWS,
	SELFTEST_KEPT = SELFTEST_POSITIONS - 1,	/* rows that want logits */
	SELFTEST_VOCAB = 32
};

/* The program that is tested. */
struct selftest_case {
	const char *arch;		/* "llama" */
	uint32_t type;			/* of all matrices but a router's, where
					 * their rows are whole blocks;
					 * QUANT_NTYPES = several types */
	enum kv_type kv;
};

struct selftest_model {
	struct hparams hp;
	struct wire_model wm;
	struct extent ext[SELFTEST_EXTENTS];	/* [wm.nextents] */
};

void selftest_model(const struct selftest_case *tc,
    struct selftest_model *ret);

/* Bytes of the largest extent. */
uint64_t selftest_extent_bytes(const struct selftest_model *m);

/* Fill dst with the weights of extent i as a file has them, the same each
 * time. */
void selftest_weights(const struct selftest_model *m, uint32_t i, void *dst);

#endif
