/* tests/check/kernels.c - checks of every kernel of every CPU mask that this machine
 * can run, against definitions in double (and bit for bit against the reference table
 * where a kernel must be exact).
 *
 *	check_kernels [--seed N]
 *	check_kernels --bench [TYPE | rows | attn]
 *
 * Buffers end at a guard page.  For a failure it prints the kernel, its variant and
 * the parameters; the last line is "N passed, N failed"; exits with 1 if any failed.
 * --bench prints a table of speeds on one core instead, of one weight type or kind of
 * kernel, or of all.
 *
 * The other parts: check/report.c (tolerances), check/mat.c, check/rows.c,
 * check/attn.c, check/speed*.c; support/kernel_inputs.c makes the inputs,
 * support/weights.c defines the weight types. */
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

/* Check the kernels of table k that differ from those of done, a table that was
 * checked before (NULL = none). */
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
	printf("%s: table %s, %u new matrix kernels\n",
	    cpu_flags_format(mask, flags, sizeof(flags)), k->name, n);
	fflush(stdout);
}

enum { NTABLES = 34 };		/* no flag, one for each of 32 flags, one more */

/* Make the tables of no flag, of this machine's first flag, of its first two, ...,
 * even if a flag adds no kernels.  Flags of x86 core types (prefetch policies, preferred
 * instructions) are included on every x86 core.  The last table combines a core type
 * with plain AVX2, whose prefetch policy differs from that of newer instruction sets. */
static uint32_t
make_tables(struct kernels tables[NTABLES], uint32_t masks[NTABLES])
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

/* The table to compare tables[i] with: the last one before it that has its name,
 * which differs least, or else the one before it; NULL for the first. */
static const struct kernels *
previous_table(const struct kernels *tables, uint32_t i)
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
	ntables = make_tables(tables, masks);
	if (with_bench) {
		if (bench(tables, ntables, argv[optind]) == 0)
			return 0;
		fprintf(stderr, "%s: no kernel for the type %s\n", argv[0],
		    argv[optind]);
		return 2;
	}
	printf("--seed %" PRIu64 "\n", seed);
	for (i = 0; i < ntables; i++)
		check_table(&tables[0], &tables[i], previous_table(tables, i),
		    masks[i]);
	return report_end();
usage:
	fprintf(stderr, "usage: %s [--seed N] [--bench [TYPE | rows | attn]]\n",
	    argv[0]);
	return 2;
}
