/* config/options.h - every option, the commands that take it, what it sets.
 * Owns: the table of options, and what is said of words that are not in it.
 * Called by cli.c and by the test that holds the help texts against it. */
#ifndef CONFIG_OPTIONS_H
#define CONFIG_OPTIONS_H

#include "keys.h"

enum { MAX_OPTIONS = 64, OPT_TEXT_LEN = 32 };

struct cli_opt {
	const char *name;	/* long name, or NULL */
	int letter;		/* or 0 */
	unsigned cmds;		/* bit n: enum command n takes it */
	const struct conf_key *key;	/* what it sets; NULL: cli.c knows */
	size_t base;		/* of the key's struct in struct conf */
};

/* By number from 0 on; NULL behind the last, which is below MAX_OPTIONS. */
const struct cli_opt *cli_option(unsigned i);

int cli_opt_taken(const struct cli_opt *o, enum command cmd);
int cli_opt_has_value(const struct cli_opt *o);

/* "-p" or "--ctx", as messages call it.  Returns buf. */
const char *cli_opt_text(const struct cli_opt *o, char buf[OPT_TEXT_LEN]);

/* cli_hint.c: refuse typed ("--model", "-x"), which cmd does not take, with
 * what was meant when that can be told. */
int cli_refuse(enum command cmd, const char *typed, struct err *reterr);

/* 1 for a whole word of other programs, such as -ngl, that getopt() would take
 * for a letter of ours with its value. */
int cli_is_foreign(const char *word);

#endif
