/* worker/ascend/verdict.h - what a probe tried, for later probes.
 * Owns: the format of a verdict, and the list of what it depends on.  Called by
 * the device's probe; the coordinator keeps verdicts as bytes.
 *
 * A verdict may come from any file: one that is out of bounds is not taken.  It
 * names only ways of multiplying; memory and limits are asked each time. */
#ifndef WORKER_ASCEND_VERDICT_H
#define WORKER_ASCEND_VERDICT_H

#include "product.h"
#include "worker/device.h"

/* All that the trials depend on: processor, mode, driver, libraries and kernels,
 * this program; below root ("" = this machine).  "" = it is too long. */
void acl_verdict_key(const struct acl_session *s, const char *root,
    char ret[DEVICE_KEY_BYTES]);

/* Does a choice name ways that there are, with numbers in bounds? */
int acl_choice_is_sound(const struct acl_choice *c);

/* Put the ways of v in c, and why there are none for integers.  Returns 1; 0: its
 * key is another one, or it is out of bounds, see why. */
int acl_verdict_take(const struct device_verdict *v, const char *key,
    const struct acl_session *s, struct acl_choice *c,
    char groups_reason[ACL_REASON], char *why, size_t len);

/* Fill in v from a choice that was tried. */
void acl_verdict_fill(const struct acl_choice *c, const char *groups_reason,
    const char *key, struct device_verdict *v);

/* The shapes of models that were tried with these ways: none in one that was just
 * filled in, or that is out of bounds.  put: replace them, and c's
 * ways for shapes. */
void acl_verdict_shapes(const struct device_verdict *v,
    struct acl_shapes *ret);
void acl_verdict_put_shapes(struct device_verdict *v,
    const struct acl_shapes *s, const struct acl_choice *c);

#endif
