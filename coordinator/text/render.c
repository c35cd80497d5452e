/* coordinator/text/render.c - runs a chat template. */
#include "render.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/jinja/jinja.h"
#include "variables.h"

static const struct jinja_limits limits = JINJA_LIMITS;

struct renderer {
	char *jinja;		/* [n]: the source of program */
	size_t n;
	struct jinja_program *program;	/* NULL = none yet */
};

struct renderer *
renderer_open(void)
{
	return calloc(1, sizeof(struct renderer));
}

static void
forget(struct renderer *r)
{
	jinja_close(r->program);
	free(r->jinja);
	*r = (struct renderer){ 0 };
}

void
renderer_close(struct renderer *r)
{
	if (r == NULL)
		return;
	forget(r);
	free(r);
}

void
rendering_done(struct rendering *r)
{
	free(r->text);
	free(r->span);
	free(r->ids);
	*r = (struct rendering){ 0 };
}

int
render_is_refusal(int rc)
{
	return rc == -EBADMSG || rc == -EINVAL || rc == -ECANCELED ||
	    rc == -E2BIG;
}

/* A conversation has one template: compile it once. */
static int
compile(struct renderer *r, const struct render_job *job, struct err *reterr)
{
	int rc;

	if (r->program != NULL && r->n == job->njinja &&
	    memcmp(r->jinja, job->jinja, r->n) == 0)
		return 0;
	forget(r);
	if ((r->jinja = malloc(job->njinja + 1)) == NULL)
		return err_nomem(reterr, "a chat template of %zu bytes",
		    job->njinja);
	memcpy(r->jinja, job->jinja, job->njinja);
	r->n = job->njinja;
	if ((rc = jinja_compile(r->jinja, r->n, &limits, &r->program,
	    reterr)) < 0)
		forget(r);
	return rc;
}

/* --- what comes out --- */

/* Room for n more elements in *v, of which *cap fit. */
static int
grow(void **v, size_t used, size_t n, size_t *cap, size_t size)
{
	size_t want = MAX(2 * *cap, used + n);
	void *more;

	if (used + n <= *cap)
		return 0;
	if ((more = reallocarray(*v, want, size)) == NULL)
		return -ENOMEM;
	*v = more;
	*cap = want;
	return 0;
}

struct sink {
	struct rendering *to;
	size_t text_cap, span_cap;
};

/* A jinja_sink. */
static int
take(void *arg, const char *s, size_t n, enum jinja_origin by)
{
	const uint64_t is_template = by == JINJA_TEMPLATE;
	struct sink *k = arg;
	struct rendering *r = k->to;

	if (n == 0)
		return 0;
	if (grow((void **)&r->text, r->nbytes, n, &k->text_cap, 1) < 0 ||
	    grow((void **)&r->span, r->nspans, 1, &k->span_cap,
	    sizeof(*r->span)) < 0)
		return -ENOMEM;
	memcpy(r->text + r->nbytes, s, n);
	r->nbytes += n;
	if (r->nspans == 0 ||
	    r->span[r->nspans - 1].is_template != is_template) {
		if (r->nspans == RENDER_MAX_SPANS)
			return -EFBIG;
		r->span[r->nspans++] = (struct render_span){ 0, is_template };
	}
	r->span[r->nspans - 1].nbytes += n;
	return 0;
}

static int
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Cut off what the template wrote behind the last message, whose text it may have
 * stripped: the blanks at its end come back. */
static int
cut_behind(struct sink *k, const char *tail, size_t ntail, struct err *reterr)
{
	struct rendering *r = k->to;
	size_t bare = ntail, last;

	while (bare > 0 && is_blank(tail[bare - 1]))
		bare--;
	if (r->nspans > 0 && r->span[r->nspans - 1].is_template)
		r->nbytes -= r->span[--r->nspans].nbytes;
	last = r->nspans > 0 ? r->span[r->nspans - 1].nbytes : 0;
	while (last > 0 && is_blank(r->text[r->nbytes - 1])) {
		r->span[r->nspans - 1].nbytes--;
		r->nbytes--;
		last--;
	}
	/* No text to recognise: the span may be another message's. */
	if (bare == 0 || last == 0 || memcmp(r->text + r->nbytes - MIN(last, bare),
	    tail + bare - MIN(last, bare), MIN(last, bare)) != 0)
		return err_set(reterr, ERR_RUN, -EINVAL, "it does not write "
		    "the last message's text at its end, so that an answer "
		    "cannot go on there");
	return take(k, tail + bare, ntail - bare, JINJA_INPUT) < 0 ?
	    err_nomem(reterr, "a rendering") : 0;
}

static int
run(const struct renderer *r, const struct render_job *job,
    struct rendering *ret, struct err *reterr)
{
	struct sink k = { .to = ret };
	struct jinja_data *d;
	int rc;

	if ((rc = jinja_data_open(&limits, &d, reterr)) < 0)
		return rc;
	if ((rc = variables_read(job->vars, job->nvars, d, reterr)) == 0)
		rc = jinja_render(r->program, d, job->now, take, &k, reterr);
	jinja_data_close(d);
	if (rc == -EFBIG)
		return err_set(reterr, ERR_RUN, -E2BIG, "template and messages "
		    "take turns more than %d times in its text",
		    RENDER_MAX_SPANS);
	/* Its limit may exceed the cap of this process. */
	if (rc == -ENOMEM)
		return err_set(reterr, ERR_RUN, -E2BIG, "it needs more memory "
		    "than the reader has left: --reader-cap gives more");
	if (rc == 0 && job->tail != NULL)
		rc = cut_behind(&k, job->tail, job->ntail, reterr);
	return rc;
}

int
renderer_run(struct renderer *r, const struct render_job *job,
    struct rendering *ret, struct err *reterr)
{
	int rc;

	*ret = (struct rendering){ 0 };
	if ((rc = compile(r, job, reterr)) < 0 ||
	    (rc = run(r, job, ret, reterr)) < 0)
		rendering_done(ret);
	return rc;
}
