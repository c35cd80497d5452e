/* coordinator/text/template_lex.h - cuts a chat template's Jinja text into
 * tokens.
 * Owns: the token list.  Called by template_read.c.  Gives no token a
 * meaning. */
#ifndef COORDINATOR_TEXT_TEMPLATE_LEX_H
#define COORDINATOR_TEXT_TEMPLATE_LEX_H

#include <stddef.h>
#include <stdint.h>

enum template_token_type {
	TT_TEXT,		/* literal text between tags */
	TT_OUT,			/* begins {{ ... }} */
	TT_STMT,		/* begins {% ... %} */
	TT_CLOSE,		/* ends either */
	TT_NAME, TT_STRING, TT_INT, TT_OP
};

struct template_token {
	enum template_token_type type;
	const char *s;		/* [n]; of a string, with escapes resolved */
	size_t n;
};

struct template_tokens {
	struct template_token *tok;	/* [n] */
	size_t n;
	char *source, *strings;		/* that the tokens point into */
};

/* Cut jinja[nbytes] into tokens, as Jinja does with trim_blocks and
 * lstrip_blocks: spaces around tags that it drops are in no text, and
 * comments are left out.  Returns 0; -ENOMEM; -EINVAL: not well-formed, or
 * with a part that is not known here.  Afterwards, in every case, ret needs
 * template_tokens_done(). */
int template_tokens_init(struct template_tokens *ret, const char *jinja,
    size_t nbytes);
void template_tokens_done(struct template_tokens *t);

#endif
