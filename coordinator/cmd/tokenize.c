/* coordinator/cmd/tokenize.c - text to ids and back; only the vocabulary. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/plain.h"
#include "config/rights.h"
#include "cmd.h"
#include "coordinator/print/output.h"
#include "coordinator/print/source.h"
#include "coordinator/reader/reader.h"
#include "coordinator/text/detokenizer.h"

static int
open_vocab(const struct conf *c, struct reader **ret_r, struct tokenizer **ret,
    struct err *reterr)
{
	const struct reader_how how = { .wants_vocab = 1 };
	int rc;

	if ((rc = reader_open(c, &how, ret_r, reterr)) < 0)
		return rc;
	if ((rc = reader_tokenizer(*ret_r, ret, reterr)) < 0)
		reader_close(*ret_r);
	return rc;
}

/* One line per token, "   1234 '▁the'": its id, its text as stored but for
 * escapes. */
static void
print_pieces(const struct tokenizer *t, const uint32_t *ids, size_t n)
{
	struct gguf_str s;
	size_t i;

	for (i = 0; i < n; i++) {
		s = tokenizer_text(t, ids[i]);
		printf("%7u '", ids[i]);
		plain_print(stdout, s.data, s.len);
		puts("'");
	}
}

int
cmd_tokenize(const struct conf *c, struct err *reterr)
{
	struct source text;
	struct tokenizer *t;
	struct reader *r;
	uint32_t *ids;
	size_t n, i;
	int rc;

	if ((rc = open_vocab(c, &r, &t, reterr)) < 0)
		return rc;
	rc = source_read(c->prompt, c->prompt_file, &text, reterr);
	if (rc == 0 && (rc = rights_settle(0, reterr)) == 0)
		rc = tokenizer_encode(t, text.text, text.nbytes, !c->no_bos,
		    c->special, &ids, &n, reterr);
	if (rc == 0) {
		tokenizer_note_losses(t);
		if (c->pieces) {
			print_pieces(t, ids, n);
		} else {
			for (i = 0; i < n; i++)
				printf("%s%u", i > 0 ? " " : "", ids[i]);
			putchar('\n');
		}
		free(ids);
	}
	source_free(&text);
	reader_close(r);
	return rc;
}

static int
print_text(const struct conf *c, const struct tokenizer *t,
    const uint32_t *ids, size_t n, struct err *reterr)
{
	struct detokenizer d;
	char *out = malloc(detokenizer_max(t));
	size_t i;
	int k = 0, rc = 0;

	if (out == NULL)
		return err_nomem(reterr, "a text of %zu bytes",
		    detokenizer_max(t));
	detokenizer_init(&d, t, 1, c->special);
	for (i = 0; i <= n && rc == 0; i++) {
		k = i < n ? detokenizer_push(&d, ids[i], out,
		    detokenizer_max(t)) : detokenizer_flush(&d, out,
		    detokenizer_max(t));
		if (k < 0)
			rc = err_set(reterr, ERR_USAGE, k, "token id %zu is "
			    "not in the vocabulary", i + 1);
		else if ((rc = output_text(out, (size_t)k)) < 0)
			err_set(reterr, ERR_RUN, rc, "stdout: %s",
			    strerror(-rc));
	}
	if (rc == 0)
		output_text("\n", 1);
	free(out);
	return rc;
}

int
cmd_detokenize(const struct conf *c, struct err *reterr)
{
	struct source text;
	struct tokenizer *t;
	struct reader *r;
	uint32_t *ids;
	size_t n;
	int rc;

	if ((rc = open_vocab(c, &r, &t, reterr)) < 0)
		return rc;
	rc = source_read(c->ids, c->ids_file, &text, reterr);
	if (rc == 0 && (rc = rights_settle(0, reterr)) == 0 &&
	    (rc = source_ids(&text, tokenizer_size(t), &ids, &n,
	    reterr)) == 0) {
		rc = print_text(c, t, ids, n, reterr);
		free(ids);
	}
	source_free(&text);
	reader_close(r);
	return rc;
}
