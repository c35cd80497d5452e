/* tests/support/hexdom.h - one Hexagon domain under the emulator, and single
 * operations on a piece of memory that it shares with the test.
 * Called by check_hexagon*.c. */
#ifndef TESTS_SUPPORT_HEXDOM_H
#define TESTS_SUPPORT_HEXDOM_H

#include "kernels/hexagon/queue.h"
#include "worker/hexagon/domain.h"

struct hexdom {
	struct domain *d;
	struct domain_mem mem;
	uint64_t used;
	struct hx_model m;	/* what the next run is told */
	const uint32_t *seq, *pos, *select;
};

/* 77 where there is no emulator or no domain program (said), 0, or exits. */
int hexdom_open(struct hexdom *w);
void hexdom_close(struct hexdom *w);

/* A piece of the shared memory: rows x cols of elem_bytes, rows of row_bytes
 * (0 = as many as the columns take).  hexdom_reset() forgets all. */
struct hx_ref hexdom_alloc(struct hexdom *w, uint32_t rows,
    uint64_t row_bytes, uint32_t cols);
void hexdom_reset(struct hexdom *w);
void *hexdom_row(const struct hexdom *w, const struct hx_ref *x,
    uint32_t row);

/* Run one op on nrows rows; the status. */
uint32_t hexdom_run(struct hexdom *w, const struct hx_op *op,
    uint32_t nrows, uint32_t nselect);

extern const struct hx_ref hexdom_none;

/* The parts of check_hexagon. */
void check_hexagon_mats(struct hexdom *w);
void check_hexagon_rows(struct hexdom *w);
void check_hexagon_attn(struct hexdom *w);
void check_hexagon_moe(struct hexdom *w);

#endif
