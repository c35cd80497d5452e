/* worker/cpu/device.c - the host's cores as a device: with the fastest kernels,
 * and with the reference kernels. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/meminfo.h"
#include "kernels/cpu.h"
#include "layers/rope.h"
#include "layers/shares.h"
#include "worker/load/host_mem.h"
#include "worker/stage/ops_cpu.h"

/* A span of fewer multiply-adds runs on the caller's thread alone, because
 * starting the other threads costs more than they save.  On cores of their own
 * they spin and start at once; on shared cores every job has to wake them
 * (tests/check/bench_pool.c measures both, see tests/MEASURED.md).  Results do
 * not depend on which threads compute. */
#define SERIAL_MACS_OWN		UINT64_C(500000)
#define SERIAL_MACS_SHARED	UINT64_C(4000000)

struct cpu_span {
	const struct program *p;
	struct span s;
	uint8_t *kv, *compute;
	/* Multiply-adds of one row: of its matrices; of its attention for each
	 * key, [0] in full layers and [1] in local ones. */
	uint64_t row_macs, key_macs[2];
};

struct device {
	struct device_conf conf;
	struct kernels k;
	struct host_mem mem;
	struct cpu_span *span;		/* [nspans] */
	uint32_t nspans;
	/* Made with the first span; see stage/ops_ctx.h. */
	float *inv_freq;
	uint32_t *cut;
	_Atomic uint32_t *begun;	/* [nbegun] */
	size_t nbegun;
	struct ops_ctx ctx;
	uint32_t first, end;
};

static int
cpu_probe(const struct device_conf *dc, struct device_probe *ret,
    struct err *reterr)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	uint64_t avail = meminfo_available();
	struct kernels k;
	char flags[128];

	(void)dc;
	(void)reterr;
	memset(ret, 0, sizeof(*ret));
	ret->found = 1;
	kernels_init(&k, cpu_flags());
	snprintf(ret->reason, sizeof(ret->reason), "always there; kernels: %s "
	    "(the cores have: %s)", k.name,
	    cpu_flags_format(cpu_flags(), flags, sizeof(flags)));
	device_add_limit(ret, "total_bytes", pages > 0 && size > 0,
	    (uint64_t)pages * (uint64_t)size,
	    "sysconf(_SC_PHYS_PAGES) * _SC_PAGESIZE");
	device_add_limit(ret, "free_bytes", avail != 0, avail,
	    "MemAvailable of /proc/meminfo");
	device_add_limit(ret, "largest_mapping_bytes", 0, 0,
	    "not limited apart from the total");
	device_add_limit(ret, "mappings", 0, 0,
	    "not limited for the few buffers of a session");
	device_add_limit(ret, "alignment", 1, HOST_MEM_ALIGN,
	    "the kernels' cache line");
	device_add_limit(ret, "cores", 1,
	    (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
	    "sysconf(_SC_NPROCESSORS_ONLN)");
	return 0;
}

static int
open_with(const struct kernels *k, const struct device_conf *dc,
    struct device **ret, struct err *reterr)
{
	struct device *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for device cpu", dc->session);
	d->conf = *dc;
	d->k = *k;
	*ret = d;
	return 0;
}

static int
cpu_open(const struct device_conf *dc, struct device **ret,
    struct err *reterr)
{
	struct kernels k;

	kernels_init(&k, cpu_flags());
	return open_with(&k, dc, ret, reterr);
}

static int
reference_open(const struct device_conf *dc, struct device **ret,
    struct err *reterr)
{
	struct kernels k;

	kernels_init_ref(&k);
	return open_with(&k, dc, ret, reterr);
}

static void
cpu_traits(const struct device *d, struct device_traits *ret)
{
	(void)d;
	*ret = (struct device_traits){
		.host_visible = 1, .align = HOST_MEM_ALIGN,
		.largest_map = UINT64_MAX, .max_maps = HOST_MEM_BUFS,
	};
}

static int
cpu_supports(void *arg, const struct program *p, const struct op *op,
    char reason[REASON_LEN])
{
	(void)arg;
	(void)p;
	(void)op;
	reason[0] = '\0';
	return 1;
}

static int
cpu_alloc(struct device *d, enum mem_tag tag, uint64_t nbytes,
    const char *what, struct device_buf *ret, struct err *reterr)
{
	return host_mem_alloc(&d->mem, d->conf.ledger, tag, nbytes, what, ret,
	    reterr);
}

/* Make what all spans of a program share. */
static int
prepare_program(struct device *d, const struct program *p)
{
	unsigned n = d->conf.par->nthreads;
	int local;

	if (d->cut != NULL)
		return 0;
	d->nbegun = n * ops_nbegun(p);
	d->begun = aligned_alloc(CACHELINE, MAX(d->nbegun *
	    sizeof(*d->begun), CACHELINE));
	d->cut = calloc((size_t)p->ngroups * (n + 1) + 1, sizeof(*d->cut));
	if (d->begun == NULL || d->cut == NULL ||
	    shares_cut(p, d->conf.par, d->cut) < 0)
		return -ENOMEM;
	if (p->env.nsublayers == 0)
		return 0;
	d->inv_freq = calloc(p->env.hp->n_rot, sizeof(*d->inv_freq));
	if (d->inv_freq == NULL)
		return -ENOMEM;
	for (local = 0; local < 2; local++)
		rope_inv_freq(p->env.hp, local, p->rope_freqs != NULL ?
		    p->rope_freqs->vec : NULL, d->inv_freq +
		    local * (p->env.hp->n_rot / 2));
	return 0;
}

static int
cpu_prepare(struct device *d, const struct program *p, const struct span *s,
    const struct device_buf *kv, const struct device_buf *compute,
    uint32_t *ret_handle, struct err *reterr)
{
	struct cpu_span *cs;
	const struct op *op;

	cs = reallocarray(d->span, d->nspans + 1, sizeof(*cs));
	if (cs != NULL)
		d->span = cs;
	if (cs == NULL || prepare_program(d, p) < 0)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for span %u of device cpu", d->conf.session,
		    d->nspans);
	cs += d->nspans;
	*cs = (struct cpu_span){ .p = p, .s = *s, .kv = kv->host,
	    .compute = compute->host };
	for (op = p->op + s->first; op < p->op + s->end; op++)
		if (op_is_matmul(op->kind))
			cs->row_macs += (uint64_t)op->w->mat.n *
			    op->w->mat.k * (op->experts ?
			    p->env.hp->n_expert_used : 1);
		else if (op->kind == OP_ATTENTION)
			cs->key_macs[op->window > 0] += (uint64_t)
			    p->env.hp->n_head * (p->env.hp->head_dim +
			    p->env.hp->v_dim);
	*ret_handle = d->nspans++;
	return 0;
}

/* Is the batch large enough for all threads? */
static int
is_worth_sharing(const struct device *d, const struct cpu_span *cs,
    const struct batch *b)
{
	const uint64_t least = d->conf.own_cores ? SERIAL_MACS_OWN :
	    SERIAL_MACS_SHARED;
	const uint32_t window = cs->p->env.hp->window;
	uint64_t macs = cs->row_macs * MAX(b->nrows, 1), nkeys;
	uint32_t i;

	for (i = 0; i < b->nrows && macs < least; i++) {
		nkeys = (uint64_t)b->pos[i] + 1;
		macs += cs->key_macs[0] * nkeys + cs->key_macs[1] *
		    MIN(nkeys, window);
	}
	return macs >= least;
}

static void
run_thread(void *arg, unsigned thread)
{
	struct device *d = arg;

	ops_run(&d->ctx, d->first, d->end, thread);
}

static int
cpu_run(struct device *d, uint32_t handle, const struct batch *b,
    struct err *reterr)
{
	const struct cpu_span *cs;
	struct par *par = d->conf.par;
	size_t i;

	if (handle >= d->nspans)
		return err_set(reterr, ERR_RUN, -EINVAL,
		    "device cpu: unknown span %u", handle);
	cs = &d->span[handle];
	if (!is_worth_sharing(d, cs, b))
		par = &par_alone;
	d->ctx = (struct ops_ctx){
		.k = &d->k, .p = cs->p, .par = par, .kv = cs->kv,
		.compute = cs->compute, .inv_freq = d->inv_freq,
		.cut = d->cut, .begun = d->begun, .b = b,
	};
	for (i = 0; i < d->nbegun; i++)
		atomic_store_explicit(&d->begun[i], 0, memory_order_relaxed);
	d->first = cs->s.first;
	d->end = cs->s.end;
	par->run(par, run_thread, d);
	return 0;
}

static int
cpu_sync(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	(void)d;		/* run is synchronous */
	(void)deadline_ns;
	(void)reterr;
	return 0;
}

static int
cpu_reset(struct device *d, struct err *reterr)
{
	(void)reterr;
	host_mem_close(&d->mem);
	free(d->inv_freq);
	free(d->cut);
	free(d->begun);
	free(d->span);
	d->inv_freq = NULL;
	d->cut = NULL;
	d->begun = NULL;
	d->span = NULL;
	d->nspans = 0;
	d->nbegun = 0;
	return 0;
}

static void
cpu_close(struct device *d)
{
	if (d == NULL)
		return;
	cpu_reset(d, NULL);
	free(d);
}

/* Both compute on the host's cores; they differ in the kernels that open takes. */
#define ON_HOST								\
	.version = DEVICE_VERSION,					\
	.layout = LAYOUT_HOST,						\
	.probe = cpu_probe,						\
	.traits = cpu_traits,						\
	.supports = cpu_supports,					\
	.alloc = cpu_alloc,						\
	.upload = host_mem_upload,					\
	.prepare = cpu_prepare,						\
	.run = cpu_run,							\
	.sync = cpu_sync,						\
	.reset = cpu_reset,						\
	.close = cpu_close

const struct device_ops device_cpu = {
	.kind = "cpu",
	.open = cpu_open,
	ON_HOST
};

const struct device_ops device_reference = {
	.kind = "reference",
	.open = reference_open,
	ON_HOST
};
