/* tests/check/hexagon.c - checks of every kernel of a Hexagon domain, as Hexagon code
 * under qemu-hexagon.  Matrix products are compared bit for bit with the host's twin
 * (kernels/hexagon_host/mat.c: the same arithmetic in portable C), and the twin with
 * sums in double; all other kernels with kernels/ref/ref.c.
 *
 *	check_hexagon [--seed N]
 *
 * Exits with 77 where there is no emulator or the domain was not built.  The other
 * parts are check/hexagon_rows.c, check/hexagon_moe.c and check/hexagon_attn.c. */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/hexagon/layout.h"
#include "kernels.h"
#include "tests/support/hexdom.h"
#include "tests/support/kernel_inputs.h"
#include "tests/support/weights.h"

static const uint32_t types[] = { QUANT_Q4_0, QUANT_Q4_1, QUANT_Q5_0,
    QUANT_Q5_1, QUANT_Q8_0, QUANT_IQ4_NL, QUANT_MXFP4, QUANT_Q4_K, QUANT_Q6_K,
    QUANT_F32 };

struct mm {
	struct kernels k;		/* the table of a hexagon session */
	struct mat w;
	enum input in;
	uint32_t m;
	uint8_t *src;			/* (n) rows as in the file */
	struct hx_op op;
};

static const struct act_q8 *
act_row(const struct hexdom *w, const struct mm *t, uint32_t r)
{
	return hexdom_row(w, &t->op.in[0], r);
}

/* Error bound of a weight row times activations x (k / 32 blocks).  The scales of
 * weights and activations are rounded to 15 bits, those of weights relative to the
 * row's largest; each of three products loses up to a unit of the accumulator. */
static double
mm_bound(const struct mm *t, const uint8_t *row, const struct act_q8 *x,
    double *ret_want)
{
	const struct hx_geom g = hx_geom(t->w.type);
	struct hx_row hr = hx_row_of(x, t->w.k, &g);
	double sum = 0, want = 0, top = 0, size, v, reach = 0, part, q;
	uint32_t i, j, n = t->w.k / g.group;

	for (i = 0; i < t->w.k; i++)
		top = fmax(top, fabs(weight_at(t->w.type, row, i, &size)));
	for (i = 0; i < n; i++) {
		for (j = 0, part = 0; j < g.group; j++) {
			uint32_t at = i * g.group + j;

			v = weight_at(t->w.type, row, at, &size);
			q = (int8_t)(x[at / 32].q[at % 32] ^ t->k.act_bias) *
			    (double)x[at / 32].d;
			want += v * q;
			part += size * fabs(q);
			reach += fabs(q);
		}
		sum += part;
	}
	*ret_want = want;
	/* First term: the smallest normal number.  Second: 2^-15 of the row's largest
	 * scale for each weight, times 4 because a weight may be a quarter of its
	 * largest value, and the same share of each product for the activations.
	 * Third: units of the accumulator, which has 31 bits for a group's largest
	 * possible sum. */
	return 0x1p-126 + (reach * top + sum) * 0x1p-13 + 3.0 * n * ldexp(top, 1) *
	    (double)hr.factor * 0x1p-31 * 128 * g.group * 2;
}

static void
check_values(const struct hexdom *w, const struct mm *t,
    const float *twin)
{
	uint64_t row_bytes = quant_row_bytes(t->w.type, t->w.k);
	uint32_t j, i;
	double want, eps, size, top;
	float *out = calloc(t->w.k, sizeof(*out));

	for (j = 0; j < t->w.n; j += MAX(t->w.n / 5, 1)) {
		const uint8_t *row = t->src + j * row_bytes;

		eps = mm_bound(t, row, act_row(w, t, t->m - 1), &want);
		check_close(&twin[(t->m - 1) * t->w.n + j], &want, &eps, 1,
		    "the twin's y");
		t->k.mat[t->w.type].unpack_row(out, &t->w, j);
		for (i = 0, top = 0; i < t->w.k; i++) {
			weight_at(t->w.type, row, i, &size);
			top = fmax(top, size);
		}
		for (i = 0; i < t->w.k; i++) {
			want = weight_at(t->w.type, row, i, &size);
			eps = top * 0x1p-13;
			check_close(&out[i], &want, &eps, 1, "unpack_row");
		}
	}
	free(out);
}

/* The same for floats: both factors and their product are rounded to 31 bits below
 * the row's largest, a group's sum loses 5 bits more, up to a unit each, and the
 * final sum is rounded to a float. */
static void
check_values_f32(const struct hexdom *w, const struct mm *t,
    const float *twin)
{
	const float *x = hexdom_row(w, &t->op.in[0], t->m - 1), *row;
	double want, sum, top, top_x = 0, eps, v;
	float *out = calloc(t->w.k, sizeof(*out));
	uint32_t i, j;

	for (i = 0; i < t->w.k; i++)
		top_x = fmax(top_x, fabs((double)x[i]));
	for (j = 0; j < t->w.n; j += MAX(t->w.n / 5, 1)) {
		row = (const float *)(const void *)(t->src +
		    j * quant_row_bytes(QUANT_F32, t->w.k));
		for (i = 0, want = sum = top = 0; i < t->w.k; i++) {
			memcpy(&out[0], &row[i], 4);
			v = (double)out[0];
			want += v * (double)x[i];
			sum += fabs(v * (double)x[i]);
			top = fmax(top, fabs(v));
		}
		eps = 0x1p-24 * fabs(want) + 0x1p-126 +
		    4 * top * top_x * t->w.k * 0x1p-26;
		check_close(&twin[(t->m - 1) * t->w.n + j], &want, &eps, 1,
		    "the twin's y");
		t->k.mat[QUANT_F32].unpack_row(out, &t->w, j);
		for (i = 0; i < t->w.k; i++) {
			want = weight_at(QUANT_F32, row, i, NULL);
			eps = top * 0x1p-29 + 0x1p-126;
			check_close(&out[i], &want, &eps, 1, "unpack_row");
		}
	}
	free(out);
}

/* Run the operation in the domain and compare it bit for bit with the twin. */
static void
compare_with_twin(struct hexdom *w, const struct mm *t)
{
	const struct mat_kernel *mk = &t->k.mat[t->w.type];
	const float *bias = t->op.bias.buf == HX_NONE ? NULL :
	    hexdom_row(w, &t->op.bias, 0);
	float *twin = calloc((size_t)t->m * t->w.n, sizeof(*twin));
	uint32_t i, j, status;

	mk->matmul(twin, t->w.n, hexdom_row(w, &t->op.in[0], 0), NULL, &t->w,
	    bias, t->m, 0, t->w.n);
	status = hexdom_run(w, &t->op, t->m, 0);
	check(status == HXQ_OK, "status: %s", domain_status_text(status));
	for (i = 0; i < t->m; i++) {
		const float *y = hexdom_row(w, &t->op.out, i);

		for (j = 0; j < t->w.n; j++)
			check(memcmp(&y[j], &twin[i * t->w.n + j], 4) == 0 ||
			    (isnan(y[j]) && isnan(twin[i * t->w.n + j])),
			    "y[%u][%u] is %.9g in the domain, %.9g in the twin", i,
			    j, (double)y[j], (double)twin[i * t->w.n + j]);
		check(((const uint32_t *)(const void *)y)[t->w.n] ==
		    0xa5a5a5a5, "row %u writes beyond its columns", i);
	}
	if (t->in != IN_ANY && bias == NULL && t->w.type == QUANT_F32)
		check_values_f32(w, t, twin);
	else if (t->in != IN_ANY && bias == NULL)
		check_values(w, t, twin);
	free(twin);
}

/* Set up the product of t's weights in t->src with rows of activations. */
static void
setup_product(struct hexdom *w, struct mm *t, uint8_t act_bias)
{
	uint32_t type = t->w.type, n = t->w.n, k = t->w.k, m = t->m, i, j;
	struct kernels ref;
	float *x = calloc(k, sizeof(*x));

	hexdom_reset(w);
	kernels_init(&ref, 0);
	t->k = ref;
	t->k.act_bias = act_bias;
	kernels_init_hexagon(&t->k);
	w->m.act_bias = act_bias;
	t->op = (struct hx_op){ .kind = HX_MATMUL, .type = type,
	    .in = { hexdom_alloc(w, m, act_row_bytes(t->k.mat[type].act, k),
	    k), hexdom_none }, .bias = hexdom_none,
	    .routes = hexdom_none };
	for (i = 0; i < m; i++) {
		struct act_q8 *a = hexdom_row(w, &t->op.in[0], i);

		fill_floats(x, k, t->in);
		if (type == QUANT_F32) {
			memcpy(a, x, k * sizeof(*x));
			continue;
		}
		ref.quantize_q8(a, x, k);
		for (j = 0; j < k; j++)
			a[j / 32].q[j % 32] += act_bias;
	}
	t->op.w = hexdom_alloc(w, 1, t->k.mat[type].packed_bytes(n, k), k);
	t->w.data = hexdom_row(w, &t->op.w, 0);
	t->k.mat[type].pack(hexdom_row(w, &t->op.w, 0), t->src, 0, n, n, k);
	t->op.out = hexdom_alloc(w, m, ALIGN_UP((n + 1) * 4, 64), n);
	free(x);
}

static void
check_mat_case(struct hexdom *w, uint32_t type, enum input in, uint32_t n,
    uint32_t k, uint32_t m, int with_bias, uint8_t act_bias)
{
	struct mm t = { .in = in, .m = m, .w = { .n = n, .k = k,
	    .type = type } };
	uint64_t nbytes = n * quant_row_bytes(type, k);
	float *bias;
	uint32_t i;

	begin_case("%s %s, %u x %u, %u rows, bias %d, act_bias %u",
	    quant_info(type)->name, input_name[in], n, k, m, with_bias,
	    act_bias);
	t.src = guard_alloc(nbytes);
	fill_rows(t.src, type, nbytes, in);
	setup_product(w, &t, act_bias);
	if (with_bias) {
		t.op.bias = hexdom_alloc(w, 1, 0, n);
		bias = hexdom_row(w, &t.op.bias, 0);
		for (i = 0; i < n; i++)
			bias[i] = rand_float(1);
	}
	compare_with_twin(w, &t);
	/* VTCM for at most two rows: they go one at a time and give the same bits. */
	w->m.vtcm_bytes = 16 << 10;
	compare_with_twin(w, &t);
	w->m.vtcm_bytes = 128;
	if (k > 128)
		check(hexdom_run(w, &t.op, m, 0) == HXQ_EVTCM,
		    "a row that does not fit VTCM is accepted");
	w->m.vtcm_bytes = 0;
	guard_free(t.src, nbytes);
}

/* A scale or min that is NaN or Inf makes its row's output NaN, whichever group
 * of the row has it, and no other row's. */
static void
check_not_finite(struct hexdom *w, uint32_t type, uint32_t offset)
{
	enum { N = 33, K = 1024, BAD = 3 };
	static const uint16_t halves[] = { 0x7e00, 0xfe00, 0x7c00 };
	struct mm t = { .in = IN_ANY, .m = 1, .w = { .n = N, .k = K,
	    .type = type } };
	uint64_t row_bytes = quant_row_bytes(type, K);
	uint32_t nblocks = K / quant_info(type)->block, i, j;
	const float *y;

	begin_case("%s, not finite at byte %u of a block",
	    quant_info(type)->name, offset);
	t.src = guard_alloc(N * row_bytes);
	for (i = 0; i < 2 * NITEMS(halves); i++) {
		fill_rows(t.src, type, N * row_bytes, IN_RANDOM);
		memcpy(t.src + BAD * row_bytes + (i % 2 == 0 ? 0 :
		    nblocks - 1) * quant_info(type)->bytes + offset,
		    &halves[i / 2], sizeof(halves[0]));
		setup_product(w, &t, 0);
		compare_with_twin(w, &t);
		y = hexdom_row(w, &t.op.out, 0);
		for (j = 0; j < N; j++)
			check(isnan(y[j]) == (j == BAD), "y[%u] is %.9g", j,
			    (double)y[j]);
	}
	guard_free(t.src, N * row_bytes);
}

static void
check_all_not_finite(struct hexdom *w)
{
	static const struct { uint32_t type, offset; } half[] = {
		{ QUANT_Q4_0, 0 }, { QUANT_Q4_1, 0 }, { QUANT_Q4_1, 2 },
		{ QUANT_Q5_0, 0 }, { QUANT_Q5_1, 0 }, { QUANT_Q5_1, 2 },
		{ QUANT_Q8_0, 0 }, { QUANT_IQ4_NL, 0 }, { QUANT_Q4_K, 0 },
		{ QUANT_Q4_K, 2 }, { QUANT_Q6_K, 208 },
	};
	uint32_t i;

	for (i = 0; i < NITEMS(half); i++)
		check_not_finite(w, half[i].type, half[i].offset);
}

void
check_hexagon_mats(struct hexdom *w)
{
	static const struct { uint32_t n, k, m; } shape[] = {
		{ 1, 32, 1 }, { 32, 64, 4 }, { 33, 96, 5 }, { 31, 2048, 1 },
		{ 70, 288, 9 }, { 64, 512, 8 }, { 5, 4096, 3 },
	};
	uint32_t t, s, in, k;

	for (t = 0; t < NITEMS(types); t++)
		for (s = 0; s < NITEMS(shape); s++)
			for (in = 0; in < IN_N; in++) {
				k = (uint32_t)ALIGN_UP(shape[s].k,
				    quant_info(types[t])->block);
				check_mat_case(w, types[t], in, shape[s].n, k,
				    shape[s].m, s % 2, in % 2 ? 128 : 0);
			}
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 }
	};
	uint64_t seed = (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid();
	const char *env = getenv("STRADDLE_SEED");
	static struct hexdom w;
	int c, rc;

	if (env != NULL)
		seed = strtoull(env, NULL, 0);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c != 's') {
			fprintf(stderr, "usage: %s [--seed N]\n", argv[0]);
			return 2;
		}
		seed = strtoull(optarg, NULL, 0);
	}
	if ((rc = hexdom_open(&w)) != 0)
		return rc;
	printf("--seed %" PRIu64 "\n", seed);
	rand_seed(seed);
	check_hexagon_mats(&w);
	check_all_not_finite(&w);
	check_hexagon_rows(&w);
	check_hexagon_moe(&w);
	check_hexagon_attn(&w);
	hexdom_close(&w);
	return report_end();
}
