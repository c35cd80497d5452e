/* coordinator/engine/prompts.c - run --prompts: one prompt per line, one JSON
 * line per result. */
#include "prompts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/utf8.h"
#include "chat.h"
#include "impl.h"
#include "sample.h"
#include "coordinator/print/output.h"

/* Why a prompt has no token. */
static int
refuse_empty(const struct engine *eng, const struct source *prompt,
    struct err *reterr)
{
	if (prompt->nbytes > 0)
		return err_set(reterr, ERR_USAGE, -EINVAL, "none of the "
		    "prompt's %zu bytes has a token in this vocabulary: give "
		    "another text", prompt->nbytes);
	if (tokenizer_bos(eng->vocab) == NO_TOKEN)
		return err_set(reterr, ERR_USAGE, -EINVAL, "the prompt is "
		    "empty and this vocabulary has no beginning-of-sequence "
		    "token: give a text");
	return err_set(reterr, ERR_USAGE, -EINVAL, "the prompt is empty, and "
	    "texts of this model do not begin with its beginning-of-sequence "
	    "token (tokenizer.ggml.add_bos_token): give a text");
}

static int
encode(const struct engine *eng, const struct source *prompt,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	return eng->conf->chat ? chat_encode_first(eng, prompt->text,
	    prompt->nbytes, ret_ids, ret_n, reterr) :
	    tokenizer_encode(eng->vocab, prompt->text, prompt->nbytes, 1,
	    eng->conf->special, ret_ids, ret_n, reterr);
}

int
prompt_encode(const struct engine *eng, const struct source *prompt,
    uint32_t **ret_ids, uint32_t *ret_n, struct err *reterr)
{
	char why[ENGINE_WHY_LEN];
	size_t n;
	int rc;

	/* Tokenizing a text takes some 60 times its bytes. */
	if (prompt->nbytes > engine_text_bytes(eng))
		return err_set(reterr, ERR_USAGE, -E2BIG, "the prompt has %s%zu "
		    "bytes; %s", eng->conf->prompts_file == NULL ?
		    "at least " : "", prompt->nbytes,
		    engine_text_why(eng, why));
	if ((rc = encode(eng, prompt, ret_ids, &n, reterr)) < 0)
		return rc;
	if (n == 0)
		rc = refuse_empty(eng, prompt, reterr);
	else if (n > eng->plan.ctx_tok)
		rc = err_set(reterr, ERR_USAGE, -E2BIG, "the prompt has %zu "
		    "tokens and the context holds %u: give a shorter prompt "
		    "or --ctx %zu (the model was trained with %u)", n,
		    eng->plan.ctx_tok, n + 1, eng->model->hp.ctx_train);
	if (rc < 0) {
		free(*ret_ids);
		*ret_ids = NULL;
	}
	*ret_n = (uint32_t)n;
	return rc;
}

/* The next line of the file, without its line end; 0 = none is left. */
static int
next_line(struct prompts *p, struct source *ret)
{
	const char *end;

	if (p->at >= p->eof)
		return 0;
	end = memchr(p->at, '\n', (size_t)(p->eof - p->at));
	if (end == NULL)
		end = p->eof;
	ret->text = (char *)(uintptr_t)p->at;	/* read only */
	ret->nbytes = (size_t)(end - p->at);
	if (ret->nbytes > 0 && end[-1] == '\r')
		ret->nbytes--;
	p->at = end + 1;
	return 1;
}

/* Tokens of one line, as it will be encoded; 0 = it cannot be.  -EINTR only: other
 * errors are reported when the line's turn comes. */
static int
count_line(const struct engine *eng, const struct source *line, size_t *ret,
    struct err *reterr)
{
	struct err e = { 0 };
	uint32_t *ids;
	int rc = encode(eng, line, &ids, ret, &e);

	if (rc == 0)
		free(ids);
	else
		*ret = 0;
	if (rc == -EINTR)
		*reterr = e;
	return rc == -EINTR ? rc : 0;
}

/* The same for many lines at once, of which the longest counts. */
static int
count_lines(const struct engine *eng, const struct text_part *line, size_t n,
    size_t *ret, struct err *reterr)
{
	uint32_t counts[TOKENIZER_MAX_COUNTED];
	struct err e = { 0 };
	size_t i;
	int rc = tokenizer_count(eng->vocab, line, n, ENCODE_BOS, counts, &e);

	*ret = 0;
	if (rc == -EINTR)
		*reterr = e;
	for (i = 0; i < n && rc == 0; i++)
		if (counts[i] != UINT32_MAX)
			*ret = MAX(*ret, counts[i]);
	return rc == -EINTR ? rc : 0;
}

/* Bytes of lines that are counted at once. */
enum { COUNTED_BYTES = 1 << 20 };

/* Take the next lines of p and count the tokens of the longest.  *ret_left = 0:
 * no line was left. */
static int
count_next(struct prompts *p, size_t max_bytes, int *ret_left, size_t *ret,
    struct err *reterr)
{
	struct text_part part[TOKENIZER_MAX_COUNTED];
	const struct engine *eng = p->eng;
	struct source line;
	size_t n = 0, nbytes = 0;

	*ret = 0;
	while (n < NITEMS(part) && nbytes < COUNTED_BYTES &&
	    (*ret_left = next_line(p, &line))) {
		if (line.nbytes > max_bytes) {
			*ret = SIZE_MAX;
			return 0;
		}
		if (eng->conf->chat)	/* with a template around it */
			return count_line(eng, &line, ret, reterr);
		part[n++] = (struct text_part){ line.text, line.nbytes,
		    eng->conf->special };
		nbytes += line.nbytes;
	}
	return n > 0 ? count_lines(eng, part, n, ret, reterr) : 0;
}

int
prompts_context(struct engine *eng, const struct source *file, uint32_t *ret,
    struct err *reterr)
{
	const uint32_t most = plan_default_context(eng->model);
	const struct conf *c = eng->conf;
	struct prompts p = { .eng = eng, .at = file->text,
	    .eof = file->text + file->nbytes };
	uint32_t most_line, longest = 1;
	int rc = 0, left = 1;
	size_t n;

	*ret = most;
	if (c->n_predict < 0 || (uint32_t)c->n_predict >= most)
		return 0;
	most_line = most - (uint32_t)c->n_predict;
	while (left && longest < most_line && (rc = count_next(&p,
	    tokenizer_max_text(eng->vocab, most_line), &left, &n,
	    reterr)) == 0)
		longest = MAX(longest, (uint32_t)MIN(n, (size_t)most_line));
	tokenizer_forget_losses(eng->vocab);
	*ret = longest + (uint32_t)c->n_predict;
	return rc;
}

static int
print_result(void *arg, json_t *result, struct err *reterr)
{
	(void)arg;
	return output_json(result, 0, reterr);
}

static json_t *
line_json(const struct line *l)
{
	return json_pack("{s:i,s:o,s:o}", "index", (int)l->index, "prompt",
	    output_json_text(l->prompt.text, l->prompt.nbytes), "text",
	    output_json_text(l->text.text, l->text.nbytes));
}

static int
print_lines(struct prompts *p, const struct line *l, struct err *reterr)
{
	if (l->result == NULL)
		return err_nomem(reterr, "the result of prompt %u",
		    l->index);
	return lines_print(&p->lines, print_result, NULL, reterr);
}

/* Put the reason into the line's result, and keep the first error for the exit
 * code; the other lines go on. */
static void
note_failure(struct prompts *p, struct line *l, const struct err *e)
{
	json_object_set_new(l->result, "error", output_json_string(e->msg));
	if (p->nfailed++ > 0)
		return;
	p->first_err = *e;
	err_prefix(&p->first_err, "%s:%u", p->path, l->index + 1);
}

/* --- for generate() --- */

static int
next_prompt(void *arg, struct completion *t, struct err *reterr)
{
	struct prompts *p = arg;
	struct source prompt;
	struct line *l;
	struct err e = { 0 };
	int rc;

	while (next_line(p, &prompt)) {
		if ((l = lines_add(&p->lines, p->index++, &prompt)) == NULL)
			return err_nomem(reterr, "prompt %u",
			    p->index - 1);
		t->index = l->index;
		t->line = l;
		t->seed = sampler_seed(p->eng->conf->sampling.seed, l->index);
		if ((rc = prompt_encode(p->eng, &prompt, &t->ids, &t->n,
		    &e)) == 0)
			return 1;
		if (rc == -EINTR) {
			*reterr = e;
			return rc;
		}
		/* No 100 MB of a text that cannot be run: the copies of it take
		 * seconds and four times its memory. */
		l->prompt.nbytes = MIN(prompt.nbytes,
		    engine_text_bytes(p->eng));
		l->result = line_json(l);
		note_failure(p, l, &e);
		if ((rc = print_lines(p, l, reterr)) < 0)
			return rc;
	}
	tokenizer_note_losses(p->eng->vocab);	/* of all prompts */
	return 0;
}

static int
keep_text(void *arg, const struct completion *t, const char *bytes,
    size_t nbytes, struct err *reterr)
{
	struct line *l = t->line;

	(void)arg;
	return source_append(&l->text, bytes, nbytes, reterr);
}

static int
keep_thought(void *arg, const struct completion *t, const char *bytes,
    size_t nbytes, struct err *reterr)
{
	struct line *l = t->line;

	(void)arg;
	return source_append(&l->thoughts, bytes, nbytes, reterr);
}

/* With -q there are no times, so that equal runs give equal bytes. */
static void
add_numbers(const struct prompts *p, const struct completion *t, json_t *o)
{
	const struct conf *c = p->eng->conf;

	json_object_set_new(o, "prompt_tokens", json_integer(t->n));
	json_object_set_new(o, "gen_tokens", json_integer(t->ntokens));
	if (c->sampling.temp > 0)
		json_object_set_new(o, "seed", output_json_u64(t->seed));
	if (c->verbose == 0 || t->first_ns == 0)
		return;
	json_object_set_new(o, "ttft_s",
	    json_real((double)(t->first_ns - t->start_ns) / 1e9));
	json_object_set_new(o, "gen_s",
	    json_real((double)(t->last_ns - t->first_ns) / 1e9));
}

static int
finish_line(void *arg, const struct completion *t, struct err *reterr)
{
	struct prompts *p = arg;
	struct line *l = t->line;
	int rc;

	if (t->is_cut && (rc = source_append(&l->text, UTF8_REPLACEMENT,
	    strlen(UTF8_REPLACEMENT), reterr)) < 0)
		return rc;
	if ((l->result = line_json(l)) != NULL) {
		if (t->err.kind != ERR_NONE)
			note_failure(p, l, &t->err);
		else if (t->stop != NULL)
			json_object_set_new(l->result, "stop",
			    json_string(t->stop));
		else
			json_object_set_new(l->result, "interrupted",
			    json_true());
		if (l->thoughts.nbytes > 0)
			json_object_set_new(l->result, "thoughts",
			    output_json_text(l->thoughts.text,
			    l->thoughts.nbytes));
		add_numbers(p, t, l->result);
	}
	if (t->stop != NULL && (!p->have_hash || t->index > p->hash_index)) {
		p->have_hash = 1;
		p->hash = t->hash;
		p->hash_index = t->index;
	}
	return print_lines(p, l, reterr);
}

void
prompts_init(struct prompts *p, struct engine *eng, const struct source *file,
    struct generate_ops *ret)
{
	*p = (struct prompts){ .eng = eng, .path = eng->conf->prompts_file,
	    .at = file->text };
	if (file->text != NULL)		/* else there is no file of prompts */
		p->eof = file->text + file->nbytes;
	lines_init(&p->lines);
	*ret = (struct generate_ops){ .next_prompt = next_prompt,
	    .emit = keep_text, .emit_thought = keep_thought,
	    .finish = finish_line, .arg = p };
}

int
prompts_result(const struct prompts *p, struct err *reterr)
{
	if (p->nfailed == 0)
		return 0;
	if (p->nfailed == 1)
		return err_set(reterr, ERR_RUN, -EINVAL, "%s", p->first_err.msg);
	return err_set(reterr, ERR_RUN, -EINVAL, "%s (and %u more line%s)",
	    p->first_err.msg, p->nfailed - 1, p->nfailed > 2 ? "s" : "");
}

void
prompts_done(struct prompts *p)
{
	lines_done(&p->lines);
}
