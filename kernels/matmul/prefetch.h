/* kernels/matmul/prefetch.h - template, a part of matmul/matmul.h and
 * matmul/gemm_float.h: how memory is asked for weights that few rows need.
 * Owns: what was measured of each kind of core, with the variants taking turns
 * in one process, GB/s of one core unless said otherwise. */
#ifndef KERNELS_MATMUL_PREFETCH_H
#define KERNELS_MATMUL_PREFETCH_H

#include "kernels/cpu.h"
#include "kernels/types/pack.h"
#include "kernels/simd/simd.h"

#if defined(SIMD_VL) && defined(KERNEL_SUFFIX)

#ifndef DIRECT_MAX_ROWS
#define DIRECT_MAX_ROWS	0
#endif

/* So many panels side by side; of each the lines `near` bytes ahead (0: those of
 * a block when it begins), unkept if no cache behind L1 is to keep them, and
 * for L2, which has room for more requests than L1, those `far` bytes ahead, if
 * not 0.  If page is not 0, also a line of each page, that many bytes before
 * the near ones of it: see prefetch_page(). */
struct prefetch {
	uint32_t streams, near, far;
	int unkept;
	uint32_t page;
};

enum { MAX_STREAMS = 4 };	/* at most */

#if SIMD_VL == 4		/* Arm */
#define EACH_CORE_TYPE(m)	m(CORE_GENERIC)
#else
#define EACH_CORE_TYPE(m)							\
	m(CORE_GENERIC) m(CORE_ZEN3) m(CORE_ZEN4) m(CORE_ZEN5)	\
	m(CORE_ZEN5_SINGLE)
#endif

enum core_type {
	/* The default, by Intel's cores, which answer several streams faster
	 * than one: of 17.5, one stream gave 12, four 15.8, and asked for twice
	 * 17.5.  Later ones (AVX512_FP16) take two best as long as a word of
	 * weights is little work, of 19.7 (Q4_0, Q8_0, Q6_K): one 15.7, 17.0,
	 * 15.4, two 17.9, 18.6, 17.0, four 16.5, 15.8, 15.5; else four (Q2_K
	 * 13.4 and 14.2, IQ4_XS 17.0 and 17.6).  Arm's cores, of which none
	 * has been measured, go with these. */
	CORE_GENERIC,
	/* So does Zen 3, but asked once: of 22 (Q4_0), one stream gave 14.3,
	 * four 17.5, and asked for twice that far 16.4.  One row goes better by
	 * requests to L2 a little ahead of those to L1, with both cores reading
	 * and others beside them: of 14 to 20, it has 1.08 to 1.12 times what
	 * it has asked once (Q4_0), 1.18 to 1.22 (Q5_0), 1.20 to 1.23 (Q4_1),
	 * 1.07 to 1.10 (Q8_0), 1.16 (MXFP4), on one core alone 1.05 to 1.25;
	 * half as far to twice as far all less, or no more; two rows 0.93 to
	 * 1.04.  Where a word of weights is more work, that gives 0.80 to 0.96,
	 * and one row has one stream, 1536 to 6144 bytes ahead, all alike: of
	 * 21, Q6_K 16.0 instead of 13.7, Q5_K 15.4 instead of 13.1; so have two
	 * and four rows of those that go as in matmul/gemv_direct.h (Q4_K 1.12 and 1.05
	 * times what four streams give, Q5_K 1.20 and 1.08, Q6_K 1.21 and 1.11,
	 * IQ4_XS 1.11 and 1.10, Q2_K 1.06 and 1.03, Q3_K 1.02 and 1.04). */
	CORE_ZEN3,
	/* Zen 4 follows one stream by itself, as long as the work on a block is
	 * little, and what is asked for at a middle distance only disturbs it:
	 * of 29 (Q4_0), four streams asked for once gave 15.5, one 20.7, one
	 * of whose blocks nothing but their own lines is asked for 29.1.  It
	 * does not follow from page to page: with a line of each page told, of
	 * 32, Q4_0 has 31.2 instead of 29.4, MXFP4 30.4 instead of 21.6.  A
	 * core that is busier looks ahead too little: one row of Q5_K 22, two
	 * of Q4_K 13.7, but 30.9 and 27.0 told in time.  In between are Q4_K
	 * and Q5_K, a page and lines 384 to 512 bytes ahead, 256 and 768 no
	 * more: one row takes 0.92 to 0.95 and 0.92 to 0.99 of the time then,
	 * on one core and both (Q3_K as long as told, Q2_K 1.06, IQ4_XS 1.3,
	 * and Q4_0 1.02, Q6_K 1.03, MXFP4 1.07 of the page alone).
	 *
	 * How much it follows depends on where the compiler puts a loop:
	 * MXFP4's 30.4 are 23 for other alignments of the same code, 28.5 for
	 * those if L2 is not to keep the lines. */
	CORE_ZEN4,
	/* Zen 5 takes one stream, too, but wants to be asked: of 39, four
	 * streams asked for twice gave 26, one 36.5.  L3 takes what L2 lets go
	 * of: where it need not, both cores together gave 46.2 of 46.6 instead
	 * of 44.4.  A line of each page sooner makes that 96 % of the best of
	 * bare loops (Q4_0, Q6_K), 97 (Q8_0), 92 (Q4_K), where it was 85, 79,
	 * 89 and 82; of two and four rows (Q4_0) 88 and 73 where they were 78
	 * and 67.  One line of every block sooner does not (85 %), nor do
	 * pages of four streams. */
	CORE_ZEN5,
	/* The same where one core alone reads: each line comes as late, but
	 * more of them in that time, 42 GB/s instead of 25 for each of two.
	 * 8192 bytes ahead, of the time of 6144: Q2_K 0.95, Q3_K 0.96 to 0.97,
	 * MXFP4, Q4_K, Q5_1, F16 0.98 to 0.99, Q5_0, Q6_K, IQ4_NL 0.99 to
	 * 1.01, but nothing but nibbles and bytes 1.00 to 1.02; four rows of
	 * Q4_0 and Q4_K 0.92 to 0.94.  (For both cores 1.00 to 1.06 of one and
	 * two rows.)  9216 gives Q2_K 0.01 more and takes 0.02 to 0.04 from
	 * Q5_0, Q5_1 and Q6_K. */
	CORE_ZEN5_SINGLE
};

static inline enum core_type
core_type_of(uint32_t cpu_flags)
{
	if (SIMD_VL == 4)
		return CORE_GENERIC;
	return cpu_flags & CPU_ZEN5 ?
	    (cpu_flags & CPU_SINGLE_THREAD ? CORE_ZEN5_SINGLE : CORE_ZEN5) :
	    cpu_flags & CPU_ZEN4 ? CORE_ZEN4 :
	    cpu_flags & CPU_ZEN3 ? CORE_ZEN3 : CORE_GENERIC;
}

/* Is the work on a block so little that a core can follow a stream meanwhile?
 * One row of 32 columns is, two of Q8_0; not what takes its scales apart, where
 * that is not also many bytes. */
static inline int
prefetch_is_light(enum quant_type type, uint32_t m)
{
	return m == 1 ? pack_geometry(type).block == 32 || type == QUANT_Q6_K :
	    m == 2 && type == QUANT_Q8_0;
}

/* In matmul/gemv_direct.h scales of 16 columns stay apart, and multiply sums: on AVX2
 * where these leave 16 bits, which takes nothing more than leaving them.  (Q3_K's
 * are so in gemv_pack_acts(), too, which leaves ACT_MAGIC out of what they
 * multiply.) */
SIMD int
direct_keeps_factors(enum quant_type type)
{
	return type == QUANT_Q2_K || type == QUANT_Q3_K;
}

/* Do m rows of so many panels go as in matmul/gemv_direct.h?  With registers for the
 * weights of a block only those of one panel whose blocks are of 256 columns:
 * there is room for what the sub-blocks share, too, and less to be done (Zen 5,
 * GB/s from L2: Q2_K 43 instead of 35, Q3_K 45 and 38, Q4_K 82 and 73, Q5_K 77
 * and 62, IQ4_XS 73 and 58; four rows of Q4_K take 0.83 to 0.86 of the time, two
 * of Q2_K 0.83, from memory).  One row of Q6_K has 89 instead of 78, but from
 * memory 1 to 4 % less; Q8_0 and IQ4_NL lose 8 % from L2, too.  Where scales stay
 * apart, sums are two for each row: four rows of those do not fit. */
SIMD int
is_gemv_direct(enum quant_type type, uint32_t m, uint32_t npanels)
{
	if (SIMD_NREGS == 16)
		return m <= DIRECT_MAX_ROWS;
	return npanels == 1 && pack_geometry(type).block == 256 &&
	    m + direct_keeps_factors(type) <= DIRECT_MAX_ROWS && !prefetch_is_light(type, m);
}

/* Is it little but for scales of six bits? */
static inline int
prefetch_is_close(enum quant_type type, uint32_t m)
{
	return m == 1 && (type == QUANT_Q4_K || type == QUANT_Q5_K);
}

/* Are 32 columns of 32 rows more than ten cache lines?  Lines for L2 a little
 * ahead of these give them more (Zen 4: Q5_0 29 instead of 23, two rows of Q8_0
 * 29 instead of 24), smaller ones less (MXFP4 14 to 22 instead of 30). */
static inline int
prefetch_is_wide(enum quant_type type)
{
	return type == QUANT_Q5_0 || type == QUANT_Q5_1 || type == QUANT_Q8_0;
}

/* Would two streams keep a core that answers several waiting?  With AVX-512 it
 * has the time for two rows, and of Q8_0 for four. */
static inline int
prefetch_is_slow(enum quant_type type, uint32_t m)
{
	return type == QUANT_Q2_K || type == QUANT_Q3_K ||
	    type == QUANT_IQ4_XS || m > (type == QUANT_Q8_0 ? 4 : 2);
}

/* Is a word of weights much work, with vectors of 32 bytes? */
static inline int
prefetch_is_work(enum quant_type type)
{
	return pack_geometry(type).block == 256 || type == QUANT_IQ4_NL;
}

/* Nothing but nibbles or bytes. */
static inline int
prefetch_is_plain(enum quant_type type)
{
	return type == QUANT_Q4_0 || type == QUANT_Q4_1 || type == QUANT_Q8_0;
}

/* More rows than these are better off with tiles, whatever registers allow.
 *
 * Of the peak from memory, on Zen 5 17, 24 and 32 rows of Q4_0 have 0.71, 0.73
 * and 0.72, by tiles 0.61, 0.66 and 0.68; Q8_0 0.69, 0.71, 0.70 and 0.61, 0.65,
 * 0.67; Q4_K 0.64, 0.65, 0.65 and 0.59, 0.62, 0.63; the others as much, but Q3_K,
 * whose 0.58, 0.59 and 0.59 meet 0.56, 0.60 and 0.63; 36 rows are all alike.  On
 * Zen 4 more than 16 have not been measured.
 *
 * On an Intel core alone 13 and 16 rows have as much or more, too (Q4_0 0.54 and
 * 0.57, by tiles 0.50 and 0.53; Q8_0 0.43 and 0.49, 0.35 and 0.41; Q4_K 0.47 and
 * 0.49 both ways), but not where 16 cores share memory: there 16 rows of Q4_0
 * have 0.95 of what they have by tiles, of Q8_0 0.92, and 32 rows 0.83 and
 * 0.82. */
static inline uint32_t
core_gemv_rows(enum core_type core, enum quant_type type)
{
	if (SIMD_VL != 16)
		return UINT32_MAX;
	switch (core) {
	case CORE_GENERIC:
		return 12;
	case CORE_ZEN5:
	case CORE_ZEN5_SINGLE:
		return type == QUANT_Q3_K ? 20 : 32;
	default:
		return 16;
	}
}

/* Up to so many rows tiles take half a chunk of weights at a time, beside which
 * L1 has room for the activations of all of them: of 13 to 32 rows an Intel core
 * has 1.07 to 1.13 times as much by that (Q8_0; Q4_K 1.02, Q4_0 1.00), of 64
 * 0.99.  Zen 5 has 0.92 to 0.98 of 17 to 40 rows, of each type, and 0.99 of 64
 * (it liked halves as long as lines were asked for while weights were unpacked).
 * Zen 4 has been measured with neither. */
static inline uint32_t
core_half_chunk_rows(enum core_type core)
{
	if (SIMD_VL != 16 || core == CORE_ZEN5 || core == CORE_ZEN5_SINGLE)
		return 0;
	return core == CORE_GENERIC ? 32 : 64;
}

/* CORE_ZEN5's and CORE_ZEN5_SINGLE's, which is as good for both cores where rows
 * are more than two. */
static const struct prefetch prefetch_zen5 = { 1, 6144, 0, 1, 8192 },
    prefetch_zen5_single = { 1, 8192, 0, 1, 8192 };

/* More rows than these do not wait for memory there, and panels side by side
 * share each load of activations: 12 and 16 rows of Q4_K and Q6_K take 0.91 to
 * 0.95 of the time so.  Blocks of 32 0.97 to 1.07. */
static inline uint32_t
zen5_stream_rows(enum quant_type type)
{
	return pack_geometry(type).block == 256 ? 8 : UINT32_MAX;
}

/* Few rows times floats and halves: one panel, which is a line or two a column.
 * With vectors of 32 bytes or less it is half a line of halves: one row of those
 * is left to the core, which then has 3 % more; two and six, asked for, have 1.3
 * and 1.7 times what they have without.
 *
 * But Zen 3 has one row of four panels, asked for half a KiB ahead: of what is
 * read, F32 0.91 to 0.98 instead of 0.63 to 0.65 (a page ahead), F16 and BF16 0.91
 * to 0.98 instead of 0.55 to 0.61, whose two sums of one panel wait for
 * themselves, too; 256 bytes are as good, 1024 0.95, 2048 0.85, and lines for L2
 * that come before take a quarter.
 *
 * Of one row, a page ahead was measured on AMD's cores; an Intel core that reads
 * 19.8 had 15 to 16 of that (BF16, F16), with requests at 2048 and 6144 bytes
 * 18.4, at 2048 and 4096 17.6, at 2048 alone 17.  Zen 5's two cores, of 79 to 81,
 * had 55 (F16) and 65 (BF16) of a page ahead, and 65 and 77 with the distances of
 * its quantized weights.  Zen 4 follows words that are multiplied as they are, and
 * one row of others: of 33, BF16 33.6 instead of 30.2 (a page ahead), six rows
 * 30.1 instead of 24.6; F16 30.2 instead of 27.0, two rows, told, 28.4 instead of
 * 25.4. */
static inline const struct prefetch *
prefetch_for_float(enum core_type core, int words, uint32_t m)
{
	static const struct prefetch once[] = { { MAX_STREAMS, 512, 0, 0, 0 },
	    { 1, 4096, 0, 0, 0 } },
	    twice = { 1, 2048, 6144, 0, 0 },
	    followed = { 1, 0, 0, 0, 0 },
	    told = { 1, 1024, 8192, 0, 0 };

	switch (core) {
	case CORE_ZEN3:
		return &once[m > 1];
	case CORE_ZEN4:
		return words || m == 1 ? &followed : &told;
	case CORE_ZEN5:
		return &prefetch_zen5;
	case CORE_ZEN5_SINGLE:
		return &prefetch_zen5_single;
	default:
		return &twice;
	}
}

static inline const struct prefetch *
prefetch_for_quant(enum core_type core, enum quant_type type, uint32_t m)
{
	/* In matmul/gemv_direct.h blocks of 256 columns go through as a whole, 1.3 to
	 * 3.3 KiB of a panel of 16 rows, and the second request has to lie
	 * behind that (one row, AVX2, Q4_K and Q6_K: on an Intel core of 19.7,
	 * 14.4 and 14.1 of four streams, 15.6 and 15.1 of two, 16.3 and 15.7
	 * half as far again; on Zen 5 that reads so 28.8 and 18.7 of four, 34.3
	 * and 30.9 twice as far). */
	const int direct_256 = pack_geometry(type).block > 32 &&
	    is_gemv_direct(type, m, 2);
	static const struct prefetch several[] = {
	    { 2, 1024, 2048, 0, 0 }, { MAX_STREAMS, 1024, 2048, 0, 0 } },
	    several_256 = { 2, 1536, 3072, 0, 0 },
	    asked_once = { MAX_STREAMS, 1536, 0, 0, 0 },
	    one_once = { 1, 3072, 0, 0, 0 },
	    one_near = { MAX_STREAMS, 256, 1024, 0, 0 },
	    followed[] = { { 1, 0, 0, 1, 8192 }, { 1, 0, 1024, 0, 8192 } },
	    closely = { 1, 512, 0, 1, 4096 },
	    told = { MAX_STREAMS, 1280, 3584, 1, 0 };

	switch (core) {
	case CORE_ZEN3:
		if (m == 1)
			return prefetch_is_work(type) ? &one_once : &one_near;
		return direct_256 ? &one_once : &asked_once;
	case CORE_ZEN4:
		return prefetch_is_light(type, m) ?
		    &followed[prefetch_is_wide(type)] :
		    prefetch_is_close(type, m) ? &closely : &told;
	case CORE_ZEN5:
	case CORE_ZEN5_SINGLE:
		if (m > zen5_stream_rows(type))
			return &asked_once;
		return m <= 2 && (core == CORE_ZEN5 ||
		    prefetch_is_plain(type)) ? &prefetch_zen5 : &prefetch_zen5_single;
	default:
		return direct_256 ? &several_256 :
		    &several[prefetch_is_slow(type, m)];
	}
}

/* Line by line, for L1. */
SIMD void
prefetch_near(const struct prefetch *pf, const uint8_t *p, uint32_t n)
{
	uint32_t i;

	if (pf->unkept)
		for (i = 0; i < n; i += CACHELINE)
			prefetch_once(p + i);
	else
		for (i = 0; i < n; i += CACHELINE)
			prefetch(p + i);
}

/* n bytes, near and far ahead; and where a page begins behind the near ones'
 * first, a line of a later page. */
SIMD void
prefetch_weights(const struct prefetch *pf, const uint8_t *near,
    const uint8_t *far, uint32_t n)
{
	uint32_t i;

	if (pf->page > 0 && (uintptr_t)(near + n) % SMALL_PAGE < n)
		prefetch_page(near + n + pf->page);
	prefetch_near(pf, near, n);
	for (i = 0; i < n && pf->far > 0; i += CACHELINE)
		prefetch_l2(far + i);
}

/* Cache lines that tiles ask for on their way, for L2: of what is left, all of
 * them; of a tile's part, with each step. */
struct next_chunk {
	const uint8_t *p;
	uint32_t lines;
};

/* What one of ntiles still to come asks for in nsteps steps. */
SIMD struct next_chunk
next_chunk_share(struct next_chunk *left, uint32_t nsteps, uint32_t ntiles)
{
	struct next_chunk part = *left;
	uint32_t n;

	part.lines = DIV_UP(left->lines, nsteps * ntiles);
	n = MIN(part.lines * nsteps, left->lines);
	left->p += (uint64_t)n * CACHELINE;
	left->lines -= n;
	return part;
}

/* With vectors of 64 bytes to L1, where the next chunk has room beside this one:
 * of 48 KiB (Zen 5, 18 to 64 rows: 2 % slower to 8 % faster than to L2, 128 rows
 * 1 % either way), and nearly of 32 (Zen 4: 1 to 5 % faster). */
SIMD void
prefetch_next_chunk(struct next_chunk part, uint32_t step)
{
	const uint8_t *p = part.p + (uint64_t)step * part.lines * CACHELINE;
	uint32_t i;

	for (i = 0; i < part.lines; i++, p += CACHELINE)
		if (SIMD_VL == 16)
			prefetch(p);
		else
			prefetch_l2(p);
}

/* What lies before the first that prefetch_weights() asks for, where a stream begins
 * at p. */
SIMD void
prefetch_stream_start(const struct prefetch *pf, const uint8_t *p)
{
	if (pf->streams == 1)
		prefetch_near(pf, p, pf->near);
}

#endif
#endif
