/* config/cli.c - reads the command line into a struct conf: the command, its
 * options (options.c has their table), its operands. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guess.h"
#include "keys.h"
#include "log.h"

static const char *const command_names[] = {
	[CMD_RUN] = "run", [CMD_CHAT] = "chat", [CMD_PLAN] = "plan",
	[CMD_INSPECT] = "inspect", [CMD_DEVICES] = "devices",
	[CMD_EXPLAIN] = "explain",
	[CMD_TOKENIZE] = "tokenize", [CMD_DETOKENIZE] = "detokenize",
	[CMD_RENDER] = "render", [CMD_EVAL] = "eval", [CMD_BENCH] = "bench",
	[CMD_STRESS] = "stress",
	[CMD_QUANTIZE] = "quantize", [CMD_HELP] = "help",
	[CMD_VERSION] = "version",
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

/* Commands of other programs: ours, or where to find it. */
static const char *const foreign[][2] = {
	{ "serve", "this is no server: 'straddle run --prompts FILE' answers "
	    "many prompts" },
	{ "server", "this is no server: 'straddle run --prompts FILE' answers "
	    "many prompts" },
	{ "pull", "nothing is downloaded here: get a .gguf file, and give -m "
	    "FILE.gguf" },
	{ "show", "did you mean inspect?" },
	{ "perplexity", "did you mean eval?" },
};

static int
refuse_command(const char *word, struct err *reterr)
{
	struct guess guess = { .typed = word };
	unsigned i;

	if (*word == '-')
		return err_set(reterr, ERR_USAGE, -EINVAL, "'%.64s': give a "
		    "command first: straddle run %.64s ...", word, word);
	if (strchr(word, '/') != NULL || strstr(word, ".gguf") != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "'%.64s': give a "
		    "command before the model: straddle chat %.64s", word,
		    word);
	for (i = 0; i < NITEMS(foreign); i++)
		if (strcmp(word, foreign[i][0]) == 0)
			return err_set(reterr, ERR_USAGE, -EINVAL, "'%s': no "
			    "such command: %s", word, foreign[i][1]);
	for (i = CMD_NONE + 1; i < NITEMS(command_names); i++)
		guess_try(&guess, command_names[i]);
	if (guess.best != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "'%.64s': no such "
		    "command: did you mean %s?", word, guess.best);
	return err_set(reterr, ERR_USAGE, -EINVAL, "'%.64s': no such command: "
	    "'straddle help' lists the commands", word);
}

/* Find the command and begin the walk over the words after it. */
static int
cli_begin(struct cli *cli, int argc, char **argv, struct err *reterr)
{
	enum command cmd;

	if (argc < 2)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "no command: 'straddle help' lists the commands");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		cmd = CMD_HELP;
	else if (strcmp(argv[1], "--version") == 0)
		cmd = CMD_VERSION;
	else
		cmd = find_command(argv[1]);
	if (cmd == CMD_NONE)
		return refuse_command(argv[1], reterr);
	return words_begin(cli, argc - 1, argv + 1, cmd, reterr);
}

/* The path after the last -c, NULL without one, malloc'ed. */
static int
find_path(struct cli *cli, char **ret_path)
{
	struct cli_option o;
	char *path = NULL;
	int rc;

	while ((rc = words_next(cli, &o)) > 0) {
		if (o.s->letter == 'h') {	/* needs no file */
			free(path);
			path = NULL;
			rc = 0;
			break;
		}
		if (o.s->letter != 'c')
			continue;
		free(path);
		if ((path = strdup(o.text)) == NULL)
			return err_nomem(cli->err, "the path %s", o.text);
	}
	if (rc < 0)
		free(path);
	else
		*ret_path = path;
	return rc;
}

int
cli_find_config(int argc, char **argv, char **ret_path, struct err *reterr)
{
	struct cli cli;
	int rc;

	*ret_path = NULL;
	if ((rc = cli_begin(&cli, argc, argv, reterr)) < 0)
		return rc;
	if (cli.cmd != CMD_HELP && cli.cmd != CMD_VERSION)
		rc = find_path(&cli, ret_path);
	words_done(&cli);
	return rc;
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
apply_option(struct cli *cli, struct conf *c, const struct cli_option *o)
{
	int rc;

	if (is_given_twice(o->s, c))
		return err_set(cli->err, ERR_USAGE, -EINVAL,
		    "%s: given twice: once is allowed", o->typed);
	if (o->s->type != KEY_OTHER) {
		rc = key_set(o->s, c, o->text != NULL ? o->text : "true",
		    cli->err);
		if (rc < 0)
			err_prefix(cli->err, "%s", o->typed);
		return rc;
	}
	switch (o->s->letter) {
	case 's':
		return add_sessions(cli, c, o->text);
	case 'v':
		c->verbose = 2;
		break;
	case 'q':
		c->verbose = 0;
		break;
	}
	return 0;			/* -c: the first pass has read it */
}

/* Join operands, at least one, to the text of the ids. */
static int
take_ids(struct conf *c, char **operand, char **end, struct err *reterr)
{
	size_t nbytes = 0;
	char **p, *at;

	for (p = operand; p < end; p++)
		nbytes += strlen(*p) + 1;
	if ((c->ids = at = malloc(nbytes)) == NULL)
		return err_nomem(reterr, "the token ids");
	for (p = operand; p < end; p++) {
		at = stpcpy(at, *p);
		*at++ = p + 1 < end ? ' ' : '\0';
	}
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
	char **end = cli->operand + cli->noperands;
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
		hint = "this command takes no model";
	else if (cli->cmd == CMD_RUN)
		hint = c->prompt == NULL ? "the prompt is -p TEXT" :
		    "put a prompt of several words in quotes";
	else if (cli->cmd == CMD_TOKENIZE)
		hint = c->prompt == NULL ? "the text is -p TEXT" :
		    "put a text of several words in quotes";
	if (hint != NULL)
		return err_set(cli->err, ERR_USAGE, -EINVAL,
		    "'%.64s': not an operand of %s: %s", word, cmd, hint);
	return err_set(cli->err, ERR_USAGE, -EINVAL, "'%.64s': not an operand "
	    "of %s: see 'straddle help %s'", word, cmd, cmd);
}

/* Is the first operand the model?  Not after -m.  Where the config file names
 * a model, an operand may also be an id, or the second word of a prompt. */
static int
is_model(const struct cli *cli, const struct conf *c, const char *word)
{
	size_t n = strlen(word);

	switch (cli->cmd) {
	case CMD_DEVICES:
		return 0;
	case CMD_DETOKENIZE:
		return word[strspn(word, "0123456789 \t\n")] != '\0';
	case CMD_INSPECT:
	case CMD_TOKENIZE:
	case CMD_QUANTIZE:
		return 1;
	default:
		return c->model_path == NULL || (n > 5 &&
		    strcmp(word + n - 5, ".gguf") == 0);
	}
}

/* The operands: the model, then ids.  model_flag: -m has already named the
 * model. */
static int
take_operands(const struct cli *cli, struct conf *c, int model_flag)
{
	char **operand = cli->operand, **end = operand + cli->noperands;
	int takes_ids = cli->cmd == CMD_DETOKENIZE;
	int by_flag = c->ids != NULL || c->ids_file != NULL;
	int rc = 0;

	if (operand < end && !model_flag && is_model(cli, c, *operand))
		rc = key_set(setting_find(SECTION_TOP, "model"), c, *operand++,
		    cli->err);
	if (rc == 0 && operand < end && takes_ids && by_flag)
		return err_set(cli->err, ERR_USAGE, -EINVAL, "'%.64s': give "
		    "the ids one way: operands, -p or -f", *operand);
	if (rc == 0 && cli->cmd == CMD_QUANTIZE)
		rc = take_quantize(cli, c, &operand);
	if (rc == 0 && operand < end && takes_ids)
		return take_ids(c, operand, end, cli->err);
	return rc == 0 && operand < end ? refuse_operand(cli, c, *operand) : rc;
}

/* "help completion SHELL" */
static int
ask_completion(struct conf *c, const char *shell, struct err *reterr)
{
	if (shell == NULL || (strcmp(shell, "bash") != 0 &&
	    strcmp(shell, "zsh") != 0))
		return err_set(reterr, ERR_USAGE, -EINVAL, "help completion: "
		    "name the shell: bash or zsh");
	c->help_shell = strdup(shell);
	return c->help_shell != NULL ? 0 :
	    err_nomem(reterr, "the name of the shell");
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

/* Say which options had no effect, once for each reason. */
static void
log_notes(const struct cli *cli, const struct conf *c)
{
	int i;

	for (i = 0; i < cli->nnotes && c->verbose > 0; i++)
		log_info("note: %s has no effect: %s", cli->note[i].typed,
		    cli->note[i].reason);
}

static int
parse_words(struct cli *cli, struct conf *c)
{
	struct cli_option o;
	int rc, model_flag = 0;

	while ((rc = words_next(cli, &o)) > 0) {
		if (o.s->letter == 'h')
			return ask_help(c, command_names[cli->cmd], cli->err);
		if ((rc = apply_option(cli, c, &o)) < 0)
			return rc;
		model_flag |= o.s->letter == 'm';
	}
	if (rc == 0 && (rc = take_operands(cli, c, model_flag)) == 0)
		log_notes(cli, c);
	return rc;
}

int
cli_parse(int argc, char **argv, struct conf *c, struct err *reterr)
{
	struct cli cli;
	int rc;

	if ((rc = cli_begin(&cli, argc, argv, reterr)) < 0)
		return rc;
	c->cmd = cli.cmd;
	if (cli.cmd == CMD_CHAT)
		c->n_predict = N_PREDICT_SHARE;
	if (cli.cmd == CMD_HELP && argc > 2 &&
	    strcmp(argv[2], "completion") == 0)
		rc = ask_completion(c, argc > 3 ? argv[3] : NULL, reterr);
	else if (cli.cmd == CMD_HELP)
		rc = ask_help(c, argc > 2 ? argv[2] : NULL, reterr);
	else if (cli.cmd != CMD_VERSION)
		rc = parse_words(&cli, c);
	words_done(&cli);
	return rc;
}
