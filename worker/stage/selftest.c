/* worker/stage/selftest.c - both forms of a device's self-test, and what the
 * reader of a wrong answer is told. */
#include "selftest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "shm/event.h"
#include "selftest_known.h"
#include "selftest_run.h"

/* How far a result may be from the reference's, in units of the root mean
 * square of its row.
 *
 * Activations of 8 bits: a row whose largest number is 3 to 4 times its size
 * loses up to half of a 127th of that in each number, a root mean square of
 * 0.9 %. A product of a row loses as much, and the largest of a thousand of
 * them 4 times that.  Weights that a device converts to 8 bits add as much,
 * and a device may lose twice as much as the CPU: LIMIT_MATMUL.
 *
 * The rounding itself: half a step of a row whose largest number is 15 times
 * its size, as an activation function makes them: LIMIT_ROUND.
 *
 * Everything else is computed from floats, at least in half precision: 2^-11
 * of a number of 16 times the size: LIMIT_FLOAT.
 *
 * A layer has six products one after the other, whose errors add up as
 * squares: LIMIT_LAYER.  Zeros, a row of another position or an operation left
 * out are off by the size of a row, several times that. */
#define LIMIT_MATMUL	0.125
#define LIMIT_ROUND	0.0625
#define LIMIT_FLOAT	0.0078125
#define LIMIT_LAYER	0.25

static double
limit_of(enum op_kind kind)
{
	if (op_is_matmul(kind))
		return LIMIT_MATMUL;
	return kind == OP_QUANTIZE || kind == OP_MOE_ROWS ? LIMIT_ROUND :
	    LIMIT_FLOAT;
}

static int
is_right(const struct selftest_diff *diff, double limit)
{
	return diff->error <= limit;
}

/* The type that a line about this operation names; QUANT_NTYPES = none. */
static uint32_t
type_of_op(const struct program *p, const struct op *op)
{
	static const enum quant_type kv[KV_NTYPES] = {
		[KV_F32] = QUANT_F32,
		[KV_F16] = QUANT_F16,
		[KV_Q8_0] = QUANT_Q8_0
	};

	if (op->kind == OP_KV_STORE || op->kind == OP_ATTENTION)
		return kv[p->env.kv.conf.kfmt];
	return op_is_matmul(op->kind) || op->kind == OP_GET_ROWS ?
	    op->w->ext.type : QUANT_NTYPES;
}

static const char *
type_name(uint32_t type)
{
	return type < QUANT_NTYPES ? quant_info(type)->name : "";
}

/* --- when a session opens its device --- */

struct wrong {
	char what[EXTENT_NAME + 64];
	struct selftest_diff diff;
	double limit;
};

/* Keep the first operation that is wrong. */
static int
find_wrong(void *arg, const struct selftest_side *s, const struct op *op,
    const struct selftest_diff *diff)
{
	const char *type = type_name(type_of_op(s->p, op));
	struct wrong *w = arg;

	if (is_right(diff, limit_of(op->kind)))
		return 0;
	w->limit = limit_of(op->kind);
	w->diff = *diff;
	/* Keys and values show only in the attention that reads them. */
	snprintf(w->what, sizeof(w->what), "%s%s%s", op->kind == OP_KV_STORE ||
	    op->kind == OP_ATTENTION ? "kv_store and attention" :
	    op_name(op->kind), *type != '\0' ? " of " : "", type);
	return 1;
}

/* The layer that every session computes. */
static const struct selftest_case short_form = { "llama", QUANT_NTYPES,
    KV_F16 };

/* Repeat the layer step by step, beside the reference. */
static void
search_wrong(struct selftest *t, const struct device_conf *dc,
    struct wrong *ret)
{
	const struct device_ops *ops = t->dev.sc.dev;
	struct device *d = t->dev.dev;
	struct err e = { 0 };

	if (!t->dev.traits.host_visible || selftest_end(t, &e) < 0)
		return;
	if (selftest_begin(t, &short_form, ops, d, dc, 1, &e) == 0)
		selftest_steps(t, find_wrong, ret, &e);
}

static int
report_wrong(struct selftest *t, const struct device_conf *dc,
    const struct selftest_diff *diff, struct err *reterr)
{
	struct wrong w = { .diff = *diff, .limit = LIMIT_LAYER };

	snprintf(w.what, sizeof(w.what), "a layer of %u operations",
	    t->dev.pl.device_ops);
	search_wrong(t, dc, &w);
	return err_set(reterr, ERR_RUN, -EREMOTEIO, "session %s: device %s "
	    "computes wrong results: in its self-test %s gives %g instead of "
	    "%g, an error of %.2g times the size of the row's numbers where "
	    "%.2g is the limit; leave this device out until \"straddle "
	    "devices --verify\" finds nothing wrong with it",
	    dc->session, t->dev.sc.dev->kind, w.what, (double)w.diff.got,
	    (double)w.diff.want, w.diff.error, w.limit);
}

int
selftest_open(const struct device_ops *ops, struct device *d,
    const struct device_conf *dc, struct selftest_stats *ret,
    struct err *reterr)
{
	struct selftest_diff diff = { 0 };
	struct err e = { 0 };
	struct selftest *t;
	int rc, end;

	*ret = (struct selftest_stats){ 0 };
	if (ops->computes_nothing) {
		ret->untested = "it computes nothing, on purpose";
		return 0;
	}
	ret->ns = event_now_ns();
	if ((t = malloc(sizeof(*t))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for the self-test of its device", dc->session);
	if ((rc = selftest_begin(t, &short_form, ops, d, dc, 0,
	    reterr)) == 0)
		rc = selftest_whole(t, &selftest_known, &diff, reterr);
	ret->device_ops = t->dev.pl.device_ops;
	ret->error = diff.error;
	if (rc == 0 && !is_right(&diff, LIMIT_LAYER))
		rc = report_wrong(t, dc, &diff, reterr);
	end = selftest_end(t, rc < 0 ? &e : reterr);
	free(t);
	if (rc == -ENOTSUP) {
		ret->untested = "the host cannot reach its memory, for the "
		    "operations that fall back";
		rc = 0;
	}
	ret->ns = event_now_ns() - ret->ns;
	return rc < 0 ? rc : end;
}

/* --- every operation and type --- */

struct tally {
	int claimed;			/* in some program */
	int refused;			/* in some program */
	struct selftest_diff diff;
	char reason[REASON_LEN];
};

/* The last kind stands for a whole layer. */
enum { KIND_LAYER = OP_NKINDS, NKINDS };

struct tallies {
	struct selftest t;
	struct tally of[NKINDS][QUANT_NTYPES + 1];
};

static void
add_diff(struct selftest_diff *sum, const struct selftest_diff *d)
{
	uint64_t n = sum->n + d->n;

	if (sum->n == 0 || !(d->error <= sum->error))
		*sum = *d;
	sum->n = n;
}

static int
count_step(void *arg, const struct selftest_side *s, const struct op *op,
    const struct selftest_diff *diff)
{
	struct tallies *all = arg;

	add_diff(&all->of[op->kind][type_of_op(s->p, op)].diff, diff);
	return 0;
}

static void
count_claims(struct tallies *all, const struct selftest_side *s)
{
	struct tally *one;
	uint32_t i;

	for (i = 0; i < s->p->nops; i++) {
		one = &all->of[s->p->op[i].kind][type_of_op(s->p,
		    &s->p->op[i])];
		if (s->pl.op[i].on_device) {
			one->claimed = 1;
			continue;
		}
		one->refused = 1;
		strlcpy(one->reason, s->pl.op[i].reason, sizeof(one->reason));
	}
}

/* A choice of experts may hang on a rounding: then whole layers differ, and
 * only the steps are compared. */
static int
run_case(struct tallies *all, const struct selftest_case *tc,
    const struct device_ops *ops, struct device *d,
    const struct device_conf *dc, struct err *reterr)
{
	struct tally *layer = &all->of[KIND_LAYER][QUANT_NTYPES];
	struct selftest *t = &all->t;
	struct selftest_diff diff = { 0 };
	struct err e = { 0 };
	int rc, end;

	if ((rc = selftest_begin(t, tc, ops, d, dc, 1, reterr)) == 0) {
		count_claims(all, &t->dev);
		if (t->m.hp.n_expert == 0 && t->dev.pl.device_ops > 0 &&
		    (rc = selftest_whole(t, NULL, &diff, reterr)) == 0) {
			layer->claimed = 1;
			add_diff(&layer->diff, &diff);
		}
	}
	if (rc == 0 && t->dev.traits.host_visible)
		rc = selftest_steps(t, count_step, all, reterr);
	end = selftest_end(t, rc < 0 ? &e : reterr);
	return rc < 0 && rc != -ENOTSUP ? rc : end;
}

/* Each type of weights in a dense layer and in experts, and with them each
 * type of keys and values; the other families for their operations. */
static int
run_cases(struct tallies *all, const struct device_ops *ops, struct device *d,
    const struct device_conf *dc, selftest_fn *fn, void *arg,
    struct err *reterr)
{
	static const char *const families[] = { "llama", "gpt-oss", "gemma2",
	    "gemma3", "qwen3" };
	struct selftest_case tc;
	struct kernels k;
	unsigned i;
	int rc = 0;

	kernels_init_ref(&k);
	for (tc.type = 0; tc.type < QUANT_NTYPES && rc == 0; tc.type++)
		for (i = 0; i < NITEMS(families) && rc == 0; i++) {
			if (k.mat[tc.type].name == NULL ||
			    (i > 1 && tc.type != QUANT_Q8_0))
				continue;
			tc.arch = families[i];
			tc.kv = (enum kv_type)(tc.type % KV_NTYPES);
			if ((rc = run_case(all, &tc, ops, d, dc,
			    reterr)) == 0)
				rc = fn(arg, NULL, reterr);
		}
	return rc;
}

/* Does the device claim an operation that was in no program? */
static int
is_missed(const struct tallies *all, const struct device_ops *ops,
    const struct kernels *k, uint32_t kind, uint32_t type)
{
	static const struct program none;
	const int typed = kind == OP_GET_ROWS || op_is_matmul(kind);
	struct weight w = { .ext = { .type = type } };
	struct op op = { .kind = kind, .layer = -1 };
	char reason[REASON_LEN];
	uint32_t i;

	if (typed != (type < QUANT_NTYPES) ||
	    (typed && k->mat[type].name == NULL))
		return 0;
	/* Programs name the type of keys and values, the question does not. */
	for (i = 0; i <= QUANT_NTYPES && !typed; i++)
		if (all->of[kind][i].claimed || all->of[kind][i].refused)
			return 0;
	op.w = typed ? &w : NULL;
	return ops->supports(NULL, &none, &op, reason);
}

static struct selftest_line
make_line(const struct tally *one, uint32_t kind, uint32_t type)
{
	struct selftest_line l = {
		.op = kind == KIND_LAYER ? "layer" : op_name(kind),
		.type = type_name(type), .n = one->diff.n,
		.error = one->diff.error, .got = one->diff.got,
		.want = one->diff.want,
		.limit = kind == KIND_LAYER ? LIMIT_LAYER : limit_of(kind),
	};

	if (!one->claimed && one->refused)
		strlcpy(l.reason, one->reason, sizeof(l.reason));
	else if (one->diff.n == 0)
		l.verdict = SELFTEST_MISSED;
	else
		l.verdict = is_right(&one->diff, l.limit) ? SELFTEST_OK :
		    SELFTEST_WRONG;
	return l;
}

static int
report_lines(const struct tallies *all, const struct device_ops *ops,
    selftest_fn *fn, void *arg, struct err *reterr)
{
	uint32_t kind, type;
	struct kernels k;
	int rc = 0;

	kernels_init_ref(&k);
	for (kind = 0; kind < NKINDS; kind++)
		for (type = 0; type <= QUANT_NTYPES && rc == 0; type++) {
			const struct tally *one = &all->of[kind][type];
			struct selftest_line l;

			if (!one->claimed && !one->refused && (kind ==
			    KIND_LAYER || !is_missed(all, ops, &k, kind,
			    type)))
				continue;
			l = make_line(one, kind, type);
			rc = fn(arg, &l, reterr);
		}
	return rc;
}

int
selftest_all(const struct device_ops *ops, struct device *d,
    const struct device_conf *dc, selftest_fn *fn, void *arg,
    struct err *reterr)
{
	struct tallies *all = calloc(1, sizeof(*all));
	int rc;

	if (all == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for the self-test of its device", dc->session);
	if ((rc = run_cases(all, ops, d, dc, fn, arg, reterr)) == 0)
		rc = report_lines(all, ops, fn, arg, reterr);
	free(all);
	return rc;
}
