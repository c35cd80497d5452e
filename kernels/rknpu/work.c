/* kernels/rknpu/work.c - see work.h. */
#include "work.h"

const uint32_t npu_class_m[NPU_CLASSES] = { 8, 32,
    NPU_PLANES * NPU_MOST_ROWS };

/* The most columns of a part, so that C has at most 4 MiB; and where a part is
 * the sum of several products, whose integers are kept in 8 bytes. */
enum { PART_COLS = 8192, ADDED_COLS = 2048 };

int
npu_takes(uint32_t type, uint32_t n, uint32_t k)
{
	return k <= NPU_MOST_K && npu_packed_bytes(type, n, k) <= INT32_MAX;
}

unsigned
npu_class(uint32_t nrows)
{
	unsigned i = 0;

	while (i + 1 < NPU_CLASSES && nrows * NPU_PLANES > npu_class_m[i])
		i++;
	return i;
}

struct npu_cut
npu_cut(const struct npu_chip *chip, uint32_t type, uint32_t n, uint32_t k)
{
	struct npu_cut c = {
		.n_pad = (uint32_t)ALIGN_UP(n, NPU_ALIGN),
		.k_pad = (uint32_t)ALIGN_UP(k, NPU_ALIGN),
	};

	c.nslices = (uint32_t)DIV_UP(c.k_pad, chip->segment) *
	    npu_planes(type);
	c.most_cols = c.nslices > 1 ? ADDED_COLS : PART_COLS;
	return c;
}

void
npu_core_cols(const struct npu_chip *chip, const struct npu_cut *cut,
    unsigned core, uint32_t *ret_n0, uint32_t *ret_n1)
{
	const uint64_t units = DIV_UP(cut->n_pad, NPU_UNIT);

	*ret_n0 = (uint32_t)(units * core / chip->ncores * NPU_UNIT);
	*ret_n1 = (uint32_t)MIN(units * (core + 1) / chip->ncores * NPU_UNIT,
	    cut->n_pad);
}

void
npu_sizes_add(struct npu_sizes *s, const struct npu_chip *chip, uint32_t type,
    uint32_t n, uint32_t k)
{
	const struct npu_cut cut = npu_cut(chip, type, n, k);
	uint32_t n0, n1, cols, core, nsegments, contexts = 0;

	s->k = MAX(s->k, cut.k_pad);
	/* The last part of a core, and the last segment, may be smaller. */
	nsegments = cut.k_pad > chip->segment && cut.k_pad % chip->segment > 0
	    ? 2 : 1;
	for (core = 0; core < chip->ncores; core++) {
		npu_core_cols(chip, &cut, core, &n0, &n1);
		cols = MIN(n1 - n0, cut.most_cols);
		s->cols = MAX(s->cols, cols);
		if (cut.nslices > 1)
			s->sums = MAX(s->sums, (uint64_t)cols * NPU_MOST_ROWS);
		if (cols > 0)
			contexts += (n1 - n0 > cols && (n1 - n0) % cols > 0 ?
			    2 : 1) * nsegments * NPU_CLASSES;
	}
	s->contexts = MAX(s->contexts, contexts);
}

uint64_t
npu_a_bytes(const struct npu_sizes *s, unsigned class)
{
	return ALIGN_UP(npu_class_m[class] * s->k, NPU_PAGE);
}

uint64_t
npu_c_bytes(const struct npu_sizes *s, unsigned class)
{
	return ALIGN_UP(npu_class_m[class] * s->cols * sizeof(int32_t),
	    NPU_PAGE);
}

uint64_t
npu_planes_bytes(const struct npu_sizes *s)
{
	return ALIGN_UP(NPU_MOST_ROWS * NPU_PLANES * s->k, NPU_PAGE);
}

uint64_t
npu_sums_bytes(const struct npu_sizes *s)
{
	return ALIGN_UP(s->sums * sizeof(int64_t), NPU_PAGE);
}

uint64_t
npu_work_bytes(const struct npu_chip *chip, const struct npu_sizes *s)
{
	uint64_t nbytes = npu_planes_bytes(s) + chip->ncores *
	    npu_sums_bytes(s);
	unsigned class;

	for (class = 0; class < NPU_CLASSES; class++)
		nbytes += npu_a_bytes(s, class) + chip->ncores *
		    npu_c_bytes(s, class);
	return nbytes;
}
