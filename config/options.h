/* config/options.h - the table of settings: config keys and command options.
 * Owns: one row per setting with its key in a config file, the option that
 * sets it, the commands that take the option, its field and range, and its
 * help.  Read by the parsers of config files and command lines, by the help
 * and by conf_print().  Parses nothing itself. */
#ifndef CONFIG_OPTIONS_H
#define CONFIG_OPTIONS_H

#include "conf.h"

enum { MAX_SETTINGS = 96, OPT_TEXT_LEN = 32 };

/* Where in a config file a key belongs. */
enum section { SECTION_NONE, SECTION_TOP, SECTION_SAMPLING, SECTION_SESSION };

/* How a value is written, and the type of its field. */
enum key_type {
	KEY_OTHER,	/* cli.c handles the option; there is no field */
	KEY_BOOL,	/* int */
	KEY_INT,	/* int, lo to hi */
	KEY_REAL,	/* double, lo to hi */
	KEY_SEED,	/* sampling.seed and sampling.seed_given */
	KEY_CAP,	/* cap_bytes and cap_given of a session */
	KEY_KV_TYPE,	/* kv_type_k and kv_type_v */
	KEY_KV_ONE,	/* enum kv_type: one of them */
	KEY_WORD,	/* int: the number of one of words */
	KEY_DEVICE, KEY_CORES, KEY_PRIORITY, KEY_PORT, KEY_NAME,
	KEY_SIZE,	/* uint64_t: bytes, lo to hi; 0 = unset */
	KEY_PATH,	/* char *, not empty; in a file relative to the file */
	KEY_TEXT,	/* char *, any bytes */
	KEY_LIST,	/* struct int_list, each lo to hi */
	KEY_TEXTS	/* struct text_list; each option adds one */
};

struct setting {
	enum section section;	/* SECTION_NONE: an option only */
	const char *key;	/* name in that section */

	const char *option;	/* long name without dashes, or NULL */
	int letter;		/* short name, or 0 */
	unsigned cmds;		/* bit n: enum command n takes the option */
	const char *arg;	/* its value in the help; NULL: a flag */

	enum key_type type;
	size_t off;		/* of the field: in struct session_conf for
				 * SECTION_SESSION, else in struct conf */
	double lo, hi;		/* allowed values */
	double preset;		/* default of an int, double, word or KV type */
	const char *const *words;	/* KEY_WORD: up to a NULL */

	/* {range}, {default} and {session} stand for values of the table. */
	const char *help;
};

/* Row i; NULL after the last one. */
const struct setting *setting_at(unsigned i);

/* The next row of a section after prev; prev NULL: the first; NULL: no more. */
const struct setting *
setting_next(enum section section, const struct setting *prev);

/* The row of a config key, or NULL. */
const struct setting *setting_find(enum section section, const char *key);

int option_is_taken(const struct setting *s, enum command cmd);

/* Append to buf the help lines of cmd's own options (common = 0) or of the
 * options that every command takes (common = 1).  options_help.c */
void
options_help(enum command cmd, int common, char *buf, size_t len);

/* The help of s, its placeholders replaced. */
enum { OPTIONS_TEXT_LEN = 1024 };
void options_text(const struct setting *s, char *buf, size_t len);

/* "-p" or "--ctx", for messages.  Returns buf. */
const char *option_text(const struct setting *s, char buf[OPT_TEXT_LEN]);

#endif
