/* config/keys_scope.c - one section of settings being filled, key by key, and
 * what to say of a key that is not in it. */
#include "keys.h"

#include <errno.h>
#include <string.h>
#include <bsd/string.h>

#include "guess.h"

/* What other programs, or people, call our keys. */
static const struct {
	const char *typed, *meant;
} synonyms[] = {
	{ "ctx", "context" }, { "ctx_size", "context" }, { "n_ctx", "context" },
	{ "batch_size", "batch" }, { "cache_type", "kv_type" },
	{ "temperature", "temp" }, { "memory", "cap" },
};

static const struct {
	const struct conf_key *keys;
	unsigned nkeys;
	const char *name;
} places[] = {
	{ common_keys, COMMON_NKEYS, "at the top, outside of sections" },
	{ sampling_keys, SAMPLING_NKEYS, "in sampling { }" },
	{ session_keys, SESSION_NKEYS, "in session NAME { }" },
};

/* The key's index; nkeys when there is none. */
static unsigned
find_key(const struct conf_key *keys, unsigned nkeys, const char *name)
{
	unsigned i;

	for (i = 0; i < nkeys; i++)
		if (strcmp(name, keys[i].name) == 0)
			break;
	return i;
}

/* Write into buf the name as this language would have it: kv-type is kv_type,
 * ctx is context. */
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
	unsigned i;

	for (i = 0; i < NITEMS(places); i++)
		if (find_key(places[i].keys, places[i].nkeys, name) <
		    places[i].nkeys)
			return places[i].name;
	return NULL;
}

int
scope_unknown(const struct key_scope *s, const char *name, struct err *reterr)
{
	char known[256] = "", ours[65];
	struct guess guess = { .typed = ours };
	const char *place;
	unsigned i;

	our_name(name, ours, sizeof(ours));
	for (i = 0; i < s->nkeys; i++) {
		strlcat(known, i ? ", " : "", sizeof(known));
		strlcat(known, s->keys[i].name, sizeof(known));
		guess_try(&guess, s->keys[i].name);
	}
	place = s->in_file ? place_of(ours) : NULL;
	if (place != NULL && find_key(s->keys, s->nkeys, ours) == s->nkeys)
		return err_set(reterr, ERR_USAGE, -EINVAL, "unknown key "
		    "'%.64s' here: %s belongs %s", name, ours, place);
	if (guess.best != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "unknown key "
		    "'%.64s': did you mean %s?", name, guess.best);
	return err_set(reterr, ERR_USAGE, -EINVAL,
	    "unknown key '%.64s': known here are %s%s", name, known,
	    s->also != NULL ? s->also : "");
}

int
scope_set(struct key_scope *s, const char *name, const char *text,
    struct err *reterr)
{
	unsigned i = find_key(s->keys, s->nkeys, name);
	int rc;

	if (i == s->nkeys)
		return scope_unknown(s, name, reterr);
	if (s->seen >> i & 1)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "%s is set twice: once is allowed", name);
	s->seen |= (uint64_t)1 << i;
	if ((rc = key_set(&s->keys[i], s->base, text, reterr)) < 0)
		err_prefix(reterr, "%s", name);
	return rc;
}
