/* coordinator/print/domains.h - the sessions' memory in a device's domain, and the
 * memory of the emulator that runs it.
 * Called by output.c.  Owns nothing; needs the sessions' statistics. */
#ifndef COORDINATOR_PRINT_DOMAINS_H
#define COORDINATOR_PRINT_DOMAINS_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/session/sessions.h"

/* Does the plan give any session an emulator? */
int domains_have_emulator(const struct plan *p);

/* A line for each session that has one: bytes in its domain, the emulator's own
 * memory as planned and as measured, and the part that no session counts. */
void domains_print(FILE *fp, const struct plan *p, const struct sessions *ss);

/* The measured values in bytes: "emulator_measured", "emulator_files",
 * "in_domain"; null for a session without an emulator. */
void domains_json(json_t *o, const struct session *s);

#endif
