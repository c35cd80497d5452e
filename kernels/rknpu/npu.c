/* kernels/rknpu/npu.c - where the parts of a packed matrix lie, the rounding of a row
 * of activations, and the end of a product.  The packing is in pack.c, the host's
 * product in matmul.c and sums.h. */
#include "npu.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "bits.h"

/* The form has a cache line of its own.  A list's columns have 16 bits; lists
 * have whole groups, so that fewer branches depend on their length. */
enum { FORM_BYTES = 64, OUTLIER_COLS = 256, OUTLIER_MOST_K = 1 << 16,
	GROUP = 4 };

unsigned
npu_planes(uint32_t type)
{
	return type == QUANT_F32 || type == QUANT_F16 || type == QUANT_BF16 ?
	    2 : 1;
}

uint64_t
npu_plane_bytes(uint32_t n, uint32_t k)
{
	return ALIGN_UP(ALIGN_UP(n, NPU_ALIGN) * ALIGN_UP(k, NPU_ALIGN),
	    NPU_PAGE);
}

uint32_t
npu_noutliers(uint32_t type, uint32_t k)
{
	return npu_planes(type) > 1 || k > OUTLIER_MOST_K ? 0 :
	    (uint32_t)ALIGN_UP(k / OUTLIER_COLS + 2, GROUP);
}

uint64_t
npu_packed_bytes(uint32_t type, uint32_t n, uint32_t k)
{
	uint64_t row_bytes = sizeof(float) + (uint64_t)npu_noutliers(type, k) *
	    sizeof(struct npu_outlier);

	return npu_planes(type) * npu_plane_bytes(n, k) + ALIGN_UP(FORM_BYTES +
	    ALIGN_UP(n, NPU_ALIGN) * row_bytes, NPU_PAGE);
}

static uint8_t *
tail_of(const void *data, uint32_t type, uint32_t n, uint32_t k)
{
	return (uint8_t *)(uintptr_t)data + npu_planes(type) *
	    npu_plane_bytes(n, k);
}

static struct npu_form
form_at(const uint8_t *tail)
{
	struct npu_form form;

	memcpy(&form, tail, sizeof(form));
	if ((form.tile_cols != 32 && form.tile_cols != 16) ||
	    form.segment == 0 || form.segment % NPU_ALIGN != 0)
		return NPU_FORM_DEFAULT;
	return form;
}

void
npu_mat(const struct mat *w, struct npu_mat *ret)
{
	const uint8_t *tail = tail_of(w->data, w->type, w->n, w->k);
	unsigned p;

	memset(ret, 0, sizeof(*ret));
	ret->nplanes = npu_planes(w->type);
	for (p = 0; p < ret->nplanes; p++)
		ret->plane[p] = (const int8_t *)w->data + p *
		    npu_plane_bytes(w->n, w->k);
	ret->n_pad = (uint32_t)ALIGN_UP(w->n, NPU_ALIGN);
	ret->k_pad = (uint32_t)ALIGN_UP(w->k, NPU_ALIGN);
	ret->form = form_at(tail);
	ret->scale = (const float *)(const void *)(tail + FORM_BYTES);
	ret->noutliers = npu_noutliers(w->type, w->k);
	ret->outlier = (const struct npu_outlier *)(const void *)
	    (ret->scale + ret->n_pad);
}

void
npu_set_form(void *data, uint32_t type, uint32_t n, uint32_t k,
    struct npu_form form)
{
	const struct mat w = { data, n, k, type };
	struct npu_mat m;

	npu_mat(&w, &m);
	memcpy(tail_of(data, type, n, k), &form, sizeof(form));
	memset((void *)(uintptr_t)m.outlier, 0, (uint64_t)m.n_pad *
	    m.noutliers * sizeof(*m.outlier));
}

uint64_t
npu_index(const struct npu_mat *w, uint32_t n, uint32_t k)
{
	uint32_t k0 = k - k % w->form.segment, cols = w->form.tile_cols;
	uint32_t ntiles = MIN(w->form.segment, w->k_pad - k0) / NPU_ALIGN;

	k -= k0;
	return (uint64_t)k0 * w->n_pad + (((uint64_t)(n / cols) * ntiles +
	    k / NPU_ALIGN) * cols + n % cols) * NPU_ALIGN + k % NPU_ALIGN;
}

/* --- rows of activations --- */

/* A denormal d would be too coarse: the row becomes zeros. */
float
npu_step(const float *x, uint32_t k, float *ret_per)
{
	uint32_t top = 0, i;
	float most;

	for (i = 0; i < k; i++)
		top = MAX(top, magnitude_bits(x[i]));
	*ret_per = 0;
	if (top >= BITS_INF)
		return NAN;
	most = bits_to_float(top);
	if (most < NPU_MOST * FLT_MIN)
		return 0;
	*ret_per = NPU_MOST / most;
	return most / NPU_MOST;
}

static void
round_32(int8_t *high, int8_t *low, const float *x, float per)
{
	int32_t i, n, h;

	for (i = 0; i < NPU_ALIGN; i++) {
		n = nearest(x[i] * per);
		h = (n + NPU_HIGH / 2) >> 7;
		high[i] = (int8_t)h;
		low[i] = (int8_t)(n - h * NPU_HIGH);
	}
}

void
npu_round_part(int8_t *high, int8_t *low, const float *x, uint32_t k,
    float per)
{
	float rest[NPU_ALIGN] = { 0 };
	uint32_t i;

	if (per == 0) {
		memset(high, 0, ALIGN_UP(k, NPU_ALIGN));
		memset(low, 0, ALIGN_UP(k, NPU_ALIGN));
		return;
	}
	for (i = 0; i + NPU_ALIGN <= k; i += NPU_ALIGN)
		round_32(high + i, low + i, x + i, per);
	if (i < k) {
		memcpy(rest, x + i, (k - i) * sizeof(float));
		round_32(high + i, low + i, rest, per);
	}
}

void
npu_round(struct npu_row *row, const float *x, uint32_t k)
{
	float per;

	row->d = npu_step(x, k, &per);
	npu_round_part(row->high, row->low, x, k, per);
}

/* --- the end of a product --- */

int64_t
npu_outliers(const struct npu_mat *w, const struct npu_row *row, uint32_t n,
    uint32_t k0, uint32_t k1)
{
	const struct npu_outlier *o = w->outlier + (uint64_t)n * w->noutliers;
	const struct npu_outlier *end = o + w->noutliers;
	int64_t sum = 0;
	uint32_t i;

	for (; o < end && o->more != 0; o++)
		if ((i = o->col - k0) < k1 - k0)
			sum += o->more * (NPU_HIGH * row->high[i] +
			    row->low[i]);
	return sum;
}

static int64_t
outlier(const struct npu_outlier *o, const struct npu_row *row)
{
	return o->more * (NPU_HIGH * row->high[o->col] + row->low[o->col]);
}

/* The same of all columns.  The rest of a group is zeros. */
static int64_t
all_outliers(const struct npu_mat *w, const struct npu_row *row, uint32_t n)
{
	const struct npu_outlier *o = w->outlier + (uint64_t)n * w->noutliers;
	const struct npu_outlier *end = o + w->noutliers;
	int64_t sum = 0;

	for (; o < end && o->more != 0; o += GROUP)
		sum += outlier(o, row) + outlier(o + 1, row) +
		    (outlier(o + 2, row) + outlier(o + 3, row));
	return sum;
}

/* The product of two floats is exact in double; sum is below 2^53. */
void
npu_finish(float *y, const struct npu_mat *w, const struct npu_row *row,
    const int64_t *sum, const float *bias, uint32_t n0, uint32_t n1)
{
	uint32_t n;

	for (n = n0; n < n1; n++) {
		int64_t s = sum[n - n0];

		if (w->noutliers > 0)
			s += all_outliers(w, row, n);
		y[n - n0] = (float)((double)s * ((double)row->d *
		    (double)w->scale[n]) + (bias != NULL ? bias[n] : 0.0));
	}
}
