/* kernels/matmul/policy.c - the tables of matmul/policy.h.  tests/MEASURED.md
 * has the measurements that the numbers come from. */
#include "policy.h"

#include <assert.h>

#include "kernels/cpu.h"
#include "kernels/types/table.h"

/* streams, near_bytes, far_bytes, nontemporal, page_bytes */
const struct prefetch prefetch_recipes[PREFETCH_NRECIPES] = {
	[PREFETCH_2_STREAMS] = { 2, 1024, 2048, 0, 0 },
	[PREFETCH_2_STREAMS_LONG] = { 2, 1536, 3072, 0, 0 },
	[PREFETCH_4_STREAMS] = { 4, 1024, 2048, 0, 0 },
	[PREFETCH_4_STREAMS_SHORT] = { 4, 256, 1024, 0, 0 },
	[PREFETCH_4_STREAMS_L1] = { 4, 1536, 0, 0, 0 },
	[PREFETCH_4_STREAMS_ONCE] = { 4, 1280, 3584, 1, 0 },
	[PREFETCH_1_STREAM_L1] = { 1, 3072, 0, 0, 0 },
	[PREFETCH_HARDWARE] = { 1, 0, 0, 0, 0 },
	[PREFETCH_HARDWARE_PAGES] = { 1, 0, 0, 1, 8192 },
	[PREFETCH_HARDWARE_L2] = { 1, 0, 1024, 0, 8192 },
	[PREFETCH_512_PAGES] = { 1, 512, 0, 1, 4096 },
	[PREFETCH_6K_PAGES] = { 1, 6144, 0, 1, 8192 },
	[PREFETCH_8K_PAGES] = { 1, 8192, 0, 1, 8192 },
	[PREFETCH_FLOAT_4_STREAMS] = { 4, 512, 0, 0, 0 },
	[PREFETCH_FLOAT_1K_8K] = { 1, 1024, 8192, 0, 0 },
	[PREFETCH_FLOAT_2K_6K] = { 1, 2048, 6144, 0, 0 },
	[PREFETCH_FLOAT_4K] = { 1, 4096, 0, 0, 0 }
};

#define RULE1(r)		{ { ALL_ROWS, PREFETCH_##r } }
#define RULE2(m0, r0, r)	{ { m0, PREFETCH_##r0 },		\
				{ ALL_ROWS, PREFETCH_##r } }
#define RULE3(m0, r0, m1, r1, r)					\
				{ { m0, PREFETCH_##r0 },		\
				{ m1, PREFETCH_##r1 },			\
				{ ALL_ROWS, PREFETCH_##r } }

/* Intel's cores are faster with several streams than with one.  Two are fastest
 * while a word of weights is little work, four otherwise: with two streams the
 * core would wait.  With AVX-512 two rows are little work, and four of Q8_0. */
#define GENERIC_PREFETCH						\
	.direct_256 = PREFETCH_2_STREAMS_LONG,				\
	.half_chunk_rows = 32,						\
	.class = {							\
	[CLASS_NIBBLES] = { 12, RULE2(2, 2_STREAMS, 4_STREAMS) },	\
	[CLASS_5_BITS] = { 12, RULE2(2, 2_STREAMS, 4_STREAMS) },	\
	[CLASS_Q8_0] = { 12, RULE2(4, 2_STREAMS, 4_STREAMS) },		\
	[CLASS_IQ4_NL] = { 12, RULE2(2, 2_STREAMS, 4_STREAMS) },	\
	[CLASS_MXFP4] = { 12, RULE2(2, 2_STREAMS, 4_STREAMS) },		\
	[CLASS_LOW_BITS] = { 12, RULE1(4_STREAMS) },			\
	[CLASS_Q3_K] = { 12, RULE1(4_STREAMS) },			\
	[CLASS_6_BIT_SCALES] = { 12, RULE2(2, 2_STREAMS, 4_STREAMS) },	\
	[CLASS_Q6_K] = { 12, RULE2(2, 2_STREAMS, 4_STREAMS) },		\
	[CLASS_FLOAT_WORDS] = { 0, RULE1(FLOAT_2K_6K) },		\
	[CLASS_FLOAT_HALVES] = { 0, RULE1(FLOAT_2K_6K) }		\
	}

static const struct core_policy policies[CORE_NTYPES] = {
	[CORE_GENERIC] = { .name = "generic", GENERIC_PREFETCH },

	/* One request per line.  One row is faster with prefetches into L2 a
	 * little ahead of those into L1, unless a word of weights is much work:
	 * then one stream is fastest. */
	[CORE_ZEN3] = {
		.name = "Zen 3",
		.direct_256 = PREFETCH_1_STREAM_L1,
		.half_chunk_rows = 64,
		.class = {
		[CLASS_NIBBLES] = { 16, RULE2(1, 4_STREAMS_SHORT,
		    4_STREAMS_L1) },
		[CLASS_5_BITS] = { 16, RULE2(1, 4_STREAMS_SHORT,
		    4_STREAMS_L1) },
		[CLASS_Q8_0] = { 16, RULE2(1, 4_STREAMS_SHORT,
		    4_STREAMS_L1) },
		[CLASS_IQ4_NL] = { 16, RULE2(1, 1_STREAM_L1, 4_STREAMS_L1) },
		[CLASS_MXFP4] = { 16, RULE2(1, 4_STREAMS_SHORT,
		    4_STREAMS_L1) },
		[CLASS_LOW_BITS] = { 16, RULE2(1, 1_STREAM_L1,
		    4_STREAMS_L1) },
		[CLASS_Q3_K] = { 16, RULE2(1, 1_STREAM_L1, 4_STREAMS_L1) },
		[CLASS_6_BIT_SCALES] = { 16, RULE2(1, 1_STREAM_L1,
		    4_STREAMS_L1) },
		[CLASS_Q6_K] = { 16, RULE2(1, 1_STREAM_L1, 4_STREAMS_L1) },
		[CLASS_FLOAT_WORDS] = { 0, RULE2(1, FLOAT_4_STREAMS,
		    FLOAT_4K) },
		[CLASS_FLOAT_HALVES] = { 0, RULE2(1, FLOAT_4_STREAMS,
		    FLOAT_4K) }
		}
	},

	/* The hardware prefetcher follows one stream within a page, as long as
	 * the work on a block is little; prefetching at a medium distance is
	 * slower.  A busier core needs software prefetch. */
	[CORE_ZEN4] = {
		.name = "Zen 4",
		.direct_256 = PREFETCH_NRECIPES,
		.half_chunk_rows = 64,
		.class = {
		[CLASS_NIBBLES] = { 16, RULE2(1, HARDWARE_PAGES,
		    4_STREAMS_ONCE) },
		[CLASS_5_BITS] = { 16, RULE2(1, HARDWARE_L2,
		    4_STREAMS_ONCE) },
		[CLASS_Q8_0] = { 16, RULE2(2, HARDWARE_L2, 4_STREAMS_ONCE) },
		[CLASS_IQ4_NL] = { 16, RULE2(1, HARDWARE_PAGES,
		    4_STREAMS_ONCE) },
		[CLASS_MXFP4] = { 16, RULE2(1, HARDWARE_PAGES,
		    4_STREAMS_ONCE) },
		[CLASS_LOW_BITS] = { 16, RULE1(4_STREAMS_ONCE) },
		[CLASS_Q3_K] = { 16, RULE1(4_STREAMS_ONCE) },
		[CLASS_6_BIT_SCALES] = { 16, RULE2(1, 512_PAGES,
		    4_STREAMS_ONCE) },
		[CLASS_Q6_K] = { 16, RULE2(1, HARDWARE_PAGES,
		    4_STREAMS_ONCE) },
		[CLASS_FLOAT_WORDS] = { 0, RULE1(HARDWARE) },
		[CLASS_FLOAT_HALVES] = { 0, RULE2(1, HARDWARE,
		    FLOAT_1K_8K) }
		}
	},

	/* One stream, prefetched far ahead and kept out of L3, which takes what
	 * L2 evicts.  More than 8 rows of blocks of 256 do not wait for memory,
	 * and panels side by side share each load of activations. */
	[CORE_ZEN5] = {
		.name = "Zen 5",
		.direct_256 = PREFETCH_NRECIPES,
		.half_chunk_rows = 0,
		.class = {
		[CLASS_NIBBLES] = { 32, RULE2(2, 6K_PAGES, 8K_PAGES) },
		[CLASS_5_BITS] = { 32, RULE2(2, 6K_PAGES, 8K_PAGES) },
		[CLASS_Q8_0] = { 32, RULE2(2, 6K_PAGES, 8K_PAGES) },
		[CLASS_IQ4_NL] = { 32, RULE2(2, 6K_PAGES, 8K_PAGES) },
		[CLASS_MXFP4] = { 32, RULE2(2, 6K_PAGES, 8K_PAGES) },
		[CLASS_LOW_BITS] = { 32, RULE3(2, 6K_PAGES, 8, 8K_PAGES,
		    4_STREAMS_L1) },
		[CLASS_Q3_K] = { 20, RULE3(2, 6K_PAGES, 8, 8K_PAGES,
		    4_STREAMS_L1) },
		[CLASS_6_BIT_SCALES] = { 32, RULE3(2, 6K_PAGES, 8, 8K_PAGES,
		    4_STREAMS_L1) },
		[CLASS_Q6_K] = { 32, RULE3(2, 6K_PAGES, 8, 8K_PAGES,
		    4_STREAMS_L1) },
		[CLASS_FLOAT_WORDS] = { 0, RULE1(6K_PAGES) },
		[CLASS_FLOAT_HALVES] = { 0, RULE1(6K_PAGES) }
		}
	},

	/* One core that reads alone has more bandwidth at the same latency, so
	 * that it prefetches further ahead. */
	[CORE_ZEN5_SINGLE] = {
		.name = "Zen 5, one thread",
		.direct_256 = PREFETCH_NRECIPES,
		.half_chunk_rows = 0,
		.class = {
		[CLASS_NIBBLES] = { 32, RULE2(2, 6K_PAGES, 8K_PAGES) },
		[CLASS_5_BITS] = { 32, RULE1(8K_PAGES) },
		[CLASS_Q8_0] = { 32, RULE2(2, 6K_PAGES, 8K_PAGES) },
		[CLASS_IQ4_NL] = { 32, RULE1(8K_PAGES) },
		[CLASS_MXFP4] = { 32, RULE1(8K_PAGES) },
		[CLASS_LOW_BITS] = { 32, RULE2(8, 8K_PAGES, 4_STREAMS_L1) },
		[CLASS_Q3_K] = { 20, RULE2(8, 8K_PAGES, 4_STREAMS_L1) },
		[CLASS_6_BIT_SCALES] = { 32, RULE2(8, 8K_PAGES,
		    4_STREAMS_L1) },
		[CLASS_Q6_K] = { 32, RULE2(8, 8K_PAGES, 4_STREAMS_L1) },
		[CLASS_FLOAT_WORDS] = { 0, RULE1(8K_PAGES) },
		[CLASS_FLOAT_HALVES] = { 0, RULE1(8K_PAGES) }
		}
	},

	/* As an unknown x86 core, until one has been measured. */
	[CORE_ARM] = { .name = "Arm", GENERIC_PREFETCH }
};

/* AVX2 has q as two bytes in a tile of Q8_0 and IQ4 (twice the products), and a
 * scale or a factor for each 16 columns of Q3_K and Q6_K: gemv is better up to
 * more rows there.  A chunk of two panels of those fills L1, and half a chunk
 * leaves room for the activations.
 *
 * AVX-VNNI cannot keep a block of 16 rows in its 16 registers: all other work
 * on a row favours tiles.
 *
 * NEON's tiles begin with more rows than its gemv has. */
static const struct isa_policy isa_policies[ISA_NTYPES] = {
	[ISA_AVX2] = {
		.name = "avx2", .nregs = 16,
		.gemv_max_rows = AVX2_GEMV_MAX_ROWS,
		.direct_max_rows = AVX2_DIRECT_MAX_ROWS,
		.gemv_rows = {
			[QUANT_Q4_0] = 4, [QUANT_Q4_1] = 4, [QUANT_Q5_0] = 4,
			[QUANT_Q5_1] = 4, [QUANT_Q8_0] = 8, [QUANT_IQ4_NL] = 8,
			[QUANT_MXFP4] = 4, [QUANT_Q2_K] = 4, [QUANT_Q3_K] = 8,
			[QUANT_Q4_K] = 4, [QUANT_Q5_K] = 4, [QUANT_Q6_K] = 8,
			[QUANT_IQ4_XS] = 8
		},
		.half_chunk_rows = {
			[QUANT_Q4_1] = ALL_ROWS, [QUANT_Q5_1] = ALL_ROWS,
			[QUANT_Q8_0] = ALL_ROWS, [QUANT_IQ4_NL] = ALL_ROWS,
			[QUANT_Q2_K] = ALL_ROWS, [QUANT_Q3_K] = ALL_ROWS,
			[QUANT_Q4_K] = ALL_ROWS, [QUANT_Q5_K] = ALL_ROWS,
			[QUANT_Q6_K] = ALL_ROWS, [QUANT_IQ4_XS] = ALL_ROWS
		}
	},
	[ISA_AVXVNNI] = {
		.name = "avxvnni", .nregs = 16,
		.gemv_max_rows = VNNI_GEMV_MAX_ROWS,
		.direct_max_rows = AVXVNNI_DIRECT_MAX_ROWS,
		.gemv_rows = {
			[QUANT_Q4_0] = 32, [QUANT_Q4_1] = 16, [QUANT_Q5_0] = 32,
			[QUANT_Q5_1] = 4, [QUANT_Q8_0] = 32,
			[QUANT_IQ4_NL] = 16, [QUANT_MXFP4] = 16,
			[QUANT_Q2_K] = 4, [QUANT_Q3_K] = 8, [QUANT_Q4_K] = 4,
			[QUANT_Q5_K] = 4, [QUANT_Q6_K] = 4, [QUANT_IQ4_XS] = 16
		}
	},
	[ISA_AVX512] = {
		.name = "avx512", .nregs = 32,
		.gemv_max_rows = VNNI_GEMV_MAX_ROWS,
		.direct_max_rows = AVX512_DIRECT_MAX_ROWS
	},
	[ISA_NEON] = {
		.name = "neon", .nregs = 32,
		.gemv_max_rows = NEON_GEMV_MAX_ROWS,
		.gemv_rows = {
			[QUANT_Q4_0] = 4, [QUANT_Q4_1] = 4, [QUANT_Q5_0] = 4,
			[QUANT_Q5_1] = 4, [QUANT_Q8_0] = 4, [QUANT_IQ4_NL] = 4,
			[QUANT_MXFP4] = 4, [QUANT_Q2_K] = 4, [QUANT_Q3_K] = 4,
			[QUANT_Q4_K] = 4, [QUANT_Q5_K] = 4, [QUANT_Q6_K] = 4,
			[QUANT_IQ4_XS] = 4
		}
	}
};

enum core_type
core_type_of(uint32_t cpu_flags)
{
#ifdef __aarch64__
	(void)cpu_flags;
	return CORE_ARM;
#else
	return cpu_flags & CPU_ZEN5 ? (cpu_flags & CPU_SINGLE_THREAD ?
	    CORE_ZEN5_SINGLE : CORE_ZEN5) :
	    cpu_flags & CPU_ZEN4 ? CORE_ZEN4 :
	    cpu_flags & CPU_ZEN3 ? CORE_ZEN3 : CORE_GENERIC;
#endif
}

/* The type whose rows of the tables hold for this one. */
static enum quant_type
tuned_as(enum quant_type type)
{
#define CASE(NAME, AS)	case QUANT_##NAME: return QUANT_##AS;
	switch (type) {
	QUANT_TUNED_AS(CASE)
	default:
		return type;
	}
#undef CASE
}

enum type_class
type_class_of(enum quant_type type)
{
	static const enum type_class class[QUANT_NTYPES] = {
		[QUANT_F32] = CLASS_FLOAT_WORDS,
		[QUANT_F16] = CLASS_FLOAT_HALVES,
		[QUANT_BF16] = CLASS_FLOAT_HALVES,
		[QUANT_Q4_0] = CLASS_NIBBLES,
		[QUANT_Q4_1] = CLASS_NIBBLES,
		[QUANT_Q5_0] = CLASS_5_BITS,
		[QUANT_Q5_1] = CLASS_5_BITS,
		[QUANT_Q8_0] = CLASS_Q8_0,
		[QUANT_IQ4_NL] = CLASS_IQ4_NL,
		[QUANT_MXFP4] = CLASS_MXFP4,
		[QUANT_Q2_K] = CLASS_LOW_BITS,
		[QUANT_IQ4_XS] = CLASS_LOW_BITS,
		[QUANT_Q3_K] = CLASS_Q3_K,
		[QUANT_Q4_K] = CLASS_6_BIT_SCALES,
		[QUANT_Q5_K] = CLASS_6_BIT_SCALES,
		[QUANT_Q6_K] = CLASS_Q6_K
	};

	assert(type < QUANT_NTYPES);
	type = tuned_as(type);
	assert(class[type] != CLASS_NONE);
	return class[type];
}

const struct core_policy *
core_policy(enum core_type core)
{
	assert(core < CORE_NTYPES);
	return &policies[core];
}

const struct isa_policy *
isa_policy(enum matmul_isa isa)
{
	assert(isa < ISA_NTYPES);
	return &isa_policies[isa];
}

static const struct prefetch *
find_prefetch(const struct core_policy *p, enum type_class class, uint32_t m)
{
	const struct prefetch_rule *rule = p->class[class].prefetch;

	while (m > rule->max_rows)
		rule++;
	return &prefetch_recipes[rule->recipe];
}

struct matmul_policy
policy_for_quant(enum core_type core, enum matmul_isa isa,
    enum quant_type type, uint32_t m)
{
	const struct core_policy *p = core_policy(core);
	const struct isa_policy *ip = isa_policy(isa);
	const enum type_class class = type_class_of(type);
	struct matmul_policy ret = { ip->gemv_rows[tuned_as(type)],
	    ip->half_chunk_rows[tuned_as(type)], NULL };

	if (isa == ISA_AVX512) {
		ret.gemv_rows = p->class[class].gemv_rows;
		ret.half_chunk_rows = p->half_chunk_rows;
	}
	if (p->direct_256 < PREFETCH_NRECIPES && ip->nregs == 16 &&
	    pack_geometry(type).block == 256 &&
	    gemv_is_direct(isa, ip->direct_max_rows, type, m, MAX_STREAMS))
		ret.prefetch = &prefetch_recipes[p->direct_256];
	else
		ret.prefetch = find_prefetch(p, class, m);
	return ret;
}

const struct prefetch *
prefetch_for_float(enum core_type core, int words, uint32_t m)
{
	return find_prefetch(core_policy(core), words ? CLASS_FLOAT_WORDS :
	    CLASS_FLOAT_HALVES, m);
}
