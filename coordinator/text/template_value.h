/* coordinator/text/template_value.h - the values of a chat template's
 * expressions, and the reader that they belong to.
 * Owns: the values of one reading.  Called by template_expr.c and
 * template_read.c.  A value that the reader does not know is
 * V_OPAQUE; using it in a condition or writing it makes the reading fail. */
#ifndef COORDINATOR_TEXT_TEMPLATE_VALUE_H
#define COORDINATOR_TEXT_TEMPLATE_VALUE_H

#include "config/base.h"
#include "template_lex.h"
#include "template_shape.h"

/* A part of a text: a literal, or a message's text with what is stripped
 * from it. */
struct piece {
	const char *s;		/* [n] */
	size_t n;
	int hole;		/* index of the message, or -1 */
	unsigned edit;		/* enum read_edit */
};

enum value_kind {
	V_OPAQUE, V_UNDEFINED, V_NONE, V_BOOL, V_INT, V_TEXT, V_MESSAGE,
	V_LIST, V_EMPTY, V_SPLIT, V_SPACE, V_LOOP, V_FUNCTION,
	V_LENGTH		/* of a text with holes: 0 or not */
};

struct value {
	enum value_kind kind;
	long n;			/* V_BOOL, V_INT, V_LENGTH; V_MESSAGE: index;
				 * V_SPACE: its number; V_LIST: end */
	long from;		/* V_LIST: first message */
	int reversed;		/* V_LIST */
	uint32_t first, count;	/* V_TEXT, V_SPLIT: pieces */
	const char *s;		/* V_FUNCTION: name; V_SPLIT: separator */
	size_t len;
};

struct variable {
	const char *name;	/* [n] */
	size_t n;
	long space;		/* of a namespace's attribute */
	struct value v;
};

struct loop {
	int is_open;
	long index0, length;
	struct value list;
};

struct reader {
	const struct template_tokens *t;
	const struct read_vars *vars;
	const struct read_shape *shape;
	size_t at;		/* next token */
	size_t tag;		/* where the last tag begins */
	int failed, refused;
	char why[READ_WHY_LEN];
	size_t work;		/* tokens and bytes looked at */
	unsigned depth;
	int is_skipping;	/* the operand has no effect */
	struct loop loop;
	long nspaces;
	struct variable var[256], attr[64];
	uint32_t nvars, nattrs;
	struct piece piece[1 << 14];	/* of all values */
	uint32_t npieces;
	struct piece out[512];
	uint32_t nout;
	size_t out_bytes;
	char date[256];		/* [ndate], texts of strftime_now() */
	size_t ndate;
};

/* Make the reading fail, unless it has: the current tag goes into the
 * reason. */
void reader_fail(struct reader *r, const char *what);
/* Count n more tokens or bytes; 0: it was too much work, and the reading has
 * failed. */
int reader_work(struct reader *r, size_t n);
/* Is token `at` of this type, and this word (NULL: any)? */
int reader_is(const struct reader *r, size_t at, enum template_token_type type,
    const char *word);
/* Take the next token if it is so. */
int reader_take(struct reader *r, enum template_token_type type,
    const char *word);

void reader_set(struct reader *r, const char *name, size_t n,
    struct value v);
void reader_set_attr(struct reader *r, const struct template_token *space,
    const char *name, size_t n, struct value v);

struct value value_literal(struct reader *r, const char *s, size_t n);
/* 1, 0, or -1: not known. */
int value_truth(const struct reader *r, const struct value *v);

/* Is s[n] this word? */
int word_is(const char *s, size_t n, const char *word);

struct value value_make(enum value_kind kind, long n);
struct value value_of_truth(int truth);
/* The value of a name; V_UNDEFINED for an unknown one. */
struct value value_of_name(struct reader *r, const struct template_token *t);
void space_set(struct reader *r, long space, const char *name, size_t n,
    struct value v);
struct value value_attribute(struct reader *r, const struct value *v,
    const char *name, size_t n);
/* Message i of a list, from its end where i is negative. */
struct value value_list_item(const struct value *list, long i);

struct value value_concat(struct reader *r, const struct value *a,
    const struct value *b);
/* Item i of a list or of a text that was split, from its end where i is
 * negative. */
struct value value_item(struct reader *r, const struct value *v, long i);
/* The name of a role as the filter or method `how` spells it: title, capitalize,
 * upper or lower.  Opaque: another text. */
struct value value_case(struct reader *r, const struct value *v,
    const char *how, size_t n);
/* The literal that v is, or NULL. */
const char *value_text(const struct reader *r, const struct value *v,
    size_t *ret_n);
int value_is_text(const struct reader *r, const struct value *v,
    const char *word);
/* lines: strip only line breaks. */
struct value value_strip(struct reader *r, const struct value *of, int left,
    int right, int lines);
/* Text i of those between the separators of a V_SPLIT; -1 = the last. */
struct value value_split_part(struct reader *r, const struct value *v, long i);
/* Does v contain, or begin or end with, the literal s[n]?  1, 0, or -1: not
 * known. */
int value_contains(struct reader *r, const struct value *v, const char *s,
    size_t n);
int value_begins_with(struct reader *r, const struct value *v,
    const char *s, size_t n, int at_end);
/* 1, 0 or -1. */
int value_equals(struct reader *r, const struct value *a,
    const struct value *b);
/* -1, 0, 1 for less, equal, greater; 2: not known. */
int value_order(const struct value *a, const struct value *b);

#endif
