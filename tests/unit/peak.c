/* tests/unit/peak.c - tests of the roofline loops: none skips work that it
 * counts. */
#include "tests/support/t.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/peak/peak.h"

/* CPU flags to keep: together they select every variant that this core has. */
static const uint32_t flag_masks[] = { ~0u, ~(uint32_t)CPU_AVX512_VNNI,
    ~(uint32_t)(CPU_AVX512_VNNI | CPU_AVX_VNNI), ~(uint32_t)CPU_I8MM,
    ~(uint32_t)(CPU_I8MM | CPU_DOTPROD), 0 };

START_TEST(every_round_of_a_loop_changes_the_result)
{
	struct peaks p;
	unsigned t, k, n;
	double r[4];

	for (t = 0; t < NITEMS(flag_masks); t++) {
		peaks_init(&p, cpu_flags() & flag_masks[t]);
		for (k = 0; k < PEAK_NKINDS; k++) {
			if (p.loop[k].name == NULL)
				continue;
			for (n = 0; n < NITEMS(r); n++)
				r[n] = p.loop[k].run(n, 1);
			for (n = 1; n < NITEMS(r); n++)
				ck_assert_msg(r[n] != r[n - 1], "%s: %u "
				    "rounds give the same as %u",
				    p.loop[k].name, n, n - 1);
			ck_assert_uint_gt(p.loop[k].round_ops, 0);
		}
		ck_assert_ptr_nonnull(p.loop[PEAK_INT8].name);
		ck_assert_ptr_nonnull(p.loop[PEAK_F32].name);
	}
	ck_assert_uint_eq(peak_chain(0), 0);
	ck_assert_uint_eq(peak_chain(160), 160 + 160 * 3);
}
END_TEST

/* A change to a byte of any line changes the sum: no line is skipped. */
START_TEST(a_read_loop_reads_every_line)
{
	const uint64_t nbytes = 2 * PEAK_READ_STEP;
	uint8_t *buf = aligned_alloc(CACHELINE, nbytes);
	uint64_t line, sum;
	struct peaks p;
	static const uint64_t aheads[] = { 0, 512,
	    512 | PEAK_READ_TWICE, 512 | PEAK_READ_ONCE,
	    512 | PEAK_READ_ONCE | PEAK_READ_PAGES };
	uint64_t ahead;
	unsigned t, way, i;

	memset(buf, 1, nbytes);
	for (t = 0; t < NITEMS(flag_masks); t++) {
		peaks_init(&p, cpu_flags() & flag_masks[t]);
		for (way = 0; way < PEAK_READ_WAYS; way++)
			for (i = 0; i < NITEMS(aheads); i++) {
				ahead = aheads[i];
				sum = p.read[way](buf, nbytes, ahead);
				for (line = 0; line < nbytes;
				    line += CACHELINE) {
					uint64_t at = line +
					    t_rand_below(CACHELINE);

					buf[at] = 2;
					ck_assert_msg(p.read[way](buf, nbytes,
					    ahead) != sum, "%s, %u streams: "
					    "byte %u", p.read_name, 1 << way,
					    (unsigned)at);
					buf[at] = 1;
				}
			}
	}
	free(buf);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_round_of_a_loop_changes_the_result,
		a_read_loop_reads_every_line,
	};

	return t_main("peak", 60, tests, NITEMS(tests));
}
