/* coordinator/text/settings.h - what a GGUF's metadata says of its vocabulary.
 * Owns nothing.  Called by tokenizer.c. */
#ifndef COORDINATOR_TEXT_SETTINGS_H
#define COORDINATOR_TEXT_SETTINGS_H

#include "vocab.h"

enum { MAX_LISTED_ENDS = 16 };

struct settings {
	int32_t bos, eos, eot, eom;	/* or NO_TOKEN */
	/* Further tokens like eos: eos_token_ids, which Ollama writes. */
	int32_t listed[MAX_LISTED_ENDS];	/* [nlisted] */
	unsigned nlisted;
	int32_t unk;			/* or NO_TOKEN */
	int add_bos;			/* -1 = the file does not say */
	int space_prefix;
	int rstrip;			/* drop blanks after special tokens */
};

/* Read the keys tokenizer.ggml.* that this program uses.  A key that is missing
 * has the default that llama.cpp gives it.  A key with an unusable value is as
 * good as missing: a sound model needs none of them.  One note names such
 * keys. */
void settings_read(const struct gguf *g, const struct vocab *v, int is_spm,
    struct settings *ret);

#endif
