/* coordinator/text/pre.c - cuts raw text into words, by the patterns that the
 * makers of each vocabulary published.
 *
 * A pre-tokenizer is a list of patterns.  The first cuts the text into its
 * matches and the pieces between them, the next pattern cuts each of those, and
 * so on; a pattern sees nothing outside its piece.  The patterns are written as
 * published, except that characters are spelled \x{...}.  \s and \S stand for
 * Unicode's White_Space, as in the engines that the patterns were written for;
 * PCRE2's own \s also matches U+180E.
 *
 * No pattern nests a repetition in a repetition, so that a match looks at each
 * character of its piece a bounded number of times.  PCRE2's interpreter runs
 * them: its JIT would speed tokenization up 1.3 to 2 times, but needs memory
 * that is writable and executable. */
#include "pre.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <inttypes.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/utf8.h"

enum { MAX_PATTERNS = 6, MAX_PATTERN_BYTES = 4096 };

/* --- the patterns --- */

/* openai/gpt-2 src/encoder.py; r50k_base of openai/tiktoken; the same in
 * huggingface/tokenizers, pre_tokenizers/byte_level.rs. */
#define GPT2	"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+" \
		"| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

#define ENGLISH	"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS	"|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* cl100k_base of openai/tiktoken; meta-llama/Meta-Llama-3-8B tokenizer.json */
#define CL100K	ENGLISH "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}" \
		"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS

/* Qwen/Qwen2-7B tokenizer.json: digits one by one. */
#define QWEN2	ENGLISH "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" \
		"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS

#define O200K(upper, lower, end)	\
	"[^\\r\\n\\p{L}\\p{N}]?" upper "*" lower "+" end \
	"|[^\\r\\n\\p{L}\\p{N}]?" upper "+" lower "*" end

/* o200k_base of openai/tiktoken; openai/gpt-oss-20b tokenizer.json.  A word
 * keeps its marks, and ends where the case changes, in any script. */
#define UPPER	"[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER	"[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define GPT4O	O200K(UPPER, LOWER, ENGLISH "?") \
		"|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" BLANKS

/* mistralai/Mistral-Nemo-Base-2407 tekken.json */
#define TEKKEN	O200K(UPPER, LOWER, "") \
		"|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" BLANKS

/* deepseek-ai/deepseek-llm-7b-base tokenizer.json: letters with case, as of an
 * older Unicode; punctuation; and the range from Chinese to Korean. */
#define CASED	"A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}" \
		"\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}" \
		"\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}" \
		"\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}" \
		"\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}" \
		"\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}" \
		"\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}" \
		"\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}" \
		"\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}" \
		"\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}" \
		"\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}" \
		"\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}" \
		"\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}" \
		"\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}" \
		"\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}" \
		"\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}" \
		"\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}" \
		"\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}" \
		"\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}" \
		"\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}" \
		"\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}" \
		"\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}" \
		"\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}" \
		"\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}" \
		"\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}" \
		"\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}" \
		"\\x{1e900}-\\x{1e943}"
#define MARKS	"!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}" \
		"\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}"
#define EASTERN	"[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
/* \s+$ as published.  The lookbehind makes it try a run of blanks from its
 * first only: trying from each of n blanks would take n * n steps.  \z equals $
 * here, because an earlier pattern has cut out the line breaks. */
#define LAST	"(?<!\\s)\\s+\\z"

/* Punctuation of huggingface/tokenizers: that of ASCII, and the category P of
 * Unicode 8, which its crate unicode_categories has. */
#define PUNCTUATION	"!-/:-@\\[-`{-~\\x{a1}\\x{a7}\\x{ab}\\x{b6}\\x{b7}\\x{bb}" \
		"\\x{bf}\\x{37e}\\x{387}\\x{55a}-\\x{55f}\\x{589}\\x{58a}" \
		"\\x{5be}\\x{5c0}\\x{5c3}\\x{5c6}\\x{5f3}\\x{5f4}" \
		"\\x{609}\\x{60a}\\x{60c}\\x{60d}\\x{61b}\\x{61e}\\x{61f}" \
		"\\x{66a}-\\x{66d}\\x{6d4}\\x{700}-\\x{70d}" \
		"\\x{7f7}-\\x{7f9}\\x{830}-\\x{83e}\\x{85e}\\x{964}\\x{965}" \
		"\\x{970}\\x{af0}\\x{df4}\\x{e4f}\\x{e5a}\\x{e5b}" \
		"\\x{f04}-\\x{f12}\\x{f14}\\x{f3a}-\\x{f3d}\\x{f85}" \
		"\\x{fd0}-\\x{fd4}\\x{fd9}\\x{fda}\\x{104a}-\\x{104f}" \
		"\\x{10fb}\\x{1360}-\\x{1368}\\x{1400}\\x{166d}\\x{166e}" \
		"\\x{169b}\\x{169c}\\x{16eb}-\\x{16ed}\\x{1735}\\x{1736}" \
		"\\x{17d4}-\\x{17d6}\\x{17d8}-\\x{17da}\\x{1800}-\\x{180a}" \
		"\\x{1944}\\x{1945}\\x{1a1e}\\x{1a1f}\\x{1aa0}-\\x{1aa6}" \
		"\\x{1aa8}-\\x{1aad}\\x{1b5a}-\\x{1b60}\\x{1bfc}-\\x{1bff}" \
		"\\x{1c3b}-\\x{1c3f}\\x{1c7e}\\x{1c7f}\\x{1cc0}-\\x{1cc7}" \
		"\\x{1cd3}\\x{2010}-\\x{2027}\\x{2030}-\\x{2043}" \
		"\\x{2045}-\\x{2051}\\x{2053}-\\x{205e}\\x{207d}\\x{207e}" \
		"\\x{208d}\\x{208e}\\x{2308}-\\x{230b}\\x{2329}\\x{232a}" \
		"\\x{2768}-\\x{2775}\\x{27c5}\\x{27c6}\\x{27e6}-\\x{27ef}" \
		"\\x{2983}-\\x{2998}\\x{29d8}-\\x{29db}\\x{29fc}\\x{29fd}" \
		"\\x{2cf9}-\\x{2cfc}\\x{2cfe}\\x{2cff}\\x{2d70}" \
		"\\x{2e00}-\\x{2e2e}\\x{2e30}-\\x{2e42}\\x{3001}-\\x{3003}" \
		"\\x{3008}-\\x{3011}\\x{3014}-\\x{301f}\\x{3030}\\x{303d}" \
		"\\x{30a0}\\x{30fb}\\x{a4fe}\\x{a4ff}\\x{a60d}-\\x{a60f}" \
		"\\x{a673}\\x{a67e}\\x{a6f2}-\\x{a6f7}\\x{a874}-\\x{a877}" \
		"\\x{a8ce}\\x{a8cf}\\x{a8f8}-\\x{a8fa}\\x{a8fc}" \
		"\\x{a92e}\\x{a92f}\\x{a95f}\\x{a9c1}-\\x{a9cd}" \
		"\\x{a9de}\\x{a9df}\\x{aa5c}-\\x{aa5f}\\x{aade}\\x{aadf}" \
		"\\x{aaf0}\\x{aaf1}\\x{abeb}\\x{fd3e}\\x{fd3f}" \
		"\\x{fe10}-\\x{fe19}\\x{fe30}-\\x{fe52}\\x{fe54}-\\x{fe61}" \
		"\\x{fe63}\\x{fe68}\\x{fe6a}\\x{fe6b}\\x{ff01}-\\x{ff03}" \
		"\\x{ff05}-\\x{ff0a}\\x{ff0c}-\\x{ff0f}\\x{ff1a}\\x{ff1b}" \
		"\\x{ff1f}\\x{ff20}\\x{ff3b}-\\x{ff3d}\\x{ff3f}\\x{ff5b}" \
		"\\x{ff5d}\\x{ff5f}-\\x{ff65}\\x{10100}-\\x{10102}" \
		"\\x{1039f}\\x{103d0}\\x{1056f}\\x{10857}\\x{1091f}" \
		"\\x{1093f}\\x{10a50}-\\x{10a58}\\x{10a7f}" \
		"\\x{10af0}-\\x{10af6}\\x{10b39}-\\x{10b3f}" \
		"\\x{10b99}-\\x{10b9c}\\x{11047}-\\x{1104d}" \
		"\\x{110bb}\\x{110bc}\\x{110be}-\\x{110c1}" \
		"\\x{11140}-\\x{11143}\\x{11174}\\x{11175}" \
		"\\x{111c5}-\\x{111c9}\\x{111cd}\\x{111db}" \
		"\\x{111dd}-\\x{111df}\\x{11238}-\\x{1123d}\\x{112a9}" \
		"\\x{114c6}\\x{115c1}-\\x{115d7}\\x{11641}-\\x{11643}" \
		"\\x{1173c}-\\x{1173e}\\x{12470}-\\x{12474}" \
		"\\x{16a6e}\\x{16a6f}\\x{16af5}\\x{16b37}-\\x{16b3b}" \
		"\\x{16b44}\\x{1bc9f}\\x{1da87}-\\x{1da8b}"

/* deepseek-ai/DeepSeek-V3 tokenizer.json. */
#define V3_EAST	"[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"
#define V3	"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" \
		"|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+" \
		"| ?[\\p{P}\\p{S}]+[\\r\\n]*" BLANKS

/* --- the table --- */

enum { DIGIT_BYTES = 4 };	/* a flag beside PRE_* */

struct pre_row {
	const char *name;	/* tokenizer.ggml.pre */
	int flags;		/* PRE_*, DIGIT_BYTES */
	const char *pattern[MAX_PATTERNS];	/* NULL after the last */
};

/* Names are llama.cpp's.  The comment after a row names the tokenizer.json
 * that its patterns are from, if the pattern's own comment above does not. */
static const struct pre_row rows[] = {
	/* llama.cpp's choice for files that name no pre-tokenizer. */
	{ "default", 0, { "[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+",
	    "[0-9][0-9][0-9]" } },
	{ "gpt-2", 0, { GPT2 } },
	{ "phi-2", 0, { GPT2 } },		/* microsoft/phi-2 */
	{ "olmo", 0, { GPT2 } },		/* allenai/OLMo-1.7-7B-hf */
	{ "mpt", 0, { GPT2 } },			/* mosaicml/mpt-7b */
	{ "llama-bpe", PRE_WHOLE | PRE_BOS, { CL100K } },
	{ "llama3", PRE_WHOLE | PRE_BOS, { CL100K } },
	{ "llama-v3", PRE_WHOLE | PRE_BOS, { CL100K } },
	{ "dbrx", 0, { CL100K } },		/* databricks/dbrx-base */
	{ "smaug-bpe", 0, { CL100K } },		/* abacusai/Smaug-Llama-3-70B */
	{ "qwen2", 0, { QWEN2 } },
	{ "deepseek-r1-qwen", 0, { QWEN2 } },	/* -ai/DeepSeek-R1-Distill- */
	{ "stablelm2", 0, { QWEN2 } },		/* stabilityai/stablelm-2-1_6b */
	{ "gpt-4o", 0, { GPT4O } },
	{ "llama4", 0, { GPT4O } },		/* meta-llama/Llama-4-Scout- */
	{ "tekken", PRE_WHOLE | PRE_BOS, { TEKKEN } },
	{ "smollm", 0, { "\\p{N}", GPT2 } },	/* HuggingFaceTB/SmolLM-135M */
	{ "deepseek-llm", 0, { "[\\r\\n]", "\\s?[" CASED "]+",
	    "\\s?[" MARKS "]+", LAST, EASTERN, "\\p{N}" } },
	/* deepseek-ai/deepseek-coder-6.7b-base */
	{ "deepseek-coder", 0, { "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
	    EASTERN, "\\p{N}" } },
	{ "deepseek-v3", 0, { "\\p{N}{1,3}", V3_EAST, V3 } },
	/* tiiuae/falcon-7b.  Its Digits and [0-9][0-9][0-9] come after
	 * ByteLevel: see cut_digit_bytes(). */
	{ "falcon", DIGIT_BYTES, { "[" PUNCTUATION "]+", GPT2 } },
	{ "starcoder", 0, { "\\p{N}", GPT2 } },	/* bigcode/starcoder2-3b */
	{ "refact", 0, { "\\p{N}", GPT2 } },	/* smallcloudai/Refact-1_6B */
	{ "command-r", 0, { "\\p{N}", GPT2 } },	/* CohereForAI/c4ai- */
};

struct pre {
	const struct pre_row *row;
	unsigned npatterns;
	pcre2_code *code[MAX_PATTERNS];	/* [npatterns] */
};

const char *
pre_name(unsigned i)
{
	return i < NITEMS(rows) ? rows[i].name : NULL;
}

int
pre_flags(const struct pre *p)
{
	return p->row->flags;
}

/* --- opening --- */

static int
refuse_unknown(const char *name, size_t nbytes, struct err *reterr)
{
	char list[512];
	size_t len = 0;
	unsigned i;

	for (i = 0; pre_name(i) != NULL && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len,
		    "%s%s", i > 0 ? ", " : "", pre_name(i));
	return err_set(reterr, ERR_MODEL, -ENOTSUP, "tokenizer.ggml.pre is "
	    "\"%.*s\", an unknown pre-tokenizer; known: %s",
	    (int)MIN(nbytes, 64), name, list);
}

/* Replace \s and \S by Unicode's White_Space property. */
static void
expand_blanks(const char *pattern, char *out, size_t outlen)
{
	size_t n = 0;

	for (; *pattern != '\0' && n < outlen - 16; pattern++) {
		if (*pattern != '\\') {
			out[n++] = *pattern;
			continue;
		}
		pattern++;
		if (*pattern == 's' || *pattern == 'S')
			n += (size_t)snprintf(out + n, outlen - n,
			    "\\%c{wspace}", *pattern == 's' ? 'p' : 'P');
		else
			n += (size_t)snprintf(out + n, outlen - n, "\\%c",
			    *pattern);
	}
	out[n] = '\0';
}

static int
compile_pattern(struct pre *p, unsigned i, struct err *reterr)
{
	char pattern[MAX_PATTERN_BYTES], text[128];
	PCRE2_SIZE off;
	int code;

	expand_blanks(p->row->pattern[i], pattern, sizeof(pattern));
	p->code[i] = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
	    PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE, &code, &off, NULL);
	if (p->code[i] == NULL) {
		pcre2_get_error_message(code, (PCRE2_UCHAR *)text,
		    sizeof(text));
		return err_set(reterr, ERR_RUN, -ENOTSUP, "pre-tokenizer %s, "
		    "pattern %u: PCRE2 cannot compile it at %zu: %s (10.40 or "
		    "later is needed)", p->row->name, i, off, text);
	}
	return 0;
}

int
pre_open(const char *name, size_t nbytes, struct pre **ret,
    struct err *reterr)
{
	struct pre *p;
	size_t i = 0;
	int rc = 0;

	while (i < NITEMS(rows) && (strlen(rows[i].name) != nbytes ||
	    memcmp(rows[i].name, name, nbytes) != 0))
		i++;
	if (i == NITEMS(rows))
		return refuse_unknown(name, nbytes, reterr);
	if ((p = calloc(1, sizeof(*p))) == NULL)
		return err_nomem(reterr, "the pre-tokenizer %s",
		    rows[i].name);
	p->row = &rows[i];
	while (rc == 0 && p->npatterns < MAX_PATTERNS &&
	    p->row->pattern[p->npatterns] != NULL)
		rc = compile_pattern(p, p->npatterns++, reterr);
	if (rc < 0) {
		pre_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void
pre_close(struct pre *p)
{
	unsigned i;

	if (p == NULL)
		return;
	for (i = 0; i < p->npatterns; i++)
		pcre2_code_free(p->code[i]);
	free(p);
}

/* --- cutting --- */

struct cut {
	const struct pre *p;
	const char *text;		/* UTF-8 */
	const char *raw;		/* the input, if text is a repaired copy;
					 * else NULL */
	size_t raw_at, raw_end;		/* next word in raw; end of raw */
	pcre2_match_data *md;
	pcre2_match_context *mc;
	pre_word_fn *fn;
	void *arg;
	struct err *reterr;
};

/* U+FFFD, which replaces each byte that is not UTF-8. */
#define REPLACEMENT	"\xef\xbf\xbd"
enum { REPLACEMENT_LEN = 3 };

static unsigned
raw_len(const char *raw, size_t nbytes)
{
	return utf8_len((const uint8_t *)raw, nbytes);
}

/* Is the byte a digit for a pattern that runs behind ByteLevel?  There a byte
 * is a character, and six of those above 0x7f are superscripts and fractions
 * of Latin-1, wherever in a character of the text the byte stands. */
static int
is_digit_byte(uint8_t b)
{
	return (b >= '0' && b <= '9') || b == 0xb2 || b == 0xb3 || b == 0xb9 ||
	    (b >= 0xbc && b <= 0xbe);
}

/* Length of the piece at p, of n > 0 bytes: three digits of ASCII; or what is
 * in front of the next three, or of the next change between digits and
 * others. */
static size_t
digit_piece(const uint8_t *p, size_t n)
{
	int digits = is_digit_byte(*p);
	size_t i, ascii = 0;

	for (i = 0; i < n && is_digit_byte(p[i]) == digits; i++) {
		ascii = p[i] <= '9' ? ascii + 1 : 0;
		if (digits && ascii == 3)
			return i == 2 ? 3 : i - 2;
	}
	return i;
}

/* Falcon's two last steps: cut between digits and other bytes, then take the
 * digits of ASCII in threes. */
static int
cut_digit_bytes(const struct cut *c, size_t off, size_t nbytes)
{
	const char *text = c->raw != NULL ? c->raw : c->text;
	size_t done, n;
	int rc = 0;

	for (done = 0; done < nbytes && rc == 0; done += n) {
		n = digit_piece((const uint8_t *)text + off + done,
		    nbytes - done);
		rc = c->fn(c->arg, off + done, n, c->reterr);
	}
	return rc;
}

static int
call_back(const struct cut *c, size_t off, size_t nbytes)
{
	return c->p->row->flags & DIGIT_BYTES ?
	    cut_digit_bytes(c, off, nbytes) :
	    c->fn(c->arg, off, nbytes, c->reterr);
}

/* Pass the word at text[off] to the callback, as it is in the input. */
static int
pass_word(struct cut *c, size_t off, size_t nbytes)
{
	size_t from = c->raw_at, done, len;

	if (c->raw == NULL)
		return call_back(c, off, nbytes);
	for (done = 0; done < nbytes; done += len) {
		len = raw_len(c->raw + c->raw_at, c->raw_end - c->raw_at);
		c->raw_at += MAX(len, (size_t)1);
		if (len == 0)
			len = REPLACEMENT_LEN;
	}
	return call_back(c, from, c->raw_at - from);
}

/* Find the first match in a piece from `at` on; an empty one at the piece's end
 * when there is none. */
static int
find_match(struct cut *c, unsigned level, const char *piece, size_t nbytes,
    size_t at, size_t *ret_from, size_t *ret_end)
{
	const PCRE2_SIZE *ov = pcre2_get_ovector_pointer(c->md);
	int rc;

	*ret_from = *ret_end = nbytes;
	rc = pcre2_match(c->p->code[level], (PCRE2_SPTR)piece, nbytes, at,
	    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, c->md, c->mc);
	if (rc == PCRE2_ERROR_NOMATCH)
		return 0;
	if (rc < 0)
		return err_set(c->reterr, ERR_RUN, rc == PCRE2_ERROR_NOMEMORY ?
		    -ENOMEM : -E2BIG, "pre-tokenizer %s, pattern %u: no "
		    "result for a text of %zu bytes (PCRE2 error %d)",
		    c->p->row->name, level, nbytes, rc);
	*ret_from = ov[0];
	*ret_end = ov[1];
	return 0;
}

/* Cut a piece by the patterns from `level` on.  Depth first, so that words come
 * in order without a list of them. */
static int
cut_piece(struct cut *c, unsigned level, size_t off, size_t nbytes)
{
	size_t at, from, end;
	int rc = 0;

	if (level == c->p->npatterns)
		return pass_word(c, off, nbytes);
	for (at = 0; at < nbytes && rc == 0; at = end) {
		rc = find_match(c, level, c->text + off, nbytes, at, &from, &end);
		if (rc == 0 && from > at)
			rc = cut_piece(c, level + 1, off + at, from - at);
		if (rc == 0 && end > from)
			rc = cut_piece(c, level + 1, off + from, end - from);
	}
	return rc;
}

/* Copy the text with U+FFFD for each byte that is not UTF-8.  *ret is
 * malloc'ed; NULL: all is UTF-8, no copy is needed. */
static int
repair_utf8(const char *text, size_t nbytes, char **ret, size_t *ret_len)
{
	size_t i, len, bad = 0;
	char *p;

	for (i = 0; i < nbytes; i += MAX(len, (size_t)1)) {
		len = raw_len(text + i, nbytes - i);
		bad += len == 0;
	}
	*ret = NULL;
	*ret_len = nbytes;
	if (bad == 0)
		return 0;
	*ret_len = nbytes + bad * (REPLACEMENT_LEN - 1);
	if ((*ret = p = malloc(*ret_len)) == NULL)
		return -ENOMEM;
	for (i = 0; i < nbytes; i += MAX(len, (size_t)1)) {
		len = raw_len(text + i, nbytes - i);
		p = mempcpy(p, len > 0 ? text + i : REPLACEMENT,
		    len > 0 ? len : REPLACEMENT_LEN);
	}
	return 0;
}

int
pre_cut(const struct pre *p, const char *text, size_t nbytes,
    pre_word_fn *fn, void *arg, struct err *reterr)
{
	struct cut c = { .p = p, .text = text, .fn = fn, .arg = arg,
	    .reterr = reterr };
	char *repaired;
	size_t len;
	int rc;

	if ((rc = repair_utf8(text, nbytes, &repaired, &len)) < 0)
		return rc;
	if (repaired != NULL) {
		c.text = repaired;
		c.raw = text;
		c.raw_end = nbytes;
	}
	c.md = pcre2_match_data_create(1, NULL);
	c.mc = pcre2_match_context_create(NULL);
	if (c.md != NULL && c.mc != NULL) {
		pcre2_set_match_limit(c.mc, (uint32_t)MIN(
		    len * 16 + 1000000, (size_t)UINT32_MAX));
		rc = cut_piece(&c, 0, 0, len);
	} else {
		rc = -ENOMEM;
	}
	pcre2_match_context_free(c.mc);
	pcre2_match_data_free(c.md);
	free(repaired);
	return rc;
}
