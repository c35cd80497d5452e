/* kernels/matmul/policy.h - which matmul loop runs for a weight type and a
 * number of rows, and how that loop prefetches weights.
 * Owns: the tables, one row per core type and one row per instruction set.
 * Called by the templates of this folder and by the tests.  Does not depend on
 * the loops, nor on the contents of the rows.
 *
 *	rows <= gemv_rows	gemv, or gemv_direct where gemv_is_direct():
 *				weights go from memory to registers
 *	more			gemm: weights are unpacked in L1, a chunk at a
 *				time; half a chunk up to half_chunk_rows */
#ifndef KERNELS_MATMUL_POLICY_H
#define KERNELS_MATMUL_POLICY_H

#include "config/base.h"
#include "kernels/types/pack.h"

/* Core types that prefetch differently. */
enum core_type {
	CORE_GENERIC,		/* Intel, and every x86 core not named here */
	CORE_ZEN3,		/* AMD before Zen 4 */
	CORE_ZEN4,
	CORE_ZEN5,		/* AMD from Zen 5 on */
	CORE_ZEN5_SINGLE,	/* the same; the session has one thread */
	CORE_ARM,		/* every Arm core: none has been measured */
	CORE_NTYPES
};

/* Core types reachable on this architecture: matmul gets an entry point for
 * each. */
#ifdef __aarch64__
#define EACH_CORE_TYPE(m)	m(CORE_ARM)
#else
#define EACH_CORE_TYPE(m)						\
	m(CORE_GENERIC) m(CORE_ZEN3) m(CORE_ZEN4) m(CORE_ZEN5)		\
	m(CORE_ZEN5_SINGLE)
#endif

/* The core type that the flags of cpu.h name. */
enum core_type core_type_of(uint32_t cpu_flags);

/* Instruction sets that the templates are compiled for. */
enum matmul_isa { ISA_AVX2, ISA_AVXVNNI, ISA_AVX512, ISA_NEON, ISA_NTYPES };

/* Most rows that gemv and gemv_direct are compiled for: the sums of a panel fit
 * into registers (gemv_direct) or into L1 together with the weights (gemv). */
#define AVX2_GEMV_MAX_ROWS	8
#define VNNI_GEMV_MAX_ROWS	32
#define NEON_GEMV_MAX_ROWS	4
#define AVX2_DIRECT_MAX_ROWS	4
#define AVXVNNI_DIRECT_MAX_ROWS	2
#define AVX512_DIRECT_MAX_ROWS	4

/* Is unpacking and multiplying a block faster than loading it from memory? */
static inline int
gemv_is_light(enum quant_type type, uint32_t m)
{
	return m == 1 ? pack_geometry(type).block == 32 || type == QUANT_Q6_K :
	    m == 2 && type == QUANT_Q8_0;
}

/* Are the scales of 16 columns applied to sums, two for each row, instead of to
 * weights? */
static inline __attribute__((always_inline)) int
direct_needs_two_sums(enum quant_type type)
{
	return type == QUANT_Q2_K || type == QUANT_Q3_K;
}

/* Do m rows of npanels panels run in gemv_direct?  With 16 registers a block's
 * weights do not stay in them, and gemv_direct is faster up to direct_max_rows.
 * With 32 it is faster for one panel of blocks of 256 columns, which are
 * expensive to unpack.
 *
 * A function, not a table: the compiler folds it to decide which loops it
 * instantiates, and orders their code by how it is written. */
static inline __attribute__((always_inline)) int
gemv_is_direct(enum matmul_isa isa, uint32_t direct_max_rows,
    enum quant_type type, uint32_t m, uint32_t npanels)
{
	if (isa == ISA_AVX2 || isa == ISA_AVXVNNI)
		return m <= direct_max_rows;
	return npanels == 1 && pack_geometry(type).block == 256 &&
	    m + direct_needs_two_sums(type) <= direct_max_rows &&
	    !gemv_is_light(type, m);
}

/* How a loop over few rows prefetches weights. */
struct prefetch {
	uint32_t streams;	/* panels that are read side by side */
	uint32_t near_bytes;	/* distance of the lines for L1; 0: the lines of
				 * a block when the block begins */
	uint32_t far_bytes;	/* distance of the lines for L2, which has room
				 * for more requests; 0: none */
	int nontemporal;	/* keep lines for L1 out of the outer caches */
	uint32_t page_bytes;	/* distance by which a line of each page comes
				 * before its near lines, for the TLB; 0: none */
};

enum { MAX_STREAMS = 4 };

/* Distances that cores are tuned to; prefetch_recipes[] has the numbers. */
enum prefetch_recipe {
	PREFETCH_2_STREAMS,
	PREFETCH_2_STREAMS_LONG,
	PREFETCH_4_STREAMS,
	PREFETCH_4_STREAMS_SHORT,
	PREFETCH_4_STREAMS_L1,
	PREFETCH_4_STREAMS_ONCE,
	PREFETCH_1_STREAM_L1,
	PREFETCH_HARDWARE,	/* the hardware prefetcher follows one stream */
	PREFETCH_HARDWARE_PAGES,	/* but not from page to page */
	PREFETCH_HARDWARE_L2,
	PREFETCH_512_PAGES,
	PREFETCH_6K_PAGES,
	PREFETCH_8K_PAGES,
	PREFETCH_FLOAT_4_STREAMS,
	PREFETCH_FLOAT_1K_8K,
	PREFETCH_FLOAT_2K_6K,
	PREFETCH_FLOAT_4K,
	PREFETCH_NRECIPES
};
extern const struct prefetch prefetch_recipes[PREFETCH_NRECIPES];

/* Weight types that every core type treats alike. */
enum type_class {
	CLASS_NONE,		/* no kernel */
	CLASS_NIBBLES,		/* Q4_0, Q4_1 */
	CLASS_5_BITS,		/* Q5_0, Q5_1 */
	CLASS_Q8_0,
	CLASS_IQ4_NL,
	CLASS_MXFP4,
	CLASS_LOW_BITS,		/* Q2_K, IQ4_XS: much work per word */
	CLASS_Q3_K,
	CLASS_6_BIT_SCALES,	/* Q4_K, Q5_K */
	CLASS_Q6_K,
	CLASS_FLOAT_WORDS,	/* multiplied as they are: F32, BF16 in pairs */
	CLASS_FLOAT_HALVES,	/* F16, BF16 */
	CLASS_N
};
enum type_class type_class_of(enum quant_type type);

#define ALL_ROWS	UINT32_MAX
enum { PREFETCH_RULES = 3 };

/* The first rule with rows <= max_rows holds; the last one is for ALL_ROWS. */
struct prefetch_rule {
	uint32_t max_rows;
	enum prefetch_recipe recipe;
};

struct core_policy {
	const char *name;
	/* Where gemv_direct runs for several panels, of blocks of 256 columns:
	 * a block is 1.3 to 3.3 KiB, and the far lines have to lie after it.
	 * PREFETCH_NRECIPES: as the rules say. */
	enum prefetch_recipe direct_256;
	uint32_t half_chunk_rows;	/* with AVX-512 */
	struct {
		uint32_t gemv_rows;	/* with AVX-512; 0: floats */
		struct prefetch_rule prefetch[PREFETCH_RULES];
	} class[CLASS_N];
};
const struct core_policy *core_policy(enum core_type core);

struct isa_policy {
	const char *name;
	unsigned nregs;			/* vectors */
	uint32_t gemv_max_rows, direct_max_rows;
	/* 0: the core type decides (AVX-512).  Quantized types only. */
	uint32_t gemv_rows[QUANT_NTYPES];
	uint32_t half_chunk_rows[QUANT_NTYPES];
};
const struct isa_policy *isa_policy(enum matmul_isa isa);

/* Loops and prefetch for a call with m rows. */
struct matmul_policy {
	uint32_t gemv_rows, half_chunk_rows;
	const struct prefetch *prefetch;
};

/* Quantized weights. */
struct matmul_policy policy_for_quant(enum core_type core,
    enum matmul_isa isa, enum quant_type type, uint32_t m);

/* F32, F16 and BF16; words: they are multiplied as they lie in memory. */
const struct prefetch *prefetch_for_float(enum core_type core, int words,
    uint32_t m);

#endif
