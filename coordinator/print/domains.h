/* coordinator/print/domains.h - what sessions have in a device's memory, and what the
 * process that stands for the device takes beside it.
 * Called by output.c.  Owns nothing; needs the sessions' statistics. */
#ifndef COORDINATOR_PRINT_DOMAINS_H
#define COORDINATOR_PRINT_DOMAINS_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/session/sessions.h"

/* Does any session have an emulator, as planned? */
int domains_emulated(const struct plan *p);

/* A line for each session that has one: bytes in its domain, its emulator's own
 * as planned and as measured, and what of it counts in no session. */
void domains_say(FILE *fp, const struct plan *p, const struct sessions *ss);

/* The same, measured, in bytes: "emulator_measured", "emulator_files",
 * "in_domain"; null for a session without an emulator. */
void domains_json(json_t *o, const struct session *s);

#endif
