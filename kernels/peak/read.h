/* kernels/peak/read.h - read loops for vectors of PEAK_VEC bytes, 16 by
 * default.  Included by each peak file with wider vectors than the one before,
 * which defines PEAK_VEC and is compiled for it.  Defines peak_read_1() to
 * peak_read_8(), for 1 to 8 streams.
 *
 * A step reads eight lines of 64 bytes, in turn from each stream.  Each of the
 * eight has a sum of its own, so that loads are the limit, not additions. */
#ifndef PEAK_VEC
#define PEAK_VEC	16
#endif

#include "peak.h"

typedef uint64_t peak_vec __attribute__((vector_size(PEAK_VEC)));

/* Load the vectors of line i, which belongs to stream i % streams. */
#define READ_LINE(i)							\
	line = p + (i) % streams * part + (i) / streams * CACHELINE;	\
	if (nprefetches > 0 && nontemporal)				\
		__builtin_prefetch(line + ahead, 0, 0);			\
	else if (nprefetches > 0)					\
		__builtin_prefetch(line + ahead);			\
	if (nprefetches > 1)						\
		__builtin_prefetch(line + 2 * ahead, 0, 2);		\
	for (v = 0; v < CACHELINE / PEAK_VEC; v++)			\
		s##i += *(const peak_vec *)(const void *)(line +	\
		    v * PEAK_VEC);
#define SUM_LINE(i)	peak_vec s##i = { i };
#define MIX_LINE(i)	s0 += s##i * (i + 1);

static inline __attribute__((always_inline)) uint64_t
peak_read_loop(const uint8_t *p, uint64_t nbytes, uint64_t ahead,
    const unsigned streams, const unsigned nprefetches, const int nontemporal,
    const int page_lines)
{
	const uint64_t part = nbytes / streams;
	const uint8_t *line, *end = p + part;
	uint64_t sum = 0;
	unsigned v;
	PEAK_EACH8(SUM_LINE)

	for (; p < end; p += 8 / streams * CACHELINE) {
		for (v = 0; page_lines && v < streams; v++)
			if (((uintptr_t)p + v * part) % SMALL_PAGE < 8 /
			    streams * CACHELINE)
				__builtin_prefetch(p + v * part + ahead +
				    2 * SMALL_PAGE, 0, 2);
		PEAK_EACH8(READ_LINE)
	}
	PEAK_EACH8(MIX_LINE)
	for (v = 0; v < PEAK_VEC / 8; v++)
		sum += s0[v] * (v + 1);
	return sum;
}

#define PEAK_READ(streams)						\
static uint64_t								\
peak_read_##streams(const void *p, uint64_t nbytes, uint64_t ahead)	\
{									\
	const uint64_t lines = ahead & ~PEAK_READ_HOW;			\
									\
	if (ahead & PEAK_READ_TWICE)					\
		return peak_read_loop(p, nbytes, lines, streams, 2, 0,	\
		    0);							\
	if (ahead & PEAK_READ_PAGES)					\
		return peak_read_loop(p, nbytes, lines, streams, 1, 1,	\
		    1);							\
	if (ahead & PEAK_READ_ONCE)					\
		return peak_read_loop(p, nbytes, lines, streams, 1, 1,	\
		    0);							\
	return peak_read_loop(p, nbytes, lines, streams, lines != 0, 0,	\
	    0);								\
}
PEAK_READ(1)
PEAK_READ(2)
PEAK_READ(4)
PEAK_READ(8)

static inline void
peak_read_init(struct peaks *p, const char *name)
{
	static peak_read_fn *const ways[PEAK_READ_WAYS] = {
		peak_read_1, peak_read_2, peak_read_4, peak_read_8
	};
	unsigned i;

	p->read_name = name;
	for (i = 0; i < PEAK_READ_WAYS; i++)
		p->read[i] = ways[i];
}
