/* coordinator/cmd/quantize.c - a model file made from another, in another
 * type: open, choose types, lay out, convert, put under its name. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/cores.h"
#include "config/log.h"
#include "config/plain.h"
#include "config/quota.h"
#include "cmd.h"
#include "coordinator/engine/engine.h"
#include "coordinator/print/output.h"
#include "coordinator/quantize/origin.h"
#include "coordinator/quantize/requant.h"
#include "coordinator/print/status.h"
#include "coordinator/print/whole_file.h"

/* The layout of blocks; no other version is in use. */
enum { GGUF_QUANT_VERSION = 2 };

struct quantize {
	const struct conf *c;
	struct gguf *g;
	uint32_t *type;			/* [ntensors] */
	struct requant_want want;
	struct requant_count count;
	struct gguf_out out;
	struct whole_file file;
	/* Results so far; written under requant's lock. */
	struct requant_result sum;
	uint64_t nchanged;		/* tensors */
	json_t *list;			/* --json */
	struct status status;
};

/* --- while it runs --- */

static void
tick(void *arg, uint64_t done_bytes)
{
	struct quantize *q = arg;
	double part = (double)done_bytes / (double)MAX(done_bytes,
	    q->g->tensor_bytes);
	char done[UNITS_BYTES_LEN], all[UNITS_BYTES_LEN];

	if (status_is_due(&q->status))
		status_print(&q->status, part, "%s of %s read, %.0f %%",
		    units_human_bytes(done_bytes, done),
		    units_human_bytes(q->g->tensor_bytes, all), 100 * part);
}

static double
error_of(const struct requant_result *r)
{
	return r->squares > 0 ? sqrt(r->errors / r->squares) : 0;
}

/* An empty tensor may have an unknown type. */
static const char *
type_name(const struct gguf_tensor *t)
{
	const struct quant_info *info = quant_info(t->type);

	return info != NULL ? info->name : "unknown";
}

static void
shape_text(const struct gguf_tensor *t, char *buf, size_t len)
{
	size_t at = 0;
	uint32_t d;

	for (d = t->ndims; d-- > 0 && at < len;)
		at += (size_t)snprintf(buf + at, len - at, "%" PRIu64 "%s",
		    t->ne[d], d > 0 ? " x " : "");
}

static void
print_tensor(const struct gguf_tensor *from, const struct gguf_tensor *to,
    const struct requant_result *r)
{
	char was[UNITS_BYTES_LEN], is[UNITS_BYTES_LEN], shape[96];
	int same = from->type == to->type;

	shape_text(from, shape, sizeof(shape));
	printf("%-30s %18s  %6s %s %-6s %8s %s %-8s", from->name, shape,
	    type_name(from), same ? "  " : "->",
	    same ? "" : type_name(to),
	    units_human_bytes(gguf_stored_bytes(from), was), same ? "  " : "->",
	    same ? "" : units_human_bytes(to->nbytes, is));
	if (same)
		puts(" as it was");
	else
		printf(" error %.3f %%\n", 100 * error_of(r));
}

static json_t *
tensor_json(const struct gguf_tensor *from, const struct gguf_tensor *to,
    const struct requant_result *r)
{
	json_t *o = json_object(), *ne = json_array();
	uint32_t d;

	for (d = 0; d < from->ndims; d++)
		json_array_append_new(ne,
		    output_json_u64(from->ne[d]));
	json_object_set_new(o, "name", json_string(from->name));
	json_object_set_new(o, "shape", ne);
	json_object_set_new(o, "from", json_string(type_name(from)));
	json_object_set_new(o, "to", json_string(type_name(to)));
	json_object_set_new(o, "bytes_before",
	    json_integer((json_int_t)from->nbytes));
	json_object_set_new(o, "bytes_after",
	    json_integer((json_int_t)to->nbytes));
	json_object_set_new(o, "error", json_real(error_of(r)));
	return o;
}

static void
tensor_done(void *arg, uint64_t i, const struct requant_result *r)
{
	struct quantize *q = arg;
	const struct gguf_tensor *from = &q->g->tensor[i];
	const struct gguf_tensor *to = &q->out.tensor[i];

	q->nchanged += from->type != to->type;
	q->sum.errors += r->errors;
	q->sum.squares += r->squares;
	if (q->list != NULL)
		json_array_append_new(q->list, tensor_json(from, to, r));
	else if (q->c->verbose > 0) {
		status_erase(&q->status);
		print_tensor(from, to, r);
		fflush(stdout);
	}
}

/* --- before --- */

static int
read_want(const struct conf *c, struct requant_want *ret, struct err *reterr)
{
	int rc;

	ret->head = ret->fallback = REQUANT_DEFAULT;
	if ((rc = requant_type_parse("TYPE", c->quant_type, &ret->type,
	    reterr)) < 0)
		return rc;
	if (c->head_type != NULL && (rc = requant_type_parse("--head",
	    c->head_type, &ret->head, reterr)) < 0)
		return rc;
	if (c->fallback_type == NULL)
		return 0;
	if ((rc = requant_type_parse("--fallback", c->fallback_type,
	    &ret->fallback, reterr)) < 0)
		return rc;
	if (quant_info(ret->fallback)->block > 32)
		return err_set(reterr, ERR_USAGE, -EINVAL, "--fallback: %s "
		    "has blocks of 256 itself: give a type with smaller ones, "
		    "such as Q8_0 or Q5_0", quant_info(ret->fallback)->name);
	return 0;
}

static void
note_unknown(const struct quantize *q)
{
	const struct gguf_tensor *t, *first = NULL;
	uint64_t n = 0;

	for (t = q->g->tensor; t < q->g->tensor + q->g->ntensors; t++)
		if (quant_info(t->type) == NULL && n++ == 0)
			first = t;
	if (n > 0)
		log_info("note: %" PRIu64 " tensors of an unknown type are "
		    "copied as they are, the first is %s, of type %" PRIu32, n,
		    first->name, first->type);
}

/* Quantizing twice loses more than quantizing once. */
static void
warn_of_requantizing(const struct quantize *q)
{
	const struct gguf_tensor *t;
	uint64_t i, n = 0;

	for (i = 0; i < q->g->ntensors; i++) {
		t = &q->g->tensor[i];
		n += q->type[i] != t->type && quant_info(t->type)->block > 1;
	}
	note_unknown(q);
	if (n > 0)
		log_info("note: %" PRIu64 " of the tensors to convert are "
		    "quantized already: errors are relative to them and "
		    "exclude their own loss; use an F16, BF16 or F32 source "
		    "if you have one", n);
}

/* In one line each, even with -q: a user may take OUT for smaller, or for
 * another type. */
static void
warn_of_size(const struct quantize *q)
{
	char was[UNITS_BYTES_LEN], is[UNITS_BYTES_LEN];
	const struct quant_info *type = quant_info(q->want.type);
	uint64_t before = 0;
	uint32_t f;

	if (2 * q->count.fallback > q->count.wanted)
		log_warnx("note: %" PRIu64 " of %" PRIu64 " matrices became "
		    "%s, not %s, whose blocks of %u do not divide their rows: "
		    "choose another type for them with --fallback, or a TYPE "
		    "with smaller blocks", q->count.fallback, q->count.wanted,
		    quant_info(q->count.fallback_type)->name, type->name,
		    type->block);
	for (f = 0; f < q->g->nfiles; f++)
		before += q->g->file[f].nbytes;
	if (q->out.file_bytes > before)
		log_warnx("note: %s has %s, more than the %s of %s",
		    q->c->out_path, units_human_bytes(q->out.file_bytes, is),
		    units_human_bytes(before, was), q->g->file[0].path);
}

/* Refuse whatever can be refused before a byte is written. */
static int
prepare_quantize(struct quantize *q, struct err *reterr)
{
	int rc;

	if ((rc = read_want(q->c, &q->want, reterr)) < 0 ||
	    (rc = gguf_open(q->c->model_path, &q->g, reterr)) < 0 ||
	    (rc = output_refuse_model(q->g, q->c->out_path, reterr)) < 0)
		return rc;
	if (q->g->ntensors == 0)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: holds no "
		    "tensors: there is nothing to convert", q->g->file->path);
	if ((q->type = calloc(q->g->ntensors + 1, sizeof(*q->type))) == NULL)
		return err_nomem(reterr, "the types of %" PRIu64 " tensors",
		    q->g->ntensors);
	if ((rc = requant_types(q->g, &q->want, q->type, &q->count,
	    reterr)) < 0)
		return rc;
	const struct gguf_set set[] = {
		{ "general.quantization_version", GGUF_QUANT_VERSION },
		{ "general.file_type", quant_info(q->want.type)->file_type }
	};
	return gguf_out_make(q->g, q->type, set, NITEMS(set), &q->out, reterr);
}

static int
open_out(struct quantize *q, struct err *reterr)
{
	const char *path = q->c->out_path;
	int outdated = !q->c->force && origin_is_outdated(path, q->g), rc;

	if (outdated)
		log_info("note: %s is replaced: it was made from what %s was "
		    "before it changed", path, q->g->file[0].path);
	rc = whole_file_open(&q->file, path, q->c->force || outdated ?
	    WHOLE_REPLACE : 0, reterr);
	if (rc == -EEXIST)
		return err_set(reterr, ERR_USAGE, rc, "%s exists: give another "
		    "name, or --force to replace it", path);
	return rc < 0 ? rc : whole_file_reserve(&q->file, q->out.file_bytes,
	    reterr);
}

/* --- the work, and after --- */

static volatile atomic_int stopped;

static void
on_signal(int sig)
{
	(void)sig;
	atomic_store(&stopped, 1);
}

/* Stop on a signal, so that a temporary file is removed where the file system
 * needs one.  A signal that the user has ignored (nohup) stays ignored. */
static void
catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT,
	    SIGXCPU };
	struct sigaction sa = { .sa_handler = on_signal }, old;
	unsigned i;

	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < NITEMS(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
}

static int
convert(struct quantize *q, unsigned *ret_nthreads, struct err *reterr)
{
	struct requant rq = {
		.g = q->g, .out = &q->out, .out_path = q->file.path,
		.out_fd = q->file.fd, .stop = &stopped,
		.done = tensor_done, .tick = tick, .arg = q,
	};
	struct quota quota;
	ssize_t n;
	int rc;

	quota_read("", &quota);
	if ((rc = cores_allowed(&rq.cpus, reterr)) < 0)
		return rc;
	rq.nthreads = q->c->quant_threads > 0 ? (unsigned)q->c->quant_threads :
	    quota_threads(&quota, cpuset_count(&rq.cpus));
	*ret_nthreads = rq.nthreads;
	warn_of_requantizing(q);
	n = pwrite(rq.out_fd, q->out.header, q->out.header_bytes, 0);
	if (n < 0 || (size_t)n != q->out.header_bytes)
		return err_set(reterr, ERR_RUN, n < 0 ? -errno : -ENOSPC,
		    "%s: cannot write the header: %s", rq.out_path,
		    strerror(n < 0 ? errno : ENOSPC));
	status_init(&q->status, q->c->verbose > 0);
	rc = requant_run(&rq, reterr);
	status_erase(&q->status);
	return rc;
}

static uint64_t
sum_bytes(const struct gguf_tensor *t, uint64_t n)
{
	uint64_t sum = 0;

	while (n-- > 0)
		sum += gguf_stored_bytes(&t[n]);
	return sum;
}

/* How many tensors each type has now. */
static void
print_types(const struct quantize *q)
{
	uint64_t n[QUANT_NTYPES + 1] = { 0 }, i;
	const char *sep = "";
	uint32_t t;

	for (i = 0; i < q->g->ntensors; i++)
		n[MIN(q->type[i], QUANT_NTYPES)]++;
	for (t = 0; t <= QUANT_NTYPES; t++)
		if (n[t] > 0) {
			printf("%s%" PRIu64 " %s", sep, n[t], quant_info(t) !=
			    NULL ? quant_info(t)->name : "of unknown type");
			sep = ", ";
		}
}

static int
report(struct quantize *q, unsigned nthreads, struct err *reterr)
{
	char was[UNITS_BYTES_LEN], is[UNITS_BYTES_LEN];
	uint64_t before = sum_bytes(q->g->tensor, q->g->ntensors), after =
	    sum_bytes(q->out.tensor, q->out.ntensors);
	double s = status_seconds(&q->status);
	json_t *list = q->list;

	if (list != NULL) {
		q->list = NULL;
		return output_json(json_pack("{s:o,s:I,s:I,s:I,s:f,s:f,s:i}",
		    "tensors", list, "bytes_before", (json_int_t)before,
		    "bytes_after", (json_int_t)after, "file_bytes",
		    (json_int_t)q->out.file_bytes, "error", error_of(&q->sum),
		    "seconds", s, "threads", (int)nthreads), 1, reterr);
	}
	printf("%s: ", PLAIN(q->c->out_path));
	print_types(q);
	printf("; %s -> %s; ", units_human_bytes(before, was),
	    units_human_bytes(after, is));
	if (q->nchanged > 0)
		printf("error %.3f %% over the %" PRIu64 " converted",
		    100 * error_of(&q->sum), q->nchanged);
	else
		printf("nothing to convert");
	printf("; %.2f s, %u thread%s\n", s, nthreads,
	    nthreads == 1 ? "" : "s");
	return 0;
}

int
cmd_quantize(const struct conf *c, struct err *reterr)
{
	struct quantize q = { .c = c, .file = { .fd = -1 } };
	unsigned nthreads = 0;
	int rc;

	if (c->json)
		q.list = json_array();
	catch_signals();
	if ((rc = prepare_quantize(&q, reterr)) == 0 &&
	    (rc = open_out(&q, reterr)) == 0 &&
	    (rc = convert(&q, &nthreads, reterr)) == 0 &&
	    (rc = gguf_check_unchanged(q.g, reterr)) == 0) {
		origin_record(q.file.fd, q.g);
		if ((rc = whole_file_commit(&q.file, reterr)) == 0)
			rc = report(&q, nthreads, reterr);
	}
	if (rc == 0)
		warn_of_size(&q);
	whole_file_close(&q.file);
	json_decref(q.list);
	gguf_out_free(&q.out);
	free(q.type);
	gguf_close(q.g);
	return rc;
}
