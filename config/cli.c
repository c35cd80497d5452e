/* config/cli.c - the command line laid over a struct conf.
 *
 * One table says of every option which commands take it and which setting of
 * keys.c it makes.  A letter may appear twice, for different commands: -p is
 * a prompt to run and a number to bench. */
#include "conf.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "keys.h"

static const char *const command_names[] = {
	[CMD_RUN] = "run", [CMD_PLAN] = "plan", [CMD_INSPECT] = "inspect",
	[CMD_DEVICES] = "devices", [CMD_EXPLAIN] = "explain",
	[CMD_TOKENIZE] = "tokenize", [CMD_DETOKENIZE] = "detokenize",
	[CMD_EVAL] = "eval", [CMD_BENCH] = "bench", [CMD_STRESS] = "stress",
	[CMD_HELP] = "help", [CMD_VERSION] = "version",
};

#define ALL		(~0u)
#define RUN		(1u << CMD_RUN)
#define PLAN		(1u << CMD_PLAN)
#define INSPECT		(1u << CMD_INSPECT)
#define DEVICES		(1u << CMD_DEVICES)
#define EXPLAIN		(1u << CMD_EXPLAIN)
#define TOKENIZE	(1u << CMD_TOKENIZE)
#define DETOKENIZE	(1u << CMD_DETOKENIZE)
#define EVAL		(1u << CMD_EVAL)
#define BENCH		(1u << CMD_BENCH)
#define STRESS		(1u << CMD_STRESS)

struct cli_opt {
	const char *name;	/* long name, or NULL */
	int letter;		/* or 0 */
	unsigned cmds;		/* the commands that take it */
	const struct conf_key *key;	/* what it sets; NULL: see apply() */
	size_t base;		/* of the key's struct in struct conf */
};

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
	{ "strict", 0, ALL, COMMON(STRICT) },
	{ NULL, 'v', ALL, NULL, 0 },
	{ NULL, 'q', ALL, NULL, 0 },
	{ "help", 'h', ALL, NULL, 0 },

	{ NULL, 'p', RUN | TOKENIZE, OWN(TEXT, prompt, 0, 0) },
	{ NULL, 'f', RUN | TOKENIZE, OWN(PATH, prompt_file, 0, 0) },
	{ "prompts", 0, RUN, OWN(PATH, prompts_file, 0, 0) },
	{ "parallel", 0, RUN | PLAN, OWN(INT, parallel, 1, MAX_SEQS) },
	{ NULL, 'n', RUN, OWN(INT, n_predict, -1, INT32_MAX) },
	{ "temp", 0, RUN, SAMPLING(TEMP) },
	{ "top-k", 0, RUN, SAMPLING(TOP_K) },
	{ "top-p", 0, RUN, SAMPLING(TOP_P) },
	{ "min-p", 0, RUN, SAMPLING(MIN_P) },
	{ "repeat-penalty", 0, RUN, SAMPLING(REPEAT_PENALTY) },
	{ "repeat-last-n", 0, RUN, SAMPLING(REPEAT_LAST_N) },
	{ "seed", 0, RUN, SAMPLING(SEED) },
	{ "ignore-eos", 0, RUN, OWN(BOOL, ignore_eos, 0, 0) },
	{ "special", 0, RUN | TOKENIZE, OWN(BOOL, special, 0, 0) },

	{ "check", 0, PLAN, OWN(BOOL, check_only, 0, 0) },

	{ "no-bos", 0, TOKENIZE, OWN(BOOL, no_bos, 0, 0) },
	{ "pieces", 0, TOKENIZE, OWN(BOOL, pieces, 0, 0) },
	{ NULL, 'p', DETOKENIZE, OWN(TEXT, ids, 0, 0) },
	{ NULL, 'f', DETOKENIZE, OWN(PATH, ids_file, 0, 0) },

	{ "ids", 0, EVAL, OWN(TEXT, ids, 0, 0) },
	{ "ids-file", 0, EVAL, OWN(PATH, ids_file, 0, 0) },
	{ "logits", 0, EVAL, OWN(PATH, logits_path, 0, 0) },
	{ "text", 0, EVAL, OWN(PATH, text_path, 0, 0) },

	{ NULL, 'p', BENCH, OWN(INT, bench_prompt, 0, 1 << 24) },
	{ NULL, 'n', BENCH, OWN(INT, n_predict, 0, 1 << 24) },
	{ NULL, 'r', BENCH, OWN(INT, bench_reps, 1, 1000) },
	{ "load", 0, BENCH, OWN(BOOL, bench_load, 0, 0) },
	{ "sweep", 0, BENCH, OWN(SWEEP, sweep, 0, 0) },

	{ "json", 0, RUN | PLAN | INSPECT | DEVICES | EXPLAIN | BENCH | STRESS,
	    OWN(BOOL, json, 0, 0) },
};

enum { LONG_VAL = 256 };	/* getopt's value of options[0], if long */

/* A walk over the options of one command line. */
struct cli {
	int argc;
	char **argv;		/* from the command on */
	enum command cmd;
	int nsessions;		/* -s met so far */
	struct err *err;
};

const char *
command_name(enum command cmd)
{
	return cmd < NITEMS(command_names) ? command_names[cmd] : NULL;
}

static enum command
find_command(const char *name)
{
	unsigned i;

	for (i = CMD_NONE + 1; i < NITEMS(command_names); i++)
		if (strcmp(name, command_names[i]) == 0)
			return (enum command)i;
	return CMD_NONE;
}

static int
takes_value(const struct cli_opt *o)
{
	if (o->key == NULL)
		return o->letter == 'c' || o->letter == 's';
	return o->key->type != KEY_BOOL;
}

/* "-p" or "--ctx", as messages call it. */
static const char *
opt_text(const struct cli_opt *o, char buf[32])
{
	if (o->name != NULL)
		snprintf(buf, 32, "--%s", o->name);
	else
		snprintf(buf, 32, "-%c", o->letter);
	return buf;
}

/* "--foo: not an option of run, which takes -c, -m, ..." */
static int
refuse(const struct cli *cli, const char *text)
{
	char list[600] = "", buf[32];
	unsigned i;

	for (i = 0; i < NITEMS(options); i++)
		if (options[i].cmds >> cli->cmd & 1) {
			strlcat(list, *list ? ", " : "", sizeof(list));
			strlcat(list, opt_text(&options[i], buf),
			    sizeof(list));
		}
	return err_set(cli->err, ERR_USAGE, -EINVAL,
	    "%.64s: not an option of %s, which takes %s", text,
	    command_names[cli->cmd], list);
}

/* What getopt_long() stumbled over. */
static int
refuse_last(const struct cli *cli, int missing_value)
{
	const char *text = cli->argv[optind - 1];
	char buf[32] = { '-', (char)optopt, '\0' };

	if (optopt >= LONG_VAL)
		text = opt_text(&options[optopt - LONG_VAL], buf);
	else if (optopt != 0)
		text = buf;
	if (missing_value)
		return err_set(cli->err, ERR_USAGE, -EINVAL,
		    "%s: needs a value", text);
	if (optopt >= LONG_VAL)
		return err_set(cli->err, ERR_USAGE, -EINVAL,
		    "%s: takes no value", text);
	return refuse(cli, text);
}

/* Find the command, and begin. */
static int
cli_begin(struct cli *cli, int argc, char **argv, struct err *reterr)
{
	*cli = (struct cli){ argc - 1, argv + 1, CMD_NONE, 0, reterr };

	if (argc < 2)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "no command: 'straddle help' lists them");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		cli->cmd = CMD_HELP;
	else if (strcmp(argv[1], "--version") == 0)
		cli->cmd = CMD_VERSION;
	else
		cli->cmd = find_command(argv[1]);
	if (cli->cmd == CMD_NONE)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s': no such command, and the command comes first: "
		    "'straddle help' lists them", argv[1]);
	optind = 0;		/* glibc: from the start, forget all */
	opterr = 0;
	return 0;
}

/* The option with this getopt value; a letter's meaning depends on cmd. */
static const struct cli_opt *
find_option(const struct cli *cli, int val)
{
	unsigned i;

	if (val >= LONG_VAL)
		return options[val - LONG_VAL].cmds >> cli->cmd & 1 ?
		    &options[val - LONG_VAL] : NULL;
	for (i = 0; i < NITEMS(options); i++)
		if (options[i].letter == val && options[i].cmds >> cli->cmd & 1)
			return &options[i];
	return NULL;
}

/* The next option: 1, *ret_opt and *ret_text (NULL for a plain flag); 0 when
 * only operands are left, at optind. */
static int
cli_next(const struct cli *cli, const struct cli_opt **ret_opt,
    const char **ret_text)
{
	struct option longs[NITEMS(options) + 1] = {0}, *l = longs;
	char letters[2 * NITEMS(options) + 2] = ":", buf[32];
	unsigned i;
	int val;

	for (i = 0; i < NITEMS(options); i++) {
		const struct cli_opt *o = &options[i];

		if (o->name != NULL)
			*l++ = (struct option){ o->name, takes_value(o), NULL,
			    LONG_VAL + (int)i };
		if (o->letter != 0 && strchr(letters, o->letter) == NULL) {
			char text[] = { (char)o->letter,
			    takes_value(o) ? ':' : '\0', '\0' };

			strlcat(letters, text, sizeof(letters));
		}
	}
	val = getopt_long(cli->argc, cli->argv, letters, longs, NULL);
	if (val == -1)
		return 0;
	if (val == '?' || val == ':')
		return refuse_last(cli, val == ':');
	if ((*ret_opt = find_option(cli, val)) == NULL) {
		if (val < LONG_VAL)
			snprintf(buf, sizeof(buf), "-%c", val);
		else
			opt_text(&options[val - LONG_VAL], buf);
		return refuse(cli, buf);
	}
	*ret_text = takes_value(*ret_opt) ? optarg : NULL;
	return 1;
}

int
cli_find_config(int argc, char **argv, char **ret_path, struct err *reterr)
{
	const struct cli_opt *o;
	const char *text;
	struct cli cli;
	char *path = NULL;
	int rc;

	if ((rc = cli_begin(&cli, argc, argv, reterr)) < 0)
		return rc;
	if (cli.cmd == CMD_HELP || cli.cmd == CMD_VERSION) {
		*ret_path = NULL;
		return 0;
	}
	while ((rc = cli_next(&cli, &o, &text)) > 0) {
		if (o->letter == 'h') {		/* no file is needed for it */
			free(path);
			path = NULL;
			break;
		}
		if (o->letter != 'c')
			continue;
		free(path);
		if ((path = strdup(text)) == NULL)
			return err_set(reterr, ERR_RUN, -ENOMEM,
			    "out of memory");
	}
	if (rc < 0)
		free(path);
	else
		*ret_path = path;
	return rc < 0 ? rc : 0;
}

/* -s: the first one replaces the sessions of the file. */
static int
add_session(struct cli *cli, struct conf *c, const char *spec)
{
	char where[32];

	if (cli->nsessions == MAX_SESSIONS)
		return err_set(cli->err, ERR_USAGE, -E2BIG,
		    "-s: one session too many: %d are allowed", MAX_SESSIONS);
	c->nsessions = ++cli->nsessions;
	snprintf(where, sizeof(where), "-s #%d", cli->nsessions);
	return conf_parse_session_spec(spec, where,
	    &c->session[c->nsessions - 1], cli->err);
}

static int
apply(struct cli *cli, struct conf *c, const struct cli_opt *o,
    const char *text)
{
	char buf[32];
	int rc;

	if (o->key != NULL) {
		rc = key_set(o->key, (char *)c + o->base,
		    text != NULL ? text : "true", cli->err);
		if (rc < 0)
			err_prefix(cli->err, "%s", opt_text(o, buf));
		return rc;
	}
	switch (o->letter) {
	case 's':
		return add_session(cli, c, text);
	case 'v':
		c->verbose = 2;
		break;
	case 'q':
		c->verbose = 0;
		break;
	}
	return 0;			/* -c has been read before */
}

/* Add an operand to the ids, behind a blank. */
static int
add_ids(struct conf *c, const char *text, struct err *reterr)
{
	char *ids;

	if (asprintf(&ids, "%s%s%s", c->ids ? c->ids : "", c->ids ? " " : "",
	    text) < 0)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	free(c->ids);
	c->ids = ids;
	return 0;
}

/* What is left behind the options: the model, then ids.  model_flag: -m has
 * named the model already. */
static int
take_operands(const struct cli *cli, struct conf *c, int model_flag)
{
	char **operand = cli->argv + optind, **end = cli->argv + cli->argc;
	int takes_model = (INSPECT | TOKENIZE | DETOKENIZE) >> cli->cmd & 1;
	int by_flag = c->ids != NULL || c->ids_file != NULL;
	int rc = 0;

	/* With a model from the file, numbers are ids from the first on. */
	if (operand < end && takes_model && !model_flag &&
	    (cli->cmd != CMD_DETOKENIZE ||
	    (*operand)[strspn(*operand, "0123456789 \t\n")] != '\0'))
		rc = key_set(&common_keys[COMMON_MODEL], c, *operand++,
		    cli->err);
	if (operand < end && cli->cmd == CMD_DETOKENIZE && by_flag)
		return err_set(cli->err, ERR_USAGE, -EINVAL, "'%.64s': give "
		    "the ids one way: operands, -p or -f", *operand);
	while (rc == 0 && operand < end && cli->cmd == CMD_DETOKENIZE)
		rc = add_ids(c, *operand++, cli->err);
	if (rc == 0 && operand < end)
		return err_set(cli->err, ERR_USAGE, -EINVAL,
		    "'%.64s': not an operand of %s: 'straddle help %s' tells "
		    "what it takes", *operand, command_names[cli->cmd],
		    command_names[cli->cmd]);
	return rc;
}

/* "help [CMD]" and "CMD --help" */
static int
ask_help(struct conf *c, const char *topic, struct err *reterr)
{
	c->cmd = CMD_HELP;
	if (topic == NULL)
		return 0;
	if (cli_help(topic) == NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "help: '%.64s' is no command: 'straddle help' lists them",
		    topic);
	c->help_topic = strdup(topic);
	return c->help_topic != NULL ? 0 :
	    err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
}

int
cli_parse(int argc, char **argv, struct conf *c, struct err *reterr)
{
	const struct cli_opt *o;
	const char *text;
	struct cli cli;
	int rc, model_flag = 0;

	if ((rc = cli_begin(&cli, argc, argv, reterr)) < 0)
		return rc;
	c->cmd = cli.cmd;
	if (cli.cmd == CMD_HELP)
		return ask_help(c, argc > 2 ? argv[2] : NULL, reterr);
	if (cli.cmd == CMD_VERSION)
		return 0;
	while ((rc = cli_next(&cli, &o, &text)) > 0) {
		if (o->letter == 'h')
			return ask_help(c, command_names[cli.cmd], reterr);
		if ((rc = apply(&cli, c, o, text)) < 0)
			return rc;
		model_flag |= o->letter == 'm';
	}
	return rc < 0 ? rc : take_operands(&cli, c, model_flag);
}
