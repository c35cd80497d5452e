/* coordinator/text/encoder.h - text to token ids, with a GGUF's vocabulary.
 * Owns: the vocabulary's index and the rules of encoding.  Called by the reader,
 * which parses the file; the coordinator has tokenizer.h.
 * Needs only the file's metadata: any architecture, no tensors. */
#ifndef COORDINATOR_TEXT_ENCODER_H
#define COORDINATOR_TEXT_ENCODER_H

#include "config/err.h"
#include "layers/gguf/gguf.h"
#include "losses.h"
#include "render.h"
#include "settings.h"
#include "split.h"
#include "vocab.h"

struct bpe;

enum { ENCODER_MAX_ENDS = 40 };

/* Read by pieces.c. */
struct encoder {
	struct vocab v;
	struct bpe *bpe;		/* NULL = SentencePiece-style */
	struct settings set;
	struct specials specials;
	int32_t template_end;		/* the marker behind an answer in it */
	int32_t end[ENCODER_MAX_ENDS];	/* [nend] */
	unsigned nend;
};

/* Open a SentencePiece-style ("llama") or byte-level BPE ("gpt2") vocabulary.
 * -ENOTSUP with ERR_MODEL: unknown tokenizer.ggml.model or .pre; -EBADMSG: the
 * vocabulary's arrays disagree.  g must stay open while ret lives. */
int encoder_open(const struct gguf *g, struct encoder **ret,
    struct err *reterr);
void encoder_close(struct encoder *t);

/* Let poll() end encoding, with its error. */
void encoder_set_poll(struct encoder *t, tokenizer_poll_fn *poll);

/* As tokenizer_encode_parts(), also with ENCODE_COUNT; *ret_lost is what could not be kept. */
int encoder_encode_parts(const struct encoder *t,
    const struct text_part *part, size_t nparts, int flags,
    uint32_t **ret_ids, size_t *ret_n, struct losses *ret_lost,
    struct err *reterr);

/* Fill in r's ids, as job says, from its spans. */
int encoder_encode_rendering(const struct encoder *t,
    const struct render_job *job, struct rendering *r, struct err *reterr);

#endif
