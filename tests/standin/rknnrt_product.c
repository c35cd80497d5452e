/* tests/standin/rknnrt_product.c - chips, layouts and arithmetic of the
 * stand-in for librknnrt.so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "rknnrt.h"

#define BIT(t)	(UINT32_C(1) << (t))

static const struct chip chips[] = {
	{ "rk3588", 3, BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(9) | BIT(10),
	    { 32, 16, 8 }, { 64, 32, 16 }, { 32, 32, 32 }, 8192 },
	{ "rk3576", 2, BIT(1) | BIT(2) | BIT(4) | BIT(5) | BIT(7) | BIT(8) |
	    BIT(12),
	    { 32, 16, 8 }, { 64, 32, 16 }, { 32, 32, 32 }, 4096 },
	{ "rk3562", 1, BIT(1) | BIT(2),
	    { 0, 16, 8 }, { 0, 16, 8 }, { 0, 32, 32 }, 0 },
	{ "rk3566", 1, BIT(1) | BIT(2),
	    { 0, 8, 4 }, { 0, 16, 8 }, { 0, 32, 16 }, 0 },
	{ "rk3568", 1, BIT(1) | BIT(2),
	    { 0, 8, 4 }, { 0, 16, 8 }, { 0, 32, 16 }, 0 },
};

const struct chip *
find_chip(const char *name)
{
	unsigned i;

	for (i = 0; i < NITEMS(chips); i++)
		if (strcmp(chips[i].name, name) == 0)
			return &chips[i];
	return NULL;
}

/* --- types --- */

static const struct {
	int type, since, a, b, c;
} types[] = {
	{ 1, RELEASE(1, 6, 0), RKNN_TENSOR_FLOAT16, RKNN_TENSOR_FLOAT16,
	    RKNN_TENSOR_FLOAT32 },
	{ 2, RELEASE(1, 6, 0), RKNN_TENSOR_INT8, RKNN_TENSOR_INT8,
	    RKNN_TENSOR_INT32 },
	{ 3, RELEASE(2, 0, 0), RKNN_TENSOR_INT8, RKNN_TENSOR_INT8,
	    RKNN_TENSOR_INT8 },
	{ 4, RELEASE(2, 0, 0), RKNN_TENSOR_FLOAT16, RKNN_TENSOR_FLOAT16,
	    RKNN_TENSOR_FLOAT16 },
	{ 5, RELEASE(2, 0, 0), RKNN_TENSOR_FLOAT16, RKNN_TENSOR_INT8,
	    RKNN_TENSOR_FLOAT32 },
	{ 6, RELEASE(2, 0, 0), RKNN_TENSOR_FLOAT16, RKNN_TENSOR_INT8,
	    RKNN_TENSOR_FLOAT16 },
	{ 7, RELEASE(2, 0, 0), RKNN_TENSOR_FLOAT16, RKNN_TENSOR_INT4,
	    RKNN_TENSOR_FLOAT32 },
	{ 8, RELEASE(2, 0, 0), RKNN_TENSOR_FLOAT16, RKNN_TENSOR_INT4,
	    RKNN_TENSOR_FLOAT16 },
	{ 9, RELEASE(2, 1, 0), RKNN_TENSOR_INT8, RKNN_TENSOR_INT8,
	    RKNN_TENSOR_FLOAT32 },
	{ 10, RELEASE(1, 6, 0), RKNN_TENSOR_INT4, RKNN_TENSOR_INT4,
	    RKNN_TENSOR_INT16 },
	{ 11, RELEASE(2, 0, 0), RKNN_TENSOR_INT8, RKNN_TENSOR_INT4,
	    RKNN_TENSOR_INT32 },
	{ 12, RELEASE(2, 3, 0), RKNN_TENSOR_FLOAT16, RKNN_TENSOR_INT4,
	    RKNN_TENSOR_BFLOAT16 },
	{ 15, RELEASE(2, 3, 2), RKNN_TENSOR_INT8, RKNN_TENSOR_INT4,
	    RKNN_TENSOR_FLOAT16 },
};

static int
bits_of(int tensor_type)
{
	switch (tensor_type) {
	case RKNN_TENSOR_INT4:
		return 4;
	case RKNN_TENSOR_INT8:
		return 8;
	case RKNN_TENSOR_FLOAT32:
	case RKNN_TENSOR_INT32:
		return 32;
	}
	return 16;
}

static int
width_of(int tensor_type)
{
	int bits = bits_of(tensor_type);

	return bits == 4 ? 0 : bits == 8 ? 1 : 2;
}

/* Tiles of B are those of A's type. */
static int
tile_cols(const struct product *p)
{
	return switches()->chip->b_cols[width_of(p->ta)];
}

static int
tile_rows(const struct product *p)
{
	return switches()->chip->b_rows[width_of(p->ta)];
}

static int
group_of(const struct product *p, char matrix)
{
	if (matrix == 'A')
		return switches()->chip->a_group[width_of(p->ta)];
	return bits_of(p->tc) == 32 ? 4 : bits_of(p->tc) == 16 ? 8 : 16;
}

static int
set_types(const struct switches *sw, int type, struct product *p)
{
	unsigned i;

	for (i = 0; i < NITEMS(types); i++)
		if (types[i].type == type && types[i].since <= sw->release) {
			p->ta = types[i].a;
			p->tb = types[i].b;
			p->tc = types[i].c;
			return sw->has_types ? list_has(&sw->types, type) :
			    (int)(sw->chip->types >> type & 1);
		}
	return 0;
}

static int
check_layouts(const struct switches *sw, const struct product *p)
{
	if (p->ac_layout != RKNN_MM_LAYOUT_NORM &&
	    p->ac_layout != RKNN_MM_LAYOUT_NATIVE)
		return 0;
	if (p->b_layout == RKNN_MM_LAYOUT_TP_NORM)
		return sw->release >= RELEASE(2, 1, 0) &&
		    strncmp(sw->chip->name, "rk356", 5) != 0 &&
		    p->tb != RKNN_TENSOR_INT4;
	if (p->b_layout == RKNN_MM_LAYOUT_NORM)
		return p->tb != RKNN_TENSOR_INT4;
	return p->b_layout == RKNN_MM_LAYOUT_NATIVE;
}

static int
check_shape(const struct switches *sw, const struct product *p)
{
	int align_n = sw->chip->b_cols[width_of(p->ta)];
	int align_k = sw->chip->b_rows[width_of(p->ta)];

	if (sw->release < RELEASE(2, 0, 0) && p->k > 10240)
		return 0;
	if (sw->max_k != 0 && p->k > sw->max_k)
		return 0;
	if (p->m <= 0 || p->k <= 0 || p->n <= 0 || align_n == 0)
		return 0;
	return p->k % align_k == 0 && p->n % align_n == 0 &&
	    tensor_bytes(p, 'A') <= UINT32_MAX &&
	    tensor_bytes(p, 'B') <= UINT32_MAX &&
	    tensor_bytes(p, 'C') <= UINT32_MAX;
}

int
check_product(const struct switches *sw, const struct rknn_matmul_info *info,
    struct product *ret)
{
	*ret = (struct product){ .type = info->type, .m = info->M,
	    .k = info->K, .n = info->N, .b_layout = info->B_layout,
	    .ac_layout = info->AC_layout, .scale = { 1, 1, 1 } };
	if (!set_types(sw, info->type, ret)) {
		complain("unsupported matmul dtype %d on %s", info->type,
		    sw->chip->name);
		return RKNN_ERR_PARAM_INVALID;
	}
	if (!check_layouts(sw, ret) || !check_shape(sw, ret)) {
		complain("invalid matmul M %d K %d N %d type %d layouts %d %d",
		    ret->m, ret->k, ret->n, ret->type, ret->b_layout,
		    ret->ac_layout);
		return RKNN_ERR_PARAM_INVALID;
	}
	return RKNN_SUCC;
}

/* --- layouts --- */

static uint64_t
round_up(uint64_t n, int unit)
{
	return (n + (uint64_t)unit - 1) / (uint64_t)unit * (uint64_t)unit;
}

uint64_t
tensor_bytes(const struct product *p, char matrix)
{
	uint64_t m = (uint64_t)p->m, k = (uint64_t)p->k, n = (uint64_t)p->n;
	int native = matrix == 'B' ? p->b_layout == RKNN_MM_LAYOUT_NATIVE :
	    p->ac_layout == RKNN_MM_LAYOUT_NATIVE;

	if (matrix == 'A')
		return m * (native ? round_up(k, group_of(p, 'A')) : k) *
		    (uint64_t)bits_of(p->ta) / 8;
	if (matrix == 'C')
		return m * (native ? round_up(n, group_of(p, 'C')) : n) *
		    (uint64_t)bits_of(p->tc) / 8;
	return k * n * (uint64_t)bits_of(p->tb) / 8;
}

static void
set_dims(struct rknn_matmul_tensor_attr *a, unsigned n, int d0, int d1, int d2,
    int d3)
{
	a->n_dims = n;
	a->dims[0] = (uint32_t)d0;
	a->dims[1] = (uint32_t)d1;
	a->dims[2] = (uint32_t)d2;
	a->dims[3] = (uint32_t)d3;
}

void
fill_attr(const struct product *p, char matrix,
    struct rknn_matmul_tensor_attr *ret)
{
	int native = p->ac_layout == RKNN_MM_LAYOUT_NATIVE, g;

	memset(ret, 0, sizeof(*ret));
	ret->name[0] = matrix;
	ret->size = (uint32_t)tensor_bytes(p, matrix);
	ret->type = matrix == 'A' ? p->ta : matrix == 'B' ? p->tb : p->tc;
	if (matrix == 'B' && p->b_layout == RKNN_MM_LAYOUT_NATIVE)
		set_dims(ret, 4, p->n / tile_cols(p), p->k / tile_rows(p),
		    tile_cols(p), tile_rows(p));
	else if (matrix == 'B' && p->b_layout == RKNN_MM_LAYOUT_TP_NORM)
		set_dims(ret, 2, p->n, p->k, 0, 0);
	else if (matrix == 'B')
		set_dims(ret, 2, p->k, p->n, 0, 0);
	else if (!native)
		set_dims(ret, 2, p->m, matrix == 'A' ? p->k : p->n, 0, 0);
	else {
		g = group_of(p, matrix);
		set_dims(ret, 3, (matrix == 'A' ? p->k : p->n) / g, p->m, g, 0);
	}
}

/* Where row m, column k of A (or C) is. */
static uint64_t
at_ac(const struct product *p, char matrix, int row, int col)
{
	int g = group_of(p, matrix);

	if (p->ac_layout == RKNN_MM_LAYOUT_NORM)
		return (uint64_t)row * (uint64_t)(matrix == 'A' ? p->k : p->n) +
		    (uint64_t)col;
	return ((uint64_t)(col / g) * (uint64_t)p->m + (uint64_t)row) *
	    (uint64_t)g + (uint64_t)(col % g);
}

/* Where row k, column n of native B is: in its segment, a matrix [N/tc, K/tr,
 * tc, tr]. */
static uint64_t
at_native_b(const struct product *p, int k, int n)
{
	int segment = switches()->segments ? switches()->chip->segment_k : 0;
	int k0 = 0, rows = p->k, tc = tile_cols(p), tr = tile_rows(p);

	if (segment != 0 && p->k > segment) {
		k0 = k / segment * segment;
		rows = p->k - k0 < segment ? p->k - k0 : segment;
		k -= k0;
	}
	return (uint64_t)k0 * (uint64_t)p->n + (((uint64_t)(n / tc) *
	    (uint64_t)(rows / tr) + (uint64_t)(k / tr)) * (uint64_t)tc +
	    (uint64_t)(n % tc)) * (uint64_t)tr + (uint64_t)(k % tr);
}

static uint64_t
at_b(const struct product *p, int layout, int k, int n)
{
	if (layout == RKNN_MM_LAYOUT_NATIVE)
		return at_native_b(p, k, n);
	if (layout == RKNN_MM_LAYOUT_TP_NORM)
		return (uint64_t)n * (uint64_t)p->k + (uint64_t)k;
	return (uint64_t)k * (uint64_t)p->n + (uint64_t)n;
}

void
convert_b(const struct product *p, const void *in, int bytes_of_int4,
    void *out)
{
	const uint8_t *src = in;
	uint8_t *dst = out;
	int bits = bits_of(p->tb), k, n;
	uint64_t from, to;
	unsigned v;

	for (k = 0; k < p->k; k++)
		for (n = 0; n < p->n; n++) {
			from = at_b(p, bytes_of_int4 ? RKNN_MM_LAYOUT_NORM :
			    p->b_layout, k, n);
			to = at_native_b(p, k, n);
			if (bits == 8)
				dst[to] = src[from];
			else if (bits == 16)
				memcpy(dst + 2 * to, src + 2 * from, 2);
			else {
				v = src[from] & 0xfu;
				if (to % 2 == 0)
					dst[to / 2] = (uint8_t)((dst[to / 2] &
					    0xf0) | v);
				else
					dst[to / 2] = (uint8_t)((dst[to / 2] &
					    0xf) | v << 4);
			}
		}
}

/* --- arithmetic --- */

static int
get_int(const void *p, int type, uint64_t i)
{
	int v;

	if (type == RKNN_TENSOR_INT8)
		return ((const int8_t *)p)[i];
	v = ((const uint8_t *)p)[i / 2] >> i % 2 * 4 & 0xf;
	return v < 8 ? v : v - 16;
}

static float
get_float(const void *p, int type, uint64_t i)
{
	return type == RKNN_TENSOR_FLOAT16 ?
	    half_to_float(((const uint16_t *)p)[i]) :
	    (float)get_int(p, type, i);
}

static int
saturate(float v, int low, int high)
{
	float r = rintf(v);

	return r < (float)low ? low : r > (float)high ? high : (int)r;
}

static void
put_int(const struct product *p, void *c, uint64_t i, int32_t sum)
{
	switch (p->tc) {
	case RKNN_TENSOR_INT32:
		((int32_t *)c)[i] = sum;
		return;
	case RKNN_TENSOR_INT16:
		((int16_t *)c)[i] = (int16_t)(sum > INT16_MAX ? INT16_MAX :
		    sum < INT16_MIN ? INT16_MIN : sum);
		return;
	case RKNN_TENSOR_INT8:
		((int8_t *)c)[i] = (int8_t)saturate((float)sum * p->scale[0] *
		    p->scale[1] / p->scale[2], -128, 127);
		return;
	case RKNN_TENSOR_FLOAT16:
		((uint16_t *)c)[i] = float_to_half((float)sum);
		return;
	}
	((float *)c)[i] = (float)sum;
}

static void
put_float(const struct product *p, void *c, uint64_t i, float sum)
{
	switch (p->tc) {
	case RKNN_TENSOR_FLOAT16:
		((uint16_t *)c)[i] = float_to_half(sum);
		return;
	case RKNN_TENSOR_BFLOAT16:
		((uint16_t *)c)[i] = float_to_bf16(sum);
		return;
	}
	((float *)c)[i] = sum;
}

/* Column n of native B: tiles' rows follow each other. */
#define GATHER_COLUMN(p, b, n, ret, get) do {				\
	int k_, j_, tr_ = tile_rows(p);					\
	for (k_ = 0; k_ < (p)->k; k_ += tr_) {				\
		uint64_t at_ = at_native_b(p, k_, n);			\
		for (j_ = 0; j_ < tr_; j_++)				\
			(ret)[k_ + j_] = get(b, (p)->tb,		\
			    at_ + (uint64_t)j_);			\
	}								\
} while (0)

static int8_t
get_byte(const void *p, int type, uint64_t i)
{
	return (int8_t)get_int(p, type, i);
}

/* Row-major A as bytes, a column of B as bytes, exact sums. */
static int
multiply_int(const struct product *p, const void *a, const void *b, void *c)
{
	size_t k = (size_t)p->k;
	int8_t *rows = malloc(k * (size_t)p->m + k), *col;
	int m, n, i;
	int32_t sum;

	if (rows == NULL)
		return -1;
	col = rows + k * (size_t)p->m;
	for (m = 0; m < p->m; m++)
		for (i = 0; i < p->k; i++)
			rows[(size_t)m * k + (size_t)i] = get_byte(a, p->ta,
			    at_ac(p, 'A', m, i));
	for (n = 0; n < p->n; n++) {
		GATHER_COLUMN(p, b, n, col, get_byte);
		for (m = 0; m < p->m; m++) {
			for (i = 0, sum = 0; i < p->k; i++)
				sum += rows[(size_t)m * k + (size_t)i] *
				    col[i];
			put_int(p, c, at_ac(p, 'C', m, n), sum);
		}
	}
	free(rows);
	return 0;
}

static int
multiply_float(const struct product *p, const void *a, const void *b, void *c)
{
	size_t k = (size_t)p->k;
	float *rows = malloc((k * (size_t)p->m + k) * sizeof(*rows)), *col;
	int m, n, i;
	float sum;

	if (rows == NULL)
		return -1;
	col = rows + k * (size_t)p->m;
	for (m = 0; m < p->m; m++)
		for (i = 0; i < p->k; i++)
			rows[(size_t)m * k + (size_t)i] = get_float(a, p->ta,
			    at_ac(p, 'A', m, i));
	for (n = 0; n < p->n; n++) {
		GATHER_COLUMN(p, b, n, col, get_float);
		for (m = 0; m < p->m; m++) {
			for (i = 0, sum = 0; i < p->k; i++)
				sum += rows[(size_t)m * k + (size_t)i] *
				    col[i];
			put_float(p, c, at_ac(p, 'C', m, n), sum);
		}
	}
	free(rows);
	return 0;
}

int
multiply(const struct product *p, const void *a, const void *b, void *c)
{
	return p->ta == RKNN_TENSOR_FLOAT16 ? multiply_float(p, a, b, c) :
	    multiply_int(p, a, b, c);
}

/* --- time --- */

/* Fixed cost; bytes of B at the speed of a core's memory; multiply-adds at the
 * speed of an RK3588's core.  4 bits with several rows are slow but for native
 * A and C. */
uint64_t
model_ns(const struct product *p)
{
	double ops = 2.0 * p->m * p->k * p->n, gops;
	double bytes = (double)tensor_bytes(p, 'B'), ns;

	switch (bits_of(p->ta)) {
	case 4:
		gops = p->m > 1 && p->ac_layout == RKNN_MM_LAYOUT_NORM ? 44 :
		    3600;
		break;
	case 8:
		gops = 1700;
		break;
	default:
		gops = 637;
	}
	ns = bytes / 11 > ops / gops ? bytes / 11 : ops / gops;
	return (uint64_t)(33000 + ns);
}
