/* worker/rknpu/product.c - a weight matrix on the NPU: see product.h. */
#include "product.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shm/event.h"

/* A product of the NPU: one plane of one segment. */
struct slice {
	struct npu_mem b;
	uint32_t k0;			/* of A */
	unsigned plane;
	unsigned ctx[NPU_CLASSES];
	unsigned view;			/* npu_work.view */
};

/* Columns [n0, n0 + ncols) of C. */
struct part {
	unsigned core;
	uint32_t n0, ncols;
	struct slice *slice;		/* [cut.nslices] */
};

struct product {
	struct mat w;
	struct npu_mat mat;
	struct npu_cut cut;
	struct part *part;		/* [nparts] */
	unsigned nparts;
};

struct npu_form
npu_form_of(const struct rknpu_soc *soc)
{
	return (struct npu_form){ soc->b_cols[RKNPU_8_BITS],
	    soc->segment_k != 0 ? soc->segment_k :
	    NPU_FORM_DEFAULT.segment };
}

struct npu_chip
npu_chip(const struct npu *n)
{
	return (struct npu_chip){ .ncores = n->ncores,
	    .segment = npu_form_of(n->soc).segment,
	    .context_bytes = n->context_bytes };
}

/* --- buffers --- */

static int
open_host(struct npu_work *w, const struct npu_sizes *s, struct err *reterr)
{
	unsigned core;
	uint32_t r;

	w->planes = calloc(1, MAX(npu_planes_bytes(s), 1));
	for (core = 0; core < w->n->ncores && s->sums > 0; core++)
		if ((w->sums[core] = calloc(1, npu_sums_bytes(s))) == NULL)
			break;
	if (w->planes == NULL || (s->sums > 0 && core < w->n->ncores))
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for the rows of the NPU's products",
		    w->n->session);
	for (r = 0; r < NPU_MOST_ROWS; r++) {
		w->row[r].high = w->planes + (size_t)2 * r * s->k;
		w->row[r].low = w->row[r].high + s->k;
	}
	return 0;
}

int
npu_work_open(struct npu *n, const struct npu_sizes *s, struct npu_work *ret,
    struct err *reterr)
{
	unsigned core, class;
	int rc;

	*ret = (struct npu_work){ .n = n, .chip = npu_chip(n) };
	rc = open_host(ret, s, reterr);
	for (class = 0; class < NPU_CLASSES && rc == 0; class++) {
		rc = npu_alloc(n, npu_a_bytes(s, class), "activations",
		    &ret->a[class], reterr);
		for (core = 0; core < n->ncores && rc == 0; core++)
			rc = npu_alloc(n, npu_c_bytes(s, class), "results",
			    &ret->c[core][class], reterr);
	}
	if (rc < 0)
		npu_work_close(ret);
	return rc;
}

void
npu_work_close(struct npu_work *w)
{
	unsigned core, class, i;

	if (w->n == NULL || calls_are_lost(w->n->calls))
		return;			/* a call may still use them */
	for (i = 0; i < w->nviews; i++)
		for (class = 0; class < NPU_CLASSES; class++)
			npu_free(w->n, &w->view[i].a[class]);
	for (class = 0; class < NPU_CLASSES; class++) {
		npu_free(w->n, &w->a[class]);
		for (core = 0; core < NPU_CORES; core++)
			npu_free(w->n, &w->c[core][class]);
	}
	for (core = 0; core < NPU_CORES; core++)
		free(w->sums[core]);
	free(w->planes);
	*w = (struct npu_work){ 0 };
}

/* --- a matrix --- */

/* The views of A for columns [k0, k0 + k), made when they are missing. */
static int
find_view(struct npu_work *work, uint32_t k0, uint32_t k, unsigned *ret,
    struct err *reterr)
{
	struct npu_a_view *v;
	unsigned i, class;
	int rc;

	for (i = 0; i < work->nviews; i++)
		if (work->view[i].k0 == k0 && work->view[i].k == k) {
			*ret = i;
			return 0;
		}
	if (work->nviews == NPU_VIEWS)
		return err_set(reterr, ERR_RUN, -ENOSPC, "session %s: rows of "
		    "%u different lengths are prepared for the NPU, and no "
		    "more fit", work->n->session, NPU_VIEWS);
	v = &work->view[work->nviews];
	v->k0 = k0;
	v->k = k;
	for (class = 0; class < NPU_CLASSES; class++)
		if ((rc = npu_view(work->n, &work->a[class],
		    (uint64_t)npu_class_m[class] * k0,
		    (uint64_t)npu_class_m[class] * k, &v->a[class],
		    reterr)) < 0) {
			while (class > 0)
				npu_free(work->n, &v->a[--class]);
			return rc;
		}
	*ret = work->nviews++;
	return 0;
}

/* 1; 0 = a shape is lost; -errno. */
static int
open_contexts(struct npu_work *work, unsigned core, struct slice *s,
    struct npu_shape shape, struct err *reterr)
{
	struct npu *n = work->n;
	unsigned class;
	int rc;

	for (class = 0; class < NPU_CLASSES; class++) {
		shape.m = npu_class_m[class];
		if (npu_memo_is_lost(n->memo, shape))
			return 0;
		n->noted = shape;
		rc = npu_context(n, core, shape, &s->ctx[class], reterr);
		n->noted = NPU_SHAPE_ALL;
		if (rc < 0)
			return rc;
	}
	return 1;
}

static int
open_slice(struct npu_work *work, const struct product *p,
    const struct npu_mem *mem, const struct part *part, uint32_t i,
    struct slice *s, struct err *reterr)
{
	const struct npu_mat *m = &p->mat;
	struct npu_shape shape = { .n = part->ncols };
	uint64_t at;
	int rc;

	s->plane = i % m->nplanes;
	s->k0 = i / m->nplanes * m->form.segment;
	shape.k = MIN(m->k_pad - s->k0, m->form.segment);
	/* Segments follow each other; in one, columns do. */
	at = (uint64_t)(m->plane[s->plane] - m->plane[0]) +
	    (uint64_t)m->n_pad * s->k0 + (uint64_t)part->n0 * shape.k;
	if ((rc = npu_view(work->n, mem, at, (uint64_t)shape.n * shape.k,
	    &s->b, reterr)) < 0 ||
	    (rc = find_view(work, s->k0, shape.k, &s->view, reterr)) < 0)
		return rc;
	return open_contexts(work, part->core, s, shape, reterr);
}

static int
open_part(struct npu_work *work, struct product *p, const struct npu_mem *mem,
    struct part *part, struct err *reterr)
{
	uint32_t i;
	int rc = 1;

	part->slice = calloc(p->cut.nslices, sizeof(*part->slice));
	if (part->slice == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for the parts of a product", work->n->session);
	for (i = 0; i < p->cut.nslices && rc > 0; i++)
		rc = open_slice(work, p, mem, part, i, &part->slice[i],
		    reterr);
	return rc;
}

/* Cut N; with part NULL only count. */
static unsigned
cut(const struct npu_chip *chip, const struct npu_cut *c, struct part *part)
{
	uint32_t n0, n1, ncols;
	unsigned core, nparts = 0;

	for (core = 0; core < chip->ncores; core++) {
		npu_core_cols(chip, c, core, &n0, &n1);
		for (; n0 < n1; n0 += ncols, nparts++) {
			ncols = MIN(n1 - n0, c->most_cols);
			if (part != NULL)
				part[nparts] = (struct part){ .core = core,
				    .n0 = n0, .ncols = ncols };
		}
	}
	return nparts;
}

int
product_open(struct npu_work *work, const struct mat *w,
    const struct npu_mem *mem, struct product **ret, struct err *reterr)
{
	struct product *p = calloc(1, sizeof(*p));
	unsigned i;
	int rc = 1;

	if (p == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for a product", work->n->session);
	p->w = *w;
	npu_mat(w, &p->mat);
	p->cut = npu_cut(&work->chip, w->type, w->n, w->k);
	p->nparts = cut(&work->chip, &p->cut, NULL);
	if ((p->part = calloc(p->nparts, sizeof(*p->part))) == NULL)
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for the parts of a product", work->n->session);
	else
		cut(&work->chip, &p->cut, p->part);
	for (i = 0; i < p->nparts && rc > 0; i++)
		rc = open_part(work, p, mem, &p->part[i], reterr);
	if (rc <= 0) {
		product_close(work, p);
		return rc;
	}
	*ret = p;
	return 1;
}

void
product_close(struct npu_work *work, struct product *p)
{
	unsigned i, j;

	if (p == NULL || calls_are_lost(work->n->calls))
		return;
	for (i = 0; p->part != NULL && i < p->nparts; i++) {
		for (j = 0; p->part[i].slice != NULL && j < p->cut.nslices;
		    j++)
			npu_free(work->n, &p->part[i].slice[j].b);
		free(p->part[i].slice);
	}
	free(p->part);
	free(p);
}

/* --- a run --- */

static void
put_row(struct npu_work *work, const struct product *p, unsigned class,
    uint32_t r)
{
	const struct npu_row *row = &work->row[r];
	const uint32_t m = npu_class_m[class], group =
	    work->n->soc->a_group[RKNPU_8_BITS];
	uint8_t *a = work->a[class].host;
	uint32_t k0, k, end;

	for (k0 = 0; k0 < p->mat.k_pad; k0 = end) {
		end = MIN(k0 + p->mat.form.segment, p->mat.k_pad);
		for (k = k0; k < end; k += group) {
			uint8_t *to = a + (uint64_t)m * k0 +
			    (uint64_t)(k - k0) * m;

			memcpy(to + (size_t)r * group, row->high + k, group);
			memcpy(to + (size_t)(m / 2 + r) * group, row->low + k,
			    group);
		}
	}
}

struct put {
	struct npu_work *work;
	const struct product *p;
	unsigned class;
	const struct npu_rows *rows;
	struct par *par;
};

static void
put_rows(void *arg, unsigned thread)
{
	const struct put *q = arg;
	uint64_t r, end;

	par_share(q->par, q->rows->n, thread, &r, &end);
	for (; r < end; r++) {
		npu_round(&q->work->row[r], q->rows->x + r * q->rows->ldx,
		    q->p->w.k);
		put_row(q->work, q->p, q->class, (uint32_t)r);
	}
}

int
product_put(struct npu_work *work, const struct product *p, unsigned class,
    const struct npu_rows *rows, struct par *par, struct err *reterr)
{
	struct put q = { work, p, class, rows, rows->n > 1 ? par :
	    &par_alone };
	const struct slice *s = &p->part[0].slice[0];
	int rc;

	q.par->run(q.par, put_rows, &q);
	work->n->noted = work->n->core[p->part[0].core].ctx[s->ctx[class]]
	    .shape;
	rc = npu_publish(work->n, &work->a[class], reterr);
	work->n->noted = NPU_SHAPE_ALL;
	return rc;
}

/* Bind what differs from the last run of this context. */
static int
bind(struct npu_run *run, struct npu_context *x, enum rknpu_matrix matrix,
    const struct npu_mem *m, struct rknn_matmul_tensor_attr *attr)
{
	struct npu *n = run->w->n;
	int rc;

	if (x->bound[matrix] == m->mem)
		return 0;
	n->core[run->core].in = "rknn_matmul_set_io_mem";
	rc = npu_check(n, run->core, "rknn_matmul_set_io_mem",
	    n->lib->rknn_matmul_set_io_mem(x->id, m->mem, attr));
	if (rc == 0)
		x->bound[matrix] = m->mem;
	return rc;
}

/* C of one slice, in the core's memory. */
static int
run_slice(struct npu_run *run, struct npu_context *x, const struct slice *s)
{
	struct npu *n = run->w->n;
	const struct npu_mem *c = &run->w->c[run->core][run->class];
	struct npu_core *core = &n->core[run->core];

	if (bind(run, x, RKNPU_B, &s->b, &x->attr.B) < 0 ||
	    bind(run, x, RKNPU_A, &run->w->view[s->view].a[run->class],
	    &x->attr.A) < 0 ||
	    bind(run, x, RKNPU_C, c, &x->attr.C) < 0)
		return core->rc;
	core->in = "rknn_matmul_run";
	if (npu_check(n, run->core, core->in, n->lib->rknn_matmul_run(
	    x->id)) < 0)
		return core->rc;
	core->in = "rknn_mem_sync";
	if (npu_check(n, run->core, core->in, n->lib->rknn_mem_sync(
	    x->id, c->mem, RKNN_MEMORY_SYNC_FROM_DEVICE)) < 0)
		return core->rc;
	return 0;
}

/* Integers of columns [n0, n0 + ncols) of a row of the batch: 128 times the high
 * plane's, and the low one's. */
static void
read_c(const struct npu_run *run, const struct npu_context *x, uint32_t r,
    uint32_t n0, uint32_t ncols, int64_t *sum)
{
	const int32_t *c = (const void *)
	    run->w->c[run->core][run->class].host;
	const uint32_t g = x->c.tile_cols, m = x->shape.m;
	uint32_t i, j;

	for (i = 0; i < ncols; i += g) {
		const int32_t *high = c + ((uint64_t)(n0 + i) / g * m + r) * g;
		const int32_t *low = high + (uint64_t)m / 2 * g;

		for (j = 0; j < g; j++)
			sum[i + j] = (int64_t)high[j] * NPU_HIGH + low[j];
	}
}

enum { STRIP = 256 };

static void
finish_strip(const struct npu_run *run, const struct part *part, uint32_t r,
    uint32_t i, uint32_t ncols, const int64_t *sum)
{
	const uint32_t n0 = part->n0 + i;
	const uint32_t n1 = MIN(n0 + ncols, run->p->w.n);

	if (n0 < n1)
		npu_finish(run->y + r * run->ldy + n0, &run->p->mat,
		    &run->w->row[r], sum, run->bias, n0, n1);
}

/* The part is this one product. */
static void
finish_slice(const struct npu_run *run, const struct npu_context *x,
    const struct part *part)
{
	int64_t sum[STRIP];
	uint32_t r, i, ncols;

	for (r = 0; r < run->nrows; r++)
		for (i = 0; i < part->ncols; i += ncols) {
			ncols = MIN(part->ncols - i, (uint32_t)STRIP);
			read_c(run, x, r, i, ncols, sum);
			finish_strip(run, part, r, i, ncols, sum);
		}
}

/* Add the slice to the part's sums; the first one sets them. */
static void
add_slice(const struct npu_run *run, const struct npu_context *x,
    const struct part *part, const struct slice *s, int is_first)
{
	const int64_t by = run->p->mat.nplanes > 1 && s->plane == 0 ?
	    NPU_HIGH : 1;
	int64_t sum[STRIP], *to;
	uint32_t r, i, j, ncols;

	for (r = 0; r < run->nrows; r++)
		for (i = 0; i < part->ncols; i += ncols) {
			ncols = MIN(part->ncols - i, (uint32_t)STRIP);
			read_c(run, x, r, i, ncols, sum);
			to = run->w->sums[run->core] + (uint64_t)r *
			    part->ncols + i;
			for (j = 0; j < ncols; j++)
				to[j] = by * sum[j] + (is_first ? 0 : to[j]);
		}
}

static void
finish_part(const struct npu_run *run, const struct part *part)
{
	uint32_t r;

	for (r = 0; r < run->nrows; r++)
		finish_strip(run, part, r, 0, part->ncols,
		    run->w->sums[run->core] + (uint64_t)r * part->ncols);
}

static int
run_part(struct npu_run *run, const struct part *part)
{
	struct npu_core *core = &run->w->n->core[run->core];
	const struct slice *s;
	struct npu_context *x;
	unsigned i;
	int rc;

	for (i = 0; i < run->p->cut.nslices; i++) {
		s = &part->slice[i];
		x = &core->ctx[s->ctx[run->class]];
		npu_memo_begin(run->w->n->memo, run->core, x->shape);
		rc = run_slice(run, x, s);
		npu_memo_end(run->w->n->memo, run->core);
		if (rc < 0)
			return rc;
		if (run->p->cut.nslices == 1)
			finish_slice(run, x, part);
		else
			add_slice(run, x, part, s, i == 0);
	}
	if (run->p->cut.nslices > 1)
		finish_part(run, part);
	return 0;
}

static void
run_core(void *arg)
{
	struct npu_run *run = arg;
	const struct part *part = run->p->part;
	unsigned i;

	run->w->n->core[run->core].rc = 0;
	for (i = 0; i < run->p->nparts; i++)
		if (part[i].core == run->core &&
		    run_part(run, &part[i]) < 0)
			return;
}

int
product_run(struct npu_work *work, const struct product *p, unsigned class,
    uint32_t nrows, float *y, uint64_t ldy, const float *bias,
    uint64_t deadline_ns, struct err *reterr)
{
	struct npu *n = work->n;
	unsigned core;
	int rc = 0, rc1;

	for (core = 0; core < n->ncores; core++) {
		work->run[core] = (struct npu_run){ work, p, core, class, nrows,
		    y, ldy, bias };
		calls_post(n->calls, core, run_core, &work->run[core]);
	}
	for (core = 0; core < n->ncores; core++) {
		if ((rc1 = npu_wait(n, core, deadline_ns, reterr)) < 0)
			return rc1;
		if (n->core[core].rc < 0 && rc == 0) {
			rc = n->core[core].rc;
			*reterr = n->core[core].err;
		}
	}
	return rc;
}
