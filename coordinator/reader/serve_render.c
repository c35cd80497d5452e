/* coordinator/reader/serve_render.c - the reader's answers on conversations: it
 * runs chat templates. */
#include "serve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/variables.h"
#include "worker/confine/confine.h"

static int
is_now(const int32_t now[READ_NOW_FIELDS])
{
	/* tm_sec to tm_yday; tm_year for the years 0 to 9999. */
	static const int32_t lo[] = { 0, 0, 0, 1, 0, -1900, 0, 0 };
	static const int32_t hi[] = { 60, 59, 23, 31, 11, 8099, 6, 365 };
	size_t i;

	for (i = 0; i < NITEMS(lo); i++)
		if (now[i] < lo[i] || now[i] > hi[i])
			return 0;
	return 1;
}

static int
is_request(const struct serve *s, const struct read_render *q)
{
	return q->template_bytes <= RENDER_MAX_TEMPLATE &&
	    q->vars_bytes <= VARIABLES_MAX_BYTES &&
	    q->tail_bytes <= q->vars_bytes && q->has_tail <= 1 &&
	    (q->has_tail || q->tail_bytes == 0) && q->wants_ids <= 1 &&
	    q->special <= 1 && q->has_now <= 1 &&
	    (!q->has_now || is_now(q->now)) &&
	    (!q->wants_ids || s->encoder != NULL);
}

/* Send the spans, then the text, in as few messages as hold them. */
static void
send_rendering(struct serve *s, uint64_t number, const struct rendering *r)
{
	const struct read_rendered done = { number, r->nspans, r->nbytes };
	const char *from[] = { (const char *)r->span, r->text };
	const size_t n[] = { r->nspans * sizeof(*r->span), r->nbytes };
	size_t at, each, i;

	for (i = 0; i < NITEMS(n); i++)
		for (at = 0; at < n[i] && !s->leave; at += each) {
			each = MIN(n[i] - at, (size_t)CHAN_MAX_BYTES);
			serve_send(s, READ_OUTPUT, from[i] + at, each);
		}
	serve_send(s, READ_RENDERED, &done, sizeof(done));
}

static void
render(struct serve *s, const struct read_render *q, const char *bytes)
{
	const struct tm now = { .tm_sec = q->now[0], .tm_min = q->now[1],
	    .tm_hour = q->now[2], .tm_mday = q->now[3], .tm_mon = q->now[4],
	    .tm_year = q->now[5], .tm_wday = q->now[6], .tm_yday = q->now[7],
	    .tm_isdst = q->now[8] };
	const struct render_job job = {
		.jinja = bytes, .njinja = q->template_bytes,
		.vars = bytes + q->template_bytes, .nvars = q->vars_bytes,
		.tail = q->has_tail ? bytes + q->template_bytes +
		    q->vars_bytes : NULL, .ntail = q->tail_bytes,
		.now = q->has_now ? &now : NULL, .wants_ids = (int)q->wants_ids,
		.special = (int)q->special, .flags = q->flags };
	struct rendering r = { 0 };
	struct err e = { 0 };
	int rc;

	if (s->renderer == NULL && (s->renderer = renderer_open()) == NULL)
		rc = err_nomem(&e, "a chat template");
	else
		rc = renderer_run(s->renderer, &job, &r, &e);
	if (rc == 0 && q->wants_ids)
		rc = encoder_encode_rendering(s->encoder, &job, &r, &e);
	if (rc < 0)
		serve_refuse(s, &e, rc);
	else if (q->wants_ids)
		serve_send_ids(s, q->number, r.ids, r.nids, &r.lost);
	else
		send_rendering(s, q->number, &r);
	rendering_done(&r);
}

int
serve_render(struct serve *s, struct err *reterr)
{
	struct read_render q;
	struct err e = { 0 };
	uint64_t nbytes;
	char *bytes;
	int rc;

	if (s->msg.nfds != 0 || s->msg.nbytes != sizeof(q))
		return serve_bad(s, reterr);
	memcpy(&q, s->msg.buf, sizeof(q));
	if (!is_request(s, &q))
		return serve_bad(s, reterr);
	s->number = q.number;
	if (s->g == NULL && !s->is_bare) {
		/* It needs no file. */
		s->is_bare = 1;
		confine_after_load(s->confine, s->confined);
	}
	nbytes = q.template_bytes + q.vars_bytes + q.tail_bytes;
	bytes = malloc(nbytes + 1);
	if ((rc = serve_recv_bytes(s, bytes, nbytes, reterr)) < 0) {
		free(bytes);
		return rc;
	}
	if (bytes != NULL) {
		render(s, &q, bytes);
	} else {
		rc = err_nomem(&e, "a conversation of %" PRIu64 " bytes",
		    nbytes);
		serve_refuse(s, &e, rc);
	}
	free(bytes);
	return 0;
}
