/* worker/orders/questions.c - statistics, placement, limits, and drills. */
#include "orders.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "worker/stage/drill.h"
#include "worker/stage/probe.h"
#include "worker/stage/report.h"

int
order_stats(struct worker *w, struct err *reterr)
{
	struct wire_stats st = { .ledger_peak = w->ledger.peak_bytes };
	struct device_account dev = stage_account(w->stage);
	struct procmem pm = { 0 };

	memcpy(st.tag_bytes, w->ledger.tag_peak, sizeof(st.tag_bytes));
	procmem_read(&w->proc, &pm);
	st.hwm_bytes = pm.hwm_bytes;
	st.pte_bytes = pm.pte_bytes;
	st.emulator_bytes = dev.own_bytes;
	st.emulator_file_bytes = dev.file_bytes;
	st.emulator_mapped_bytes = dev.mapped_bytes;
	st.device_calls = dev.calls;
	st.device_ns = dev.ns;
	st.device_bytes = dev.device_bytes;
	st.slack_bytes = dev.slack_bytes;
	st.pinned_bytes = dev.pinned_bytes;
	st.apart_bytes = dev.apart_bytes;
	st.huge_asked_bytes = w->ledger.huge_bytes;
	st.huge_bytes = pm.huge_bytes;
	st.huge_known = (uint32_t)pm.huge_known;
	st.huge_off = (uint32_t)pm.huge_off;
	st.batches = atomic_load(&w->sc.status->batches);
	st.busy_ns = atomic_load(&w->sc.status->busy_ns);
	return report(&w->chan, WIRE_STATS, &st, sizeof(st), reterr);
}

/* Ask the device about its operations: their place may depend on the rows, or be
 * the host's.  An opened device knows more reasons, too. */
static int
explain_rows(struct worker *w, const struct program *p, struct placement *pl,
    struct err *reterr)
{
	uint32_t i;
	int rc = 0;

	if (w->sc.opened == NULL || w->sc.dev->explain == NULL)
		return 0;
	for (i = 0; i < p->nops && rc >= 0; i++)
		if (pl->op[i].on_device) {
			rc = w->sc.dev->explain(w->sc.opened, p, &p->op[i],
			    pl->op[i].reason, reterr);
			pl->op[i].on_device = rc == 0;
		} else
			(void)w->sc.dev->supports(w->sc.opened, p, &p->op[i],
			    pl->op[i].reason);
	return MIN(rc, 0);
}

int
order_explain(struct worker *w, struct err *reterr)
{
	struct placement pl = { 0 };
	struct program *p = NULL;
	struct weights ws = { 0 };
	int rc;

	if (!order_model_is_complete(w))
		return order_refuse(w, reterr);
	w->sc.start.strict = 0;		/* show every fallback */
	rc = stage_explain(&w->sc, &pl, &p, &ws, reterr);
	if (rc == 0)
		rc = explain_rows(w, p, &pl, reterr);
	if (rc == 0)
		rc = probe_placement(&w->chan, p, &pl, reterr);
	placement_free(&pl);
	program_free(p);
	weights_free(&ws);
	return rc;
}

/* Is it a shape that a program may have? */
static int
is_size(uint32_t n)
{
	return n >= 1 && n <= INT32_MAX;
}

static int
are_sizes(const uint32_t *cols, uint32_t n, uint32_t most)
{
	uint32_t i;

	for (i = 0; n <= most && i < n; i++)
		if (!is_size(cols[i]))
			return 0;
	return n <= most;
}

static int
are_shapes_sound(const struct device_shapes *s)
{
	const struct device_matrix *m = s->matrix;

	if (s->nmatrices > DEVICE_MATRICES || !isfinite(s->eps) ||
	    s->eps < 0 || !are_sizes(s->norm, s->nnorms, DEVICE_NORMS) ||
	    !are_sizes(s->gate, s->ngates, DEVICE_GATES))
		return 0;
	for (; m < s->matrix + s->nmatrices; m++)
		if (!is_size(m->n) || !is_size(m->k) || m->type >=
		    QUANT_NTYPES)
			return 0;
	return 1;
}

int
order_probe(struct worker *w, struct err *reterr)
{
	struct device_conf dc = stage_device_conf(&w->sc);
	struct wire_probe wp;

	/* A confined worker cannot open the device. */
	if (w->sc.dev == NULL || w->is_confined ||
	    order_payload(w, &wp, sizeof(wp), 0, reterr) < 0 ||
	    wp.has_verdict > 1 || wp.has_shapes > 1 || wp.is_next > 1 ||
	    (wp.has_shapes && !are_shapes_sound(&wp.shapes)))
		return order_refuse(w, reterr);
	wp.verdict.key[sizeof(wp.verdict.key) - 1] = '\0';
	dc.verdict = wp.has_verdict ? &wp.verdict : NULL;
	dc.is_next = (int)wp.is_next;
	dc.shapes = wp.has_shapes ? &wp.shapes : NULL;
	return probe_device(&w->chan, w->sc.dev, &dc, reterr);
}

int
order_verify(struct worker *w, struct err *reterr)
{
	const struct device_conf dc = stage_device_conf(&w->sc);

	if (w->sc.par == NULL || w->is_confined)
		return order_refuse(w, reterr);
	return probe_verify(&w->chan, w->sc.dev, &dc, reterr);
}

int
order_drill(struct worker *w, struct err *reterr)
{
	struct wire_drill d;
	int rc;

	if (w->sc.par == NULL ||
	    (rc = order_payload(w, &d, sizeof(d), 0, reterr)) < 0)
		return order_refuse(w, reterr);
	return drill(&d, &w->ledger, reterr);
}
