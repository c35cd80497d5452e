/* tests/fuzz_tokenizer.c - any bytes are encoded, and decode to themselves.
 * The vocabulary is the demo's, found as in t_data().  A libFuzzer target;
 * with fuzz_main.c it replays files. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../coordinator/tokenizer.h"

#define MARK	"\xe2\x96\x81"	/* U+2581: decodes as the space it stands for */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct tokenizer *t = vocabulary();
	const char *text = (const char *)data;
	char *want = malloc(n + 1);
	uint32_t *ids;
	size_t nids, i;
	struct err e;

	check(want != NULL, "memory");
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
	check_decoding(t, ids, nids, want, unmark(text, n, want));
	free(ids);
	free(want);
	return 0;
}
