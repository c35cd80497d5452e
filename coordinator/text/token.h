/* coordinator/text/token.h - basic types of tokens and of text to encode.
 * Shared by the tokenizer's callers and by each of its parts.  Does not
 * depend on a vocabulary. */
#ifndef COORDINATOR_TEXT_TOKEN_H
#define COORDINATOR_TEXT_TOKEN_H

#include "config/base.h"

enum { NO_TOKEN = -1 };		/* where an int32_t holds an optional id */

enum token_kind {		/* tokenizer.ggml.token_type */
	TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3,
	TOKEN_USER = 4, TOKEN_UNUSED = 5, TOKEN_BYTE = 6
};

/* Called now and then during long work; a negative return ends it. */
struct err;
typedef int tokenizer_poll_fn(struct err *reterr);

/* A piece of a text, from a trusted author or not. */
struct text_part {
	const char *text;
	size_t nbytes;
	int special;		/* control tokens written in it are parsed */
};

/* How parts are encoded. */
enum {
	ENCODE_BOS = 1,		/* put BOS in front if the vocabulary asks and
				 * the parts do not begin with it */
	ENCODE_BOS_ALWAYS = 4,	/* the same, if there is one */
	ENCODE_MORE = 2,	/* the text continues another: no space prefix */
	ENCODE_COUNT = 8	/* not the ids of all parts together, but how
				 * many each part has by itself */
};

#endif
