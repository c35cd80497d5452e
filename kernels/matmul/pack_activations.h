/* kernels/matmul/pack_activations.h - template: activations packed for tiles,
 * in the order in which tiles read them, once for all weights of a call (of
 * several calls, where all columns fit).  Part of matmul/matmul.h, Arm only.
 * No guard: included by matmul/gemm_tile.h where ACT_PACK_ROWS is defined.
 *
 * DOT_HEADER defines struct tile_act, 32 columns of ACT_PACK_ROWS rows, with
 * d0 of its own in each lane of d[1], and
 *
 *	tile_act_make(to, x, last)	from the first of the rows and the last
 *	tile_act_scaled(d0, dot, x)	d0 + dot * d
 *	tile_act_min(acc, m, x, i)	acc + m * sum(x), i as for rows_min() */
#ifdef ACT_PACK_ROWS

enum { PACK_MAX_BYTES = GROUP_L2_BYTES };

_Static_assert(MATMUL_ISA == ISA_NEON,
    "tiles have more than GEMV_MAX_ROWS rows");
_Static_assert(sizeof(struct tile_act) *
    DIV_UP(GEMV_MAX_ROWS + 1, ACT_PACK_ROWS) <=
    (GEMV_MAX_ROWS + 1) * READY_PART_BYTES && ACT_PACK_ROWS <= 2,
    "the fewest rows of a tile take the most room for each");
_Static_assert(sizeof(struct tile_act) * DIV_UP(GROUP_ROWS, ACT_PACK_ROWS) *
    CHUNK_BLOCKS <= GROUP_L2_BYTES, "a chunk of a group has room");
_Static_assert(SIMD_ACT_BIAS == 0, "sums start from ACT_MAGIC alone");

/* struct tile_act for each block of m rows. */
SIMD uint32_t
packed_acts(uint32_t m)
{
	return DIV_UP(m, ACT_PACK_ROWS);
}

static inline uint64_t
tile_acts_bytes(uint32_t m, uint32_t k)
{
	return (uint64_t)packed_acts(m) * (k / 32) * sizeof(struct tile_act);
}

/* Rows of tile i: as even as can be, with an odd row in the last tile alone. */
static inline uint32_t
tile_rows(uint32_t m, uint32_t ntiles, uint32_t i)
{
	return ACT_PACK_ROWS * even_part(packed_acts(m), ntiles, i) -
	    (i + 1 == ntiles ? ACT_PACK_ROWS * packed_acts(m) - m : 0);
}

/* Pack nblocks blocks of a tile of nt rows, the first at x. */
static void
pack_tile_acts(struct tile_act *to, const struct matmul_call *c,
    const struct act_q8 *x, uint32_t nt, uint32_t nblocks)
{
	uint32_t b, t;

	for (b = 0; b < nblocks; b++)
		for (t = 0; t < nt; t += ACT_PACK_ROWS)
			tile_act_make(to++, act_row(x, t * c->ldx) + b,
			    act_row(x, MIN(t + ACT_PACK_ROWS, nt) * c->ldx -
			    c->ldx) + b);
}

static inline const void *
next_tile_acts(const struct matmul_call *c, const void *tile, uint32_t nt)
{
	return (const struct tile_act *)tile + packed_acts(nt) *
	    ((c->k1 - c->k0) / 32);
}

/* Pack m rows, columns [c->k0, c->k1), unless an earlier call has.  They stay
 * packed if they are all rows and columns of the call: up to 416 KiB, which is
 * 208 rows of 1024 columns or 52 of 4096. */
static const void *
pack_activations(const struct matmul_call *c, uint32_t m)
{
	const uint32_t nblocks = (c->k1 - c->k0) / 32;
	const uint32_t ntiles = DIV_UP(m, TILE_NT);
	const struct act_q8 *x = c->x + c->k0 / 32;
	struct mat_ready *ready = c->ready;
	struct tile_act *to;
	uint32_t i, nt;

	if (m <= c->gemv_rows)
		return NULL;
	to = ready->room;
	for (i = 0; i < ntiles && !ready->made; i++) {
		nt = tile_rows(m, ntiles, i);
		pack_tile_acts(to, c, x, nt, nblocks);
		x = act_row(x, nt * c->ldx);
		to += packed_acts(nt) * nblocks;
	}
	ready->made = m == ready->m && nblocks == c->k / 32;
	return ready->room;
}

SIMD tile_acts
tile_acts_at(const struct matmul_call *c, const void *tile, unsigned nt,
    uint32_t col)
{
	return (tile_acts){ (const struct tile_act *)tile +
	    packed_acts(nt) * ((col - c->k0) / 32) };
}

SIMD void
tile_acts_next(tile_acts *a, unsigned nt)
{
	a->act += packed_acts(nt);
}

SIMD void
prefetch_tile_acts(const tile_acts *a, unsigned nt)
{
	const uint8_t *p = (const uint8_t *)a->act;
	unsigned i;

	UNROLL
	for (i = 0; i < packed_acts(nt) * sizeof(*a->act); i += CACHELINE)
		prefetch(p + i);
}

#ifdef GEMM_2X2
#define TILE_SCALE(w, one, squares, i, t)	((w)->squares[i][(t) % 2])
#else
#define TILE_SCALE(w, one, squares, i, t)	((w)->one[i])
#endif

/* Vector operations limit a tile; loads are free.  So d0 is loaded for each
 * sum, to become d_x * dot in place.  Two loops, so that a core that executes
 * in order has other work until a product is there. */
SIMD void
tile_scale(unsigned nt, vf acc[][PANEL_NV], vi dot[][PANEL_NV],
    const tile_acts *a, const struct weight_block *w, unsigned i)
{
	vf y[TILE_NT][PANEL_NV];
	unsigned t, r;

	UNROLL
	for (t = 0; t < tile_sums(nt); t++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++) {
			const struct tile_act *x = a->act + t / ACT_PACK_ROWS;

			y[t][r] = tile_act_scaled(vf_reloaded(&x->d[1]),
			    vf_bits(dot[t][r]), x);
		}
	UNROLL
	for (t = 0; t < tile_sums(nt); t++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			acc[t][r] = vf_fma(y[t][r],
			    TILE_SCALE(w, d, dd, i, t)[r], acc[t][r]);
}

SIMD void
tile_min(unsigned nt, vf acc[][PANEL_NV], const tile_acts *a,
    const struct weight_block *w, unsigned i)
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < tile_sums(nt); t++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			acc[t][r] = tile_act_min(acc[t][r],
			    TILE_SCALE(w, m, mm, i, t)[r],
			    a->act + t / ACT_PACK_ROWS, i);
}

#endif
