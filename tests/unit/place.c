/* tests/unit/place.c - tests of placement: spans and reasons, for any answers
 * of a device. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/place.h"

enum { MAX_TEST_OPS = 40 };

/* Answers by op; the reason contains the index of the op. */
struct device {
	int supported[MAX_TEST_OPS];
};

static int
device_supports(void *arg, const struct program *p, const struct op *op,
    char reason[REASON_LEN])
{
	const struct device *d = arg;
	ptrdiff_t i = op - p->op;

	reason[0] = '\0';
	if (d->supported[i])
		return 1;
	snprintf(reason, REASON_LEN, "reason %d", (int)i);
	return 0;
}

/* Ops of random kinds: placement does not care whether they make sense. */
static void
make_program(struct program *p, struct op *ops, uint32_t nops,
    uint32_t nbody)
{
	uint32_t i;

	memset(p, 0, sizeof(*p));
	memset(ops, 0, nops * sizeof(*ops));
	for (i = 0; i < nops; i++) {
		ops[i].kind = (enum op_kind)t_rand_below(OP_NKINDS);
		ops[i].layer = (int16_t)i;
	}
	p->op = ops;
	p->nops = nops;
	p->nbody = nbody;
}

static void
check_spans(const struct program *p, const struct device *d,
    const struct placement *pl)
{
	const struct span *s;
	uint32_t i, o, at = 0;

	for (i = 0; i < pl->nspans; i++) {
		s = &pl->span[i];
		ck_assert_uint_eq(s->first, at);
		ck_assert_uint_lt(s->first, s->end);
		at = s->end;
		ck_assert_int_eq(s->end <= p->nbody, i < pl->nbody_spans);
		ck_assert_int_eq(s->first >= p->nbody, i >= pl->nbody_spans);
		for (o = s->first; o < s->end; o++)
			ck_assert_int_eq(d->supported[o], s->on_device);
		/* Adjacent spans differ, or they would be one. */
		if (i > 0 && s->first != p->nbody)
			ck_assert_int_ne(s->on_device, s[-1].on_device);
	}
	ck_assert_uint_eq(at, p->nops);
}

START_TEST(spans_cover_all_ops_and_never_cross_into_the_head)
{
	struct op ops[MAX_TEST_OPS];
	struct device d;
	struct placement pl;
	struct program p;
	struct err e;
	uint32_t nops, n_supported, o;
	unsigned i;

	for (i = 0; i < 2000; i++) {
		nops = (uint32_t)t_rand_below(MAX_TEST_OPS + 1);
		make_program(&p, ops, nops, (uint32_t)t_rand_below(nops + 1));
		for (n_supported = o = 0; o < nops; o++)
			n_supported += d.supported[o] = t_rand_below(3) > 0;
		t_ok(place_program(&p, device_supports, &d, 0, &pl, &e), &e);
		ck_assert_uint_eq(pl.device_ops, n_supported);
		ck_assert_uint_eq(pl.cpu_ops, nops - n_supported);
		check_spans(&p, &d, &pl);
		placement_free(&pl);
	}
}
END_TEST

START_TEST(every_fallback_keeps_its_reason)
{
	struct op ops[MAX_TEST_OPS];
	struct device d;
	struct placement pl;
	struct program p;
	struct err e;
	char want[32];
	uint32_t o;

	make_program(&p, ops, MAX_TEST_OPS, 30);
	for (o = 0; o < MAX_TEST_OPS; o++)
		d.supported[o] = o % 3 != 1;
	t_ok(place_program(&p, device_supports, &d, 0, &pl, &e), &e);
	for (o = 0; o < MAX_TEST_OPS; o++) {
		snprintf(want, sizeof(want), "reason %u", (unsigned)o);
		ck_assert_str_eq(pl.op[o].reason, d.supported[o] ? "" : want);
		ck_assert_int_eq(pl.op[o].on_device, d.supported[o]);
	}
	placement_free(&pl);
	placement_free(&pl);
}
END_TEST

START_TEST(strict_names_the_first_fallback_and_counts_them)
{
	static const struct weight w = { .ext.name = "blk.9.ffn_up.weight" };
	struct op ops[MAX_TEST_OPS];
	struct device d;
	struct placement pl;
	struct program p;
	struct err e = { 0 };
	uint32_t o;

	make_program(&p, ops, MAX_TEST_OPS, 20);
	for (o = 0; o < MAX_TEST_OPS; o++)
		d.supported[o] = o != 9 && o != 31;
	ops[9].kind = OP_MATMUL;
	ops[9].w = &w;
	ck_assert_int_eq(place_program(&p, device_supports, &d, 1, &pl, &e),
	    -ENOTSUP);
	ck_assert_int_eq(e.kind, ERR_RUN);
	ck_assert_ptr_nonnull(strstr(e.msg, "2 of 40"));
	ck_assert_ptr_nonnull(strstr(e.msg, "matmul of layer 9"));
	ck_assert_ptr_nonnull(strstr(e.msg, "blk.9.ffn_up.weight"));
	ck_assert_ptr_nonnull(strstr(e.msg, "reason 9"));

	/* The embedding and the head have no layer. */
	ops[9].layer = -1;
	ck_assert_int_eq(place_program(&p, device_supports, &d, 1, &pl, &e),
	    -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(e.msg, "the first is matmul (blk.9"));

	d.supported[9] = d.supported[31] = 1;
	t_ok(place_program(&p, device_supports, &d, 1, &pl, &e), &e);
	ck_assert_uint_eq(pl.cpu_ops, 0);
	ck_assert_uint_eq(pl.nspans, 2);
	placement_free(&pl);
}
END_TEST

START_TEST(every_kind_of_op_has_a_name)
{
	enum op_kind a, b;

	for (a = 0; a < OP_NKINDS; a++) {
		ck_assert_ptr_nonnull(op_name(a));
		for (b = 0; b < a; b++)
			ck_assert_str_ne(op_name(a), op_name(b));
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		spans_cover_all_ops_and_never_cross_into_the_head,
		every_fallback_keeps_its_reason,
		strict_names_the_first_fallback_and_counts_them,
		every_kind_of_op_has_a_name
	};

	return t_main("place", 30, tests, NITEMS(tests));
}
