/* coordinator/text/render.h - a conversation as its chat template writes it: text
 * in spans, or token ids.
 * Owns: the last template, compiled.  Called by the reader; the types also by
 * those who ask it.  Does not know where the template comes from.
 *
 * A span says who wrote it.  Control tokens are parsed in the template's spans
 * only: the same letters within a message are text. */
#ifndef COORDINATOR_TEXT_RENDER_H
#define COORDINATOR_TEXT_RENDER_H

#include <time.h>

#include "config/err.h"
#include "losses.h"
#include "token.h"

enum {
	RENDER_MAX_TEMPLATE = 256 << 10,	/* bytes of a template */
	RENDER_MAX_OUTPUT = 16 << 20,		/* and of a rendering */
	RENDER_MAX_SPANS = 1 << 18		/* of it */
};

struct render_job {
	const char *jinja;	/* the template, [njinja] */
	size_t njinja;
	const char *vars;	/* a block of variables.h, [nvars] */
	size_t nvars;
	/* The last message's text, which the rendering must end with: what the
	 * template writes behind it is cut off.  It is more than white space.
	 * NULL = all stays. */
	const char *tail;
	size_t ntail;
	const struct tm *now;	/* for strftime_now(); NULL = no such function */
	int wants_ids;		/* else spans */
	int special;		/* ids: control tokens are parsed in the input,
				 * too */
	int flags;		/* ids: ENCODE_* */
};

struct render_span {
	uint64_t nbytes;
	uint64_t is_template;	/* 1; 0: the input wrote it */
};

struct rendering {
	/* Without wants_ids: text[nbytes], the sum of span[nspans]; neighbours
	 * are of two origins. */
	char *text;
	size_t nbytes;
	struct render_span *span;
	size_t nspans;
	/* With wants_ids: ids[nids]. */
	uint32_t *ids;
	size_t nids;
	struct losses lost;
};

void rendering_done(struct rendering *r);

/* A function that renders: in this process, or in the reader.  -EBADMSG, -EINVAL:
 * the template is none, or fails; -ECANCELED: it raised its own exception; -E2BIG:
 * beyond a limit.  Others: the rendering could not be tried. */
typedef int render_fn(void *arg, const struct render_job *job,
    struct rendering *ret, struct err *reterr);
/* Is it an error of the template, with these messages? */
int render_is_refusal(int rc);

/* The compiled template. */
struct renderer;

/* NULL: no memory. */
struct renderer *renderer_open(void);
void renderer_close(struct renderer *r);
/* Render to spans, also with wants_ids. */
int renderer_run(struct renderer *r, const struct render_job *job,
    struct rendering *ret, struct err *reterr);

#endif
