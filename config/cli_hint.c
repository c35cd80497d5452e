/* config/cli_hint.c - reports an option that the command does not take, with
 * our name for another program's option, or the nearest one of ours. */
#include "options.h"

#include <errno.h>
#include <string.h>

#include "guess.h"

/* Options of other programs, and our name or our replacement. */
static const struct {
	const char *typed, *meant, *instead;
} foreign[] = {
	{ "--model", "-m", NULL },
	{ "--config", "-c", NULL },
	{ "--session", "-s", NULL },
	{ "--ctx-size", "--ctx", NULL },
	{ "--context", "--ctx", NULL },
	{ "-b", "--batch", NULL },
	{ "--batch-size", "--batch", NULL },
	{ "-ctk", "--kv-type-k", NULL },
	{ "-ctv", "--kv-type-v", NULL },
	{ "--cache-type-k", "--kv-type-k", NULL },
	{ "--cache-type-v", "--kv-type-v", NULL },
	{ "--prompt", "-p", NULL },
	{ "--file", "-f", NULL },
	{ "--n-predict", "-n", NULL },
	{ "--predict", "-n", NULL },
	{ "--max-tokens", "-n", NULL },
	{ "--temperature", "--temp", NULL },
	{ "--verbose", "-v", NULL },
	{ "--quiet", "-q", NULL },
	{ "--output-tensor-type", "--head", NULL },
	{ "--pure", "--head", NULL },
	{ "--ppl-stride", "--stride", NULL },
	{ "-t", NULL, "threads belong to a session: -s cpu,threads=N" },
	{ "--device", NULL, "a session begins with its device: -s cpu,..." },
	{ "-ngl", NULL, "layers are placed by sessions: -s DEVICE,cap=SIZE" },
	{ "--n-gpu-layers", NULL,
	    "layers are placed by sessions: -s DEVICE,cap=SIZE" },
	{ "--gpu-layers", NULL,
	    "layers are placed by sessions: -s DEVICE,cap=SIZE" },
};

int
cli_is_foreign(const char *word)
{
	unsigned i;

	for (i = 0; i < NITEMS(foreign); i++)
		if (strcmp(word, foreign[i].typed) == 0)
			return 1;
	return 0;
}

static int
takes(enum command cmd, const char *text)
{
	char buf[OPT_TEXT_LEN];
	const struct setting *s;
	unsigned i;

	for (i = 0; (s = setting_at(i)) != NULL; i++)
		if (option_is_taken(s, cmd) && (strcmp(text,
		    option_text(s, buf)) == 0 || (s->letter != 0 &&
		    text[1] == s->letter && text[2] == '\0')))
			return 1;
	return 0;
}

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
	unsigned i;

	for (i = 0; i < NITEMS(foreign); i++) {
		if (strcmp(typed, foreign[i].typed) != 0)
			continue;
		if (foreign[i].instead != NULL)
			return snprintf(buf, len, "%s", foreign[i].instead);
		if (takes(cmd, foreign[i].meant))
			return snprintf(buf, len, "write %s",
			    foreign[i].meant);
	}
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
