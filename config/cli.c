/* config/cli.c - reads the command line into a struct conf: the command, its
 * options (options.c has their table), its operands. */
#include "conf.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "guess.h"
#include "keys.h"

static const char *const command_names[] = {
	[CMD_RUN] = "run", [CMD_CHAT] = "chat", [CMD_PLAN] = "plan",
	[CMD_INSPECT] = "inspect", [CMD_DEVICES] = "devices",
	[CMD_EXPLAIN] = "explain",
	[CMD_TOKENIZE] = "tokenize", [CMD_DETOKENIZE] = "detokenize",
	[CMD_EVAL] = "eval", [CMD_BENCH] = "bench", [CMD_STRESS] = "stress",
	[CMD_QUANTIZE] = "quantize", [CMD_HELP] = "help",
	[CMD_VERSION] = "version",
};

enum { LONG_VAL = 256 };	/* getopt value of the long option in row 0 */

/* A walk over the options of one command line. */
struct cli {
	int argc;
	char **argv;		/* from the command on */
	enum command cmd;
	int nspecs;		/* -s options so far */
	int nsessions;		/* sessions that they made */
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

/* Report the word that getopt_long() rejected. */
static int
refuse_word(const struct cli *cli, int missing_value)
{
	const char *word = cli->argv[optind - 1];
	char text[80] = { '-', (char)optopt, '\0' };

	if (optopt >= LONG_VAL)
		option_text(setting_at((unsigned)optopt - LONG_VAL), text);
	else if (optopt == 0)
		snprintf(text, sizeof(text), "%.*s",
		    (int)MIN(strcspn(word, "="), 64), word);
	if (missing_value)
		return err_set(cli->err, ERR_USAGE, -EINVAL,
		    "%s: needs a value", text);
	if (optopt >= LONG_VAL)
		return err_set(cli->err, ERR_USAGE, -EINVAL,
		    "%s: takes no value", text);
	return cli_refuse(cli->cmd, text, cli->err);
}

static int
refuse_command(const char *word, struct err *reterr)
{
	struct guess guess = { .typed = word };
	unsigned i;

	if (*word == '-')
		return err_set(reterr, ERR_USAGE, -EINVAL, "'%.64s': give a "
		    "command first: straddle run %.64s ...", word, word);
	for (i = CMD_NONE + 1; i < NITEMS(command_names); i++)
		guess_try(&guess, command_names[i]);
	if (guess.best != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "'%.64s': no such "
		    "command: did you mean %s?", word, guess.best);
	return err_set(reterr, ERR_USAGE, -EINVAL, "'%.64s': no such command: "
	    "'straddle help' lists the commands", word);
}

/* Find the command and reset getopt. */
static int
cli_begin(struct cli *cli, int argc, char **argv, struct err *reterr)
{
	*cli = (struct cli){ argc - 1, argv + 1, CMD_NONE, 0, 0, reterr };

	if (argc < 2)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "no command: 'straddle help' lists the commands");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		cli->cmd = CMD_HELP;
	else if (strcmp(argv[1], "--version") == 0)
		cli->cmd = CMD_VERSION;
	else
		cli->cmd = find_command(argv[1]);
	if (cli->cmd == CMD_NONE)
		return refuse_command(argv[1], reterr);
	optind = 0;		/* glibc: start over */
	opterr = 0;
	return 0;
}

/* The option with this getopt value; a letter's meaning depends on cmd. */
static const struct setting *
find_option(const struct cli *cli, int val)
{
	const struct setting *o;
	unsigned i;

	if (val >= LONG_VAL) {
		o = setting_at((unsigned)val - LONG_VAL);
		return option_is_taken(o, cli->cmd) ? o : NULL;
	}
	for (i = 0; (o = setting_at(i)) != NULL; i++)
		if (o->letter == val && option_is_taken(o, cli->cmd))
			return o;
	return NULL;
}

/* 1 when cmd takes another row's option of the same name. */
static int
is_shadowed(enum command cmd, const struct setting *o)
{
	const struct setting *p;
	unsigned i;

	for (i = 0; (p = setting_at(i)) != NULL; i++)
		if (p != o && p->option != NULL && strcmp(p->option,
		    o->option) == 0 && option_is_taken(p, cmd))
			return 1;
	return 0;
}

/* getopt_long() over the table of options. */
static int
next_value(const struct cli *cli)
{
	struct option longs[MAX_SETTINGS + 2] = {0}, *l = longs;
	char letters[2 * MAX_SETTINGS + 2] = ":";
	const struct setting *o;
	unsigned i;

	for (i = 0; (o = setting_at(i)) != NULL; i++) {
		if (o->option != NULL && !is_shadowed(cli->cmd, o))
			*l++ = (struct option){ o->option, o->arg != NULL,
			    NULL, LONG_VAL + (int)i };
		if (o->letter != 0 && strchr(letters, o->letter) == NULL) {
			char text[] = { (char)o->letter,
			    o->arg != NULL ? ':' : '\0', '\0' };

			strlcat(letters, text, sizeof(letters));
		}
	}
	/* Unknown, so that getopt does not take it as short for --prompts. */
	*l = (struct option){ "prompt", optional_argument, NULL, '?' };
	optopt = 0;
	return getopt_long(cli->argc, cli->argv, letters, longs, NULL);
}

/* In other programs -c 512 is the context and -s 42 the seed. */
static int
refuse_number(const struct cli *cli, int letter)
{
	if (letter == 'c')
		return err_set(cli->err, ERR_USAGE, -EINVAL, "-c: '%.64s' is "
		    "a number, but -c names the config file; the context is "
		    "--ctx %.64s", optarg, optarg);
	return err_set(cli->err, ERR_USAGE, -EINVAL, "-s: '%.64s' is a "
	    "number, but -s is a session; the seed is --seed %.64s", optarg,
	    optarg);
}

/* The next option: 1, *ret_opt and *ret_text (NULL for a plain flag); 0 when
 * only operands are left, at optind. */
static int
cli_next(const struct cli *cli, const struct setting **ret_opt,
    const char **ret_text)
{
	char buf[OPT_TEXT_LEN] = "-?";
	const char *word;
	int val = next_value(cli);

	if (val == -1)
		return 0;
	if (val == '?' || val == ':')
		return refuse_word(cli, val == ':');
	word = cli->argv[optind - 1];
	if (optarg == word + 2 && cli_is_foreign(word))
		return cli_refuse(cli->cmd, word, cli->err);
	if ((*ret_opt = find_option(cli, val)) == NULL) {
		buf[1] = (char)val;
		if (val >= LONG_VAL)
			option_text(setting_at((unsigned)val - LONG_VAL), buf);
		return cli_refuse(cli->cmd, buf, cli->err);
	}
	if ((val == 'c' || val == 's') && *optarg != '\0' &&
	    optarg[strspn(optarg, "0123456789")] == '\0')
		return refuse_number(cli, val);
	*ret_text = (*ret_opt)->arg != NULL ? optarg : NULL;
	return 1;
}

int
cli_find_config(int argc, char **argv, char **ret_path, struct err *reterr)
{
	const struct setting *o;
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
		if (o->letter == 'h') {		/* needs no file */
			free(path);
			path = NULL;
			break;
		}
		if (o->letter != 'c')
			continue;
		free(path);
		if ((path = strdup(text)) == NULL)
			return err_nomem(reterr, "the path %s", text);
	}
	if (rc < 0)
		free(path);
	else
		*ret_path = path;
	return rc < 0 ? rc : 0;
}

/* -s: the first one replaces the file's sessions. */
static int
add_sessions(struct cli *cli, struct conf *c, const char *spec)
{
	struct session_conf s;
	char where[32];
	int rc, times;

	snprintf(where, sizeof(where), "-s #%d", ++cli->nspecs);
	if ((rc = conf_parse_session_spec(spec, where, &s, &times,
	    cli->err)) < 0)
		return rc;
	if (times > MAX_SESSIONS - cli->nsessions)
		return err_set(cli->err, ERR_USAGE, -E2BIG,
		    "%s: too many sessions: at most %d are allowed", where,
		    MAX_SESSIONS);
	while (times-- > 0)
		c->session[cli->nsessions++] = s;
	c->nsessions = cli->nsessions;
	return 0;
}

/* A second text must not silently replace the first.  A second model or number
 * may: scripts end with "$@". */
static int
is_given_twice(const struct setting *o, const struct conf *c)
{
	const void *field = (const char *)c + o->off;

	return o->key == NULL && (o->type == KEY_TEXT || o->type == KEY_PATH) &&
	    *(char *const *)field != NULL;
}

static int
apply_option(struct cli *cli, struct conf *c, const struct setting *o,
    const char *text)
{
	char buf[OPT_TEXT_LEN];
	int rc;

	if (is_given_twice(o, c))
		return err_set(cli->err, ERR_USAGE, -EINVAL,
		    "%s: given twice: once is allowed", option_text(o, buf));
	if (o->type != KEY_OTHER) {
		rc = key_set(o, c, text != NULL ? text : "true", cli->err);
		if (rc < 0)
			err_prefix(cli->err, "%s", option_text(o, buf));
		return rc;
	}
	switch (o->letter) {
	case 's':
		return add_sessions(cli, c, text);
	case 'v':
		c->verbose = 2;
		break;
	case 'q':
		c->verbose = 0;
		break;
	}
	return 0;			/* -c: the first pass has read it */
}

/* Append an operand to the ids, after a space. */
static int
add_ids(struct conf *c, const char *text, struct err *reterr)
{
	char *ids;

	if (asprintf(&ids, "%s%s%s", c->ids ? c->ids : "", c->ids ? " " : "",
	    text) < 0)
		return err_nomem(reterr, "the token ids");
	free(c->ids);
	c->ids = ids;
	return 0;
}

/* quantize: OUT and TYPE, after the model. */
static int
take_quantize(const struct cli *cli, struct conf *c, char ***operand)
{
	static const struct setting out = {
		.type = KEY_PATH, .off = offsetof(struct conf, out_path)
	};
	static const struct setting type = {
		.type = KEY_TEXT, .off = offsetof(struct conf, quant_type)
	};
	char **end = cli->argv + cli->argc;
	int rc = 0;

	if (*operand < end)
		rc = key_set(&out, c, *(*operand)++, cli->err);
	if (rc == 0 && *operand < end)
		rc = key_set(&type, c, *(*operand)++, cli->err);
	return rc;
}

static int
refuse_operand(const struct cli *cli, const struct conf *c, const char *word)
{
	const char *cmd = command_names[cli->cmd], *hint = NULL;

	if (cli->cmd == CMD_QUANTIZE &&
	    word[strspn(word, "0123456789")] == '\0')
		hint = "the number of threads is --threads N";
	else if (c->model_path == NULL)
		hint = "the model is -m MODEL";
	else if (cli->cmd == CMD_RUN)
		hint = c->prompt == NULL ? "the prompt is -p TEXT" :
		    "put a prompt of several words in quotes";
	if (hint != NULL)
		return err_set(cli->err, ERR_USAGE, -EINVAL,
		    "'%.64s': not an operand of %s: %s", word, cmd, hint);
	return err_set(cli->err, ERR_USAGE, -EINVAL, "'%.64s': not an operand "
	    "of %s: see 'straddle help %s'", word, cmd, cmd);
}

/* The operands after the options: the model, then ids.  model_flag: -m has
 * already named the model. */
static int
take_operands(const struct cli *cli, struct conf *c, int model_flag)
{
	char **operand = cli->argv + optind, **end = cli->argv + cli->argc;
	int takes_ids = cli->cmd == CMD_DETOKENIZE;
	int takes_model = takes_ids || cli->cmd == CMD_TOKENIZE ||
	    cli->cmd == CMD_INSPECT || cli->cmd == CMD_QUANTIZE;
	int by_flag = c->ids != NULL || c->ids_file != NULL;
	int rc = 0;

	/* The model may come from the config file: a number is an id. */
	if (operand < end && takes_model && !model_flag && (!takes_ids ||
	    (*operand)[strspn(*operand, "0123456789 \t\n")] != '\0'))
		rc = key_set(setting_find(SECTION_TOP, "model"), c, *operand++,
		    cli->err);
	if (operand < end && takes_ids && by_flag)
		return err_set(cli->err, ERR_USAGE, -EINVAL, "'%.64s': give "
		    "the ids one way: operands, -p or -f", *operand);
	if (rc == 0 && cli->cmd == CMD_QUANTIZE)
		rc = take_quantize(cli, c, &operand);
	while (rc == 0 && operand < end && takes_ids)
		rc = add_ids(c, *operand++, cli->err);
	return rc == 0 && operand < end ? refuse_operand(cli, c, *operand) : rc;
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
		    "help: '%.64s' is not a command: 'straddle help' lists the "
		    "commands", topic);
	c->help_topic = strdup(topic);
	return c->help_topic != NULL ? 0 :
	    err_nomem(reterr, "the topic %s", topic);
}

int
cli_parse(int argc, char **argv, struct conf *c, struct err *reterr)
{
	const struct setting *o;
	const char *text;
	struct cli cli;
	int rc, model_flag = 0;

	if ((rc = cli_begin(&cli, argc, argv, reterr)) < 0)
		return rc;
	c->cmd = cli.cmd;
	if (cli.cmd == CMD_CHAT)
		c->n_predict = -1;	/* an answer has an end */
	if (cli.cmd == CMD_HELP)
		return ask_help(c, argc > 2 ? argv[2] : NULL, reterr);
	if (cli.cmd == CMD_VERSION)
		return 0;
	while ((rc = cli_next(&cli, &o, &text)) > 0) {
		if (o->letter == 'h')
			return ask_help(c, command_names[cli.cmd], reterr);
		if ((rc = apply_option(&cli, c, o, text)) < 0)
			return rc;
		model_flag |= o->letter == 'm';
	}
	return rc < 0 ? rc : take_operands(&cli, c, model_flag);
}
