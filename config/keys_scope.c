/* config/keys_scope.c - one section of settings being filled, key by key, and
 * suggestions for a key that is not in it. */
#include "keys.h"

#include <errno.h>
#include <string.h>
#include <bsd/string.h>

#include "guess.h"

/* Names that other programs, or people, use for our keys. */
static const struct {
	const char *typed, *meant;
} synonyms[] = {
	{ "ctx", "context" }, { "ctx_size", "context" }, { "n_ctx", "context" },
	{ "batch_size", "batch" }, { "cache_type", "kv_type" },
	{ "temperature", "temp" }, { "memory", "cap" },
};

static const char *const places[] = {
	[SECTION_TOP] = "at the top, outside of sections",
	[SECTION_SAMPLING] = "in sampling { }",
	[SECTION_SESSION] = "in session NAME { }",
};

/* Write into buf our spelling of name: kv-type is kv_type, ctx is context. */
static void
our_name(const char *name, char *buf, size_t len)
{
	unsigned i;
	char *p;

	strlcpy(buf, name, len);
	for (p = buf; (p = strchr(p, '-')) != NULL; )
		*p = '_';
	for (i = 0; i < NITEMS(synonyms); i++)
		if (strcmp(buf, synonyms[i].typed) == 0)
			strlcpy(buf, synonyms[i].meant, len);
}

/* The place in a file where the key called name belongs, or NULL. */
static const char *
place_of(const char *name)
{
	enum section i;

	for (i = SECTION_TOP; i <= SECTION_SESSION; i++)
		if (setting_find(i, name) != NULL)
			return places[i];
	return NULL;
}

int
scope_unknown(const struct key_scope *scope, const char *name,
    struct err *reterr)
{
	char known[256] = "", ours[65];
	struct guess guess = { .typed = ours };
	const struct setting *s = NULL;
	const char *place;

	our_name(name, ours, sizeof(ours));
	while ((s = setting_next(scope->section, s)) != NULL) {
		strlcat(known, *known ? ", " : "", sizeof(known));
		strlcat(known, s->key, sizeof(known));
		guess_try(&guess, s->key);
	}
	place = scope->in_file ? place_of(ours) : NULL;
	if (place != NULL && setting_find(scope->section, ours) == NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "unknown key "
		    "'%.64s' here: %s belongs %s", name, ours, place);
	if (guess.best != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "unknown key "
		    "'%.64s': did you mean %s?", name, guess.best);
	return err_set(reterr, ERR_USAGE, -EINVAL,
	    "unknown key '%.64s': known here are %s%s", name, known,
	    scope->also != NULL ? scope->also : "");
}

int
scope_has_set(const struct key_scope *scope, const struct setting *s)
{
	return scope->seen[s - setting_at(0)];
}

int
scope_set(struct key_scope *scope, const char *name, const char *text,
    struct err *reterr)
{
	const struct setting *s = setting_find(scope->section, name);
	int rc;

	if (s == NULL)
		return scope_unknown(scope, name, reterr);
	if (scope_has_set(scope, s))
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "%s is set twice: once is allowed", name);
	scope->seen[s - setting_at(0)] = 1;
	if ((rc = key_set(s, scope->base, text, reterr)) < 0)
		err_prefix(reterr, "%s", name);
	return rc;
}
