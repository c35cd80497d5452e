/* coordinator/reader/render.c - sends a conversation and its chat template to the
 * reader, takes the text or the ids. */
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "coordinator/text/variables.h"

/* CPU time: the template's own second, and a part for each byte that is read,
 * written or encoded. */
#define RENDER_NS	UINT64_C(5000000000)
#define BYTE_NS		UINT64_C(5000)

static int
send_render(struct reader *r, const struct render_job *job,
    struct err *reterr)
{
	const struct text_part part[] = { { job->jinja, job->njinja, 0 },
	    { job->vars, job->nvars, 0 },
	    { job->tail, job->tail != NULL ? job->ntail : 0, 0 } };
	struct read_render q = { .number = ++r->p.number,
	    .template_bytes = job->njinja, .vars_bytes = job->nvars,
	    .tail_bytes = part[2].nbytes, .has_tail = job->tail != NULL,
	    .wants_ids = job->wants_ids != 0, .special = job->special != 0,
	    .has_now = job->now != NULL, .flags = job->flags };
	const struct tm *now = job->now;
	int rc;

	if (now != NULL)
		memcpy(q.now, (const int32_t[]){ now->tm_sec, now->tm_min,
		    now->tm_hour, now->tm_mday, now->tm_mon, now->tm_year,
		    now->tm_wday, now->tm_yday, now->tm_isdst },
		    sizeof(q.now));
	proc_begin(&r->p, RENDER_NS + BYTE_NS * (job->njinja + job->nvars +
	    RENDER_MAX_OUTPUT));
	rc = proc_send(&r->p, READ_RENDER, &q, sizeof(q), NULL, 0, reterr);
	return rc < 0 ? rc : reader_send_bytes(r, part, NITEMS(part), reterr);
}

/* --- spans --- */

/* Append the message to buf[*n], of at most `most` bytes. */
static int
take_output(struct reader *r, char **buf, size_t *n, uint64_t most,
    struct err *reterr)
{
	const struct chan_msg *m = r->p.msg;
	char *grown;

	if (m->nbytes == 0 || m->nbytes > most - *n)
		return proc_lied(&r->p, reterr, "a rendering of %zu bytes with "
		    "%u more", *n, m->nbytes);
	if ((grown = realloc(*buf, *n + m->nbytes)) == NULL) {
		proc_lied(&r->p, NULL, "a rendering without room for it");
		return err_nomem(reterr, "a rendering of %zu bytes",
		    *n + m->nbytes);
	}
	memcpy(grown + *n, m->buf, m->nbytes);
	*buf = grown;
	*n += m->nbytes;
	return 0;
}

/* Are these spans of a text of nbytes? */
static int
are_spans(const struct render_span *span, uint64_t nspans, uint64_t nbytes)
{
	uint64_t left = nbytes, i;

	for (i = 0; i < nspans; i++) {
		if (span[i].nbytes == 0 || span[i].nbytes > left ||
		    span[i].is_template > 1)
			return 0;
		left -= span[i].nbytes;
	}
	return left == 0;
}

/* Take buf[n] apart. */
static int
take_rendering(struct reader *r, const char *buf, size_t n,
    struct rendering *ret, struct err *reterr)
{
	struct read_rendered done;

	memcpy(&done, r->p.msg->buf, sizeof(done));
	if (done.number != r->p.number)
		return proc_lied(&r->p, reterr, "an answer to text %" PRIu64
		    " in place of %" PRIu64, done.number, r->p.number);
	if (done.nbytes > RENDER_MAX_OUTPUT || done.nspans > RENDER_MAX_SPANS ||
	    n != done.nspans * sizeof(*ret->span) + done.nbytes)
		return proc_lied(&r->p, reterr, "%zu bytes of a rendering, and "
		    "says %" PRIu64 " in %" PRIu64 " spans", n, done.nbytes,
		    done.nspans);
	ret->nspans = done.nspans;
	ret->nbytes = done.nbytes;
	ret->span = calloc(done.nspans + 1, sizeof(*ret->span));
	ret->text = malloc(done.nbytes + 1);
	if (ret->span == NULL || ret->text == NULL)
		return err_nomem(reterr, "a rendering of %" PRIu64 " bytes",
		    done.nbytes);
	if (n > 0) {
		memcpy(ret->span, buf, n - done.nbytes);
		memcpy(ret->text, buf + n - done.nbytes, done.nbytes);
	}
	ret->text[done.nbytes] = '\0';
	if (!are_spans(ret->span, ret->nspans, ret->nbytes))
		return proc_lied(&r->p, reterr, "spans that are not those of "
		    "a text of %" PRIu64 " bytes", done.nbytes);
	return 0;
}

static int
recv_rendering(struct reader *r, struct rendering *ret, struct err *reterr)
{
	const uint64_t most = RENDER_MAX_OUTPUT +
	    RENDER_MAX_SPANS * sizeof(*ret->span);
	char *buf = NULL;
	size_t n = 0;
	int rc;

	do {
		rc = proc_recv(&r->p, READ_OUTPUT, READ_RENDERED, 0, reterr);
		if (rc == 0 && r->p.msg->type == READ_RENDERED)
			break;
		if (rc == 0)
			rc = take_output(r, &buf, &n, most, reterr);
	} while (rc == 0);
	if (rc == 0 && r->p.msg->nbytes != sizeof(struct read_rendered))
		rc = proc_lied(&r->p, reterr, "the end of a rendering, %u "
		    "bytes", r->p.msg->nbytes);
	if (rc == 0)
		rc = take_rendering(r, buf, n, ret, reterr);
	free(buf);
	return rc;
}

/* --- ids --- */

static int
recv_ids(struct reader *r, struct rendering *ret, struct err *reterr)
{
	int rc;

	if ((ret->ids = malloc(sizeof(*ret->ids))) == NULL)
		return err_nomem(reterr, "token ids");
	if ((rc = reader_recv_ids(r, &ret->ids, &ret->nids,
	    reader_most_ids(RENDER_MAX_OUTPUT), &ret->lost, reterr)) < 0)
		return rc;
	return reader_check_ids(r, ret->ids, ret->nids, reterr);
}

/* --- both --- */

/* A refusal is the template's own error, and no other code of the reader's passes
 * for one of ours. */
static int
fail_rendering(const struct reader_proc *p, int rc, struct err *reterr)
{
	static const char from[] = "the reader: ";

	if (!p->was_refused)
		return rc;
	reterr->kind = ERR_RUN;
	if (strncmp(reterr->msg, from, strlen(from)) == 0)
		memmove(reterr->msg, reterr->msg + strlen(from),
		    strlen(reterr->msg + strlen(from)) + 1);
	return render_is_refusal(rc) ? rc : -ECOMM;
}

static int
render_once(struct reader *r, const struct render_job *job,
    struct rendering *ret, struct err *reterr)
{
	int rc;

	*ret = (struct rendering){ 0 };
	if ((rc = reader_revive(r, reterr)) == 0 &&
	    (rc = send_render(r, job, reterr)) == 0)
		rc = job->wants_ids ? recv_ids(r, ret, reterr) :
		    recv_rendering(r, ret, reterr);
	if (rc < 0) {
		rendering_done(ret);
		rc = fail_rendering(&r->p, rc, reterr);
	}
	return rc;
}

int
reader_render(void *arg, const struct render_job *job, struct rendering *ret,
    struct err *reterr)
{
	struct reader *r = arg;
	int rc;

	if (job->njinja > RENDER_MAX_TEMPLATE)
		return err_set(reterr, ERR_RUN, -E2BIG, "it has %zu bytes: the "
		    "most are %d", job->njinja, RENDER_MAX_TEMPLATE);
	if (job->nvars > VARIABLES_MAX_BYTES || job->ntail > job->nvars)
		return err_set(reterr, ERR_RUN, -EFBIG, "a conversation of %zu "
		    "bytes: the most are %" PRIu64, job->nvars,
		    (uint64_t)VARIABLES_MAX_BYTES);
	if (r->p.poll != NULL && (rc = r->p.poll(reterr)) < 0)
		return rc;
	rc = render_once(r, job, ret, reterr);
	if (rc != -ECOMM || !r->p.was_killed || r->conf->recover == 0)
		return rc;
	log_warnx("%s; another one is started", reterr->msg);
	return render_once(r, job, ret, reterr);
}
