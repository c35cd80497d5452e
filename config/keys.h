/* config/keys.h - one setting read from text, and printed.
 * Owns: the conversion between the text of a value and its field, and the
 * errors about unknown or repeated keys.  Called by the other files of config/
 * only.  Which settings there are is in options.c. */
#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

#include "options.h"

/* Set the field of s in the struct at base (struct session_conf for a session's
 * keys, else struct conf) from text.  The error says what is wrong and what is
 * allowed; the caller prefixes the place and the name. */
int
key_set(const struct setting *s, void *base, const char *text,
    struct err *reterr);

/* Set the field of s, a setting of struct conf, to its default, if it has one
 * other than zero. */
void
key_set_default(const struct setting *s, struct conf *c);

/* Print "name = value", indented, unless it is unset (below lo, empty, ...). */
void
key_print(const struct setting *s, const void *base, const char *indent,
    FILE *fp);

enum { KEY_VALUE_LEN = 256 };

/* Write the value into buf, without quotes; "" for paths, texts and lists.
 * Returns buf. */
char *
key_format(const struct setting *s, const void *base, char buf[KEY_VALUE_LEN]);

/* Write into buf what s allows: "1 to 4096", "f32, f16 or q8_0"; "" for types
 * without a range.  Returns buf. */
char *
key_range(const struct setting *s, char buf[KEY_VALUE_LEN]);

/* One struct that is being filled from text, key by key. */
struct key_scope {
	enum section section;
	void *base;		/* as for key_set() */
	const char *also;	/* other things allowed here, for messages */
	int in_file;		/* in a file, which has other sections, too */
	uint8_t seen[MAX_SETTINGS];	/* of setting_at(i): it has been set */
};

/* keys_scope.c: set the key called name.  An unknown name, or one that was set
 * in this scope before, is an error. */
int
scope_set(struct key_scope *scope, const char *name, const char *text,
    struct err *reterr);

/* Report name as unknown, with a suggestion where there is one. */
int
scope_unknown(const struct key_scope *scope, const char *name,
    struct err *reterr);

/* 1 when s has been set in this scope. */
int scope_has_set(const struct key_scope *scope, const struct setting *s);

/* A session with every default and no name. */
void
session_defaults(struct session_conf *s);

/* Set the name after checking it. */
int
session_set_name(struct session_conf *s, const char *name, struct err *reterr);

#endif
