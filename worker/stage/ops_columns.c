/* worker/stage/ops_columns.c - divides a group's columns, and many rows, among
 * the threads, and runs the group's ops over them in strips. */
#include "ops_kinds.h"

#include <stdatomic.h>

/* Floats of output that consecutive ops leave in the cache for each other: two
 * outputs (gate and up) take a quarter of an L2 of 1 MiB. */
enum { STRIP_FLOATS = 32 * 1024 };

uint32_t
ops_strip(ptrdiff_t nops, uint32_t rows, uint32_t unit)
{
	return nops == 1 ? UINT32_MAX :
	    MAX(STRIP_FLOATS / MAX(rows, 1) / unit, 1) * unit;
}

/* Run all of these ops, which belong to one group, over one strip of columns
 * after another. */
static void
run_strips(const struct ops_ctx *c, const struct op *op, const struct op *end,
    struct part part)
{
	uint32_t unit = c->p->group[op->group].unit, hi = part.c1;
	uint32_t strip = ops_strip(end - op, part.r1 - part.r0, unit);
	const struct op *o;

	if (op->experts) {
		experts_run(c, op, end, part.c0, part.c1);
		return;
	}
	for (; part.c0 < hi; part.c0 = part.c1) {
		part.c1 = MIN(hi - part.c0, strip) + part.c0;
		for (o = op; o < end; o++)
			ops_part(c, o, &part);
	}
}

/* A thread's share of a group is a list of cells: one unit of columns by one
 * block of BLOCK_ROWS rows, unit after unit.  It is taken in pieces: three
 * quarters of the cells, then half of the rest each time; the last of at most
 * PIECES has all that is left.  Starting a piece costs a core about a
 * microsecond of reading, so a rest below a thread's part of LEAST_BYTES joins
 * the piece before it.  Time grows with the rows, but up to FEW_ROWS cost like
 * one.  Many rows are cut into blocks, although each block unpacks the weights
 * again, because otherwise all threads wait for the last unit of one. */
enum { PIECES = 8, LEAST_BYTES = 1024 * 1024, FEW_ROWS = 4, BLOCK_ROWS = 32 };

struct cells {
	uint32_t unit;		/* columns of one */
	uint32_t rows, blocks;	/* blocks of rows */
	uint32_t least;		/* cells of a piece */
};

static struct cells
cells_of(const struct ops_ctx *c, const struct op *op)
{
	const struct share_group *g = &c->p->group[op->group];
	struct cells a = { .unit = g->unit, .rows = ops_rows(c, op) };
	/* token_bytes counts all experts of a row already. */
	uint32_t rows = op->experts ? c->b->nrows : a.rows;
	uint64_t ncells;

	a.blocks = op->experts ? 1 : MAX(a.rows / BLOCK_ROWS, 1);
	ncells = (uint64_t)DIV_UP(g->cols, g->unit) * a.blocks;
	a.least = (uint32_t)(LEAST_BYTES * ncells / MAX(g->token_bytes *
	    MAX(rows / FEW_ROWS, 1) * c->par->nthreads, 1));
	return a;
}

/* Cells left of n after i pieces. */
static uint32_t
cells_left(uint32_t n, uint32_t i, uint32_t least)
{
	uint32_t left = i < PIECES ? n >> (i + 1) : 0;

	return i == 0 ? n : left < least ? 0 : left;
}

/* Take the next piece of thread t's cells of group g; 0 = none left. */
static int
take_piece(const struct ops_ctx *c, uint32_t g, unsigned t,
    const struct cells *a, uint32_t *ret_lo, uint32_t *ret_hi)
{
	const unsigned nthreads = c->par->nthreads;
	const uint32_t *cut = c->cut + (size_t)g * (nthreads + 1) + t;
	_Atomic uint32_t *begun = ops_begun(c, t, g);
	uint32_t n = DIV_UP(cut[1] - cut[0], a->unit) * a->blocks, i;

	do {
		if (cells_left(n, atomic_load_explicit(begun,
		    memory_order_relaxed), a->least) == 0)
			return 0;
		i = atomic_fetch_add_explicit(begun, 1, memory_order_relaxed);
		*ret_lo = n - cells_left(n, i, a->least);
		*ret_hi = n - cells_left(n, i + 1, a->least);
	} while (*ret_lo >= *ret_hi);
	return 1;
}

/* The first row of a block. */
static uint32_t
block_row(const struct cells *a, uint32_t block)
{
	return (uint32_t)((uint64_t)a->rows * block / a->blocks);
}

/* Run cells [lo, hi) of columns [c0, c1): units with all rows, or some blocks
 * of one unit. */
static void
run_cells(const struct ops_ctx *c, const struct op *op, const struct op *end,
    const struct cells *a, uint32_t c0, uint32_t c1, uint32_t lo, uint32_t hi)
{
	uint32_t block, nblocks, nunits, at;

	for (; lo < hi; lo += nunits * nblocks) {
		block = lo % a->blocks;
		nunits = block == 0 ? MAX((hi - lo) / a->blocks, 1) : 1;
		nblocks = MIN(a->blocks - block, hi - lo);
		at = c0 + lo / a->blocks * a->unit;
		run_strips(c, op, end, (struct part){
			.r0 = block_row(a, block),
			.r1 = block_row(a, block + nblocks),
			.c0 = at, .c1 = MIN(at + nunits * a->unit, c1),
		});
	}
}

/* Run this thread's pieces, then steal pieces of the other threads: the speed
 * of memory differs between cores and over time, and other processes may use a
 * core. */
static void
run_pieces(const struct ops_ctx *c, const struct op *op, const struct op *end,
    unsigned thread)
{
	const unsigned n = c->par->nthreads;
	const uint32_t *cut = c->cut + (size_t)op->group * (n + 1);
	const struct cells a = cells_of(c, op);
	uint32_t lo, hi;
	unsigned i, t;

	for (i = 0; i < n; i++) {
		t = (thread + i) % n;
		while (take_piece(c, op->group, t, &a, &lo, &hi))
			run_cells(c, op, end, &a, cut[t], cut[t + 1], lo, hi);
	}
}

void
ops_by_columns(const struct ops_ctx *c, const struct op *op,
    const struct op *end, unsigned thread)
{
	const struct share_group *g = &c->p->group[op->group];
	const unsigned n = c->par->nthreads;
	struct part all = { .r1 = ops_rows(c, op), .c1 = g->cols };

	if (n > 1 && (uint32_t)(end - op) == g->nops) {
		run_pieces(c, op, end, thread);
		return;
	}
	if (n > 1) {
		/* More ops of the group follow without a barrier: they rely on
		 * this fixed division of the columns. */
		const uint32_t *cut = c->cut + (size_t)op->group * (n + 1);

		all.c0 = cut[thread];
		all.c1 = cut[thread + 1];
	}
	run_strips(c, op, end, all);
}
