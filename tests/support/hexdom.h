/* tests/support/hexdom.h - runs single operations on a Hexagon domain under the
 * emulator.
 * Owns: the domain and a block of memory shared with it.  Called by
 * check/hexagon*.c. */
#ifndef TESTS_SUPPORT_HEXDOM_H
#define TESTS_SUPPORT_HEXDOM_H

#include "kernels/hexagon/queue.h"
#include "worker/hexagon/domain.h"

struct hexdom {
	struct domain *d;
	struct domain_mem mem;
	uint64_t used;		/* of mem, in bytes */
	struct hx_model m;	/* model message of the next run */
	/* Rows of the next run; NULL = all 0. */
	const uint32_t *seq, *pos, *select;
};

/* Returns 0, or 77 after a message if the emulator or the domain program is
 * missing.  Any other failure ends the program. */
int hexdom_open(struct hexdom *w);
void hexdom_close(struct hexdom *w);

/* Allocate a tensor of rows x cols in the shared memory, filled with 0xa5 and
 * followed by a guard of 128 bytes.  row_bytes 0 = floats, padded to 64 bytes.
 * hexdom_reset() frees all tensors. */
struct hx_ref hexdom_alloc(struct hexdom *w, uint32_t rows,
    uint64_t row_bytes, uint32_t cols);
void hexdom_reset(struct hexdom *w);
void *hexdom_row(const struct hexdom *w, const struct hx_ref *x,
    uint32_t row);

/* Run one op on nrows rows.  Returns the status of the domain. */
uint32_t hexdom_run(struct hexdom *w, const struct hx_op *op,
    uint32_t nrows, uint32_t nselect);

extern const struct hx_ref hexdom_none;	/* an absent operand */

/* The parts of check/hexagon. */
void check_hexagon_mats(struct hexdom *w);
void check_hexagon_rows(struct hexdom *w);
void check_hexagon_attn(struct hexdom *w);
void check_hexagon_moe(struct hexdom *w);

#endif
