/* worker/orders/load.c - WIRE_CONFINE: open the device, confine this process.
 * WIRE_LOAD: open the stage, read its weights, confine this process further,
 * and say so. */
#include "team.h"

#include <string.h>

#include "config/log.h"
#include "layers/staging.h"
#include "shm/event.h"
#include "worker/stage/report.h"
#include "worker/stage/selftest.h"

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

/* Test the device that was opened.  The memory is less than the staging area
 * that the plan counts, and is given back; the session's table shows what the
 * session itself takes. */
static int
prove_device(struct worker *w, const struct device_conf *dc,
    struct err *reterr)
{
	const char *kind = w->sc.dev->kind;
	struct selftest_stats st;
	int rc = selftest_open(w->sc.dev, w->sc.opened, dc, &st, reterr);

	if (rc < 0)
		return rc;
	w->untested = st.untested;
	if (st.untested == NULL)
		log_debug("device %s computes right: %u operations tested in "
		    "%.1f ms, largest error %.1g", kind, st.device_ops,
		    (double)st.ns / 1e6, st.error);
	mem_restart_tag_peaks(&w->ledger);
	return 0;
}

/* Whatever the load needs by name, or from a call that the first step of the
 * confinement denies, is opened here: nothing of the model has arrived. */
static int
open_before(struct worker *w, struct err *reterr)
{
	const struct device_conf dc = stage_device_conf(&w->sc);
	const struct load_conf lc = LOAD_CONF_DEFAULT;
	int rc;

	if ((rc = w->sc.dev->open(&dc, &w->sc.opened, reterr)) < 0 ||
	    (rc = prove_device(w, &dc, reterr)) < 0)
		return rc;
	/* Before capabilities are dropped, because memory that root registers
	 * is not limited.  Without a ring the load uses pread(). */
	w->sc.uring = &w->uring;
	load_uring_open(&w->uring, lc.depth);
	return 0;
}

int
order_confine(struct worker *w, struct err *reterr)
{
	const struct device_conf dc = stage_device_conf(&w->sc);
	struct wire_confine wc;
	int rc;

	if (w->sc.par == NULL || w->is_confined ||
	    (rc = order_payload(w, &wc, sizeof(wc), 0, reterr)) < 0)
		return order_refuse(w, reterr);
	w->open_ns = event_now_ns();
	team_open_begin(w);
	if (wc.opens_device)
		rc = open_before(w, reterr);
	else if (w->sc.dev->explain != NULL)
		rc = w->sc.dev->open(&dc, &w->sc.opened, reterr);
	if (rc < 0)
		return rc;
	team_open_end(w);
	w->open_ns = event_now_ns() - w->open_ns;
	team_meet(w, team_confine);
	w->is_confined = 1;
	return 0;
}

int
order_load(struct worker *w, struct err *reterr)
{
	struct wire_ready r = { 0 };
	struct load_stats st = { 0 };
	struct device_account account;
	int rc;

	if (!order_model_is_complete(w) || !do_rings_fit(w) ||
	    w->stage != NULL || w->sc.opened == NULL ||
	    w->nfile != w->sc.model.nfiles)
		return order_refuse(w, reterr);
	r.reserve_ns = event_now_ns();
	rc = stage_open(&w->sc, &w->stage, reterr);
	w->sc.opened = NULL;
	if (rc < 0)
		return rc;
	r.reserve_ns = event_now_ns() - r.reserve_ns + w->open_ns;
	stage_attach(w->stage, &w->in, &w->out);
	stage_renew(w->stage, w->epoch, NULL, NULL);
	w->in.sh = w->out.sh = NULL;	/* the stage closes them */
	rc = stage_load(w->stage, w->file, w->nfile, &st, reterr);
	order_close_files(w);
	load_uring_close(&w->uring);
	if (rc < 0)
		return rc;
	order_pin_after_load(w);
	/* Not before: a refusal is one line. */
	if (w->untested != NULL)
		log_info("device %s is not tested: %s", w->sc.dev->kind,
		    w->untested);
	r.file_bytes = st.file_bytes;
	r.read_bytes = st.read_bytes;
	r.load_ns = st.ns;
	r.loaded_ns = event_now_ns();
	r.wait_ns = st.wait_ns;
	r.load_path = st.path;
	r.direct = (uint32_t)st.direct;
	r.registered = (uint32_t)st.registered;
	account = stage_account(w->stage);
	r.device_ops = stage_placement(w->stage)->device_ops -
	    account.host_ops;
	r.cpu_ops = stage_placement(w->stage)->cpu_ops + account.host_ops;
	team_meet(w, team_confine_further);
	memcpy(r.confined, w->team->confined, sizeof(r.confined));
	return report(&w->chan, WIRE_READY, &r, sizeof(r), reterr);
}
