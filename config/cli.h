/* config/cli.h - the words of one command line: options, values, operands.
 * Owns: the position in argv, and the spellings of other programs.  Called by
 * cli.c only.  Which options there are is in options.c. */
#ifndef CONFIG_CLI_H
#define CONFIG_CLI_H

#include "options.h"

/* A walk over one command line. */
struct cli {
	int argc;
	char **argv;		/* from the command on */
	enum command cmd;
	struct err *err;
	int at;			/* the next word */
	int plain;		/* after "--" */
	const char *letters;	/* unread letters of a word such as -vq */
	char **operand;		/* [noperands], pointers into argv */
	int noperands;
	int nspecs;		/* -s options so far */
	int nsessions;		/* sessions that they made */
	/* Options without effect here, each reason once. */
	struct {
		const char *typed, *reason;
	} note[16];
	int nnotes;
};

/* An option that was found. */
struct cli_option {
	const struct setting *s;
	const char *text;	/* its value; NULL for a flag */
	char typed[80];		/* as the user wrote it, without its value */
};

/* words [argc] begin with the command.  Release with words_done(). */
int words_begin(struct cli *cli, int argc, char **argv, enum command cmd,
    struct err *reterr);
void words_done(struct cli *cli);

/* The next option: 1; 0 = no more, and operand [noperands] is complete. */
int words_next(struct cli *cli, struct cli_option *ret);

/* 1 for a text of digits only. */
int word_is_number(const char *text);

/* --- cli_alias.c --- */

enum alias_kind {
	ALIAS_SAME,		/* our option under another name */
	ALIAS_IDLE,		/* accepted without effect; text says why */
	ALIAS_REFUSED		/* text says what to do instead */
};

struct alias {
	const char *typed;	/* "--ctx-size", "-ngl" */
	enum alias_kind kind;
	const char *meant;	/* ALIAS_SAME: "--ctx", "-m" */
	int value;		/* ALIAS_IDLE: 1 = takes one, 2 = may take one of
				 * on, off, auto, 0, 1 */
	const char *text;
};

/* The alias that cmd may use; NULL = none. */
const struct alias *alias_find(enum command cmd, const char *typed);

/* The option of cmd called "--ctx" or "-m"; NULL = it takes none. */
const struct setting *option_find(enum command cmd, const char *name);

/* --- cli_hint.c --- */

/* Report typed ("--modell", "-x") as an option that cmd does not take, with a
 * suggestion where there is one.  Returns -EINVAL. */
int cli_refuse(enum command cmd, const char *typed, struct err *reterr);

#endif
