/* coordinator/text/template_read.h - the literal texts that a chat template puts
 * around the messages of a conversation.
 * Called by template.c, once for each shape of a conversation when a model is
 * opened.  Owns nothing.
 *
 * This is not a Jinja engine.  It follows the blocks of the template for one
 * shape whose message texts are holes, and collects the literals between them.
 * It knows the conditions and filters that templates put on roles, positions
 * and options.  Where a shape depends on anything else, reading it fails and
 * says on what. */
#ifndef COORDINATOR_TEXT_TEMPLATE_READ_H
#define COORDINATOR_TEXT_TEMPLATE_READ_H

#include "template_lex.h"
#include "template_shape.h"

struct read_result {
	unsigned n;		/* holes in it */
	unsigned hole[READ_MAX_MESSAGES];	/* in their order; a kept
						 * thought: its message's index
						 * + READ_MAX_MESSAGES */
	unsigned edit[READ_MAX_MESSAGES];
	char *text[READ_MAX_MESSAGES + 1];	/* literals in front of each
						 * hole, and behind the last */
	int refused;		/* the template raises an error */
	char why[READ_WHY_LEN];	/* on failure: what could not be read */
};

/* Read the text of this shape, with the answer begun (add_generation_prompt).
 * Returns 0; -ENOTSUP with ret->why; -ENOMEM.  ret needs read_result_done(). */
int template_read(const struct template_tokens *t,
    const struct read_vars *vars, const struct read_shape *shape,
    struct read_result *ret);
void read_result_done(struct read_result *r);

#endif
