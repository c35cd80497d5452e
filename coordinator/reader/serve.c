/* coordinator/reader/serve.c - the reader's main loop.
 *
 * It gives up its rights before anything of the model arrives, and then answers
 * one request after the other.  Notes and errors go to the coordinator, which
 * escapes and shows them. */
#include "serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <bsd/string.h>
#include <bsd/unistd.h>

#include "config/log.h"
#include "config/roles.h"
#include "coordinator/text/hash.h"
#include "shm/event.h"
#include "worker/confine/confine.h"

#define SEND_NS		UINT64_C(10000000000)

/* One process, one reader; log_to() has no argument. */
static struct serve self = { .chan = { CHAN_FD } };
static unsigned notes_left;

int
serve_send(struct serve *s, uint32_t type, const void *buf, size_t nbytes)
{
	int rc = chan_send(&s->chan, type, buf, nbytes, NULL, 0,
	    event_now_ns() + SEND_NS);

	s->leave |= rc < 0;
	return rc;
}

int
serve_refuse(struct serve *s, const struct err *e, int rc)
{
	struct read_refused r = { .number = s->number,
	    .why = { .rc = rc, .kind = e->kind } };

	strlcpy(r.why.msg, e->msg, sizeof(r.why.msg));
	return serve_send(s, READ_REFUSED, &r, sizeof(r));
}

int
serve_bad(struct serve *s, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -EPROTO, "message %u of %u bytes and "
	    "%u descriptors, which may not come now", s->msg.type,
	    s->msg.nbytes, s->msg.nfds);
}

int
serve_recv(struct serve *s)
{
	chan_msg_done(&s->msg);
	return chan_recv(&s->chan, &s->msg, EVENT_FOREVER);
}

static void
send_note(int level, const char *text)
{
	struct read_note n = { .level = level };

	if (notes_left == 0)
		return;
	notes_left--;
	strlcpy(n.text, text, sizeof(n.text));
	serve_send(&self, READ_NOTE, &n, sizeof(n));
}

int
serve_one(struct serve *s, struct err *reterr)
{
	int rc = serve_recv(s);

	if (rc == -EPIPE) {
		s->leave = 1;
		return 0;
	}
	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "its channel: %s",
		    strerror(-rc));
	notes_left = READ_MAX_NOTES;
	switch (s->msg.type) {
	case READ_OPEN:
		return serve_open(s, reterr);
	case READ_VOCAB:
		return serve_vocab(s, reterr);
	case READ_TEXT:
		return serve_text(s, reterr);
	case READ_RENDER:
		return serve_render(s, reterr);
	case READ_STOP:
	case READ_PART:
		return 0;	/* the request that it belongs to has ended */
	default:
		return serve_bad(s, reterr);
	}
}

static void
report_error(struct serve *s, const struct err *e, int rc)
{
	struct wire_error we = { .kind = e->kind, .rc = rc };

	strlcpy(we.msg, e->msg, sizeof(we.msg));
	serve_send(s, WIRE_ERROR, &we, sizeof(we));
}

int
reader_main(int argc, char **argv)
{
	struct read_hello h = { .version = READ_VERSION };
	struct serve *s = &self;
	struct err e = { 0 };
	int rc = 0;

	(void)argc;
	(void)argv;
	role_begin("straddle reader", CHAN_FD);
	/* The filter allows neither later: reading the time zone's file, drawing
	 * random bytes. */
	tzset();
	rc = hash_init(&e);
	s->confine = confine_open("the reader", 0);
	confine_single(s->confine, s->confined);
	memcpy(h.confined, s->confined, sizeof(h.confined));
	setproctitle("-straddle: reader");
	log_init("straddle reader", -1);
	serve_send(s, READ_HELLO, &h, sizeof(h));
	log_to(send_note);
	while (!s->leave && rc >= 0)
		rc = serve_one(s, &e);
	if (rc < 0 && !s->leave)
		report_error(s, &e, rc);
	chan_msg_done(&s->msg);
	/* The process ends: what it has parsed need not be freed, but for the
	 * tools that look for leaks. */
	encoder_close(s->encoder);
	renderer_close(s->renderer);
	gguf_close(s->g);
	confine_close(s->confine);
	chan_close(&s->chan);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
