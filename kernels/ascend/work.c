/* kernels/ascend/work.c - see work.h. */
#include "work.h"

/* C of more would not be worth it. */
#define MOST_C_BYTES	(16 * MIB)

/* What the library adds to a block of the host: alignment, and 32 bytes. */
enum { HOST_BLOCK_BYTES = 256 };

/* Blocks of the pool beside the weights: A, C, the workspace. */
enum { WORK_BLOCKS = 4 };

int
ascend_takes(uint32_t n, uint32_t k)
{
	return n > 0 && k > 0 && k % ASCEND_UNIT == 0;
}

uint64_t
ascend_weight_bytes(uint32_t n, uint32_t k)
{
	return (uint64_t)n * k * sizeof(uint16_t);
}

uint64_t
ascend_kept_bytes(uint32_t n, uint32_t k)
{
	return ascend_weight_bytes(n, k) + n * sizeof(float);
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

void
ascend_sizes_add(struct ascend_sizes *s, const struct ascend_chip *chip,
    uint32_t n, uint32_t k, int has_twin)
{
	s->k = MAX(s->k, k);
	s->c_bytes = MAX(s->c_bytes, ascend_rows(chip, n, k) *
	    c_row_bytes(chip, n, k));
	s->nweights++;
	s->weight_bytes += ascend_weight_bytes(n, k);
	if (has_twin)
		s->twin_bytes += ascend_kept_bytes(n, k);
}

uint64_t
ascend_a_bytes(const struct ascend_sizes *s, uint32_t batch_rows)
{
	return ALIGN_UP((uint64_t)batch_rows, (uint64_t)ASCEND_ROWS) * s->k *
	    sizeof(uint16_t);
}

uint64_t
ascend_small_bytes(const struct ascend_sizes *s, uint32_t batch_rows)
{
	return s->k * sizeof(float) + ALIGN_UP((uint64_t)batch_rows,
	    (uint64_t)ASCEND_ROWS) * sizeof(float);
}

uint64_t
ascend_pool_bytes(const struct ascend_chip *chip,
    const struct ascend_sizes *s, uint32_t batch_rows)
{
	uint64_t n = s->weight_bytes + chip->workspace_bytes;

	if (chip->has_memory)
		n += ascend_a_bytes(s, batch_rows) + s->c_bytes;
	if (chip->has_slots)
		n += n / 8;
	n += (s->nweights + WORK_BLOCKS) * ASCEND_BLOCK_BYTES;
	return chip->granule_bytes > 0 ? ALIGN_UP(n, chip->granule_bytes) : n;
}

uint64_t
ascend_work_bytes(const struct ascend_chip *chip,
    const struct ascend_sizes *s, uint32_t batch_rows)
{
	/* A pool of fewer bytes may waste more of its last granule. */
	return ascend_pool_bytes(chip, s, batch_rows) - s->weight_bytes +
	    chip->granule_bytes + s->twin_bytes +
	    ascend_a_bytes(s, batch_rows) + s->c_bytes +
	    2 * HOST_BLOCK_BYTES + ascend_small_bytes(s, batch_rows);
}
