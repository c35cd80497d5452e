/* coordinator/print/confined.h - what the workers have given up, in words.
 * Called by the engine and output.  Owns nothing. */
#ifndef COORDINATOR_PRINT_CONFINED_H
#define COORDINATOR_PRINT_CONFINED_H

#include <jansson.h>

#include "coordinator/session/sessions.h"

/* To stderr, when all have loaded: with -v what each worker is confined by;
 * without, one note if something does not hold for one of them. */
void confined_say(const struct sessions *ss);

/* {"capabilities":true,"no_new_privs":true,...}: true, or why it does not
 * hold. */
json_t *confined_json(const struct session *s);

#endif
