/* kernels/matmul/pack_activations.h - template, a part of matmul/matmul.h: activations made ready for
 * tiles, once for all the weights of a call that they meet (of several calls,
 * where all their columns have room), in the order in which tiles read them.  No
 * guard: included by matmul/gemm_tile.h where there is MAT_MADE; Arm's alone.
 *
 * MAT_ISA has struct tile_act, 32 columns of MAT_MADE rows, with d0 in each lane
 * of its own in d[1]; and
 *	tile_act_make(to, x, last)	from the first of the rows and the last
 *	tile_act_scaled(d0, dot, x)	d0 + dot * d
 *	tile_act_min(acc, m, x, i)	acc + m * sum(x), i as for rows_min() */
#ifdef MAT_MADE

enum { READY_PART = MAT_L2 };

#ifdef MAT_FEW_ROWS
#error "rows that are not few are more than FEW_MOST here"
#endif
_Static_assert(sizeof(struct tile_act) * DIV_UP(FEW_MOST + 1, MAT_MADE) <=
    (FEW_MOST + 1) * READY_PART_BYTES && MAT_MADE <= 2,
    "more rows than the fewest that are not few take no more for each");
_Static_assert(sizeof(struct tile_act) * DIV_UP(MAT_ROWS, MAT_MADE) *
    CHUNK_BLOCKS <= MAT_L2, "there is room for a chunk of a group");
_Static_assert(SIMD_ACT_BIAS == 0, "a tile's sums begin with ACT_MAGIC alone");

/* Of m rows. */
SIMD uint32_t
made_acts(uint32_t m)
{
	return DIV_UP(m, MAT_MADE);
}

static inline uint64_t
tiles_bytes(uint32_t m, uint32_t k)
{
	return (uint64_t)made_acts(m) * (k / 32) * sizeof(struct tile_act);
}

/* Tiles are as even as can be without a row left over but in the last. */
static inline uint32_t
tile_rows(uint32_t m, uint32_t ntiles, uint32_t i)
{
	return MAT_MADE * even_part(made_acts(m), ntiles, i) -
	    (i + 1 == ntiles ? MAT_MADE * made_acts(m) - m : 0);
}

/* Those of a tile of nt rows, nblocks, to `to`; x: its first row. */
static void
made_tile(struct tile_act *to, const struct mat_call *c,
    const struct act_q8 *x, uint32_t nt, uint32_t nblocks)
{
	uint32_t b, t;

	for (b = 0; b < nblocks; b++)
		for (t = 0; t < nt; t += MAT_MADE)
			tile_act_make(to++, act_row(x, t * c->ldx) + b,
			    act_row(x, MIN(t + MAT_MADE, nt) * c->ldx -
			    c->ldx) + b);
}

static inline const void *
tile_after(const struct mat_call *c, const void *tile, uint32_t nt)
{
	return (const struct tile_act *)tile + made_acts(nt) *
	    ((c->k1 - c->k0) / 32);
}

/* They stay ready where they are all rows and columns of a call: 416 KiB, or 208
 * rows of 1024 columns, 52 of 4096. */
static const void *
tiles_of(const struct mat_call *c, uint32_t m)
{
	const uint32_t nblocks = (c->k1 - c->k0) / 32;
	const uint32_t ntiles = DIV_UP(m, MAT_NT);
	const struct act_q8 *x = c->x + c->k0 / 32;
	struct mat_ready *ready = c->ready;
	struct tile_act *to;
	uint32_t i, nt;

	if (m <= c->few)
		return NULL;
	to = ready->room;
	for (i = 0; i < ntiles && !ready->made; i++) {
		nt = tile_rows(m, ntiles, i);
		made_tile(to, c, x, nt, nblocks);
		x = act_row(x, nt * c->ldx);
		to += made_acts(nt) * nblocks;
	}
	ready->made = m == ready->m && nblocks == c->k / 32;
	return ready->room;
}

SIMD tile_acts
tile_at(const struct mat_call *c, const void *tile, unsigned nt, uint32_t col)
{
	return (tile_acts){ (const struct tile_act *)tile +
	    made_acts(nt) * ((col - c->k0) / 32) };
}

SIMD void
tile_next(tile_acts *a, unsigned nt)
{
	a->act += made_acts(nt);
}

SIMD void
tile_ask_acts(const tile_acts *a, unsigned nt)
{
	const uint8_t *p = (const uint8_t *)a->act;
	unsigned i;

	UNROLL
	for (i = 0; i < made_acts(nt) * sizeof(*a->act); i += CACHELINE)
		prefetch(p + i);
}

#ifdef MAT_SQUARE
#define MADE_OF(w, one, squares, i, t)	((w)->squares[i][(t) % 2])
#else
#define MADE_OF(w, one, squares, i, t)	((w)->one[i])
#endif

/* Vector operations are what a tile waits for, and loads are none: d0 is loaded
 * for each sum, to become d_x * dot in its place.  In two loops, so that a core
 * that takes instructions in their order has others to do until a product is
 * there. */
SIMD void
tile_scale(unsigned nt, vf acc[][MAT_NR], vi dot[][MAT_NR],
    const tile_acts *a, const struct mat_block *w, unsigned i)
{
	vf y[MAT_NT][MAT_NR];
	unsigned t, r;

	UNROLL
	for (t = 0; t < tile_sums(nt); t++)
		UNROLL
		for (r = 0; r < MAT_NR; r++) {
			const struct tile_act *x = a->act + t / MAT_MADE;

			y[t][r] = tile_act_scaled(vf_again(&x->d[1]),
			    vf_bits(dot[t][r]), x);
		}
	UNROLL
	for (t = 0; t < tile_sums(nt); t++)
		UNROLL
		for (r = 0; r < MAT_NR; r++)
			acc[t][r] = vf_fma(y[t][r],
			    MADE_OF(w, d, dd, i, t)[r], acc[t][r]);
}

SIMD void
tile_min(unsigned nt, vf acc[][MAT_NR], const tile_acts *a,
    const struct mat_block *w, unsigned i)
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < tile_sums(nt); t++)
		UNROLL
		for (r = 0; r < MAT_NR; r++)
			acc[t][r] = tile_act_min(acc[t][r],
			    MADE_OF(w, m, mm, i, t)[r],
			    a->act + t / MAT_MADE, i);
}

#endif
