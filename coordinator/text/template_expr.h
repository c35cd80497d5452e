/* coordinator/text/template_expr.h - the expressions of a chat template.
 * Called by template_read.c.  Owns nothing. */
#ifndef COORDINATOR_TEXT_TEMPLATE_EXPR_H
#define COORDINATOR_TEXT_TEMPLATE_EXPR_H

#include "template_value.h"

/* Read the expression at r->at; read_operand(): one without a trailing "if". */
struct value read_expr(struct reader *r);
struct value read_operand(struct reader *r);

#endif
