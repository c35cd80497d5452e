/* coordinator/text/tokenizer.h - a vocabulary: text to token ids and back.
 * Owns: what the reader handed over of the vocabulary (pieces.h), from which
 * ids become text; texts become ids by a function, which asks the reader.  Called
 * by engine/ and by the commands tokenize, detokenize and eval.  Does not parse
 * files: encoder.h does. */
#ifndef COORDINATOR_TEXT_TOKENIZER_H
#define COORDINATOR_TEXT_TOKENIZER_H

#include "config/err.h"
#include "layers/gguf/gguf.h"
#include "render.h"
#include "token.h"

struct losses;
struct pieces;
struct tokenizer;

/* Encode parts, as tokenizer_encode_parts(), or with ENCODE_COUNT say how many
 * ids each has: *ret_n is nparts then.  *ret_lost is zeroed before. */
typedef int tokenizer_encode_fn(void *arg, const struct text_part *part,
    size_t nparts, int flags, uint32_t **ret_ids, size_t *ret_n,
    struct losses *ret_lost, struct err *reterr);

/* A vocabulary whose texts and conversations these functions encode.  p is taken
 * over, in any case. */
int tokenizer_open_with(struct pieces *p, tokenizer_encode_fn *encode,
    render_fn *render, void *arg, struct tokenizer **ret, struct err *reterr);
/* The vocabulary of g, which must stay open, all in this process: for tests.
 * Errors as of encoder_open(). */
int tokenizer_open(const struct gguf *g, struct tokenizer **ret,
    struct err *reterr);
void tokenizer_close(struct tokenizer *t);

/* Number of tokens; ids are 0 to this - 1. */
uint32_t tokenizer_size(const struct tokenizer *t);
/* Bytes of the longest token's text. */
size_t tokenizer_max_bytes(const struct tokenizer *t);
int32_t tokenizer_bos(const struct tokenizer *t);	/* or NO_TOKEN */
int32_t tokenizer_eos(const struct tokenizer *t);	/* or NO_TOKEN */
/* Does the token end an answer? */
int tokenizer_is_end(const struct tokenizer *t, uint32_t id);
/* All ids that end an answer: [returned number]. */
unsigned tokenizer_ends(const struct tokenizer *t, const int32_t **ret);
/* The control or user-defined token with this text, or NO_TOKEN. */
int32_t tokenizer_special(const struct tokenizer *t, const char *text);
int tokenizer_adds_bos(const struct tokenizer *t);
/* Does encoding put a space in front of a text? */
int tokenizer_adds_space(const struct tokenizer *t);
/* TOKEN_UNKNOWN for an id outside the vocabulary. */
enum token_kind tokenizer_kind(const struct tokenizer *t, uint32_t id);
/* The token's text as stored; empty for an id outside the vocabulary. */
struct gguf_str tokenizer_text(const struct tokenizer *t, uint32_t id);

/* Decode one token (id < tokenizer_size()) into out, which holds
 * tokenizer_max_bytes().  Returns the byte count.  Control and unknown tokens
 * give nothing unless show_control.  The bytes need not be whole UTF-8
 * characters: see detokenizer.h. */
size_t tokenizer_decode(const struct tokenizer *t, uint32_t id,
    int show_control, char *out);

/* Encode nbytes of text.  Any bytes are allowed: those that are not UTF-8
 * become byte tokens, so that decoding restores them.  A byte that has no token
 * becomes the unknown token, or is left out, as in the family's own tokenizer;
 * plain text never gives a control token.
 * bos: put BOS in front if the vocabulary asks for it and the text does not
 * begin with it.  special: control
 * tokens written in the text are parsed; user-defined tokens always are.
 * *ret_ids is malloc'ed, *ret_n ids.  O(n log n). */
int tokenizer_encode(const struct tokenizer *t, const char *text,
    size_t nbytes, int bos, int special, uint32_t **ret_ids, size_t *ret_n,
    struct err *reterr);

/* After tokenizer_open(): let poll() end encoding, with its error. */
void tokenizer_set_poll(struct tokenizer *t, tokenizer_poll_fn *poll);
/* The most bytes of text that so many tokens hold, where every byte has a
 * token: a longer text need not be encoded to see that it does not fit. */
size_t tokenizer_max_text(const struct tokenizer *t, uint32_t ntokens);

/* Log one note on what encoding could not keep of the texts since the last
 * call: bytes without a token or that are not UTF-8, U+2581. */
void tokenizer_note_losses(const struct tokenizer *t);
/* The same counts, for a caller that has noted some of these texts before. */
struct losses tokenizer_take_losses(const struct tokenizer *t);
/* Drop the counts, of texts that are encoded again. */
void tokenizer_forget_losses(const struct tokenizer *t);

/* Encode the concatenation of parts.  Control tokens are parsed only where
 * they lie within one part whose `special` is set: an untrusted part cannot
 * write one, nor can the border of two parts make one.  All ids are below
 * tokenizer_size(). */
int tokenizer_encode_parts(const struct tokenizer *t,
    const struct text_part *part, size_t nparts, int flags,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr);

/* Run a chat template, and encode what it wrote if job->wants_ids.  Errors as of
 * render_fn. */
int tokenizer_render(const struct tokenizer *t, const struct render_job *job,
    struct rendering *ret, struct err *reterr);

/* How many ids each of the texts has by itself; UINT32_MAX = it cannot be
 * encoded.  At most TOKENIZER_MAX_COUNTED at once. */
enum { TOKENIZER_MAX_COUNTED = 1024 };
int tokenizer_count(const struct tokenizer *t, const struct text_part *text,
    size_t n, int flags, uint32_t *counts, struct err *reterr);

#endif
