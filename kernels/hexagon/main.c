/* kernels/hexagon/main.c - executes packets in a Hexagon domain: maps memory and
 * runs spans of operations.  Packets come from loop.c under the emulator, from
 * skel.c on a DSP.
 *
 * The host is not hostile but may have bugs: all that it sends is copied or checked
 * before use, and a bad packet gets an error response. */
#include "kernels/matmul/experts.h"
#include "domain.h"
#include "rt.h"

enum {
	MAX_OPS = 8192,			/* of a model */
	PROBE_MAPS = 8192		/* of 1 MiB: more than fit in 4 GiB */
};

struct map {
	void *base;
	uint32_t nbytes;
};

_Atomic uint32_t *domain_progress;
static struct map map[HXQ_MAPS];
static struct hx_model model;
static struct hx_op op[MAX_OPS];
static uint32_t nops;

static hx_fn *const fn[HX_NKINDS] = {
	[HX_RMS_NORM] = hx_rms_norm,
	[HX_QUANTIZE] = hx_quantize,
	[HX_MATMUL] = hx_matmul,
	[HX_ROPE] = hx_rope,
	[HX_KV_STORE] = hx_kv_store,
	[HX_ATTENTION] = hx_attention,
	[HX_SWIGLU] = hx_glu,
	[HX_GEGLU] = hx_glu,
	[HX_SWIGLU_OAI] = hx_glu,
	[HX_ADD] = hx_add,
	[HX_SCALE] = hx_scale,
	[HX_SOFTCAP] = hx_softcap,
	[HX_MOE_ROUTE] = hx_moe_route,
	[HX_MOE_ROWS] = hx_moe_rows,
	[HX_MATMUL_ID] = hx_matmul_id,
	[HX_MOE_SUM] = hx_moe_sum,
	[HX_SELECT_ROWS] = hx_select_rows,
};

static uint32_t
do_hello(struct hxq_packet *r)
{
	const struct hxq_hello h = { HXQ_VERSION, HX_VEC, HX_VTCM_BYTES, 1 };

	memcpy(r->msg, &h, sizeof(h));
	r->nbytes = sizeof(h);
	return HXQ_OK;
}

/* Maps the whole memfd of a handle. */
static uint32_t
do_map(const struct hxq_packet *q, struct hxq_packet *r)
{
	struct hxq_buf b = q->buf[0];
	struct map *m;

	if (q->nbufs != 1 || b.handle >= HXQ_MAPS || b.offset != 0 ||
	    b.nbytes == 0 || map[b.handle].base != NULL)
		return HXQ_EBADMSG;
	m = &map[b.handle];
	if (b.nbytes > UINT32_MAX || rt_map(HXQ_FD_MAP + (int)b.handle,
	    (uint32_t)b.nbytes, &m->base) < 0) {
		m->base = NULL;
		r->status_arg = b.handle;
		return HXQ_ENOMEM;
	}
	m->nbytes = (uint32_t)b.nbytes;
	return HXQ_OK;
}

static uint32_t
do_unmap(const struct hxq_packet *q)
{
	struct map *m;

	if (q->nbufs != 1 || q->buf[0].handle >= HXQ_MAPS)
		return HXQ_EBADMSG;
	m = &map[q->buf[0].handle];
	if (m->base == NULL)
		return HXQ_ENOMAP;
	rt_unmap(m->base, m->nbytes);
	m->base = NULL;
	return HXQ_OK;
}

static uint32_t
do_model(const struct hxq_packet *q)
{
	struct hx_model m;

	if (q->nbytes != sizeof(m))
		return HXQ_EBADMSG;
	memcpy(&m, q->msg, sizeof(m));
	if (m.n_head_kv == 0 || m.n_head % m.n_head_kv != 0 ||
	    m.kfmt >= KV_NTYPES || m.vfmt >= KV_NTYPES ||
	    m.n_expert > MAX_EXPERTS || m.n_expert_used > m.n_expert)
		return HXQ_EBADMSG;
	model = m;
	nops = 0;
	hx_vtcm_limit(m.vtcm_bytes);
	return HXQ_OK;
}

static uint32_t
do_ops(const struct hxq_packet *q)
{
	uint32_t n = q->nbytes / sizeof(*op), i;

	if (q->nbytes % sizeof(*op) != 0 || n > MAX_OPS - nops)
		return HXQ_EBADMSG;
	memcpy(op + nops, q->msg, q->nbytes);
	for (i = nops; i < nops + n; i++)
		if (op[i].kind >= HX_NKINDS)
			return HXQ_ENOTSUP;
	nops += n;
	return HXQ_OK;
}

/* --- a run --- */

/* Is an operand of nrows rows of nbytes within its buffer? */
static int
in_range(const struct hx_batch *b, const struct hx_ref *x, uint32_t rows,
    uint64_t nbytes)
{
	if (x->buf == HX_NONE)
		return 1;
	if (x->buf >= HX_NBUFS || b->base[x->buf] == NULL)
		return 0;
	return rows == 0 || x->offset + (uint64_t)(rows - 1) * x->row_bytes +
	    nbytes <= b->nbytes[x->buf];
}

/* Bytes of an op's weights; UINT32_MAX = unsupported type. */
static uint64_t
weight_bytes(const struct hx_batch *b, const struct hx_op *o)
{
	uint64_t nbytes = hx_matrix_bytes(o->type, o->out.cols, o->w.cols);

	if (o->kind == HX_ATTENTION)
		return b->m->n_head * 4ull;
	if (o->kind != HX_MATMUL && o->kind != HX_MATMUL_ID)
		return o->w.cols * 4ull;
	if (nbytes == 0)
		return UINT32_MAX;
	return o->kind == HX_MATMUL ? nbytes : nbytes +
	    (b->m->n_expert - 1ull) * o->w.row_bytes;
}

static uint64_t
bias_bytes(const struct hx_batch *b, const struct hx_op *o)
{
	return o->out.cols * 4ull * (o->kind == HX_MATMUL_ID ?
	    b->m->n_expert : 1);
}

/* Bytes of a row of an operand; quantized activations are blocks. */
static uint64_t
row_bytes(const struct hx_op *o, const struct hx_ref *x)
{
	int mat = o->kind == HX_MATMUL || o->kind == HX_MATMUL_ID;
	int q8 = (o->kind == HX_QUANTIZE && x == &o->out) ||
	    (o->kind == HX_MOE_ROWS && x == &o->out && o->q8) ||
	    (mat && x == &o->in[0] && o->type != QUANT_F32);

	return q8 ? x->cols / 32 * sizeof(struct act_q8) : x->cols * 4ull;
}

static int
has_kv(const struct hx_batch *b, uint32_t at, uint32_t head)
{
	return b->base[HX_BUF_KV] != NULL && at + (uint64_t)b->m->nseqs *
	    b->m->n_head_kv * head <= b->nbytes[HX_BUF_KV];
}

/* Are all operands within their buffers?  There are n_expert_used experts' rows for
 * each row of the batch. */
static uint32_t
check_op(const struct hx_batch *b, const struct hx_op *o)
{
	uint32_t n = hx_rows(b, o), from = n;

	if (o->kind == HX_SELECT_ROWS || o->kind == HX_MOE_ROWS)
		from = b->nrows;
	if (o->kind == HX_MOE_SUM)
		from = b->nrows * b->m->n_expert_used;
	if ((o->experts || o->kind == HX_MOE_ROUTE || o->kind ==
	    HX_MOE_SUM) && b->m->n_expert_used == 0)
		return HXQ_ERANGE;
	if (!in_range(b, &o->out, n, row_bytes(o, &o->out)) ||
	    !in_range(b, &o->in[0], from, row_bytes(o, &o->in[0])) ||
	    !in_range(b, &o->in[1], n, row_bytes(o, &o->in[1])) ||
	    !in_range(b, &o->w, 1, weight_bytes(b, o)) ||
	    !in_range(b, &o->bias, 1, bias_bytes(b, o)) ||
	    !in_range(b, &o->routes, b->nrows,
	    (uint64_t)ROUTE_PARTS * b->m->n_expert_used * 4))
		return HXQ_ERANGE;
	if ((o->kind == HX_KV_STORE || o->kind == HX_ATTENTION) &&
	    (!has_kv(b, o->k, o->k_head) || !has_kv(b, o->v, o->v_head)))
		return HXQ_ERANGE;
	return HXQ_OK;
}

static uint32_t
take_buffers(const struct hxq_packet *q, struct hx_batch *b,
    uint32_t *ret_arg)
{
	uint32_t i;

	if (q->nbufs > HX_NBUFS)
		return HXQ_EBADMSG;
	for (i = 0; i < q->nbufs; i++) {
		struct hxq_buf x = q->buf[i];
		const struct map *m;

		b->base[i] = NULL;
		b->nbytes[i] = 0;
		if (x.nbytes == 0)
			continue;
		*ret_arg = x.handle;
		if (x.handle >= HXQ_MAPS || map[x.handle].base == NULL)
			return HXQ_ENOMAP;
		m = &map[x.handle];
		if (x.offset > m->nbytes || x.nbytes > m->nbytes - x.offset)
			return HXQ_ERANGE;
		b->base[i] = (uint8_t *)m->base + x.offset;
		b->nbytes[i] = (uint32_t)x.nbytes;
	}
	return HXQ_OK;
}

/* Rows of the current run, copied so that no op depends on the host leaving the
 * slot alone. */
static uint32_t rows[3 * MAX_BATCH];

static uint32_t
take_rows(const struct hxq_packet *q, const struct hx_run *run,
    struct hx_batch *b)
{
	uint32_t i;

	if (run->nrows > MAX_BATCH || run->nselect > MAX_BATCH ||
	    run->first > run->end || run->end > nops || q->nbytes !=
	    sizeof(*run) + (2 * run->nrows + run->nselect) * sizeof(*rows))
		return HXQ_EBADMSG;
	memcpy(rows, q->msg + sizeof(*run), q->nbytes - sizeof(*run));
	b->m = &model;
	b->nrows = run->nrows;
	b->nselect = run->nselect;
	b->seq = rows;
	b->pos = rows + run->nrows;
	b->select = b->pos + run->nrows;
	for (i = 0; i < b->nrows; i++)
		if (b->seq[i] >= model.nseqs || b->pos[i] >= model.ctx_tok)
			return HXQ_EBADMSG;
	for (i = 0; i < b->nselect; i++)
		if (b->select[i] >= b->nrows)
			return HXQ_EBADMSG;
	return HXQ_OK;
}

/* Reduces the batch to its selected rows, which ops before have moved to the
 * front. */
static void
narrow(struct hx_batch *b)
{
	uint32_t *seq = rows, *pos = seq + b->nrows, *select = pos + b->nrows;
	uint32_t i;

	for (i = 0; i < b->nselect; i++) {
		seq[i] = seq[select[i]];
		pos[i] = pos[select[i]];
		select[i] = i;
	}
	b->nrows = b->nselect;
}

static uint32_t
do_run(const struct hxq_packet *q, struct hxq_packet *r)
{
	static struct hx_batch b;
	struct hx_run run;
	uint32_t i, status;

	if (q->nbytes < sizeof(run))
		return HXQ_EBADMSG;
	memcpy(&run, q->msg, sizeof(run));
	memset(&b, 0, sizeof(b));
	if ((status = take_rows(q, &run, &b)) != HXQ_OK ||
	    (status = take_buffers(q, &b, &r->status_arg)) != HXQ_OK)
		return status;
	for (i = run.first; i < run.end; i++) {
		if ((status = check_op(&b, &op[i])) == HXQ_OK)
			status = fn[op[i].kind](&b, &op[i]);
		if (status != HXQ_OK) {
			r->status_op = i;
			return status;
		}
		++*domain_progress;
		if (op[i].narrows)
			narrow(&b);
	}
	return HXQ_OK;
}

/* --- probing limits --- */

static uint64_t
largest_map(void)
{
	uint32_t lo = 0, hi = 4095, mid;	/* MiB: works, refused */
	void *p;

	while (hi - lo > 1) {
		mid = (lo + hi) / 2;
		if (rt_map(-1, mid << 20, &p) == 0) {
			rt_unmap(p, mid << 20);
			lo = mid;
		} else {
			hi = mid;
		}
	}
	return (uint64_t)lo << 20;
}

static uint32_t
do_probe(struct hxq_packet *r)
{
	static void *p[PROBE_MAPS];
	struct hxq_probe probe = { 0 };
	uint32_t n = 0;

	probe.largest_bytes = largest_map();
	while (n < PROBE_MAPS && rt_map(-1, 1 << 20, &p[n]) == 0)
		n++;
	probe.nmaps = n;
	probe.vtcm_bytes = HX_VTCM_BYTES;
	probe.total_bytes = (uint64_t)n << 20;
	while (n > 0)
		rt_unmap(p[--n], 1 << 20);
	memcpy(r->msg, &probe, sizeof(probe));
	r->nbytes = sizeof(probe);
	return HXQ_OK;
}

/* --- all packets --- */

void
domain_bind(uint32_t handle, void *base, uint32_t nbytes)
{
	map[handle] = (struct map){ base, nbytes };
}

uint32_t
domain_dispatch(const struct hxq_packet *q, struct hxq_packet *r)
{
	if (q->nbufs > HXQ_MAX_BUFS || q->nbytes > HXQ_MAX_MSG)
		return HXQ_EBADMSG;
	switch (q->kind) {
	case HXQ_HELLO:
		return do_hello(r);
	case HXQ_MAP:
		return do_map(q, r);
	case HXQ_UNMAP:
		return do_unmap(q);
	case HXQ_MODEL:
		return do_model(q);
	case HXQ_OPS:
		return do_ops(q);
	case HXQ_RUN:
		return do_run(q, r);
	case HXQ_PROBE:
		return do_probe(r);
	case HXQ_EXIT:
		return HXQ_OK;
	default:
		return HXQ_EBADMSG;
	}
}
