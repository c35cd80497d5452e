/* kernels/peak/peak.h - the most that one core can compute and read, as loops.
 * Owns: loops that do nothing else, by instruction set.  Called by the
 * coordinator's roofline, which pins, times and repeats them.  They are no
 * kernels: nothing that a model computes goes through here.
 *
 * What keeps a compiler from doing less than is counted: accumulators begin
 * with different contents and all end in the result; operands pass through an
 * empty asm (PEAK_OPAQUE) wherever a product could be taken out of the loop or
 * be shared.  And from doing more: accumulators pass through it, too, which
 * keeps each in one register (GCC 12 moves and spills them otherwise). */
#ifndef KERNELS_PEAK_PEAK_H
#define KERNELS_PEAK_PEAK_H

#include "config/base.h"

enum peak_kind { PEAK_INT8, PEAK_BF16, PEAK_F32, PEAK_NKINDS };

/* rounds times round_ops operations; a multiply with its add counts as two. */
typedef double peak_fn(uint64_t rounds, uint32_t seed);

struct peak_loop {
	const char *name;	/* "vpdpbusd zmm"; NULL = not on this core */
	peak_fn *run;
	uint32_t round_ops;
};

/* Read [p, p + nbytes) once and return something of every byte.  p is a
 * multiple of 64, nbytes of PEAK_READ_STEP.  ahead: bytes from a load to the
 * line asked for beside it, 0 = leave it to the hardware; with PEAK_READ_TWICE
 * the line at 2 * ahead is asked for too, for L2, which has room for more; with
 * PEAK_READ_ONCE it is asked for as what no cache need keep; with
 * PEAK_READ_PAGES besides, a line of each page of 4 KiB is asked for two pages
 * sooner than its others (simd.h, prefetch_page(), says why). */
#define PEAK_READ_TWICE	UINT64_C(1)
#define PEAK_READ_ONCE	UINT64_C(2)
#define PEAK_READ_PAGES	UINT64_C(4)
#define PEAK_READ_HOW	(PEAK_READ_TWICE | PEAK_READ_ONCE | PEAK_READ_PAGES)
typedef uint64_t peak_read_fn(const void *p, uint64_t nbytes, uint64_t ahead);

#define PEAK_READ_STEP	(8 * 8 * CACHELINE)

/* The same bytes as 1, 2, 4 or 8 ascending streams at once. */
enum { PEAK_READ_WAYS = 4 };

struct peaks {
	struct peak_loop loop[PEAK_NKINDS];
	const char *read_name;		/* "64-byte loads" */
	peak_read_fn *read[PEAK_READ_WAYS];	/* [i]: 2^i streams */
};

/* The best that these CPU flags allow. */
void peaks_init(struct peaks *p, uint32_t cpu_flags);

/* n additions, each of the one before: one cycle each on every core that we
 * know of, and so the clock that the core runs at. */
uint64_t peak_chain(uint64_t n);

/* Each file's own. */
void peaks_init_ref(struct peaks *p);
void peaks_init_avx2(struct peaks *p);
void peaks_init_avxvnni(struct peaks *p);
void peaks_init_avx512(struct peaks *p);
void peaks_init_avx512_bf16(struct peaks *p);
void peaks_init_neon(struct peaks *p);
void peaks_init_dotprod(struct peaks *p);
void peaks_init_i8mm(struct peaks *p);
void peaks_init_arm_bf16(struct peaks *p);

/* M(0) .. M(7), M(11), M(15): an accumulator is a variable, not an element of
 * an array that a compiler may keep in memory. */
#define PEAK_EACH8(M)	M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)
#define PEAK_EACH12(M)	PEAK_EACH8(M) M(8) M(9) M(10) M(11)
#define PEAK_EACH16(M)	PEAK_EACH12(M) M(12) M(13) M(14) M(15)

/* A vector register whose contents the compiler knows nothing of. */
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
