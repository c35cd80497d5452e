/* coordinator/quantize/convert.c - starts the converter, asks it, and checks its
 * answers. */
#include "convert.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config/log.h"
#include "config/roles.h"
#include "shm/event.h"

/* Its messages are read and a signal is noticed at least this often. */
enum { LOOK_MS = 100 };

#define SEND_NS		UINT64_C(10000000000)
#define END_NS		UINT64_C(2000000000)

/* The cap: what the converter had at its start, buffers of its threads, tables of
 * some ten thousand tensors, and copies of the header: parsed, where a string of
 * one byte takes three times its bytes in the file, and laid out again.  Headers
 * of real models are below 32 MiB. */
enum { HEADER_COPIES = 4, HEADER_BYTES = 48 << 20, TABLE_BYTES = 16 << 20 };

/* An output is not larger than this many times its input: F32 made from the
 * smallest type takes 21 times as much; and a header is added. */
enum { MAX_GROWTH = 32, MAX_ADDED = 2 << 20 };

/* --- what the converter says --- */

static int
impossible(struct err *reterr, const char *what)
{
	return err_set(reterr, ERR_RUN, -EBADMSG, "the converter reported %s "
	    "that cannot be", what);
}

int
convert_check_layout(const struct convert_layout *l, uint64_t in_bytes,
    struct err *reterr)
{
	if (l->ntensors == 0)
		return impossible(reterr, "a number of tensors");
	if (l->file_bytes == 0 || l->file_bytes > INT64_MAX ||
	    l->file_bytes / MAX_GROWTH > in_bytes + MAX_ADDED)
		return impossible(reterr, "a size of the output");
	if (l->count.fallback > l->count.wanted || (l->count.fallback > 0 &&
	    quant_info(l->count.fallback_type) == NULL))
		return impossible(reterr, "a choice of types");
	if (l->unknown_name[sizeof(l->unknown_name) - 1] != '\0')
		return impossible(reterr, "a name");
	return 0;
}

int
convert_check_tensor(const struct convert_tensor *t, struct err *reterr)
{
	if (t->name[sizeof(t->name) - 1] != '\0')
		return impossible(reterr, "a name");
	if (t->ndims > GGUF_MAX_DIMS)
		return impossible(reterr, "a shape");
	if (!isfinite(t->result.errors) || t->result.errors < 0 ||
	    !isfinite(t->result.squares) || t->result.squares < 0)
		return impossible(reterr, "an error of the weights");
	return 0;
}

/* --- messages --- */

static int
fail_ended(struct convert *c, struct err *reterr)
{
	char how[256] = "closed its channel, and has not ended";
	int status;

	if (child_wait(&c->child, event_now_ns() + END_NS, &status) == 0)
		child_describe(status, how, sizeof(how));
	messages_read_last(&c->messages);
	return err_set(reterr, ERR_RUN, -ECHILD, "the converter %s", how);
}

/* Its text is escaped where it is logged. */
static int
fail_with_error(struct convert *c, struct err *reterr)
{
	char cap[UNITS_BYTES_LEN], held[128] = "";
	struct wire_error we;

	messages_read_last(&c->messages);
	if (c->msg->nbytes != sizeof(we))
		return impossible(reterr, "an error");
	memcpy(&we, c->msg->buf, sizeof(we));
	we.msg[sizeof(we.msg) - 1] = '\0';
	if (we.rc >= 0)
		we.rc = -EIO;
	if (we.rc == -ENOMEM && c->enforce.by == ENFORCE_RLIMIT)
		snprintf(held, sizeof(held), "; the converter's cap is %s, "
		    "held by %s", units_human_bytes(c->cap_bytes, cap),
		    enforce_name(&c->enforce));
	return err_set(reterr, we.kind >= ERR_RUN && we.kind <= ERR_MODEL ?
	    we.kind : ERR_RUN, we.rc, "%s%s", we.msg, held);
}

/* Wait for a message; only a signal or the converter's end ends this. */
static int
receive(struct convert *c, struct err *reterr)
{
	struct pollfd p = { .fd = c->chan.fd, .events = POLLIN };
	int rc = -ETIMEDOUT;

	while (rc == -ETIMEDOUT) {
		if (atomic_load(c->conf->stop))
			return err_set(reterr, ERR_RUN, -EINTR, "interrupted");
		messages_read(&c->messages);
		/* A signal that comes now is noticed after LOOK_MS. */
		if (poll(&p, 1, LOOK_MS) < 0 && errno != EINTR)
			return err_set(reterr, ERR_RUN, -errno, "poll: %s",
			    strerror(errno));
		rc = chan_recv(&c->chan, c->msg, 0);
	}
	if (rc == -EPIPE)
		return fail_ended(c, reterr);
	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "the converter: control "
		    "channel: %s", strerror(-rc));
	chan_msg_done(c->msg);		/* it sends no descriptors */
	return c->msg->type == WIRE_ERROR ? fail_with_error(c, reterr) : 0;
}

/* The message in c->msg must be this one. */
static int
take(struct convert *c, enum convert_type type, void *ret, size_t nbytes,
    struct err *reterr)
{
	if (c->msg->type != (uint32_t)type || c->msg->nbytes != nbytes)
		return err_set(reterr, ERR_RUN, -EPROTO, "the converter "
		    "answered with message %u of %u bytes", c->msg->type,
		    c->msg->nbytes);
	if (nbytes > 0)
		memcpy(ret, c->msg->buf, nbytes);
	return 0;
}

static int
receive_answer(struct convert *c, enum convert_type type, void *ret,
    size_t nbytes, struct err *reterr)
{
	int rc = receive(c, reterr);

	return rc < 0 ? rc : take(c, type, ret, nbytes, reterr);
}

static int
order(struct convert *c, enum convert_type type, const void *buf,
    size_t nbytes, int fd, struct err *reterr)
{
	int rc = chan_send(&c->chan, type, buf, nbytes, &fd, fd >= 0,
	    event_now_ns() + SEND_NS);

	/* The converter's last error says more than a closed channel. */
	while (rc == -EPIPE)
		if ((rc = receive(c, reterr)) < 0)
			return rc;
	return rc == 0 ? 0 : err_set(reterr, ERR_RUN, rc, "the converter: "
	    "control channel: %s", strerror(-rc));
}

static int
order_path(struct convert *c, enum convert_type type, const char *path, int fd,
    struct err *reterr)
{
	return order(c, type, path, strlen(path) + 1, fd, reterr);
}

/* --- start --- */

/* Not in a memory group: the kernel charges a group for the cached pages of the
 * files that it reads and writes.  Under a limit of a few MiB each write would
 * wait for the disk, or the kernel find nothing to free and kill the
 * converter. */
static int
put_cap_in_force(struct convert *c, uint64_t rss_bytes, struct err *reterr)
{
	struct enforce_start st = { .pid = c->child.pid,
	    .rss_bytes = rss_bytes, .private_only = 1 };
	char rss[UNITS_BYTES_LEN], cap[UNITS_BYTES_LEN];
	int rc;

	/* That of an emulator is large; it must not wrap the sum. */
	st.rss_bytes = MIN(st.rss_bytes, (uint64_t)GIB);
	c->cap_bytes = st.rss_bytes + (uint64_t)c->conf->threads *
	    REQUANT_THREAD_BYTES + TABLE_BYTES + HEADER_COPIES *
	    MIN(c->in->file->nbytes, (uint64_t)HEADER_BYTES);
	st.cap_bytes = c->cap_bytes;
	enforce_open_process(&c->enforce);
	if ((rc = enforce_apply(&c->enforce, &st, reterr)) < 0)
		return rc;
	log_debug("the converter: %s at its start, a cap of %s, held by %s",
	    units_human_bytes(st.rss_bytes, rss),
	    units_human_bytes(c->cap_bytes, cap), enforce_name(&c->enforce));
	return 0;
}

static int
start(struct convert *c, struct err *reterr)
{
	struct convert_start cs = { .threads = c->conf->threads,
	    .want = c->conf->want };
	struct convert_hello hello = { 0 };
	int rc;

	memcpy(cs.cpus, c->conf->cpus.bits, sizeof(cs.cpus));
	if ((rc = child_spawn_alone(&c->child, &c->chan, &c->messages,
	    ROLE_CONVERTER_ARG, "the converter", reterr)) < 0 ||
	    (rc = order(c, CONVERT_START, &cs, sizeof(cs), -1,
	    reterr)) < 0 ||
	    (rc = receive_answer(c, CONVERT_HELLO, &hello, sizeof(hello),
	    reterr)) < 0 ||
	    (rc = put_cap_in_force(c, hello.rss_bytes, reterr)) < 0 ||
	    (rc = order(c, CONVERT_CONFINE, NULL, 0, -1, reterr)) < 0)
		return rc;
	return receive_answer(c, CONVERT_CONFINED, NULL, 0, reterr);
}

/* --- the model --- */

/* Hand file no over, and learn how many there are. */
static int
hand_over(struct convert *c, uint32_t no, uint32_t *ret_count,
    struct err *reterr)
{
	const struct gguf_file *f = &c->in->file[no];
	struct convert_parts parts = { 0 };
	int rc;

	if ((rc = order_path(c, CONVERT_FILE, f->path, f->fd, reterr)) < 0 ||
	    (rc = receive_answer(c, CONVERT_PARTS, &parts, sizeof(parts),
	    reterr)) < 0)
		return rc;
	if (parts.count == 0 || parts.count > GGUF_MAX_FILES ||
	    (no > 0 && parts.count != *ret_count))
		return impossible(reterr, "a number of files");
	*ret_count = parts.count;
	return 0;
}

/* Open part no, from 1 on. */
static int
open_part(struct gguf *in, uint32_t count, uint32_t no, struct err *reterr)
{
	struct gguf_file *f = reallocarray(in->file, no + 1, sizeof(*f));
	int rc;

	if (f == NULL)
		return err_nomem(reterr, "the table of %" PRIu32 " files",
		    count);
	in->file = f;
	if ((rc = gguf_part_open(f, count, no, &f[no], reterr)) == 0)
		in->nfiles++;
	return rc;
}

uint64_t
convert_in_bytes(const struct convert *c)
{
	const struct gguf *in = c->in;
	uint64_t sum = 0;
	uint32_t f;

	for (f = 0; f < in->nfiles; f++)
		sum += in->file[f].nbytes;
	return sum;
}

static int
hand_over_all(struct convert *c, struct err *reterr)
{
	uint32_t count = 1, no;
	int rc;

	for (no = 0; no < count; no++)
		if ((no > 0 && (rc = open_part(c->in, count, no,
		    reterr)) < 0) ||
		    (rc = hand_over(c, no, &count, reterr)) < 0)
			return rc;
	if ((rc = receive_answer(c, CONVERT_LAYOUT, &c->layout,
	    sizeof(c->layout), reterr)) < 0)
		return rc;
	return convert_check_layout(&c->layout, convert_in_bytes(c), reterr);
}

static int
open_first(struct convert *c, struct err *reterr)
{
	int rc;

	if ((c->in = calloc(1, sizeof(*c->in))) == NULL ||
	    (c->in->file = calloc(1, sizeof(*c->in->file))) == NULL)
		return err_nomem(reterr, "the table of files");
	if ((rc = gguf_file_open(c->conf->model_path, c->in->file,
	    reterr)) == 0)
		c->in->nfiles = 1;
	return rc;
}

int
convert_open(struct convert *c, const struct convert_conf *conf,
    struct err *reterr)
{
	int rc;

	c->conf = conf;
	if ((c->msg = malloc(sizeof(*c->msg))) == NULL)
		return err_nomem(reterr, "a message");
	if ((rc = open_first(c, reterr)) < 0 || (rc = start(c, reterr)) < 0)
		return rc;
	return hand_over_all(c, reterr);
}

/* --- the work --- */

/* The converter cannot make the output larger than it is.  Where this is refused,
 * the output's size stays unlimited. */
static void
limit_output(const struct convert *c)
{
	struct rlimit rl;

	if (prlimit(c->child.pid, RLIMIT_FSIZE, NULL, &rl) < 0)
		return;
	rl.rlim_max = (rlim_t)MIN(c->layout.file_bytes, rl.rlim_max);
	rl.rlim_cur = MIN(rl.rlim_cur, rl.rlim_max);
	if (prlimit(c->child.pid, RLIMIT_FSIZE, &rl, NULL) < 0)
		log_debug("the converter: the size of its output is not "
		    "limited: %s", strerror(errno));
}

static int
receive_tensor(struct convert *c, uint64_t i,
    const struct convert_calls *calls, struct err *reterr)
{
	struct convert_tensor t = { 0 };
	int rc;

	if ((rc = take(c, CONVERT_TENSOR, &t, sizeof(t), reterr)) < 0)
		return rc;
	if (i >= c->layout.ntensors)
		return impossible(reterr, "a number of tensors");
	if ((rc = convert_check_tensor(&t, reterr)) == 0)
		calls->tensor(calls->arg, &t);
	return rc;
}

int
convert_run(struct convert *c, int out_fd, const char *path,
    const struct convert_calls *calls, struct err *reterr)
{
	struct convert_tick ct = { 0 };
	uint64_t i = 0;
	int rc;

	limit_output(c);
	if ((rc = order_path(c, CONVERT_OUT, path, out_fd, reterr)) < 0)
		return rc;
	while ((rc = receive(c, reterr)) == 0 &&
	    c->msg->type != CONVERT_DONE) {
		if (c->msg->type != CONVERT_TICK)
			rc = receive_tensor(c, i++, calls, reterr);
		else if ((rc = take(c, CONVERT_TICK, &ct, sizeof(ct),
		    reterr)) == 0)
			calls->tick(calls->arg, ct.done_bytes);
		if (rc < 0)
			return rc;
	}
	if (rc == 0 && i != c->layout.ntensors)
		return impossible(reterr, "an end");
	return rc;
}

void
convert_close(struct convert *c)
{
	chan_close(&c->chan);
	child_close(&c->child);
	messages_close(&c->messages);
	enforce_close(&c->enforce);
	gguf_close(c->in);
	free(c->msg);
	*c = (struct convert)CONVERT_NONE;
}
