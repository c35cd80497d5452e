/* tests/support/load_words.h - command lines for tests of the settings.
 * Owns: one struct conf, which the next load replaces. */
#ifndef TESTS_SUPPORT_LOAD_WORDS_H
#define TESTS_SUPPORT_LOAD_WORDS_H

#include "config/conf.h"

extern struct conf loaded;
extern struct err load_err;

/* Run conf_load() on a new conf with these words after "straddle". */
int load_words(const char *const *words);

#define LOAD(...)	load_words((const char *const []){ __VA_ARGS__, NULL })

/* The words must be refused as bad usage, with `text` in the message. */
#define REFUSED(text, ...)	do {					\
	ck_assert_int_lt(LOAD(__VA_ARGS__), 0);				\
	ck_assert_int_eq(load_err.kind, ERR_USAGE);			\
	ck_assert_msg(strstr(load_err.msg, text) != NULL, "%s",		\
	    load_err.msg);						\
} while (0)

/* Write a config file, and return its path; the next call replaces it. */
const char *write_conf(const char *text);

#endif
