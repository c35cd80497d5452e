/* config/cli_hint.c - reports an option that the command does not take, with
 * the nearest one that it takes, or its place. */
#include "cli.h"

#include <errno.h>
#include <string.h>

#include "guess.h"

/* The long option of cmd with the most similar name, or NULL. */
static const char *
nearest(enum command cmd, const char *typed)
{
	struct guess guess = { .typed = typed + strspn(typed, "-") };
	const struct setting *s;
	unsigned i;

	for (i = 0; (s = setting_at(i)) != NULL; i++)
		if (s->option != NULL && option_is_taken(s, cmd))
			guess_try(&guess, s->option);
	return guess.best;
}

/* Write the hint for typed into buf; returns 0 if there is none. */
static int
hint_for(enum command cmd, const char *typed, char *buf, size_t len)
{
	const char *name = typed + strspn(typed, "-");

	if (setting_find(SECTION_SESSION, name) != NULL)
		return snprintf(buf, len, "%s belongs to a session: "
		    "-s cpu,%s=...", name, name);
	if (strncmp(typed, "--", 2) == 0 && (name = nearest(cmd, typed)) !=
	    NULL)
		return snprintf(buf, len, "did you mean --%s?", name);
	return 0;
}

int
cli_refuse(enum command cmd, const char *typed, struct err *reterr)
{
	const char *name = command_name(cmd);
	char hint[96];

	if (hint_for(cmd, typed, hint, sizeof(hint)) > 0)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "%.64s: not an option of %s: %s", typed, name, hint);
	return err_set(reterr, ERR_USAGE, -EINVAL, "%.64s: not an option of "
	    "%s: 'straddle help %s' lists them", typed, name, name);
}
