/* tests/support/liar.c - see liar.h. */
#include "liar.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coordinator/reader/requests.h"
#include "coordinator/text/token.h"
#include "shm/event.h"

static struct chan chan = { CHAN_FD };
static struct chan_msg msg;

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

static void
refuse(uint64_t number)
{
	const struct read_refused r = { .number = number,
	    .why = { .rc = -ENOMEM, .kind = ERR_RUN, .msg = "a lie" } };

	say(READ_REFUSED, &r, sizeof(r));
}

static void
open_model(const char *lie)
{
	const struct read_hello hello = { .version = READ_VERSION };
	const struct read_parts parts = { strcmp(lie, "two-parts") ? 1 : 2 };
	const struct read_directory directory = { .nbytes = 0 };
	const struct read_pieces pieces = { .nbytes = 0 };

	say(READ_HELLO, &hello, sizeof(hello));
	hear(READ_OPEN);
	if (strcmp(lie, "refuse-open") == 0) {
		refuse(0);
		return;
	}
	say(READ_PARTS, &parts, sizeof(parts));
	say(READ_DIRECTORY, &directory, sizeof(directory));
	hear(READ_VOCAB);
	if (strcmp(lie, "turned") == 0)
		shutdown(CHAN_FD, SHUT_RD);
	say(READ_PIECES, &pieces, sizeof(pieces));
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
	say(WIRE_ERROR, &we, sizeof(we));
}

static void
flood(void)
{
	const struct read_note note = { .level = 1 };

	for (;;)
		say(READ_NOTE, &note, sizeof(note));
}

/* n numbers of this value, which say n. */
static void
answer(uint64_t number, uint32_t value, uint32_t n)
{
	const struct read_encoded done = { .number = number, .nids = n };
	uint32_t ids[READ_MAX_PARTS];
	uint32_t i;

	for (i = 0; i < n; i++)
		ids[i] = value;
	if (n > 0)
		say(READ_IDS, ids, n * sizeof(*ids));
	say(READ_ENCODED, &done, sizeof(done));
}

int
liar_main(const char *lie)
{
	struct read_text t;

	open_model(lie);
	while (strcmp(lie, "deaf") == 0)
		pause();
	if (strcmp(lie, "turned") == 0)
		flood();
	for (;;) {
		hear(READ_TEXT);
		memcpy(&t, msg.buf, msg.nbytes);
		if (strcmp(lie, "no-nul") == 0) {
			refuse_long(t.number);
			continue;
		}
		if (strcmp(lie, "error") == 0)
			give_up();
		if (strcmp(lie, "refuse-text") == 0)
			refuse(t.number);
		if (strcmp(lie, "two-answers") == 0)
			answer(t.number, 1, 1);
		if (strcmp(lie, "no-end") == 0) {
			hear(READ_STOP);
			flood();
		}
		if (strcmp(lie, "few-counts") == 0)
			answer(t.number, 1, t.nparts - 1);
		else if (strcmp(lie, "large-count") == 0)
			answer(t.number, 1000000, t.nparts);
		else
			answer(t.number, 1, t.flags & ENCODE_COUNT ?
			    t.nparts : 1);
	}
}
