/* coordinator/text/tokenizer.h - text <-> token ids, from a GGUF's vocabulary.
 * Owns: the vocabulary's index.  Called by run, eval, tokenize, detokenize.
 * Needs only the metadata: any architecture, no tensors. */
#ifndef COORDINATOR_TEXT_TOKENIZER_H
#define COORDINATOR_TEXT_TOKENIZER_H

#include "config/err.h"
#include "layers/gguf/gguf.h"

enum token_kind {		/* tokenizer.ggml.token_type */
	TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3,
	TOKEN_USER = 4, TOKEN_UNUSED = 5, TOKEN_BYTE = 6
};

struct tokenizer;

/* SentencePiece-style ("llama") or byte-level BPE ("gpt2").  -ENOTSUP with
 * ERR_MODEL names an unknown tokenizer.ggml.model or .pre; -EBADMSG a
 * vocabulary whose arrays disagree.  g must stay open while ret lives. */
int tokenizer_open(const struct gguf *g, struct tokenizer **ret,
    struct err *reterr);
void tokenizer_close(struct tokenizer *t);

uint32_t tokenizer_size(const struct tokenizer *t);
int32_t tokenizer_bos(const struct tokenizer *t);	/* -1 = none */
int32_t tokenizer_eos(const struct tokenizer *t);	/* -1 = none */
int tokenizer_is_end(const struct tokenizer *t, uint32_t id); /* eos, eot */
/* The control or user-defined token with this text; -1 = none. */
int32_t tokenizer_special(const struct tokenizer *t, const char *text);
int tokenizer_adds_bos(const struct tokenizer *t);
enum token_kind tokenizer_kind(const struct tokenizer *t, uint32_t id);
/* The token's text as stored. */
struct gguf_str tokenizer_text(const struct tokenizer *t, uint32_t id);

/* Encode nbytes of text (any bytes: what is not UTF-8 becomes tokens of these
 * very bytes, so that decoding gives them back).
 * bos: put BOS in front if the vocabulary says so.  special: control tokens
 * written in the text are parsed; user-defined ones always are.
 * *ret_ids is malloc'ed, *ret_n ids.  O(n log n). */
int tokenizer_encode(const struct tokenizer *t, const char *text,
    size_t nbytes, int bos, int special, uint32_t **ret_ids, size_t *ret_n,
    struct err *reterr);

/* A stretch of a text: whose is it? */
struct text_part {
	const char *text;
	size_t nbytes;
	int special;		/* control tokens written in it are parsed */
};

enum {
	ENCODE_BOS = 1,		/* BOS in front if the vocabulary says so */
	ENCODE_MORE = 2		/* another text is in front: no space prefix */
};

/* The same for a text made of parts: as if it were one, but that nobody writes
 * control tokens who may not, and none comes about at a border. */
int tokenizer_encode_parts(const struct tokenizer *t,
    const struct text_part *part, size_t nparts, int flags,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr);

/* Streaming decoder: never splits a UTF-8 character. */
struct detokenizer {
	const struct tokenizer *t;
	uint8_t held[8];	/* bytes of an unfinished character */
	unsigned nheld;
	int at_start;		/* the first token's space prefix is dropped */
	int special;		/* control tokens are shown */
};

/* at_start: decoding begins at the beginning of a text (strip the prefix
 * space that encoding added). */
void detokenizer_init(struct detokenizer *d, const struct tokenizer *t,
    int at_start, int special);

/* Append id; out (>= detokenizer_max(t)) receives whole characters only.
 * Returns the byte count; an id outside the vocabulary is -EINVAL.
 * Bytes that can never become UTF-8 come out as they are. */
int detokenizer_push(struct detokenizer *d, uint32_t id, char *out,
    size_t outlen);
/* What is still held, as raw bytes. */
int detokenizer_flush(struct detokenizer *d, char *out, size_t outlen);
size_t detokenizer_max(const struct tokenizer *t);

#endif
