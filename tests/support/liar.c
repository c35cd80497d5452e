/* tests/support/liar.c - see liar.h. */
#include "liar.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coordinator/reader/requests.h"
#include "coordinator/text/render.h"
#include "shm/event.h"

static struct chan chan = { CHAN_FD };
static struct chan_msg msg;
static const char *lie;

static void
say(uint32_t type, const void *buf, size_t nbytes)
{
	if (chan_send(&chan, type, buf, nbytes, NULL, 0, EVENT_FOREVER) < 0)
		exit(EXIT_FAILURE);
}

/* Receive messages until one of this type; the process ends with the channel. */
static void
hear(uint32_t type)
{
	do {
		chan_msg_done(&msg);
		if (chan_recv(&chan, &msg, EVENT_FOREVER) < 0)
			exit(EXIT_SUCCESS);
	} while (msg.type != type);
}

static int
is(const char *name)
{
	return strcmp(lie, name) == 0;
}

/* --- before the first text --- */

static void
refuse(uint64_t number, int32_t rc)
{
	const struct read_refused r = { .number = number,
	    .why = { .rc = rc, .kind = ERR_MODEL, .msg = "a lie" } };

	say(READ_REFUSED, &r, sizeof(r));
}

static void
open_model(void)
{
	const struct read_hello hello = { .version = READ_VERSION +
	    (uint32_t)is("version") };
	const struct read_parts parts = { is("many-parts") ? UINT32_MAX :
	    is("two-parts") ? 2 : 1 };
	const struct read_directory directory = { .nbytes = 0 };
	const struct read_pieces pieces = { .nbytes = 0 };

	say(READ_HELLO, &hello, sizeof(hello) - (size_t)is("short-hello"));
	hear(READ_OPEN);
	if (is("refuse-open")) {
		refuse(0, -ENOMEM);
		return;
	}
	say(READ_PARTS, &parts, sizeof(parts));
	say(READ_DIRECTORY, &directory, sizeof(directory));
	hear(READ_VOCAB);
	if (is("turned"))
		shutdown(CHAN_FD, SHUT_RD);
	say(READ_PIECES, &pieces, sizeof(pieces));
}

/* --- texts --- */

static void
say_notes(unsigned n)
{
	const struct read_note note = { .level = 1 };

	while (n-- > 0)
		say(READ_NOTE, &note, sizeof(note) -
		    (size_t)is("note-short"));
}

/* Texts without a NUL. */
static void
refuse_long(uint64_t number)
{
	struct read_note note = { .level = 1 };
	struct read_refused r = { .number = number, .why = { .rc = -EIO } };

	memset(note.text, 'n', sizeof(note.text));
	say(READ_NOTE, &note, sizeof(note));
	memset(r.why.msg, 'r', sizeof(r.why.msg));
	say(READ_REFUSED, &r, sizeof(r));
}

static void
give_up(void)
{
	struct wire_error we = { .rc = -EIO };

	memset(we.msg, 'e', sizeof(we.msg));
	say(WIRE_ERROR, &we, is("error-short") ? 4 : sizeof(we));
}

/* n numbers of this value. */
static void
answer(uint64_t number, uint32_t value, uint32_t n)
{
	const struct read_encoded done = { .number = number,
	    .nids = n + (unsigned)is("ids-more") };
	uint32_t ids[READ_MAX_PARTS], i;
	size_t nbytes = n * sizeof(*ids);

	for (i = 0; i < n; i++)
		ids[i] = value;
	if (is("ids-odd") || is("ids-none"))
		nbytes = is("ids-odd") ? 3 : 0;
	if (chan_send(&chan, READ_IDS, ids, nbytes, &chan.fd,
	    (unsigned)is("fds"), EVENT_FOREVER) < 0)
		exit(EXIT_FAILURE);
	say(READ_ENCODED, &done, is("end-short") ? 8 : sizeof(done));
}

/* Messages that come before an answer, if there are any.  0 = there are none. */
static int
lie_first(const struct read_text *t)
{
	if (is("no-nul"))
		refuse_long(t->number);
	else if (is("error") || is("error-short"))
		give_up();
	else if (is("notes"))
		say_notes(READ_MAX_NOTES + 1);
	else if (is("note-short"))
		say_notes(1);
	else if (is("signal"))
		refuse(t->number, -EINTR);
	else if (is("success"))
		refuse(t->number, 0);
	else if (is("refuse-text"))
		refuse(t->number, -ENOMEM);
	else if (is("refuse-twice")) {
		refuse(t->number, -ENOMEM);
		refuse(t->number, -ENOMEM);
	} else if (is("two-answers"))
		answer(t->number, 1, 1);
	else if (is("no-end")) {
		hear(READ_STOP);
		say_notes(UINT32_MAX);
	}
	return !is("no-nul") && !is("signal") && !is("success") &&
	    !is("refuse-twice");
}

static void
lie_text(const struct read_text *t)
{
	const int is_count = t->flags & ENCODE_COUNT;

	if (!lie_first(t))
		return;
	if (is("few-counts"))
		answer(t->number, 1, t->nparts - 1);
	else if (is("ids-many"))
		answer(t->number, 1, READ_MAX_PARTS);
	else
		answer(t->number, is("large-count") ? 1000000 :
		    is("ids-high") ? UINT32_MAX : 1,
		    is_count ? t->nparts : 1);
}

/* --- renderings --- */

/* "abc", of which the template wrote the first. */
static void
lie_rendering(void)
{
	struct render_span span[] = { { 1, 1 }, { 2, 0 } };
	struct read_rendered done = { .nspans = 2, .nbytes = 3 };
	struct read_render q;
	char out[sizeof(span) + 3];

	hear(READ_RENDER);
	memcpy(&q, msg.buf, sizeof(q));
	done.number = q.number + is("rendered-late");
	done.nbytes += is("rendered-more");
	done.nspans = is("rendered-spans") ? UINT64_MAX : done.nspans;
	span[0].nbytes = is("span-none") ? 0 : is("span-long") ? UINT64_MAX : 1;
	/* Their sum is 3 in 64 bits. */
	span[1].nbytes = is("span-none") ? 3 : is("span-long") ? 4 :
	    is("span-few") ? 1 : 2;
	span[1].is_template = is("span-mark") ? 2 : 0;
	memcpy(out, span, sizeof(span));
	memcpy(out + sizeof(span), "abc", 3);
	if (is("rendered-lie"))
		refuse(q.number, -EINTR);
	else if (is("rendered-refused"))
		refuse(q.number, -ECANCELED);
	else if (is("output-flood"))
		for (;;)
			say(READ_OUTPUT, msg.buf, CHAN_MAX_BYTES);
	else {
		say(READ_OUTPUT, out, is("output-none") ? 0 : sizeof(out));
		say(READ_RENDERED, &done, is("rendered-short") ? 8 :
		    sizeof(done));
	}
}

int
liar_main(const char *name)
{
	struct read_text t;

	lie = name;
	open_model();
	while (is("deaf"))
		pause();
	if (is("turned"))
		say_notes(UINT32_MAX);
	while (strncmp(lie, "render", 6) == 0 || strncmp(lie, "span", 4) == 0 ||
	    strncmp(lie, "output", 6) == 0)
		lie_rendering();
	for (;;) {
		hear(READ_TEXT);
		memcpy(&t, msg.buf, msg.nbytes);
		lie_text(&t);
	}
}
