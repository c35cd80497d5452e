/* coordinator/quantize/requant.c - reads, converts and writes tensors, in
 * pieces, on several threads.
 *
 * Rows are whole blocks in both types, so a tensor is a sequence of blocks, and
 * a piece is any run of them.  Threads take pieces in the order of the file;
 * each reads, converts and writes its piece at its own offset. */
#include "requant.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/types/dequant.h"
#include "kernels/types/encode.h"

enum {
	PIECE = 1 << 16,	/* elements: whole blocks of every type */
	MAX_ELEMENT_BYTES = 8	/* of the widest type that can be copied */
};

/* Buffers of one thread. */
struct buffers {
	_Alignas(8) uint8_t in[PIECE * MAX_ELEMENT_BYTES];
	uint8_t out[PIECE * sizeof(float)];
	float x[PIECE], back[PIECE];
};
_Static_assert(sizeof(struct buffers) == REQUANT_THREAD_BYTES, "as promised");

struct piece {
	uint64_t tensor, first;
	uint32_t n;		/* elements from first on */
};

struct requant_work {
	const struct requant *q;
	struct buffers *buffers;	/* [nthreads] */
	pthread_mutex_t lock;	/* protects everything below */
	struct piece next;
	struct tensor_progress {
		uint64_t left;	/* elements */
		struct requant_result r;
	} *tensor;		/* [ntensors] */
	uint64_t nreported;	/* tensors passed to q->done */
	uint64_t done_bytes;
	int rc;
	struct err err;
};

/* Elements; bytes of a tensor of unknown type. */
static uint64_t
work_of(const struct gguf_tensor *t)
{
	return quant_info(t->type) != NULL ? gguf_elements(t) :
	    gguf_stored_bytes(t);
}

static uint64_t
type_bytes(uint32_t type, uint64_t n)
{
	const struct quant_info *info = quant_info(type);

	return info != NULL ? n / info->block * info->bytes : n;
}

/* --- one piece --- */

static int
read_bytes(const struct gguf_file *f, const struct gguf_tensor *t, uint8_t *p,
    uint64_t n, uint64_t at, struct err *reterr)
{
	ssize_t got;

	while (n > 0) {
		got = pread(f->fd, p, n, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(reterr, ERR_RUN, -errno, "%s: cannot "
			    "read tensor \"%s\" at byte %" PRIu64 ": %s",
			    f->path, t->name, at, strerror(errno));
		if (got == 0)
			return err_set(reterr, ERR_MODEL, -ENODATA, "%s: the "
			    "file now ends at byte %" PRIu64 ", inside tensor "
			    "\"%s\": it has shrunk", f->path, at, t->name);
		p += got;
		at += (uint64_t)got;
		n -= (uint64_t)got;
	}
	return 0;
}

static int
write_bytes(const struct requant *q, const struct gguf_tensor *t,
    const uint8_t *p, uint64_t n, uint64_t at, struct err *reterr)
{
	ssize_t put;

	while (n > 0) {
		put = pwrite(q->out_fd, p, n, (off_t)at);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return err_set(reterr, ERR_RUN, -errno, "%s: cannot "
			    "write tensor \"%s\" at byte %" PRIu64 " of %"
			    PRIu64 ": %s", q->out_path, t->name, at,
			    q->out->file_bytes, strerror(errno));
		p += put;
		at += (uint64_t)put;
		n -= (uint64_t)put;
	}
	return 0;
}

/* Index of the first NaN or infinity, or n. */
static uint32_t
find_nonfinite(const float *x, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n && isfinite(x[i]); i++)
		;
	return i;
}

/* Refuse a weight that is not a number, by tensor and position. */
static int
check_weights(const struct requant *q, const struct piece *p, const float *x,
    struct err *reterr)
{
	const struct gguf_tensor *from = &q->g->tensor[p->tensor];
	uint32_t i = find_nonfinite(x, p->n);

	return i == p->n ? 0 : err_set(reterr, ERR_MODEL, -EDOM, "%s: tensor "
	    "\"%s\": weight %" PRIu64 " is %g: the file is damaged, or was "
	    "converted from a type of larger range",
	    q->g->file[from->file].path, from->name, p->first + i,
	    (double)x[i]);
}

/* The weights of a piece, as floats.  An exponent of 255 is NaN in the format of
 * MXFP4; kernels take it for a number, as ggml's do. */
static void
read_weights(uint32_t type, float *x, const void *in, uint32_t n)
{
	const struct block_mxfp4 *b = in;
	uint32_t i;

	dequant[type](x, in, n);
	for (i = 0; type == QUANT_MXFP4 && i < n; i += 32)
		if (b[i / 32].e == UINT8_MAX)
			x[i] = NAN;
}

/* Weights that keep their type are checked, too; integers are always sound. */
static int
check_copied(const struct requant *q, const struct piece *p, struct buffers *k,
    struct err *reterr)
{
	uint32_t type = q->g->tensor[p->tensor].type, i;
	const double *f64 = (const void *)k->in;

	if (p->n == 0 || quant_info(type) == NULL ||
	    (type != QUANT_F64 && dequant[type] == NULL))
		return 0;
	if (type == QUANT_F64)		/* keeps NaN and infinity as they are */
		for (i = 0; i < p->n; i++)
			k->x[i] = isfinite(f64[i]) ? 0 : (float)f64[i];
	else
		read_weights(type, k->x, k->in, p->n);
	return check_weights(q, p, k->x, reterr);
}

static int
convert_piece(const struct requant *q, const struct piece *p, struct buffers *k,
    struct requant_result *r, struct err *reterr)
{
	const struct gguf_tensor *from = &q->g->tensor[p->tensor];
	uint32_t to = q->out->tensor[p->tensor].type, i;
	const char *path = q->g->file[from->file].path;
	double e;
	int rc;

	read_weights(from->type, k->x, k->in, p->n);
	if ((rc = check_weights(q, p, k->x, reterr)) < 0)
		return rc;
	encode[to](k->out, k->x, p->n);
	dequant[to](k->back, k->out, p->n);
	if ((i = find_nonfinite(k->back, p->n)) < p->n)
		return err_set(reterr, ERR_MODEL, -ERANGE, "%s: tensor "
		    "\"%s\": weight %" PRIu64 ", %g, or its block exceeds the "
		    "range of %s; use BF16 or F32", path, from->name,
		    p->first + i, (double)k->x[i], quant_info(to)->name);
	for (i = 0; i < p->n; i++) {
		e = (double)k->x[i] - (double)k->back[i];
		r->errors += e * e;
		r->squares += (double)k->x[i] * (double)k->x[i];
	}
	return 0;
}

static int
process_piece(const struct requant *q, const struct piece *p, struct buffers *k,
    struct requant_result *r, struct err *reterr)
{
	const struct gguf_tensor *from = &q->g->tensor[p->tensor];
	const struct gguf_tensor *to = &q->out->tensor[p->tensor];
	int same = from->type == to->type, rc;

	if ((rc = read_bytes(&q->g->file[from->file], from, k->in,
	    type_bytes(from->type, p->n), from->offset +
	    type_bytes(from->type, p->first), reterr)) < 0)
		return rc;
	rc = same ? check_copied(q, p, k, reterr) :
	    convert_piece(q, p, k, r, reterr);
	if (rc < 0)
		return rc;
	return write_bytes(q, to, same ? k->in : k->out, type_bytes(to->type,
	    p->n), to->offset + type_bytes(to->type, p->first), reterr);
}

/* --- all pieces --- */

/* Called with the lock held.  Returns 1 with the next piece; 0: none is left,
 * or the work has failed. */
static int
take_piece(struct requant_work *w, struct piece *ret)
{
	const struct requant *q = w->q;
	uint64_t left;

	if (w->rc < 0 || w->next.tensor == q->g->ntensors)
		return 0;
	left = work_of(&q->g->tensor[w->next.tensor]) - w->next.first;
	w->next.n = (uint32_t)MIN(left, PIECE);
	*ret = w->next;
	w->next.first += ret->n;
	if (ret->n == left)
		w->next = (struct piece){ .tensor = ret->tensor + 1 };
	return 1;
}

/* Called with the lock held.  Sums are added in the order in which pieces
 * finish, so their last digits may differ between runs; the file does not. */
static void
add_result(struct requant_work *w, const struct piece *p,
    const struct requant_result *r)
{
	const struct requant *q = w->q;
	struct tensor_progress *t = &w->tensor[p->tensor];

	t->left -= p->n;
	t->r.errors += r->errors;
	t->r.squares += r->squares;
	w->done_bytes += type_bytes(q->g->tensor[p->tensor].type, p->n);
	if (q->tick != NULL)
		q->tick(q->arg, w->done_bytes);
	for (; w->nreported < q->g->ntensors && w->tensor[w->nreported].left == 0;
	    w->nreported++)
		if (q->done != NULL)
			q->done(q->arg, w->nreported, &w->tensor[w->nreported].r);
}

/* Convert one piece; 0 = there was none. */
static int
take_step(struct requant_work *w, unsigned thread)
{
	struct requant_result r = { 0 };
	struct err e = { 0 };
	struct piece p;
	int rc, found;

	pthread_mutex_lock(&w->lock);
	found = take_piece(w, &p);
	pthread_mutex_unlock(&w->lock);
	if (!found)
		return 0;
	rc = process_piece(w->q, &p, &w->buffers[thread], &r, &e);
	pthread_mutex_lock(&w->lock);
	if (rc == 0)
		add_result(w, &p, &r);
	else if (w->rc == 0) {		/* the first error is reported */
		w->rc = rc;
		w->err = e;
	}
	pthread_mutex_unlock(&w->lock);
	return 1;
}

static void
take_steps(void *arg, unsigned thread)
{
	while (take_step(arg, thread))
		;
}

int
requant_run(const struct requant *q, struct err *reterr)
{
	struct requant_work w = { .q = q };
	unsigned n = q->par->nthreads;
	uint64_t i;
	int rc = 0;

	w.buffers = calloc(n, sizeof(*w.buffers));
	w.tensor = calloc(q->g->ntensors + 1, sizeof(*w.tensor));
	if (w.buffers == NULL || w.tensor == NULL) {
		rc = err_nomem(reterr, "%u threads; use fewer (--threads)", n);
		goto done;
	}
	for (i = 0; i < q->g->ntensors; i++)
		w.tensor[i].left = work_of(&q->g->tensor[i]);
	pthread_mutex_init(&w.lock, NULL);
	q->par->run(q->par, take_steps, &w);
	pthread_mutex_destroy(&w.lock);
	if ((rc = w.rc) < 0 && reterr != NULL)
		*reterr = w.err;
done:
	free(w.tensor);
	free(w.buffers);
	return rc;
}
