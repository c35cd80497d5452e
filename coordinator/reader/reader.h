/* coordinator/reader/reader.h - a model's file as a confined child reads it.
 * Owns: the open file or files, the child (proc.h), and what it has handed
 * over: the directory, the hyper-parameters, the vocabulary.  Called by engine/
 * and by the commands that need no engine.
 *
 * The coordinator opens, and looks at nothing of a file but what the child hands
 * over, which is checked once: layers/gguf/flat.h, layers/hparams.h,
 * coordinator/text/pieces.h.  The child can be lost at any time.  A request that
 * was in work then fails (-ECOMM); the next one starts another child, which
 * reads the same open files again. */
#ifndef COORDINATOR_READER_READER_H
#define COORDINATOR_READER_READER_H

#include "config/conf.h"
#include "coordinator/cap/process.h"
#include "coordinator/text/render.h"
#include "coordinator/text/tokenizer.h"
#include "layers/model.h"

struct reader;

struct reader_how {
	tokenizer_poll_fn *poll;	/* can end every wait for the child, with
					 * its error; NULL = none */
	int wants_vocab;		/* reader_tokenizer() will be called: the
					 * child goes on at once */
	/* Called while the child parses; NULL = nothing to do meanwhile. */
	int (*meanwhile)(const struct conf *c, struct err *reterr);
};

/* Open c's model.  Errors as of gguf_open() and of meanwhile(); -ECOMM: the
 * child was lost, and, where --recover allows, a second one as well. */
int reader_open(const struct conf *c, const struct reader_how *how,
    struct reader **ret, struct err *reterr);
/* A child that renders chat templates, and reads no model. */
int reader_open_bare(const struct conf *c, tokenizer_poll_fn *poll,
    struct reader **ret, struct err *reterr);
/* End the child; accepts NULL. */
void reader_close(struct reader *r);

/* Replace poll. */
void reader_set_poll(struct reader *r, tokenizer_poll_fn *poll);

/* The directory, without elements of arrays: layers/gguf/flat.h. */
const struct gguf *reader_directory(const struct reader *r);
/* The model, or why the file is none that runs here; the caller closes it. */
int reader_model(const struct reader *r, struct model **ret,
    struct err *reterr);

/* The vocabulary, or why there is none; called once.  It lives as long as r;
 * encoding sends the text to the child.  -ECOMM as of reader_open(). */
int reader_tokenizer(struct reader *r, struct tokenizer **ret,
    struct err *reterr);

/* A render_fn; arg is the reader.  A template that fails is an error of ERR_RUN, in
 * its own words; -ECOMM: the child was lost, and, where --recover allows, a second
 * one as well. */
render_fn reader_render;

/* Append the child's row of the memory table. */
void reader_add_row(const struct reader *r, struct process_list *l);

#endif
