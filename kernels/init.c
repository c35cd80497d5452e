/* kernels/init.c - chooses the table for a set of CPU flags; sizes that all tables
 * share. */
#include <string.h>

#include "ascend/work.h"
#include "cpu.h"
#include "kernels.h"

void
kernels_init(struct kernels *k, uint32_t cpu_flags)
{
	kernels_init_ref(k);
	k->cpu_flags = cpu_flags;
#if defined(__x86_64__)
	if (cpu_flags & CPU_AVX2)
		kernels_init_avx2(k, cpu_flags);
	if (cpu_flags & CPU_AVX_VNNI)
		kernels_init_avxvnni(k, cpu_flags);
	if (cpu_flags & CPU_AVX512_VNNI)
		kernels_init_avx512(k, cpu_flags);
	if (cpu_flags & CPU_AVX512_VNNI && cpu_flags & CPU_FAST_SCALEF)
		kernels_init_avx512_scalef(k, cpu_flags);
	if (cpu_flags & CPU_AVX512_VNNI && cpu_flags & CPU_AVX512_BF16 &&
	    cpu_flags & CPU_FAST_BF16)
		kernels_init_avx512_bf16(k, cpu_flags);
#elif defined(__aarch64__)
	if (cpu_flags & CPU_NEON)
		kernels_init_neon(k, cpu_flags);
	if (cpu_flags & CPU_DOTPROD)
		kernels_init_dotprod(k, cpu_flags);
	if (cpu_flags & CPU_DOTPROD && cpu_flags & CPU_I8MM)
		kernels_init_i8mm(k, cpu_flags);
#endif
	memcpy(k->host, k->mat, sizeof(k->host));
}

void
kernels_set_layout(struct kernels *k, enum weight_layout layout)
{
	if (layout == LAYOUT_HVX) {
		kernels_init_hexagon(k);
		memcpy(k->host, k->mat, sizeof(k->host));
	} else if (layout == LAYOUT_RKNPU)
		kernels_init_rknpu(k);
	k->device_bytes = layout_is_ascend(layout) ? ascend_kept_bytes : NULL;
	k->device_groups = layout_is_ascend(layout) ? layout - LAYOUT_ASCEND :
	    0;
}

/* The same dozen lines of each row of a tile must not share a few of the 64 sets of
 * the first-level cache: the stride in lines is odd, for the outer caches, and at
 * least 6 from each multiple of 32.  Short rows need no spreading. */
static uint64_t
spread_row(uint64_t nbytes)
{
	uint64_t lines = DIV_UP(nbytes, 64) | 1;

	while (lines > 12 && (lines % 32 < 6 || lines % 32 > 26))
		lines += 2;
	return lines * 64;
}

uint64_t
act_bytes(enum act_type t, uint64_t k)
{
	switch (t) {
	case ACT_Q8:
		return k / 32 * sizeof(struct act_q8);
	case ACT_BF16:
		return ALIGN_UP(k, 2) * sizeof(uint16_t);
	default:
		return k * sizeof(float);
	}
}

uint64_t
act_row_bytes(enum act_type t, uint64_t k)
{
	return spread_row(act_bytes(t, k));
}

uint64_t
kv_row_bytes(enum kv_type f, uint32_t head_dim)
{
	static const enum quant_type quant[KV_NTYPES] = {
		[KV_F32] = QUANT_F32,
		[KV_F16] = QUANT_F16,
		[KV_Q8_0] = QUANT_Q8_0
	};

	return quant_row_bytes(quant[f], head_dim);
}

uint64_t
attn_part_floats(uint32_t nqueries, uint32_t v_dim)
{
	return nqueries * ALIGN_UP(v_dim, 16) + 2 * ALIGN_UP(nqueries, 16);
}

/* Room for the variant that needs most: the queries, a block of scores and a factor
 * for each, the sums over a chunk and over all, and a block of K or V as floats. */
uint64_t
attn_scratch_floats(uint32_t n_rep, uint32_t head_dim, uint32_t v_dim)
{
	uint32_t n = MAX(n_rep, ATTN_QUERIES);

	return ALIGN_UP((uint64_t)n * head_dim, 16) + n * ATTN_BLOCK +
	    ALIGN_UP(n, 16) + 2 * attn_part_floats(n, v_dim) +
	    ATTN_BLOCK * ALIGN_UP(MAX(head_dim, v_dim), 16);
}
