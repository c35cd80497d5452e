/* tests/fuzz/tokenizer.c - fuzzer of the tokenizer: any bytes can be encoded, and
 * decode to themselves, with the demo's vocabulary (found as in t_data()) and with a
 * byte-level BPE vocabulary, whose pre-tokenizer the first byte selects.  A libFuzzer
 * target; with fuzz/main.c it replays files. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/text/detokenizer.h"
#include "coordinator/text/pre.h"
#include "tests/support/bpe_vocab.h"

#define MARK	"\xe2\x96\x81"	/* U+2581, which decodes as a space */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MAX_NAMES = 64 };

/* Merges within words, and merges across the boundaries that pre-tokenizers set. */
static const char *const merges[] = {
	"\xc4\xa0 t", "h e", "\xc4\xa0t he", "i n", "in \xc4\xa0", "1 2", "12 3",
	"\xc4\xa0 \xc4\xa0", "\xc4\x8a \xc4\x8a", "! !", "' s", "\xc3\x83 \xc2\xa9",
	"e \xc3\x83", "\xc3\xaf \xc2\xbf", "\xc3\xaf\xc2\xbf \xc2\xbd", "a 1", ". \xc4\x8a"
};
static const struct bpe_token specials[] = {
	{ "<|end|>", TOKEN_CONTROL }, { "<hi>", TOKEN_USER },
	{ "   ", TOKEN_USER }, { "hi><", TOKEN_USER }, { "><hi", TOKEN_USER }
};

static const struct tokenizer *
bpe_vocabulary(unsigned choice)
{
	static struct tokenizer *t[MAX_NAMES];
	static struct gguf *g[MAX_NAMES];	/* never closed: t refers to them */
	char path[] = "/tmp/straddle-fuzz-XXXXXX";
	struct bpe_vocab v = { .merge = merges, .nmerges = NITEMS(merges),
	    .extra = specials, .nextra = NITEMS(specials) };
	unsigned n = 0;
	struct err e;
	int fd;

	while (n < MAX_NAMES && pre_name(n) != NULL)
		n++;
	choice %= n;
	if (t[choice] != NULL)
		return t[choice];
	v.pre = pre_name(choice);
	if ((fd = mkstemp(path)) < 0)
		err(1, "%s", path);
	close(fd);
	bpe_vocab_save(&v, path);
	if (gguf_open(path, &g[choice], &e) < 0 ||
	    tokenizer_open(g[choice], &t[choice], &e) < 0)
		errx(1, "%s", e.msg);
	unlink(path);
	return t[choice];
}

static const struct tokenizer *
vocabulary(void)
{
	static struct tokenizer *t;
	static struct gguf *g;		/* never closed: t refers to it */
	const char *dir = getenv("STRADDLE_TESTS");
	struct err e;
	char path[512];

	if (t != NULL)
		return t;
	snprintf(path, sizeof(path), "%s/data/kjv-q8_0.gguf",
	    dir != NULL ? dir : "tests");
	if (gguf_open(path, &g, &e) < 0 || tokenizer_open(g, &t, &e) < 0)
		errx(1, "%s", e.msg);
	return t;
}

static void
require(int ok, const char *complaint)
{
	if (!ok) {
		fprintf(stderr, "fuzz_tokenizer: %s\n", complaint);
		abort();
	}
}

/* Write the text that decoding must give: each mark becomes a space. */
static size_t
replace_marks(const char *text, size_t n, char *out)
{
	size_t i, len = 0;

	for (i = 0; i < n; i++) {
		int mark = n - i >= 3 && memcmp(text + i, MARK, 3) == 0;

		out[len++] = mark ? ' ' : text[i];
		i += mark ? 2 : 0;
	}
	return len;
}

static void
check_decoding(const struct tokenizer *t, const uint32_t *ids, size_t nids,
    const char *want, size_t nwant)
{
	size_t max = detokenizer_max(t), at = 0, i;
	struct detokenizer d;
	char *out = malloc(max);
	int n;

	require(out != NULL, "out of memory");
	detokenizer_init(&d, t, 1, 0);
	for (i = 0; i <= nids; i++) {
		n = i < nids ? detokenizer_push(&d, ids[i], out, max) :
		    detokenizer_flush(&d, out, max);
		require(n >= 0 && (size_t)n <= nwant - at,
		    "the decoded text is too long");
		require(memcmp(out, want + at, (size_t)n) == 0,
		    "the decoded text differs");
		at += (size_t)n;
	}
	require(at == nwant, "the decoded text is too short");
	free(out);
}

/* Encode the text and check that it decodes to want. */
static void
check_encoding(const struct tokenizer *t, const char *text, size_t n,
    const char *want, size_t nwant)
{
	uint32_t *ids;
	size_t nids, i;
	struct err e;

	require(tokenizer_encode(t, text, n, 1, 1, &ids, &nids, &e) == 0,
	    "cannot encode with special tokens");
	for (i = 0; i < nids; i++)
		require(ids[i] < tokenizer_size(t), "an id is past the vocabulary");
	free(ids);
	require(tokenizer_encode(t, text, n, 1, 0, &ids, &nids, &e) == 0,
	    "cannot encode");
	for (i = nids > 0 && (int32_t)ids[0] == tokenizer_bos(t); i < nids; i++)
		require(tokenizer_kind(t, ids[i]) != TOKEN_CONTROL,
		    "plain text gave a control token");
	check_decoding(t, ids, nids, want, nwant);
	free(ids);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *text = (const char *)data;
	char *want = calloc(n + 1, 1);
	size_t nwant;

	require(want != NULL, "out of memory");
	nwant = replace_marks(text, n, want);
	check_encoding(vocabulary(), text, n, want, nwant);
	free(want);
	if (n > 0)
		check_encoding(bpe_vocabulary(data[0]), text + 1, n - 1,
		    text + 1, n - 1);
	return 0;
}
