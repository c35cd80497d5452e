/* tests/unit/mem.c - tests of the memory ledger: the cap, the sums, the
 * messages. */
#include "tests/support/t.h"

#include <errno.h>
#include <string.h>

#include "shm/mem.h"

static void
check_invariant(const struct mem_ledger *m)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < MEM_NTAGS; i++) {
		sum += m->tag_bytes[i];
		ck_assert_uint_le(m->tag_bytes[i], m->tag_peak[i]);
		ck_assert_uint_le(m->tag_peak[i], m->peak_bytes);
	}
	ck_assert_uint_eq(sum, m->used_bytes);
	ck_assert_uint_le(m->used_bytes, m->peak_bytes);
	ck_assert_uint_le(m->peak_bytes, m->cap_bytes);
}

START_TEST(charges_can_reach_the_cap_but_not_exceed_it)
{
	struct mem_ledger m;
	struct err e;

	mem_ledger_init(&m, "cpu0", 1000);
	t_ok(mem_charge(&m, MEM_WEIGHTS, 600, "w", &e), &e);
	ck_assert_int_eq(mem_charge(&m, MEM_KV, 401, "kv", &e), -ENOMEM);
	ck_assert_uint_eq(m.used_bytes, 600);
	ck_assert_uint_eq(m.tag_bytes[MEM_KV], 0);
	t_ok(mem_charge(&m, MEM_KV, 400, "kv", &e), &e);
	ck_assert_uint_eq(mem_left(&m), 0);
	t_ok(mem_charge(&m, MEM_KV, 0, "nothing", &e), &e);
	ck_assert_int_eq(mem_charge(&m, MEM_KV, 1, "kv", &e), -ENOMEM);
	mem_release(&m, MEM_WEIGHTS, 600);
	ck_assert_uint_eq(mem_left(&m), 600);
	ck_assert_uint_eq(m.peak_bytes, 1000);
	ck_assert_uint_eq(m.tag_peak[MEM_WEIGHTS], 600);
	check_invariant(&m);
}
END_TEST

START_TEST(sums_never_overflow)
{
	struct mem_ledger m;
	struct err e;

	mem_ledger_init(&m, "cpu0", UINT64_MAX);
	t_ok(mem_charge(&m, MEM_WEIGHTS, UINT64_MAX - 1, "w", &e), &e);
	ck_assert_int_eq(mem_charge(&m, MEM_KV, 2, "kv", &e), -ENOMEM);
	ck_assert_int_eq(mem_charge(&m, MEM_KV, UINT64_MAX, "kv", &e),
	    -ENOMEM);
	t_ok(mem_charge(&m, MEM_KV, 1, "kv", &e), &e);
	check_invariant(&m);

	mem_ledger_init(&m, "cpu0", 10);
	t_ok(mem_charge(&m, MEM_KV, 5, "kv", &e), &e);
	ck_assert_int_eq(mem_charge(&m, MEM_KV, UINT64_MAX, "kv", &e),
	    -ENOMEM);
	check_invariant(&m);
}
END_TEST

START_TEST(a_refusal_names_session_tensor_sizes_and_remedies)
{
	static const char *const words[] = {
		"session npu3", "tensor blk.3.ffn_up", "weights", "70001",
		" 50000 ", "90000", "more sessions", "larger cap"
	};
	struct mem_ledger m;
	struct err e = { 0 };
	unsigned i;

	mem_ledger_init(&m, "npu3", 90000);
	t_ok(mem_charge(&m, MEM_KV, 40000, "kv", &e), &e);
	ck_assert_int_eq(mem_charge(&m, MEM_WEIGHTS, 70001,
	    "tensor blk.3.ffn_up", &e), -ENOMEM);
	ck_assert_int_eq(e.kind, ERR_FIT);
	for (i = 0; i < NITEMS(words); i++)
		ck_assert_msg(strstr(e.msg, words[i]) != NULL, "no \"%s\" in "
		    "\"%s\"", words[i], e.msg);
	ck_assert_int_eq(mem_charge(&m, MEM_WEIGHTS, 70001, "w", NULL),
	    -ENOMEM);
}
END_TEST

START_TEST(every_tag_has_a_unique_name)
{
	unsigned i, k;

	for (i = 0; i < MEM_NTAGS; i++)
		for (k = 0; k < i; k++)
			ck_assert_str_ne(mem_tag_name(i), mem_tag_name(k));
	ck_assert_str_eq(mem_tag_name(MEM_WEIGHTS), "weights");
	ck_assert_str_eq(mem_tag_name(MEM_RUNTIME), "runtime");
}
END_TEST

START_TEST(a_long_session_name_is_truncated)
{
	struct mem_ledger m;
	char name[200];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	mem_ledger_init(&m, name, 1);
	ck_assert_uint_eq(strlen(m.session), MAX_NAME - 1);
}
END_TEST

START_TEST(peaks_of_tags_can_be_restarted)
{
	struct mem_ledger m;
	struct err e;

	mem_ledger_init(&m, "s", 100);
	t_ok(mem_charge(&m, MEM_KV, 30, "keys", &e), &e);
	t_ok(mem_charge(&m, MEM_RUNTIME, 20, "itself", &e), &e);
	mem_release(&m, MEM_KV, 30);
	mem_restart_tag_peaks(&m);
	ck_assert_uint_eq(m.tag_peak[MEM_KV], 0);
	ck_assert_uint_eq(m.tag_peak[MEM_RUNTIME], 20);
	ck_assert_uint_eq(m.peak_bytes, 50);
	t_ok(mem_charge(&m, MEM_KV, 10, "keys", &e), &e);
	ck_assert_uint_eq(m.tag_peak[MEM_KV], 10);
	ck_assert_uint_eq(m.peak_bytes, 50);
}
END_TEST

START_TEST(random_charges_keep_the_sums_correct)
{
	uint64_t cap = t_rand_below(1000), shadow[MEM_NTAGS] = { 0 };
	uint64_t n, used = 0, peak = 0;
	struct mem_ledger m;
	unsigned i, tag;
	int rc;

	mem_ledger_init(&m, "r", cap);
	for (i = 0; i < 100000; i++) {
		tag = (unsigned)t_rand_below(MEM_NTAGS);
		if (t_rand_below(2) == 0) {
			n = t_rand_below(300);
			rc = mem_charge(&m, tag, n, "x", NULL);
			ck_assert_int_eq(rc, used + n <= cap ? 0 : -ENOMEM);
			if (rc == 0) {
				shadow[tag] += n;
				used += n;
			}
		} else {
			n = t_rand_below(shadow[tag] + 1);
			mem_release(&m, tag, n);
			shadow[tag] -= n;
			used -= n;
		}
		peak = MAX(peak, used);
		ck_assert_uint_eq(m.used_bytes, used);
		ck_assert_uint_eq(m.peak_bytes, peak);
		ck_assert_uint_eq(m.tag_bytes[tag], shadow[tag]);
	}
	check_invariant(&m);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		charges_can_reach_the_cap_but_not_exceed_it,
		sums_never_overflow,
		a_refusal_names_session_tensor_sizes_and_remedies,
		every_tag_has_a_unique_name,
		a_long_session_name_is_truncated,
		peaks_of_tags_can_be_restarted,
		random_charges_keep_the_sums_correct
	};

	return t_main("mem", 30, tests, NITEMS(tests));
}
