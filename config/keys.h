/* config/keys.h - every setting once: its name, its type, its range, its place.
 * Owns: the tables that the file, -s SPEC, the flags and conf_print() share,
 * so that they can not differ.  Called by the other files of config/ only. */
#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

#include "conf.h"

enum key_type {
	KEY_BOOL, KEY_INT, KEY_REAL,
	KEY_SEED,	/* sampling_conf: seed and seed_given */
	KEY_CAP,	/* session_conf: cap_bytes and cap_given */
	KEY_KV_TYPE,	/* conf: kv_type_k and kv_type_v */
	KEY_KV_ONE,	/* one of them */
	KEY_DEVICE, KEY_CORES, KEY_PRIORITY, KEY_PORT,
	KEY_SIZE,	/* uint64_t: bytes, lo to hi; 0 = unset */
	KEY_PATH,	/* char *, not empty; a file's is relative to it */
	KEY_TEXT,	/* char *, any bytes */
	KEY_LIST	/* struct int_list */
};

struct conf_key {
	const char *name;	/* in a file; NULL for what only flags set */
	enum key_type type;
	size_t off;		/* of the field in its struct */
	double lo, hi;		/* KEY_INT, _REAL, _LIST: what is allowed */
};

/* The three places of a config file; indices by name for the flags. */
enum { COMMON_MODEL, COMMON_CONTEXT, COMMON_BATCH, COMMON_KV_TYPE,
    COMMON_KV_TYPE_K, COMMON_KV_TYPE_V, COMMON_HALF_LAYERS, COMMON_STRICT,
    COMMON_RECOVER, COMMON_NKEYS };
enum { SAMPLING_TEMP, SAMPLING_TOP_K, SAMPLING_TOP_P, SAMPLING_MIN_P,
    SAMPLING_REPEAT_PENALTY, SAMPLING_REPEAT_LAST_N, SAMPLING_SEED,
    SAMPLING_NKEYS };
enum { SESSION_DEVICE, SESSION_CORES, SESSION_NODE, SESSION_CAP,
    SESSION_THREADS, SESSION_PRIORITY, SESSION_PORT, SESSION_DOMAIN,
    SESSION_NKEYS };

extern const struct conf_key common_keys[COMMON_NKEYS];		/* struct conf */
extern const struct conf_key sampling_keys[SAMPLING_NKEYS];
extern const struct conf_key session_keys[SESSION_NKEYS];

/* Read text as key k of the struct at base.  The message says what is wrong
 * and what is allowed; the caller puts in front of it where and which key. */
int
key_set(const struct conf_key *k, void *base, const char *text,
    struct err *reterr);

/* Print "name = value", indented, unless it is unset (below lo, empty, ...). */
void
key_print(const struct conf_key *k, const void *base, const char *indent,
    FILE *fp);

/* One struct that is being filled from text, key by key. */
struct key_scope {
	const struct conf_key *keys;
	unsigned nkeys;
	void *base;
	uint64_t seen;		/* bit n: keys[n] has been set here */
	const char *also;	/* what else belongs here, for messages; NULL */
	int in_file;		/* the other scopes are to be had, too */
};

/* keys_scope.c: set the key called name; unknown names and names seen before are errors. */
int
scope_set(struct key_scope *s, const char *name, const char *text,
    struct err *reterr);

/* Refuse name, with what was meant when that can be told. */
int
scope_unknown(const struct key_scope *s, const char *name, struct err *reterr);

/* A session with every default, and its name checked; "" leaves it unnamed. */
void
session_defaults(struct session_conf *s);
int
session_set_name(struct session_conf *s, const char *name, struct err *reterr);

#endif
