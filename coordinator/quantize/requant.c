/* coordinator/quantize/requant.c - read, convert, write: pieces of tensors on threads.
 *
 * Rows are whole blocks in both types, so a tensor is one string of blocks and
 * a piece any run of them.  Threads take pieces in the order of the file; each
 * reads, converts and writes its own, at its own offset. */
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
#include "coordinator/bench/crew.h"

/* Elements of a piece: whole blocks of every type, 256 KiB of floats. */
enum { PIECE = 1 << 16, BLOCK_MAX_BYTES = 8 };

/* Of one thread: 8 bytes an element are the widest type that is copied. */
struct desk {
	uint8_t in[PIECE * BLOCK_MAX_BYTES];
	uint8_t out[PIECE * sizeof(float)];
	float x[PIECE], back[PIECE];
};

struct piece {
	uint64_t tensor, first;
	uint32_t n;		/* elements from first on */
};

struct requant_work {
	const struct requant *q;
	struct desk *desk;	/* [nthreads] */
	pthread_mutex_t lock;	/* of all that follows */
	struct piece next;
	struct progress_of {
		uint64_t left;	/* elements */
		struct requant_result r;
	} *tensor;		/* [ntensors] */
	uint64_t said;		/* tensors told of */
	uint64_t done_bytes;
	int rc;
	struct err err;
};

static uint64_t
nelements(const struct gguf_tensor *t)
{
	return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

static uint64_t
bytes_of(uint32_t type, uint64_t n)
{
	const struct quant_info *info = quant_info(type);

	return n / info->block * info->bytes;
}

/* --- one piece --- */

static int
read_all(const struct gguf_file *f, const struct gguf_tensor *t, uint8_t *p,
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
			    "file ends at byte %" PRIu64 ", within tensor "
			    "\"%s\": it has shrunk", f->path, at, t->name);
		p += got;
		at += (uint64_t)got;
		n -= (uint64_t)got;
	}
	return 0;
}

static int
write_all(const struct requant *q, const struct gguf_tensor *t,
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

/* The first that is not a number that a file can hold, or n. */
static uint32_t
find_unfinite(const float *x, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n && isfinite(x[i]); i++)
		;
	return i;
}

static int
convert(const struct requant *q, const struct piece *p, struct desk *k,
    struct requant_result *r, struct err *reterr)
{
	const struct gguf_tensor *from = &q->g->tensor[p->tensor];
	uint32_t to = q->out->tensor[p->tensor].type, i;
	const char *path = q->g->file[from->file].path;
	double e;

	dequant[from->type](k->x, k->in, p->n);
	if ((i = find_unfinite(k->x, p->n)) < p->n)
		return err_set(reterr, ERR_MODEL, -EDOM, "%s: tensor \"%s\": "
		    "weight %" PRIu64 " is %g: there is nothing to make of it",
		    path, from->name, p->first + i, (double)k->x[i]);
	encode[to](k->out, k->x, p->n);
	dequant[to](k->back, k->out, p->n);
	if ((i = find_unfinite(k->back, p->n)) < p->n)
		return err_set(reterr, ERR_MODEL, -ERANGE, "%s: tensor "
		    "\"%s\": weight %" PRIu64 ", %g, or its block is beyond "
		    "what %s holds: BF16 and F32 hold it", path, from->name,
		    p->first + i, (double)k->x[i], quant_info(to)->name);
	for (i = 0; i < p->n; i++) {
		e = (double)k->x[i] - (double)k->back[i];
		r->errors += e * e;
		r->squares += (double)k->x[i] * (double)k->x[i];
	}
	return 0;
}

static int
do_piece(const struct requant *q, const struct piece *p, struct desk *k,
    struct requant_result *r, struct err *reterr)
{
	const struct gguf_tensor *from = &q->g->tensor[p->tensor];
	const struct gguf_tensor *to = &q->out->tensor[p->tensor];
	int same = from->type == to->type, rc;

	if ((rc = read_all(&q->g->file[from->file], from, k->in,
	    bytes_of(from->type, p->n), from->offset +
	    bytes_of(from->type, p->first), reterr)) < 0)
		return rc;
	if (!same && (rc = convert(q, p, k, r, reterr)) < 0)
		return rc;
	return write_all(q, to, same ? k->in : k->out, bytes_of(to->type,
	    p->n), to->offset + bytes_of(to->type, p->first), reterr);
}

/* --- all of them --- */

/* Under the lock: 1 and the next piece; 0 when there is none, or no use. */
static int
take_piece(struct requant_work *w, struct piece *ret)
{
	const struct requant *q = w->q;
	uint64_t left;

	if (w->rc == 0 && q->stop != NULL && atomic_load(q->stop))
		w->rc = err_set(&w->err, ERR_RUN, -EINTR, "interrupted");
	if (w->rc < 0 || w->next.tensor == q->g->ntensors)
		return 0;
	left = nelements(&q->g->tensor[w->next.tensor]) - w->next.first;
	w->next.n = (uint32_t)MIN(left, PIECE);
	*ret = w->next;
	w->next.first += ret->n;
	if (ret->n == left)
		w->next = (struct piece){ .tensor = ret->tensor + 1 };
	return 1;
}

/* Under the lock.  Sums are added in the order in which the pieces come: their
 * last digits may differ from run to run, the file does not. */
static void
put_result(struct requant_work *w, const struct piece *p,
    const struct requant_result *r)
{
	const struct requant *q = w->q;
	struct progress_of *t = &w->tensor[p->tensor];

	t->left -= p->n;
	t->r.errors += r->errors;
	t->r.squares += r->squares;
	w->done_bytes += bytes_of(q->g->tensor[p->tensor].type, p->n);
	if (q->tick != NULL)
		q->tick(q->arg, w->done_bytes);
	for (; w->said < q->g->ntensors && w->tensor[w->said].left == 0;
	    w->said++)
		if (q->done != NULL)
			q->done(q->arg, w->said, &w->tensor[w->said].r);
}

static double
step(void *arg, unsigned i)
{
	struct requant_work *w = arg;
	struct requant_result r = { 0 };
	struct err e = { 0 };
	struct piece p;
	int rc, some;

	pthread_mutex_lock(&w->lock);
	some = take_piece(w, &p);
	pthread_mutex_unlock(&w->lock);
	if (!some)
		return 0;
	rc = do_piece(w->q, &p, &w->desk[i], &r, &e);
	pthread_mutex_lock(&w->lock);
	if (rc == 0)
		put_result(w, &p, &r);
	else if (w->rc == 0) {		/* the first one is told of */
		w->rc = rc;
		w->err = e;
	}
	pthread_mutex_unlock(&w->lock);
	return p.n;
}

/* Core of each thread: the allowed ones by turns. */
static void
choose_cores(const struct requant *q, unsigned *cpu)
{
	unsigned c = 0, i;

	for (i = 0; i < q->nthreads; i++) {
		while (!cpuset_has(&q->cpus, c))
			c = (c + 1) % MAX_CPUS;
		cpu[i] = c;
		c = (c + 1) % MAX_CPUS;
	}
}

int
requant_run(const struct requant *q, struct err *reterr)
{
	struct requant_work w = { .q = q };
	unsigned *cpu = calloc(q->nthreads, sizeof(*cpu));
	struct crew_time time;
	uint64_t i;
	int rc;

	w.desk = calloc(q->nthreads, sizeof(*w.desk));
	w.tensor = calloc(q->g->ntensors + 1, sizeof(*w.tensor));
	if (cpu == NULL || w.desk == NULL || w.tensor == NULL) {
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "no memory for %u "
		    "threads: give fewer (--threads)", q->nthreads);
		goto done;
	}
	for (i = 0; i < q->g->ntensors; i++)
		w.tensor[i].left = nelements(&q->g->tensor[i]);
	choose_cores(q, cpu);
	pthread_mutex_init(&w.lock, NULL);
	rc = crew_run(cpu, q->nthreads, CREW_UNTIL_DONE, step, &w, &time,
	    reterr);
	pthread_mutex_destroy(&w.lock);
	if (rc == 0 && (rc = w.rc) < 0 && reterr != NULL)
		*reterr = w.err;
done:
	free(w.tensor);
	free(w.desk);
	free(cpu);
	return rc;
}
