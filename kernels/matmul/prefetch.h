/* kernels/matmul/prefetch.h - template: software prefetch of weights.
 * Owns: the instructions.  Included by matmul/matmul.h and matmul/gemm_float.h;
 * matmul/policy.h decides how far ahead they reach. */
#ifndef KERNELS_MATMUL_PREFETCH_H
#define KERNELS_MATMUL_PREFETCH_H

#include "policy.h"
#include "kernels/simd/simd.h"

#if defined(SIMD_VL) && defined(KERNEL_SUFFIX)

/* ---- Few rows: weights stream through registers ---- */

/* Prefetch [p, p + n) into L1, line by line. */
SIMD void
prefetch_near(const struct prefetch *pf, const uint8_t *p, uint32_t n)
{
	uint32_t i;

	if (pf->nontemporal)
		for (i = 0; i < n; i += CACHELINE)
			prefetch_once(p + i);
	else
		for (i = 0; i < n; i += CACHELINE)
			prefetch(p + i);
}

/* Prefetch n bytes at near and, where pf has a far distance, n bytes at far.
 * If a page begins within the n bytes after near, also a line of a later page. */
SIMD void
prefetch_weights(const struct prefetch *pf, const uint8_t *near,
    const uint8_t *far, uint32_t n)
{
	uint32_t i;

	if (pf->page_bytes > 0 && (uintptr_t)(near + n) % SMALL_PAGE < n)
		prefetch_page(near + n + pf->page_bytes);
	prefetch_near(pf, near, n);
	for (i = 0; i < n && pf->far_bytes > 0; i += CACHELINE)
		prefetch_l2(far + i);
}

/* A stream begins at p: prefetch the lines that prefetch_weights(), which
 * starts near_bytes after p, leaves out. */
SIMD void
prefetch_stream_start(const struct prefetch *pf, const uint8_t *p)
{
	if (pf->streams == 1)
		prefetch_near(pf, p, pf->near_bytes);
}

/* ---- Many rows: tiles prefetch the next chunk of weights ---- */

/* Lines of the next chunk, from p on.  For a chunk: all that are left.  For a
 * tile: those of each step. */
struct next_chunk {
	const uint8_t *p;
	uint32_t lines;
};

/* Takes the share of one tile of nsteps steps, where ntiles are still to come,
 * off left. */
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

/* Into L1 with vectors of 64 bytes, where a chunk and the next fit into 48 KiB
 * (Zen 5) and nearly into 32 KiB (Zen 4); else into L2. */
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

#endif
#endif
