/* kernels/ascend/work.c - see work.h. */
#include "work.h"

#include "kernels/types/quant.h"

/* A larger block of C would not be worth its memory. */
#define MOST_C_BYTES	(16 * MIB)

/* The most that C has beside its largest block. */
#define AHEAD_C_BYTES	(4 * MIB)

/* The library adds this to a block of the host: alignment, and 32 bytes. */
enum { HOST_BLOCK_BYTES = 256 };

/* Blocks of the pool beside the weights: A, C, the workspace; X, Y, scales of
 * norms, and two of norms that add; three of SwiGLU; five of residual sums. */
enum { WORK_BLOCKS = 17 };

/* Calls of an operator that is no product, for the rows of a graph: 8 rows each. */
enum { FEW_CALLS = ASCEND_FEW_ROWS / 8 };

int
ascend_takes(uint32_t n, uint32_t k)
{
	return n > 0 && k > 0 && k % ASCEND_UNIT == 0;
}

/* Types that become integers of 8 bits: unit/ascend_groups measures the error. */
static int
becomes_integers(uint32_t type)
{
	switch (type) {
	case QUANT_Q8_0:
	/* Without an error. */
	case QUANT_Q4_0:
	case QUANT_Q5_0:
	case QUANT_IQ4_NL:
	case QUANT_MXFP4:
	case QUANT_Q3_K:
	/* The scales of groups are rounded. */
	case QUANT_IQ4_XS:
	/* Rounded. */
	case QUANT_Q4_1:
	case QUANT_Q5_1:
	case QUANT_Q2_K:
	case QUANT_Q4_K:
	case QUANT_Q5_K:
	case QUANT_Q6_K:
		return 1;
	default:
		return 0;
	}
}

enum ascend_format
ascend_format(uint32_t groups, uint32_t type, uint32_t k)
{
	/* The operator takes more than one group, of at most 65535 rows. */
	if (k % ASCEND_GROUP != 0 || k <= ASCEND_GROUP || k > UINT16_MAX)
		return ASCEND_HALF;
	if (type == QUANT_Q4_0 && groups >= ASCEND_INT4)
		return ASCEND_INT4;
	if ((type == QUANT_Q4_1 || type == QUANT_Q4_K) && groups >=
	    ASCEND_OFFSETS)
		return ASCEND_OFFSETS;
	return groups >= ASCEND_INT8 && becomes_integers(type) ? ASCEND_INT8 :
	    ASCEND_HALF;
}

uint64_t
ascend_format_bytes(enum ascend_format f, uint64_t n)
{
	return f == ASCEND_HALF ? n * sizeof(uint16_t) : f == ASCEND_INT8 ?
	    n : n / 2;
}

uint64_t
ascend_scales_at(enum ascend_format f, uint32_t n, uint32_t k)
{
	return ALIGN_UP(ascend_format_bytes(f, (uint64_t)n * k), (uint64_t)128);
}

static uint64_t
group_bytes(uint32_t n, uint32_t k)
{
	return (uint64_t)n * (k / ASCEND_GROUP) * sizeof(uint16_t);
}

uint64_t
ascend_offsets_at(enum ascend_format f, uint32_t n, uint32_t k)
{
	return ALIGN_UP(ascend_scales_at(f, n, k) + group_bytes(n, k),
	    (uint64_t)128);
}

uint64_t
ascend_weight_bytes(enum ascend_format f, uint32_t n, uint32_t k)
{
	/* FRACTAL_NZ rounds rows up.  All do, so that the plan need not know. */
	if (f == ASCEND_HALF)
		return ascend_format_bytes(f, ALIGN_UP((uint64_t)n,
		    (uint64_t)ASCEND_UNIT) * k);
	return (f == ASCEND_OFFSETS ? ascend_offsets_at(f, n, k) :
	    ascend_scales_at(f, n, k)) + group_bytes(n, k);
}

uint64_t
ascend_kept_bytes(uint32_t groups, uint32_t type, uint32_t n, uint32_t k)
{
	return ascend_weight_bytes(ascend_format(groups, type, k), n, k) +
	    n * sizeof(float);
}

uint32_t
ascend_segments(const struct ascend_chip *chip, uint32_t k)
{
	return chip->cut_k ? (uint32_t)DIV_UP(k, (uint32_t)ASCEND_SEGMENT) : 1;
}

static uint64_t
c_row_bytes(const struct ascend_chip *chip, uint32_t n, uint32_t k)
{
	return (uint64_t)ascend_segments(chip, k) * ALIGN_UP((uint64_t)n,
	    (uint64_t)ASCEND_UNIT) * sizeof(float);
}

uint32_t
ascend_rows(const struct ascend_chip *chip, uint32_t n, uint32_t k)
{
	return ASCEND_ROWS * c_row_bytes(chip, n, k) <= MOST_C_BYTES ?
	    ASCEND_ROWS : ASCEND_FEW_ROWS;
}

uint64_t
ascend_workspace(const struct ascend_chip *chip, uint32_t n, uint32_t k)
{
	const uint64_t cols = chip->cut_k ? MIN(k, (uint32_t)ASCEND_SEGMENT) :
	    k;

	return chip->workspace_bytes + MIN(n, (uint32_t)ASCEND_MOST_N) * cols *
	    sizeof(uint16_t) * chip->workspace_percent / 100;
}

void
ascend_sizes_add(struct ascend_sizes *s, const struct ascend_chip *chip,
    uint32_t type, uint32_t n, uint32_t k, int has_twin)
{
	s->k = MAX(s->k, k);
	s->c_bytes = MAX(s->c_bytes, ascend_rows(chip, n, k) *
	    c_row_bytes(chip, n, k));
	s->workspace_bytes = MAX(s->workspace_bytes, ascend_workspace(chip, n,
	    k));
	s->nweights++;
	s->weight_bytes += ascend_weight_bytes(ascend_format(chip->groups, type,
	    k), n, k);
	/* Its calls; copies of A and C. */
	s->graph_tasks += DIV_UP(n, (uint32_t)ASCEND_MOST_N) *
	    ascend_segments(chip, k) + 2;
	if (has_twin)
		s->twin_bytes += ascend_kept_bytes(chip->groups, type, n, k);
}

uint64_t
ascend_a_bytes(const struct ascend_sizes *s, uint32_t batch_rows)
{
	return ALIGN_UP((uint64_t)batch_rows, (uint64_t)ASCEND_ROWS) * s->k *
	    sizeof(uint16_t);
}

uint64_t
ascend_c_bytes(const struct ascend_sizes *s)
{
	return s->c_bytes + MIN(s->c_bytes, AHEAD_C_BYTES);
}

void
ascend_norms_add(struct ascend_sizes *s, const struct ascend_chip *chip,
    uint32_t cols)
{
	if ((chip->fns & ASCEND_FN_NORMS) == 0 || !ascend_takes(1, cols))
		return;
	s->norm_cols = MAX(s->norm_cols, cols);
	s->nnorms++;
	/* The copy of X; norms and conversions of 8 rows. */
	s->graph_tasks += 1 + FEW_CALLS * (1 + ascend_segments(chip, cols));
}

uint64_t
ascend_x_bytes(const struct ascend_sizes *s, uint32_t batch_rows)
{
	return ALIGN_UP((uint64_t)batch_rows, (uint64_t)ASCEND_ROWS) *
	    s->norm_cols * sizeof(float);
}

uint64_t
ascend_rstd_bytes(uint32_t batch_rows)
{
	return ALIGN_UP((uint64_t)batch_rows, (uint64_t)ASCEND_ROWS) *
	    sizeof(float);
}

uint64_t
ascend_zeros_bytes(const struct ascend_sizes *s)
{
	return ASCEND_ROWS * s->norm_cols * sizeof(float);
}

void
ascend_gates_add(struct ascend_sizes *s, const struct ascend_chip *chip,
    uint32_t cols)
{
	if ((chip->fns & ASCEND_FN_SWIGLU) == 0 || !ascend_takes(1, cols) ||
	    cols > ASCEND_MOST_N)
		return;
	s->gate_cols = MAX(s->gate_cols, cols);
	s->ngates++;
	/* Conversion and scale of both results, SiLU, product; the copy. */
	s->graph_tasks += FEW_CALLS * 6 + 1;
}

uint64_t
ascend_gate_bytes(const struct ascend_sizes *s)
{
	return ASCEND_ROWS * s->gate_cols * sizeof(float);
}

void
ascend_sums_add(struct ascend_sizes *s, const struct ascend_chip *chip,
    uint32_t cols)
{
	if ((chip->fns & ASCEND_FN_ADDS) == 0 || !ascend_takes(1, cols) ||
	    cols > ASCEND_MOST_N)
		return;
	s->sum_cols = MAX(s->sum_cols, cols);
	s->nsums++;
	/* Conversion, two scales and the sum; copies of scales, rows and sums. */
	s->graph_tasks += FEW_CALLS * 4 + 3;
}

uint64_t
ascend_residual_bytes(const struct ascend_sizes *s, uint32_t batch_rows)
{
	return ALIGN_UP((uint64_t)batch_rows, (uint64_t)ASCEND_ROWS) *
	    s->sum_cols * sizeof(float);
}

uint64_t
ascend_sum_bytes(const struct ascend_sizes *s)
{
	return ASCEND_ROWS * s->sum_cols * sizeof(float);
}

uint64_t
ascend_sum_host_bytes(const struct ascend_sizes *s, uint32_t batch_rows)
{
	return ascend_residual_bytes(s, batch_rows) +
	    ascend_rstd_bytes(batch_rows);
}

/* The buffers of residual sums, and a vector for each. */
static uint64_t
sum_bytes(const struct ascend_sizes *s, uint32_t batch_rows)
{
	if (s->nsums == 0)
		return 0;
	return 2 * (ascend_residual_bytes(s, batch_rows) +
	    ascend_sum_bytes(s)) + ascend_rstd_bytes(batch_rows) + s->nsums *
	    s->sum_cols * sizeof(float);
}

/* Two of SwiGLU's buffers, on a card all three, and two vectors for each. */
static uint64_t
gate_bytes(const struct ascend_chip *chip, const struct ascend_sizes *s)
{
	return (chip->has_memory ? 3 : 2) * ascend_gate_bytes(s) + 2 *
	    s->ngates * s->gate_cols * sizeof(float);
}

/* Y, scales and weights of norms; on a card also X. */
static uint64_t
norm_bytes(const struct ascend_chip *chip, const struct ascend_sizes *s,
    uint32_t batch_rows)
{
	if (s->nnorms == 0)
		return 0;
	return (chip->has_memory ? 2 : 1) * ascend_x_bytes(s, batch_rows) +
	    ascend_rstd_bytes(batch_rows) + s->nnorms * s->norm_cols *
	    sizeof(float) + (chip->fns & ASCEND_FN_ADD_NORMS ? 2 *
	    ascend_zeros_bytes(s) : 0);
}

/* X, the third of SwiGLU's buffers, and the block of sums, of the host. */
static uint64_t
norm_host_bytes(const struct ascend_sizes *s, uint32_t batch_rows)
{
	return (s->nnorms == 0 ? 0 : ascend_x_bytes(s, batch_rows) +
	    HOST_BLOCK_BYTES) + (s->ngates == 0 ? 0 : ascend_gate_bytes(s) +
	    HOST_BLOCK_BYTES) + (s->nsums == 0 ? 0 : ascend_sum_host_bytes(s,
	    batch_rows) + HOST_BLOCK_BYTES);
}

uint64_t
ascend_small_bytes(const struct ascend_sizes *s, uint32_t batch_rows)
{
	return s->k * sizeof(float) + ALIGN_UP((uint64_t)batch_rows,
	    (uint64_t)ASCEND_ROWS) * sizeof(float);
}

uint32_t
ascend_graph_units(uint64_t ntasks)
{
	return (uint32_t)DIV_UP(MAX(ntasks, UINT64_C(1)),
	    (uint64_t)ASCEND_GRAPH_TASKS);
}

uint64_t
ascend_class_units(const struct ascend_sizes *s)
{
	/* Each graph has a product, and may not fill its last unit. */
	return s->nweights + s->graph_tasks / ASCEND_GRAPH_TASKS;
}

uint32_t
ascend_graphs(const struct ascend_chip *chip, const struct ascend_sizes *s)
{
	if (chip->graph_bytes == 0)
		return 0;
	return (uint32_t)MIN(MIN(ascend_class_units(s) * ASCEND_GRAPH_CLASSES,
	    (uint64_t)ASCEND_GRAPHS), ASCEND_GRAPHS_BYTES / chip->graph_bytes);
}

uint64_t
ascend_graphs_bytes(const struct ascend_chip *chip,
    const struct ascend_sizes *s)
{
	return ascend_graphs(chip, s) * chip->graph_bytes;
}

uint64_t
ascend_pool_bytes(const struct ascend_chip *chip,
    const struct ascend_sizes *s, uint32_t batch_rows)
{
	uint64_t n = s->weight_bytes + s->workspace_bytes + norm_bytes(chip, s,
	    batch_rows) + gate_bytes(chip, s) + sum_bytes(s, batch_rows);

	if (chip->has_memory)
		n += ascend_a_bytes(s, batch_rows) + ascend_c_bytes(s);
	if (chip->has_slots)
		n += n / 8;
	n += (s->nweights + s->nnorms + 2 * s->ngates + s->nsums +
	    WORK_BLOCKS) * ASCEND_BLOCK_BYTES;
	return chip->granule_bytes > 0 ? ALIGN_UP(n, chip->granule_bytes) : n;
}

uint64_t
ascend_device_bytes(const struct ascend_chip *chip,
    const struct ascend_sizes *s, uint32_t batch_rows)
{
	return ascend_pool_bytes(chip, s, batch_rows) +
	    ascend_graphs_bytes(chip, s) + (chip->has_memory ? 0 :
	    ascend_a_bytes(s, batch_rows) + ascend_c_bytes(s) +
	    2 * HOST_BLOCK_BYTES + norm_host_bytes(s, batch_rows));
}

uint64_t
ascend_work_bytes(const struct ascend_chip *chip,
    const struct ascend_sizes *s, uint32_t batch_rows)
{
	/* A pool of fewer bytes may waste more of its last granule. */
	return ascend_pool_bytes(chip, s, batch_rows) - s->weight_bytes +
	    chip->granule_bytes + s->twin_bytes + ascend_graphs_bytes(chip, s) +
	    ascend_a_bytes(s, batch_rows) + ascend_c_bytes(s) +
	    2 * HOST_BLOCK_BYTES + norm_host_bytes(s, batch_rows) +
	    ascend_small_bytes(s, batch_rows);
}
