/* coordinator/cmd/quantize.c - a model file made from another, in another
 * type: ask the converter for the layout, open the output, let it convert, put
 * the output under its name. */
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
#include "config/rights.h"
#include "cmd.h"
#include "coordinator/print/confined.h"
#include "coordinator/print/output.h"
#include "coordinator/print/status.h"
#include "coordinator/print/whole_file.h"
#include "coordinator/quantize/convert.h"
#include "coordinator/quantize/origin.h"

struct quantize {
	const struct conf *c;
	struct convert_conf conf;
	struct convert convert;
	struct whole_file file;
	/* Results so far. */
	struct requant_result sum;
	uint64_t nchanged;		/* tensors */
	uint64_t before_bytes, after_bytes;
	uint64_t ntypes[QUANT_NTYPES + 1];	/* the last: unknown */
	json_t *list;			/* --json */
	struct status status;
};

/* --- while it runs --- */

static void
tick(void *arg, uint64_t done_bytes)
{
	struct quantize *q = arg;
	uint64_t all_bytes = q->convert.layout.tensor_bytes;
	double part = (double)done_bytes / (double)MAX(MAX(done_bytes,
	    all_bytes), 1);
	char done[UNITS_BYTES_LEN], all[UNITS_BYTES_LEN];

	if (status_is_due(&q->status))
		status_print(&q->status, part, "%s of %s read, %.0f %%",
		    units_human_bytes(done_bytes, done),
		    units_human_bytes(all_bytes, all), 100 * part);
}

static double
error_of(const struct requant_result *r)
{
	return r->squares > 0 ? sqrt(r->errors / r->squares) : 0;
}

/* An empty tensor may have an unknown type. */
static const char *
type_name(uint32_t type)
{
	const struct quant_info *info = quant_info(type);

	return info != NULL ? info->name : "unknown";
}

static void
shape_text(const struct convert_tensor *t, char *buf, size_t len)
{
	size_t at = 0;
	uint32_t d;

	for (d = t->ndims; d-- > 0 && at < len;)
		at += (size_t)snprintf(buf + at, len - at, "%" PRIu64 "%s",
		    t->ne[d], d > 0 ? " x " : "");
}

static void
print_tensor(const struct convert_tensor *t)
{
	char was[UNITS_BYTES_LEN], is[UNITS_BYTES_LEN], shape[96];
	int same = t->from.type == t->to.type;

	shape_text(t, shape, sizeof(shape));
	printf("%-30s %18s  %6s %s %-6s %8s %s %-8s", PLAIN(t->name), shape,
	    type_name(t->from.type), same ? "  " : "->",
	    same ? "" : type_name(t->to.type),
	    units_human_bytes(t->from.stored_bytes, was), same ? "  " : "->",
	    same ? "" : units_human_bytes(t->to.nbytes, is));
	if (same)
		puts(" as it was");
	else
		printf(" error %.3f %%\n", 100 * error_of(&t->result));
}

static json_t *
tensor_json(const struct convert_tensor *t)
{
	json_t *o = json_object(), *ne = json_array();
	uint32_t d;

	for (d = 0; d < t->ndims; d++)
		json_array_append_new(ne, output_json_u64(t->ne[d]));
	json_object_set_new(o, "name", output_json_string(t->name));
	json_object_set_new(o, "shape", ne);
	json_object_set_new(o, "from", json_string(type_name(t->from.type)));
	json_object_set_new(o, "to", json_string(type_name(t->to.type)));
	json_object_set_new(o, "bytes_before",
	    json_integer((json_int_t)t->from.nbytes));
	json_object_set_new(o, "bytes_after",
	    json_integer((json_int_t)t->to.nbytes));
	json_object_set_new(o, "error", json_real(error_of(&t->result)));
	return o;
}

static void
tensor_done(void *arg, const struct convert_tensor *t)
{
	struct quantize *q = arg;

	q->nchanged += t->from.type != t->to.type;
	q->sum.errors += t->result.errors;
	q->sum.squares += t->result.squares;
	q->before_bytes += t->from.stored_bytes;
	q->after_bytes += t->to.stored_bytes;
	q->ntypes[MIN(t->to.type, QUANT_NTYPES)]++;
	if (q->list != NULL)
		json_array_append_new(q->list, tensor_json(t));
	else if (q->c->verbose > 0) {
		status_erase(&q->status);
		print_tensor(t);
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

/* Quantizing twice loses more than quantizing once. */
static void
warn_of_source(const struct quantize *q)
{
	const struct convert_layout *l = &q->convert.layout;

	if (l->nunknown > 0)
		log_info("note: %" PRIu64 " tensors of an unknown type are "
		    "copied as they are, the first is %s, of type %" PRIu32,
		    l->nunknown, l->unknown_name, l->unknown_type);
	if (l->nquantized > 0)
		log_info("note: %" PRIu64 " of the tensors to convert are "
		    "quantized already: errors are relative to them and "
		    "exclude their own loss; use an F16, BF16 or F32 source "
		    "if you have one", l->nquantized);
}

/* In one line each, even with -q: a user may take OUT for smaller, or for
 * another type. */
static void
warn_of_size(const struct quantize *q)
{
	char was[UNITS_BYTES_LEN], is[UNITS_BYTES_LEN];
	const struct quant_info *type = quant_info(q->conf.want.type);
	const struct convert_layout *l = &q->convert.layout;
	const struct requant_count *n = &l->count;
	uint64_t before = convert_in_bytes(&q->convert);

	if (2 * n->fallback > n->wanted)
		log_warnx("note: %" PRIu64 " of %" PRIu64 " matrices became "
		    "%s, not %s, whose blocks of %u do not divide their rows: "
		    "choose another type for them with --fallback, or a TYPE "
		    "with smaller blocks", n->fallback, n->wanted,
		    quant_info(n->fallback_type)->name, type->name,
		    type->block);
	if (l->file_bytes > before)
		log_warnx("note: %s has %s, more than the %s of %s",
		    q->c->out_path, units_human_bytes(l->file_bytes, is),
		    units_human_bytes(before, was),
		    q->convert.in->file[0].path);
}

static int
open_out(struct quantize *q, struct err *reterr)
{
	const char *path = q->c->out_path;
	const struct gguf *in = q->convert.in;
	int outdated = !q->c->force && origin_is_outdated(path, in), rc;

	if (outdated)
		log_info("note: %s is replaced: it was made from what %s was "
		    "before it changed", path, in->file[0].path);
	rc = whole_file_open(&q->file, path, q->c->force || outdated ?
	    WHOLE_REPLACE : 0, reterr);
	if (rc == -EEXIST)
		return err_set(reterr, ERR_USAGE, rc, "%s exists: give another "
		    "name, or --force to replace it", path);
	return rc < 0 ? rc : whole_file_reserve(&q->file,
	    q->convert.layout.file_bytes, reterr);
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
 * needs one.  Writing to a slow reader goes on after it.  A signal that the user
 * has ignored (nohup) stays ignored. */
static void
catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT,
	    SIGXCPU };
	struct sigaction sa = { .sa_handler = on_signal,
	    .sa_flags = SA_RESTART }, old;
	unsigned i;

	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < NITEMS(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
}

/* Refuse whatever can be refused before the output is opened. */
static int
prepare(struct quantize *q, struct err *reterr)
{
	struct quota quota;
	int rc;

	q->conf.model_path = q->c->model_path;
	q->conf.stop = &stopped;
	quota_read("", &quota);
	if ((rc = read_want(q->c, &q->conf.want, reterr)) < 0 ||
	    (rc = cores_allowed(&q->conf.cpus, reterr)) < 0)
		return rc;
	q->conf.threads = q->c->quant_threads > 0 ?
	    (unsigned)q->c->quant_threads :
	    quota_threads(&quota, cpuset_count(&q->conf.cpus));
	if ((rc = convert_open(&q->convert, &q->conf, reterr)) < 0)
		return rc;
	confined_log_child("the converter", q->convert.layout.confined,
	    "write its output");
	if ((rc = rights_settle(0, reterr)) < 0)
		return rc;
	return output_refuse_model(q->convert.in, q->c->out_path, reterr);
}

static int
convert(struct quantize *q, struct err *reterr)
{
	const struct convert_calls calls = { .tensor = tensor_done,
	    .tick = tick, .arg = q };
	int rc;

	warn_of_source(q);
	status_init(&q->status, q->c->verbose > 0);
	rc = convert_run(&q->convert, q->file.fd, q->file.path, &calls,
	    reterr);
	status_erase(&q->status);
	return rc;
}

/* How many tensors each type has now. */
static void
print_types(const struct quantize *q)
{
	const char *sep = "";
	uint32_t t;

	for (t = 0; t <= QUANT_NTYPES; t++)
		if (q->ntypes[t] > 0) {
			printf("%s%" PRIu64 " %s", sep, q->ntypes[t],
			    quant_info(t) != NULL ? quant_info(t)->name :
			    "of unknown type");
			sep = ", ";
		}
}

static int
report(struct quantize *q, struct err *reterr)
{
	char was[UNITS_BYTES_LEN], is[UNITS_BYTES_LEN];
	unsigned nthreads = q->conf.threads;
	double s = status_seconds(&q->status);
	json_t *list = q->list;

	if (list != NULL) {
		q->list = NULL;
		return output_json(json_pack("{s:o,s:I,s:I,s:I,s:f,s:f,s:i}",
		    "tensors", list, "bytes_before",
		    (json_int_t)q->before_bytes, "bytes_after",
		    (json_int_t)q->after_bytes, "file_bytes",
		    (json_int_t)q->convert.layout.file_bytes, "error", error_of(&q->sum),
		    "seconds", s, "threads", (int)nthreads), 1, reterr);
	}
	printf("%s: ", PLAIN(q->c->out_path));
	print_types(q);
	printf("; %s -> %s; ", units_human_bytes(q->before_bytes, was),
	    units_human_bytes(q->after_bytes, is));
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
	struct quantize q = { .c = c, .convert = CONVERT_NONE,
	    .file = { .fd = -1 } };
	int rc;

	if (c->json && (q.list = json_array()) == NULL)
		return err_nomem(reterr, "the list of tensors");
	catch_signals();
	if ((rc = prepare(&q, reterr)) == 0 &&
	    (rc = open_out(&q, reterr)) == 0 &&
	    (rc = convert(&q, reterr)) == 0 &&
	    (rc = gguf_check_unchanged(q.convert.in, reterr)) == 0) {
		origin_record(q.file.fd, q.convert.in);
		if ((rc = whole_file_commit(&q.file, reterr)) == 0)
			rc = report(&q, reterr);
	}
	if (rc == 0)
		warn_of_size(&q);
	convert_close(&q.convert);
	whole_file_close(&q.file);
	json_decref(q.list);
	return rc;
}
