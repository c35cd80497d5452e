/* coordinator/engine/engine.c - model, plan, sessions, load, pipeline. */
#include "engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "config/cores.h"
#include "config/log.h"
#include "kernels/cpu.h"
#include "shm/event.h"
#include "chunk.h"
#include "coordinator/print/confined.h"
#include "coordinator/session/base_memory.h"
#include "coordinator/session/device_limits.h"
#include "coordinator/print/progress.h"

/* A layer that block_count leaves out, or what another architecture computes
 * with: then the text is not what the model would say. */
static void
note_of_unused(const struct engine *j)
{
	const struct gguf_tensor *first;
	uint64_t n = model_unused(j->m, &first);

	if (n > 0)
		log_warnx("%s: %" PRIu64 " of %" PRIu64 " tensors are of no "
		    "use to a %s model of %u layers, the first is %s: what "
		    "they were trained for is not computed",
		    j->g->file[first->file].path, n, j->g->ntensors,
		    arch_info(j->m->hp.arch)->name, j->m->hp.n_layer,
		    first->name);
}

int
engine_open(struct engine *j, const struct conf *c, struct err *reterr)
{
	int rc;

	memset(j, 0, sizeof(*j));
	j->c = c;
	j->signal_fd = -1;
	if ((rc = gguf_open(c->model_path, &j->g, reterr)) < 0)
		return rc;
	if ((rc = model_open(j->g, &j->m, reterr)) < 0)
		return rc;
	note_of_unused(j);
	kernels_init(&j->kernels, cpu_flags());
	return model_check_kernels(j->m, &j->kernels, reterr);
}

int
engine_tokenizer(struct engine *j, struct err *reterr)
{
	return tokenizer_open(j->g, &j->t, reterr);
}

/* --- signals --- */

void
engine_signals(sigset_t *ret)
{
	struct sigaction sa;

	sigemptyset(ret);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGTERM);
	if (sigaction(SIGHUP, NULL, &sa) < 0 || sa.sa_handler != SIG_IGN)
		sigaddset(ret, SIGHUP);
}

int
engine_interrupted(struct err *reterr)
{
	static const struct timespec at_once;
	sigset_t set;
	int signo;

	engine_signals(&set);
	signo = sigtimedwait(&set, NULL, &at_once);
	return signo < 0 ? 0 : sessions_interrupted(signo, reterr);
}

/* Blocked, so that they come as reads, from what is returned; workers unblock
 * them.  ret_before may be NULL. */
static int
block_signals(sigset_t *ret_before, struct err *reterr)
{
	sigset_t set;
	int fd;

	engine_signals(&set);
	if ((fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return err_set(reterr, ERR_RUN, -errno, "signalfd: %s",
		    strerror(errno));
	sigprocmask(SIG_BLOCK, &set, ret_before);
	return fd;
}

/* --- plan --- */

/* A signal would leave the group behind: it waits until there is none. */
static int
measure_runtime(const struct conf *c, struct err *reterr)
{
	sigset_t before;
	int fd, rc;

	if ((fd = block_signals(&before, reterr)) < 0)
		return fd;
	rc = base_memory_measure(c, fd, reterr);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fd);
	return rc;
}

/* An end of the pipeline that is alone where the device beside it could not
 * have mapped it. */
static void
note_of_end(const struct plan_session *end, const struct plan_session *next,
    const char *what)
{
	char need[UNITS_BYTES_LEN], most[UNITS_BYTES_LEN];
	const struct plan_limits *l = next->limits;

	if (end->u1 - end->u0 != 1 || l == NULL || l->largest_bytes == 0 ||
	    end->bytes[MEM_WEIGHTS] <= l->largest_bytes)
		return;
	log_info("note: session %s holds %s: its %s are more than device %s "
	    "of session %s maps at once, %s (%s)", end->conf->name, what,
	    units_human_bytes(end->bytes[MEM_WEIGHTS], need),
	    next->conf->device, next->conf->name,
	    units_human_bytes(l->largest_bytes, most), l->largest_from);
}

static void
note_of_ends(const struct plan *p)
{
	unsigned last = p->nsessions - 1;

	if (last == 0)
		return;
	note_of_end(&p->session[0], &p->session[1], "the embedding");
	note_of_end(&p->session[last], &p->session[last - 1],
	    "the output head");
}

/* What the caps allow and the machine or the model may not. */
static void
note_of_plan(const struct plan *p, uint64_t free_bytes)
{
	char need[UNITS_BYTES_LEN], have[UNITS_BYTES_LEN];
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < p->nsessions; i++)
		sum += p->session[i].total_bytes;
	if (free_bytes != 0 && sum > free_bytes)
		log_info("note: the sessions need %s in all, and the "
		    "machine has %s free: their caps promise more than is "
		    "there", units_human_bytes(sum, need),
		    units_human_bytes(free_bytes, have));
	note_of_ends(p);
	if (p->ctx_tok > p->model->hp.ctx_train)
		log_info("note: a context of %u tokens; the model was "
		    "trained with %u", p->ctx_tok, p->model->hp.ctx_train);
}

int
engine_plan(struct engine *j, struct err *reterr)
{
	uint32_t core_speed[MAX_CPUS];
	struct cpuset cores, seconds;
	struct plan_env env = {
		.model = j->m, .kernels = &j->kernels,
		.free_bytes = enforce_free_bytes(),
		.pays_once = enforce_best(NULL) == ENFORCE_CGROUP,
		.runtime_bytes = base_memory_bytes,
		.waver_bytes = BASE_MEMORY_ROUND,
		.core_speed = core_speed, .core_seconds = &seconds,
		.limits = device_limits_of,
	};
	int rc;

	if ((rc = measure_runtime(j->c, reterr)) < 0 ||
	    (rc = device_limits_ask(j->c, reterr)) < 0)
		return rc;
	conf_cores(j->c, &cores);
	cores_speeds(&cores, "/sys", core_speed);
	seconds = cores_seconds(&cores, "/sys");
	if (j->c->fit && (j->fitted = malloc(sizeof(*j->fitted))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	rc = j->c->fit ? plan_fit(j->c, &env, j->fitted, &j->plan, j->fit_why,
	    reterr) : plan_build(j->c, &env, &j->plan, reterr);
	if (rc < 0)
		return rc;
	note_of_plan(&j->plan, env.free_bytes);
	return 0;
}

/* --- sessions --- */

static void
say_loaded(const struct session *s)
{
	static const char *const paths[] = { "auto", "io_uring",
	    "io_uring", "pread" };
	const struct wire_ready *r = &s->ready;

	log_debug("session %s: pid %d, %u threads%s; read %" PRIu64 " bytes "
	    "with %s, %s%s, in %.3f s, of it %.3f s waiting; %u operations "
	    "on %s, %u fall back to the CPU", s->name, (int)s->child.pid,
	    s->plan->threads, plan_core_each(s->plan) ?
	    " on cores of their own" : "", r->read_bytes,
	    paths[r->load_path % NITEMS(paths)],
	    r->direct ? "direct" : "buffered",
	    r->registered ? ", registered buffers" : "",
	    (double)r->load_ns / 1e9, (double)r->wait_ns / 1e9,
	    r->device_ops, s->plan->conf->device, r->cpu_ops);
}

int
engine_spawn(struct engine *j, struct err *reterr)
{
	j->rows = calloc(j->plan.batch_rows, sizeof(*j->rows));
	if (j->rows == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	signal(SIGPIPE, SIG_IGN);
	if ((j->signal_fd = block_signals(NULL, reterr)) < 0)
		return j->signal_fd;
	return sessions_open(&j->plan, j->c, j->signal_fd, &j->ss, reterr);
}

static int
load(struct engine *j, sessions_tick_fn *tick, void *arg, struct err *reterr)
{
	uint64_t t0 = event_now_ns();
	int rc = sessions_load(j->ss, tick, arg, reterr);

	j->load_ns = event_now_ns() - t0;
	return rc;
}

static int
loaded(struct engine *j, struct err *reterr)
{
	unsigned i;

	for (i = 0; i < j->ss->n; i++) {
		j->file_bytes += j->ss->s[i].ready.file_bytes;
		say_loaded(&j->ss->s[i]);
	}
	confined_say(j->ss);
	return pipeline_open(j->ss, &j->p, reterr);
}

int
engine_load(struct engine *j, sessions_tick_fn *tick, void *arg,
    struct err *reterr)
{
	int rc = load(j, tick, arg, reterr);

	return rc < 0 ? rc : loaded(j, reterr);
}

int
engine_start(struct engine *j, struct err *reterr)
{
	struct progress pg;
	int rc;

	if ((rc = engine_spawn(j, reterr)) < 0)
		return rc;
	progress_init(&pg, j->c->verbose > 0);
	rc = load(j, progress_tick, &pg, reterr);
	progress_done(&pg, j->ss);
	return rc < 0 ? rc : loaded(j, reterr);
}

int
engine_stop(struct engine *j, struct err *reterr)
{
	int rc;

	do {
		if ((rc = pipeline_stop(j->p, reterr)) < 0)
			return rc;
		rc = sessions_stats(j->ss, reterr);
	} while (rc == -ECHILD && (rc = pipeline_recover(j->p, reterr)) == 0);
	return rc;
}

void
engine_close(struct engine *j)
{
	pipeline_close(j->p);
	sessions_close(j->ss);
	tokenizer_close(j->t);
	model_close(j->m);
	gguf_close(j->g);
	free(j->rows);
	free(j->fitted);
	if (j->signal_fd >= 0)
		close(j->signal_fd);
}

/* --- the flow --- */

/* As many batches as there are and the first ring takes. */
static int
send_some(struct engine *j, const struct engine_flow *f, struct err *reterr)
{
	struct batch_out b;
	int rc;

	while (pipeline_has_room(j->p)) {
		b = (struct batch_out){ .kind = BATCH_DATA, .rows = j->rows };
		if ((rc = f->next(f->arg, &b, reterr)) <= 0)
			return rc;
		rc = b.kind == BATCH_DATA ?
		    pipeline_submit(j->p, b.rows, b.nrows) :
		    pipeline_control(j->p, b.kind, b.seq, 0, 0);
		if (rc < 0)
			return err_set(reterr, ERR_RUN, rc,
			    "cannot submit a batch: %s", strerror(-rc));
	}
	return 0;
}

static int
take_result(struct engine *j, const struct engine_flow *f, struct err *reterr)
{
	struct result r;
	uint32_t i;
	int rc;

	if ((rc = pipeline_next(j->p, &r, reterr)) < 0)
		return rc;
	for (i = 0; i < r.hdr.nrows && rc >= 0; i++)
		rc = f->row(f->arg, &r.rows[i], r.logits + i * r.ld, reterr);
	pipeline_done(j->p);
	if (rc >= 0 && r.last && f->done != NULL)
		rc = f->done(f->arg, r.hdr.kind, reterr);
	return MIN(rc, 0);
}

int
engine_flow(struct engine *j, const struct engine_flow *f, struct err *reterr)
{
	int rc;

	while ((rc = send_some(j, f, reterr)) == 0 && j->p->in_flight > 0)
		if ((rc = take_result(j, f, reterr)) < 0)
			break;
	return rc;
}

/* --- feeding --- */

struct feed {
	const uint32_t *ids;	/* [n], of sequence seq from pos0 on, or */
	uint32_t seq, pos0;
	enum engine_want want;
	const struct batch_row *rows;	/* [n] */
	uint32_t n;
	const struct engine *j;
	uint32_t sent;		/* rows submitted */
	uint32_t wanted, got;	/* rows of logits */
	engine_row_fn *fn;
	void *arg;
};

static int
feed_next(void *arg, struct batch_out *b, struct err *reterr)
{
	struct feed *f = arg;
	uint32_t left = f->n - f->sent, i, at;

	(void)reterr;
	if (left == 0)
		return 0;
	b->nrows = f->rows == NULL ? engine_chunk(f->j, f->n, left) :
	    MIN(left, f->j->plan.batch_rows);
	for (i = 0; i < b->nrows; i++) {
		at = f->sent + i;
		b->rows[i] = f->rows != NULL ? f->rows[at] :
		    engine_row(f->seq, f->pos0 + at, f->ids[at],
		    f->want == WANT_ALL || at == f->n - 1);
		f->wanted += (b->rows[i].flags & ROW_LOGITS) != 0;
	}
	f->sent += b->nrows;
	return 1;
}

static int
feed_row(void *arg, const struct batch_row *row, const float *logits,
    struct err *reterr)
{
	struct feed *f = arg;
	uint32_t index = f->got++;

	(void)row;
	return f->fn != NULL ? f->fn(f->arg, index, logits, reterr) : 0;
}

static int
feed(struct engine *j, struct feed *f, struct err *reterr)
{
	struct engine_flow flow = { .next = feed_next, .row = feed_row,
	    .arg = f };
	int rc = engine_flow(j, &flow, reterr);

	if (rc == 0 && (f->sent != f->n || f->got != f->wanted))
		rc = err_set(reterr, ERR_RUN, -EPROTO, "%u of %u rows were "
		    "sent, and %u rows of logits came back for %u", f->sent,
		    f->n, f->got, f->wanted);
	return rc;
}

uint32_t
engine_chunk(const struct engine *j, uint32_t n, uint32_t left)
{
	const struct plan *p = &j->plan;

	return chunk_rows(n, left, plan_at_once(p), plan_last(p),
	    p->batch_rows);
}

int
engine_feed(struct engine *j, uint32_t seq, uint32_t pos0, const uint32_t *ids,
    uint32_t n, enum engine_want want, engine_row_fn *fn, void *arg,
    struct err *reterr)
{
	struct feed f = { .ids = ids, .seq = seq, .pos0 = pos0, .want = want,
	    .n = n, .j = j, .fn = fn, .arg = arg };

	if (n > j->plan.ctx_tok || pos0 > j->plan.ctx_tok - n)
		return err_set(reterr, ERR_USAGE, -E2BIG, "%u tokens from "
		    "position %u do not fit into the context of %u", n, pos0,
		    j->plan.ctx_tok);
	return feed(j, &f, reterr);
}

int
engine_feed_rows(struct engine *j, const struct batch_row *rows, uint32_t n,
    engine_row_fn *fn, void *arg, struct err *reterr)
{
	struct feed f = { .rows = rows, .n = n, .j = j, .fn = fn,
	    .arg = arg };

	return feed(j, &f, reterr);
}
