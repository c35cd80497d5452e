/* config/options.c - the table of settings: every config key and option.
 *
 * A new option is a row here, a field in conf.h, and the code that reads the
 * field.  The help shows rows in this order.  An option may have several rows,
 * for different commands: -p is a prompt for run and a number for bench. */
#include "options.h"

#include <stdio.h>
#include <string.h>

#include "devices.h"

/* 32 bits of addresses, less what the emulator reserves at their end. */
#define DOMAIN_MAX	(4 * GIB - 16 * MIB)

/* The range of --coordinator-cap and --reader-cap. */
#define PROCESS_CAP_MIN	(4 * MIB)
#define PROCESS_CAP_MAX	(64 * GIB)

enum { MAX_NODE = 1023, MAX_COUNT = 1 << 24 };

#define ALL		(~0u)
#define RUN		(1u << CMD_RUN)
#define CHAT		(1u << CMD_CHAT)
#define PLAN		(1u << CMD_PLAN)
#define INSPECT		(1u << CMD_INSPECT)
#define DEVICES		(1u << CMD_DEVICES)
#define EXPLAIN		(1u << CMD_EXPLAIN)
#define TOKENIZE	(1u << CMD_TOKENIZE)
#define DETOKENIZE	(1u << CMD_DETOKENIZE)
#define RENDER		(1u << CMD_RENDER)
#define EVAL		(1u << CMD_EVAL)
#define BENCH		(1u << CMD_BENCH)
#define STRESS		(1u << CMD_STRESS)
#define QUANTIZE	(1u << CMD_QUANTIZE)

/* Parts of a row: its key, its option, its field.  sizeof() in OFFSET() makes
 * the compiler warn if the field does not have the type ctype. */
#define TOP(name)	.section = SECTION_TOP, .key = name
#define SAMPLING(name)	.section = SECTION_SAMPLING, .key = name
#define SESSION(name)	.section = SECTION_SESSION, .key = name
#define OPT(who, chr, name, value)	\
	.cmds = who, .letter = chr, .option = name, .arg = value
#define OFFSET(ctype, base, field)	\
	(offsetof(struct base, field) +	\
	0 * sizeof(&((struct base *)NULL)->field == (ctype *)NULL))
#define SPECIAL		.type = KEY_OTHER
#define BOOL(field)	.type = KEY_BOOL, .off = OFFSET(int, conf, field)
#define INT(field, min, max, def)	\
	.type = KEY_INT, .off = OFFSET(int, conf, field), .lo = min,	\
	.hi = max, .preset = def
#define REAL(field, min, max, def)	\
	.type = KEY_REAL, .off = OFFSET(double, conf, field), .lo = min, \
	.hi = max, .preset = def
#define LIST(field, min, max)	\
	.type = KEY_LIST, .off = OFFSET(struct int_list, conf, field),	\
	.lo = min, .hi = max
#define TEXT(field)	.type = KEY_TEXT, .off = OFFSET(char *, conf, field)
#define PATH(field)	.type = KEY_PATH, .off = OFFSET(char *, conf, field)
#define KV(field)	\
	.type = KEY_KV_ONE, .off = OFFSET(enum kv_type, conf, field),	\
	.preset = KV_F16
#define SIZE(field, min, max)	\
	.type = KEY_SIZE, .off = OFFSET(uint64_t, conf, field), .lo = min, \
	.hi = max
#define OF_SESSION(ktype, field)	\
	.type = ktype, .off = offsetof(struct session_conf, field)

static const char *const thinking_words[] = {
	[THINKING_SHOW] = "show", [THINKING_HIDE] = "hide",
	[THINKING_OFF] = "off", NULL
};

static const struct setting settings[] = {
	/* where the text comes from */
	{ OPT(RUN, 'p', NULL, "TEXT"), TEXT(prompt),
	  .help = "the prompt" },
	{ OPT(RUN, 'f', NULL, "FILE"), PATH(prompt_file),
	  .help = "read the prompt from FILE, - is stdin, without the newline "
	    "at its end" },
	{ OPT(RUN, 0, "prompts", "FILE"), PATH(prompts_file),
	  .help = "one prompt per line; prints one JSON object per line, in "
	    "order. Without --ctx the context is as long as they need" },
	{ OPT(RUN, 0, "parallel", "N"), INT(parallel, 1, MAX_SEQS, 1),
	  .help = "prompts to run at once, {range} (default {default}); the "
	    "texts stay the same" },
	{ OPT(TOKENIZE, 'p', NULL, "TEXT"), TEXT(prompt),
	  .help = "the text" },
	{ OPT(TOKENIZE, 'f', NULL, "FILE"), PATH(prompt_file),
	  .help = "the text is the exact contents of FILE; - is stdin" },
	{ OPT(DETOKENIZE, 'p', NULL, "IDS"), TEXT(ids),
	  .help = "the ids, as in -p \"1 2 3\"" },
	{ OPT(DETOKENIZE, 'f', NULL, "FILE"), PATH(ids_file),
	  .help = "read the ids from FILE; - is stdin" },
	{ OPT(EVAL, 0, "ids", "IDS"), TEXT(ids),
	  .help = "the tokens, as in --ids \"1 2 3\"" },
	{ OPT(EVAL, 0, "ids-file", "FILE"), PATH(ids_file),
	  .help = "read the tokens from FILE; - is stdin" },
	{ OPT(EVAL, 0, "logits", "OUT.f32"), PATH(logits_path),
	  .help = "write the logits to this file" },
	{ OPT(EVAL, 0, "text", "FILE"), PATH(text_path),
	  .help = "the text to score; - is stdin" },
	{ OPT(EVAL, 0, "stride", "N"), INT(stride_tok, 1, LIMIT_CONTEXT, 0),
	  .help = "start a chunk every N tokens, 1 to the context (default: "
	    "the context). Up to half the context, only the last N tokens of "
	    "a chunk are scored: each token once, with more text before it" },

	/* run, chat: generating */
	{ OPT(RUN, 'n', NULL, "N"), INT(n_predict, -1, INT32_MAX, 128),
	  .help = "tokens to generate (default {default}); -1: to the end" },
	{ OPT(CHAT, 'n', NULL, "N"), INT(n_predict, -1, INT32_MAX, 0),
	  .help = "tokens per answer (default: half of what is left of the "
	    "context); -1: until the model ends it or the context is full" },
	{ OPT(CHAT, 0, "context-shift", NULL), BOOL(context_shift),
	  .help = "when the context is full, drop the oldest turns after the "
	    "system message, and say so; without it, the answer ends" },
	{ SAMPLING("temp"), OPT(RUN | CHAT, 0, "temp", "X"),
	  REAL(sampling.temp, 0, 100, 0.8),
	  .help = "temperature, {range} (default {default}); 0: greedy" },
	{ SAMPLING("top_k"), OPT(RUN | CHAT, 0, "top-k", "N"),
	  INT(sampling.top_k, -1, MAX_COUNT, 40),
	  .help = "keep the N most likely tokens (default {default}; 0: off)" },
	{ SAMPLING("top_p"), OPT(RUN | CHAT, 0, "top-p", "X"),
	  REAL(sampling.top_p, 0, 1, 0.95),
	  .help = "keep the best tokens that add up to X (default {default}; "
	    "1: off)" },
	{ SAMPLING("min_p"), OPT(RUN | CHAT, 0, "min-p", "X"),
	  REAL(sampling.min_p, 0, 1, 0.05),
	  .help = "drop tokens below X times the best (default {default}; 0: "
	    "off)" },
	{ SAMPLING("repeat_penalty"), OPT(RUN | CHAT, 0, "repeat-penalty", "X"),
	  REAL(sampling.repeat_penalty, 0.01, 100, 1),
	  .help = "make repeated tokens less likely (default {default}: off)" },
	{ SAMPLING("repeat_last_n"), OPT(RUN | CHAT, 0, "repeat-last-n", "N"),
	  INT(sampling.repeat_last_n, -1, LIMIT_CONTEXT, 64),
	  .help = "tokens it looks back at (default {default}); -1: all" },
	{ SAMPLING("seed"), OPT(RUN | CHAT | STRESS, 0, "seed", "N"),
	  .type = KEY_SEED,
	  .help = "make random choices repeatable (default: drawn, printed)" },
	{ OPT(RUN, 0, "chat", NULL), BOOL(chat),
	  .help = "put the prompt into the model's chat template" },
	{ OPT(RUN, 0, "system", "TEXT"), TEXT(system),
	  .help = "with --chat: the system message" },
	{ OPT(RUN, 0, "prefill", "TEXT"), TEXT(prefill),
	  .help = "with --chat: the begin of the answer, which goes on behind "
	    "it" },
	{ OPT(CHAT, 0, "system", "TEXT"), TEXT(system),
	  .help = "the system message" },
	{ OPT(RUN | CHAT, 0, "template-arg", "NAME=JSON"),
	  .type = KEY_TEXTS, .off = OFFSET(struct text_list, conf,
	    template_args),
	  .help = "set a variable of the chat template, as in --template-arg "
	    "enable_thinking=false; repeatable" },
	{ OPT(RUN | CHAT, 0, "ignore-eos", NULL), BOOL(ignore_eos),
	  .help = "continue past the model's end-of-text token" },

	{ OPT(RUN | CHAT, 0, "stop", "TEXT"),
	  .type = KEY_TEXTS, .off = OFFSET(struct text_list, conf, stop),
	  .help = "end the answer before TEXT; repeatable" },

	/* plan */
	{ OPT(PLAN, 0, "check", NULL), BOOL(check_only),
	  .help = "only check the config, and print it as it was understood" },
	{ OPT(PLAN, 0, "fit", NULL), BOOL(fit),
	  .help = "choose settings that fit, and say why: with one session, "
	    "the fewest sessions like it; with several, the largest batch, KV "
	    "type or context that they hold" },
	{ OPT(PLAN, 0, "for-another-machine", NULL), BOOL(another_machine),
	  .help = "leave out whether this machine has the memory; each "
	    "session needs a cap" },
	{ OPT(PLAN, 0, "parallel", "N"), INT(parallel, 1, MAX_SEQS, 1),
	  .help = "plan for N sequences at once, {range} (default {default})" },

	/* devices */
	{ OPT(DEVICES, 0, "verify", NULL), BOOL(verify),
	  .help = "also compute small programs on each device and compare the "
	    "results with the reference kernels: a line for each operation "
	    "and type; exit code 1 if one is wrong" },

	/* tokenize */
	{ OPT(TOKENIZE, 0, "no-bos", NULL), BOOL(no_bos),
	  .help = "omit the beginning-of-text token" },
	{ OPT(TOKENIZE, 0, "pieces", NULL), BOOL(pieces),
	  .help = "print each id with its bytes, one per line" },
	{ OPT(RUN | CHAT | TOKENIZE, 0, "special", NULL), BOOL(special),
	  .help = "parse control tokens written out in the text" },

	/* render */
	{ OPT(RENDER, 0, "vars", "FILE"), PATH(vars_path),
	  .help = "the template's variables, a JSON object; - is stdin" },
	{ OPT(RENDER, 0, "spans", NULL), BOOL(spans),
	  .help = "print JSON that says of each part of the text whether the "
	    "template or the variables wrote it" },

	/* quantize */
	{ OPT(QUANTIZE, 0, "head", "TYPE"), TEXT(head_type),
	  .help = "type of the output head" },
	{ OPT(QUANTIZE, 0, "fallback", "TYPE"), TEXT(fallback_type),
	  .help = "type of rows whose length is no multiple of 256 (default: "
	    "Q5_0 for Q4_K, Q5_1 for Q5_K, Q8_0 for Q6_K); F16 where this "
	    "does not fit either" },
	{ OPT(QUANTIZE, 0, "force", NULL), BOOL(force),
	  .help = "replace OUT if it exists" },
	{ OPT(QUANTIZE, 't', "threads", "N"), INT(quant_threads, 1, MAX_CPUS, 0),
	  .help = "{range} (default: one per available core, within the CPU "
	    "quota); the file does not depend on it" },

	/* bench */
	{ OPT(BENCH, 'p', NULL, "N"), INT(bench_prompt, 0, MAX_COUNT, 512),
	  .help = "prompt tokens, {range} (default {default}); 0: no such "
	    "test" },
	{ OPT(BENCH, 'n', NULL, "N"), INT(n_predict, 0, MAX_COUNT, 128),
	  .help = "tokens to generate, {range} (default {default}); 0: no such "
	    "test" },
	{ OPT(BENCH, 'r', NULL, "N"), INT(bench_reps, 1, 1000, 3),
	  .help = "repetitions, {range} (default {default})" },
	{ OPT(BENCH, 'd', "depth", "LIST"), LIST(depths, 0, LIMIT_CONTEXT - 1),
	  .help = "tokens in the context before those generated, as in -d "
	    "0,2048,8192 (default 0)" },
	{ OPT(BENCH, 0, "parallel", "LIST"), LIST(parallels, 1, MAX_SEQS),
	  .help = "sequences at once, {range} (default 1)" },
	{ OPT(BENCH, 0, "load", NULL), BOOL(bench_load),
	  .help = "also measure loading, against raw direct reads of the file" },
	{ OPT(BENCH, 0, "sweep", "LIST"), LIST(sweep, 1, MAX_SESSIONS),
	  .help = "repeat the tests with these numbers of sessions, as in "
	    "--sweep 1,2,4, on the cores and within the caps of the given "
	    "sessions; cores shared and, where there are enough, divided" },
	{ OPT(BENCH, 0, "slice", "MS"), INT(slice_ms, 1, 10000, 30),
	  .help = "length of a roofline slice, {range} ms (default "
	    "{default})" },

	/* stress */
	{ OPT(STRESS, 0, "list", NULL), BOOL(stress_list),
	  .help = "list the cases" },
	{ OPT(STRESS, 0, "only", "NAME"), TEXT(stress_only),
	  .help = "run only this case; * and ? are wildcards" },
	{ OPT(STRESS, 0, "soak", "N"), INT(soak_s, 1, 1000000, 0),
	  .help = "instead of the cases, generate and lose workers for N "
	    "seconds, in which no resource in use may grow" },

	{ OPT(RUN | PLAN | INSPECT | DEVICES | EXPLAIN | EVAL | BENCH | STRESS |
	    QUANTIZE, 0, "json", NULL), BOOL(json),
	  .help = "print one JSON object instead" },

	{ OPT(RUN | CHAT | EVAL | BENCH | STRESS, 0, "overcommit", NULL),
	  BOOL(overcommit),
	  .help = "run also where the plan needs more memory than is free" },

	/* every command */
	{ OPT(ALL, 'c', NULL, "FILE"), SPECIAL,
	  .help = "read settings from a config file; see straddle.conf(5)" },
	{ TOP("model"), OPT(ALL, 'm', NULL, "MODEL"), PATH(model_path),
	  .help = "the GGUF model file" },
	{ OPT(ALL, 's', NULL, "SPEC"), SPECIAL,
	  .help = "one session; repeatable; replaces the sessions of the "
	    "file: [NAME=]DEVICE{session}\n4*DEVICE,... makes four equal "
	    "ones.\nDEVICE is cpu, hexagon, rknpu, ascend, or null (for tests); "
	    "port and domain are for hexagon (port also for ascend: the "
	    "device's number), iommu_domain is for rknpu. Sessions "
	    "with the same process share one worker. LIST is 0-3,6 or big or "
	    "little; SIZE is 3.5GiB or 512MiB" },
	{ TOP("context"), OPT(ALL, 0, "ctx", "N"),
	  INT(ctx_tok, CTX_TRAINED, LIMIT_CONTEXT, CTX_DEFAULT),
	  .help = "context in tokens, {range}, 0 = as the model was trained "
	    "(default: the smaller of that and 4096)" },
	{ TOP("batch"), OPT(ALL, 0, "batch", "N"),
	  INT(batch_rows, 1, MAX_BATCH, 128),
	  .help = "rows per batch, {range} (default {default})" },
	{ TOP("kv_type"), OPT(ALL, 0, "kv-type", "TYPE"),
	  .type = KEY_KV_TYPE,
	  .help = "type of cached keys and values: {range} (default "
	    "{default})" },
	{ TOP("kv_type_k"), OPT(ALL, 0, "kv-type-k", "TYPE"), KV(kv_type_k),
	  .help = "keys only; the last of these three options counts" },
	{ TOP("kv_type_v"), OPT(ALL, 0, "kv-type-v", "TYPE"), KV(kv_type_v),
	  .help = "values only" },
	{ TOP("half_layers"), OPT(ALL, 0, "half-layers", NULL),
	  BOOL(half_layers),
	  .help = "also split inside a layer, between attention and "
	    "feed-forward network" },
	{ TOP("strict"), OPT(ALL, 0, "strict", NULL), BOOL(strict),
	  .help = "fail when an operation falls back to the CPU" },
	{ OPT(ALL & ~QUANTIZE, 't', "threads", "N"),
	  INT(threads, 1, MAX_CPUS, 0),
	  .help = "threads of each session that names none (default: one per "
	    "core)" },
	{ TOP("recover"), OPT(ALL, 0, "recover", "N"),
	  INT(recover, 0, LIMIT_RECOVER, 16),
	  .help = "lost workers that a run survives, {range} (default "
	    "{default}): each is restarted and reloaded, and its state is "
	    "computed again; bench survives none" },
	{ TOP("coordinator_cap"), OPT(ALL, 0, "coordinator-cap", "SIZE"),
	  SIZE(coordinator_cap_bytes, PROCESS_CAP_MIN, PROCESS_CAP_MAX),
	  .help = "memory of the coordinator itself, {range} (default: derived "
	    "from model, context and sessions)" },
	{ TOP("reader_cap"), OPT(ALL, 0, "reader-cap", "SIZE"),
	  SIZE(reader_cap_bytes, PROCESS_CAP_MIN, PROCESS_CAP_MAX),
	  .help = "memory of the process that reads the model's header and "
	    "texts, {range} (default: derived from the file's size)" },
	{ TOP("chat_template"), OPT(RUN | CHAT | RENDER, 0, "chat-template",
	    "FILE|NAME"), PATH(chat_template),
	  .help = "the chat template: a file, or the name of a built-in form, "
	    "such as ChatML or plain (default: the model's own)" },
	{ TOP("thinking"), OPT(RUN | CHAT, 0, "thinking", "WHAT"),
	  .type = KEY_WORD, .off = OFFSET(int, conf, thinking),
	  .words = thinking_words, .preset = THINKING_HIDE,
	  .help = "in conversations, what to do with the model's thoughts: "
	    "{range}, which tells the chat template to have none (default "
	    "{default})" },
	{ TOP("user"), OPT(ALL, 0, "user", "NAME"), TEXT(user),
	  .help = "the user that root becomes once the files are open "
	    "(default: straddle, where it exists; root: none)" },
	{ OPT(ALL, 'v', NULL, NULL), SPECIAL,
	  .help = "print more messages" },
	{ OPT(ALL, 'q', NULL, NULL), SPECIAL,
	  .help = "print fewer messages; the last of -v and -q counts" },
	{ OPT(ALL, 'h', "help", NULL), SPECIAL,
	  .help = "print this text" },

	/* a session's keys, in a file and after -s */
	{ SESSION("device"), OF_SESSION(KEY_DEVICE, device) },
	{ SESSION("cores"), OF_SESSION(KEY_CORES, cores), .arg = "LIST" },
	{ SESSION("node"), OF_SESSION(KEY_INT, node), .arg = "N",
	  .lo = 0, .hi = MAX_NODE },
	{ SESSION("cap"), OF_SESSION(KEY_CAP, cap_bytes), .arg = "SIZE" },
	{ SESSION("threads"), OF_SESSION(KEY_INT, threads), .arg = "N",
	  .lo = 1, .hi = MAX_CPUS },
	{ SESSION("priority"), OF_SESSION(KEY_PRIORITY, priority),
	  .arg = "default|nice:N|fifo:N" },
	{ SESSION("port"), OF_SESSION(KEY_PORT, port),
	  .arg = "emulated|fastrpc" },
	{ SESSION("domain"), OF_SESSION(KEY_SIZE, domain_bytes), .arg = "SIZE",
	  .lo = 64 * MIB, .hi = DOMAIN_MAX },
	{ SESSION("iommu_domain"), OF_SESSION(KEY_INT, iommu_domain),
	  .arg = "N", .lo = 0, .hi = DEVICE_MAX_IOMMU_DOMAINS - 1 },
	{ SESSION("process"), OF_SESSION(KEY_NAME, process), .arg = "NAME" },
};

_Static_assert(NITEMS(settings) <= MAX_SETTINGS, "MAX_SETTINGS is too small");

const struct setting *
setting_at(unsigned i)
{
	return i < NITEMS(settings) ? &settings[i] : NULL;
}

const struct setting *
setting_next(enum section section, const struct setting *prev)
{
	const struct setting *s = prev != NULL ? prev + 1 : settings;

	for (; s < settings + NITEMS(settings); s++)
		if (s->section == section)
			return s;
	return NULL;
}

const struct setting *
setting_find(enum section section, const char *key)
{
	const struct setting *s = NULL;

	while ((s = setting_next(section, s)) != NULL)
		if (strcmp(s->key, key) == 0)
			return s;
	return NULL;
}

int
option_is_taken(const struct setting *s, enum command cmd)
{
	return s->cmds >> cmd & 1;
}

const char *
option_text(const struct setting *s, char buf[OPT_TEXT_LEN])
{
	if (s->option != NULL)
		snprintf(buf, OPT_TEXT_LEN, "--%s", s->option);
	else
		snprintf(buf, OPT_TEXT_LEN, "-%c", s->letter);
	return buf;
}
