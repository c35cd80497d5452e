/* worker/ascend/span.h - the steps of a span, for the two files that start them.
 * Owns: nothing.  Called by span.c, which runs them, and capture.c, which captures
 * them, on the session's thread. */
#ifndef WORKER_ASCEND_SPAN_H
#define WORKER_ASCEND_SPAN_H

#include "ascend.h"

/* --- span.c --- */

/* Rows of the product of step s that begins with row r0 of n. */
uint32_t acl_rows_of_product(const struct device *d, const struct acl_step *s,
    uint32_t r0, uint32_t n);

/* Send A, or take it from a norm, and start products with its rows. */
int acl_start_rows(struct device *d, const struct acl_step *s,
    struct err *reterr);

/* --- capture.c --- */

/* Capture the products of the span that was made last. */
int acl_capture_span(struct device *d, struct err *reterr);

/* The graph of step s for n rows, or NULL. */
void *acl_graph_of(const struct device *d, const struct acl_step *s,
    uint32_t n);

#endif
