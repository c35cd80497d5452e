/* tests/fuzz/tokenizer.c - any bytes are encoded, and decode to themselves:
 * with the demo's vocabulary, found as in t_data(), and with one of byte-level
 * BPE, whose pre-tokenizer the first byte chooses.  A libFuzzer target; with
 * fuzz/main.c it replays files. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/text/detokenizer.h"
#include "coordinator/text/pre.h"
#include "tests/support/bpe_vocab.h"

#define MARK	"\xe2\x96\x81"	/* U+2581: decodes as the space it stands for */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MAX_NAMES = 64 };

/* The words that merges cross and those that they do not. */
static const char *const merges[] = {
	"\xc4\xa0 t", "h e", "\xc4\xa0t he", "i n", "in \xc4\xa0", "1 2", "12 3",
	"\xc4\xa0 \xc4\xa0", "\xc4\x8a \xc4\x8a", "! !", "' s", "\xc3\x83 \xc2\xa9",
	"e \xc3\x83", "\xc3\xaf \xc2\xbf", "\xc3\xaf\xc2\xbf \xc2\xbd", "a 1", ". \xc4\x8a"
};
static const struct bpe_token specials[] = {
	{ "<|end|>", TOKEN_CONTROL }, { "<hi>", TOKEN_USER },
	{ "   ", TOKEN_USER }
};

static const struct tokenizer *
bpe_vocabulary(unsigned choice)
{
	static struct tokenizer *t[MAX_NAMES];
	static struct gguf *g[MAX_NAMES];	/* all stay open to the end */
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
	static struct gguf *g;		/* both stay open to the end */
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
check(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "broken: %s\n", what);
		abort();
	}
}

/* What decoding must give: the text with its marks as spaces. */
static size_t
unmark(const char *text, size_t n, char *out)
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

	check(out != NULL, "memory");
	detokenizer_init(&d, t, 1, 0);
	for (i = 0; i <= nids; i++) {
		n = i < nids ? detokenizer_push(&d, ids[i], out, max) :
		    detokenizer_flush(&d, out, max);
		check(n >= 0 && (size_t)n <= nwant - at, "length");
		check(memcmp(out, want + at, (size_t)n) == 0, "text");
		at += (size_t)n;
	}
	check(at == nwant, "all of the text");
	free(out);
}

/* want: what decoding gives. */
static void
check_encoding(const struct tokenizer *t, const char *text, size_t n,
    const char *want, size_t nwant)
{
	uint32_t *ids;
	size_t nids, i;
	struct err e;

	check(tokenizer_encode(t, text, n, 1, 1, &ids, &nids, &e) == 0,
	    "encoding with special tokens");
	for (i = 0; i < nids; i++)
		check(ids[i] < tokenizer_size(t), "id");
	free(ids);
	check(tokenizer_encode(t, text, n, 1, 0, &ids, &nids, &e) == 0,
	    "encoding");
	for (i = 1; i < nids; i++)
		check(tokenizer_kind(t, ids[i]) != TOKEN_CONTROL,
		    "a control token was smuggled in");
	check_decoding(t, ids, nids, want, nwant);
	free(ids);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *text = (const char *)data;
	char *want = calloc(n + 1, 1);
	size_t nwant;

	check(want != NULL, "memory");
	nwant = unmark(text, n, want);
	check_encoding(vocabulary(), text, n, want, nwant);
	free(want);
	if (n > 0)
		check_encoding(bpe_vocabulary(data[0]), text + 1, n - 1,
		    text + 1, n - 1);
	return 0;
}
