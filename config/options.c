/* config/options.c - the table of options.
 *
 * One table says of every option which commands take it and which setting of
 * keys.c it makes.  A letter or a name may appear twice, for different
 * commands: -p is a prompt to run and a number to bench. */
#include "options.h"

#include <stdio.h>

#define ALL		(~0u)
#define RUN		(1u << CMD_RUN)
#define CHAT		(1u << CMD_CHAT)
#define PLAN		(1u << CMD_PLAN)
#define INSPECT		(1u << CMD_INSPECT)
#define DEVICES		(1u << CMD_DEVICES)
#define EXPLAIN		(1u << CMD_EXPLAIN)
#define TOKENIZE	(1u << CMD_TOKENIZE)
#define DETOKENIZE	(1u << CMD_DETOKENIZE)
#define EVAL		(1u << CMD_EVAL)
#define BENCH		(1u << CMD_BENCH)
#define STRESS		(1u << CMD_STRESS)
#define QUANTIZE	(1u << CMD_QUANTIZE)

#define COMMON(k)	&common_keys[COMMON_##k], 0
#define SAMPLING(k)	\
	&sampling_keys[SAMPLING_##k], offsetof(struct conf, sampling)
#define OWN(type, field, lo, hi)	\
	&(const struct conf_key){	\
		NULL, KEY_##type, offsetof(struct conf, field), lo, hi	\
	}, 0

static const struct cli_opt options[] = {
	{ NULL, 'c', ALL, NULL, 0 },
	{ NULL, 'm', ALL, COMMON(MODEL) },
	{ NULL, 's', ALL, NULL, 0 },
	{ "ctx", 0, ALL, COMMON(CONTEXT) },
	{ "batch", 0, ALL, COMMON(BATCH) },
	{ "kv-type", 0, ALL, COMMON(KV_TYPE) },
	{ "kv-type-k", 0, ALL, COMMON(KV_TYPE_K) },
	{ "kv-type-v", 0, ALL, COMMON(KV_TYPE_V) },
	{ "half-layers", 0, ALL, COMMON(HALF_LAYERS) },
	{ "strict", 0, ALL, COMMON(STRICT) },
	{ "recover", 0, ALL, COMMON(RECOVER) },
	{ NULL, 'v', ALL, NULL, 0 },
	{ NULL, 'q', ALL, NULL, 0 },
	{ "help", 'h', ALL, NULL, 0 },

	{ NULL, 'p', RUN | TOKENIZE, OWN(TEXT, prompt, 0, 0) },
	{ NULL, 'f', RUN | TOKENIZE, OWN(PATH, prompt_file, 0, 0) },
	{ "prompts", 0, RUN, OWN(PATH, prompts_file, 0, 0) },
	{ "parallel", 0, RUN | PLAN, OWN(INT, parallel, 1, MAX_SEQS) },
	{ NULL, 'n', RUN | CHAT, OWN(INT, n_predict, -1, INT32_MAX) },
	{ "temp", 0, RUN | CHAT, SAMPLING(TEMP) },
	{ "top-k", 0, RUN | CHAT, SAMPLING(TOP_K) },
	{ "top-p", 0, RUN | CHAT, SAMPLING(TOP_P) },
	{ "min-p", 0, RUN | CHAT, SAMPLING(MIN_P) },
	{ "repeat-penalty", 0, RUN | CHAT, SAMPLING(REPEAT_PENALTY) },
	{ "repeat-last-n", 0, RUN | CHAT, SAMPLING(REPEAT_LAST_N) },
	{ "seed", 0, RUN | CHAT | STRESS, SAMPLING(SEED) },
	{ "ignore-eos", 0, RUN | CHAT, OWN(BOOL, ignore_eos, 0, 0) },
	{ "chat", 0, RUN, OWN(BOOL, chat, 0, 0) },
	{ "system", 0, RUN | CHAT, OWN(TEXT, system, 0, 0) },
	{ "special", 0, RUN | CHAT | TOKENIZE, OWN(BOOL, special, 0, 0) },

	{ "check", 0, PLAN, OWN(BOOL, check_only, 0, 0) },
	{ "fit", 0, PLAN, OWN(BOOL, fit, 0, 0) },

	{ "no-bos", 0, TOKENIZE, OWN(BOOL, no_bos, 0, 0) },
	{ "pieces", 0, TOKENIZE, OWN(BOOL, pieces, 0, 0) },
	{ NULL, 'p', DETOKENIZE, OWN(TEXT, ids, 0, 0) },
	{ NULL, 'f', DETOKENIZE, OWN(PATH, ids_file, 0, 0) },

	{ "ids", 0, EVAL, OWN(TEXT, ids, 0, 0) },
	{ "ids-file", 0, EVAL, OWN(PATH, ids_file, 0, 0) },
	{ "logits", 0, EVAL, OWN(PATH, logits_path, 0, 0) },
	{ "text", 0, EVAL, OWN(PATH, text_path, 0, 0) },
	{ "stride", 0, EVAL, OWN(INT, stride_tok, 1, LIMIT_CONTEXT) },

	{ "head", 0, QUANTIZE, OWN(TEXT, head_type, 0, 0) },
	{ "fallback", 0, QUANTIZE, OWN(TEXT, fallback_type, 0, 0) },
	{ "threads", 0, QUANTIZE, OWN(INT, quant_threads, 1, MAX_CPUS) },

	{ NULL, 'p', BENCH, OWN(INT, bench_prompt, 0, 1 << 24) },
	{ NULL, 'n', BENCH, OWN(INT, n_predict, 0, 1 << 24) },
	{ NULL, 'r', BENCH, OWN(INT, bench_reps, 1, 1000) },
	{ "load", 0, BENCH, OWN(BOOL, bench_load, 0, 0) },
	{ "depth", 'd', BENCH, OWN(LIST, depths, 0, LIMIT_CONTEXT - 1) },
	{ "parallel", 0, BENCH, OWN(LIST, parallels, 1, MAX_SEQS) },
	{ "sweep", 0, BENCH, OWN(LIST, sweep, 1, MAX_SESSIONS) },
	{ "slice", 0, BENCH, OWN(INT, slice_ms, 1, 10000) },

	{ "list", 0, STRESS, OWN(BOOL, stress_list, 0, 0) },
	{ "only", 0, STRESS, OWN(TEXT, stress_only, 0, 0) },
	{ "soak", 0, STRESS, OWN(INT, soak_s, 1, 1000000) },

	{ "json", 0, RUN | PLAN | INSPECT | DEVICES | EXPLAIN | EVAL | BENCH |
	    STRESS | QUANTIZE,
	    OWN(BOOL, json, 0, 0) },
};

_Static_assert(NITEMS(options) < MAX_OPTIONS, "room for an end mark");

const struct cli_opt *
cli_option(unsigned i)
{
	return i < NITEMS(options) ? &options[i] : NULL;
}

int
cli_opt_taken(const struct cli_opt *o, enum command cmd)
{
	return o->cmds >> cmd & 1;
}

int
cli_opt_has_value(const struct cli_opt *o)
{
	if (o->key == NULL)
		return o->letter == 'c' || o->letter == 's';
	return o->key->type != KEY_BOOL;
}

const char *
cli_opt_text(const struct cli_opt *o, char buf[OPT_TEXT_LEN])
{
	if (o->name != NULL)
		snprintf(buf, OPT_TEXT_LEN, "--%s", o->name);
	else
		snprintf(buf, OPT_TEXT_LEN, "-%c", o->letter);
	return buf;
}
