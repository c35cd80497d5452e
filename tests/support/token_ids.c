/* tests/support/token_ids.c - see token_ids.h. */
#include "token_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t.h"

void
vocab_close(struct gguf **g, struct tokenizer **t)
{
	tokenizer_close(*t);
	gguf_close(*g);
	*t = NULL;
	*g = NULL;
}

int
vocab_open(struct gguf **g, struct tokenizer **t, const char *path,
    struct err *reterr)
{
	vocab_close(g, t);
	t_ok(gguf_open(path, g, reterr), reterr);
	return tokenizer_open(*g, t, reterr);
}

int
bpe_vocab_open(struct gguf **g, struct tokenizer **t,
    const struct bpe_vocab *v, const char *name, struct err *reterr)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", t_tmpdir(), name);
	bpe_vocab_save(v, path);
	return vocab_open(g, t, path, reterr);
}

void
check_ids(const struct tokenizer *t, const char *text, int special, size_t n,
    const uint32_t *want)
{
	uint32_t *ids;
	size_t got, i;
	struct err e;

	t_ok(tokenizer_encode(t, text, strlen(text), 0, special, &ids,
	    &got, &e), &e);
	for (i = 0; i < got && i < n; i++)
		ck_assert_msg(ids[i] == want[i], "\"%s\": id %zu is %u, not %u",
		    text, i, ids[i], want[i]);
	ck_assert_msg(got == n, "\"%s\": %zu ids, not %zu", text, got, n);
	free(ids);
}

void
check_pieces(const struct tokenizer *t, const char *text, int special,
    const char *want)
{
	char got[512] = "";
	struct gguf_str s;
	uint32_t *ids;
	size_t n, i;
	struct err e;

	t_ok(tokenizer_encode(t, text, strlen(text), 0, special, &ids, &n,
	    &e), &e);
	for (i = 0; i < n; i++) {
		s = tokenizer_text(t, ids[i]);
		ck_assert_uint_lt(strlen(got) + s.len + 1, sizeof(got));
		if (i > 0)
			strcat(got, "|");
		strncat(got, s.data, s.len);
	}
	ck_assert_msg(strcmp(got, want) == 0, "\"%s\" is %s, not %s", text,
	    got, want);
	free(ids);
}
