/* kernels/matmul/dot_sdot.h - dot products by sdot of Armv8.2, for
 * matmul/matmul.h.  No guard: part of it.
 * Weight types map to dot kinds in traits.h; Q4_K is DOT_15.
 *
 * sdot multiplies 16 signed bytes and adds fours; in its by-element form the
 * second operand is one lane of 16 activations. */
#ifdef KERNEL_SUFFIX

/* For matmul/pack_activations.h: a tile's activations, at the current block. */
typedef struct {
	const struct tile_act *act;
} tile_acts;

#define SDOT_GROUP(i)							\
	UNROLL								\
	for (r = 0; r < PANEL_NV; r++)					\
		UNROLL							\
		for (t = 0; t < nt; t++)				\
			dot[t][r] = vdotq_laneq_s32(dot[t][r],		\
			    vreinterpretq_s8_s32(q[i][r]), x[t], i);

/* Multiply four groups. */
SIMD void
sdot(unsigned nt, vi dot[][PANEL_NV], const vi q[][PANEL_NV],
    const int8x16_t *x)
{
	unsigned t, r;

	SDOT_GROUP(0)
	SDOT_GROUP(1)
	SDOT_GROUP(2)
	SDOT_GROUP(3)
}

/* Force a load here, into any register. */
SIMD vf
vf_reloaded(const vf *p)
{
	vf v;

	__asm__ volatile("ldr %q0, %1" : "=w"(v) : "m"(*p));
	return v;
}

#ifndef TILE_LAYOUT
#define ACT_PACK_ROWS	1

/* 32 columns of a row: those of act_q8, with d0 in each lane. */
struct tile_act {
	int8x16_t q[2];
	vf d[2];		/* d and the members after it; d0 */
};

SIMD void
tile_act_make(struct tile_act *to, const struct act_q8 *x,
    const struct act_q8 *last)
{
	(void)last;
	to->q[0] = vld1q_s8(x->q);
	to->q[1] = vld1q_s8(x->q + 16);
	to->d[0] = vf_load(&x->d);
	to->d[1] = vf_set(x->d0);
}

/* d0 + dot * d.  In asm, because GCC copies d into all lanes for every other
 * one. */
SIMD vf
tile_act_scaled(vf d0, vf dot, const struct tile_act *x)
{
	__asm__("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(d0) : "w"(dot),
	    "w"(x->d[0]));
	return d0;
}

SIMD vf
tile_act_min(vf acc, vf m, const struct tile_act *x, unsigned i)
{
	return i == 0 ? vfmaq_laneq_f32(acc, m, x->d[0], 2) :
	    vfmaq_laneq_f32(acc, m, x->d[0], 3);
}

SIMD void
tile_dot(enum dot_kind kind, unsigned nt, vi dot[][PANEL_NV],
    const vi q[][PANEL_NV], const tile_acts *a, unsigned g0, unsigned n)
{
	int8x16_t x[TILE_NT];
	unsigned g, t;

	(void)kind;		/* this instruction treats all kinds alike */
	UNROLL
	for (g = 0; g < n; g += 4) {
		UNROLL
		for (t = 0; t < nt; t++)
			x[t] = a->act[t].q[(g0 + g) / 4];
		sdot(nt, dot, q + g, x);
	}
}
#endif

#define GEMV_Q_BIAS	0
#define MATMUL_ISA	ISA_NEON
#define GEMV_MAX_ROWS	NEON_GEMV_MAX_ROWS

SIMD void
gemv_dot(enum dot_kind kind, vi dot[][PANEL_NV], const vi q[][PANEL_NV],
    const struct acts *a, unsigned g0, unsigned n)
{
	int8x16_t x;
	unsigned g;

	(void)kind;
	UNROLL
	for (g = 0; g < n; g += 4) {
		x = vld1q_s8(act_of(a, 0)->q + (g0 + g) * 4);
		sdot(1, dot, q + g, &x);
	}
}

_Static_assert(offsetof(struct act_q8, sum) == 2 * sizeof(float) &&
    offsetof(struct act_q8, sum_high) == 3 * sizeof(float), "one vector");

/* Vector operations limit a tile; loads are free.  So start values of sums are
 * loaded, not copied, and so is d0 (matmul/pack_activations.h).  In gemv one
 * load brings a block's scales, which are multiplied by lane: fma would
 * overwrite d0 and need a copy of it for each sum. */
#define SCALE_BY_LANE

SIMD vi
dot_start(void)
{
	static const vf from = { ACT_MAGIC, ACT_MAGIC, ACT_MAGIC, ACT_MAGIC };

	return vi_bits(vf_reloaded(&from));
}

SIMD vf
dot_less_magic(vi dot)
{
	return vf_sub(vf_bits(dot), vf_set(ACT_MAGIC));
}

/* Two loops, as in tile_scale(). */
SIMD void
rows_scale(unsigned nt, vf acc[][PANEL_NV], vi dot[][PANEL_NV],
    const struct acts *a, const vf d[PANEL_NV])
{
	vf y[TILE_NT][PANEL_NV];
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			y[t][r] = vmulq_laneq_f32(dot_less_magic(dot[t][r]),
			    vld1q_f32(&act_of(a, t)->d), 0);
	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			acc[t][r] = vf_fma(y[t][r], d[r], acc[t][r]);
}

SIMD void
rows_min(unsigned nt, vf acc[][PANEL_NV], const struct acts *a, unsigned i,
    const vf m[PANEL_NV])
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t++) {
		float32x4_t x = vld1q_f32(&act_of(a, t)->d);

		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			acc[t][r] = i == 0 ?
			    vfmaq_laneq_f32(acc[t][r], m[r], x, 2) :
			    vfmaq_laneq_f32(acc[t][r], m[r], x, 3);
	}
}

#endif
