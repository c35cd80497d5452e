/* kernels/peak/peak.h - peak arithmetic and read bandwidth of one core, as
 * loops.  Owns: a loop for each instruction set.  Called by the coordinator's
 * roofline, which pins, times and repeats them.  No model is computed here.
 *
 * The loop must do exactly the counted work.  Accumulators start with different
 * contents and all contribute to the result, and operands pass through an empty
 * asm (PEAK_OPAQUE) wherever the compiler could hoist or share a product.
 * Accumulators pass through it too, which keeps each in a register (GCC 12
 * moves and spills them otherwise). */
#ifndef KERNELS_PEAK_PEAK_H
#define KERNELS_PEAK_PEAK_H

#include "config/base.h"

enum peak_kind { PEAK_INT8, PEAK_BF16, PEAK_F32, PEAK_NKINDS };

/* Runs `rounds` times round_ops operations; a multiply-add counts as two. */
typedef double peak_fn(uint64_t rounds, uint32_t seed);

struct peak_loop {
	const char *name;	/* "vpdpbusd zmm"; NULL = this core has none */
	peak_fn *run;
	uint32_t round_ops;
};

/* Read [p, p + nbytes) once and return a value that depends on every byte. p
 * is a multiple of 64, nbytes of PEAK_READ_STEP. ahead: distance in bytes of
 * the line prefetched with a load, 0 = leave it to the hardware, plus
 *
 *	PEAK_READ_TWICE	the line at 2 * ahead is prefetched into L2, which has
 *			room for more requests
 *	PEAK_READ_ONCE	the line is prefetched into L1 only
 *	PEAK_READ_PAGES	as PEAK_READ_ONCE, and a line of each 4 KiB page is
 *			prefetched two pages earlier (see prefetch_page()) */
#define PEAK_READ_TWICE	UINT64_C(1)
#define PEAK_READ_ONCE	UINT64_C(2)
#define PEAK_READ_PAGES	UINT64_C(4)
#define PEAK_READ_HOW	(PEAK_READ_TWICE | PEAK_READ_ONCE | PEAK_READ_PAGES)
typedef uint64_t peak_read_fn(const void *p, uint64_t nbytes, uint64_t ahead);

#define PEAK_READ_STEP	(8 * 8 * CACHELINE)

/* The same bytes as 1, 2, 4 or 8 ascending streams. */
enum { PEAK_READ_WAYS = 4 };

struct peaks {
	struct peak_loop loop[PEAK_NKINDS];
	const char *read_name;		/* "64-byte loads" */
	peak_read_fn *read[PEAK_READ_WAYS];	/* [i]: 2^i streams */
};

/* The fastest loops for these CPU flags. */
void peaks_init(struct peaks *p, uint32_t cpu_flags);

/* n dependent additions: one cycle each on every known core, so their time
 * gives the clock frequency. */
uint64_t peak_chain(uint64_t n);

/* One for each instruction set, in the order of peaks_init(). */
void peaks_init_ref(struct peaks *p);
void peaks_init_avx2(struct peaks *p);
void peaks_init_avxvnni(struct peaks *p);
void peaks_init_avx512(struct peaks *p);
void peaks_init_avx512_bf16(struct peaks *p);
void peaks_init_neon(struct peaks *p);
void peaks_init_dotprod(struct peaks *p);
void peaks_init_i8mm(struct peaks *p);
void peaks_init_arm_bf16(struct peaks *p);

/* M(0) to M(7), M(11) or M(15): accumulators are variables, because a compiler
 * may keep the elements of an array in memory. */
#define PEAK_EACH8(M)	M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)
#define PEAK_EACH12(M)	PEAK_EACH8(M) M(8) M(9) M(10) M(11)
#define PEAK_EACH16(M)	PEAK_EACH12(M) M(12) M(13) M(14) M(15)

/* Make the contents of a vector register unknown to the compiler. */
#if defined(__AVX512F__)
#define PEAK_OPAQUE(x)	__asm__("" : "+v"(x))
#elif defined(__x86_64__)
#define PEAK_OPAQUE(x)	__asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define PEAK_OPAQUE(x)	__asm__("" : "+w"(x))
#else
#define PEAK_OPAQUE(x)	__asm__("" : "+m"(x))
#endif

#endif
