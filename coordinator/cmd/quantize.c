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
#include "cmd.h"
#include "coordinator/engine/engine.h"
#include "coordinator/print/output.h"
#include "coordinator/quantize/part_file.h"
#include "coordinator/quantize/requant.h"
#include "coordinator/print/status.h"

/* How blocks lie; there is no other in use. */
enum { GGUF_QUANT_VERSION = 2 };

struct job_quantize {
	const struct conf *c;
	struct gguf *g;
	uint32_t *type;			/* [ntensors] */
	struct gguf_out out;
	struct part_file file;
	/* what has happened so far; requant's lock holds */
	struct requant_result sum;
	uint64_t nchanged;		/* tensors */
	json_t *list;			/* --json */
	struct status status;
};

/* --- while it runs --- */

static void
tick(void *arg, uint64_t done_bytes)
{
	struct job_quantize *j = arg;
	double part = (double)done_bytes / (double)j->g->tensor_bytes;
	char done[UNITS_BYTES_LEN], all[UNITS_BYTES_LEN];

	if (status_is_due(&j->status))
		status_print(&j->status, part, "%s of %s read, %.0f %%",
		    units_human_bytes(done_bytes, done),
		    units_human_bytes(j->g->tensor_bytes, all), 100 * part);
}

static double
error_of(const struct requant_result *r)
{
	return r->squares > 0 ? sqrt(r->errors / r->squares) : 0;
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
	    quant_info(from->type)->name, same ? "  " : "->",
	    same ? "" : quant_info(to->type)->name,
	    units_human_bytes(from->nbytes, was), same ? "  " : "->",
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
		    json_integer((json_int_t)from->ne[d]));
	json_object_set_new(o, "name", json_string(from->name));
	json_object_set_new(o, "shape", ne);
	json_object_set_new(o, "from",
	    json_string(quant_info(from->type)->name));
	json_object_set_new(o, "to", json_string(quant_info(to->type)->name));
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
	struct job_quantize *j = arg;
	const struct gguf_tensor *from = &j->g->tensor[i];
	const struct gguf_tensor *to = &j->out.tensor[i];

	j->nchanged += from->type != to->type;
	j->sum.errors += r->errors;
	j->sum.squares += r->squares;
	if (j->list != NULL)
		json_array_append_new(j->list, tensor_json(from, to, r));
	else if (j->c->verbose > 0) {
		status_erase(&j->status);
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

/* What was lost before is lost; what is lost twice is more than once. */
static void
warn_of_requantizing(const struct job_quantize *j)
{
	const struct gguf_tensor *t;
	uint64_t i, n = 0;

	for (i = 0; i < j->g->ntensors; i++) {
		t = &j->g->tensor[i];
		n += j->type[i] != t->type && quant_info(t->type)->block > 1;
	}
	if (n > 0)
		log_info("note: %" PRIu64 " of the tensors to convert are "
		    "quantized already: errors are told against these, and "
		    "what they have lost is not in them; start from F16, BF16 "
		    "or F32 where there is such a file", n);
}

/* Everything that can be refused is, before a byte is written. */
static int
prepare(struct job_quantize *j, struct err *reterr)
{
	struct requant_want want;
	int rc;

	if ((rc = read_want(j->c, &want, reterr)) < 0 ||
	    (rc = gguf_open(j->c->model_path, &j->g, reterr)) < 0 ||
	    (rc = output_refuse_model(j->g, j->c->out_path, reterr)) < 0)
		return rc;
	if (j->g->ntensors == 0)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: holds no "
		    "tensors: there is nothing to convert", j->g->file->path);
	if ((j->type = calloc(j->g->ntensors + 1, sizeof(*j->type))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	if ((rc = requant_types(j->g, &want, j->type, reterr)) < 0)
		return rc;
	const struct gguf_set set[] = {
		{ "general.quantization_version", GGUF_QUANT_VERSION },
		{ "general.file_type", requant_file_type(want.type) }
	};
	return gguf_out_make(j->g, j->type, set, NITEMS(set), &j->out, reterr);
}

/* --- the work, and after --- */

static volatile atomic_int stopped;

static void
on_signal(int sig)
{
	(void)sig;
	atomic_store(&stopped, 1);
}

/* So that the part is removed; what the user ignores (nohup) stays so. */
static void
catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = on_signal }, old;
	unsigned i;

	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < NITEMS(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
}

static int
convert(struct job_quantize *j, unsigned *ret_nthreads, struct err *reterr)
{
	struct requant q = {
		.g = j->g, .out = &j->out, .out_path = j->file.part,
		.out_fd = j->file.fd, .stop = &stopped,
		.done = tensor_done, .tick = tick, .arg = j,
	};
	ssize_t n;
	int rc;

	if ((rc = cores_allowed(&q.cpus, reterr)) < 0)
		return rc;
	q.nthreads = j->c->quant_threads > 0 ? (unsigned)j->c->quant_threads :
	    cpuset_count(&q.cpus);
	*ret_nthreads = q.nthreads;
	warn_of_requantizing(j);
	n = pwrite(q.out_fd, j->out.header, j->out.header_bytes, 0);
	if (n < 0 || (size_t)n != j->out.header_bytes)
		return err_set(reterr, ERR_RUN, n < 0 ? -errno : -ENOSPC,
		    "%s: cannot write the header: %s", q.out_path,
		    strerror(n < 0 ? errno : ENOSPC));
	status_init(&j->status, j->c->verbose > 0);
	rc = requant_run(&q, reterr);
	status_erase(&j->status);
	return rc;
}

static uint64_t
sum_bytes(const struct gguf_tensor *t, uint64_t n)
{
	uint64_t sum = 0;

	while (n-- > 0)
		sum += t[n].nbytes;
	return sum;
}

/* How many tensors each type has now. */
static void
print_types(const struct job_quantize *j)
{
	uint64_t n[QUANT_NTYPES] = { 0 }, i;
	const char *sep = "";
	uint32_t t;

	for (i = 0; i < j->g->ntensors; i++)
		n[j->type[i]]++;
	for (t = 0; t < QUANT_NTYPES; t++)
		if (n[t] > 0) {
			printf("%s%" PRIu64 " %s", sep, n[t],
			    quant_info(t)->name);
			sep = ", ";
		}
}

static int
report(struct job_quantize *j, unsigned nthreads, struct err *reterr)
{
	char was[UNITS_BYTES_LEN], is[UNITS_BYTES_LEN];
	uint64_t before = sum_bytes(j->g->tensor, j->g->ntensors), after =
	    sum_bytes(j->out.tensor, j->out.ntensors);
	double s = status_seconds(&j->status);
	json_t *list = j->list;

	if (list != NULL) {
		j->list = NULL;
		return output_json(json_pack("{s:o,s:I,s:I,s:I,s:f,s:f,s:i}",
		    "tensors", list, "bytes_before", (json_int_t)before,
		    "bytes_after", (json_int_t)after, "file_bytes",
		    (json_int_t)j->out.file_bytes, "error", error_of(&j->sum),
		    "seconds", s, "threads", (int)nthreads), 1, reterr);
	}
	printf("%s: ", j->c->out_path);
	print_types(j);
	printf("; %s -> %s; ", units_human_bytes(before, was),
	    units_human_bytes(after, is));
	if (j->nchanged > 0)
		printf("error %.3f %% over the %" PRIu64 " converted",
		    100 * error_of(&j->sum), j->nchanged);
	else
		printf("nothing to convert");
	printf("; %.2f s, %u thread%s\n", s, nthreads,
	    nthreads == 1 ? "" : "s");
	return 0;
}

int
cmd_quantize(const struct conf *c, struct err *reterr)
{
	struct job_quantize j = { .c = c, .file = { .fd = -1 } };
	unsigned nthreads = 0;
	int rc;

	if (c->json)
		j.list = json_array();
	catch_signals();
	if ((rc = prepare(&j, reterr)) == 0 &&
	    (rc = part_open(&j.file, c->out_path, j.out.file_bytes,
	    reterr)) == 0 &&
	    (rc = convert(&j, &nthreads, reterr)) == 0 &&
	    (rc = part_commit(&j.file, reterr)) == 0)
		rc = report(&j, nthreads, reterr);
	part_close(&j.file);
	json_decref(j.list);
	gguf_out_free(&j.out);
	free(j.type);
	gguf_close(j.g);
	return rc;
}
