/* worker/ascend/device.c - an Ascend processor as a device.
 *
 *	device.c	the contract of worker/device.h
 *	probe.c		limits, checks, and how the processor multiplies
 *	weights.c	which matrices it multiplies, and their memory
 *	span.c capture.c	operations, one after the other; captured ones
 *	norms.c		norms whose rows stay there for products
 *	swiglu.c	SwiGLU of such products
 *	residual.c	sums of products and the residual
 *	trial.c		finds a way of multiplying, with known answers
 *	trial_memory.c	memory and runs of products in trials
 *	attempt.c	does that in a process of its own
 *	ops.c ops_trial.c	other operators, and a trial of each
 *	shapes.c shape_trial.c	both at the model's own shapes
 *	matrix_trial.c	a matrix of such a shape, in each way
 *	clock.c fastest.c	times of products; the fastest way
 *	product.c rows.c	products of 16-bit floats
 *	queue.c		products in flight
 *	graph.c graph_fns.c	captured tasks, and trials of them
 *	classic.c	the same by operators that are compiled for each shape
 *	memo.c		losses, for the session's next worker
 *	session.c memory.c	stream, pools, aligned host memory
 *	lib.c codes.c board.c layout.c	the library, the machine, layouts
 *
 * The processor multiplies matrices, and computes norms before that, SwiGLU and
 * residual sums after it; other operators are only tried.  An operation that it
 * does not compute runs on the session's cores, in the same memory, with the
 * CPU's bits; explain says why. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "config/log.h"
#include "config/words.h"
#include "kernels/types/quant.h"
#include "shm/event.h"
#include "ascend.h"
#include "classic.h"
#include "graph.h"
#include "rows.h"
#include "verdict.h"

/* --- open --- */

static void
take_memo(struct device *d)
{
	d->memo = d->conf.memo != NULL ? d->conf.memo : &d->own_memo;
	acl_memo_open(d->memo, d->conf.call_ns, d->conf.after_hang);
	if (d->memo->losses >= ACL_MOST_LOSSES)
		log_warnx("%u workers lost the processor's stream: nothing "
		    "runs on it now, and the text may differ from here on",
		    d->memo->losses);
}

/* Take the choice that the probe made.  Without one (another device than the
 * plan's) nothing runs on the processor. */
static void
take_choice(struct device *d)
{
	struct acl_choice *c = &d->choice;

	memcpy(c, d->conf.choice.of_device, sizeof(*c));
	if (!d->conf.choice.is_made || !acl_choice_is_sound(c))
		memset(c, 0, sizeof(*c));
	else if (!layout_is_ascend(d->conf.choice.layout) || c->chip.groups !=
	    d->conf.choice.layout - LAYOUT_ASCEND)
		memset(c->form, 0, sizeof(c->form));	/* the reason stays */
	d->choice.reason[sizeof(d->choice.reason) - 1] = '\0';
}

/* Let the compiler of operators do what a confined worker cannot. */
static int
start_compiler(struct device *d, struct err *reterr)
{
	if (d->choice.form[ASCEND_HALF].way != ACL_WAY_CLASSIC)
		return 0;
	acl_memo_long_call();	/* it brings the graph engine along */
	if (!acl_way_is_there(d->s.src.lib, ACL_WAY_CLASSIC))
		return err_set(reterr, ERR_RUN, -ENOENT, "session %s: "
		    ACL_OP_COMPILER ", which the probe found, is gone: install "
		    "CANN's toolkit again", d->conf.session);
	acl_classic_start_engine(&d->s);
	return 0;
}

static int
open_library(struct device *d, struct err *reterr)
{
	int rc;

	if ((rc = acl_session_open(d->conf.session, acl_number(&d->conf), &d->s,
	    reterr)) < 0 || !acl_multiplies(d) ||
	    (rc = acl_session_stream(&d->s, reterr)) < 0)
		return rc;
	return start_compiler(d, reterr);
}

static int
ascend_open(const struct device_conf *dc, struct device **ret,
    struct err *reterr)
{
	struct device *d = calloc(1, sizeof(*d));
	int rc = 0;

	if (d == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for device ascend", dc->session);
	d->conf = *dc;
	take_memo(d);
	take_choice(d);
	/* A library that held up the workers before would hold up this one. */
	if (d->memo->losses < ACL_MOST_LOSSES) {
		acl_memo_call(d->memo);
		rc = open_library(d, reterr);
		acl_memo_return(d->memo);
	}
	if (rc < 0 || (rc = device_cpu.open(dc, &d->host, reterr)) < 0) {
		device_ascend.close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

static void
ascend_traits(const struct device *d, struct device_traits *ret)
{
	(void)d;
	*ret = (struct device_traits){
		.host_visible = 1, .async = 1, .align = HOST_MEM_ALIGN,
		.largest_map = UINT64_MAX, .max_maps = HOST_MEM_BUFS,
	};
}

/* --- placement and memory --- */

/* Say whether the operator is right here: the host computes op in any case. */
static void
tell_operator(const struct device *d, enum op_kind kind,
    char reason[REASON_LEN])
{
	static const uint8_t fn[OP_NKINDS] = {	/* 1 + enum acl_fn; 0 = none */
		[OP_ROPE] = 1 + ACL_FN_ROTATE,
	};
	char text[96];

	if (d == NULL || fn[kind] == 0) {
		strlcpy(reason, "not built for it yet", REASON_LEN);
		return;
	}
	acl_fn_text((enum acl_fn)(fn[kind] - 1), d->choice.fn[fn[kind] - 1],
	    text, sizeof(text));
	snprintf(reason, REASON_LEN, "%s%s", text, acl_fn_outcome(
	    d->choice.fn[fn[kind] - 1]) == ACL_FN_RIGHT ?
	    ", but is not built in yet" : "");
}

static int
ascend_supports(void *arg, const struct program *p, const struct op *op,
    char reason[REASON_LEN])
{
	(void)p;
	reason[0] = '\0';
	if (op->kind == OP_MATMUL_ID)
		strlcpy(reason, "products whose matrix differs from row to "
		    "row are not built for it yet", REASON_LEN);
	else if (op->kind == OP_RMS_NORM && op->heads > 0)
		strlcpy(reason, "norms of heads are not built in yet",
		    REASON_LEN);
	else if (op->kind == OP_SWIGLU && op->experts)
		strlcpy(reason, "activations of experts are not built in yet",
		    REASON_LEN);
	else if (op->kind != OP_MATMUL && op->kind != OP_QUANTIZE &&
	    op->kind != OP_RMS_NORM && op->kind != OP_SWIGLU &&
	    op->kind != OP_ADD)
		tell_operator(arg, op->kind, reason);
	else if (op->kind == OP_MATMUL && weight_is_for_host(&op->w->ext))
		strlcpy(reason, "the choice of experts keeps the host's "
		    "precision", REASON_LEN);
	else
		return 1;
	return 0;
}

static int
ascend_alloc(struct device *d, enum mem_tag tag, uint64_t nbytes,
    const char *what, struct device_buf *ret, struct err *reterr)
{
	int rc = host_mem_alloc(&d->mem, d->conf.ledger, tag, nbytes, what,
	    ret, reterr);

	/* Pages of the processor's matrices are touched for scales only. */
	if (rc == 0 && tag == MEM_WEIGHTS && acl_multiplies(d))
		arena_use_small_pages(&d->mem.arena[d->mem.n - 1]);
	return rc;
}

static int
ascend_place(struct device *d, const struct program *p, struct weights *ws,
    struct err *reterr)
{
	int rc;

	acl_memo_call(d->memo);
	rc = acl_place(d, p, ws, reterr);
	acl_memo_return(d->memo);
	return rc;
}

/* Put rows of a matrix into the device's memory. */
static int
upload_matrix(struct device *d, struct acl_weight *w, uint32_t row0,
    uint32_t nrows, const void *src, struct err *reterr)
{
	int rc;

	acl_memo_call(d->memo);
	rc = acl_put_weights(&d->products, &w->m, w->type, row0, nrows, src,
	    d->row, w->scale, reterr);
	if (rc == 0)
		w->put += nrows;
	if (rc == 0 && w->put == w->m.n)
		rc = acl_products_convert(&d->products, &w->m, reterr);
	acl_memo_return(d->memo);
	return rc;
}

/* Put weights of a norm there, if i are some. */
static int
upload_norm(struct device *d, uint32_t i, const float *w, struct err *reterr)
{
	int rc;

	acl_memo_call(d->memo);
	rc = acl_norms_upload(d, i, w, reterr);
	acl_memo_return(d->memo);
	return rc;
}

static int
ascend_upload(struct device *d, const struct weights *ws,
    struct device_buf *weights, uint32_t i, uint32_t row0, uint32_t nrows,
    const void *src, struct err *reterr)
{
	const struct acl_weight *found = acl_find_weight(d, i);
	struct acl_weight *w = found == NULL ? NULL : &d->weight[found -
	    d->weight];
	int rc = 0;

	if (w == NULL || w->own_scale != NULL)
		rc = host_mem_upload(d, ws, weights, i, row0, nrows, src,
		    reterr);
	if (w == NULL && rc == 0 && ws->w[i].kern == NULL)
		rc = upload_norm(d, i, ws->w[i].vec, reterr);
	return w == NULL || rc < 0 ? rc : upload_matrix(d, w, row0, nrows,
	    src, reterr);
}

/* --- spans --- */

/* SwiGLU or a sum on the processor that starts this product, or NULL. */
static const char *
name_starter(struct device *d, const struct program *p, const struct op *op)
{
	const struct op *o = op + 1;

	if (o < p->op + p->nops && o->kind == OP_ADD && o->in[1] == op->out)
		return acl_sum_reason(d, p, o) == NULL ? "a sum" : NULL;

	for (; o <= op + 2 && o < p->op + p->nops; o++)
		if (o->kind == OP_SWIGLU && !o->experts && (o->in[0] == op->out ||
		    o->in[1] == op->out))
			return acl_swiglu_reason(d, p, o) == NULL ? "SwiGLU" :
			    NULL;
	return NULL;
}

/* Few rows are captured, or why not. */
static void
tell_capture(const struct device *d, int32_t why, char ret[REASON_LEN])
{
	char text[ACL_GRAPH_TEXT];

	if (d->choice.chip.graph_bytes == 0)
		why = d->choice.graph_why;
	if (d->s.machine.is_rc)
		return;
	strlcat(ret, why == ACL_GRAPH_FINE ? ", captured" :
	    ", not captured: ", REASON_LEN);
	strlcat(ret, acl_graph_text(why, text), REASON_LEN);
}

/* "aclnnMatmul (1 row: aclnnMm)": the ways that a matrix is multiplied. */
static void
set_way(const struct device *d, const struct acl_matrix *m,
    char ret[REASON_LEN])
{
	const struct acl_form f = acl_form_of(&d->choice, m);
	enum acl_way way;
	unsigned i;

	strlcpy(ret, acl_way_name((enum acl_way)f.way), REASON_LEN);
	for (i = 0; i < f.nclasses; i++) {
		way = acl_way_of(&d->choice, m, i);
		if (way != f.way)
			words_add(ret, REASON_LEN, " ", "(%u row%s: %s)",
			    f.rows[i], f.rows[i] == 1 ? "" : "s",
			    acl_way_name(way));
	}
}

static void
explain_product(struct device *d, const struct program *p,
    const struct op *op, char ret[REASON_LEN])
{
	static const char *const formats[ASCEND_FORMATS] = {
		"16-bit floats", "8-bit integers", "4-bit integers",
		"4-bit integers with offsets"
	};
	static const uint32_t types[ASCEND_FORMATS] = {
		QUANT_F16, QUANT_Q8_0, QUANT_Q4_0, QUANT_Q4_1
	};
	const struct acl_matrix m = acl_matrix_of(d, op);
	const struct quant_info *from = op->w->ext.type == types[m.format] ?
	    NULL : quant_info(op->w->ext.type);
	const char *starter = name_starter(d, p, op);

	set_way(d, &m, ret);
	words_add(ret, REASON_LEN, "", " of %s%s%s%s", formats[m.format],
	    acl_form_of(&d->choice, &m).nz != ACL_ND ? " in FRACTAL_NZ" : "",
	    from != NULL ? ", made from " : "", from != NULL ? from->name :
	    "");
	if (starter != NULL)
		words_add(ret, REASON_LEN, "", ", for %s", starter);
	else
		tell_capture(d, acl_matrix_has_graphs(&d->choice, &m) ?
		    d->choice.graph_why : ACL_GRAPH_NOT_THIS, ret);
}

static int
ascend_explain(struct device *d, const struct program *p, const struct op *op,
    char ret[REASON_LEN], struct err *reterr)
{
	const char *why = acl_host_reason(d, p, op);
	int rc = acl_check_calls(d, reterr);

	if (rc < 0)
		return rc;
	if (why != NULL)
		strlcpy(ret, why, REASON_LEN);
	else if (op->kind == OP_RMS_NORM) {
		snprintf(ret, REASON_LEN, "%s, for products",
		    acl_fn_name(acl_norm_is_added(d, p, op) ?
		    ACL_FN_ADD_NORM : ACL_FN_NORM));
		tell_capture(d, d->choice.graph_fns_why, ret);
	} else if (op->kind == OP_SWIGLU) {
		snprintf(ret, REASON_LEN, "%s and %s, of results of products",
		    acl_fn_name(ACL_FN_SILU), acl_fn_name(ACL_FN_MUL));
		tell_capture(d, d->choice.graph_fns_why, ret);
	} else if (op->kind == OP_ADD) {
		strlcpy(ret, acl_sum_text(d, p, op), REASON_LEN);
		tell_capture(d, d->choice.chip.fns & ASCEND_FN_SWIGLU ?
		    d->choice.graph_fns_why : ACL_GRAPH_NOT_THIS, ret);
	} else if (op->kind == OP_QUANTIZE)
		snprintf(ret, REASON_LEN, "rounded to 16-bit floats, for "
		    "products; %u shapes of the model were tried",
		    d->choice.unfit.tried);
	else
		explain_product(d, p, op, ret);
	return why != NULL;
}

static int
ascend_prepare(struct device *d, const struct program *p,
    const struct span *s, const struct device_buf *kv,
    const struct device_buf *compute, uint32_t *ret_handle,
    struct err *reterr)
{
	int rc;

	d->p = p;
	*ret_handle = d->nspans;
	acl_memo_call(d->memo);
	rc = acl_prepare(d, s, kv, compute, reterr);
	acl_memo_return(d->memo);
	return rc;
}

static int
ascend_run(struct device *d, uint32_t handle, const struct batch *b,
    struct err *reterr)
{
	if (handle >= d->nspans)
		return err_set(reterr, ERR_RUN, -EINVAL,
		    "device ascend: unknown span %u", handle);
	d->running = &d->span[handle];
	d->batch = b;
	return 0;
}

static int
ascend_sync(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	uint64_t t0 = event_now_ns();
	int rc;

	if (d->running == NULL)
		return 0;
	rc = acl_run_span(d, deadline_ns, reterr);
	d->running = NULL;
	d->ns += event_now_ns() - t0;
	/* The next worker of the session must know. */
	if (rc < 0)
		d->memo->losses++;
	else if (acl_multiplies(d) && ++d->good_spans == ACL_FORGET_SPANS)
		d->memo->losses = 0;
	return rc;
}

static void
ascend_account(const struct device *d, struct device_account *ret)
{
	*ret = d->held;
	ret->device_bytes += d->ngraphs * d->choice.chip.graph_bytes;
	ret->apart_bytes = d->s.machine.is_rc ? 0 : ret->device_bytes;
	ret->calls = d->calls;
	ret->ns = d->ns;
	ret->host_ops = d->host_ops;
}

static int
ascend_reset(struct device *d, struct err *reterr)
{
	acl_memo_call(d->memo);
	acl_free(d);
	acl_memo_return(d->memo);
	host_mem_close(&d->mem);
	d->host_ops = 0;
	d->calls = d->ns = 0;
	return device_cpu.reset(d->host, reterr);
}

static void
ascend_close(struct device *d)
{
	if (d == NULL)
		return;
	acl_free(d);
	host_mem_close(&d->mem);
	device_cpu.close(d->host);
	acl_session_close(&d->s);
	acl_memo_close();
	free(d);
}

const struct device_ops device_ascend = {
	.version = DEVICE_VERSION,
	.kind = "ascend",
	.layout = LAYOUT_HOST,
	.probe = acl_probe,
	.open = ascend_open,
	.traits = ascend_traits,
	.supports = ascend_supports,
	.alloc = ascend_alloc,
	.place = ascend_place,
	.upload = ascend_upload,
	.prepare = ascend_prepare,
	.run = ascend_run,
	.sync = ascend_sync,
	.account = ascend_account,
	.explain = ascend_explain,
	.reset = ascend_reset,
	.close = ascend_close,
};
