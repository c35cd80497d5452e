/* worker/main.c - a session, and the others that share its process: orders in,
 * reports out.
 *
 * Everything arrives over the channel on CHAN_FD (shm/wire.h shows the
 * sequence); files arrive as fds.  Before anything of the model arrives the
 * worker gives up what would let it open a path by name, and more after the
 * load (confine/confine.h).  In order:
 *
 *	worker_main	follow the parent (role_begin)
 *	live		of each session, on a thread of its own:
 *	serve		one order after the other (worker/orders): start,
 *			confine, model, files, rings, load; then
 *	stage_run	the loop of the stage, until it is stopped
 *	serve		questions, until the coordinator closes the channel */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/log.h"
#include "config/roles.h"
#include "worker/orders/team.h"
#include "worker/stage/pool.h"
#include "worker/stage/report.h"

static void
report_error(struct worker *w, const struct err *e, int rc)
{
	struct wire_error we = { .kind = e->kind, .rc = rc };

	strlcpy(we.msg, e->msg, sizeof(we.msg));
	report(&w->chan, WIRE_ERROR, &we, sizeof(we), NULL);
}

static int
dispatch(struct worker *w, struct err *reterr)
{
	switch (w->msg.type) {
	case WIRE_SHARE:
		return order_share(w, reterr);
	case WIRE_START:
		return order_start(w, reterr);
	case WIRE_CONFINE:
		return order_confine(w, reterr);
	case WIRE_MODEL:
		return order_model(w, reterr);
	case WIRE_EXTENTS:
		return order_extents(w, reterr);
	case WIRE_FILE:
		return order_file(w, reterr);
	case WIRE_RINGS:
		return order_rings(w, reterr);
	case WIRE_RENEW:
		return order_renew(w, reterr);
	case WIRE_LOAD:
		return order_load(w, reterr);
	case WIRE_EXPLAIN:
		return order_explain(w, reterr);
	case WIRE_PROBE:
		return order_probe(w, reterr);
	case WIRE_VERIFY:
		return order_verify(w, reterr);
	case WIRE_STATS_ASK:
		return order_stats(w, reterr);
	case WIRE_DRILL:
		return order_drill(w, reterr);
	default:
		return order_refuse(w, reterr);
	}
}

/* Carry out one order, if it arrives by the deadline.  1: done; 0: none came,
 * or the coordinator is gone (w->leave); -errno: leave with this error. */
static int
serve_one(struct worker *w, uint64_t deadline_ns, struct err *reterr)
{
	int rc = chan_recv(&w->chan, &w->msg, deadline_ns);

	if (rc == -ETIMEDOUT)
		return 0;
	if (rc == -EPIPE) {
		w->leave = 1;
		return 0;
	}
	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "control channel: %s",
		    strerror(-rc));
	rc = dispatch(w, reterr);
	chan_msg_done(&w->msg);
	if (rc == -EPIPE)
		w->leave = 1;
	return w->leave ? 0 : rc < 0 ? rc : 1;
}

/* Called by the stage between batches: serve the channel.  1 = leave the
 * loop. */
static int
stage_idle(void *arg)
{
	struct worker *w = arg;
	struct err e = { 0 };
	int rc;

	while ((rc = serve_one(w, 0, &e)) > 0)
		;
	if (rc < 0)
		report_error(w, &e, rc);
	return w->leave || rc < 0;
}

static int
serve(struct worker *w, struct err *reterr)
{
	int rc = 0;

	while (!w->leave && rc >= 0) {
		if (w->stage != NULL && !w->stopped) {
			rc = stage_run(w->stage, stage_idle, w, reterr);
			w->stopped = 1;
			continue;
		}
		rc = serve_one(w, EVENT_FOREVER, reterr);
	}
	return rc;
}

static void
close_session(struct worker *w)
{
	stage_close(w->stage);
	if (w->sc.opened != NULL)
		w->sc.dev->close(w->sc.opened);
	load_uring_close(&w->uring);
	ring_close(&w->in);
	ring_close(&w->out);
	order_close_files(w);
	pool_close(w->sc.par);
	region_close(&w->status_map);
	if (w->bell_fd >= 0)
		close(w->bell_fd);
	chan_close(&w->chan);
	free(w->ext);
	free(w->file);
}

/* A session's life.  An error ends the process: the other sessions cannot go on
 * without this one, and would not return from what they wait for. */
static int
live(struct worker *w, struct err *reterr)
{
	int rc = serve(w, reterr);

	if (rc < 0) {
		report_error(w, reterr, rc);
		if (w->team->n > 1)
			_exit(EXIT_FAILURE);
	}
	close_session(w);
	return rc;
}

static void
live_beside(struct worker *w)
{
	struct err e = { 0 };

	(void)live(w, &e);
}

int
worker_main(int argc, char **argv)
{
	static struct worker w;
	static struct team t;
	struct err e = { 0 };
	int rc;

	(void)argc;
	(void)argv;
	role_begin("straddle worker", CHAN_FD);
	worker_init(&w, CHAN_FD);
	team_init(&t, &w, live_beside);
	if ((rc = procmem_open(&w.proc, &e)) == 0) {
		rc = live(&w, &e);
	} else {
		report_error(&w, &e, rc);
		close_session(&w);
	}
	team_close(&t);
	procmem_close(&w.proc);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
