/* coordinator/cmd/run.c - generates text: from one prompt, printed token by
 * token, or from a file of prompts, as JSON lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "config/utf8.h"
#include "cmd.h"
#include "coordinator/engine/chat.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/form.h"
#include "coordinator/engine/prompts.h"
#include "coordinator/engine/seed.h"
#include "coordinator/print/huge.h"
#include "coordinator/print/output.h"
#include "coordinator/print/thoughts.h"
#include "coordinator/text/tokenizer.h"

struct run {
	struct engine *eng;
	struct conf *c;			/* with a seed and a context */
	struct source source;		/* the prompt, or the file of prompts */
	struct generate_ops ops;
	struct generate_totals totals;
	struct prompts prompts;		/* --prompts */
	/* One prompt. */
	uint32_t *ids;			/* [n], until generate() takes them */
	uint32_t n;
	struct source text, thoughts;	/* the result, for --json */
	struct thoughts_frame frame;	/* around thoughts that are printed */
	uint32_t thought_tok;
	const char *stop;
	struct speeds sp;
};

/* --- one prompt, for generate() --- */

static int
next_prompt(void *arg, struct completion *t, struct err *reterr)
{
	struct run *r = arg;

	(void)reterr;
	if (r->ids == NULL)
		return 0;
	t->ids = r->ids;
	t->n = r->n;
	t->seed = r->c->sampling.seed;
	r->ids = NULL;
	return 1;
}

static int
check_output(int rc, struct err *reterr)
{
	if (rc == -EPIPE)
		return err_set(reterr, ERR_RUN, rc, "stdout: %s: its reader "
		    "has gone, generation ends", strerror(-rc));
	if (rc == -EINTR)
		return err_set(reterr, ERR_RUN, rc, "interrupted by a signal "
		    "while nobody read stdout");
	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "stdout: %s",
		    strerror(-rc));
	return 0;
}

/* Text is printed as it comes; for JSON it is kept. */
static int
emit_text(void *arg, const struct completion *t, const char *bytes,
    size_t nbytes, struct err *reterr)
{
	struct run *r = arg;
	int rc;

	(void)t;
	if (r->c->json)
		return source_append(&r->text, bytes, nbytes, reterr);
	if ((rc = thoughts_leave(&r->frame)) == 0)
		rc = output_text(bytes, nbytes);
	return check_output(rc, reterr);
}

static int
emit_thought(void *arg, const struct completion *t, const char *bytes,
    size_t nbytes, struct err *reterr)
{
	struct run *r = arg;

	(void)t;
	if (r->c->json)
		return source_append(&r->thoughts, bytes, nbytes, reterr);
	if (r->c->thinking != THINKING_SHOW)
		return 0;
	return check_output(thoughts_show(&r->frame, bytes, nbytes), reterr);
}

static int
finish_text(void *arg, const struct completion *t, struct err *reterr)
{
	struct run *r = arg;
	struct speeds *sp = &r->sp;
	int rc;

	if (t->is_cut && r->c->json && (rc = source_append(&r->text,
	    UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT), reterr)) < 0)
		return rc;
	r->stop = t->stop;
	r->thought_tok = t->thought_tok;
	if (t->stop != NULL && !r->c->json &&
	    (rc = check_output(thoughts_leave(&r->frame), reterr)) < 0)
		return rc;
	if (t->first_ns != 0)
		sp->ttft_s = (double)(t->first_ns - t->start_ns) / 1e9;
	sp->have_hash = t->stop != NULL;
	sp->logits_hash = t->hash;
	if (t->err.kind != ERR_NONE)
		return err_set(reterr, t->err.kind, -EDOM, "%s", t->err.msg);
	return 0;
}

/* --- report --- */

static void
sum_up_prompts(struct run *r)
{
	const struct generate_totals *g = &r->totals;
	struct speeds *sp = &r->sp;

	sp->ttft_s = (double)g->ttft_ns / 1e9;
	sp->all_s = (double)MAX(g->ns, 1) / 1e9;
	sp->seqs = engine_plan_of(r->eng)->nseqs;
	sp->batch_rows = (double)g->rows / (double)MAX(g->batches, 1);
	sp->have_hash = r->prompts.have_hash;
	sp->logits_hash = r->prompts.hash;
}

/* Memory that the sessions touch before they read weights into the rest. */
static uint64_t
reserved_bytes(const struct plan *p)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < p->nsessions; i++)
		n += p->session[i].bytes[MEM_KV] +
		    p->session[i].bytes[MEM_COMPUTE];
	return n;
}

/* 0 = nothing was measured. */
static double
per_second(uint64_t n, uint64_t ns)
{
	return ns > 0 ? (double)n * 1e9 / (double)ns : 0;
}

/* Each rate is tokens, or bytes, over the time in which they came: a prompt's
 * first token counts as the prompt's, and the texts of several prompts overlap. */
static void
sum_up(struct run *r)
{
	const struct generate_totals *g = &r->totals;
	struct speeds *sp = &r->sp;
	struct engine_numbers n;

	engine_numbers(r->eng, &n);
	sp->losses = n.losses;
	sp->lost_s = (double)n.lost_ns / 1e9;
	sp->load_s = (double)n.read_ns / 1e9;
	sp->load_gbs = (double)n.file_bytes / (double)MAX(n.read_ns, 1);
	sp->reserve_s = (double)n.reserve_ns / 1e9;
	sp->reserve_bytes = reserved_bytes(engine_plan_of(r->eng));
	sp->prompt_tok = (uint32_t)g->prompt_tok;
	sp->prompt_read = (uint32_t)g->prompt_read;
	sp->gen_tok = (uint32_t)g->gen_tok;
	sp->prompt_tps = per_second(g->prompt_read, g->prompt_ns);
	sp->gen_tps = per_second(g->gen_rows, g->gen_ns);
	if (r->c->prompts_file != NULL)
		sum_up_prompts(r);
}

static int
print_json(struct run *r, const struct sessions *ss, struct err *reterr)
{
	const struct plan *p = engine_plan_of(r->eng);
	json_t *o = output_sessions(p, ss, engine_processes(r->eng));

	json_object_set_new(o, "text", output_json_text(r->text.text,
	    r->text.nbytes));
	if (r->thoughts.nbytes > 0)
		json_object_set_new(o, "thoughts", output_json_text(
		    r->thoughts.text, r->thoughts.nbytes));
	if (r->stop != NULL)
		json_object_set_new(o, "stop", json_string(r->stop));
	else
		json_object_set_new(o, "interrupted", json_true());
	json_object_set_new(o, "seed",
	    output_json_u64(r->c->sampling.seed));
	json_object_set_new(o, "context", json_integer(p->ctx_tok));
	json_object_set_new(o, "batch", json_integer(p->batch_rows));
	json_object_set_new(o, "kv_type_k",
	    json_string(kv_type_name(r->c->kv_type_k)));
	json_object_set_new(o, "kv_type_v",
	    json_string(kv_type_name(r->c->kv_type_v)));
	output_add_speeds(o, &r->sp);
	return output_json(o, 1, reterr);
}

/* ss NULL: the run was cut short, and the workers have given no statistics. */
static int
report(struct run *r, const struct sessions *ss, struct err *reterr)
{
	sum_up(r);
	if (r->c->json && r->c->prompts_file == NULL)
		return print_json(r, ss, reterr);
	if (r->c->verbose > 0) {
		if (ss != NULL)
			output_table(stderr, engine_plan_of(r->eng), ss,
			    engine_processes(r->eng));
		if (ss != NULL && r->c->verbose > 1)
			huge_table(stderr, ss);
		output_speed(stderr, &r->sp);
	}
	return 0;
}

/* --- the run --- */

static int
start_and_generate(struct run *r, struct err *reterr)
{
	const struct conf *c = r->c;
	char note[FORM_NOTE_LEN];
	int rc;

	if ((rc = engine_start(r->eng, reterr)) < 0)
		return rc;
	if (c->chat) {
		form_note(engine_form(r->eng), note);
		log_info("%s", note);
	}
	seed_show(c);
	output_watch(engine_signal_fd(r->eng));
	rc = generate(r->eng, &r->ops, &r->totals, reterr);
	if (!c->json && c->prompts_file == NULL && r->totals.gen_tok > 0 &&
	    rc != -EPIPE)
		output_text("\n", 1);
	/* A run that was interrupted, or lost a worker for good, still reports
	 * the text and the speeds so far. */
	if (rc < 0 && rc != -EPIPE)
		report(r, NULL, NULL);
	if (rc < 0)
		return rc;
	if (r->stop != NULL && strcmp(r->stop, "context") == 0)
		log_info("the context of %u tokens is full",
		    engine_plan_of(r->eng)->ctx_tok);
	if (!c->json && c->thinking != THINKING_SHOW)
		thoughts_note(r->thought_tok);
	if ((rc = engine_stop(r->eng, reterr)) < 0 ||
	    (rc = report(r, engine_sessions(r->eng), reterr)) < 0)
		return rc;
	return prompts_result(&r->prompts, reterr);
}

/* Not more than a request can have.  A prompt from a file or from stdin loses
 * the newline that editors and echo put behind a text: models that are asked to
 * continue after it answer something else. */
static int
read_prompt(struct run *r, struct err *reterr)
{
	const struct conf *c = r->c;
	int rc = source_read_most(c->prompt, c->prompt_file,
	    engine_text_bytes(r->eng), &r->source, reterr);

	/* An empty prompt is -p "": here the text was forgotten. */
	if (rc == 0 && c->prompt_file != NULL && r->source.nbytes == 0 &&
	    strcmp(c->prompt_file, "-") == 0)
		return err_set(reterr, ERR_USAGE, -EINVAL, "run: no prompt: "
		    "stdin is empty: give -p TEXT or -f FILE, or pipe a text "
		    "in");
	if (rc == 0 && c->prompt_file != NULL)
		source_chomp(&r->source);
	return rc;
}

/* Refuse a run that cannot work before anything is loaded. */
static int
prepare_run(struct run *r, struct err *reterr)
{
	struct conf *c = r->c;
	uint32_t ctx_tok;
	int rc;

	if ((c->prompts_file != NULL && (rc = source_read_prompts(
	    c->prompts_file, &r->source, reterr)) < 0) ||
	    (rc = engine_open(c, &r->eng, reterr)) < 0 ||
	    (rc = engine_open_tokenizer(r->eng, reterr)) < 0)
		return rc;
	/* A context of the default length for each of many short prompts would
	 * mostly be reserved in vain. */
	if (c->prompts_file != NULL && c->ctx_tok == CTX_DEFAULT) {
		if ((rc = prompts_context(r->eng, &r->source, &ctx_tok,
		    reterr)) < 0)
			return rc;
		c->ctx_tok = (int)ctx_tok;
	}
	if ((rc = engine_plan(r->eng, reterr)) < 0)
		return rc;
	if (c->prompts_file != NULL) {
		prompts_init(&r->prompts, r->eng, &r->source, &r->ops);
		return 0;
	}
	r->ops = (struct generate_ops){ .next_prompt = next_prompt,
	    .emit = emit_text, .emit_thought = emit_thought,
	    .finish = finish_text, .arg = r };
	if ((rc = read_prompt(r, reterr)) < 0)
		return rc;
	rc = prompt_encode(r->eng, &r->source, &r->ids, &r->n, reterr);
	tokenizer_note_losses(engine_vocab(r->eng));
	return rc;
}

int
cmd_run(const struct conf *c, struct err *reterr)
{
	struct run *r = calloc(1, sizeof(*r));
	struct conf *with_seed = malloc(sizeof(*with_seed));
	int rc;

	if (r == NULL || with_seed == NULL) {
		free(with_seed);
		free(r);
		return err_nomem(reterr, "the settings of a run");
	}
	*with_seed = *c;
	r->c = with_seed;
	lines_init(&r->prompts.lines);
	seed_draw(with_seed);
	if ((rc = prepare_run(r, reterr)) == 0)
		rc = start_and_generate(r, reterr);
	prompts_done(&r->prompts);
	engine_close(r->eng);
	source_free(&r->source);
	source_free(&r->text);
	source_free(&r->thoughts);
	free(r->ids);
	free(with_seed);
	free(r);
	return rc;
}
