/* coordinator/engine/engine.c - opens model, plan, sessions and pipeline, in this
 * order, and ends them. */
#include "parts.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config/cores.h"
#include "config/log.h"
#include "config/rights.h"
#include "kernels/cpu.h"
#include "shm/event.h"
#include "impl.h"
#include "notes.h"
#include "signals.h"
#include "coordinator/print/confined.h"
#include "coordinator/print/progress.h"
#include "coordinator/session/base_memory.h"
#include "coordinator/session/device_limits.h"
#include "coordinator/session/device_shapes.h"
#include "coordinator/session/fatal.h"

/* Signals wait until the worker has ended: a signal that killed this process
 * earlier would leave the worker's memory group in the system. */
static int
measure_base_memory(const struct conf *c, struct err *reterr)
{
	sigset_t before;
	int fd, rc;

	if ((fd = signals_block(&before, reterr)) < 0)
		return fd;
	rc = base_memory_measure(c, fd, reterr);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fd);
	return rc;
}

/* A signal ends the wait for the reader with a message, and nothing is left
 * behind. */
static int
open_reader(const struct conf *c, struct reader **ret, struct err *reterr)
{
	struct reader_how how = { .poll = signals_check,
	    .meanwhile = measure_base_memory };
	sigset_t before;
	int fd, rc;

	if ((fd = signals_block(&before, reterr)) < 0)
		return fd;
	how.wants_vocab = c->cmd == CMD_RUN || c->cmd == CMD_CHAT ||
	    (c->cmd == CMD_EVAL && c->text_path != NULL);
	rc = reader_open(c, &how, ret, reterr);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fd);
	return rc;
}

int
engine_open(const struct conf *c, struct engine **ret, struct err *reterr)
{
	struct engine *eng = calloc(1, sizeof(*eng));
	int rc;

	if (eng == NULL)
		return err_nomem(reterr, "the engine");
	eng->conf = c;
	eng->signal_fd = -1;
	if ((rc = open_reader(c, &eng->reader, reterr)) < 0 ||
	    (rc = reader_model(eng->reader, &eng->model, reterr)) < 0)
		goto fail;
	notes_unused_tensors(engine_file(eng), eng->model);
	kernels_init(&eng->kernels, cpu_flags());
	if ((rc = model_check_kernels(eng->model, &eng->kernels, reterr)) < 0)
		goto fail;
	*ret = eng;
	return 0;
fail:
	engine_close(eng);
	return rc;
}

int
engine_open_tokenizer(struct engine *eng, struct err *reterr)
{
	const struct conf *c = eng->conf;
	int rc = reader_tokenizer(eng->reader, &eng->vocab, reterr);

	if (rc == 0 && (c->cmd == CMD_CHAT || c->chat))
		rc = form_open(c, engine_file(eng), eng->vocab, &eng->form,
		    reterr);
	if (rc == 0 && eng->form != NULL)
		rc = thinking_open(c, eng->form, eng->vocab, &eng->marks,
		    reterr);
	return rc;
}

/* --- plan --- */

/* The memory of this machine that the sessions of c must fit into.  Returns the
 * number of rooms: 0 = it does not matter. */
static unsigned
measure_rooms(const struct conf *c, struct plan_room rooms[PLAN_ROOMS])
{
	unsigned n = 0, k;
	int i;

	room_all("", &rooms[n].room);
	rooms[n++].node = -1;
	for (i = 0; i < c->nsessions; i++) {
		for (k = 1; k < n; k++)
			if (rooms[k].node == c->session[i].node)
				break;
		if (c->session[i].node < 0 || k < n)
			continue;
		rooms[n].node = c->session[i].node;
		room_node("", rooms[n].node, &rooms[n].room);
		n++;
	}
	/* explain loads nothing. */
	return c->another_machine || c->overcommit || c->cmd == CMD_EXPLAIN ?
	    0 : n;
}

int
engine_plan(struct engine *eng, struct err *reterr)
{
	const struct conf *c = eng->conf;
	uint32_t core_speed[MAX_CPUS];
	struct cpuset cores, seconds;
	struct plan_env env = {
		.model = eng->model, .kernels = &eng->kernels,
		.overcommit = c->overcommit,
		.charged_once = enforce_best(NULL) == ENFORCE_CGROUP,
		.runtime_bytes = base_memory_bytes,
		.shared_bytes = base_memory_shared,
		.margin_bytes = BASE_MEMORY_ROUND,
		.core_speed = core_speed, .core_seconds = &seconds,
		.limits = device_limits_of,
	};
	struct device_shapes shapes;
	int rc;

	free(eng->rooms);
	if ((eng->rooms = calloc(PLAN_ROOMS, sizeof(*eng->rooms))) == NULL)
		return err_nomem(reterr, "the limits of this machine");
	env.rooms = eng->rooms;
	env.nrooms = measure_rooms(c, eng->rooms);
	env.process_room = base_memory_room;
	if (!c->another_machine && eng->rooms[0].room.free_bytes != UINT64_MAX)
		env.free_bytes = eng->rooms[0].room.free_bytes;
	if (eng->rooms[0].room.rc < 0)
		return err_set(reterr, ERR_RUN, eng->rooms[0].room.rc,
		    "the limits of this machine: %s",
		    strerror(-eng->rooms[0].room.rc));
	device_shapes_of(eng->model, &shapes);
	if ((rc = device_limits_probe(c, &shapes, reterr)) < 0)
		return rc;
	conf_cores(c, &cores);
	cores_speeds(&cores, "/sys", core_speed);
	seconds = cores_seconds(&cores, "/sys");
	if (c->fit &&
	    (eng->fit_conf = malloc(sizeof(*eng->fit_conf))) == NULL)
		return err_nomem(reterr, "the settings that fit");
	rc = c->fit ? plan_fit(c, &env, eng->fit_conf, &eng->plan,
	    eng->fit_reason, reterr) : plan_build(c, &env, &eng->plan, reterr);
	if (rc < 0)
		return rc;
	notes_plan(&eng->plan, c->another_machine ? NULL :
	    &eng->rooms[0].room);
	notes_quota(c, &eng->plan);
	return own_open(&eng->own, c, &eng->plan, reterr);
}

/* --- sessions --- */

static void
log_loaded(const struct session *s)
{
	static const char *const paths[] = { "auto", "io_uring",
	    "io_uring", "pread" };
	const struct wire_ready *r = &s->ready;
	struct rlimit rl;

	log_debug("session %s: pid %d, %u threads%s; read %" PRIu64 " bytes "
	    "with %s, %s%s, in %.3f s, of it %.3f s waiting; %u operations "
	    "on %s, %u fall back to the CPU", s->name, (int)s->proc->child.pid,
	    s->plan->threads, plan_core_each(s->plan) ?
	    " on cores of their own" : "", r->read_bytes,
	    paths[r->load_path % NITEMS(paths)],
	    r->direct ? "direct" : "buffered",
	    r->registered ? ", registered buffers" : "",
	    (double)r->load_ns / 1e9, (double)r->wait_ns / 1e9,
	    r->device_ops, s->plan->conf->device, r->cpu_ops);
	if (!r->registered && geteuid() != 0 &&
	    getrlimit(RLIMIT_MEMLOCK, &rl) == 0 &&
	    rl.rlim_cur < s->plan->bytes[MEM_STAGING])
		log_debug("session %s: it may lock %llu KiB: `ulimit -l` of "
		    "%" PRIu64 " lets the load register its buffers", s->name,
		    (unsigned long long)rl.rlim_cur / 1024,
		    s->plan->bytes[MEM_STAGING] / 1024);
}

/* Groups and model outlast root: a process that stays root makes the groups, and
 * what only root can open stays open. */
static int
prepare_user(struct engine *eng, struct err *reterr)
{
	const struct gguf *g = engine_file(eng);
	int rc;

	gguf_keep(g->file, g->nfiles);
	if ((rc = enforce_keep(reterr)) == 0 && enforce_keeper() > 0)
		log_debug("rights: process %d, which keeps the memory groups, "
		    "stays root, with %s", (int)enforce_keeper(),
		    enforce_is_foreign() ? "CAP_DAC_OVERRIDE (groups in "
		    "folders of others)" : "no capability");
	return rc;
}

int
engine_settle(struct engine *eng, struct err *reterr)
{
	int rc;

	if (rights_change_user() && (rc = prepare_user(eng, reterr)) < 0)
		return rc;
	return rights_settle(enforce_is_foreign(), reterr);
}

int
engine_spawn(struct engine *eng, struct err *reterr)
{
	int rc;

	if ((rc = engine_settle(eng, reterr)) < 0)
		return rc;
	eng->rows = calloc(eng->plan.batch_rows, sizeof(*eng->rows));
	if (eng->rows == NULL)
		return err_nomem(reterr, "a batch of %" PRIu32 " rows",
		    eng->plan.batch_rows);
	signal(SIGPIPE, SIG_IGN);
	if ((eng->signal_fd = signals_block(NULL, reterr)) < 0)
		return eng->signal_fd;
	return sessions_open(&eng->plan, eng->conf, eng->signal_fd,
	    &eng->sessions, reterr);
}

static int
load_sessions(struct engine *eng, sessions_tick_fn *tick, void *arg,
    struct err *reterr)
{
	uint64_t t0 = event_now_ns();
	int rc = sessions_load(eng->sessions, tick, arg, reterr);

	eng->load_ns = event_now_ns() - t0;
	return rc;
}

/* How long the sessions read, from the first to the last, and how long the
 * slowest reserved.  Their clocks are ours; no claim exceeds the whole load. */
static void
note_times(struct engine *eng)
{
	const struct sessions *ss = eng->sessions;
	uint64_t first = UINT64_MAX, last = 0;
	const struct wire_ready *r;
	unsigned i;

	for (i = 0; i < ss->n; i++) {
		r = &ss->s[i].ready;
		eng->reserve_ns = MAX(eng->reserve_ns, r->reserve_ns);
		last = MAX(last, r->loaded_ns);
		first = MIN(first, r->loaded_ns - MIN(r->load_ns,
		    r->loaded_ns));
	}
	eng->reserve_ns = MIN(eng->reserve_ns, eng->load_ns);
	eng->read_ns = MIN(last - MIN(first, last), eng->load_ns);
}

static int
open_pipeline(struct engine *eng, struct err *reterr)
{
	const struct sessions *ss = eng->sessions;
	unsigned i;

	for (i = 0; i < ss->n; i++) {
		eng->file_bytes += ss->s[i].ready.file_bytes;
		log_loaded(&ss->s[i]);
	}
	note_times(eng);
	confined_log(ss);
	return pipeline_open(eng->sessions, &eng->pipe, reterr);
}

int
engine_load(struct engine *eng, sessions_tick_fn *tick, void *arg,
    struct err *reterr)
{
	int rc = load_sessions(eng, tick, arg, reterr);

	return rc < 0 ? rc : open_pipeline(eng, reterr);
}

int
engine_start(struct engine *eng, struct err *reterr)
{
	struct progress pg;
	int rc;

	if ((rc = engine_spawn(eng, reterr)) < 0)
		return rc;
	progress_init(&pg, eng->conf->verbose > 0);
	rc = load_sessions(eng, progress_tick, &pg, reterr);
	progress_done(&pg, eng->sessions);
	return rc < 0 ? rc : open_pipeline(eng, reterr);
}

int
engine_stop(struct engine *eng, struct err *reterr)
{
	int rc;

	do {
		if ((rc = pipeline_stop(eng->pipe, reterr)) < 0)
			return rc;
		rc = sessions_stats(eng->sessions, reterr);
	} while (rc == -ECHILD &&
	    (rc = pipeline_recover(eng->pipe, reterr)) == 0);
	if (rc == 0)
		notes_kv(eng->sessions);
	return rc;
}

void
engine_close(struct engine *eng)
{
	if (eng == NULL)
		return;
	pipeline_close(eng->pipe);
	sessions_close(eng->sessions);
	model_close(eng->model);
	form_close(eng->form);
	reader_close(eng->reader);
	free(eng->rows);
	free(eng->rooms);
	free(eng->fit_conf);
	if (eng->signal_fd >= 0)
		close(eng->signal_fd);
	free(eng);
}

void
engine_init(void)
{
	child_open_program(NULL);
	fatal_init();
}

void
engine_cleanup(void)
{
	child_close_program();
	enforce_cleanup();
}

/* --- what it holds --- */

const struct conf *
engine_conf(const struct engine *eng)
{
	return eng->conf;
}

const struct gguf *
engine_file(const struct engine *eng)
{
	return reader_directory(eng->reader);
}

const struct model *
engine_model(const struct engine *eng)
{
	return eng->model;
}

const struct kernels *
engine_kernels(const struct engine *eng)
{
	return &eng->kernels;
}

const struct form *
engine_form(const struct engine *eng)
{
	return eng->form;
}

const struct tokenizer *
engine_vocab(const struct engine *eng)
{
	return eng->vocab;
}

const struct plan *
engine_plan_of(const struct engine *eng)
{
	return &eng->plan;
}

const struct conf *
engine_fit_conf(const struct engine *eng)
{
	return eng->fit_conf;
}

const struct room *
engine_room(const struct engine *eng)
{
	return eng->conf->another_machine || eng->rooms == NULL ? NULL :
	    &eng->rooms[0].room;
}

const char *
engine_fit_reason(const struct engine *eng)
{
	return eng->fit_reason;
}

const struct sessions *
engine_sessions(const struct engine *eng)
{
	return eng->sessions;
}

const struct process_list *
engine_processes(struct engine *eng)
{
	struct process_list *l = &eng->processes;

	l->n = 0;
	own_add_row(&eng->own, eng->sessions != NULL, l);
	reader_add_row(eng->reader, l);
	if (enforce_keeper() > 0)
		own_add_keeper(enforce_keeper(), l);
	return l;
}

struct sessions *
engine_sessions_of(struct engine *eng)
{
	return eng->sessions;
}

struct pipeline *
engine_pipeline_of(struct engine *eng)
{
	return eng->pipe;
}

int
engine_signal_fd(const struct engine *eng)
{
	return eng->signal_fd;
}

int
engine_split_sigint(struct engine *eng, struct err *reterr)
{
	int fd = signals_split_sigint(eng->signal_fd, reterr);

	if (fd >= 0 && eng->vocab != NULL)
		reader_set_poll(eng->reader, signals_check_split);
	return fd;
}

void
engine_numbers(const struct engine *eng, struct engine_numbers *ret)
{
	const struct sessions *ss = eng->sessions;

	*ret = (struct engine_numbers){ .load_ns = eng->load_ns,
	    .file_bytes = eng->file_bytes, .read_ns = eng->read_ns,
	    .reserve_ns = eng->reserve_ns };
	if (ss != NULL) {
		ret->losses = ss->retry.losses;
		ret->lost_ns = ss->recovery_ns;
	}
}

uint64_t
engine_free_bytes(void)
{
	return enforce_free_bytes();
}
