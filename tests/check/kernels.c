/* tests/check/kernels.c - every kernel of every CPU mask that this machine can
 * run, against definitions written out here in double (and bit for bit
 * against the reference table where a kernel must be exact).
 *
 *	check_kernels [--seed N]
 *	check_kernels --bench [TYPE | rows | attn]
 *
 * Buffers end at a page that may not be touched.  Prints the kernel, its
 * variant and the parameters of what fails; the last line is
 * "N passed, N failed"; exit 1 if any failed.  --bench is a table of speeds
 * instead, on one core, of one weight type or kind, or of all kernels.
 *
 * The parts: check/report.c (tolerances), check/mat.c, check/rows.c,
 * check/attn.c, check/speed.c, check/speed_rows.c; kernel_inputs.c makes what
 * they try, weights.c says what weights are. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/cpu.h"
#include "kernels.h"
#include "tests/support/kernel_inputs.h"

/* What table k has that one checked before, done, has not. */
static void
check_table(const struct kernels *ref, const struct kernels *k,
    const struct kernels *done, uint32_t mask)
{
	uint32_t i, n = 0;
	char flags[128];

	for (i = 0; i < QUANT_NTYPES; i++)
		if (k->mat[i].name != NULL &&
		    (!done || k->mat[i].matmul != done->mat[i].matmul ||
		    k->mat[i].pack != done->mat[i].pack)) {
			check_mat(ref, k, done, i);
			n++;
		}
	check_rows(ref, k, done);
	if (!done || k->attention != done->attention)
		check_attentions(ref, k);
	printf("%s: table %s, %u matrix kernels of its own\n",
	    cpu_flags_format(mask, flags, sizeof(flags)), k->name, n);
	fflush(stdout);
}

enum { NTABLES = 34 };		/* no flag, after each of 32, and one more */

/* The tables of no flag, the first flag that this machine has, the first two,
 * ..., whether or not each brings kernels; how x86's cores read memory is no
 * matter of what this one has, and AVX2's read otherwise than younger ones. */
static uint32_t
all_tables(struct kernels tables[NTABLES], uint32_t masks[NTABLES])
{
	uint32_t flags = cpu_flags(), bit, n = 0;

	if (flags & CPU_AVX2)
		flags |= CPU_FAST_SCALEF | CPU_FAST_BF16 | CPU_ZEN3 |
		    CPU_ZEN4 | CPU_ZEN5 | CPU_SINGLE_THREAD;
	masks[n] = 0;
	kernels_init(&tables[n++], 0);
	for (bit = 1; bit != 0; bit <<= 1)
		if (flags & bit) {
			masks[n] = masks[n - 1] | bit;
			kernels_init(&tables[n], masks[n]);
			n++;
		}
	if (flags & (CPU_AVX_VNNI | CPU_AVX512_VNNI)) {
		masks[n] = CPU_AVX2 | CPU_ZEN3;
		kernels_init(&tables[n], masks[n]);
		n++;
	}
	return n;
}

/* Of those before tables[i] the last of its name, which differs in the least,
 * or the last; NULL = it is the first. */
static const struct kernels *
table_before(const struct kernels *tables, uint32_t i)
{
	uint32_t j;

	for (j = i; j-- > 0;)
		if (strcmp(tables[j].name, tables[i].name) == 0)
			return &tables[j];
	return i > 0 ? &tables[i - 1] : NULL;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "bench", no_argument, NULL, 'b' },
		{ NULL, 0, NULL, 0 }
	};
	static struct kernels tables[NTABLES];
	uint32_t masks[NTABLES];
	uint64_t seed = (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid();
	uint32_t ntables, i;
	int c, with_bench = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'b':
			with_bench = 1;
			break;
		default:
			goto usage;
		}
	if (argc - optind > with_bench)
		goto usage;
	report_faults();
	rand_seed(seed);
	ntables = all_tables(tables, masks);
	if (with_bench) {
		if (bench(tables, ntables, argv[optind]) == 0)
			return 0;
		fprintf(stderr, "%s: no kernel for the type %s\n", argv[0],
		    argv[optind]);
		return 2;
	}
	printf("--seed %" PRIu64 "\n", seed);
	for (i = 0; i < ntables; i++)
		check_table(&tables[0], &tables[i], table_before(tables, i),
		    masks[i]);
	return report_end();
usage:
	fprintf(stderr, "usage: %s [--seed N] [--bench [TYPE | rows | attn]]\n",
	    argv[0]);
	return 2;
}
