/* worker/stage/probe.c - sends limits, supported operations, results of the
 * self-test and placements. */
#include "probe.h"

#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

#include "kernels/cpu.h"
#include "shm/wire.h"
#include "report.h"
#include "selftest.h"

static int
report_verdict(struct chan *c, const struct device_probe *p,
    struct err *reterr)
{
	struct wire_verdict wv = { .is_kept = (uint32_t)p->verdict_is_kept,
	    .is_partial = (uint32_t)p->verdict_is_partial,
	    .verdict = p->verdict };

	if (p->verdict.key[0] == '\0')
		return 0;
	strlcpy(wv.why, p->verdict_why, sizeof(wv.why));
	return report(c, WIRE_VERDICT, &wv, sizeof(wv), reterr);
}

/* Report whether the device runs an op whose weight has this type. */
static int
report_support(struct chan *c, const struct device_ops *dev,
    enum op_kind kind, uint32_t type, struct err *reterr)
{
	static const struct program none;
	struct wire_support ws = { 0 };
	struct weight w = { .ext = { .type = type } };
	struct op op = { .kind = kind, .layer = -1 };

	op.w = type < QUANT_NTYPES ? &w : NULL;
	strlcpy(ws.op, op_name(kind), sizeof(ws.op));
	if (op.w != NULL)
		strlcpy(ws.type, quant_info(type)->name, sizeof(ws.type));
	ws.yes = (uint32_t)dev->supports(NULL, &none, &op, ws.reason);
	return report(c, WIRE_SUPPORT, &ws, sizeof(ws), reterr);
}

static int
report_supports(struct chan *c, const struct device_ops *dev,
    struct err *reterr)
{
	struct kernels k;
	uint32_t kind, t;
	int rc;

	kernels_init(&k, cpu_flags());
	for (kind = 0; kind < OP_NKINDS; kind++) {
		if (!op_is_matmul(kind) && kind != OP_GET_ROWS) {
			if ((rc = report_support(c, dev, kind,
			    QUANT_NTYPES, reterr)) < 0)
				return rc;
			continue;
		}
		for (t = 0; t < QUANT_NTYPES; t++)
			if (k.mat[t].name != NULL &&
			    (rc = report_support(c, dev, kind, t,
			    reterr)) < 0)
				return rc;
	}
	return 0;
}

static int
report_checks(struct chan *c, const struct device_probe *p,
    struct err *reterr)
{
	struct wire_check wc;
	unsigned i;
	int rc = 0;

	for (i = 0; i < p->nchecks && rc == 0; i++) {
		memset(&wc, 0, sizeof(wc));
		strlcpy(wc.what, p->check[i].what, sizeof(wc.what));
		wc.ok = (uint32_t)p->check[i].ok;
		strlcpy(wc.text, p->check[i].text, sizeof(wc.text));
		rc = report(c, WIRE_CHECK, &wc, sizeof(wc), reterr);
	}
	return rc;
}

int
probe_device(struct chan *c, const struct device_ops *dev,
    const struct device_conf *dc, struct err *reterr)
{
	struct wire_traits wt = {
	    .copies_rows = (uint32_t)dev->copies_rows };
	struct device_probe p = { 0 };
	struct wire_limit wl;
	unsigned i;
	int rc;

	if ((rc = dev->probe(dc, &p, reterr)) < 0)
		return rc;
	wt.choice = p.choice;
	if (!p.choice.is_made)
		wt.choice.layout = dev->layout;
	wt.open_bytes = p.open_bytes != 0 ? p.open_bytes : dev->open_bytes;
	wt.npu_cores = p.npu.ncores;
	wt.npu_segment = p.npu.segment;
	wt.npu_context_bytes = p.npu.context_bytes;
	wt.ascend_fns = p.ascend.fns;
	wt.ascend_has_memory = p.ascend.has_memory;
	wt.ascend_cut_k = p.ascend.cut_k;
	wt.ascend_has_slots = p.ascend.has_slots;
	wt.ascend_granule_bytes = p.ascend.granule_bytes;
	wt.ascend_workspace_percent = p.ascend.workspace_percent;
	wt.ascend_workspace_bytes = p.ascend.workspace_bytes;
	wt.ascend_graph_bytes = p.ascend.graph_bytes;
	/* First the reason why there is none, which has no valid traits. */
	memset(&wl, 0, sizeof(wl));
	strlcpy(wl.name, "found", sizeof(wl.name));
	wl.value = (uint64_t)p.found;
	wl.known = 1;
	strlcpy(wl.from, p.reason, sizeof(wl.from));
	if ((rc = report(c, WIRE_LIMIT, &wl, sizeof(wl), reterr)) < 0 ||
	    (rc = report(c, WIRE_TRAITS, &wt, sizeof(wt), reterr)) < 0)
		return rc;
	for (i = 0; i < p.nlimits; i++) {
		memset(&wl, 0, sizeof(wl));
		strlcpy(wl.name, p.limit[i].name, sizeof(wl.name));
		wl.value = p.limit[i].value;
		wl.known = (uint32_t)p.limit[i].known;
		strlcpy(wl.from, p.limit[i].from, sizeof(wl.from));
		if ((rc = report(c, WIRE_LIMIT, &wl, sizeof(wl), reterr)) < 0)
			return rc;
	}
	if ((rc = report_checks(c, &p, reterr)) < 0 ||
	    (rc = report_verdict(c, &p, reterr)) < 0 ||
	    (rc = report_supports(c, dev, reterr)) < 0)
		return rc;
	return report(c, WIRE_END, NULL, 0, reterr);
}

static int
report_verified(void *arg, const struct selftest_line *l, struct err *reterr)
{
	struct wire_verified wv = { 0 };

	if (l != NULL) {
		strlcpy(wv.op, l->op, sizeof(wv.op));
		strlcpy(wv.type, l->type, sizeof(wv.type));
		strlcpy(wv.reason, l->reason, sizeof(wv.reason));
		wv.verdict = l->verdict;
		wv.got = l->got;
		wv.want = l->want;
		wv.n = l->n;
		wv.error = l->error;
		wv.limit = l->limit;
	}
	return report(arg, WIRE_VERIFIED, &wv, sizeof(wv), reterr);
}

int
probe_verify(struct chan *c, const struct device_ops *dev,
    const struct device_conf *dc, struct err *reterr)
{
	const struct selftest_line nothing = { .op = "all", .type = "",
	    .reason = "it computes nothing, on purpose" };
	struct device *d = NULL;
	int rc;

	if (dev->computes_nothing)
		rc = report_verified(c, &nothing, reterr);
	else if ((rc = dev->open(dc, &d, reterr)) == 0)
		rc = selftest_all(dev, d, dc, report_verified, c, reterr);
	dev->close(d);
	return rc < 0 ? rc : report(c, WIRE_END, NULL, 0, reterr);
}

int
probe_placement(struct chan *c, const struct program *p,
    const struct placement *pl, struct err *reterr)
{
	struct wire_placed wp;
	const struct op *op;
	uint32_t i;
	int rc;

	for (i = 0; i < p->nops; i++) {
		op = &p->op[i];
		memset(&wp, 0, sizeof(wp));
		wp.layer = op->layer;
		wp.head = i >= p->nbody;
		wp.on_device = (uint32_t)pl->op[i].on_device;
		wp.barrier_before = op->barrier_before;
		strlcpy(wp.share, op_share_name(op->share), sizeof(wp.share));
		strlcpy(wp.op, op_name(op->kind), sizeof(wp.op));
		if (op->w != NULL)
			strlcpy(wp.tensor, op->w->ext.name,
			    sizeof(wp.tensor));
		strlcpy(wp.reason, pl->op[i].reason, sizeof(wp.reason));
		if ((rc = report(c, WIRE_PLACED, &wp, sizeof(wp), reterr)) < 0)
			return rc;
	}
	return report(c, WIRE_END, NULL, 0, reterr);
}
