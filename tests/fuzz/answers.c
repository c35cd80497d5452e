/* tests/fuzz/answers.c - fuzzer of the coordinator's side of the reader: whatever
 * a reader sends, the coordinator gets an error or a sound result, and keeps no
 * descriptor.
 *
 * Input: bits that select the model and --recover: u8; steps (support/script.h).
 * A sound step sends what a true reader would; its bytes change the message or the
 * block in the lent memory.  STEP_NEXT ends what is sent at a time: at the start
 * of a child, after READ_OPEN, before the vocabulary, before each text.  A reader
 * that says too little at a time closes its channel behind it, so that nothing is
 * awaited.
 *
 * The functions of child.h are replaced: there is no process.
 * A libFuzzer target; with fuzz/main.c it replays files. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/log.h"
#include "coordinator/reader/state.h"
#include "coordinator/text/encoder.h"
#include "coordinator/text/pieces.h"
#include "layers/gguf/flat.h"
#include "layers/hparams.h"
#include "tests/support/gguf_walk.h"
#include "tests/support/pieces_cases.h"
#include "tests/support/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum {
	STEP_NEXT, STEP_HELLO, STEP_PARTS, STEP_DIRECTORY, STEP_PIECES, STEP_IDS,
	STEP_ENCODED, STEP_REFUSED, STEP_NOTE, STEP_ERROR, STEP_BLOCK,
	STEP_MESSAGE, STEP_PACKET, STEP_END, STEP_POLL, STEP_OUTPUT,
	STEP_RENDERED, STEP_NUMBERS
};

/* A true reader's answers about a model. */
static struct sample {
	char path[512];
	struct read_directory directory;
	struct read_pieces pieces;
	void *block[2];			/* of the directory; of the pieces */
	struct gguf *g;
	struct tokenizer *t;
} samples[2], *sample;

static const struct text_part texts[][2] = {
	{ { "In the beginning", 16, 0 }, { "", 0, 0 } },
	{ { "<s>\xff <|im_end|>", 15, 1 }, { "abc", 3, 0 } },
};

/* Two spans and their text, without padding. */
static const struct {
	struct render_span span[2];
	char text[8];
} output = { { { 3, 1 }, { 5, 0 } }, { '<', 's', '>', 'a', 'b', 'c', 'd', 'e' } };

static struct script script;
static struct chan peer = { -1 };	/* the reader's end */
static struct reader *reader;
static int image_fd = -1;		/* as it was lent last */
static int end_status, is_interrupted;
static pid_t dummy;			/* has no other task than to be there */

/* --- child.h --- */

int
child_spawn_alone(struct child *ret, struct chan *ret_chan,
    struct messages *ret_messages, const char *role, const char *speaker,
    struct err *reterr);
static void play(unsigned nanswers, uint64_t number);

static void
close_peer(void)
{
	chan_close(&peer);
	if (image_fd >= 0)
		close(image_fd);
	image_fd = -1;
}

int
child_spawn_alone(struct child *ret, struct chan *ret_chan,
    struct messages *ret_messages, const char *role, const char *speaker,
    struct err *reterr)
{
	int rc;

	(void)role;
	(void)speaker;
	close_peer();
	if ((rc = chan_pair(ret_chan, &peer, reterr)) < 0)
		return rc;
	ret->pid = dummy;
	ret->pidfd = (int)syscall(SYS_pidfd_open, dummy, 0);
	*ret_messages = (struct messages)MESSAGES_NONE;
	end_status = 0;
	play(1, 1);
	return 0;
}

int
child_wait(struct child *c, uint64_t deadline_ns, int *ret_status)
{
	(void)deadline_ns;
	if (ret_status != NULL)
		*ret_status = end_status;
	child_close(c);
	return 0;
}

char *
child_describe(int status, char *buf, size_t len)
{
	snprintf(buf, len, "ended with status %d", status);
	return buf;
}

void
child_close(struct child *c)
{
	if (c->pidfd >= 0)
		close(c->pidfd);
	c->pid = c->pidfd = -1;
}

/* --- what is sent --- */

/* Receive requests, and keep the memory that comes along. */
static void
hear(void)
{
	static struct chan_msg m;
	unsigned i;

	while (peer.fd >= 0 && chan_recv(&peer, &m, 0) == 0) {
		i = m.type == READ_OPEN;
		if (m.nfds > i) {
			if (image_fd >= 0)
				close(image_fd);
			image_fd = chan_take_fd(&m, i);
		}
		chan_msg_done(&m);
	}
}

/* Write a block to the lent memory, with the step's changes. */
static void
fill(unsigned which, const struct step *st)
{
	const size_t n = which == 0 ? sample->directory.nbytes :
	    sample->pieces.nbytes;
	void *map;

	if (image_fd < 0 || lseek(image_fd, 0, SEEK_END) < (off_t)n || (map =
	    mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, image_fd, 0)) ==
	    MAP_FAILED)
		return;
	memcpy(map, sample->block[which], n);
	if (st != NULL)
		script_change(st, map, n, n);
	munmap(map, n);
}

/* The ids of a text, as changed by the step; or nothing. */
static void
send_ids(const struct step *st, uint8_t *buf, struct read_encoded *done)
{
	const unsigned which = reader != NULL && reader->p.number % 2;
	struct err e;
	uint32_t *ids;
	size_t n;

	if (tokenizer_encode_parts(sample->t, texts[which], 2, ENCODE_BOS,
	    &ids, &n, &e) < 0)
		return;
	memcpy(buf, ids, n * sizeof(*ids));
	done->nids = n;
	free(ids);
	n = script_change(st, buf, n * sizeof(*ids), CHAN_MAX_BYTES);
	chan_send(&peer, READ_IDS, buf, n, NULL, 0, 0);
}

/* Send a sound message with the step's changes. */
static void
send_changed(const struct step *st, uint32_t type, const void *from, size_t n,
    uint8_t *buf)
{
	memcpy(buf, from, n);
	n = script_change(st, buf, n, CHAN_MAX_BYTES);
	chan_send(&peer, type, buf, n, NULL, 0, 0);
}

static void
say(const struct step *st, struct read_encoded *done)
{
	static uint8_t buf[CHAN_MAX_BYTES];
	const struct read_hello hello = { .version = READ_VERSION };
	const struct read_parts parts = { 1 };
	const struct read_refused refused = { .number = done->number,
	    .why = { .rc = -ENOMEM, .kind = ERR_RUN, .msg = "no" } };
	const struct read_note note = { .level = 1, .text = "a note" };
	const struct wire_error we = { .kind = ERR_RUN, .rc = -1,
	    .msg = "an error" };

	const struct read_rendered rendered = { .number = done->number,
	    .nspans = NITEMS(output.span), .nbytes = sizeof(output.text) };

	memset(buf, 0, sizeof(buf));
	switch (st->op % STEP_NUMBERS) {
#define SAY(type, m)	send_changed(st, type, &(m), sizeof(m), buf); break
	case STEP_HELLO:	SAY(READ_HELLO, hello);
	case STEP_PARTS:	SAY(READ_PARTS, parts);
	case STEP_REFUSED:	SAY(READ_REFUSED, refused);
	case STEP_NOTE:		SAY(READ_NOTE, note);
	case STEP_ERROR:	SAY(WIRE_ERROR, we);
	case STEP_ENCODED:	SAY(READ_ENCODED, *done);
	case STEP_OUTPUT:	SAY(READ_OUTPUT, output);
	case STEP_RENDERED:	SAY(READ_RENDERED, rendered);
	case STEP_DIRECTORY:
		fill(0, NULL);
		SAY(READ_DIRECTORY, sample->directory);
	case STEP_PIECES:
		fill(1, NULL);
		SAY(READ_PIECES, sample->pieces);
#undef SAY
	case STEP_IDS:
		send_ids(st, buf, done);
		break;
	case STEP_BLOCK:
		fill(reader != NULL && reader->g != NULL, st);
		break;
	case STEP_MESSAGE:
		script_send(st, &peer, READ_OPEN, STDERR_FILENO);
		break;
	case STEP_PACKET:
		script_send_raw(st, &peer);
		break;
	case STEP_END:
		end_status = st->n > 0 ? st->bytes[0] : SIGKILL;
		close_peer();
		break;
	case STEP_POLL:
		is_interrupted = 1;
		break;
	}
}

/* Does the step send what the coordinator cannot pass over? */
static int
is_answer(const struct step *st)
{
	switch (st->op % STEP_NUMBERS) {
	case STEP_IDS:
	case STEP_OUTPUT:
	case STEP_NOTE:
	case STEP_BLOCK:
	case STEP_POLL:
		return 0;
	}
	return 1;
}

/* Send what comes at this time, of which the coordinator awaits nanswers. */
static void
play(unsigned nanswers, uint64_t number)
{
	struct read_encoded done = { .number = number };
	unsigned n = 0;
	struct step st;

	hear();
	while (script_next(&script, &st) && st.op % STEP_NUMBERS != STEP_NEXT) {
		if (peer.fd >= 0)
			say(&st, &done);
		n += (unsigned)is_answer(&st);
	}
	if (n < nanswers && peer.fd >= 0)
		shutdown(peer.fd, SHUT_WR);
}

static int
play_open(const struct conf *c, struct err *reterr)
{
	(void)c;
	(void)reterr;
	play(2, 0);
	return 0;
}

/* --- the coordinator --- */

static int
poll_ends(struct err *reterr)
{
	if (peer.fd >= 0)
		shutdown(peer.fd, SHUT_WR);
	if (!is_interrupted)
		return 0;
	is_interrupted = 0;
	return err_set(reterr, ERR_RUN, -EINTR, "interrupted");
}

static int
failed(int rc, const struct err *e)
{
	if (rc == 0)
		return 0;
	script_require(rc < 0 && rc >= -4095, "an error has no code");
	script_require(e->kind != ERR_NONE && e->msg[0] != '\0' &&
	    memchr(e->msg, '\0', sizeof(e->msg)) != NULL,
	    "an error has no message");
	return 1;
}

static void
check_model(void)
{
	struct err e = { .kind = ERR_NONE };
	struct model *m = NULL;
	const char *broken;
	int rc;

	broken = gguf_walk_view(reader_directory(reader),
	    reader->directory_map.base, reader->directory.nbytes);
	script_require(broken == NULL, broken);
	rc = reader_model(reader, &m, &e);
	if (!failed(rc, &e))
		model_close(m);
}

static void
check_text(const struct tokenizer *t, unsigned no)
{
	const uint64_t number = reader->p.number;
	uint32_t *ids, counts[2];
	struct err e = { .kind = ERR_NONE };
	size_t n, i;
	int rc;

	play(1, number + 1);
	if (no == 2) {
		rc = tokenizer_count(t, texts[number % 2], 2, 0, counts, &e);
		(void)failed(rc, &e);
		return;
	}
	rc = tokenizer_encode_parts(t, texts[number % 2], 2, ENCODE_BOS, &ids,
	    &n, &e);
	if (failed(rc, &e))
		return;
	for (i = 0; i < n; i++)
		script_require(ids[i] < tokenizer_size(t),
		    "an id is beyond the vocabulary");
	free(ids);
}

static void
check_rendering(const struct tokenizer *t, int wants_ids)
{
	const struct render_job job = { .jinja = "<s>{{ a }}", .njinja = 10,
	    .vars = "", .wants_ids = wants_ids };
	struct err e = { .kind = ERR_NONE };
	struct rendering r;
	uint64_t sum = 0;
	size_t i;

	play(1, reader->p.number + 1);
	if (failed(tokenizer_render(t, &job, &r, &e), &e))
		return;
	for (i = 0; i < r.nids; i++)
		script_require(r.ids[i] < tokenizer_size(t),
		    "an id is beyond the vocabulary");
	for (i = 0; i < r.nspans; i++)
		sum += r.span[i].nbytes;
	script_require(sum == r.nbytes, "spans are not those of the text");
	rendering_done(&r);
}

static void
drop_note(int level, const char *text)
{
	(void)level;
	(void)text;
}

static void
load_sample(struct sample *s, const char *path)
{
	struct err e = { .kind = ERR_NONE };
	struct read_directory *d = &s->directory;
	struct encoder *enc;

	strlcpy(s->path, path, sizeof(s->path));
	if (gguf_open(path, &s->g, &e) < 0 ||
	    encoder_open(s->g, &enc, &e) < 0 ||
	    tokenizer_open(s->g, &s->t, &e) < 0 ||
	    gguf_flat_bytes(s->g, &d->nbytes, &e) < 0 ||
	    pieces_bytes(enc, &s->pieces.nbytes, &e) < 0)
		errx(1, "%s", e.msg);
	d->model.rc = hparams_read(s->g, &d->hp, &e);
	d->model.kind = e.kind;
	strlcpy(d->model.msg, e.msg, sizeof(d->model.msg));
	if ((s->block[0] = malloc(d->nbytes)) == NULL ||
	    (s->block[1] = malloc(s->pieces.nbytes)) == NULL)
		errx(1, "no memory");
	gguf_flat_write(s->g, s->block[0]);
	pieces_write(enc, s->block[1]);
	encoder_close(enc);
}

static void
load_samples(void)
{
	const char *dir = getenv("STRADDLE_TESTS"), *small;
	char path[512], tmp[] = "/tmp/straddle-fuzz-XXXXXX";

	snprintf(path, sizeof(path), "%s/data/kjv-q8_0.gguf",
	    dir != NULL ? dir : "tests");
	load_sample(&samples[0], path);
	/* Its name is removed at once. */
	if (mkdtemp(tmp) == NULL)
		err(1, "%s", tmp);
	small = pieces_case_save(1, tmp);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", open(small,
	    O_RDONLY | O_CLOEXEC));
	load_sample(&samples[1], path);
	unlink(small);
	rmdir(tmp);
	if ((dummy = fork()) == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	log_init("fuzzer", 2);
	log_to(drop_note);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct reader_how how = { .poll = poll_ends, .wants_vocab = 1,
	    .meanwhile = play_open };
	static struct conf conf;
	struct err e = { .kind = ERR_NONE };
	struct tokenizer *t;
	unsigned i;
	int low;

	if (n == 0)
		return 0;
	if (samples[0].t == NULL)
		load_samples();
	sample = &samples[data[0] & 1];
	conf_defaults(&conf);
	conf.model_path = sample->path;
	conf.recover = data[0] >> 1 & 1;
	script = (struct script){ data + 1, n - 1 };
	is_interrupted = 0;
	low = script_lowest_fd();
	if (!failed(reader_open(&conf, &how, &reader, &e), &e)) {
		check_model();
		play(1, 0);
		if (!failed(reader_tokenizer(reader, &t, &e), &e)) {
			for (i = 0; i < 4; i++)
				check_text(t, i);
			check_rendering(t, 0);
			check_rendering(t, 1);
		}
		reader_close(reader);
	}
	reader = NULL;
	close_peer();
	conf.model_path = NULL;
	conf_free(&conf);
	script_require(script_lowest_fd() == low, "a descriptor leaked");
	return 0;
}
