/* kernels/ascend/work.h - memory that products on an Ascend processor need beside
 * their weights.
 * Owns: sizes.  Called by worker/ascend, which allocates it, and by the plan, which
 * counts it.
 *
 * A: the rows of a batch as 16-bit floats.  C: results of blocks of its rows as
 * 32-bit floats, for each segment of K: the largest block, and room for others that
 * are computed while the host reads it.  Both are in memory of the host; a card has
 * them once more in its own. */
#ifndef KERNELS_ASCEND_WORK_H
#define KERNELS_ASCEND_WORK_H

#include "config/base.h"

enum {
	ASCEND_ROWS = 64,		/* the most of one product */
	ASCEND_FEW_ROWS = 16,		/* of a product with many columns */
	ASCEND_SEGMENT = 4096,		/* of K, where the chip needs it */
	ASCEND_UNIT = 16,		/* K is a multiple of it */
	ASCEND_GROUP = 32,		/* integers with one scale */
	ASCEND_MOST_N = 65520,		/* columns of one call: below 65536,
					 * a multiple of 16 */
	ASCEND_MOST_PERCENT = 800,
	ASCEND_GRAPHS = 512,		/* the most of a session, */
	ASCEND_GRAPH_TASKS = 16,	/* with so many tasks; a larger one counts
					 * as several */
	ASCEND_GRAPH_CLASSES = 3,	/* of rows, with a graph each */
	ASCEND_BLOCK_BYTES = 384	/* most that a pool adds to a block */
};

/* The most memory of a session's graphs. */
#define ASCEND_GRAPHS_BYTES	(64 * MIB)

/* How a matrix lies on the device.  Integers are followed by their groups' scales. */
enum ascend_format {
	ASCEND_HALF,			/* 16-bit floats: any type */
	ASCEND_INT8,			/* any type in blocks */
	ASCEND_INT4,			/* Q4_0 */
	ASCEND_OFFSETS,			/* Q4_1, Q4_K: 4 bits, with groups'
					 * offsets after the scales */
	ASCEND_FORMATS
};

/* A chip may compute more than products: norms before them; SwiGLU of products
 * whose rows are such a norm's; the sums of products and the residual; a norm
 * with the sum before it. */
enum { ASCEND_FN_NORMS = 1, ASCEND_FN_SWIGLU = 2, ASCEND_FN_ADDS = 4,
	ASCEND_FN_ADD_NORMS = 8, ASCEND_FN_ALL = 15 };

struct ascend_chip {
	uint32_t has_memory;		/* of its own: a card */
	uint32_t cut_k;			/* 1 = K in segments */
	uint64_t granule_bytes;		/* that a pool grows by; 0 = any */
	uint16_t has_slots;		/* its pool wastes an eighth */
	uint16_t groups;		/* formats beyond ASCEND_HALF: 0 to
					 * 3 */
	uint32_t workspace_percent;	/* of a call's W as 16-bit floats: what
					 * it needs beyond workspace_bytes */
	uint64_t workspace_bytes;
	uint32_t fns;			/* ASCEND_FN_... */
	uint64_t graph_bytes;		/* of the device, for a captured graph of
					 * up to ASCEND_GRAPH_TASKS tasks; 0 =
					 * there are none */
};

/* Sizes of the products of a program: the largest ones, and a sum. */
struct ascend_sizes {
	uint64_t k;			/* of A */
	uint64_t c_bytes;		/* of the largest block of C */
	uint64_t workspace_bytes;
	uint64_t norm_cols, nnorms;	/* norms on the device: their longest
					 * row, their number */
	uint64_t gate_cols, ngates;	/* the same of SwiGLU */
	uint64_t sum_cols, nsums;	/* and of residual sums */
	uint64_t nweights, weight_bytes;	/* matrices on the device */
	uint64_t graph_tasks;		/* of few rows of all these: their calls
					 * and copies, at most */
	uint64_t twin_bytes;		/* those of them that the host needs in
					 * its own format, too: an embedding
					 * that is the head */
};

/* Is a matrix of n rows and k columns one that the device multiplies? */
int ascend_takes(uint32_t n, uint32_t k);

/* The format of such a matrix.  groups: struct ascend_chip's. */
enum ascend_format ascend_format(uint32_t groups, uint32_t type, uint32_t k);

/* Such a matrix's bytes on the device; where scales and offsets of its groups begin;
 * its bytes
 * with the scales that the host keeps (one for each row, first). */
uint64_t ascend_weight_bytes(enum ascend_format f, uint32_t n, uint32_t k);
uint64_t ascend_scales_at(enum ascend_format f, uint32_t n, uint32_t k);
uint64_t ascend_offsets_at(enum ascend_format f, uint32_t n, uint32_t k);
uint64_t ascend_kept_bytes(uint32_t groups, uint32_t type, uint32_t n,
    uint32_t k);

/* Bytes of n weights, a multiple of 2. */
uint64_t ascend_format_bytes(enum ascend_format f, uint64_t n);

/* Workspace for the calls of such a product. */
uint64_t ascend_workspace(const struct ascend_chip *chip, uint32_t n,
    uint32_t k);

/* Segments of K, and the most rows of a product with it. */
uint32_t ascend_segments(const struct ascend_chip *chip, uint32_t k);
uint32_t ascend_rows(const struct ascend_chip *chip, uint32_t n, uint32_t k);

/* Take a product into account. */
void ascend_sizes_add(struct ascend_sizes *s, const struct ascend_chip *chip,
    uint32_t type, uint32_t n, uint32_t k, int has_twin);

/* Take a norm with rows of cols into account, if the chip computes it. */
void ascend_norms_add(struct ascend_sizes *s, const struct ascend_chip *chip,
    uint32_t cols);

uint64_t ascend_a_bytes(const struct ascend_sizes *s, uint32_t batch_rows);
uint64_t ascend_c_bytes(const struct ascend_sizes *s);

/* The same for SwiGLU with rows of cols. */
void ascend_gates_add(struct ascend_sizes *s, const struct ascend_chip *chip,
    uint32_t cols);

/* One of SwiGLU's three buffers: a block of rows. */
uint64_t ascend_gate_bytes(const struct ascend_sizes *s);

/* Take a sum of a product and the residual with rows of cols into account. */
void ascend_sums_add(struct ascend_sizes *s, const struct ascend_chip *chip,
    uint32_t cols);

/* The residual, of which the device has two copies; a block of a product's
 * rows, with two; the host's block: the residual and the scales of rows. */
uint64_t ascend_residual_bytes(const struct ascend_sizes *s,
    uint32_t batch_rows);
uint64_t ascend_sum_bytes(const struct ascend_sizes *s);
uint64_t ascend_sum_host_bytes(const struct ascend_sizes *s,
    uint32_t batch_rows);

/* X and Y of norms each; the scales of their rows; the second input and the sum
 * of a norm that adds, each. */
uint64_t ascend_x_bytes(const struct ascend_sizes *s, uint32_t batch_rows);
uint64_t ascend_rstd_bytes(uint32_t batch_rows);
uint64_t ascend_zeros_bytes(const struct ascend_sizes *s);

/* As how many graphs one with this many tasks counts. */
uint32_t ascend_graph_units(uint64_t ntasks);

/* An upper bound: as how many graphs all those of one class of rows count. */
uint64_t ascend_class_units(const struct ascend_sizes *s);

/* The most captured graphs that a session has, and their memory. */
uint32_t ascend_graphs(const struct ascend_chip *chip,
    const struct ascend_sizes *s);
uint64_t ascend_graphs_bytes(const struct ascend_chip *chip,
    const struct ascend_sizes *s);

/* The most that the device's pool may hold for these: weights, the workspace, on a
 * card also A and C, and its slack. */
uint64_t ascend_pool_bytes(const struct ascend_chip *chip,
    const struct ascend_sizes *s, uint32_t batch_rows);

/* The same, and what else the device counts as its own: graphs; A and C where it has
 * the host's memory. */
uint64_t ascend_device_bytes(const struct ascend_chip *chip,
    const struct ascend_sizes *s, uint32_t batch_rows);

/* The host's memory for the scales of A's rows, and a row of W on its way. */
uint64_t ascend_small_bytes(const struct ascend_sizes *s,
    uint32_t batch_rows);

/* The plan's bound: memory beside the weights, of the pool, of graphs and of the host,
 * and of twins. */
uint64_t ascend_work_bytes(const struct ascend_chip *chip,
    const struct ascend_sizes *s, uint32_t batch_rows);

#endif
