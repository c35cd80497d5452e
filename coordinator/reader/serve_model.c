/* coordinator/reader/serve_model.c - the reader's answers on a model: its
 * directory, its hyper-parameters, its vocabulary. */
#include "serve.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/log.h"
#include "image.h"
#include "coordinator/text/pieces.h"
#include "layers/gguf/flat.h"
#include "layers/hparams.h"
#include "worker/confine/confine.h"

static int
has_end(const char *text, size_t len)
{
	return memchr(text, '\0', len) != NULL;
}

/* Parse the part that came with the message.  ret_n: of the first part, how many
 * there are; NULL = it is another one. */
static int
take_part(struct serve *s, const char *path, uint32_t *ret_n,
    struct err *reterr)
{
	struct gguf_file f;
	int rc;

	if ((rc = gguf_file_from_fd(s->msg.fds[0], path, &f, reterr)) < 0)
		return rc;
	chan_take_fd(&s->msg, 0);
	rc = ret_n != NULL ? gguf_begin(&f, &s->g, ret_n, reterr) :
	    gguf_add_part(s->g, &f, reterr);
	gguf_file_close(&f);
	return rc;
}

static void
write_directory(const void *g, void *block)
{
	gguf_flat_write(g, block);
}

static void
write_pieces(const void *encoder, void *block)
{
	pieces_write(encoder, block);
}

/* Write the directory to the lent fd (-1 = none is wanted), and send it. */
static int
send_directory(struct serve *s, int fd, struct err *reterr)
{
	struct read_directory d = { 0 };
	struct err why = { 0 };
	int rc;

	if ((rc = gguf_finish(s->g, reterr)) < 0)
		return rc;
	s->is_whole = 1;
	d.model.rc = hparams_read(s->g, &d.hp, &why);
	d.model.kind = why.kind;
	strlcpy(d.model.msg, why.msg, sizeof(d.model.msg));
	if (fd >= 0 && ((rc = gguf_flat_bytes(s->g, &d.nbytes, reterr)) < 0 ||
	    (rc = image_fill(fd, d.nbytes, write_directory, s->g, reterr)) < 0))
		return rc;
	serve_send(s, READ_DIRECTORY, &d, sizeof(d));
	return 0;
}

/* Each part of a split model has a header. */
static int
check_headers(const struct gguf *g, struct err *reterr)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < g->nfiles; i++)
		sum += g->file[i].data_off;
	return sum <= GGUF_MAX_HEADER ? 0 : err_set(reterr, ERR_MODEL,
	    -EFBIG, "%s: the headers of parts 1 to %" PRIu32 " have %" PRIu64
	    " bytes: of all parts together at most %d are read",
	    g->file[0].path, g->nfiles, sum, GGUF_MAX_HEADER);
}

/* Receive the parts after the first, and answer.  A part that may not come ends
 * the reader: *ret_end. */
static int
open_parts(struct serve *s, struct read_open *o, int *ret_end,
    struct err *reterr)
{
	struct read_part part;
	struct read_parts parts;
	uint32_t i;
	int rc;

	if ((rc = take_part(s, o->path, &parts.n, reterr)) < 0 ||
	    serve_send(s, READ_PARTS, &parts, sizeof(parts)) < 0)
		return rc;
	for (i = 1; i < parts.n; i++) {
		/* The coordinator could not open it: the next request. */
		if (serve_recv(s) < 0 || s->msg.type != READ_PART ||
		    s->msg.nfds != 1 || s->msg.nbytes != sizeof(part)) {
			*ret_end = 1;
			return serve_bad(s, reterr);
		}
		memcpy(&part, s->msg.buf, sizeof(part));
		if (!has_end(part.path, sizeof(part.path))) {
			*ret_end = 1;
			return serve_bad(s, reterr);
		}
		if ((rc = take_part(s, part.path, NULL, reterr)) < 0 ||
		    (rc = check_headers(s->g, reterr)) < 0)
			return rc;
	}
	return 0;
}

int
serve_open(struct serve *s, struct err *reterr)
{
	struct read_open o;
	struct err e = { 0 };
	int rc, fd = -1, end = 0;

	if (s->g != NULL || s->is_bare || s->msg.nbytes != sizeof(o))
		return serve_bad(s, reterr);
	memcpy(&o, s->msg.buf, sizeof(o));
	if (o.version != READ_VERSION || o.has_image > 1 ||
	    s->msg.nfds != 1 + o.has_image ||
	    !has_end(o.path, sizeof(o.path)))
		return serve_bad(s, reterr);
	log_init("straddle reader", o.verbose);
	if (o.has_image)
		fd = chan_take_fd(&s->msg, 1);
	if ((rc = open_parts(s, &o, &end, &e)) == 0 && !s->leave)
		rc = send_directory(s, fd, &e);
	if (fd >= 0)
		close(fd);
	if (rc < 0 && end) {
		*reterr = e;
		return rc;
	}
	if (rc < 0 && !s->leave)
		serve_refuse(s, &e, rc);
	return 0;
}

/* The coordinator has sent READ_STOP, or is gone. */
static int
is_stopped(struct err *reterr)
{
	static const struct timespec at_once;
	struct pollfd p = { .fd = CHAN_FD, .events = POLLIN };

	/* The filter allows no poll(). */
	return ppoll(&p, 1, &at_once, NULL) > 0 ? err_set(reterr, ERR_RUN,
	    -EINTR, "the request was ended") : 0;
}

int
serve_vocab(struct serve *s, struct err *reterr)
{
	struct read_pieces p = { 0 };
	struct read_vocab v;
	struct err e = { 0 };
	int rc, fd = -1;

	if (!s->is_whole || s->msg.nbytes != sizeof(v))
		return serve_bad(s, reterr);
	memcpy(&v, s->msg.buf, sizeof(v));
	if (s->encoder != NULL || v.has_image > 1 ||
	    s->msg.nfds != v.has_image)
		return serve_bad(s, reterr);
	if (v.has_image)
		fd = chan_take_fd(&s->msg, 0);
	if ((rc = encoder_open(s->g, &s->encoder, &e)) == 0) {
		encoder_set_poll(s->encoder, is_stopped);
		if (fd >= 0 && (rc = pieces_bytes(s->encoder, &p.nbytes,
		    &e)) == 0)
			rc = image_fill(fd, p.nbytes, write_pieces,
			    s->encoder, &e);
	}
	if (fd >= 0)
		close(fd);
	if (rc < 0) {
		serve_refuse(s, &e, rc);
		return 0;
	}
	/* Texts need no file. */
	confine_after_load(s->confine, s->confined);
	serve_send(s, READ_PIECES, &p, sizeof(p));
	return 0;
}
