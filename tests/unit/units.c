/* tests/unit/units.c - tests of parsing and formatting: sizes, core lists,
 * numbers. */
#include "tests/support/t.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/units.h"

START_TEST(sizes_are_parsed_exactly)
{
	static const struct {
		const char *text;
		uint64_t nbytes;
	} good[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "100B", 100 },
		{ "64K", 64 * KIB },
		{ "64KiB", 64 * KIB },
		{ "64kb", 64000 },
		{ "512M", 512 * MIB },
		{ "512MiB", 512 * MIB },
		{ "3G", 3 * GIB },
		{ "3.5GiB", 3758096384 },
		{ "3.5gib", 3758096384 },
		{ "3.5 GiB", 3758096384 },
		{ "1.5GB", 1500000000 },
		{ "0.1KiB", 102 },
		{ "1.0009765625KiB", 1025 },
		/* A double would round these two up. */
		{ "1.9999999999999999999999KiB", 2047 },
		{ "4.999999999999999999PiB", 5629499534213119 },
		{ "0.3GB", 300000000 },
		{ "1TiB", (uint64_t)1 << 40 },
		{ "1PB", 1000000000000000 },
		{ "7.9999999999999999999EiB", INT64_MAX },
		{ "9223372036854775807", INT64_MAX },
	};
	struct err e;
	uint64_t n;
	unsigned i;

	for (i = 0; i < NITEMS(good); i++) {
		t_ok(units_parse_bytes(good[i].text, &n, &e), &e);
		ck_assert_msg(n == good[i].nbytes, "%s: %" PRIu64,
		    good[i].text, n);
	}
}
END_TEST

START_TEST(invalid_sizes_are_refused_by_name)
{
	static const char *const bad[] = {
		"", " ", " 1", "1 ", "-1", "+1", "-0", "B", "GiB", ".5GiB",
		"5.GiB", "1.5.2GiB", "1e3", "0x10", "1GiBs", "1Gi", "1  GiB",
		"1iB", "1ZB", "nan", "inf", "1,5GiB", "1GiB,2", "12 parsecs",
	};
	static const char *const large[] = {
		"8EiB", "9223372036854775808", "9.3EB", "8388608TiB",
		"18446744073709551616", "99999999999999999999999999999999B",
		"340282366920938463463374607431768211456",
	};
	struct err e;
	uint64_t n = 7;
	unsigned i;

	for (i = 0; i < NITEMS(bad); i++) {
		ck_assert_msg(units_parse_bytes(bad[i], &n, &e) == -EINVAL,
		    "'%s' was accepted", bad[i]);
		ck_assert_ptr_nonnull(strstr(e.msg, bad[i]));
		ck_assert_ptr_nonnull(strstr(e.msg, "3.5GiB"));
		ck_assert_int_eq(e.kind, ERR_USAGE);
	}
	for (i = 0; i < NITEMS(large); i++)
		ck_assert_msg(units_parse_bytes(large[i], &n, NULL) == -ERANGE,
		    "'%s' was accepted", large[i]);
	ck_assert_uint_eq(n, 7);
}
END_TEST

START_TEST(a_size_is_formatted_in_its_shortest_exact_form)
{
	static const struct {
		uint64_t nbytes;
		const char *text;
	} forms[] = {
		{ 0, "0B" }, { 1, "1B" }, { 1000, "1000B" }, { 1024, "1KiB" },
		{ 1025, "1025B" }, { 1536, "1536B" }, { 10240, "10KiB" },
		{ 512 * MIB, "512MiB" }, { 3758096384, "3.5GiB" },
		{ 3 * GIB + 1, "3221225473B" }, { 1536 * MIB, "1.5GiB" },
		{ INT64_MAX, "9223372036854775807B" },
		{ UINT64_MAX, "18446744073709551615B" },
		{ (uint64_t)1 << 63, "8EiB" },
	};
	char buf[UNITS_BYTES_LEN];
	unsigned i;

	for (i = 0; i < NITEMS(forms); i++)
		ck_assert_str_eq(units_format_bytes(forms[i].nbytes, buf),
		    forms[i].text);
}
END_TEST

START_TEST(every_formatted_size_parses_back_equal)
{
	char buf[UNITS_BYTES_LEN];
	uint64_t n, back;
	struct err e;
	int i;

	for (i = 0; i < 20000; i++) {
		n = (t_rand() >> t_rand_below(64)) & INT64_MAX;
		if (t_rand_below(2))
			n &= ~(((uint64_t)1 << t_rand_below(60)) - 1);
		t_ok(units_parse_bytes(units_format_bytes(n, buf), &back, &e),
		    &e);
		ck_assert_msg(n == back, "%" PRIu64 " as %s", n, buf);
	}
}
END_TEST

START_TEST(human_readable_sizes_have_three_figures)
{
	static const struct {
		uint64_t nbytes;
		const char *text;
	} forms[] = {
		{ 0, "0 B" }, { 999, "999 B" }, { 1000, "0.977 KiB" },
		{ 1024, "1.00 KiB" }, { 3758096384, "3.50 GiB" },
		{ 804 * MIB, "804 MiB" }, { 1000 * MIB, "0.977 GiB" },
		{ 64 * MIB, "64.0 MiB" }, { 10 * MIB - 1, "10.0 MiB" },
		{ 999 * MIB + 600 * KIB, "0.976 GiB" },
		{ 4 * GIB - 4 * MIB, "4.00 GiB" }, { UINT64_MAX, "16.0 EiB" },
	};
	char buf[UNITS_BYTES_LEN];
	unsigned i;

	for (i = 0; i < NITEMS(forms); i++)
		ck_assert_str_eq(units_human_bytes(forms[i].nbytes, buf),
		    forms[i].text);
}
END_TEST

START_TEST(core_lists_are_parsed_and_formatted)
{
	struct cpuset set;
	char buf[64];
	struct err e;

	t_ok(units_parse_cpus("0-3,6", &set, &e), &e);
	ck_assert_uint_eq(cpuset_count(&set), 5);
	ck_assert_int_eq(cpuset_has(&set, 3), 1);
	ck_assert_int_eq(cpuset_has(&set, 4), 0);
	ck_assert_int_eq(cpuset_has(&set, 6), 1);
	ck_assert_int_eq(cpuset_has(&set, MAX_CPUS), 0);
	ck_assert_str_eq(units_format_cpus(&set, buf, sizeof(buf)), "0-3,6");

	t_ok(units_parse_cpus("1023,62-65,5-5", &set, &e), &e);
	ck_assert_str_eq(units_format_cpus(&set, buf, sizeof(buf)),
	    "5,62-65,1023");
	memset(&set, 0, sizeof(set));
	ck_assert_str_eq(units_format_cpus(&set, buf, sizeof(buf)), "");
}
END_TEST

START_TEST(a_truncated_core_list_ends_in_dots)
{
	struct cpuset set;
	char buf[12];
	struct err e;

	t_ok(units_parse_cpus("0,2,4,6,8,10", &set, &e), &e);
	ck_assert_str_eq(units_format_cpus(&set, buf, sizeof(buf)),
	    "0,2,4,6...");
}
END_TEST

START_TEST(random_core_sets_survive_formatting)
{
	struct cpuset set, back;
	char buf[4096];
	struct err e;
	int i, j;

	for (i = 0; i < 500; i++) {
		memset(&set, 0, sizeof(set));
		for (j = 0; j <= i; j++)
			cpuset_add(&set, (unsigned)t_rand_below(MAX_CPUS));
		units_format_cpus(&set, buf, sizeof(buf));
		t_ok(units_parse_cpus(buf, &back, &e), &e);
		ck_assert_mem_eq(&set, &back, sizeof(set));
	}
}
END_TEST

START_TEST(invalid_core_lists_are_refused)
{
	static const char *const bad[] = {
		"", ",", "0,", ",0", "0,,1", "3-1", "-3", "3-", "0--1", "0-1-2",
		"1024", "0-1024", "99999999999999999999", "0 ,1", "a", "0x1",
		"+1", "big,0",
	};
	struct cpuset set;
	struct err e;
	unsigned i;

	for (i = 0; i < NITEMS(bad); i++) {
		ck_assert_msg(units_parse_cpus(bad[i], &set, &e) == -EINVAL,
		    "'%s' was accepted", bad[i]);
		ck_assert_ptr_nonnull(strstr(e.msg, "0-3,6"));
	}
	ck_assert_int_eq(units_parse_cpus("0-3,2", &set, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "core 2 twice"));
}
END_TEST

START_TEST(sets_with_a_common_core_overlap)
{
	struct cpuset a, b, c;
	struct err e;

	t_ok(units_parse_cpus("0-63,200", &a, &e), &e);
	t_ok(units_parse_cpus("64-199", &b, &e), &e);
	t_ok(units_parse_cpus("200-300", &c, &e), &e);
	ck_assert_int_eq(cpuset_overlaps(&a, &b), 0);
	ck_assert_int_eq(cpuset_overlaps(&a, &c), 1);
}
END_TEST

START_TEST(integers_have_a_range_and_no_extra_characters)
{
	static const char *const bad[] = {
		"", "-", "+5", " 5", "5 ", "5.0", "1e2", "0x5", "five", "--5",
	};
	struct err e;
	int64_t n;
	unsigned i;

	t_ok(units_parse_int("-1", -1, 10, &n, &e), &e);
	ck_assert_int_eq(n, -1);
	t_ok(units_parse_int("010", -1, 10, &n, &e), &e);
	ck_assert_int_eq(n, 10);
	ck_assert_int_eq(units_parse_int("11", -1, 10, &n, &e), -ERANGE);
	ck_assert_str_eq(e.msg, "'11' is too large: must be -1 to 10");
	ck_assert_int_eq(units_parse_int("-2", -1, 10, &n, &e), -ERANGE);
	ck_assert_str_eq(e.msg, "'-2' is too small: must be -1 to 10");
	ck_assert_int_eq(units_parse_int("99999999999999999999", 0, INT64_MAX,
	    &n, &e), -ERANGE);
	for (i = 0; i < NITEMS(bad); i++)
		ck_assert_msg(units_parse_int(bad[i], -10, 10, &n, &e) ==
		    -EINVAL, "'%s' was accepted", bad[i]);
}
END_TEST

START_TEST(real_numbers_are_finite_and_in_range)
{
	static const char *const bad[] = {
		"", "-", "nan", "inf", "-inf", "infinity", "0x1p1", " 1", "1 ",
		"+1", "1,5", "1.5x", "1e", ".", "e5", "1.2.3",
	};
	struct err e;
	double x;
	unsigned i;

	t_ok(units_parse_real("0.8", 0, 1, &x, &e), &e);
	ck_assert(x == 0.8);
	t_ok(units_parse_real("1e-3", 0, 1, &x, &e), &e);
	ck_assert(x == 0.001);
	ck_assert_int_eq(units_parse_real("1.01", 0, 1, &x, &e), -ERANGE);
	ck_assert_str_eq(e.msg, "'1.01' is too large: must be 0 to 1");
	ck_assert_int_eq(units_parse_real("-0.1", 0, 1, &x, &e), -ERANGE);
	ck_assert_int_eq(units_parse_real("1e999", 0, HUGE_VAL, &x, NULL), 0);
	ck_assert_int_eq(units_parse_real("1e999", 0, 100, &x, &e), -ERANGE);
	for (i = 0; i < NITEMS(bad); i++)
		ck_assert_msg(units_parse_real(bad[i], -10, 10, &x, &e) ==
		    -EINVAL, "'%s' was accepted", bad[i]);
}
END_TEST

START_TEST(real_numbers_survive_formatting)
{
	char buf[UNITS_REAL_LEN];
	double x, back;
	struct err e;
	int i;

	ck_assert_str_eq(units_format_real(0.8, buf), "0.8");
	ck_assert_str_eq(units_format_real(1, buf), "1");
	for (i = 0; i < 20000; i++) {
		x = (double)(t_rand() >> 11) / (double)(1 + t_rand_below(1000));
		t_ok(units_parse_real(units_format_real(x, buf), 0, 1e300,
		    &back, &e), &e);
		ck_assert_msg(x == back, "%a as %s", x, buf);
	}
}
END_TEST

/* Where no such locale is installed this tests the C locale only. */
START_TEST(a_locale_with_decimal_commas_has_no_effect)
{
	static const char *const names[] = {
		"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8", "pt_BR.UTF-8",
	};
	char buf[UNITS_REAL_LEN];
	struct err e;
	double x;
	unsigned i;

	for (i = 0; i < NITEMS(names); i++)
		if (setlocale(LC_ALL, names[i]) != NULL)
			break;
	t_ok(units_parse_real("0.5", 0, 1, &x, &e), &e);
	ck_assert(x == 0.5);
	ck_assert_str_eq(units_format_real(0.25, buf), "0.25");
	ck_assert_int_eq(units_parse_real("0,5", 0, 1, &x, &e), -EINVAL);
	/* The thread's locale is restored. */
	ck_assert(uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
	setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(counts_have_separators)
{
	char buf[UNITS_COUNT_LEN];

	ck_assert_str_eq(units_count(0, buf), "0");
	ck_assert_str_eq(units_count(999, buf), "999");
	ck_assert_str_eq(units_count(1000, buf), "1,000");
	ck_assert_str_eq(units_count(6988, buf), "6,988");
	ck_assert_str_eq(units_count(1234567, buf), "1,234,567");
	ck_assert_str_eq(units_count(UINT64_MAX, buf),
	    "18,446,744,073,709,551,615");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		sizes_are_parsed_exactly,
		invalid_sizes_are_refused_by_name,
		a_size_is_formatted_in_its_shortest_exact_form,
		every_formatted_size_parses_back_equal,
		human_readable_sizes_have_three_figures,
		core_lists_are_parsed_and_formatted,
		a_truncated_core_list_ends_in_dots,
		random_core_sets_survive_formatting,
		invalid_core_lists_are_refused,
		sets_with_a_common_core_overlap,
		integers_have_a_range_and_no_extra_characters,
		real_numbers_are_finite_and_in_range,
		real_numbers_survive_formatting,
		a_locale_with_decimal_commas_has_no_effect,
		counts_have_separators,
	};

	return t_main("units", 20, tests, NITEMS(tests));
}
