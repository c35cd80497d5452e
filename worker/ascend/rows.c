/* worker/ascend/rows.c - see rows.h. */
#include "rows.h"

#include <math.h>
#include <string.h>

#include "kernels/types/dequant.h"
#include "groups.h"
#include "layout.h"

float
acl_row_scale(const float *x, uint32_t k, int top)
{
	float most = 0;
	uint32_t i;
	int e;

	for (i = 0; i < k; i++) {
		if (!isfinite(x[i]))
			return NAN;
		most = MAX(most, fabsf(x[i]));
	}
	if (most == 0)
		return 1;
	frexpf(most, &e);		/* most is in [2^(e - 1), 2^e) */
	return ldexpf(1, MAX(MIN(e - 1 - top, 126), -126));
}

void
acl_row_to_half(uint16_t *ret, const float *x, uint32_t k, float scale)
{
	const float by = 1 / scale;
	uint32_t i;

	if (isnan(scale))
		memset(ret, 0, k * sizeof(*ret));
	else
		for (i = 0; i < k; i++)
			ret[i] = float_to_half(x[i] * by);
}

int
acl_row_top(uint32_t k)
{
	int top = 0;

	/* Each product is less than 2 * 2^(top + 1). */
	while (ldexp(4.0 * k, top) > 32768)
		top--;
	return top;
}

/* --- activations --- */

static uint32_t
segment_of(const struct acl_products *p, uint32_t k)
{
	return p->choice->chip.cut_k ? MIN(k, (uint32_t)ASCEND_SEGMENT) : k;
}

float
acl_put_row(const struct acl_products *p, uint32_t k, uint32_t rows,
    uint32_t r, const float *x)
{
	const uint32_t len = segment_of(p, k);
	const float scale = acl_row_scale(x, k, acl_row_top(len));
	uint32_t at;

	for (at = 0; at < k; at += len)
		acl_row_to_half(p->a + acl_a_index(p, k, rows, r, at), x + at,
		    MIN(len, k - at), scale);
	return scale;
}

void
acl_put_zeros(const struct acl_products *p, uint32_t k, uint32_t rows,
    uint32_t r)
{
	const uint32_t len = segment_of(p, k);
	uint32_t at;

	for (at = 0; at < k; at += len)
		memset(p->a + acl_a_index(p, k, rows, r, at), 0, MIN(len, k -
		    at) * sizeof(*p->a));
}

/* --- weights --- */

static int
send(const struct acl_products *p, const struct acl_matrix *w, uint64_t at,
    const void *from, uint64_t nbytes, struct err *reterr)
{
	const struct acl_source *src = &p->s->src;
	int rc = src->lib->aclrtMemcpy((void *)((uintptr_t)w->w + at), nbytes,
	    from, nbytes, ACL_MEMCPY_HOST_TO_DEVICE);

	return rc == ACL_SUCCESS ? 0 : acl_failed(src->lib, src->session,
	    "aclrtMemcpy", rc, reterr);
}

/* Rows of W after row + m - 1 that FRACTAL_NZ adds to its part of N. */
static uint32_t
padding(const struct acl_matrix *w, uint32_t row, uint32_t m)
{
	const uint32_t end = row + m;

	return end == w->n || end % ACL_MOST_N == 0 ? (uint32_t)(ALIGN_UP(end,
	    ACL_NZ_ROWS) - end) : 0;
}

/* m rows of W in A, tile by tile as put_nz_row() puts them: a column of tiles takes
 * rows one after the other. */
static int
send_tiles(struct acl_products *p, const struct acl_matrix *w, uint32_t row,
    uint32_t m, struct err *reterr)
{
	const uint32_t all = m + padding(w, row, m);
	uint32_t at, tile = ACL_NZ_BYTES / sizeof(*p->a), r;
	int rc = 0;

	for (at = 0; at < w->k && rc == 0; at += tile) {
		uint16_t *from = p->a + (uint64_t)all * at;

		for (r = m; r < all; r++)
			memset(from + r * tile, 0, ACL_NZ_BYTES);
		rc = send(p, w, acl_w_index(p, w, row, at) * sizeof(*p->a),
		    from, (uint64_t)all * ACL_NZ_BYTES, reterr);
	}
	return rc;
}

static float
put_nz_row(const struct acl_products *p, uint32_t k, uint32_t all, uint32_t r,
    const float *row)
{
	const uint32_t tile = ACL_NZ_BYTES / sizeof(*p->a);
	const float scale = acl_row_scale(row, k, 0);
	uint32_t at;

	for (at = 0; at < k; at += tile)
		acl_row_to_half(p->a + (uint64_t)all * at + r * tile, row + at,
		    tile, scale);
	return scale;
}

/* m rows of W in A, one segment of all rows after the other. */
static int
send_rows(struct acl_products *p, const struct acl_matrix *w, uint32_t row,
    uint32_t m, struct err *reterr)
{
	const uint32_t len = segment_of(p, w->k);
	uint32_t at;
	int rc = 0;

	for (at = 0; at < w->k && rc == 0; at += len)
		rc = send(p, w, acl_w_index(p, w, row, at) * sizeof(*p->a),
		    p->a + (uint64_t)m * at, (uint64_t)m * MIN(len, w->k -
		    at) * sizeof(*p->a), reterr);
	return rc;
}

static float
put_weight_row(const struct acl_products *p, uint32_t k, uint32_t m,
    uint32_t r, const float *row)
{
	const uint32_t len = segment_of(p, k);
	const float scale = acl_row_scale(row, k, 0);
	uint32_t at;

	for (at = 0; at < k; at += len)
		acl_row_to_half(p->a + (uint64_t)m * at + (uint64_t)r *
		    MIN(len, k - at), row + at, MIN(len, k - at), scale);
	return scale;
}

/* Half of A has the integers, a quarter their scales, one the offsets. */
static uint16_t *
group_scales(const struct acl_products *p)
{
	return p->a + p->a_bytes / 2 / sizeof(*p->a);
}

static uint16_t *
group_offsets(const struct acl_products *p)
{
	return p->a + p->a_bytes / 4 * 3 / sizeof(*p->a);
}

static float
put_groups(const struct acl_products *p, const struct acl_matrix *w,
    uint32_t type, uint32_t r, const float *row, const void *src)
{
	const float scale = acl_row_scale(row, w->k, 0);
	uint8_t *quants = (uint8_t *)p->a + ascend_format_bytes(w->format,
	    (uint64_t)r * w->k);
	const uint64_t at = (uint64_t)r * (w->k / ASCEND_GROUP);
	uint16_t *scales = group_scales(p) + at;

	if (w->format == ASCEND_OFFSETS)
		acl_groups_offsets(quants, scales, group_offsets(p) + at, type,
		    src, w->k, scale);
	else if (type == QUANT_Q8_0)
		acl_groups_q8_0(quants, scales, src, w->k, scale);
	else if (w->format == ASCEND_INT8)
		acl_groups_int8(quants, scales, type, src, row, w->k, scale);
	else
		acl_groups_q4_0(quants, scales, src, w->k, scale);
	return scale;
}

static int
send_groups(const struct acl_products *p, const struct acl_matrix *w,
    uint32_t row, uint32_t m, struct err *reterr)
{
	const uint64_t at = (uint64_t)row * w->k, n = (uint64_t)m * w->k;
	int rc = send(p, w, ascend_format_bytes(w->format, at), p->a,
	    ascend_format_bytes(w->format, n), reterr);

	if (rc == 0)
		rc = send(p, w, ascend_scales_at(w->format, w->n, w->k) + at /
		    ASCEND_GROUP * sizeof(uint16_t), group_scales(p), n /
		    ASCEND_GROUP * sizeof(uint16_t), reterr);
	if (rc == 0 && w->format == ASCEND_OFFSETS)
		rc = send(p, w, ascend_offsets_at(w->format, w->n, w->k) + at /
		    ASCEND_GROUP * sizeof(uint16_t), group_offsets(p), n /
		    ASCEND_GROUP * sizeof(uint16_t), reterr);
	return rc;
}

/* Are its rows packed in tiles here? */
static int
is_tiled(const struct acl_products *p, const struct acl_matrix *w)
{
	return acl_form_of(p->choice, w).nz == ACL_NZ_BY_US;
}

static float
put_row(const struct acl_products *p, const struct acl_matrix *w,
    uint32_t type, uint32_t row0, uint32_t m, uint32_t r, const float *row,
    const void *src)
{
	if (w->format != ASCEND_HALF)
		return put_groups(p, w, type, r, row, src);
	if (is_tiled(p, w))
		return put_nz_row(p, w->k, m + padding(w, row0, m), r, row);
	return put_weight_row(p, w->k, m, r, row);
}

/* Rows from row0 on for which A has room. */
static uint32_t
rows_at_once(const struct acl_products *p, const struct acl_matrix *w,
    uint32_t row0, uint32_t nrows)
{
	uint64_t most = p->a_bytes / (w->k * sizeof(uint16_t));

	if (is_tiled(p, w))
		most = MIN(most - ACL_NZ_ROWS, (uint64_t)ACL_MOST_N - row0 %
		    ACL_MOST_N);
	return (uint32_t)MIN(most, (uint64_t)nrows);
}

int
acl_put_weights(struct acl_products *p, const struct acl_matrix *w,
    uint32_t type, uint32_t row0, uint32_t nrows, const void *src, float *row,
    float *scale, struct err *reterr)
{
	const uint64_t row_bytes = quant_row_bytes(type, w->k);
	const uint8_t *from = src;
	uint32_t m, r;
	int rc = 0;

	for (; nrows > 0 && rc == 0; row0 += m, nrows -= m) {
		m = rows_at_once(p, w, row0, nrows);
		for (r = 0; r < m; r++, from += row_bytes) {
			dequant[type](row, from, w->k);
			scale[row0 + r] = put_row(p, w, type, row0, m, r, row,
			    from);
		}
		rc = w->format != ASCEND_HALF ? send_groups(p, w, row0, m,
		    reterr) : is_tiled(p, w) ? send_tiles(p, w, row0, m,
		    reterr) : send_rows(p, w, row0, m, reterr);
	}
	return rc;
}
