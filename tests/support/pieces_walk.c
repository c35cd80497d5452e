/* tests/support/pieces_walk.c - see pieces_walk.h. */
#include "pieces_walk.h"

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/encoder.h"

/* Keeps the compiler from leaving out the reads, for the sanitizers. */
static volatile unsigned sink;

static void
read_all(const char *text, size_t nbytes)
{
	size_t i;

	for (i = 0; i < nbytes; i++)
		sink += (unsigned char)text[i];
}

/* A text that the search finds must be the one that was looked for. */
static const char *
search(const struct pieces *p, const char *text)
{
	const int32_t id = pieces_special(p, text);
	struct gguf_str s;

	if (id == NO_TOKEN)
		return NULL;
	if (id < 0 || (uint32_t)id >= pieces_size(p))
		return "pieces_special() finds an id of the vocabulary";
	s = pieces_text(p, (uint32_t)id);
	return s.len == strlen(text) && memcmp(s.data, text, s.len) == 0 ?
	    NULL : "pieces_special() finds the text that is looked for";
}

/* out has room for pieces_max_bytes() and a byte more. */
static const char *
walk_decoding(const struct pieces *p, uint32_t id, char *out)
{
	const size_t max = pieces_max_bytes(p);
	size_t n;
	int show;

	for (show = 0; show < 2; show++) {
		out[max] = 0x5a;
		n = pieces_decode(p, id, show, out);
		if (n > max || out[max] != 0x5a)
			return "pieces_decode() writes pieces_max_bytes()";
		read_all(out, n);
	}
	return NULL;
}

static const char *
walk_token(const struct pieces *p, uint32_t id, const char *block,
    uint64_t nbytes, char *out)
{
	const struct gguf_str s = pieces_text(p, id);
	const char *broken;
	char text[64];

	if (s.len > pieces_max_bytes(p))
		return "no text is longer than pieces_max_bytes()";
	if (s.len > 0 && (s.data < block || s.data > block + nbytes ||
	    s.len > (size_t)(block + nbytes - s.data)))
		return "a text is within the block";
	if (pieces_kind(p, id) > TOKEN_BYTE)
		return "a kind is one of enum token_kind";
	read_all(s.data, s.len);
	if ((broken = walk_decoding(p, id, out)) != NULL ||
	    s.len >= sizeof(text))
		return broken;
	*(char *)mempcpy(text, s.data, s.len) = '\0';
	return search(p, text);
}

static const char *
walk_tokens(const struct pieces *p, const void *block, uint64_t nbytes)
{
	const uint32_t n = pieces_size(p);
	const char *broken = NULL;
	char *out = malloc(pieces_max_bytes(p) + 1);
	uint32_t i;

	if (out == NULL)
		errx(1, "no memory");
	for (i = 0; i < n && broken == NULL; i++)
		broken = walk_token(p, i, block, nbytes, out);
	for (i = n; i < n + 2 && broken == NULL; i++)
		if (pieces_text(p, i).len != 0 ||
		    pieces_text(p, UINT32_MAX - i + n).len != 0 ||
		    pieces_kind(p, i) != TOKEN_UNKNOWN)
			broken = "an id beyond the vocabulary has no text";
	free(out);
	return broken;
}

static const char *
walk_ids(const struct pieces *p)
{
	const int64_t n = pieces_size(p);
	const int32_t *end;
	unsigned nends = pieces_ends(p, &end), i;

	for (i = 0; i < nends; i++)
		if (end[i] < 0 || end[i] >= n)
			return "an end is an id of the vocabulary";
	if (nends > ENCODER_MAX_ENDS)
		return "there are at most ENCODER_MAX_ENDS ends";
	if (pieces_bos(p) < NO_TOKEN || pieces_bos(p) >= n ||
	    pieces_eos(p) < NO_TOKEN || pieces_eos(p) >= n)
		return "BOS is an id of the vocabulary, or none";
	if (pieces_adds_bos(p) && pieces_bos(p) == NO_TOKEN)
		return "BOS is added where there is one";
	sink += (unsigned)pieces_adds_space(p);
	return NULL;
}

const char *
pieces_walk(const struct pieces *p, const void *block, uint64_t nbytes)
{
	const char *broken;

	if ((broken = walk_tokens(p, block, nbytes)) != NULL ||
	    (broken = walk_ids(p)) != NULL ||
	    (broken = search(p, "")) != NULL ||
	    (broken = search(p, "\x7f\xff")) != NULL)
		return broken;
	return NULL;
}

static const char *
check_refusal(int rc, const struct pieces *p, const struct err *e)
{
	static const char start[] = "the reader's image: the vocabulary: ";

	if (rc != -EBADMSG || e->kind != ERR_RUN)
		return "a bad block is -EBADMSG with ERR_RUN";
	if (p != NULL)
		return "nothing is returned on failure";
	if (strncmp(e->msg, start, sizeof(start) - 1) != 0)
		return "the message names the reader's image";
	return NULL;
}

const char *
pieces_try(const void *data, uint64_t nbytes, int *ret_rc,
    struct err *reterr)
{
	struct err e = { .kind = ERR_NONE };
	struct pieces *p = NULL;
	const char *broken;
	void *block;

	/* Memory of exactly this size, for the sanitizers. */
	if ((block = malloc(MAX(nbytes, UINT64_C(1)))) == NULL)
		errx(1, "no memory");
	memcpy(block, data, nbytes);
	*ret_rc = pieces_open(block, nbytes, &p, &e);
	broken = *ret_rc == 0 ? pieces_walk(p, block, nbytes) :
	    check_refusal(*ret_rc, p, &e);
	if (*ret_rc == 0)
		pieces_close(p);
	free(block);
	if (reterr != NULL)
		*reterr = e;
	return broken;
}

void *
pieces_make(const char *path, uint64_t *ret_nbytes)
{
	struct err e = { .kind = ERR_NONE };
	struct encoder *encoder;
	struct gguf *g;
	void *block;

	if (gguf_open(path, &g, &e) < 0 ||
	    encoder_open(g, &encoder, &e) < 0 ||
	    pieces_bytes(encoder, ret_nbytes, &e) < 0)
		errx(1, "%s", e.msg);
	if ((block = malloc(*ret_nbytes)) == NULL)
		errx(1, "no memory");
	pieces_write(encoder, block);
	encoder_close(encoder);
	gguf_close(g);
	return block;
}
