/* worker/orders/load.c - WIRE_LOAD: open the stage, read its weights, confine
 * this process, and say so. */
#include "orders.h"

#include "shm/event.h"
#include "worker/stage/report.h"

/* Are the slots of both rings large enough for the stage's rows? */
static int
do_rings_fit(const struct worker *w)
{
	const struct wire_model *m = &w->sc.model;
	uint32_t n_embd = w->sc.hp.n_embd;
	uint64_t in = slot_bytes(m->batch_rows, m->embedding ? 0 : n_embd);
	uint64_t out = m->head ? slot_bytes(m->head_rows, w->sc.hp.n_vocab) :
	    slot_bytes(m->batch_rows, n_embd);

	return w->have_rings && w->in.slot_bytes >= in &&
	    w->out.slot_bytes >= out;
}

int
order_load(struct worker *w, struct err *reterr)
{
	struct wire_ready r = { 0 };
	struct load_stats st = { 0 };
	int rc;

	if (!order_model_is_complete(w) || !do_rings_fit(w) ||
	    w->stage != NULL ||
	    w->nfile != w->sc.model.nfiles)
		return order_refuse(w, reterr);
	r.reserve_ns = event_now_ns();
	if ((rc = stage_open(&w->sc, &w->stage, reterr)) < 0)
		return rc;
	r.reserve_ns = event_now_ns() - r.reserve_ns;
	stage_attach(w->stage, &w->in, &w->out);
	stage_renew(w->stage, w->epoch, NULL, NULL);
	w->in.sh = w->out.sh = NULL;	/* the stage closes them */
	rc = stage_load(w->stage, w->file, w->nfile, &st, reterr);
	order_close_files(w);
	if (rc < 0)
		return rc;
	order_pin_after_load(w);
	r.file_bytes = st.file_bytes;
	r.read_bytes = st.read_bytes;
	r.load_ns = st.ns;
	r.loaded_ns = event_now_ns();
	r.wait_ns = st.wait_ns;
	r.load_path = st.path;
	r.direct = (uint32_t)st.direct;
	r.registered = (uint32_t)st.registered;
	r.device_ops = stage_placement(w->stage)->device_ops;
	r.cpu_ops = stage_placement(w->stage)->cpu_ops;
	confine_self(w->confine, w->sc.par, r.confined);
	return report(&w->chan, WIRE_READY, &r, sizeof(r), reterr);
}
