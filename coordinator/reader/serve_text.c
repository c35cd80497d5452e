/* coordinator/reader/serve_text.c - the reader's answers on texts. */
#include "serve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The sum of all parts, or UINT64_MAX if a part is not what it must be. */
static uint64_t
text_bytes(const struct read_text *t)
{
	uint64_t sum = 0;
	uint32_t i;

	if (t->nparts == 0)
		return UINT64_MAX;
	for (i = 0; i < t->nparts; i++) {
		if (t->part[i].special > 1 ||
		    t->part[i].nbytes > READ_MAX_TEXT - sum)
			return UINT64_MAX;
		sum += t->part[i].nbytes;
	}
	return sum;
}

int
serve_recv_bytes(struct serve *s, char *to, uint64_t nbytes,
    struct err *reterr)
{
	uint64_t at = 0;

	while (at < nbytes) {
		if (serve_recv(s) < 0 || s->msg.type != READ_BYTES ||
		    s->msg.nfds != 0 || s->msg.nbytes == 0 ||
		    s->msg.nbytes > nbytes - at)
			return serve_bad(s, reterr);
		if (to != NULL)
			memcpy(to + at, s->msg.buf, s->msg.nbytes);
		at += s->msg.nbytes;
	}
	return 0;
}

void
serve_send_ids(struct serve *s, uint64_t number, const uint32_t *ids,
    uint64_t n, const struct losses *lost)
{
	const struct read_encoded done = { .number = number, .nids = n,
	    .lost = *lost };
	uint64_t at, each;

	for (at = 0; at < n && !s->leave; at += each) {
		each = MIN(n - at, READ_IDS_EACH);
		serve_send(s, READ_IDS, ids + at, each * sizeof(*ids));
	}
	serve_send(s, READ_ENCODED, &done, sizeof(done));
}

static void
encode(struct serve *s, const struct read_text *t, const char *text)
{
	struct text_part part[READ_MAX_PARTS];
	struct losses lost;
	struct err e = { 0 };
	uint32_t *ids = NULL, i;
	size_t n = 0;
	int rc;

	for (i = 0; i < t->nparts; i++) {
		part[i] = (struct text_part){ text, t->part[i].nbytes,
		    (int)t->part[i].special };
		text += t->part[i].nbytes;
	}
	if ((rc = encoder_encode_parts(s->encoder, part, t->nparts, t->flags,
	    &ids, &n, &lost, &e)) < 0)
		serve_refuse(s, &e, rc);
	else
		serve_send_ids(s, t->number, ids, n, &lost);
	free(ids);
}

int
serve_text(struct serve *s, struct err *reterr)
{
	struct read_text t;
	struct err e = { 0 };
	uint64_t nbytes;
	char *text;
	int rc;

	if (s->encoder == NULL || s->msg.nfds != 0 ||
	    s->msg.nbytes < read_text_bytes(0) || s->msg.nbytes > sizeof(t))
		return serve_bad(s, reterr);
	memcpy(&t, s->msg.buf, s->msg.nbytes);
	/* No more than READ_MAX_PARTS: their numbers are all there. */
	if (s->msg.nbytes != read_text_bytes(t.nparts) ||
	    (nbytes = text_bytes(&t)) == UINT64_MAX)
		return serve_bad(s, reterr);
	s->number = t.number;
	text = malloc(nbytes + 1);
	if ((rc = serve_recv_bytes(s, text, nbytes, reterr)) < 0) {
		free(text);
		return rc;
	}
	if (text == NULL) {
		rc = err_nomem(&e, "a text of %" PRIu64 " bytes", nbytes);
		serve_refuse(s, &e, rc);
		return 0;
	}
	text[nbytes] = '\0';
	encode(s, &t, text);
	free(text);
	return 0;
}
