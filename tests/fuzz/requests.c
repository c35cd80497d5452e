/* tests/fuzz/requests.c - fuzzer of the reader's side: whatever it is asked, it
 * answers or leaves, and keeps no descriptor.
 *
 * Input: steps (support/script.h).  A sound step sends what a true coordinator
 * would, of a model and a text that its bytes name; or they change the message.  All
 * is sent before the first answer, as much as the channel holds.
 *
 * The process is not confined.  A libFuzzer target; with fuzz/main.c it replays
 * files. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/log.h"
#include "config/units.h"
#include "coordinator/reader/serve.h"
#include "coordinator/text/token.h"
#include "shm/region.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/pieces_cases.h"
#include "tests/support/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum {
	STEP_OPEN, STEP_OPEN_WITHOUT, STEP_PART, STEP_VOCAB, STEP_VOCAB_WITHOUT,
	STEP_TEXT, STEP_COUNT, STEP_STOP, STEP_MESSAGE, STEP_PACKET, STEP_FILE,
	STEP_PATH, STEP_LEND, STEP_RENDER, STEP_NUMBERS
};

static struct serve serve;
static struct chan peer;		/* the coordinator's end */
/* Vocabularies; two parts of a split model, which have a header only; the demo. */
enum { FIRST_PART = PIECES_NCASES, DEMO = FIRST_PART + 2, NMODELS };
static int model_fd[NMODELS];
static int file_fd;			/* of the next READ_OPEN or READ_PART */
static char path[64];			/* likewise */
static uint64_t number;			/* of the last text */
static off_t lent_bytes;		/* of the next memfd */

/* --- what is sent --- */

static void
send_changed(const struct step *st, uint32_t type, void *buf, size_t n,
    const int *fds, unsigned nfds)
{
	n = script_change(st, buf, n, n);
	chan_send(&peer, type, buf, n, fds, nfds, 0);
}

static int
lend(void)
{
	int fd = region_memfd("fuzzer");

	if (fd < 0 || ftruncate(fd, lent_bytes) < 0)
		err(1, "memfd");
	return fd;
}

static void
send_open(const struct step *st, uint32_t has_image)
{
	struct read_open o = { .version = READ_VERSION,
	    .has_image = has_image };
	const int fds[] = { file_fd, lend() };

	strlcpy(o.path, path, sizeof(o.path));
	send_changed(st, READ_OPEN, &o, sizeof(o), fds, 1 + has_image);
	close(fds[1]);
}

static void
send_part(const struct step *st)
{
	struct read_part part = { { 0 } };

	strlcpy(part.path, path, sizeof(part.path));
	send_changed(st, READ_PART, &part, sizeof(part), &file_fd, 1);
}

static void
send_vocab(const struct step *st, uint32_t has_image)
{
	struct read_vocab v = { .has_image = has_image };
	int fd = lend();

	send_changed(st, READ_VOCAB, &v, sizeof(v), &fd, has_image);
	close(fd);
}

/* The step's bytes: flags: u8; number of parts less 1: u8; the text, of which each
 * part but the last has a few bytes. */
static void
send_text(const struct step *st, int flags)
{
	static struct read_text t;
	size_t left, each, i;

	if (st->n < 2)
		return;
	t.number = ++number;
	t.nparts = 1u + st->bytes[1] % 8;
	t.flags = flags | st->bytes[0];
	left = st->n - 2;
	for (i = 0; i < t.nparts; i++) {
		each = i + 1 == t.nparts ? left : MIN(left, 3 * i);
		t.part[i].nbytes = each;
		t.part[i].special = i % 2;
		left -= each;
	}
	chan_send(&peer, READ_TEXT, &t, read_text_bytes(t.nparts), NULL, 0, 0);
	if (st->n > 2)
		chan_send(&peer, READ_BYTES, st->bytes + 2, st->n - 2, NULL,
		    0, 0);
}

/* The step's bytes: flags: u8, length of the template: u8, and of the tail: u8; the
 * template, the variables, the tail. */
static void
send_render(const struct step *st)
{
	struct read_render q = { .number = ++number, .has_now = 1,
	    .now = { 0, 0, 0, 1, 0, 126, 4, 0, 0 } };
	size_t left;

	if (st->n < 3)
		return;
	left = st->n - 3;
	q.wants_ids = st->bytes[0] & 1;
	q.special = st->bytes[0] >> 1 & 1;
	q.has_tail = st->bytes[0] >> 2 & 1;
	q.flags = st->bytes[0] >> 3;
	q.template_bytes = MIN(left, st->bytes[1]);
	left -= q.template_bytes;
	q.tail_bytes = q.has_tail ? MIN(left / 2, st->bytes[2]) : 0;
	q.vars_bytes = left - q.tail_bytes;
	chan_send(&peer, READ_RENDER, &q, sizeof(q), NULL, 0, 0);
	if (st->n > 3)
		chan_send(&peer, READ_BYTES, st->bytes + 3, st->n - 3, NULL,
		    0, 0);
}

/* A model, or the bytes as a file's content. */
static void
choose_file(const struct step *st)
{
	if (file_fd >= 0)
		close(file_fd);
	if (st->n == 1) {
		file_fd = dup(model_fd[st->bytes[0] % NMODELS]);
		return;
	}
	if ((file_fd = memfd_create("fuzzer", MFD_CLOEXEC)) < 0 ||
	    write(file_fd, st->bytes, st->n) != (ssize_t)st->n)
		err(1, "memfd");
}

static void
say(const struct step *st)
{
	switch (st->op % STEP_NUMBERS) {
	case STEP_OPEN:
	case STEP_OPEN_WITHOUT:
		send_open(st, st->op % STEP_NUMBERS == STEP_OPEN);
		break;
	case STEP_PART:
		send_part(st);
		break;
	case STEP_VOCAB:
	case STEP_VOCAB_WITHOUT:
		send_vocab(st, st->op % STEP_NUMBERS == STEP_VOCAB);
		break;
	case STEP_TEXT:
		send_text(st, 0);
		break;
	case STEP_COUNT:
		send_text(st, ENCODE_COUNT);
		break;
	case STEP_STOP:
		chan_send(&peer, READ_STOP, st->bytes, st->n, NULL, 0, 0);
		break;
	case STEP_MESSAGE:
		script_send(st, &peer, READ_OPEN, file_fd);
		break;
	case STEP_PACKET:
		script_send_raw(st, &peer);
		break;
	case STEP_FILE:
		choose_file(st);
		break;
	case STEP_PATH:
		memcpy(path, st->bytes, MIN(st->n, sizeof(path) - 1));
		break;
	case STEP_LEND:
		lent_bytes = st->n;
		break;
	case STEP_RENDER:
		send_render(st);
		break;
	}
}

/* --- the reader --- */

/* Its answers, without descriptors, of types that a coordinator knows. */
static void
hear(void)
{
	static struct chan_msg m;

	while (chan_recv(&peer, &m, 0) == 0) {
		script_require(m.nfds == 0, "an answer has descriptors");
		script_require(m.type > READ_HELLO && m.type != READ_NOTE &&
		    m.type <= READ_RENDERED,
		    "an answer has a wrong type");
		chan_msg_done(&m);
	}
}

static void
serve_all(void)
{
	struct err e = { .kind = ERR_NONE };
	int rc = 0;

	while (!serve.leave && rc >= 0) {
		rc = serve_one(&serve, &e);
		hear();
	}
	script_require(rc >= 0 || (e.kind != ERR_NONE && e.msg[0] != '\0'),
	    "an error has no message");
	chan_msg_done(&serve.msg);
	encoder_close(serve.encoder);
	renderer_close(serve.renderer);
	gguf_close(serve.g);
}

static void
drop_note(int level, const char *text)
{
	(void)level;
	(void)text;
}

static const char *
save_part(uint16_t no, const char *folder)
{
	static char part[512];
	struct gguf_writer w;

	snprintf(part, sizeof(part), "%s/part", folder);
	gw_open(&w);
	gw_kv_u16(&w, "split.no", no);
	gw_kv_u16(&w, "split.count", 2);
	gw_kv_i32(&w, "split.tensors.count", 0);
	gw_save(&w, part);
	gw_close(&w);
	return part;
}

/* Open the models, whose names are removed.  CHAN_FD is where a text in work
 * looks for READ_STOP. */
static void
open_models(void)
{
	const char *dir = getenv("STRADDLE_TESTS"), *name;
	char kjv[512], tmp[] = "/tmp/straddle-fuzz-XXXXXX";
	unsigned i;

	dup2(STDERR_FILENO, CHAN_FD);
	snprintf(kjv, sizeof(kjv), "%s/data/kjv-q8_0.gguf",
	    dir != NULL ? dir : "tests");
	if (mkdtemp(tmp) == NULL)
		err(1, "%s", tmp);
	for (i = 0; i < NMODELS; i++) {
		name = i == DEMO ? kjv : i >= FIRST_PART ?
		    save_part((uint16_t)(i - FIRST_PART), tmp) :
		    pieces_case_save(i, tmp);
		if ((model_fd[i] = open(name, O_RDONLY | O_CLOEXEC)) < 0)
			err(1, "%s", name);
		if (i != DEMO)
			unlink(name);
	}
	rmdir(tmp);
	log_to(drop_note);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static int is_ready;
	struct script script = { data, n };
	struct step st;
	int low;

	if (!is_ready++)
		open_models();
	low = script_lowest_fd();
	memset(&serve, 0, sizeof(serve));
	serve.confined[CONFINE_LOAD] = -ENOSYS;
	if (chan_pair(&serve.chan, &peer, NULL) < 0 ||
	    dup2(serve.chan.fd, CHAN_FD) < 0)
		err(1, "a channel");
	chan_close(&serve.chan);
	serve.chan.fd = CHAN_FD;
	file_fd = dup(model_fd[0]);
	strlcpy(path, "m-00001-of-00002.gguf", sizeof(path));
	number = 0;
	lent_bytes = MIB;
	while (script_next(&script, &st))
		say(&st);
	shutdown(peer.fd, SHUT_WR);
	serve_all();
	chan_close(&peer);
	close(file_fd);
	script_require(script_lowest_fd() == low, "a descriptor leaked");
	return 0;
}
