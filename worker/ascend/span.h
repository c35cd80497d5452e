/* worker/ascend/span.h - the steps of a span, for the two files that start them.
 * Owns: nothing.  Called by span.c, which runs them, and capture.c, which captures
 * them, on the session's thread. */
#ifndef WORKER_ASCEND_SPAN_H
#define WORKER_ASCEND_SPAN_H

#include "ascend.h"

/* --- span.c --- */

/* The tensor of a step with weights, for messages. */
const char *acl_name_of_step(const struct device *d, const struct acl_step *s);

/* Rows of the product of step s that begins with row r0 of n. */
uint32_t acl_rows_of_product(const struct device *d, const struct acl_step *s,
    uint32_t r0, uint32_t n);

/* Does SwiGLU or a sum, which follows, compute the product of step s, too? */
int acl_is_taken(const struct acl_step *s);

/* Start the norm of step s: of X, or of the last sum, which may have done so. */
int acl_start_norm(struct device *d, const struct acl_step *s,
    struct err *reterr);

/* Send A, or take it from a norm. */
int acl_send_rows(struct device *d, const struct acl_step *s,
    struct err *reterr);

/* Start products with the rows of s, which are in A. */
int acl_start_rows(struct device *d, const struct acl_step *s,
    struct err *reterr);

/* --- capture.c --- */

/* Are norms and SwiGLU captured, too? */
int acl_captures_fns(const struct device *d);

/* Capture what can be of the span that was made last; op_end: the operation after its
 * last one. */
int acl_capture_span(struct device *d, uint32_t op_end, struct err *reterr);

/* Start the graph that begins with step s, for n rows, which the host has put where the
 * step needs them.  1: all steps before d->replayed have been started; 0: there is
 * none; or an error. */
int acl_replay(struct device *d, const struct acl_step *s, uint32_t n,
    struct err *reterr);

#endif
