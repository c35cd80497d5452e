/* worker/main.c - one process, one session: orders in, reports out.
 *
 * Everything arrives over the channel on CHAN_FD (shm/wire.h shows the
 * sequence); files arrive as fds.  After start no path is opened by name, and
 * after the load none can be (confine.h). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <bsd/string.h>
#include <bsd/unistd.h>

#include "config/cores.h"
#include "config/log.h"
#include "config/roles.h"
#include "kernels/cpu.h"
#include "shm/chan.h"
#include "worker/confine/confine.h"
#include "worker/stage/drill.h"
#include "worker/stage/place_self.h"
#include "worker/stage/pool.h"
#include "worker/stage/probe.h"
#include "worker/stage/procmem.h"
#include "worker/stage/report.h"
#include "worker/stage/stage.h"

/* Spins of the pool's threads, longer than a wake-up takes (35 to 50 us).
 * Between jobs, while the coordinator or the next session on the same cores has
 * its turn, a thread keeps its core from falling asleep, and leaves it to
 * whoever comes. */
#define POOL_JOB_SPIN_NS	150000u
#define POOL_SPIN_NS		100000u
#define POOL_SPIN_LEAST_NS	4000u

struct worker {
	struct chan chan;
	struct chan_msg msg;		/* large: not on the stack */
	struct stage_conf sc;
	struct extent *ext;		/* [sc.model.nextents] */
	uint32_t next;			/* of them received */
	struct load_file *file;		/* [sc.model.nfiles] */
	uint32_t nfile;
	struct ring in, out;
	int have_rings, bell_fd;
	uint32_t owns;			/* of the rings: WIRE_PAYS_* */
	uint32_t epoch;
	struct mem_ledger ledger;
	struct kernels kernels;
	struct region status_map;
	struct stage *stage;
	struct procmem_files proc;
	struct confine *confine;
	int stopped;			/* BATCH_STOP: only questions now */
	int leave;			/* the coordinator closed the channel */
};

static void
report_error(struct worker *w, const struct err *e, int rc)
{
	struct wire_error we = { .kind = e->kind, .rc = rc };

	strlcpy(we.msg, e->msg, sizeof(we.msg));
	report(&w->chan, WIRE_ERROR, &we, sizeof(we), NULL);
}

static int
bad_message(const struct worker *w, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -EBADMSG, "control message %u with "
	    "%u bytes and %u files makes no sense here", w->msg.type,
	    w->msg.nbytes, w->msg.nfds);
}

/* A fixed-size payload, copied out of the message. */
static int
payload(struct worker *w, void *dst, size_t nbytes, unsigned nfds,
    struct err *reterr)
{
	if (w->msg.nbytes != nbytes || w->msg.nfds != nfds)
		return bad_message(w, reterr);
	memcpy(dst, w->msg.buf, nbytes);
	return 0;
}

enum pinned { PINNED_NOT, PINNED_AT_ONCE, PINNED_AFTER_LOAD };

/* A thread a core, on shared cores, too.  Left alone, two threads of a session
 * often wake on the same core, and stay there for as long as a job lasts while
 * another core is idle: a busy kernel looks for none.  On shared ones not before
 * the load, which is the first threads' work, and theirs is the same core in
 * every session; and on the CPU alone, because what another device's library
 * starts later would be on that core as well.  Where threads and shared cores
 * are not as many, some cores would have more than their part. */
static enum pinned
when_pinned(const struct worker *w)
{
	const struct wire_start *ws = &w->sc.start;
	struct cpuset cpus;

	memcpy(cpus.bits, ws->cpus, sizeof(ws->cpus));
	if (ws->own_cores)
		return PINNED_AT_ONCE;
	if (ws->threads == cpuset_count(&cpus) &&
	    w->sc.dev->on_cores)
		return PINNED_AFTER_LOAD;
	return PINNED_NOT;
}

static int
on_start(struct worker *w, struct err *reterr)
{
	struct wire_start *ws = &w->sc.start;
	struct wire_hello hello = { .version = WIRE_VERSION };
	struct pool_conf pc = { 0 };
	uint32_t of_core[MAX_CPUS], speed[MAX_CPUS];
	unsigned cpu, n = 0;
	enum pinned when;
	struct procmem pm;
	int rc;

	if (w->sc.par != NULL ||
	    (rc = payload(w, ws, sizeof(*ws), 1, reterr)) < 0)
		return bad_message(w, reterr);
	if (ws->version != WIRE_VERSION)
		return err_set(reterr, ERR_RUN, -EPROTO, "the coordinator "
		    "speaks version %u, this worker %u", ws->version,
		    WIRE_VERSION);
	ws->name[MAX_NAME - 1] = ws->device[MAX_NAME - 1] =
	    ws->port[MAX_NAME - 1] = '\0';
	log_init(ws->name, ws->verbose);
	memcpy(pc.cpus.bits, ws->cpus, sizeof(ws->cpus));
	if (ws->threads < 1 || ws->threads > MAX_CPUS ||
	    cpuset_count(&pc.cpus) == 0)
		return bad_message(w, reterr);
	if ((rc = device_find(ws->device, &w->sc.dev, reterr)) < 0 ||
	    (rc = place_self(ws, reterr)) < 0)
		return rc;
	if ((rc = region_attach_shared(w->msg.fds[0],
	    sizeof(struct stage_status), &w->status_map, reterr)) < 0)
		return rc;
	w->msg.fds[0] = -1;
	region_close_fd(&w->status_map);
	w->sc.status = w->status_map.base;
	if (w->sc.status->magic != STATUS_MAGIC ||
	    w->sc.status->version != WIRE_VERSION)
		return bad_message(w, reterr);
	mem_ledger_init(&w->ledger, ws->name, ws->cap_bytes);
	w->sc.ledger = &w->ledger;
	kernels_init(&w->kernels, cpu_flags() |
	    (ws->threads == 1 ? CPU_SINGLE_THREAD : 0));
	kernels_set_layout(&w->kernels, w->sc.dev->layout);
	w->sc.kernels = &w->kernels;
	when = when_pinned(w);
	pc.nthreads = ws->threads;
	pc.pin = when == PINNED_AT_ONCE;
	if (when != PINNED_NOT && ws->threads > 1) {
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

/* Ranges that the rest relies on; the sender is trusted to mean well, not to
 * be right. */
static int
model_sane(const struct wire_model *m, const struct hparams *hp)
{
	return arch_info(hp->arch) != NULL && hp->n_embd > 0 && hp->n_head_kv > 0 &&
	    hp->n_head % hp->n_head_kv == 0 && hp->n_vocab > 0 &&
	    hp->n_layer <= MAX_LAYERS && hp->n_expert <= MAX_EXPERTS &&
	    hp->n_expert_used <= hp->n_expert &&
	    m->batch_rows >= 1 && m->batch_rows <= MAX_BATCH &&
	    m->head_rows >= 1 && m->head_rows <= m->batch_rows &&
	    m->nseqs >= 1 && m->nseqs <= MAX_SEQS && m->ctx_tok >= 1 &&
	    m->kfmt < KV_NTYPES && m->vfmt < KV_NTYPES &&
	    m->nsublayers <= 2 * hp->n_layer &&
	    m->first_sublayer <= 2 * hp->n_layer - m->nsublayers &&
	    m->nextents < 1u << 20 && m->nfiles < 1u << 16;
}

/* "straddle: htp0 embedding layers 0-5", for ps and top. */
static void
set_title(const struct worker *w)
{
	const struct wire_model *m = &w->sc.model;
	char layers[SUBLAYERS_LEN];

	sublayers_text(m->first_sublayer, m->nsublayers, layers);
	setproctitle("-straddle: %s%s%s%s%s", w->sc.start.name,
	    m->embedding ? " embedding" : "", layers[0] != '\0' ?
	    " layers " : "", layers, m->head ? " head" : "");
}

static int
on_model(struct worker *w, struct err *reterr)
{
	struct wire_model *m = &w->sc.model;

	if (w->ext != NULL || w->sc.par == NULL || w->msg.nfds != 0 ||
	    w->msg.nbytes != sizeof(*m) + sizeof(w->sc.hp))
		return bad_message(w, reterr);
	memcpy(m, w->msg.buf, sizeof(*m));
	memcpy(&w->sc.hp, w->msg.buf + sizeof(*m), sizeof(w->sc.hp));
	if (!model_sane(m, &w->sc.hp))
		return bad_message(w, reterr);
	w->ext = calloc(m->nextents + 1, sizeof(*w->ext));
	w->file = calloc(m->nfiles + 1, sizeof(*w->file));
	if (w->ext == NULL || w->file == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	w->sc.ext = w->ext;
	set_title(w);
	return 0;
}

static int
on_extents(struct worker *w, struct err *reterr)
{
	uint32_t n = w->msg.nbytes / sizeof(struct extent), i;

	if (w->ext == NULL || w->msg.nbytes % sizeof(struct extent) != 0 ||
	    w->msg.nfds != 0 || n > w->sc.model.nextents - w->next)
		return bad_message(w, reterr);
	memcpy(w->ext + w->next, w->msg.buf, w->msg.nbytes);
	for (i = w->next; i < w->next + n; i++)
		w->ext[i].name[EXTENT_NAME - 1] = '\0';
	w->next += n;
	return 0;
}

static int
on_file(struct worker *w, struct err *reterr)
{
	struct wire_file wf;
	struct load_file *f;
	int rc;

	if (w->file == NULL || w->nfile == w->sc.model.nfiles ||
	    w->msg.nfds < 1)
		return bad_message(w, reterr);
	if ((rc = payload(w, &wf, sizeof(wf), w->msg.nfds, reterr)) < 0)
		return rc;
	if (w->msg.nfds != (wf.direct ? 2 : 1))
		return bad_message(w, reterr);
	wf.name[sizeof(wf.name) - 1] = '\0';
	f = &w->file[w->nfile++];
	f->fd = chan_take_fd(&w->msg, 0);
	f->direct_fd = wf.direct ? chan_take_fd(&w->msg, 1) : -1;
	strlcpy(f->name, wf.name, sizeof(f->name));
	f->nbytes = wf.nbytes;
	f->dev = wf.dev;
	f->ino = wf.ino;
	f->mtime_ns = wf.mtime_ns;
	f->mem_align = wf.mem_align;
	f->off_align = wf.off_align;
	return 0;
}

static int
on_rings(struct worker *w, struct err *reterr)
{
	struct wire_rings wr;
	uint64_t nbytes;
	int rc;

	if (w->have_rings || w->sc.par == NULL || w->msg.nfds < 2)
		return bad_message(w, reterr);
	if ((rc = payload(w, &wr, sizeof(wr), w->msg.nfds, reterr)) < 0)
		return rc;
	if (w->msg.nfds != (wr.has_bell ? 3 : 2))
		return bad_message(w, reterr);
	nbytes = w->status_map.nbytes;
	if (wr.pays & WIRE_PAYS_IN)
		nbytes += ring_bytes(wr.in_nslots, wr.in_slot_bytes);
	if (wr.pays & WIRE_PAYS_OUT)
		nbytes += ring_bytes(wr.out_nslots, wr.out_slot_bytes);
	if ((rc = mem_charge(&w->ledger, MEM_RINGS, nbytes, "rings",
	    reterr)) < 0 ||
	    (rc = ring_attach(w->msg.fds[0], RING_SIDE_CONSUMER, wr.in_nslots,
	    wr.in_slot_bytes, &w->in, reterr)) < 0)
		return rc;
	w->msg.fds[0] = -1;
	if ((rc = ring_attach(w->msg.fds[1], RING_SIDE_PRODUCER,
	    wr.out_nslots, wr.out_slot_bytes, &w->out, reterr)) < 0) {
		ring_close(&w->in);
		return rc;
	}
	w->msg.fds[1] = -1;
	w->bell_fd = wr.has_bell ? chan_take_fd(&w->msg, 2) : -1;
	/* Their pages count from now on, not from the first full batch, and a
	 * group counts them where they are touched first: with their owner. */
	ring_touch(&w->in, (wr.owns & WIRE_PAYS_IN) != 0);
	ring_touch(&w->out, (wr.owns & WIRE_PAYS_OUT) != 0);
	w->in.spin_ns = w->out.spin_ns = wr.spin_ns;
	w->out.bell_fd = w->bell_fd;
	w->owns = wr.owns;
	w->epoch = wr.epoch;
	w->have_rings = 1;
	return 0;
}

/* The ring of the next fd in place of old; its numbers are those of old. */
static int
take_ring(struct worker *w, unsigned *at, const struct ring *old,
    struct ring *ret, struct err *reterr)
{
	int rc = ring_attach(w->msg.fds[*at], old->side, old->nslots,
	    old->slot_bytes, ret, reterr);

	if (rc < 0)
		return rc;
	w->msg.fds[(*at)++] = -1;
	ret->spin_ns = old->spin_ns;
	ret->bell_fd = old->bell_fd;
	return 0;
}

/* Another worker was lost.  The rings that were are let go before the new ones
 * are touched: both together are in no plan. */
static int
on_renew(struct worker *w, struct err *reterr)
{
	struct wire_renew wr;
	struct wire_renewed done;
	struct ring in, out;
	unsigned at = 0;
	int rc;

	if (!w->have_rings || w->msg.nbytes != sizeof(wr))
		return bad_message(w, reterr);
	memcpy(&wr, w->msg.buf, sizeof(wr));
	if (wr.has_in > 1 || wr.has_out > 1 ||
	    w->msg.nfds != wr.has_in + wr.has_out)
		return bad_message(w, reterr);
	if (wr.has_in && (rc = take_ring(w, &at, &w->in, &in, reterr)) < 0)
		return rc;
	if (wr.has_out &&
	    (rc = take_ring(w, &at, &w->out, &out, reterr)) < 0) {
		if (wr.has_in)
			ring_close(&in);
		return rc;
	}
	w->epoch = done.epoch = wr.epoch;
	if (w->stage != NULL)
		stage_renew(w->stage, wr.epoch, wr.has_in ? &in : NULL,
		    wr.has_out ? &out : NULL);
	else {
		if (wr.has_in)
			ring_close(&w->in);
		if (wr.has_out)
			ring_close(&w->out);
	}
	if (wr.has_in)
		w->in = in;
	if (wr.has_out)
		w->out = out;
	w->stopped = 0;
	rc = report(&w->chan, WIRE_RENEWED, &done, sizeof(done), reterr);
	/* After the answer: an owner who is about to be started may let us
	 * wait. */
	if (wr.has_in)
		ring_touch(&w->in, (w->owns & WIRE_PAYS_IN) != 0);
	if (wr.has_out)
		ring_touch(&w->out, (w->owns & WIRE_PAYS_OUT) != 0);
	if (w->stage != NULL)
		w->in.sh = w->out.sh = NULL;	/* it closes them */
	return rc;
}

static int
complete(const struct worker *w)
{
	return w->ext != NULL && w->next == w->sc.model.nextents;
}

/* What the stage writes must fit what it was handed. */
static int
rings_fit(const struct worker *w)
{
	const struct wire_model *m = &w->sc.model;
	uint32_t n_embd = w->sc.hp.n_embd;
	uint64_t in = slot_bytes(m->batch_rows, m->embedding ? 0 : n_embd);
	uint64_t out = m->head ? slot_bytes(m->head_rows, w->sc.hp.n_vocab) :
	    slot_bytes(m->batch_rows, n_embd);

	return w->have_rings && w->in.slot_bytes >= in &&
	    w->out.slot_bytes >= out;
}

static void
close_files(struct worker *w)
{
	struct load_file *f;

	while (w->nfile > 0) {
		f = &w->file[--w->nfile];
		close(f->fd);
		if (f->direct_fd >= 0)
			close(f->direct_fd);
	}
}

static void
pin_after_load(struct worker *w)
{
	struct err e;

	if (when_pinned(w) == PINNED_AFTER_LOAD &&
	    pool_pin(w->sc.par, &e) < 0)
		log_warnx("%s; the threads stay unbound", e.msg);
}

static int
on_load(struct worker *w, struct err *reterr)
{
	struct wire_ready r = { 0 };
	struct load_stats st = { 0 };
	int rc;

	if (!complete(w) || !rings_fit(w) || w->stage != NULL ||
	    w->nfile != w->sc.model.nfiles)
		return bad_message(w, reterr);
	if ((rc = stage_open(&w->sc, &w->stage, reterr)) < 0)
		return rc;
	stage_attach(w->stage, &w->in, &w->out);
	stage_renew(w->stage, w->epoch, NULL, NULL);
	w->in.sh = w->out.sh = NULL;	/* no longer ours to close */
	rc = stage_load(w->stage, w->file, w->nfile, &st, reterr);
	close_files(w);
	if (rc < 0)
		return rc;
	pin_after_load(w);
	r.file_bytes = st.file_bytes;
	r.read_bytes = st.read_bytes;
	r.load_ns = st.ns;
	r.wait_ns = st.wait_ns;
	r.load_path = st.path;
	r.direct = (uint32_t)st.direct;
	r.registered = (uint32_t)st.registered;
	r.device_ops = stage_placement(w->stage)->device_ops;
	r.cpu_ops = stage_placement(w->stage)->cpu_ops;
	confine_self(w->confine, w->sc.par, r.confined);
	return report(&w->chan, WIRE_READY, &r, sizeof(r), reterr);
}

static int
send_stats(struct worker *w, struct err *reterr)
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
	st.huge_asked_bytes = w->ledger.huge_bytes;
	st.huge_bytes = pm.huge_bytes;
	st.huge_known = (uint32_t)pm.huge_known;
	st.huge_off = (uint32_t)pm.huge_off;
	st.batches = atomic_load(&w->sc.status->batches);
	st.busy_ns = atomic_load(&w->sc.status->busy_ns);
	return report(&w->chan, WIRE_STATS, &st, sizeof(st), reterr);
}

static int
on_explain(struct worker *w, struct err *reterr)
{
	struct placement pl = { 0 };
	struct program *p = NULL;
	struct weights ws = { 0 };
	int rc;

	if (!complete(w))
		return bad_message(w, reterr);
	w->sc.start.strict = 0;		/* show all of it */
	rc = stage_explain(&w->sc, &pl, &p, &ws, reterr);
	if (rc == 0)
		rc = probe_placement(&w->chan, p, &pl, reterr);
	placement_free(&pl);
	program_free(p);
	weights_free(&ws);
	return rc;
}

static int
on_probe(struct worker *w, struct err *reterr)
{
	const struct device_conf dc = stage_device_conf(&w->sc);

	if (w->sc.dev == NULL)
		return bad_message(w, reterr);
	return probe_device(&w->chan, w->sc.dev, &dc, reterr);
}

static int
on_drill(struct worker *w, struct err *reterr)
{
	struct wire_drill d;
	int rc;

	if (w->sc.par == NULL ||
	    (rc = payload(w, &d, sizeof(d), 0, reterr)) < 0)
		return bad_message(w, reterr);
	return drill(&d, &w->ledger, reterr);
}

static int
dispatch(struct worker *w, struct err *reterr)
{
	switch (w->msg.type) {
	case WIRE_START:
		return on_start(w, reterr);
	case WIRE_MODEL:
		return on_model(w, reterr);
	case WIRE_EXTENTS:
		return on_extents(w, reterr);
	case WIRE_FILE:
		return on_file(w, reterr);
	case WIRE_RINGS:
		return on_rings(w, reterr);
	case WIRE_RENEW:
		return on_renew(w, reterr);
	case WIRE_LOAD:
		return on_load(w, reterr);
	case WIRE_EXPLAIN:
		return on_explain(w, reterr);
	case WIRE_PROBE:
		return on_probe(w, reterr);
	case WIRE_STATS_ASK:
		return send_stats(w, reterr);
	case WIRE_DRILL:
		return on_drill(w, reterr);
	default:
		return bad_message(w, reterr);
	}
}

/* One message if there is one by the deadline.  1 = there was, 0 = none, or
 * what to leave with. */
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

/* Asked by the stage: anything on the channel?  1 = leave the loop. */
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

/* The coordinator decides when we end: the terminal's signals are its own, and
 * should it die, so do we.  Should it have died before prctl() took hold, its
 * end of the channel is closed, and the first read says so. */
static void
follow_parent(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

int
worker_main(int argc, char **argv)
{
	static struct worker w = {
		.chan = { .fd = CHAN_FD },
		.bell_fd = -1, .status_map = REGION_NONE,
		.proc = PROCMEM_NONE,
	};
	struct err e = { 0 };
	int rc;

	(void)argc;
	(void)argv;
	log_init("straddle worker", 0);
	follow_parent();
	closefrom(CHAN_FD + 1);
	w.confine = confine_open();
	if ((rc = procmem_open(&w.proc, &e)) == 0)
		rc = serve(&w, &e);
	if (rc < 0)
		report_error(&w, &e, rc);
	stage_close(w.stage);
	ring_close(&w.in);
	ring_close(&w.out);
	close_files(&w);
	pool_close(w.sc.par);
	region_close(&w.status_map);
	if (w.bell_fd >= 0)
		close(w.bell_fd);
	procmem_close(&w.proc);
	confine_close(w.confine);
	chan_close(&w.chan);
	free(w.ext);
	free(w.file);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
