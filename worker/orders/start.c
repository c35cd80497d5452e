/* worker/orders/start.c - WIRE_START: settings, node, cores, threads,
 * ledger. */
#include "team.h"

#include <errno.h>
#include <string.h>

#include "config/cores.h"
#include "config/devices.h"
#include "config/log.h"
#include "kernels/cpu.h"
#include "worker/stage/place_self.h"
#include "worker/stage/pool.h"
#include "worker/stage/report.h"

/* How long a thread of the pool spins before it sleeps: longer than a wake-up
 * takes, see tests/MEASURED.md.  Between jobs the spin keeps the core out of
 * deep sleep while the coordinator or the next session has its turn, and yields
 * to any other thread that wants the core. */
#define POOL_JOB_SPIN_NS	150000u
#define POOL_SPIN_NS		100000u
#define POOL_SPIN_LEAST_NS	4000u

enum pinned { PINNED_NEVER, PINNED_AT_START, PINNED_AFTER_LOAD };

/* Where each thread gets a core.
 *
 * Left to the kernel, two threads of a session often wake on the same core and
 * stay there for a whole job while another core is idle.  On cores of its own a
 * session binds its threads at once.  On shared cores it binds them after the
 * load, because thread 0 does most of the load and is bound to the same core in
 * every session; only with a thread for each shared core, since otherwise some
 * cores would serve more threads than others; and only for a device that
 * computes on these threads: what another device's library starts later would
 * inherit the binding. */
static enum pinned
when_pinned(const struct worker *w)
{
	const struct wire_start *ws = &w->sc.start;
	struct cpuset cpus;

	memcpy(cpus.bits, ws->cpus, sizeof(ws->cpus));
	if (ws->own_cores)
		return PINNED_AT_START;
	if (ws->threads == cpuset_count(&cpus) &&
	    device_is_on_cores(w->sc.dev->kind))
		return PINNED_AFTER_LOAD;
	return PINNED_NEVER;
}

void
worker_init(struct worker *w, int chan_fd)
{
	w->chan.fd = chan_fd;
	w->bell_fd = -1;
	w->status_map = (struct region)REGION_NONE;
	w->proc = (struct procmem_files)PROCMEM_NONE;
}

/* The channels of further sessions come with as many messages as they need. */
int
order_share(struct worker *w, struct err *reterr)
{
	struct team *t = w->team;
	struct wire_share ws;
	unsigned i;
	int rc;

	if (w->sc.par != NULL || w->msg.nfds == 0 ||
	    w->msg.nbytes != sizeof(ws))
		return order_refuse(w, reterr);
	memcpy(&ws, w->msg.buf, sizeof(ws));
	if (ws.nsessions > MAX_SESSIONS ||
	    (t->n > 1 && ws.nsessions != t->n) ||
	    w->msg.nfds > ws.nsessions ||
	    t->nhave > ws.nsessions - w->msg.nfds)
		return order_refuse(w, reterr);
	t->n = ws.nsessions;
	for (i = 0; i < w->msg.nfds; i++) {
		if ((rc = team_add(t, w->msg.fds[i], reterr)) < 0)
			return rc;
		w->msg.fds[i] = -1;
	}
	return t->nhave == t->n ? team_start(t, reterr) : 0;
}

int
order_start(struct worker *w, struct err *reterr)
{
	struct wire_start *ws = &w->sc.start;
	struct wire_hello hello = { .version = WIRE_VERSION };
	struct pool_conf pc = { 0 };
	uint32_t of_core[MAX_CPUS], speed[MAX_CPUS];
	unsigned cpu, n = 0;
	enum pinned when;
	struct procmem pm;
	int rc;

	if (w->sc.par != NULL || w->team->nhave != w->team->n ||
	    (rc = order_payload(w, ws, sizeof(*ws), 1, reterr)) < 0)
		return order_refuse(w, reterr);
	if (ws->version != WIRE_VERSION)
		return err_set(reterr, ERR_RUN, -EPROTO, "the coordinator "
		    "speaks version %u, this worker %u", ws->version,
		    WIRE_VERSION);
	ws->name[MAX_NAME - 1] = ws->device[MAX_NAME - 1] =
	    ws->port[MAX_NAME - 1] = '\0';
	log_init_thread(ws->name, ws->verbose);
	memcpy(pc.cpus.bits, ws->cpus, sizeof(ws->cpus));
	if (ws->threads < 1 || ws->threads > MAX_CPUS ||
	    cpuset_count(&pc.cpus) == 0 ||
	    ws->choice.layout >= LAYOUT_NTYPES)
		return order_refuse(w, reterr);
	if ((rc = device_find(ws->device, &w->sc.dev, reterr)) < 0 ||
	    (rc = place_self(ws, reterr)) < 0)
		return rc;
	team_started(w->team, device_rights(w->sc.dev->kind));
	if ((rc = region_attach_shared(w->msg.fds[0],
	    sizeof(struct stage_status), &w->status_map, reterr)) < 0)
		return rc;
	w->msg.fds[0] = -1;
	region_close_fd(&w->status_map);
	w->sc.status = w->status_map.base;
	if (w->sc.status->magic != STATUS_MAGIC ||
	    w->sc.status->version != WIRE_VERSION)
		return order_refuse(w, reterr);
	mem_ledger_init(&w->ledger, ws->name, ws->cap_bytes);
	w->sc.ledger = &w->ledger;
	kernels_init(&w->kernels, cpu_flags() |
	    (ws->threads == 1 ? CPU_SINGLE_THREAD : 0));
	kernels_set_layout(&w->kernels, ws->choice.is_made ?
	    ws->choice.layout : w->sc.dev->layout);
	w->sc.kernels = &w->kernels;
	when = when_pinned(w);
	pc.nthreads = ws->threads;
	pc.pin = when == PINNED_AT_START;
	if (when != PINNED_NEVER && ws->threads > 1) {
		cores_speeds(&pc.cpus, "/sys", of_core);
		for (cpu = 0; cpu < MAX_CPUS; cpu++)
			if (of_core[cpu] > 0)
				speed[n++] = of_core[cpu];
		pc.speed = speed;
	}
	pc.job_spin_ns = POOL_JOB_SPIN_NS;
	pc.spin_ns = POOL_SPIN_NS;
	pc.spin_least_ns = ws->own_cores ? POOL_SPIN_NS : POOL_SPIN_LEAST_NS;
	if ((rc = pool_open(&pc, &w->sc.par, reterr)) < 0 ||
	    (rc = mem_charge(&w->ledger, MEM_RUNTIME,
	    ws->planned[MEM_RUNTIME], "the process itself", reterr)) < 0 ||
	    (rc = mem_charge(&w->ledger, MEM_EMULATOR,
	    ws->planned[MEM_EMULATOR], "its device's emulator", reterr)) < 0)
		return rc;
	if (procmem_read(&w->proc, &pm) == 0)
		hello.rss_bytes = pm.hwm_bytes + pm.pte_bytes;
	return report(&w->chan, WIRE_HELLO, &hello, sizeof(hello), reterr);
}

void
order_pin_after_load(struct worker *w)
{
	struct err e;

	if (when_pinned(w) == PINNED_AFTER_LOAD &&
	    pool_pin(w->sc.par, &e) < 0)
		log_warnx("%s; the threads stay unbound", e.msg);
}
