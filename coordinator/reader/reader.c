/* coordinator/reader/reader.c - opens files, lends memory, checks what the
 * reader hands over. */
#include "reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/log.h"
#include "config/plain.h"
#include "image.h"
#include "state.h"
#include "layers/gguf/flat.h"
#include "layers/hparams_check.h"
#include "coordinator/text/pieces.h"

/* CPU time for a header and for a vocabulary: real ones take less than a tenth
 * of a second for each. */
#define OPEN_NS		UINT64_C(10000000000)

/* A header that is larger needs --reader-cap. */
#define HEADER_BYTES	(32 * MIB)

/* The most that a byte of a header becomes in an image: a tensor takes at least
 * 33 bytes in the file and some 150 in the directory. */
enum { IMAGE_FACTOR = 6 };

/* Memory of the child per byte of header, for the parsed header and the
 * tokenizer's index; measured with vocabularies of 128,256 and 256,000 tokens
 * (tests/MEASURED.md). */
enum { PARSED_FACTOR = 6 };

/* The child itself, and texts: merging takes some 60 bytes for each byte that no
 * pattern splits. */
#define BASE_BYTES	(64 * MIB)

/* One that only renders: as much as a template may use, beside the rest. */
#define BARE_BYTES	(2 * BASE_BYTES)

static void
derive_sizes(const struct conf *c, uint64_t file_bytes, uint64_t *ret_image,
    uint64_t *ret_cap)
{
	uint64_t header = MIN(file_bytes, HEADER_BYTES);

	*ret_image = MIN(IMAGE_FACTOR * header + MIB,
	    (uint64_t)GGUF_FLAT_MAX_BYTES);
	*ret_cap = c->reader_cap_bytes != 0 ? c->reader_cap_bytes :
	    BASE_BYTES + PARSED_FACTOR * header + 2 * *ret_image;
}

/* --- opening --- */

static int
send_open(struct reader *r, const struct gguf_file *f, int image_fd,
    struct err *reterr)
{
	struct read_open o = { .version = READ_VERSION,
	    .verbose = r->conf->verbose, .has_image = image_fd >= 0 };
	const int fds[] = { f->fd, image_fd };

	strlcpy(o.path, f->path, sizeof(o.path));
	proc_begin(&r->p, OPEN_NS);
	return proc_send(&r->p, READ_OPEN, &o, sizeof(o), fds,
	    1 + o.has_image, reterr);
}

static int
send_part(struct reader *r, const struct gguf_file *f, struct err *reterr)
{
	struct read_part part = { { 0 } };

	strlcpy(part.path, f->path, sizeof(part.path));
	return proc_send(&r->p, READ_PART, &part, sizeof(part), &f->fd, 1,
	    reterr);
}

static int
recv_parts(struct reader *r, uint32_t *ret_n, struct err *reterr)
{
	struct read_parts parts;
	int rc = proc_recv(&r->p, READ_PARTS, 0, sizeof(parts), reterr);

	if (rc < 0)
		return rc;
	memcpy(&parts, r->p.msg->buf, sizeof(parts));
	if (parts.n < 1 || parts.n > GGUF_MAX_FILES)
		return proc_lied(&r->p, reterr, "a count of %" PRIu32
		    " parts", parts.n);
	*ret_n = parts.n;
	return 0;
}

/* Open and send the parts after the first; file has room for *ret_n. */
static int
open_parts(struct reader *r, uint32_t n, struct gguf_file *file,
    uint32_t *ret_n, struct err *reterr)
{
	int rc = 0;

	for (*ret_n = 1; *ret_n < n && rc == 0; (*ret_n)++) {
		if ((rc = gguf_part_open(&file[0], n, *ret_n, &file[*ret_n],
		    reterr)) < 0)
			return rc;
		rc = send_part(r, &file[*ret_n], reterr);
	}
	return rc;
}

static int
recv_directory(struct reader *r, struct err *reterr)
{
	int rc = proc_recv(&r->p, READ_DIRECTORY, 0, sizeof(r->directory),
	    reterr);

	if (rc == 0)
		memcpy(&r->directory, r->p.msg->buf, sizeof(r->directory));
	return rc;
}

/* e is what is wrong with an image. */
static int
fail_image(struct reader *r, int rc, const struct err *e, struct err *reterr)
{
	if (rc != -ENOMEM)
		return proc_lied(&r->p, reterr, "a wrong answer: %s", e->msg);
	*reterr = *e;
	return rc;
}

/* Open the view of what came back in image_fd, which is closed. */
static int
take_directory(struct reader *r, int image_fd, struct gguf_file *file,
    uint32_t nfiles, struct err *reterr)
{
	struct err e = { 0 };
	int rc;

	if ((rc = image_take(image_fd, r->directory.nbytes,
	    &r->directory_map, &e)) < 0 ||
	    (rc = gguf_flat_open(r->directory_map.base, r->directory.nbytes,
	    file, nfiles, &r->g, &e)) < 0 ||
	    (r->directory.model.rc == 0 &&
	    (rc = hparams_check(&r->directory.hp, &e)) < 0))
		return fail_image(r, rc, &e, reterr);
	return 0;
}

/* Do the command's own work while the child parses; once. */
static int
do_meanwhile(struct reader *r, struct err *reterr)
{
	int (*fn)(const struct conf *, struct err *) = r->how.meanwhile;

	r->how.meanwhile = NULL;
	return fn != NULL ? fn(r->conf, reterr) : 0;
}

static int
send_vocab(struct reader *r, int fd, struct err *reterr)
{
	const struct read_vocab v = { .has_image = fd >= 0 };

	proc_begin(&r->p, OPEN_NS);
	return proc_send(&r->p, READ_VOCAB, &v, sizeof(v), &fd,
	    v.has_image, reterr);
}

static int
ask_vocab(struct reader *r, struct err *reterr)
{
	int fd, rc;

	if ((rc = image_lend(&r->image_bytes, &fd, reterr)) < 0)
		return rc;
	if ((rc = send_vocab(r, fd, reterr)) < 0)
		close(fd);
	else
		r->vocab_fd = fd;
	return rc;
}

/* file has room for GGUF_MAX_FILES; *ret_n are open, also after a failure. */
static int
open_model(struct reader *r, struct gguf_file *file, uint32_t *ret_n,
    struct err *reterr)
{
	uint32_t n;
	int fd, rc;

	if ((rc = gguf_file_open(r->conf->model_path, &file[0], reterr)) < 0)
		return rc;
	*ret_n = 1;
	derive_sizes(r->conf, file[0].nbytes, &r->image_bytes,
	    &r->p.cap_bytes);
	if ((rc = proc_start(&r->p, reterr)) < 0 ||
	    (rc = image_lend(&r->image_bytes, &fd, reterr)) < 0)
		return rc;
	if ((rc = send_open(r, &file[0], fd, reterr)) < 0 ||
	    (rc = do_meanwhile(r, reterr)) < 0 ||
	    (rc = recv_parts(r, &n, reterr)) < 0 ||
	    (rc = open_parts(r, n, file, ret_n, reterr)) < 0 ||
	    (rc = recv_directory(r, reterr)) < 0 ||
	    (r->how.wants_vocab && (rc = ask_vocab(r, reterr)) < 0)) {
		close(fd);
		return rc;
	}
	return take_directory(r, fd, file, n, reterr);
}

static int
open_once(struct reader *r, struct err *reterr)
{
	struct gguf_file *file = calloc(GGUF_MAX_FILES, sizeof(*file));
	uint32_t n = 0, i;
	int rc;

	if (file == NULL)
		return err_nomem(reterr, "the reader's files");
	rc = open_model(r, file, &n, reterr);
	if (r->g == NULL)
		for (i = 0; i < n; i++)
			gguf_file_close(&file[i]);
	free(file);
	return rc;
}

static int
new_reader(const struct conf *c, const struct reader_how *how,
    struct reader **ret, struct err *reterr)
{
	struct reader *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return err_nomem(reterr, "the reader");
	if ((rc = proc_init(&r->p, how->poll, reterr)) < 0) {
		free(r);
		return rc;
	}
	r->conf = c;
	r->how = *how;
	r->vocab_fd = -1;
	r->directory_map = r->pieces_map = (struct region)REGION_NONE;
	*ret = r;
	return 0;
}

int
reader_open(const struct conf *c, const struct reader_how *how,
    struct reader **ret, struct err *reterr)
{
	struct reader_how next = *how;
	struct reader *r = NULL;
	int rc, again, attempts = c->recover > 0 ? 2 : 1;

	do {
		if ((rc = new_reader(c, &next, &r, reterr)) < 0)
			return rc;
		if ((rc = open_once(r, reterr)) == 0)
			break;
		next.meanwhile = r->how.meanwhile;
		again = rc == -ECOMM && r->p.was_killed && --attempts > 0;
		reader_close(r);
		if (again)
			log_warnx("%s; another one is started", reterr->msg);
	} while (again);
	if (rc == 0)
		*ret = r;
	return rc;
}

int
reader_open_bare(const struct conf *c, tokenizer_poll_fn *poll,
    struct reader **ret, struct err *reterr)
{
	const struct reader_how how = { .poll = poll };
	struct reader *r;
	int rc;

	if ((rc = new_reader(c, &how, &r, reterr)) < 0)
		return rc;
	r->p.cap_bytes = c->reader_cap_bytes != 0 ? c->reader_cap_bytes :
	    BARE_BYTES;
	if ((rc = proc_start(&r->p, reterr)) < 0)
		reader_close(r);
	else
		*ret = r;
	return rc;
}

void
reader_close(struct reader *r)
{
	if (r == NULL)
		return;
	tokenizer_close(r->tokenizer);
	gguf_close(r->g);
	region_close(&r->directory_map);
	region_close(&r->pieces_map);
	if (r->vocab_fd >= 0)
		close(r->vocab_fd);
	proc_done(&r->p);
	free(r);
}

void
reader_set_poll(struct reader *r, tokenizer_poll_fn *poll)
{
	r->p.poll = poll;
}

const struct gguf *
reader_directory(const struct reader *r)
{
	return r->g;
}

int
reader_model(const struct reader *r, struct model **ret, struct err *reterr)
{
	if (r->directory.model.rc != 0)
		return proc_result(&r->directory.model, reterr);
	return model_build(r->g, &r->directory.hp, ret, reterr);
}

/* --- another child --- */

/* Have a new child read the open files again, up to the vocabulary.  What the first
 * child handed over of them stays. */
static int
read_files(struct reader *r, struct err *reterr)
{
	uint32_t n, i;
	int rc;

	if ((rc = send_open(r, &r->g->file[0], -1, reterr)) < 0 ||
	    (rc = recv_parts(r, &n, reterr)) < 0)
		return rc;
	if (n != r->g->nfiles)
		return proc_lied(&r->p, reterr, "a count of %" PRIu32
		    " parts in place of %" PRIu32, n, r->g->nfiles);
	for (i = 1; i < n; i++)
		if ((rc = send_part(r, &r->g->file[i], reterr)) < 0)
			return rc;
	return proc_recv(&r->p, READ_DIRECTORY, 0,
	    sizeof(struct read_directory), reterr);
}

static int
restart(struct reader *r, struct err *reterr)
{
	int rc;

	if ((rc = gguf_check_unchanged(r->g, reterr)) < 0 ||
	    (rc = proc_start(&r->p, reterr)) < 0)
		return rc;
	return read_files(r, reterr);
}

/* Only what it answers to texts is used, which the sealed vocabulary bounds. */
static int
read_vocab_again(struct reader *r, struct err *reterr)
{
	int rc = send_vocab(r, -1, reterr);

	return rc < 0 ? rc : proc_recv(&r->p, READ_PIECES, 0,
	    sizeof(struct read_pieces), reterr);
}

/* --- the vocabulary --- */

/* Token ids index what belongs to the model, too. */
static int
check_size(const struct reader *r, uint32_t ntokens, struct err *reterr)
{
	const uint32_t n_vocab = r->directory.hp.n_vocab;

	return r->directory.model.rc == 0 && ntokens != n_vocab ?
	    err_set(reterr, ERR_RUN, -EBADMSG, "%" PRIu32 " tokens of a "
	    "model with %" PRIu32, ntokens, n_vocab) : 0;
}

static int
take_pieces(struct reader *r, uint64_t nbytes, struct err *reterr)
{
	struct pieces *pieces = NULL;
	struct err e = { 0 };
	int fd = r->vocab_fd, rc;

	r->vocab_fd = -1;
	if ((rc = image_take(fd, nbytes, &r->pieces_map, &e)) == 0 &&
	    (rc = pieces_open(r->pieces_map.base, nbytes, &pieces, &e)) == 0 &&
	    (rc = check_size(r, pieces_size(pieces), &e)) == 0)
		return tokenizer_open_with(pieces, reader_encode,
		    reader_render, r, &r->tokenizer, reterr);
	pieces_close(pieces);
	return fail_image(r, rc, &e, reterr);
}

static int
recv_vocab(struct reader *r, struct read_pieces *ret, struct err *reterr)
{
	int rc;

	if (r->vocab_fd < 0 && (rc = ask_vocab(r, reterr)) < 0)
		return rc;
	if ((rc = proc_recv(&r->p, READ_PIECES, 0, sizeof(*ret), reterr)) == 0)
		memcpy(ret, r->p.msg->buf, sizeof(*ret));
	return rc;
}

int
reader_tokenizer(struct reader *r, struct tokenizer **ret,
    struct err *reterr)
{
	struct read_pieces p;
	int rc = recv_vocab(r, &p, reterr);

	if (rc == -ECOMM && r->p.was_killed && r->conf->recover > 0) {
		log_warnx("%s; another one is started", reterr->msg);
		if (r->vocab_fd >= 0)
			close(r->vocab_fd);
		r->vocab_fd = -1;
		if ((rc = restart(r, reterr)) == 0)
			rc = recv_vocab(r, &p, reterr);
	}
	if (rc == 0 && (rc = take_pieces(r, p.nbytes, reterr)) == 0)
		*ret = r->tokenizer;
	return rc;
}

int
reader_revive(struct reader *r, struct err *reterr)
{
	int rc;

	if (proc_runs(&r->p))
		return 0;
	if (r->g == NULL)
		return proc_start(&r->p, reterr);
	if ((rc = restart(r, reterr)) < 0 ||
	    (rc = read_vocab_again(r, reterr)) < 0)
		proc_end(&r->p);	/* it can encode nothing */
	return rc;
}

void
reader_add_row(const struct reader *r, struct process_list *l)
{
	process_add(l, "reader", MAX(r->p.child.pid, 0), r->p.cap_bytes, 0,
	    &r->p.enforce);
}
