/* worker/stage/stage.c - opening a stage: program, placement, memory, weights.
 * The loop that runs it is in stage/loop.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layers/build.h"
#include "stage.h"
#include "state.h"

/* Lay out weights and KV cache, and build the program. */
static int
make_program(const struct stage_conf *sc, struct weights *ret_ws,
    struct program **ret_p, struct err *reterr)
{
	struct program_env env = {
		.hp = &sc->hp, .ws = ret_ws,
		.first_sublayer = sc->model.first_sublayer,
		.nsublayers = sc->model.nsublayers,
		.embedding = (int)sc->model.embedding,
		.head = (int)sc->model.head,
		.batch_rows = sc->model.batch_rows,
		.head_rows = sc->model.head_rows,
	};
	const struct layer_range kv = sublayers_attn(sc->model.first_sublayer,
	    sc->model.nsublayers);
	int rc;

	rc = kv_layout_init(&env.kv, &sc->hp, &(struct kv_conf){
	    .kfmt = sc->model.kfmt, .vfmt = sc->model.vfmt,
	    .first_layer = kv.first, .nlayers = kv.n,
	    .nseqs = sc->model.nseqs, .ctx_tok = sc->model.ctx_tok,
	    .batch_rows = sc->model.batch_rows });
	if (rc < 0)
		return err_set(reterr, ERR_USAGE, rc, "a KV cache of %u "
		    "tokens in heads of %u elements cannot be laid out: %s",
		    sc->model.ctx_tok, sc->hp.head_dim, strerror(-rc));
	if ((rc = weights_layout(sc->ext, sc->model.nextents, sc->kernels,
	    ret_ws, reterr)) < 0)
		return rc;
	return program_build(&env, ret_p, reterr);
}

int
stage_explain(const struct stage_conf *sc, struct placement *ret_pl,
    struct program **ret_p, struct weights *ret_ws, struct err *reterr)
{
	int rc;

	if ((rc = make_program(sc, ret_ws, ret_p, reterr)) < 0)
		return rc;
	return place_program(*ret_p, sc->dev->supports, NULL,
	    (int)sc->start.strict, ret_pl, reterr);
}

struct device_conf
stage_device_conf(const struct stage_conf *sc)
{
	return (struct device_conf){
		.session = sc->start.name,
		.port = sc->start.port,
		.domain_bytes = sc->start.domain_bytes,
		.iommu_domain = sc->start.iommu_domain,
		.strict = sc->start.strict != 0,
		.choice = sc->start.choice,
		.par = sc->par,
		.cpus = sc->start.cpus,
		.ledger = sc->ledger,
		.own_cores = sc->start.own_cores != 0,
		.memo = sc->status != NULL ? sc->status->device_memo : NULL,
		.after_hang = sc->status != NULL && sc->status->after_hang != 0,
		.call_ns = sc->status != NULL ? &sc->status->device_call_ns :
		    NULL,
	};
}

static int
open_devices(struct stage *s, struct err *reterr)
{
	const struct device_conf dc = stage_device_conf(&s->conf);
	int rc;

	if (s->dev == NULL && (rc = s->conf.dev->open(&dc, &s->dev,
	    reterr)) < 0)
		return rc;
	s->conf.dev->traits(s->dev, &s->traits);
	/* Operations that fall back run on the host, in the same buffers. */
	if (s->pl.cpu_ops == 0)
		return 0;
	if (!s->traits.host_visible)
		return err_set(reterr, ERR_RUN, -ENOTSUP, "session %s: %u "
		    "operations have no kernel on %s, and the host cannot "
		    "reach its memory to run them", s->conf.start.name,
		    s->pl.cpu_ops, s->conf.dev->kind);
	return device_cpu.open(&dc, &s->cpu, reterr);
}

/* Allocate one buffer within the device's limits. */
static int
alloc_buffer(struct stage *s, enum mem_tag tag, uint64_t nbytes,
    const char *what, struct device_buf *ret, struct err *reterr)
{
	const char *name = s->conf.start.name, *kind = s->conf.dev->kind;
	const struct device_traits *t = &s->traits;
	int rc;

	if (nbytes == 0)
		return 0;
	if (nbytes > t->largest_map)
		return err_set(reterr, ERR_FIT, -ENOMEM, "session %s: %s: %"
		    PRIu64 " bytes, device %s maps at most %" PRIu64 " at "
		    "once; more sessions make it smaller", name, what, nbytes,
		    kind, t->largest_map);
	if (s->nmaps >= t->max_maps)
		return err_set(reterr, ERR_FIT, -ENOMEM, "session %s: %s: %"
		    PRIu64 " bytes would be mapping %u, device %s has at most "
		    "%u", name, what, nbytes, s->nmaps + 1, kind,
		    t->max_maps);
	if ((rc = s->conf.dev->alloc(s->dev, tag, nbytes, what, ret,
	    reterr)) < 0)
		return rc;
	s->nmaps++;
	if ((uintptr_t)ret->host & (t->align - 1))
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: %s: "
		    "device %s gave a buffer at %p, which violates its own "
		    "alignment of %u bytes", name, what, kind, ret->host,
		    t->align);
	return 0;
}

static int
alloc_buffers(struct stage *s, struct err *reterr)
{
	int rc;

	if ((rc = alloc_buffer(s, MEM_WEIGHTS, s->ws.nbytes, "weights",
	    &s->weights, reterr)) < 0 ||
	    (rc = alloc_buffer(s, MEM_KV, s->p->env.kv.nbytes, "KV cache",
	    &s->kv, reterr)) < 0 ||
	    (rc = alloc_buffer(s, MEM_COMPUTE, program_compute_bytes(s->p,
	    s->conf.par->nthreads), "compute scratch", &s->compute,
	    reterr)) < 0)
		return rc;
	if (s->weights.host != NULL)
		weights_place(&s->ws, s->weights.host);
	return s->conf.dev->place == NULL ? 0 :
	    s->conf.dev->place(s->dev, s->p, &s->ws, reterr);
}

/* A device that was asked for and would compute nothing is a configuration
 * error.  A session with the embedding alone has nothing to compute anyway. */
static int
check_used(const struct stage *s, struct err *reterr)
{
	uint32_t i = 0;

	if (s->pl.device_ops > 0 || (s->conf.model.nsublayers == 0 &&
	    !s->conf.model.head))
		return 0;
	while (i + 1 < s->p->nops && s->p->op[i].kind != OP_MATMUL)
		i++;
	return err_set(reterr, ERR_RUN, -ENOTSUP, "session %s: device %s "
	    "would compute nothing: all %u operations fall back to the CPU, "
	    "%s because: %s (straddle explain shows them)",
	    s->conf.start.name, s->conf.dev->kind, s->pl.cpu_ops,
	    op_name(s->p->op[i].kind), s->pl.op[i].reason);
}

int
stage_open(const struct stage_conf *sc, struct stage **ret,
    struct err *reterr)
{
	struct stage *s;
	int rc;

	if ((s = calloc(1, sizeof(*s))) == NULL) {
		if (sc->opened != NULL)
			sc->dev->close(sc->opened);
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for its stage", sc->start.name);
	}
	s->conf = *sc;
	s->dev = sc->opened;
	s->in.map = s->out.map = (struct region)REGION_NONE;
	s->row = calloc(sc->model.batch_rows, sizeof(*s->row));
	s->column = calloc((size_t)sc->model.batch_rows *
	    STAGE_COLUMNS, sizeof(*s->column));
	if (s->row == NULL || s->column == NULL) {
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for batches of %u rows", sc->start.name,
		    sc->model.batch_rows);
		goto fail;
	}
	if ((rc = stage_explain(&s->conf, &s->pl, &s->p, &s->ws,
	    reterr)) < 0 || (rc = check_used(s, reterr)) < 0)
		goto fail;
	s->p->env.hp = &s->conf.hp;
	s->span = calloc(s->pl.nspans + 1, sizeof(*s->span));
	if (s->span == NULL) {
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for %u spans", sc->start.name, s->pl.nspans);
		goto fail;
	}
	if ((rc = open_devices(s, reterr)) < 0 ||
	    (rc = alloc_buffers(s, reterr)) < 0)
		goto fail;
	*ret = s;
	return 0;
fail:
	stage_close(s);
	return rc;
}

static int
upload_rows(void *arg, uint32_t item, uint32_t row0, uint32_t nrows,
    const void *src, struct err *reterr)
{
	struct stage *s = arg;

	return s->conf.dev->upload(s->dev, &s->ws, &s->weights, item, row0,
	    nrows, src, reterr);
}

static void
report_progress(void *arg, uint64_t done_bytes)
{
	struct stage_status *st = arg;

	atomic_store_explicit(&st->load_bytes, done_bytes,
	    memory_order_relaxed);
	atomic_fetch_add_explicit(&st->heartbeat, 1, memory_order_relaxed);
}

static int
prepare_spans(struct stage *s, struct err *reterr)
{
	uint32_t i;
	int rc;

	for (i = 0; i < s->pl.nspans; i++) {
		const struct span *sp = &s->pl.span[i];

		s->span[i].ops = sp->on_device ? s->conf.dev : &device_cpu;
		s->span[i].dev = sp->on_device ? s->dev : s->cpu;
		if ((rc = s->span[i].ops->prepare(s->span[i].dev, s->p, sp,
		    &s->kv, &s->compute, &s->span[i].handle, reterr)) < 0)
			return rc;
	}
	return 0;
}

int
stage_load(struct stage *s, const struct load_file *files, uint32_t nfiles,
    struct load_stats *ret, struct err *reterr)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	uint32_t i, n = s->conf.model.nextents;
	struct arena staging = { 0 };
	struct load_item *items;
	uint64_t nbytes;
	int rc;

	if ((items = calloc(n + 1, sizeof(*items))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for the list of %u tensors to load",
		    s->conf.start.name, n);
	for (i = 0; i < n; i++) {
		items[i].ext = s->ws.w[i].ext;
		items[i].row_step = weight_row_step(&s->ws.w[i]);
	}
	lc.uring = s->conf.uring;
	nbytes = load_staging_bytes(&lc, items, n);
	rc = arena_open(&staging, s->conf.ledger, MEM_STAGING, nbytes,
	    "I/O staging", reterr);
	if (rc == 0) {
		region_touch(&staging.map);
		rc = load_run(&lc, files, nfiles, items, n, staging.map.base,
		    nbytes, upload_rows, s, report_progress, s->conf.status,
		    ret, reterr);
	}
	arena_close(&staging);
	free(items);
	if (rc < 0)
		return rc;
	return prepare_spans(s, reterr);
}

const struct placement *
stage_placement(const struct stage *s)
{
	return &s->pl;
}

struct device_account
stage_account(const struct stage *s)
{
	struct device_account a = { 0 };

	if (s != NULL && s->dev != NULL && s->conf.dev->account != NULL)
		s->conf.dev->account(s->dev, &a);
	return a;
}

static void
replace_ring(struct stage *s, struct ring *r, const struct ring *by)
{
	uint32_t heard = r->calls_seen;

	ring_close(r);
	*r = *by;
	r->call = &s->conf.status->call;
	r->calls_seen = heard;
}

void
stage_attach(struct stage *s, const struct ring *in, const struct ring *out)
{
	replace_ring(s, &s->in, in);
	replace_ring(s, &s->out, out);
}

void
stage_renew(struct stage *s, uint32_t epoch, const struct ring *in,
    const struct ring *out)
{
	uint32_t old;

	s->renewed = 1;
	s->epoch = epoch;
	memset(s->seq_len, 0, sizeof(s->seq_len));
	memset(s->seq_end, 0, sizeof(s->seq_end));
	if (in != NULL)
		replace_ring(s, &s->in, in);
	if (out != NULL)
		replace_ring(s, &s->out, out);
	/* Drop slots of the old epoch, so that the ring has room when the
	 * coordinator receives WIRE_RENEWED.  Slots that arrive meanwhile are
	 * dropped one by one: a producer that never stops must not keep this
	 * stage here. */
	old = MIN(ring_used_spsc(&s->in), s->in.nslots);
	while (old-- > 0)
		ring_release_spsc(&s->in);
}

void
stage_close(struct stage *s)
{
	if (s == NULL)
		return;
	ring_close(&s->in);
	ring_close(&s->out);
	if (s->dev != NULL)
		s->conf.dev->close(s->dev);
	if (s->cpu != NULL)
		device_cpu.close(s->cpu);
	free(s->span);
	placement_free(&s->pl);
	program_free(s->p);
	weights_free(&s->ws);
	free(s->column);
	free(s->row);
	free(s);
}
