/* kernels/matmul/instances.h - the loops of matmul/matmul.h, instantiated for
 * each weight type and number of rows, and the table of them.  No guard: part
 * of matmul/matmul.h. */
#ifdef KERNEL_SUFFIX

typedef void unpack_fn(struct weight_block *c, const uint8_t *w,
    uint32_t nblocks);
typedef void tile_fn(const struct weight_block *w, const struct matmul_call *c,
    float *sums, uint32_t col, uint32_t nblocks);
typedef void gemv_fn(const struct matmul_call *c, const struct gemv_act *x,
    uint32_t m, uint32_t col, uint32_t nblocks, uint32_t npanels);

/* Indexed by nt.  Tiles of a type depend on its traits alone. */
#define GEMM_TILE(kind, scale, nt)					\
static void								\
tile_##kind##_##scale##_##nt(const struct weight_block *w,		\
    const struct matmul_call *c, float *sums, uint32_t col,		\
    uint32_t nblocks)							\
{									\
	gemm_tile(DOT_##kind, SCALE_##scale, nt, w, c, sums, col, nblocks); \
}

#define GEMM_TILES(kind, scale)						\
EACH_TILE_NT(GEMM_TILE, kind, scale)					\
static tile_fn *const tiles_##kind##_##scale[TILE_NT + 1] = {		\
	EACH_TILE_NT(GEMM_TILE_ENTRY, kind, scale)			\
};
#define GEMM_TILE_ENTRY(kind, scale, nt) [nt] = tile_##kind##_##scale##_##nt,

#ifndef POWER_SCALES
GEMM_TILES(8, PLAIN)
GEMM_TILES(15, MIN)
GEMM_TILES(31, MIN)
GEMM_TILES(32, SUB16)
#ifdef TILE_FACTORS
GEMM_TILES(FACTOR, PLAIN)
GEMM_TILES(FACTOR, MIN16)
#else
GEMM_TILES(63, MIN16)
#endif
GEMM_TILES(128, PLAIN)
#endif
GEMM_TILES(16, PLAIN)

/* The combinations that some type's traits have. */
static tile_fn *const *const gemm_tiles[][SCALE_SUB16 + 1] = {
	[DOT_16] = { [SCALE_PLAIN] = tiles_16_PLAIN },
#ifndef POWER_SCALES
	[DOT_8] = { [SCALE_PLAIN] = tiles_8_PLAIN },
	[DOT_32] = { [SCALE_SUB16] = tiles_32_SUB16 },
	[DOT_15] = { [SCALE_MIN] = tiles_15_MIN },
	[DOT_31] = { [SCALE_MIN] = tiles_31_MIN },
#ifdef TILE_FACTORS
	[DOT_FACTOR] = { [SCALE_PLAIN] = tiles_FACTOR_PLAIN,
	    [SCALE_MIN16] = tiles_FACTOR_MIN16 },
#else
	[DOT_63] = { [SCALE_MIN16] = tiles_63_MIN16 },
#endif
	[DOT_128] = { [SCALE_PLAIN] = tiles_128_PLAIN }
#endif
};

#ifdef POWER_SCALES
#define EACH_QUANT_TYPE(m)	m(MXFP4, mxfp4)
#else
#define EACH_QUANT_TYPE(m)	QUANT_BLOCKS(m)
#endif

struct quant_loops {
	unpack_fn *unpack;
	gemv_fn *gemv;
};

#if DIRECT_MAX_ROWS > 0
/* Panels of a call to gemv_direct. */
SIMD uint32_t
direct_panels(uint32_t npanels)
{
	/* With 32 registers gemv_is_direct() allows one panel alone. */
	return SIMD_NREGS == 16 ? npanels : 1;
}
#endif

#if DIRECT_MAX_ROWS > 2
/* A function for each number of rows, whose sums stay in registers: GCC keeps
 * fewer of them there when all are in one function. */
#define DIRECT_INSTANCE(T, t, nt)					\
static void								\
direct_##t##_##nt(const struct matmul_call *c,				\
    const struct gemv_act *x,						\
    uint32_t m, uint32_t col, uint32_t nblocks, uint32_t npanels)	\
{									\
	(void)m;							\
	if (is_gemv_direct(T, nt, 1))	/* else never called */	\
		gemv_direct(T, c, x, nt, col, nblocks,			\
		    direct_panels(npanels));				\
}
#define DIRECT_INSTANCES(NAME, t, ...)					\
DIRECT_INSTANCE(QUANT_##NAME, t, 3)					\
DIRECT_INSTANCE(QUANT_##NAME, t, 4)
EACH_QUANT_TYPE(DIRECT_INSTANCES)

#define DIRECT_ENTRY(NAME, t, ...)					\
	[QUANT_##NAME] = { direct_##t##_3, direct_##t##_4 },
static gemv_fn *const direct_instances[QUANT_NTYPES][2] = {
	EACH_QUANT_TYPE(DIRECT_ENTRY)
};
#endif

#define DIRECT_CASE(nt)							\
	case nt:							\
		gemv_direct(type, c, x, nt, col, nblocks,		\
		    direct_panels(npanels));				\
		break;

SIMD void
run_gemv(enum quant_type type, const struct matmul_call *c,
    const struct gemv_act *x, uint32_t m, uint32_t col, uint32_t nblocks,
    uint32_t npanels)
{
	if (!is_gemv_direct(type, m, npanels)) {
		gemv(type, c, x, m, col, nblocks, npanels);
		return;
	}
#if DIRECT_MAX_ROWS > 0
	switch (m) {
	DIRECT_CASE(1)
	DIRECT_CASE(2)
#if DIRECT_MAX_ROWS > 2
	default:
		direct_instances[type][m - 3](c, x, m, col, nblocks, npanels);
#endif
	}
#endif
}

/* Instances by numbers of rows and panels: the sums of one row of one panel
 * stay in registers. */
SIMD void
gemv_by_rows(enum quant_type type, const struct matmul_call *c,
    const struct gemv_act *x, uint32_t m, uint32_t col, uint32_t nblocks,
    uint32_t npanels)
{
	if (m == 1 && npanels == 1)
		run_gemv(type, c, x, 1, col, nblocks, 1);
	else if (m == 1)
		run_gemv(type, c, x, 1, col, nblocks, npanels);
	else
		run_gemv(type, c, x, m, col, nblocks, npanels);
}

/* A strip is packed whole: its last panels may have no rows. */
static void
pack_strips(enum quant_type type, void *dst, const void *src, uint32_t row0,
    uint32_t nrows, uint32_t k)
{
	const uint64_t row_bytes = quant_row_bytes(type, k);
	const uint32_t have = ALIGN_UP(nrows, PANEL);

	pack_rows(type, PANEL, dst, src, row0, nrows, k);
	memset((uint8_t *)dst + (row0 + have) * row_bytes, 0,
	    (ALIGN_UP(nrows, STRIP) - have) * row_bytes);
}

#define QUANT_KERNEL(NAME, t, ...)					\
static void								\
chunk_##t(struct weight_block *c, const uint8_t *w, uint32_t nblocks)	\
{									\
	unpack_chunk(QUANT_##NAME, c, w, nblocks);			\
}									\
static void								\
gemv_##t(const struct matmul_call *c, const struct gemv_act *x,		\
    uint32_t m, uint32_t col, uint32_t nblocks, uint32_t npanels)	\
{									\
	gemv_by_rows(QUANT_##NAME, c, x, m, col, nblocks, npanels);	\
}									\
static uint64_t								\
packed_bytes_##t(uint32_t n, uint32_t k)				\
{									\
	return ALIGN_UP(ALIGN_UP(n, STRIP) *				\
	    quant_row_bytes(QUANT_##NAME, k), 64);			\
}									\
static void								\
pack_##t(void *dst, const void *src, uint32_t row0, uint32_t nrows,	\
    uint32_t n, uint32_t k)						\
{									\
	(void)n;							\
	pack_strips(QUANT_##NAME, dst, src, row0, nrows, k);		\
}
EACH_QUANT_TYPE(QUANT_KERNEL)

#define QUANT_LOOPS(NAME, t, ...) [QUANT_##NAME] = { chunk_##t, gemv_##t },
static const struct quant_loops quant_loops[QUANT_NTYPES] = {
	EACH_QUANT_TYPE(QUANT_LOOPS)
};

#endif
