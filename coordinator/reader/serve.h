/* coordinator/reader/serve.h - the reader's side: parses and answers.
 * Owns: what it has parsed.  Called by main.c in the reader's role, and by a
 * fuzzer; shared by the files serve*.c.  Does not depend on the coordinator's side. */
#ifndef COORDINATOR_READER_SERVE_H
#define COORDINATOR_READER_SERVE_H

#include "coordinator/text/encoder.h"
#include "coordinator/text/render.h"
#include "layers/gguf/gguf.h"
#include "requests.h"

struct serve {
	struct chan chan;
	struct chan_msg msg;
	int leave;
	struct gguf *g;
	int is_whole;			/* all parts of g are parsed */
	int is_bare;			/* it renders, and reads no model */
	uint64_t number;		/* of the last text; 0 = none yet */
	struct encoder *encoder;
	struct renderer *renderer;	/* NULL until it is needed */
	struct confine *confine;
	int32_t confined[CONFINE_NPARTS];
};

/* Send an answer; -EPIPE: the coordinator is gone. */
int serve_send(struct serve *s, uint32_t type, const void *buf,
    size_t nbytes);
/* Send READ_REFUSED with this error. */
int serve_refuse(struct serve *s, const struct err *e, int rc);
/* The message in s->msg is none that may come now: an error that ends the
 * reader. */
int serve_bad(struct serve *s, struct err *reterr);

/* Receive the next message into s->msg: 0; -EPIPE at the end. */
int serve_recv(struct serve *s);

/* Answer one request.  Negative: the reader leaves, as it does with s->leave. */
int serve_one(struct serve *s, struct err *reterr);
/* Receive nbytes of READ_BYTES, into `to` or, if that is NULL, nowhere.  Negative:
 * the reader leaves. */
int serve_recv_bytes(struct serve *s, char *to, uint64_t nbytes,
    struct err *reterr);
/* Send ids[n], and that this was all of request `number`. */
void serve_send_ids(struct serve *s, uint64_t number, const uint32_t *ids,
    uint64_t n, const struct losses *lost);

/* READ_OPEN to READ_DIRECTORY, READ_VOCAB, READ_TEXT, READ_RENDER.  0 = answered;
 * negative: the reader leaves. */
int serve_open(struct serve *s, struct err *reterr);
int serve_vocab(struct serve *s, struct err *reterr);
int serve_text(struct serve *s, struct err *reterr);
int serve_render(struct serve *s, struct err *reterr);

#endif
