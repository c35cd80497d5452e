/* coordinator/text/jinja/jinja.h - runs the chat template of a model file.
 * Owns: compiled programs, and the values and memory of one rendering.  Called by
 * the reader.
 * Does not know messages, roles or tokens: variables in, marked bytes out.
 *
 * A template is a program from a stranger.  It sees the variables that the caller
 * sets and the date that the caller gives: no file, no process, no object but plain
 * values.  Its length, depth, steps, time, memory and output are bounded.  Nothing
 * that it does ends the process or recurses without a counter.
 *
 * Each byte of a string has a mark that says who wrote it: the template, or the
 * caller's input.  Every operation keeps the marks, so that a control token in the
 * template can be told from the same letters in a message. */
#ifndef COORDINATOR_TEXT_JINJA_JINJA_H
#define COORDINATOR_TEXT_JINJA_JINJA_H

#include <time.h>

#include "config/base.h"
#include "config/err.h"

enum jinja_origin { JINJA_TEMPLATE, JINJA_INPUT };

/* A template that exceeds one of these fails with a message that names it. */
struct jinja_limits {
	size_t source_bytes;	/* of a template */
	unsigned nesting;	/* of its syntax */
	unsigned macro_depth;	/* calls of macros within calls */
	unsigned depth;		/* evaluations within evaluations; values within
				 * values */
	uint64_t steps;		/* of one rendering, or compilation */
	unsigned time_ms;	/* CPU time of the same; 0: no limit */
	size_t memory_bytes;	/* of the program; of one rendering */
	size_t output_bytes;
	unsigned range;		/* numbers of one range() */
};

#define JINJA_LIMITS { \
	.source_bytes = 256 * KIB, .nesting = 100, .macro_depth = 50, \
	.depth = 1000, .steps = 20000000, .time_ms = 1000, \
	.memory_bytes = 64 * MIB, .output_bytes = 16 * MIB, .range = 100000 }

struct jinja_program;

/* Compile text[n], of which a copy is kept.  -EBADMSG: no template; -E2BIG: beyond a
 * limit; -ENOMEM.  Messages begin with "line L, column C: ". */
int
jinja_compile(const char *text, size_t n, const struct jinja_limits *limits,
    struct jinja_program **ret, struct err *reterr);
void jinja_close(struct jinja_program *p);	/* NULL is a no-op */

/* A plain value.  Lists, dicts and strings belong to the jinja_data that they were
 * made with, and live as long. */
struct jv {
	uint8_t kind;		/* internal */
	uint8_t by;		/* enum jinja_origin */
	uint8_t safe;		/* internal: a string that is marked as HTML */
	uint32_t extra;		/* internal */
	union {
		int64_t i;
		double f;
		void *p;
	} u;
};

/* The variables and the memory of one rendering. */
struct jinja_data;

int
jinja_data_open(const struct jinja_limits *limits, struct jinja_data **ret,
    struct err *reterr);
void jinja_data_close(struct jinja_data *d);	/* NULL is a no-op */

/* Build values.  Strings are copied.  What needs more memory than the limit gives
 * none, and the rendering fails. */
struct jv jinja_none(enum jinja_origin by);
struct jv jinja_bool(int truth, enum jinja_origin by);
struct jv jinja_int(int64_t i, enum jinja_origin by);
struct jv jinja_float(double f, enum jinja_origin by);
struct jv
jinja_string(struct jinja_data *d, const char *s, size_t n,
    enum jinja_origin by);
/* An origin of a list or dict goes to its brackets and commas, when it is printed. */
struct jv jinja_list(struct jinja_data *d, enum jinja_origin by);
struct jv jinja_dict(struct jinja_data *d, enum jinja_origin by);
void jinja_append(struct jinja_data *d, struct jv list, struct jv item);
/* An equal key's value is replaced; keys keep their order. */
void
jinja_put(struct jinja_data *d, struct jv dict, const char *key, size_t nkey,
    enum jinja_origin by, struct jv value);
/* Set a variable of the template. */
void
jinja_set(struct jinja_data *d, const char *name, struct jv value);

/* Takes the output, in order, in pieces of one origin each.  A negative return ends
 * the rendering, which returns it. */
typedef int
jinja_sink(void *arg, const char *s, size_t n, enum jinja_origin by);

/* Render p with the variables of d, each only once: a template may change lists.
 * now: what strftime_now() tells; NULL = there is no such function.  The sink is
 * called only if all of the template ran.
 * -EINVAL: the template failed; -ECANCELED: its raise_exception(), in its own words;
 * -E2BIG: beyond a limit; -ENOMEM. */
int
jinja_render(const struct jinja_program *p, struct jinja_data *d,
    const struct tm *now, jinja_sink *sink, void *arg, struct err *reterr);

#endif
