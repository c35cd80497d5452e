/* config/conf.h - what the user asked for, checked.
 * Owns: struct conf; defaults, then the file, then the flags.  Called by the
 * coordinator's main and by tests.  Knows no model, device or process. */
#ifndef CONFIG_CONF_H
#define CONFIG_CONF_H

#include <stdio.h>

#include "base.h"
#include "err.h"
#include "kv_type.h"
#include "priority.h"
#include "units.h"

struct session_conf {
	char name[MAX_NAME];	/* "" = to be named kind + index: "cpu0" */
	char device[MAX_NAME];	/* "cpu", "null", ... */
	char cores[256];	/* as written: "0-3,6", "big", "little"; "" = all */
	struct cpuset cpus;	/* resolved by conf_check(); never empty then */
	int node;		/* NUMA node, -1 = none asked */
	uint64_t cap_bytes;	/* 0 = an equal share of the free memory */
	int cap_given;		/* cap written by the user */
	int threads;		/* 0 = one per core */
	struct priority priority;
	char port[MAX_NAME];	/* way to reach the device (devices.c); "" = the
				 * first one available */
	uint64_t domain_bytes;	/* address space of its domain; 0 = what the
				 * device has */
	char where[128];	/* "demo.conf:7" or "-s #1": for messages */
};

struct sampling_conf {
	double temp;		/* 0 = greedy */
	int top_k;		/* 0 = off */
	double top_p;		/* 1 = off */
	double min_p;		/* 0 = off */
	double repeat_penalty;	/* 1 = off */
	int repeat_last_n;	/* tokens that the penalty looks at */
	uint64_t seed;
	int seed_given;		/* otherwise a seed is drawn and printed */
};

/* Whole numbers as given; n = 0: none were. */
struct int_list {
	int n, v[16];
};

enum command {
	CMD_NONE, CMD_RUN, CMD_CHAT, CMD_PLAN, CMD_INSPECT, CMD_DEVICES,
	CMD_EXPLAIN, CMD_TOKENIZE, CMD_DETOKENIZE, CMD_EVAL, CMD_BENCH,
	CMD_STRESS, CMD_QUANTIZE, CMD_HELP, CMD_VERSION
};

struct conf {
	enum command cmd;

	/* common: file and flags */
	char *config_path;	/* -c, NULL = none */
	char *model_path;	/* -m over the file; relative paths in a file
				 * are relative to that file's folder */
	int ctx_tok;		/* 0 = min(trained, 4096) */
	int batch_rows;		/* default 128 */
	enum kv_type kv_type_k, kv_type_v;	/* default F16 */
	int half_layers;	/* cuts may be inside layers */
	int strict;		/* a fallback is an error */
	int recover;		/* workers that may be lost; 0 = none */
	int nsessions;		/* 0 in the file and flags = one cpu session */
	struct session_conf session[MAX_SESSIONS];
	struct sampling_conf sampling;

	/* flags only */
	int verbose;		/* 0 -q, 1 default, 2 -v */
	int json;		/* --json */
	int check_only;		/* plan --check */
	int fit;		/* plan --fit */
	char *prompt;		/* -p: the bytes as given */
	char *prompt_file;	/* -f */
	char *prompts_file;	/* --prompts */
	int parallel;		/* --parallel, default 1 */
	int chat;		/* run --chat */
	char *system;		/* --system: said before the first turn */
	int n_predict;		/* -n: run 128; bench 128; chat -1 = until the
				 * end */
	int bench_prompt;	/* bench -p 512 */
	int bench_reps;		/* bench -r 3 */
	int bench_load;		/* bench --load */
	struct int_list sweep;	/* bench --sweep: session counts */
	struct int_list depths;	/* bench -d: tokens before those generated */
	struct int_list parallels;	/* bench --parallel: sequences */
	int slice_ms;		/* bench --slice 30 */
	char *ids;		/* eval --ids; detokenize operands or -p */
	char *ids_file;		/* eval --ids-file; detokenize -f */
	char *logits_path;	/* eval --logits */
	char *text_path;	/* eval --text */
	int stride_tok;		/* eval --stride; 0 = the context */
	char *out_path;		/* quantize: operands OUT and TYPE */
	char *quant_type;
	char *head_type;	/* quantize --head, NULL = by TYPE */
	char *fallback_type;	/* quantize --fallback, NULL = by TYPE */
	int quant_threads;	/* quantize --threads, 0 = one per core */
	int no_bos;		/* tokenize --no-bos */
	int pieces;		/* tokenize --pieces */
	int special;		/* --special: control tokens written in the
				 * text are parsed as such */
	int ignore_eos;		/* --ignore-eos */
	int stress_list;	/* stress --list */
	char *stress_only;	/* stress --only */
	int soak_s;		/* stress --soak; 0 = the cases */
	char *help_topic;	/* help CMD */
};

/* All of a run's settings from argv: defaults, the file named by -c, flags.
 * -EINVAL and ERR_USAGE on anything not understood, as
 * "file:line: what, and what is allowed" or "--flag: what, ...".
 * *ret must be released by conf_free() in every case. */
int
conf_load(int argc, char **argv, struct conf *ret, struct err *reterr);

void conf_defaults(struct conf *c);

/* conf_parse.c: lay the libConfuse file over c. */
int conf_parse_file(const char *path, struct conf *c, struct err *reterr);

/* cli.c: lay the flags over c, in two passes: the first finds -c. */
int cli_find_config(int argc, char **argv, char **ret_path,
    struct err *reterr);
int cli_parse(int argc, char **argv, struct conf *c, struct err *reterr);

/* One session from "NAME=cpu,cores=0-1,cap=512MiB,node=0,priority=nice:5,
 * threads=2", or *ret_times equal ones from "4*cpu,cap=512MiB"; where names it
 * in messages. */
int conf_parse_session_spec(const char *spec, const char *where,
    struct session_conf *ret, int *ret_times, struct err *reterr);

/* Ranges and contradictions, once, over everything; names sessions without a
 * name, resolves core lists (see cores.h), refuses cores that the machine
 * lacks or the process may not use. */
int conf_check(struct conf *c, struct err *reterr);

/* The cores of all sessions, as conf_check() has resolved them. */
void conf_cores(const struct conf *c, struct cpuset *ret);

/* Print c as a config file that parses back to the same settings. */
int conf_print(const struct conf *c, FILE *fp);

void conf_free(struct conf *c);

const char *command_name(enum command cmd);	/* "run", ... */

/* Full help text of a command ("run", ...; NULL = the overview). */
const char *cli_help(const char *topic);	/* NULL: no such command */

#endif
