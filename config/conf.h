/* config/conf.h - the settings of a run, checked.
 * Owns: struct conf, filled from defaults, then the config file, then the
 * command line.  Called by the coordinator's main and by tests.  Does not
 * depend on models, devices or processes. */
#ifndef CONFIG_CONF_H
#define CONFIG_CONF_H

#include <stdio.h>

#include "base.h"
#include "err.h"
#include "kv_type.h"
#include "priority.h"
#include "quota.h"
#include "units.h"

struct session_conf {
	char name[MAX_NAME];	/* "" until conf_check() makes one: "cpu0" */
	char device[MAX_NAME];	/* "cpu", "null", ... */
	char cores[256];	/* as written: "0-3,6", "big"; "" = all */
	struct cpuset cpus;	/* cores, resolved by conf_check(); not empty */
	int node;		/* NUMA node, -1 = any */
	uint64_t cap_bytes;	/* 0 = an equal share of the free memory */
	int cap_given;		/* cap written by the user */
	int threads;		/* 0 = one per core, at most quota_threads */
	int quota_threads;	/* that its share of the CPU quota pays for, by
				 * conf_check(); 0 = no quota */
	struct priority priority;
	char port[MAX_NAME];	/* way to reach the device (devices.c); "" = the
				 * first one available */
	uint64_t domain_bytes;	/* address space of its domain; 0 = what the
				 * device has */
	int iommu_domain;	/* of an NPU: its number; -1 = the first that
				 * no other session has, by conf_check() */
	char process[MAX_NAME];	/* sessions with the same name here share a
				 * worker process; "" = one of its own */
	char where[128];	/* "demo.conf:7" or "-s #1": for messages */
};

struct sampling_conf {
	double temp;		/* 0 = greedy */
	int top_k;		/* 0 and -1 = off */
	double top_p;		/* 1 = off */
	double min_p;		/* 0 = off */
	double repeat_penalty;	/* 1 = off */
	int repeat_last_n;	/* tokens that the penalty looks back at; -1 =
				 * the whole context */
	uint64_t seed;
	int seed_given;		/* 0: a seed is drawn and printed */
};

/* Whole numbers in the given order; n = 0: none given. */
struct int_list {
	int n, v[16];
};

/* Ways to handle a model's thoughts. */
enum thinking {
	THINKING_SHOW,
	THINKING_HIDE,
	THINKING_OFF		/* the template is told to have none */
};

/* chat without -n: half of what is left of the context. */
enum { N_PREDICT_SHARE = -2 };

/* Texts of an option that may be repeated. */
enum { MAX_STOPS = 16, MAX_STOP_BYTES = 256 };
struct text_list {
	unsigned n;
	char *v[MAX_STOPS];
};

enum command {
	CMD_NONE, CMD_RUN, CMD_CHAT, CMD_PLAN, CMD_INSPECT, CMD_DEVICES,
	CMD_EXPLAIN, CMD_TOKENIZE, CMD_DETOKENIZE, CMD_RENDER, CMD_EVAL,
	CMD_BENCH, CMD_STRESS, CMD_QUANTIZE, CMD_HELP, CMD_VERSION
};

/* A context that is the model's trained one; one that is not given. */
enum { CTX_TRAINED = 0, CTX_DEFAULT = -1 };

struct conf {
	enum command cmd;

	/* config file and every command; options.c has the defaults */
	char *config_path;	/* -c, NULL = none */
	char *model_path;	/* absolute, or relative to the cwd */
	int ctx_tok;		/* or CTX_TRAINED, CTX_DEFAULT */
	int batch_rows;
	enum kv_type kv_type_k, kv_type_v;
	int half_layers;	/* split inside layers, too */
	int strict;		/* a fallback to the CPU is an error */
	int threads;		/* of sessions that name none; 0 = one per core */
	int recover;		/* lost workers that a run survives */
	/* Caps of processes that are no sessions; 0 = derived. */
	uint64_t coordinator_cap_bytes, reader_cap_bytes;
	char *user;		/* that root becomes; NULL = USER_DEFAULT */
	int nsessions;		/* conf_check() adds one CPU session to none */
	struct session_conf session[MAX_SESSIONS];
	struct quota quota;	/* of this process, by conf_check() */
	struct sampling_conf sampling;

	/* options of commands; NULL or 0 = not given, unless it says more */
	int verbose;		/* 0 -q, 1 default, 2 -v */
	int json;		/* --json */
	int check_only;		/* plan --check */
	int fit;		/* plan --fit */
	int another_machine;	/* plan --for-another-machine */
	int overcommit;		/* --overcommit: this machine's memory is no
				 * reason to refuse */
	char *prompt;		/* -p: the bytes as given */
	char *prompt_file;	/* -f */
	char *prompts_file;	/* --prompts */
	int parallel;		/* --parallel */
	int chat;		/* run --chat */
	char *system;		/* --system: the system message */
	char *prefill;		/* run --prefill: the answer's begin */
	char *chat_template;	/* --chat-template: a file, or a form's name;
				 * NULL = the model's own */
	struct text_list template_args;	/* --template-arg: NAME=JSON */
	int thinking;		/* --thinking: enum thinking */
	int n_predict;		/* -n: tokens to generate; -1 = until the end,
				 * or N_PREDICT_SHARE */
	int context_shift;	/* chat --context-shift */
	int bench_prompt;	/* bench -p */
	int bench_reps;		/* bench -r */
	int bench_load;		/* bench --load */
	struct int_list sweep;	/* bench --sweep: session counts */
	struct int_list depths;	/* bench -d: tokens before those generated */
	struct int_list parallels;	/* bench --parallel: sequences */
	int slice_ms;		/* bench --slice */
	char *ids;		/* eval --ids; detokenize operands or -p */
	char *ids_file;		/* eval --ids-file; detokenize -f */
	char *logits_path;	/* eval --logits */
	char *text_path;	/* eval --text */
	int stride_tok;		/* eval --stride; 0 = the context */
	char *out_path;		/* quantize: operand OUT */
	char *quant_type;	/* quantize: operand TYPE */
	char *head_type;	/* quantize --head, NULL = by TYPE */
	char *fallback_type;	/* quantize --fallback, NULL = by TYPE */
	int force;		/* quantize --force: replace OUT */
	int quant_threads;	/* quantize --threads, 0 = one per core */
	int no_bos;		/* tokenize --no-bos */
	int verify;		/* devices --verify */
	int pieces;		/* tokenize --pieces */
	char *vars_path;	/* render --vars */
	int spans;		/* render --spans */
	int special;		/* --special: control tokens in the text */
	int ignore_eos;		/* --ignore-eos */
	struct text_list stop;	/* --stop: texts that end an answer, each of
				 * 1 to MAX_STOP_BYTES bytes of UTF-8 */
	int stress_list;	/* stress --list */
	char *stress_only;	/* stress --only */
	int soak_s;		/* stress --soak; 0 = the cases */
	char *help_topic;	/* help CMD */
	char *help_shell;	/* help completion SHELL */
};

/* Fill ret from argv: defaults, the file named by -c, the options, and
 * conf_check().  -EINVAL and ERR_USAGE for anything not understood, with a
 * message "file:line: error, and what is allowed" or "--option: error, ...".
 * Release *ret with conf_free() in every case. */
int
conf_load(int argc, char **argv, struct conf *ret, struct err *reterr);

void conf_defaults(struct conf *c);

/* Override c with the settings of a config file.  conf_parse.c */
int conf_parse_file(const char *path, struct conf *c, struct err *reterr);

/* cli.c: the command line is read twice, first to find -c, then to override c
 * with the options. */
int cli_find_config(int argc, char **argv, char **ret_path,
    struct err *reterr);
int cli_parse(int argc, char **argv, struct conf *c, struct err *reterr);

/* Parse "NAME=cpu,cores=0-1,cap=512MiB,node=0,priority=nice:5,threads=2", or
 * "4*cpu,cap=512MiB": then *ret_times sessions like *ret are meant.  where
 * names the text in messages. */
int conf_parse_session_spec(const char *spec, const char *where,
    struct session_conf *ret, int *ret_times, struct err *reterr);

/* Check c as a whole: ranges, contradictions, core lists (see cores.h).  Adds a
 * CPU session if there is none and names the sessions without a name. */
int conf_check(struct conf *c, struct err *reterr);

/* 1 = both are served by one worker process; after conf_check(). */
int conf_shares_worker(const struct session_conf *a,
    const struct session_conf *b);

/* The union of all sessions' cores, after conf_check(). */
void conf_cores(const struct conf *c, struct cpuset *ret);

/* Print c as a config file that parses back to the same settings. */
int conf_print(const struct conf *c, FILE *fp);

/* Free all strings and reset c to the defaults. */
void conf_free(struct conf *c);

const char *command_name(enum command cmd);	/* "run", ... */

/* Help text of a command ("run", ...; NULL = the overview), valid until the
 * next call; NULL: no such command. */
const char *cli_help(const char *topic);

/* Print the completion script of a shell, "bash" or "zsh".  -EINVAL: there is
 * none.  completion.c */
int cli_completion(const char *shell, FILE *fp);

#endif
