/* coordinator/quantize/converter.c - the process that converts a model.
 *
 * Everything that a model's file can make go wrong happens here, after the
 * process has given up its rights (worker/confine/confine.h).  In order:
 *
 *	start		threads, filters, the output's descriptor
 *	confine		before a byte of the model is read
 *	read_model	headers of all parts
 *	lay_out		types and places of all tensors; fewer rights
 *	convert		the tensors
 *
 * protocol.h has the messages.  An error is reported, and ends it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/meminfo.h"
#include "config/roles.h"
#include "protocol.h"
#include "shm/event.h"
#include "worker/confine/confine.h"
#include "worker/stage/pool.h"

/* The layout of blocks; no other version is in use. */
enum { GGUF_QUANT_VERSION = 2 };

/* The coordinator draws at most five lines a second. */
#define TICK_NS		UINT64_C(50000000)

#define ERROR_NS	UINT64_C(1000000000)

struct converter {
	struct chan chan;
	struct chan_msg msg;
	struct requant_want want;
	struct par *par;
	struct confine *confine;
	int32_t confined[CONFINE_NPARTS];
	struct gguf *g;
	uint32_t *type;			/* [ntensors] */
	struct requant_count count;
	struct gguf_out out;
	int out_fd;			/* CONFINE_OUTPUT_FD; -1 = none */
	char *out_path;
	uint64_t ticked_ns;
	int gone;			/* the coordinator */
};

/* --- messages --- */

/* Wait as long as the coordinator prints. */
static int
answer(struct converter *c, enum convert_type type, const void *buf,
    size_t nbytes)
{
	int rc = chan_send(&c->chan, type, buf, nbytes, NULL, 0,
	    EVENT_FOREVER);

	c->gone |= rc < 0;
	return rc;
}

/* Receive the order that is due, of least to most bytes. */
static int
receive(struct converter *c, enum convert_type type, size_t least,
    size_t most, unsigned nfds, struct err *reterr)
{
	int rc = chan_recv(&c->chan, &c->msg, EVENT_FOREVER);

	if (rc < 0) {
		c->gone = rc == -EPIPE;
		return err_set(reterr, ERR_RUN, rc, "control channel: %s",
		    strerror(-rc));
	}
	if (c->msg.type == (uint32_t)type && c->msg.nbytes >= least &&
	    c->msg.nbytes <= most && c->msg.nfds == nfds)
		return 0;
	chan_msg_done(&c->msg);
	return err_set(reterr, ERR_RUN, -EPROTO, "message %u of %u bytes came "
	    "in place of message %d", c->msg.type, c->msg.nbytes, (int)type);
}

/* Receive a path with its descriptor.  *ret_path lies in c->msg. */
static int
receive_path(struct converter *c, enum convert_type type,
    const char **ret_path, int *ret_fd, struct err *reterr)
{
	int rc = receive(c, type, 1, PATH_MAX, 1, reterr);

	if (rc < 0)
		return rc;
	c->msg.buf[c->msg.nbytes - 1] = '\0';
	*ret_path = (const char *)c->msg.buf;
	*ret_fd = chan_take_fd(&c->msg, 0);
	return 0;
}

static void
report_error(struct converter *c, const struct err *e, int rc)
{
	struct wire_error we = { .kind = e->kind, .rc = rc };

	strlcpy(we.msg, e->msg, sizeof(we.msg));
	chan_send(&c->chan, WIRE_ERROR, &we, sizeof(we), NULL, 0,
	    event_now_ns() + ERROR_NS);
}

/* --- before the model --- */

/* Keep the number of the output's descriptor, which is the lowest that is free,
 * until it comes. */
static int
hold_output_fd(struct converter *c, struct err *reterr)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, CONFINE_OUTPUT_FD);

	if (fd == CONFINE_OUTPUT_FD) {
		c->out_fd = fd;
		return 0;
	}
	return err_set(reterr, ERR_RUN, fd < 0 ? -errno : -EBUSY, "the "
	    "converter cannot hold descriptor %d: %s", CONFINE_OUTPUT_FD,
	    strerror(fd < 0 ? errno : EBUSY));
}

static int
start(struct converter *c, struct err *reterr)
{
	struct convert_start cs;
	struct convert_hello hello = { 0 };
	struct pool_conf pc = { 0 };
	int rc;

	if ((rc = receive(c, CONVERT_START, sizeof(cs), sizeof(cs), 0,
	    reterr)) < 0 || (rc = hold_output_fd(c, reterr)) < 0)
		return rc;
	memcpy(&cs, c->msg.buf, sizeof(cs));
	memcpy(pc.cpus.bits, cs.cpus, sizeof(pc.cpus.bits));
	pc.nthreads = cs.threads;
	c->want = cs.want;
	if ((rc = pool_open(&pc, &c->par, reterr)) < 0)
		return rc;
	c->confine = confine_open("the converter", CONFINE_RIGHT_OUTPUT);
	(void)meminfo_read_process(getpid(), "VmRSS", &hello.rss_bytes);
	return answer(c, CONVERT_HELLO, &hello, sizeof(hello));
}

static int
confine(struct converter *c, struct err *reterr)
{
	int rc = receive(c, CONVERT_CONFINE, 0, 0, 0, reterr);

	if (rc < 0)
		return rc;
	confine_before_load(c->confine, c->par, c->confined);
	return answer(c, CONVERT_CONFINED, NULL, 0);
}

/* --- the model --- */

static int
receive_part(struct converter *c, struct gguf_file *ret, struct err *reterr)
{
	const char *path;
	int fd, rc;

	if ((rc = receive_path(c, CONVERT_FILE, &path, &fd, reterr)) < 0)
		return rc;
	if ((rc = gguf_file_from_fd(fd, path, ret, reterr)) < 0)
		close(fd);
	return rc;
}

static int
read_model(struct converter *c, struct err *reterr)
{
	struct convert_parts parts = { 1 };
	struct gguf_file f;
	uint32_t no;
	int rc = 0;

	for (no = 0; no < parts.count; no++) {
		if ((rc = receive_part(c, &f, reterr)) < 0)
			return rc;
		rc = no == 0 ? gguf_begin(&f, &c->g, &parts.count, reterr) :
		    gguf_add_part(c->g, &f, reterr);
		if (rc < 0) {
			gguf_file_close(&f);
			return rc;
		}
		if ((rc = answer(c, CONVERT_PARTS, &parts,
		    sizeof(parts))) < 0)
			return rc;
	}
	if ((rc = gguf_finish(c->g, reterr)) < 0)
		return rc;
	return c->g->ntensors > 0 ? 0 : err_set(reterr, ERR_MODEL, -EBADMSG,
	    "%s: holds no tensors: there is nothing to convert",
	    c->g->file->path);
}

static int
make_layout(struct converter *c, struct err *reterr)
{
	const struct gguf *g = c->g;
	const struct gguf_set set[] = {
		{ "general.quantization_version", GGUF_QUANT_VERSION },
		{ "general.file_type", quant_info(c->want.type)->file_type }
	};
	int rc;

	if ((c->type = calloc(g->ntensors + 1, sizeof(*c->type))) == NULL)
		return err_nomem(reterr, "the types of %" PRIu64 " tensors",
		    g->ntensors);
	if ((rc = requant_types(g, &c->want, c->type, &c->count, reterr)) < 0)
		return rc;
	return gguf_out_make(g, c->type, set, NITEMS(set), &c->out, reterr);
}

static void
count_tensors(const struct converter *c, struct convert_layout *ret)
{
	const struct gguf_tensor *t;
	uint64_t i;

	for (i = 0; i < c->g->ntensors; i++) {
		t = &c->g->tensor[i];
		if (quant_info(t->type) == NULL) {
			if (ret->nunknown++ > 0)
				continue;
			ret->unknown_type = t->type;
			strlcpy(ret->unknown_name, t->name,
			    sizeof(ret->unknown_name));
		} else if (c->type[i] != t->type)
			ret->nquantized += quant_info(t->type)->block > 1;
	}
}

static int
lay_out(struct converter *c, struct err *reterr)
{
	struct convert_layout cl = { 0 };
	int rc = make_layout(c, reterr);

	if (rc < 0)
		return rc;
	cl.ntensors = c->g->ntensors;
	cl.tensor_bytes = c->g->tensor_bytes;
	cl.file_bytes = c->out.file_bytes;
	cl.count = c->count;
	count_tensors(c, &cl);
	confine_after_load(c->confine, c->confined);
	memcpy(cl.confined, c->confined, sizeof(cl.confined));
	return answer(c, CONVERT_LAYOUT, &cl, sizeof(cl));
}

/* --- the tensors --- */

static void
tick(void *arg, uint64_t done_bytes)
{
	struct convert_tick ct = { done_bytes };
	struct converter *c = arg;
	uint64_t now = event_now_ns();

	if (now < c->ticked_ns + TICK_NS)
		return;
	c->ticked_ns = now;
	answer(c, CONVERT_TICK, &ct, sizeof(ct));
}

static struct convert_side
side_of(const struct gguf_tensor *t)
{
	return (struct convert_side){ .nbytes = t->nbytes,
	    .stored_bytes = gguf_stored_bytes(t), .type = t->type };
}

static void
tensor_done(void *arg, uint64_t i, const struct requant_result *r)
{
	struct converter *c = arg;
	const struct gguf_tensor *from = &c->g->tensor[i];
	struct convert_tensor ct = { .ndims = from->ndims, .result = *r,
	    .from = side_of(from), .to = side_of(&c->out.tensor[i]) };

	strlcpy(ct.name, from->name, sizeof(ct.name));
	memcpy(ct.ne, from->ne, sizeof(ct.ne));
	answer(c, CONVERT_TENSOR, &ct, sizeof(ct));
}

static int
receive_out(struct converter *c, struct err *reterr)
{
	const char *path;
	int rc;

	close(c->out_fd);		/* see hold_output_fd() */
	c->out_fd = -1;
	if ((rc = receive_path(c, CONVERT_OUT, &path, &c->out_fd,
	    reterr)) < 0)
		return rc;
	if (c->out_fd != CONFINE_OUTPUT_FD)
		return err_set(reterr, ERR_RUN, -EPROTO, "%s: the converter "
		    "has it as descriptor %d, and must not write to that",
		    path, c->out_fd);
	if ((c->out_path = strdup(path)) == NULL)
		return err_nomem(reterr, "the path %s", path);
	return 0;
}

static int
convert(struct converter *c, struct err *reterr)
{
	struct requant rq = {
		.g = c->g, .out = &c->out, .par = c->par,
		.done = tensor_done, .tick = tick, .arg = c,
	};
	ssize_t n;
	int rc = receive_out(c, reterr);

	if (rc < 0)
		return rc;
	rq.out_path = c->out_path;
	rq.out_fd = c->out_fd;
	n = pwrite(rq.out_fd, c->out.header, c->out.header_bytes, 0);
	if (n < 0 || (size_t)n != c->out.header_bytes)
		return err_set(reterr, ERR_RUN, n < 0 ? -errno : -ENOSPC,
		    "%s: cannot write the header: %s", rq.out_path,
		    strerror(n < 0 ? errno : ENOSPC));
	if ((rc = requant_run(&rq, reterr)) < 0)
		return rc;
	return answer(c, CONVERT_DONE, NULL, 0);
}

static void
release(struct converter *c)
{
	gguf_out_free(&c->out);
	free(c->out_path);
	free(c->type);
	gguf_close(c->g);
	confine_close(c->confine);
	pool_close(c->par);
	if (c->out_fd >= 0)
		close(c->out_fd);
	chan_close(&c->chan);
}

int
converter_main(int argc, char **argv)
{
	static struct converter c = { .chan = { .fd = CHAN_FD },
	    .out_fd = -1 };
	struct err e = { 0 };
	int rc;

	(void)argc;
	(void)argv;
	role_begin("straddle converter", CHAN_FD);
	if ((rc = start(&c, &e)) == 0 && (rc = confine(&c, &e)) == 0 &&
	    (rc = read_model(&c, &e)) == 0 && (rc = lay_out(&c, &e)) == 0)
		rc = convert(&c, &e);
	if (rc < 0 && !c.gone)
		report_error(&c, &e, rc);
	release(&c);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
