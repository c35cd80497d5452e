/* worker/stage/selftest_run.c - a small program on a device and on the
 * reference.
 *
 * Both get the same weights, and batches of one row and of several, which
 * devices compute in different ways.  The reference runs on this thread
 * alone. */
#include "selftest_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "kernels/cpu.h"
#include "shm/event.h"
#include "stage.h"

/* Deadline of a span: far longer than the slowest emulator takes. */
#define SPAN_NS		UINT64_C(60000000000)

enum { NBATCHES = 2 };

/* --- start and end --- */

static int
set_up_side(struct selftest *t, struct selftest_side *s,
    const struct device_ops *ops, const struct device_conf *dc,
    struct err *reterr)
{
	s->sc = (struct stage_conf){ .dev = ops, .kernels = &s->k,
	    .model = t->m.wm, .hp = t->m.hp, .ext = t->m.ext, .par = dc->par,
	    .ledger = dc->ledger };
	strlcpy(s->sc.start.name, dc->session, sizeof(s->sc.start.name));
	if (ops == &device_reference)
		kernels_init_ref(&s->k);
	else
		kernels_init(&s->k, cpu_flags());
	kernels_set_layout(&s->k, dc->choice.is_made ? dc->choice.layout :
	    ops->layout);
	return stage_explain(&s->sc, &s->pl, &s->p, &s->ws, reterr);
}

static int
alloc_buffers(struct selftest_side *s, struct err *reterr)
{
	const struct device_ops *ops = s->sc.dev;
	int rc;

	if ((rc = ops->alloc(s->dev, MEM_WEIGHTS, s->ws.nbytes,
	    "the self-test's weights", &s->weights, reterr)) < 0 ||
	    (rc = ops->alloc(s->dev, MEM_KV, s->p->env.kv.nbytes,
	    "the self-test's KV cache", &s->kv, reterr)) < 0 ||
	    (rc = ops->alloc(s->dev, MEM_COMPUTE, program_compute_bytes(s->p,
	    s->sc.par->nthreads), "the self-test's scratch", &s->compute,
	    reterr)) < 0)
		return rc;
	if (s->weights.host != NULL)
		weights_place(&s->ws, s->weights.host);
	return ops->place == NULL ? 0 : ops->place(s->dev, s->p, &s->ws,
	    reterr);
}

static int
prepare_span(struct selftest_side *s, const struct span *span,
    struct selftest_span *ret, struct err *reterr)
{
	ret->ops = span->on_device ? s->sc.dev : &device_cpu;
	ret->dev = span->on_device ? s->dev : s->cpu;
	return ret->ops->prepare(ret->dev, s->p, span, &s->kv, &s->compute,
	    &ret->handle, reterr);
}

static uint64_t
out_row_bytes(const struct selftest_side *s)
{
	return s->p->t[s->p->op[s->p->nops - 1].out].row_bytes;
}

static int
open_side(struct selftest_side *s, const struct device_conf *dc,
    struct err *reterr)
{
	int rc;

	s->sc.dev->traits(s->dev, &s->traits);
	if (s->pl.cpu_ops > 0 && !s->traits.host_visible)
		return err_set(reterr, ERR_RUN, -ENOTSUP, "session %s: the "
		    "host cannot reach the memory of device %s",
		    dc->session, s->sc.dev->kind);
	s->span = calloc(s->pl.nspans + s->p->nops, sizeof(*s->span));
	s->out = aligned_alloc(CACHELINE, SELFTEST_ROWS * out_row_bytes(s));
	if (s->span == NULL || s->out == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for the self-test of its device", dc->session);
	if (s->pl.cpu_ops > 0 && (rc = device_cpu.open(dc, &s->cpu,
	    reterr)) < 0)
		return rc;
	return alloc_buffers(s, reterr);
}

/* Once the weights are there: a device may capture its calls. */
static int
prepare_side(struct selftest_side *s, struct err *reterr)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < s->pl.nspans && rc == 0; i++)
		rc = prepare_span(s, &s->pl.span[i], &s->span[i], reterr);
	return rc;
}

static int
upload(struct selftest_side *s, uint32_t i, const void *src,
    struct err *reterr)
{
	return s->sc.dev->upload(s->dev, &s->ws, &s->weights, i, 0,
	    s->sc.ext[i].nrows, src, reterr);
}

static int
load(struct selftest *t, struct err *reterr)
{
	void *src = malloc(selftest_extent_bytes(&t->m));
	uint32_t i;
	int rc = 0;

	if (src == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for the weights of its device's self-test",
		    t->dev.sc.start.name);
	for (i = 0; i < t->m.wm.nextents && rc == 0; i++) {
		selftest_weights(&t->m, i, src);
		rc = upload(&t->dev, i, src, reterr);
		if (rc == 0 && t->ref.dev != NULL)
			rc = upload(&t->ref, i, src, reterr);
	}
	free(src);
	return rc;
}

static int
open_reference(struct selftest *t, const struct device_conf *dc,
    struct err *reterr)
{
	const struct device_conf ref = { .session = dc->session,
	    .par = &par_alone, .ledger = dc->ledger };
	int rc;

	if ((rc = set_up_side(t, &t->ref, &device_reference, &ref,
	    reterr)) < 0 ||
	    (rc = device_reference.open(&ref, &t->ref.dev, reterr)) < 0)
		return rc;
	return open_side(&t->ref, &ref, reterr);
}

int
selftest_begin(struct selftest *t, const struct selftest_case *tc,
    const struct device_ops *ops, struct device *d,
    const struct device_conf *dc, int with_reference, struct err *reterr)
{
	int rc;

	memset(t, 0, sizeof(*t));
	selftest_model(tc, &t->m);
	t->dev.dev = d;
	if ((rc = set_up_side(t, &t->dev, ops, dc, reterr)) < 0 ||
	    (rc = open_side(&t->dev, dc, reterr)) < 0 ||
	    (with_reference && (rc = open_reference(t, dc, reterr)) < 0) ||
	    (rc = load(t, reterr)) < 0 ||
	    (rc = prepare_side(&t->dev, reterr)) < 0)
		return rc;
	return with_reference ? prepare_side(&t->ref, reterr) : 0;
}

static void
close_side(struct selftest_side *s)
{
	device_cpu.close(s->cpu);
	free(s->span);
	free(s->out);
	placement_free(&s->pl);
	program_free(s->p);
	weights_free(&s->ws);
	/* To close it once more does nothing. */
	*s = (struct selftest_side){ .sc = s->sc, .dev = s->dev };
}

int
selftest_end(struct selftest *t, struct err *reterr)
{
	int rc = t->dev.sc.dev->reset(t->dev.dev, reterr);

	device_reference.close(t->ref.dev);
	t->ref.dev = NULL;
	close_side(&t->ref);
	close_side(&t->dev);
	return rc;
}

/* --- batches --- */

/* The rows of a batch.  Those after a row that wants logits move to its place
 * when the others are dropped. */
struct rows {
	uint32_t n, nselect;
	uint32_t seq[SELFTEST_ROWS], pos[SELFTEST_ROWS], token[SELFTEST_ROWS];
	uint32_t select[SELFTEST_ROWS];
	uint32_t kept_pos[SELFTEST_ROWS], kept_select[SELFTEST_ROWS];
	struct batch body, kept;	/* for operations of body and head */
};

static void
make_rows(const struct selftest_side *s, unsigned nth, struct rows *r)
{
	uint32_t i;

	memset(r, 0, sizeof(*r));
	r->n = nth == 0 ? 1 : SELFTEST_ROWS;
	for (i = 0; i < r->n; i++) {
		r->pos[i] = nth + i;
		r->token[i] = (r->pos[i] * 7 + 3) % SELFTEST_VOCAB;
		if (i == 1)
			continue;
		r->kept_pos[r->nselect] = r->pos[i];
		r->kept_select[r->nselect] = r->nselect;
		r->select[r->nselect++] = i;
	}
	r->body = (struct batch){ .nrows = r->n, .seq = r->seq,
	    .pos = r->pos, .token = r->token, .select = r->select,
	    .nselect = r->nselect };
	r->kept = (struct batch){ .nrows = r->nselect, .seq = r->seq,
	    .pos = r->kept_pos, .select = r->kept_select,
	    .nselect = r->nselect, .output = s->out };
	if (s->p->nkept < s->p->nbody)
		r->body.kept = &r->kept;
}

static int
run_span(const struct selftest_span *sp, const struct batch *b,
    struct err *reterr)
{
	int rc;

	if ((rc = sp->ops->run(sp->dev, sp->handle, b, reterr)) == 0)
		rc = sp->ops->sync(sp->dev, event_now_ns() + SPAN_NS, reterr);
	return rc;
}

static int
run_whole(const struct selftest_side *s, unsigned nth, uint32_t *ret_nrows,
    struct err *reterr)
{
	struct rows r;
	uint32_t i;
	int rc = 0;

	make_rows(s, nth, &r);
	for (i = 0; i < s->pl.nspans && rc == 0; i++)
		rc = run_span(&s->span[i], i < s->pl.nbody_spans ? &r.body :
		    &r.kept, reterr);
	*ret_nrows = r.nselect;
	return rc;
}

static int
run_step(struct selftest_side *s, const struct rows *r, uint32_t i,
    struct err *reterr)
{
	struct selftest_span *sp = &s->span[s->pl.nspans + i];
	const struct span span = { i, i + 1, s->pl.op[i].on_device };
	int rc;

	if (sp->ops == NULL && (rc = prepare_span(s, &span, sp, reterr)) < 0)
		return rc;
	return run_span(sp, i < s->p->nbody ? &r->body : &r->kept, reterr);
}

/* --- differences --- */

/* Add the differences of a row of n. */
static void
add_row(struct selftest_diff *d, const float *got, const float *want,
    uint32_t n)
{
	double sum = 0, size, error;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += (double)want[i] * (double)want[i];
	size = sum > 0 ? sqrt(sum / n) : 1;
	for (i = 0; i < n; i++) {
		error = fabs((double)got[i] - (double)want[i]) / size;
		/* A NaN is larger than any number. */
		if (d->n++ == 0 || !(error <= d->error)) {
			d->error = isnan(error) ? (double)INFINITY : error;
			d->got = isnan(got[i]) ? NAN : got[i];
			d->want = want[i];
		}
	}
}

static uint8_t *
row_at(const struct selftest_side *s, tensor_id id, uint32_t r)
{
	const struct tensor *t = &s->p->t[id];

	return t->store == STORE_OUTPUT ? s->out + r * t->row_bytes :
	    (uint8_t *)s->compute.host + t->offset + r * t->row_bytes;
}

/* The longest row of a tensor. */
enum { MAX_COLS = 256 };

/* Convert row r of a tensor to floats. */
static const float *
read_row(const struct selftest_side *s, tensor_id id, uint32_t r,
    float buf[MAX_COLS])
{
	const struct tensor *t = &s->p->t[id];
	const void *row = row_at(s, id, r);
	const struct act_q8 *q = row;
	uint32_t i;
	uint16_t h;

	if (t->act == ACT_F32)
		return row;
	for (i = 0; i < t->cols; i++) {
		if (t->act == ACT_Q8) {
			buf[i] = q[i / 32].d * (float)(int8_t)(q[i / 32].q[
			    i % 32] - s->k.act_bias);
			continue;
		}
		memcpy(&h, (const uint8_t *)row + i * sizeof(h), sizeof(h));
		buf[i] = bf16_to_float(h);
	}
	return buf;
}

/* Rows of an operation's result. */
static uint32_t
nrows_of(const struct selftest_side *s, const struct op *op,
    const struct rows *r)
{
	uint32_t n = op->kind == OP_SELECT_ROWS ||
	    op - s->p->op >= (ptrdiff_t)s->p->nkept ? r->nselect : r->n;

	return op->experts || op->kind == OP_MOE_ROWS ?
	    n * s->p->env.hp->n_expert_used : n;
}

/* Another expert than the reference's is an error of any size. */
static void
diff_routes(const struct selftest_side *got, tensor_id got_id,
    const struct selftest_side *want, tensor_id want_id, uint32_t nrows,
    struct selftest_diff *ret)
{
	const uint32_t n = got->p->env.hp->n_expert_used;
	uint32_t r, i, *g, *w;

	for (r = 0; r < nrows; r++) {
		g = (uint32_t *)(void *)row_at(got, got_id, r);
		w = (uint32_t *)(void *)row_at(want, want_id, r);
		add_row(ret, route_weights(g, n), route_weights(w, n), n);
		for (i = 0; i < n; i++)
			if (g[i] != w[i]) {
				ret->error = (double)INFINITY;
				ret->got = (float)g[i];
				ret->want = (float)w[i];
				return;
			}
	}
}

static void
diff_tensors(const struct selftest_side *got, tensor_id got_id,
    const struct selftest_side *want, tensor_id want_id, uint32_t nrows,
    struct selftest_diff *ret)
{
	float g[MAX_COLS], w[MAX_COLS];
	uint32_t r;

	for (r = 0; r < nrows; r++)
		add_row(ret, read_row(got, got_id, r, g), read_row(want,
		    want_id, r, w), got->p->t[got_id].cols);
}

/* Run both batches; want and ret, of all kept rows, may be NULL. */
static int
run_batches(const struct selftest_side *s, const selftest_result *want,
    struct selftest_diff *diff, selftest_result *ret, struct err *reterr)
{
	const tensor_id out = s->p->op[s->p->nops - 1].out;
	uint32_t r, n, at = 0;
	unsigned nth;
	int rc;

	for (nth = 0; nth < NBATCHES; nth++) {
		if ((rc = run_whole(s, nth, &n, reterr)) < 0)
			return rc;
		for (r = 0; r < n; r++, at++) {
			const float *row = (const void *)row_at(s, out, r);

			if (want != NULL)
				add_row(diff, row, (*want)[at],
				    SELFTEST_VOCAB);
			if (ret != NULL)
				memcpy((*ret)[at], row, sizeof((*ret)[at]));
		}
	}
	return 0;
}

int
selftest_reference(struct selftest *t, selftest_result *ret,
    struct err *reterr)
{
	return run_batches(&t->ref, NULL, NULL, ret, reterr);
}

int
selftest_whole(struct selftest *t, const selftest_result *want,
    struct selftest_diff *ret, struct err *reterr)
{
	selftest_result right;
	int rc = 0;

	if (want == NULL)
		rc = selftest_reference(t, &right, reterr);
	return rc < 0 ? rc : run_batches(&t->dev, want != NULL ? want :
	    (const selftest_result *)&right, ret, NULL, reterr);
}

/* --- step by step --- */

struct steps {
	struct selftest *t;
	struct rows dev_rows, ref_rows;
	uint32_t dev_op, ref_op;	/* the next ones */
	const struct op *kv_store;	/* not reported yet; NULL = none */
	selftest_step_fn *fn;
	void *arg;
};

/* Copy a tensor from the reference, if both have floats there. */
static void
copy_tensor(struct selftest *t, tensor_id dev, tensor_id ref, uint32_t nrows)
{
	const struct tensor *d = &t->dev.p->t[dev];
	uint32_t r;

	if (d->act != ACT_F32 || t->ref.p->t[ref].act != ACT_F32)
		return;
	for (r = 0; r < nrows; r++)
		memcpy(row_at(&t->dev, dev, r), row_at(&t->ref, ref, r),
		    d->cols * sizeof(float));
}

/* Continue with the reference's numbers; also where a wrong index would make a
 * later operation leave its buffers. */
static void
copy_results(struct steps *st, const struct op *dev, const struct op *ref)
{
	copy_tensor(st->t, dev->out, ref->out, nrows_of(&st->t->dev, dev,
	    &st->dev_rows));
	if (dev->kind == OP_MOE_ROWS)
		copy_tensor(st->t, dev->routes, ref->routes, st->dev_rows.n);
}

/* Each side rounds activations to the formats of its own kernels, so a rounding
 * is compared with the numbers that it rounds. */
static int
step_quantize(struct steps *st, const struct op *op,
    struct selftest_diff *diff, struct err *reterr)
{
	struct selftest_side *s = &st->t->dev;
	int rc = run_step(s, &st->dev_rows, st->dev_op, reterr);

	if (rc == 0)
		diff_tensors(s, op->out, s, op->in[0], nrows_of(s, op,
		    &st->dev_rows), diff);
	return rc;
}

/* Any other operation has its like in the reference's program. */
static int
step_pair(struct steps *st, const struct op *op, struct selftest_diff *diff,
    struct err *reterr)
{
	struct selftest *t = st->t;
	const struct op *ref = &t->ref.p->op[st->ref_op];
	uint32_t n = nrows_of(&t->dev, op, &st->dev_rows);
	int rc;

	if (st->ref_op == t->ref.p->nops || ref->kind != op->kind)
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: the "
		    "self-test's programs differ at %s, which is a fault of "
		    "this program", t->dev.sc.start.name, op_name(op->kind));
	if ((rc = run_step(&t->ref, &st->ref_rows, st->ref_op++,
	    reterr)) < 0 ||
	    (rc = run_step(&t->dev, &st->dev_rows, st->dev_op, reterr)) < 0)
		return rc;
	if (op->out == NO_TENSOR)
		return 0;
	if (op->kind == OP_MOE_ROUTE)
		diff_routes(&t->dev, op->out, &t->ref, ref->out, n, diff);
	else
		diff_tensors(&t->dev, op->out, &t->ref, ref->out, n, diff);
	copy_results(st, op, ref);
	return 0;
}

/* Keys and values show in the attention that reads them. */
static int
report_step(struct steps *st, const struct op *op,
    const struct selftest_diff *diff)
{
	const struct selftest_side *s = &st->t->dev;
	const struct op *store = st->kv_store;
	int rc = 0;

	if (op->kind == OP_ATTENTION)
		st->kv_store = NULL;
	if (op->kind == OP_ATTENTION && store != NULL &&
	    s->pl.op[store - s->p->op].on_device)
		rc = st->fn(st->arg, s, store, diff);
	if (op->kind == OP_KV_STORE)
		st->kv_store = op;
	else if (rc == 0 && s->pl.op[op - s->p->op].on_device)
		rc = st->fn(st->arg, s, op, diff);
	return rc;
}

static int
take_step(struct steps *st, struct err *reterr)
{
	const struct op *op = &st->t->dev.p->op[st->dev_op];
	struct selftest_side *ref = &st->t->ref;
	struct selftest_diff diff = { 0 };
	int rc = 0;

	while (rc == 0 && st->ref_op < ref->p->nops &&
	    ref->p->op[st->ref_op].kind == OP_QUANTIZE)
		rc = run_step(ref, &st->ref_rows, st->ref_op++, reterr);
	if (rc == 0)
		rc = op->kind == OP_QUANTIZE ? step_quantize(st, op, &diff,
		    reterr) : step_pair(st, op, &diff, reterr);
	st->dev_op++;
	return rc < 0 ? rc : report_step(st, op, &diff);
}

int
selftest_steps(struct selftest *t, selftest_step_fn *fn, void *arg,
    struct err *reterr)
{
	struct steps st = { .t = t, .fn = fn, .arg = arg };
	unsigned nth;
	int rc = 0;

	for (nth = 0; nth < NBATCHES && rc == 0; nth++) {
		make_rows(&t->dev, nth, &st.dev_rows);
		make_rows(&t->ref, nth, &st.ref_rows);
		st.dev_op = st.ref_op = 0;
		while (st.dev_op < t->dev.p->nops && rc == 0)
			rc = take_step(&st, reterr);
	}
	return rc;
}
