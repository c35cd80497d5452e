/* config/cli_words.c - goes over the words of a command line.
 *
 * Options and operands may be mixed; "--" ends the options.  A long option may
 * be shortened while it is unique, and its dashes may be underscores.  A value
 * is the rest of the word or the next word, whatever that looks like.  getopt()
 * is not used: it would read -ngl as -n with the value "gl". */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

int
word_is_number(const char *text)
{
	return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

int
words_begin(struct cli *cli, int argc, char **argv, enum command cmd,
    struct err *reterr)
{
	*cli = (struct cli){ .argc = argc, .argv = argv, .cmd = cmd,
	    .err = reterr, .at = 1 };
	cli->operand = calloc((size_t)argc + 1, sizeof(*cli->operand));
	if (cli->operand == NULL)
		return err_nomem(reterr, "the words of the command line");
	return 0;
}

void
words_done(struct cli *cli)
{
	free(cli->operand);
	cli->operand = NULL;
}

/* The option of the command with this long name, or the only one that begins
 * so. */
static const struct setting *
find_long(const struct cli *cli, const char *name)
{
	const struct setting *s, *found = NULL;
	size_t n = strlen(name);
	int several = 0;
	unsigned i;

	for (i = 0; (s = setting_at(i)) != NULL; i++) {
		if (s->option == NULL || !option_is_taken(s, cli->cmd) ||
		    strncmp(s->option, name, n) != 0)
			continue;
		if (s->option[n] == '\0')
			return s;
		several |= found != NULL;
		found = s;
	}
	return several || n < 2 ? NULL : found;
}

/* Give the option its value: attached, or the next word. */
static int
take_value(struct cli *cli, struct cli_option *o, const char *attached)
{
	o->text = attached;
	if (o->s->arg == NULL)
		return attached == NULL ? 1 : err_set(cli->err, ERR_USAGE,
		    -EINVAL, "%s: takes no value", o->typed);
	if (o->text == NULL && cli->at < cli->argc)
		o->text = cli->argv[cli->at++];
	return o->text != NULL ? 1 : err_set(cli->err, ERR_USAGE, -EINVAL,
	    "%s: needs a value", o->typed);
}

static void
add_note(struct cli *cli, const struct alias *a)
{
	int i;

	for (i = 0; i < cli->nnotes; i++)
		if (cli->note[i].reason == a->text)
			return;
	if (cli->nnotes == NITEMS(cli->note))
		return;
	cli->note[cli->nnotes].typed = a->typed;
	cli->note[cli->nnotes++].reason = a->text;
}

static int
is_switch(const char *word)
{
	static const char *const known[] = { "on", "off", "auto", "0", "1" };
	unsigned i;

	for (i = 0; i < NITEMS(known); i++)
		if (strcmp(word, known[i]) == 0)
			return 1;
	return 0;
}

/* 1: o is an option; 0: the alias had no effect, go on. */
static int
take_alias(struct cli *cli, struct cli_option *o, const struct alias *a,
    const char *attached)
{
	if (a->kind == ALIAS_REFUSED)
		return err_set(cli->err, ERR_USAGE, -EINVAL, "%s: not an "
		    "option of %s: %s", o->typed, command_name(cli->cmd),
		    a->text);
	if (a->kind == ALIAS_SAME) {
		o->s = option_find(cli->cmd, a->meant);
		return o->s != NULL ? take_value(cli, o, attached) :
		    cli_refuse(cli->cmd, o->typed, cli->err);
	}
	if (a->value == 1 && attached == NULL && cli->at++ >= cli->argc)
		return err_set(cli->err, ERR_USAGE, -EINVAL,
		    "%s: needs a value", o->typed);
	if (a->value == 2 && attached == NULL && cli->at < cli->argc &&
	    is_switch(cli->argv[cli->at]))
		cli->at++;
	add_note(cli, a);
	return 0;
}

/* "--name", "--name=value" */
static int
take_long(struct cli *cli, struct cli_option *o, const char *word)
{
	const char *value = strchr(word, '=');
	const struct alias *a;
	char *p;

	snprintf(o->typed, sizeof(o->typed), "%.*s", (int)MIN(value != NULL ?
	    (size_t)(value - word) : strlen(word), (size_t)64), word);
	for (p = o->typed; (p = strchr(p, '_')) != NULL; )
		*p = '-';
	if (value != NULL)
		value++;
	o->s = find_long(cli, o->typed + 2);
	/* A whole word of another program is not short for one of ours. */
	if ((o->s == NULL || strcmp(o->s->option, o->typed + 2) != 0) &&
	    (a = alias_find(cli->cmd, o->typed)) != NULL)
		return take_alias(cli, o, a, value);
	return o->s != NULL ? take_value(cli, o, value) :
	    cli_refuse(cli->cmd, o->typed, cli->err);
}

/* The next of the letters in "-vq", or "-n4" with its value. */
static int
take_letter(struct cli *cli, struct cli_option *o)
{
	const struct alias *a;
	const char *rest;

	snprintf(o->typed, sizeof(o->typed), "-%c", *cli->letters);
	rest = cli->letters[1] != '\0' ? cli->letters + 1 : NULL;
	cli->letters = rest;
	if ((o->s = option_find(cli->cmd, o->typed)) != NULL) {
		if (o->s->arg == NULL)
			return take_value(cli, o, NULL);
		cli->letters = NULL;
		return take_value(cli, o, rest);
	}
	cli->letters = NULL;
	if ((a = alias_find(cli->cmd, o->typed)) != NULL)
		return take_alias(cli, o, a, rest);
	return cli_refuse(cli->cmd, o->typed, cli->err);
}

/* "-ngl": a word with one dash that is one name elsewhere. */
static const struct alias *
whole_word(const struct cli *cli, const char *word)
{
	return word[1] != '-' && word[2] != '\0' ?
	    alias_find(cli->cmd, word) : NULL;
}

/* In other programs -c 512 is the context and -s 42, or -s -1, the seed.  A
 * config file called 512 is ./512.  --config and --session are ours alone. */
static int
take_number(struct cli *cli, struct cli_option *o)
{
	const struct setting *seed;

	if (o->typed[1] == '-')
		return 1;
	if (o->s->letter == 'c' && word_is_number(o->text))
		o->s = setting_find(SECTION_TOP, "context");
	if (o->s->letter != 's' || (!word_is_number(o->text) &&
	    strcmp(o->text, "-1") != 0))
		return 1;
	if ((seed = option_find(cli->cmd, "--seed")) == NULL)
		return err_set(cli->err, ERR_USAGE, -EINVAL, "-s: '%.64s' is "
		    "a number, but -s is a session, and %s takes no seed",
		    o->text, command_name(cli->cmd));
	o->s = seed;
	return 1;
}

int
words_next(struct cli *cli, struct cli_option *ret)
{
	const struct alias *a;
	char *word;
	int rc = 0;

	while (rc == 0) {
		*ret = (struct cli_option){ 0 };
		if (cli->letters != NULL) {
			rc = take_letter(cli, ret);
			continue;
		}
		if (cli->at >= cli->argc)
			return 0;
		word = cli->argv[cli->at++];
		if (cli->plain || *word != '-' || word[1] == '\0')
			cli->operand[cli->noperands++] = word;
		else if (strcmp(word, "--") == 0)
			cli->plain = 1;
		else if ((a = whole_word(cli, word)) != NULL) {
			strlcpy(ret->typed, word, sizeof(ret->typed));
			rc = take_alias(cli, ret, a, NULL);
		} else if (word[1] == '-')
			rc = take_long(cli, ret, word);
		else
			cli->letters = word + 1;
	}
	return rc < 0 || ret->text == NULL ? rc : take_number(cli, ret);
}
