/* coordinator/text/tokenizer.c - a sealed vocabulary, and a function that
 * encodes. */
#include "tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "losses.h"
#include "pieces.h"

struct tokenizer {
	struct pieces *pieces;
	tokenizer_encode_fn *encode;
	render_fn *render;
	void *arg;			/* of both */
	struct losses *lost;		/* since the last note */
	/* tokenizer_open() only: */
	struct encoder *encoder;
	struct renderer *renderer;
	void *block;
};

int
tokenizer_open_with(struct pieces *p, tokenizer_encode_fn *encode,
    render_fn *render, void *arg, struct tokenizer **ret, struct err *reterr)
{
	struct tokenizer *t = calloc(1, sizeof(*t));

	if (t == NULL || (t->lost = calloc(1, sizeof(*t->lost))) == NULL) {
		free(t);
		pieces_close(p);
		return err_nomem(reterr, "the tokenizer");
	}
	t->pieces = p;
	t->encode = encode;
	t->render = render;
	t->arg = arg;
	*ret = t;
	return 0;
}

void
tokenizer_close(struct tokenizer *t)
{
	if (t == NULL)
		return;
	pieces_close(t->pieces);
	renderer_close(t->renderer);
	encoder_close(t->encoder);
	free(t->block);
	free(t->lost);
	free(t);
}

/* --- in one process --- */

static int
encode_here(void *arg, const struct text_part *part, size_t nparts, int flags,
    uint32_t **ret_ids, size_t *ret_n, struct losses *ret_lost,
    struct err *reterr)
{
	const struct tokenizer *t = arg;

	return encoder_encode_parts(t->encoder, part, nparts, flags, ret_ids,
	    ret_n, ret_lost, reterr);
}

static int
render_here(void *arg, const struct render_job *job, struct rendering *ret,
    struct err *reterr)
{
	const struct tokenizer *t = arg;

	int rc = renderer_run(t->renderer, job, ret, reterr);

	if (rc == 0 && job->wants_ids && (rc = encoder_encode_rendering(
	    t->encoder, job, ret, reterr)) < 0)
		rendering_done(ret);
	return rc;
}

static int
open_block(const struct encoder *e, void **ret_block, struct pieces **ret,
    struct err *reterr)
{
	uint64_t nbytes;
	int rc;

	if ((rc = pieces_bytes(e, &nbytes, reterr)) < 0)
		return rc;
	if ((*ret_block = malloc(nbytes)) == NULL)
		return err_nomem(reterr, "the vocabulary, %" PRIu64 " bytes",
		    nbytes);
	pieces_write(e, *ret_block);
	return pieces_open(*ret_block, nbytes, ret, reterr);
}

int
tokenizer_open(const struct gguf *g, struct tokenizer **ret,
    struct err *reterr)
{
	struct encoder *e = NULL;
	struct tokenizer *t = NULL;
	struct pieces *p = NULL;
	void *block = NULL;
	int rc;

	if ((rc = encoder_open(g, &e, reterr)) < 0 ||
	    (rc = open_block(e, &block, &p, reterr)) < 0 ||
	    (rc = tokenizer_open_with(p, encode_here, render_here, NULL, &t,
	    reterr)) < 0) {
		encoder_close(e);
		free(block);
		return rc;
	}
	t->arg = t;
	t->encoder = e;
	t->block = block;
	if ((t->renderer = renderer_open()) == NULL) {
		tokenizer_close(t);
		return err_nomem(reterr, "a chat template");
	}
	*ret = t;
	return 0;
}

void
tokenizer_set_poll(struct tokenizer *t, tokenizer_poll_fn *poll)
{
	if (t->encoder != NULL)
		encoder_set_poll(t->encoder, poll);
}

/* --- questions --- */

uint32_t
tokenizer_size(const struct tokenizer *t)
{
	return pieces_size(t->pieces);
}

size_t
tokenizer_max_bytes(const struct tokenizer *t)
{
	return pieces_max_bytes(t->pieces);
}

int32_t
tokenizer_bos(const struct tokenizer *t)
{
	return pieces_bos(t->pieces);
}

int32_t
tokenizer_eos(const struct tokenizer *t)
{
	return pieces_eos(t->pieces);
}

unsigned
tokenizer_ends(const struct tokenizer *t, const int32_t **ret)
{
	return pieces_ends(t->pieces, ret);
}

int
tokenizer_is_end(const struct tokenizer *t, uint32_t id)
{
	const int32_t *end;
	unsigned n = pieces_ends(t->pieces, &end), i;

	for (i = 0; i < n; i++)
		if ((uint32_t)end[i] == id)
			return 1;
	return 0;
}

int32_t
tokenizer_special(const struct tokenizer *t, const char *text)
{
	return pieces_special(t->pieces, text);
}

int
tokenizer_adds_bos(const struct tokenizer *t)
{
	return pieces_adds_bos(t->pieces);
}

int
tokenizer_adds_space(const struct tokenizer *t)
{
	return pieces_adds_space(t->pieces);
}

enum token_kind
tokenizer_kind(const struct tokenizer *t, uint32_t id)
{
	return pieces_kind(t->pieces, id);
}

struct gguf_str
tokenizer_text(const struct tokenizer *t, uint32_t id)
{
	return pieces_text(t->pieces, id);
}

size_t
tokenizer_decode(const struct tokenizer *t, uint32_t id, int show_control,
    char *out)
{
	return pieces_decode(t->pieces, id, show_control, out);
}

size_t
tokenizer_max_text(const struct tokenizer *t, uint32_t ntokens)
{
	return (size_t)ntokens * MAX(tokenizer_max_bytes(t), (size_t)1);
}

void
tokenizer_forget_losses(const struct tokenizer *t)
{
	*t->lost = (struct losses){ 0 };
}

struct losses
tokenizer_take_losses(const struct tokenizer *t)
{
	const struct losses lost = *t->lost;

	tokenizer_forget_losses(t);
	return lost;
}

void
tokenizer_note_losses(const struct tokenizer *t)
{
	losses_note(t->lost);
	tokenizer_forget_losses(t);
}

/* --- encoding --- */

int
tokenizer_encode_parts(const struct tokenizer *t,
    const struct text_part *part, size_t nparts, int flags,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	struct losses lost = { 0 };
	uint32_t *ids;
	size_t n;
	int rc;

	if ((rc = t->encode(t->arg, part, nparts, flags, &ids, &n, &lost,
	    reterr)) < 0)
		return rc;
	losses_add(t->lost, &lost);
	*ret_ids = ids;
	*ret_n = n;
	return 0;
}

int
tokenizer_encode(const struct tokenizer *t, const char *text,
    size_t nbytes, int bos, int special, uint32_t **ret_ids, size_t *ret_n,
    struct err *reterr)
{
	struct text_part part = { text, nbytes, special };

	return tokenizer_encode_parts(t, &part, 1, bos ? ENCODE_BOS : 0,
	    ret_ids, ret_n, reterr);
}

int
tokenizer_render(const struct tokenizer *t, const struct render_job *job,
    struct rendering *ret, struct err *reterr)
{
	int rc = t->render(t->arg, job, ret, reterr);

	if (rc == 0)
		losses_add(t->lost, &ret->lost);
	return rc;
}

int
tokenizer_count(const struct tokenizer *t, const struct text_part *text,
    size_t n, int flags, uint32_t *counts, struct err *reterr)
{
	struct losses lost = { 0 };
	uint32_t *got;
	size_t ngot;
	int rc;

	if ((rc = t->encode(t->arg, text, n, flags | ENCODE_COUNT, &got, &ngot,
	    &lost, reterr)) < 0)
		return rc;
	memcpy(counts, got, n * sizeof(*counts));
	free(got);
	return 0;
}
