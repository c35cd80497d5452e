/* tests/unit/policy.c - tests of the tables that choose matmul's loops and
 * prefetches. */
#include "kernels/cpu.h"
#include "kernels/kernels.h"
#include "kernels/matmul/policy.h"
#include "tests/support/t.h"

/* Every type with a matrix kernel on some machine. */
#define TYPE(NAME, ...)	QUANT_##NAME,
static const enum quant_type floats[] = { QUANT_DENSE(TYPE) };
static const enum quant_type quants[] = { QUANT_BLOCKS(TYPE) };

/* Vectors of a panel: the templates' PANEL_NV for quantized weights. */
enum { PANEL_VECTORS = 2 };

START_TEST(every_core_type_has_rules_for_every_class)
{
	const struct core_policy *p;
	unsigned core, class, i;

	for (core = 0; core < CORE_NTYPES; core++) {
		p = core_policy(core);
		ck_assert_ptr_nonnull(p->name);
		ck_assert_uint_le(p->direct_256, PREFETCH_NRECIPES);
		for (class = CLASS_NONE + 1; class < CLASS_N; class++) {
			const struct prefetch_rule *r =
			    p->class[class].prefetch;

			ck_assert_uint_gt(r[0].max_rows, 0);
			for (i = 0; r[i].max_rows != ALL_ROWS; i++) {
				ck_assert_uint_lt(r[i].recipe,
				    PREFETCH_NRECIPES);
				ck_assert_uint_lt(i + 1, PREFETCH_RULES);
				ck_assert_uint_lt(r[i].max_rows,
				    r[i + 1].max_rows);
			}
			ck_assert_uint_lt(r[i].recipe, PREFETCH_NRECIPES);
		}
	}
}
END_TEST

START_TEST(every_kernel_has_a_class_of_its_kind)
{
	struct kernels k;
	unsigned i, found = 0;

	for (i = 0; i < NITEMS(floats); i++)
		ck_assert_uint_ge(type_class_of(floats[i]), CLASS_FLOAT_WORDS);
	for (i = 0; i < NITEMS(quants); i++) {
		ck_assert_uint_gt(type_class_of(quants[i]), CLASS_NONE);
		ck_assert_uint_lt(type_class_of(quants[i]), CLASS_FLOAT_WORDS);
	}
	kernels_init(&k, cpu_flags());
	for (i = 0; i < QUANT_NTYPES; i++)
		if (k.mat[i].name != NULL) {
			ck_assert_uint_gt(type_class_of(i), CLASS_NONE);
			found++;
		}
	ck_assert_uint_eq(found, NITEMS(floats) + NITEMS(quants));
}
END_TEST

START_TEST(every_recipe_is_used_and_reads_whole_lines)
{
	unsigned used[PREFETCH_NRECIPES + 1] = { 0 }, core, class, i;

	for (core = 0; core < CORE_NTYPES; core++) {
		const struct core_policy *p = core_policy(core);

		used[p->direct_256]++;
		for (class = CLASS_NONE + 1; class < CLASS_N; class++)
			for (i = 0; i < PREFETCH_RULES; i++)
				if (p->class[class].prefetch[i].max_rows > 0)
					used[p->class[class].prefetch[i]
					    .recipe]++;
	}
	for (i = 0; i < PREFETCH_NRECIPES; i++) {
		const struct prefetch *pf = &prefetch_recipes[i];

		ck_assert_uint_gt(used[i], 0);
		ck_assert_uint_ge(pf->streams, 1);
		ck_assert_uint_le(pf->streams, MAX_STREAMS);
		ck_assert_uint_eq(pf->near_bytes % CACHELINE, 0);
		ck_assert_uint_eq(pf->far_bytes % CACHELINE, 0);
		ck_assert_uint_eq(pf->page_bytes % SMALL_PAGE, 0);
		if (pf->far_bytes > 0)
			ck_assert_uint_gt(pf->far_bytes, pf->near_bytes);
	}
}
END_TEST

/* matmul multiplies a partial panel in calls of four rows, so every type needs
 * gemv for four.  More than gemv_max_rows would overflow its accumulators. */
START_TEST(row_limits_stay_within_the_compiled_loops)
{
	const struct isa_policy *ip;
	struct matmul_policy p;
	unsigned core, isa, i;

	for (core = 0; core < CORE_NTYPES; core++)
		for (isa = 0; isa < ISA_NTYPES; isa++)
			for (i = 0; i < NITEMS(quants); i++) {
				ip = isa_policy(isa);
				p = policy_for_quant(core, isa, quants[i], 1);
				ck_assert_uint_ge(p.gemv_rows, 4);
				ck_assert_uint_le(p.gemv_rows,
				    ip->gemv_max_rows);
				ck_assert_uint_le(ip->direct_max_rows,
				    p.gemv_rows);
				/* pack_activations.h asserts this. */
				if (isa == ISA_NEON)
					ck_assert_uint_eq(p.gemv_rows,
					    ip->gemv_max_rows);
			}
}
END_TEST

START_TEST(accumulators_of_gemv_direct_take_at_most_half_of_the_registers)
{
	const struct isa_policy *ip;
	unsigned isa, i, m, sums;

	for (isa = 0; isa < ISA_NTYPES; isa++) {
		ip = isa_policy(isa);
		ck_assert_ptr_nonnull(ip->name);
		for (i = 0; i < NITEMS(quants); i++)
			for (m = 1; m <= 300; m++) {
				if (!gemv_is_direct(isa, ip->direct_max_rows,
				    quants[i], m, 1))
					continue;
				sums = m + (ip->nregs > 16 &&
				    direct_needs_two_sums(quants[i]));
				ck_assert_uint_le(sums * PANEL_VECTORS,
				    ip->nregs / 2);
			}
	}
}
END_TEST

START_TEST(every_number_of_rows_has_a_rule)
{
	static const uint32_t rows[] = { 1, 2, 3, 4, 5, 8, 9, 32, 33, 300,
	    UINT32_MAX };
	unsigned core, isa, i, j;

	for (core = 0; core < CORE_NTYPES; core++)
		for (j = 0; j < NITEMS(rows); j++) {
			for (isa = 0; isa < ISA_NTYPES; isa++)
				for (i = 0; i < NITEMS(quants); i++)
					ck_assert_ptr_nonnull(policy_for_quant(
					    core, isa, quants[i],
					    rows[j]).prefetch);
			ck_assert_ptr_nonnull(prefetch_for_float(core, 0,
			    rows[j]));
			ck_assert_ptr_nonnull(prefetch_for_float(core, 1,
			    rows[j]));
		}
}
END_TEST

#ifndef __aarch64__
START_TEST(cpu_flags_determine_the_core_type)
{
	ck_assert_uint_eq(core_type_of(CPU_AVX2), CORE_GENERIC);
	ck_assert_uint_eq(core_type_of(CPU_SINGLE_THREAD), CORE_GENERIC);
	ck_assert_uint_eq(core_type_of(CPU_ZEN3), CORE_ZEN3);
	ck_assert_uint_eq(core_type_of(CPU_ZEN4 | CPU_SINGLE_THREAD),
	    CORE_ZEN4);
	ck_assert_uint_eq(core_type_of(CPU_ZEN5), CORE_ZEN5);
	ck_assert_uint_eq(core_type_of(CPU_ZEN5 | CPU_SINGLE_THREAD),
	    CORE_ZEN5_SINGLE);
}
END_TEST
#endif

int
main(void)
{
	const TTest *const tests[] = {
		every_core_type_has_rules_for_every_class,
		every_kernel_has_a_class_of_its_kind,
		every_recipe_is_used_and_reads_whole_lines,
		row_limits_stay_within_the_compiled_loops,
		accumulators_of_gemv_direct_take_at_most_half_of_the_registers,
#ifndef __aarch64__
		cpu_flags_determine_the_core_type,
#endif
		every_number_of_rows_has_a_rule
	};

	return t_main("policy", 20, tests, NITEMS(tests));
}
